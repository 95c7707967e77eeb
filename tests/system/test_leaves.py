"""A client that leaves: within a second nobody works for it any more, and no key is blamed."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Leave, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, Tool, write

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """One of its own: a provider with a single key must not rest because of what other tests did to it."""
    folder: Path = tmp_path_factory.mktemp("leaves")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder) as started:
        yield started


LEFT_S = 600
"""Nothing ends so late by itself: what has ended was left."""
HANGS = Behaviour(before="hang")
SLOW = Behaviour(reply=Reply(tuple(f"w{n} " for n in range(400))), bytes_per_packet=60, delay_s=0.01, ending="hang")
LIMITED = Behaviour(status=429, error="slow down", headers=(("retry-after", "1"),))
DOWN = Behaviour(status=503, error="down")
WAITING, STREAMING = Leave(), Leave(chunks=4)
"""It leaves while it waits for the last attempt, or in the middle of the answer."""

CASES: dict[str, tuple[str, list[Behaviour], Leave, int]] = {
    "before the head": ("<**claude.claude-sonnet-4-5**>", [HANGS], WAITING, 1),
    "before the head, at origin": ("", [HANGS], WAITING, 1),
    "between head and content": ("<**claude.claude-sonnet-4-5**>", [Behaviour(body_wait_s=LEFT_S)], WAITING, 1),
    "in the answer": ("<**claude.claude-sonnet-4-5**>", [SLOW], STREAMING, 1),
    "in the answer, at origin": ("", [SLOW], STREAMING, 1),
    "in the second attempt, before its head": ("<**six.m**>", [DOWN, HANGS], WAITING, 2),
    "in the second attempt's answer": ("<**six.m**>", [DOWN, SLOW], STREAMING, 2),
    "inside an error's body": ("<**six.m**>", [Behaviour(status=503, error="down", stall_at=5, stall_s=LEFT_S)], WAITING, 1),
    "while the same key is waited for": ("<**claude.claude-sonnet-4-5**>", [LIMITED], WAITING, 1),
}


async def ask(tool: Tool, text: str, *, stream: bool, leave: Leave | None = None) -> Answer:
    path, body = write(Dialect.MESSAGES, "m", [("user", text)], stream)
    async with Http1(Route(HOSTS[Dialect.MESSAGES], tool.proxy)) as client:
        return await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]], leave=leave)


@pytest.mark.parametrize(
    "name, stream, reset",
    [
        (name, stream, reset)
        for name in CASES
        for stream, reset in ((True, False), (True, True), (False, False))
        if stream or name != "while the same key is waited for"
    ],
)
def test_all_work_for_it_ends(tool: Tool, name: str, stream: bool, reset: bool) -> None:
    tag, behaviours, leave, attempts = CASES[name]
    tool.provider.enqueue(*behaviours)
    tool.provider.always(HANGS)

    def under_way() -> bool:
        """The provider has come as far as it does by itself."""
        if len(tool.received) < attempts:
            return False
        last, behaviour = tool.received[attempts - 1], behaviours[-1]
        return behaviour is HANGS or last.head_sent_at is not None

    # a whole answer comes at its end
    leaving = dataclasses.replace(leave, reset=reset) if leave is STREAMING and stream else Leave(when=under_way, reset=reset)
    answer = asyncio.run(ask(tool, f"{tag} hello", stream=stream, leave=leaving))
    reached = len(tool.received)
    assert answer.ended == "left", f"{reached} of {attempts} attempts came, and the client was told {answer.status} {answer.text}"
    tool.provider.wait_until(lambda: tool.provider.open_connections == 0)
    time.sleep(1.3 if behaviours == [LIMITED] else 0.1)
    assert reached == attempts, "it left before the attempt that it was to leave had come, or after one too many"
    assert len(tool.received) == reached, "an attempt was made for a client that had left"
    if behaviours[0] in (HANGS, SLOW):
        tool.provider.forget()
        assert asyncio.run(ask(tool, f"{tag} again", stream=False)).status == 200, "a key was blamed"
        assert len(tool.received) == 1


def test_leaving_in_the_middle_of_its_own_request(tool: Tool) -> None:
    async def half() -> None:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], tool.proxy)) as client:
            head = "POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 5000\r\n\r\n"
            await client.write_raw(head.encode() + b'{"model": "m", "messages": [')
            await asyncio.sleep(0.1)

    asyncio.run(half())
    time.sleep(0.3)  # nothing is to come of it
    assert tool.received == []
    assert tool.provider.connections == []
    assert "RouteCodex failed" not in tool.proxy.log


def test_leaving_while_we_answer_ourselves(tool: Tool) -> None:
    answer = asyncio.run(ask(tool, "<**echo**> wait 2s", stream=True, leave=Leave(after_s=0.05)))
    assert answer.ended in ("left", "complete")
    time.sleep(0.2)
    assert "RouteCodex failed" not in tool.proxy.log


def test_a_normal_end_is_no_leaving(tool: Tool) -> None:
    """A client that closes as soon as it has its answer: the attempt counts as good, the next call goes there again."""
    for _ in range(3):
        answer = asyncio.run(ask(tool, "<**claude.claude-sonnet-4-5**> hello", stream=True))
        assert answer.events[-1][0] == "message_stop"
    assert {received.key for received in tool.received} == {"sk-ant-own"}
    assert not any(received.left_early for received in tool.received)


# ---- what a connection remembers ----


def _kept(tool: Tool, texts: list[str], between: Callable[[int], None]) -> list[Answer]:
    async def all_of_them() -> list[Answer]:
        answers = []
        async with Http1(Route(HOSTS[Dialect.MESSAGES], tool.proxy)) as client:
            for number, text in enumerate(texts):
                await asyncio.to_thread(between, number)
                path, body = write(Dialect.MESSAGES, "m", [("user", text)], False)
                answers.append(await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]]))
        return answers

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("tag", ["", "<**six.m**> "], ids=["origin", "another host"])
def test_a_provider_that_was_away_is_found_again_on_the_same_connection(tool: Tool, tag: str) -> None:
    refusing, before = tool.provider.refusing(), [0]

    def between(number: int) -> None:
        if number == 0:
            refusing.__enter__()
        elif number == 1:
            refusing.__exit__(None, None, None)
            time.sleep(0.2)
            before[0] = len(tool.proxy.log)

    answers = _kept(tool, [f"{tag}first", f"{tag}second", f"{tag}third"], between)
    assert [answer.status for answer in answers] == [502, 200, 200]
    time.sleep(0.2)
    assert "failed" not in tool.proxy.log[before[0] :], "an old failure was taken for a new one"


def test_after_an_abandoned_attempt_the_connection_serves_on(tool: Tool) -> None:
    """The first round's connection is closed when it fails; the client's own is not."""

    def between(number: int) -> None:
        if number % 2 == 0:
            tool.provider.enqueue(Behaviour(status=500, error="down"))

    answers = _kept(tool, [f"<**six.m**> call {number}" for number in range(6)], between)
    assert [answer.status for answer in answers] == [200] * 6
    assert len(tool.received) == 9
