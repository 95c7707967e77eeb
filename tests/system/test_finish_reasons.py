"""`finishReasons`: what a person chose about how answers end reaches the wire, and the debug file tells of every mapping."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.speaker import FORMS, IDS, Speaker
from tests.system.tool import CONFIG
from tests.system.watched import until

pytestmark = pytest.mark.system

every_form = pytest.mark.parametrize("dialect, stream", FORMS, ids=IDS)
LOG = "finish-reason-debug.log"
USE = ToolUse("Bash", {"command": "ls"}, "call_bash_1")
CLOCK = "  clock: {enabled: true, ntp: {enabled: false}}\n"
"""With it somebody takes part in every turn; without it bytes pass as they come."""


@pytest.fixture(scope="module", params=[CLOCK, ""], ids=["with a plugin", "alone"])
def chosen(
    request: pytest.FixtureRequest, provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mitmdump]:
    config = CONFIG + request.param + "finishReasons: {toolUseMessageStop: never, contentFilter: refusal, log: true}\n"
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path_factory.mktemp("chosen")) as proxy:
        yield proxy
        assert proxy.alive
        assert "Traceback" not in proxy.log


def logged(proxy: Mitmdump, since: int, count: int) -> list[str]:
    """The lines for one answer, without their time and its id."""
    path = proxy.sessions / LOG

    def lines() -> list[str]:
        return path.read_text().splitlines()[since:] if path.exists() else []

    until(lambda: len(lines()) >= count, 3, lines)
    return [line.split(" ", 2)[2] for line in lines()]


def length(proxy: Mitmdump) -> int:
    time.sleep(0.3)  # what is on its way
    path = proxy.sessions / LOG
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("rounds", [1, 2])
def test_no_message_stop_behind_a_tool_call(chosen: Mitmdump, provider: FakeProvider, rounds: int) -> None:
    provider.forget()
    provider.enqueue(*[Behaviour(reply=Reply("words"))] * (rounds - 1), Behaviour(reply=Reply("more", calls=(USE,))))
    speaker = Speaker(provider, chosen)
    answer = speaker.ask("hello" if rounds == 1 else '<**stopMessage:"go on",3**> hello', keep=False)
    assert (answer.ended, [name for name, _ in answer.events][-1]) == ("complete", "message_delta")
    assert b'"stop_reason":"tool_use"' in answer.body.replace(b": ", b":")
    provider.forget()
    assert [name for name, _ in Speaker(provider, chosen).ask("hello").events][-1] == "message_stop"


def test_what_a_filtered_answer_says(chosen: Mitmdump, provider: FakeProvider) -> None:
    """The word of a provider that speaks the dialect loosely, where the end is written anew."""
    provider.forget()
    filtered = Behaviour(
        reply=Reply("second"), edit=lambda events: [event.replace(b'"end_turn"', b'"sensitive"') for event in events]
    )
    provider.enqueue(Behaviour(reply=Reply("first")), filtered)
    told = Speaker(provider, chosen).ask('<**stopMessage:"go on",1**> hello', keep=False)
    assert b'"stop_reason":"refusal"' in told.body.replace(b": ", b":")


@every_form
def test_every_mapping_is_logged(chosen: Mitmdump, provider: FakeProvider, dialect: Dialect, stream: bool) -> None:
    provider.forget()
    since = length(chosen)
    provider.always(Behaviour(reply=Reply("words", stop="length")))
    Speaker(provider, chosen, dialect, stream).ask("hello")
    (line,) = logged(chosen, since, 1)
    assert line.startswith(f"{dialect}: ")
    assert line.endswith(" taken as length")


def test_the_log_is_private_and_holds_no_words(chosen: Mitmdump, provider: FakeProvider) -> None:
    provider.forget()
    since = length(chosen)
    provider.always(
        Behaviour(
            reply=Reply("secret words"), edit=lambda events: [event.replace(b"end_turn", b"six-key-000") for event in events]
        )
    )
    Speaker(provider, chosen).ask("<**six.m**> secret question")
    (line,) = logged(chosen, since, 1)
    assert "'***' taken as stop (unknown finish reason" in line
    text = (chosen.sessions / LOG).read_text()
    assert "secret" not in text
    assert "six-key" not in text
    assert (chosen.sessions / LOG).stat().st_mode & 0o777 == 0o600


def test_switched_on_and_off_while_it_runs(provider: FakeProvider, tmp_path: Path) -> None:
    """By default nothing is written, and `message_stop` is always sent."""
    provider.forget()
    provider.always(Behaviour(reply=Reply("", calls=(USE,))))
    config = tmp_path / "mitm-config.yaml"
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path) as proxy:

        def last() -> str:
            return [name for name, _ in Speaker(provider, proxy).ask("hello", keep=False).events][-1]

        assert last() == "message_stop"
        assert length(proxy) == 0
        for more, ending, lines in (
            ("finishReasons: {toolUseMessageStop: never, log: true}\n", "message_delta", 1),
            ("", "message_stop", 1),
        ):
            before = len(proxy.log)
            config.write_text(CONFIG + more)
            until(lambda before=before: "Configuration reloaded" in proxy.log[before:], 4, lambda: proxy.log)  # type: ignore[misc]
            assert last() == ending
            assert length(proxy) == lines
