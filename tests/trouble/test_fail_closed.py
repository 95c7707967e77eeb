"""F1: mitmproxy lets a request pass as it is when a hook fails. Ours do not: whatever breaks inside, nothing half-done leaves.

A second script breaks one function of the product at a time, by the name that stands in a file.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system

ANTHROPIC = "https://api.anthropic.com"
SECRET_TEXT = "words that only a person knows"
HEADERS = {"x-api-key": "sk-client-secret", "cookie": "session=sk-client-cookie"}

BREAKER = '''
"""Makes the functions whose names stand in a file raise, with everything they were given in the exception's text."""
import functools
import importlib
import os
from pathlib import Path

BROKEN = Path(os.environ["BROKEN"])


def breakable(owner, name):
    whole = getattr(owner, name)

    @functools.wraps(whole)
    def maybe(*given, **named):
        if BROKEN.read_text() == f"{owner.__name__}.{name}":
            raise RuntimeError(f"broken on purpose: {given} {named}")
        return whole(*given, **named)

    setattr(owner, name, maybe)


for place in os.environ["BREAKABLE"].split():
    module, _, rest = place.partition(":")
    owner = importlib.import_module(module)
    *classes, name = rest.split(".")
    for one in classes:
        owner = getattr(owner, one)
    breakable(owner, name)
'''

BEFORE = {
    "sealing.seal": "routecodex.addons.sealing:seal",
    "flows.read_request": "routecodex.addons.flows:read_request",
    "flows.read_body": "routecodex.addons.flows:read_body",
    "Desk.read": "routecodex.routing.desk.desk:Desk.read",
    "Desk.obey": "routecodex.routing.desk.desk:Desk.obey",
    "Desk.route": "routecodex.routing.desk.desk:Desk.route",
    "Plan.write": "routecodex.routing.turn.plan:Plan.write",
    "flows.write_request": "routecodex.addons.flows:write_request",
    "flows.mark": "routecodex.addons.flows:mark",
    "CarriedTurn.__init__": "routecodex.addons.turns:CarriedTurn.__init__",
}
"""What breaks before anything has been sent."""
LATER = {
    "Turn.head": "routecodex.routing.turn.turn:Turn.head",
    "Turn.data": "routecodex.routing.turn.turn:Turn.data",
    "Turn.end": "routecodex.routing.turn.turn:Turn.end",
    "Plan.head": "routecodex.routing.turn.plan:Plan.head",
    "Plan.answered": "routecodex.routing.turn.plan:Plan.answered",
    "CarriedTurn._carry_out": "routecodex.addons.turns:CarriedTurn._carry_out",
    "flows.read_headers": "routecodex.addons.flows:read_headers",
    "CarriedTurn._open": "routecodex.addons.turns:CarriedTurn._open",
}
"""What breaks when an answer comes."""
REPEATING = {
    "Plan.failed": "routecodex.routing.turn.plan:Plan.failed",
    "Plan.refusal": "routecodex.routing.turn.plan:Plan.refusal",
    "flows.new_request": "routecodex.addons.flows:new_request",
    "CarriedTurn._run_round": "routecodex.addons.turns:CarriedTurn._run_round",
}
"""What breaks while a failed attempt is replaced."""


@dataclass
class Bench:
    proxy: Mitmdump
    provider: FakeProvider
    file: Path

    def breaking(self, name: str) -> None:
        self.file.write_text(name)

    def ask(self, text: str, *, stream: bool = False) -> Answer:
        body = {"model": "m", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": text}]}
        return call(ANTHROPIC, "/v1/messages", body, proxy=self.proxy, headers=HEADERS)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("closed")
    (folder / "breaker.py").write_text(BREAKER)
    file = folder / "broken"
    file.write_text("")
    env = {"BROKEN": str(file), "BREAKABLE": " ".join((BEFORE | LATER | REPEATING).values())}
    scripts = [SCRIPT, folder / "breaker.py"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=scripts, config=CONFIG, upstream=provider, folder=folder, env=env, flows=True) as proxy,
    ):
        yield Bench(proxy, provider, file)


@pytest.fixture
def bench(shared: Bench) -> Iterator[Bench]:
    shared.provider.forget()
    yield shared
    shared.provider.forget()
    shared.breaking("")
    assert shared.proxy.alive
    assert shared.ask("<**six.m**> as before").status == 200


def _name(place: str) -> str:
    """As the breaker builds it."""
    module, _, rest = place.partition(":")
    *classes, name = rest.split(".")
    return f"{classes[-1] if classes else module}.{name}"


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize("tag", ["", "<**six.m**> "], ids=["origin", "tagged"])
def test_nothing_leaves_when_something_breaks_before(bench: Bench, name: str, tag: str) -> None:
    bench.breaking(_name(BEFORE[name]))
    answer = bench.ask(f"{tag}{SECRET_TEXT}")
    if name == "Desk.obey" and not tag:
        assert answer.status in (200, 502)
    else:
        assert answer.status == 502
        assert answer.header("content-type") == "application/json"
        assert answer.header("x-should-retry") == "false"
        assert answer.json["error"]["message"].startswith("RouteCodex failed inside")
        assert bench.provider.requests == []
        assert bench.provider.all_bytes().strip() == b""
    assert SECRET_TEXT not in answer.text or answer.status == 200


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("name", LATER)
def test_the_client_is_not_left_hanging_when_something_breaks_later(bench: Bench, name: str, stream: bool) -> None:
    """An error, or a cut: soon, and never something that looks complete."""
    bench.provider.always(Behaviour(reply=Reply(("one ", "two ", "three")), delay_s=0.02))
    bench.breaking(_name(LATER[name]))
    answer = bench.ask(f"<**six.m**> {SECRET_TEXT}", stream=stream)
    assert answer.ended != "timeout"
    assert b"message_stop" not in answer.body or name == "Turn.end", "there the last event had passed already"
    assert b'"stop_reason":"end_turn"' not in answer.body or answer.ended != "complete"
    assert SECRET_TEXT not in answer.text
    bench.provider.wait_until(lambda: bench.provider.open_connections == 0, 2)
    assert len(bench.provider.calls) <= 2


@pytest.mark.parametrize("name", REPEATING)
def test_the_client_is_not_left_hanging_when_a_repetition_breaks(bench: Bench, name: str) -> None:
    bench.provider.always(Behaviour(status=500, error="down"))
    bench.breaking(_name(REPEATING[name]))
    answer = bench.ask(f"<**six.m**> {SECRET_TEXT}")
    assert answer.ended != "timeout"
    assert answer.status in (0, 500, 502)
    assert SECRET_TEXT not in answer.text
    bench.provider.wait_until(lambda: bench.provider.open_connections == 0, 2)


def test_the_connection_lives_on(bench: Bench) -> None:
    """A refused call does not spoil the next one."""

    async def three() -> list[int]:
        async with Http1(Route(ANTHROPIC, bench.proxy)) as client:
            statuses = []
            for broken in ("", _name(BEFORE["Desk.route"]), ""):
                bench.breaking(broken)
                body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "<**six.m**> hello"}]}
                statuses.append((await client.send("POST", "/v1/messages", body=body, headers=HEADERS)).status)
            return statuses

    assert asyncio.run(three()) == [200, 502, 200]


def test_nobody_is_blamed_and_nothing_is_kept(bench: Bench) -> None:
    """Thirty broken calls: no key rests, no connection and no file stays open."""
    bench.ask("<**six.m**> warm")
    files = bench.proxy.open_files or 0
    for number in range(30):
        places = [*BEFORE.values(), *LATER.values()]
        bench.breaking(_name(places[number % len(places)]))
        bench.ask("<**claude.claude-sonnet-4-5**> hello", stream=bool(number % 2))
    bench.breaking("")
    time.sleep(0.5)
    assert (bench.proxy.open_files or 0) <= files + 2
    bench.provider.forget()
    assert bench.ask("<**claude.claude-sonnet-4-5**> hello").status == 200


def test_the_log_says_where_and_not_what(shared: Bench) -> None:
    """The last of this file: no word of a person, no credential, in the log or the saved flows of refused calls."""
    bench = shared
    log = bench.proxy.log
    for name in ("read_request", "route", "seal"):
        assert f"def {name}" not in log
    assert log.count("RouteCodex failed in request at") >= 10
    assert "RuntimeError" in log
    assert "broken on purpose" not in log
    assert SECRET_TEXT not in log
    for secret in ("sk-client-secret", "sk-client-cookie", "six-key-", "sk-ant-own"):
        assert secret not in log
    bench.proxy.stop()
    assert bench.proxy.flows_path is not None
    saved = bench.proxy.flows_path.read_bytes()
    for secret in (b"sk-client-secret", b"sk-client-cookie", b"six-key-", b"sk-ant-own"):
        assert secret not in saved
    bench.proxy.start()
    assert json.loads(bench.ask("<**echo**> hi").body)
