"""Before the first byte of an answer a failed target is replaced; the client sees one good answer, or the first error."""

from __future__ import annotations

import asyncio
import json

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route
from tests.rig.provider import Received
from tests.system.tool import CREDENTIALS, HOSTS, Tool, text_of, write

pytestmark = pytest.mark.system

FAILURES = {
    "429": Behaviour(status=429, error="slow down"),
    "500": Behaviour(status=500, error="broken"),
    "529": Behaviour(status=529, error="overloaded"),
    "401": Behaviour(status=401, error="bad key"),
    "402": Behaviour(status=402, error="no money"),
    "reset before the answer": Behaviour(before="reset"),
    "closed before the answer": Behaviour(before="close"),
    "error instead of the first event": Behaviour(error="overloaded", error_after=0),
    "error as the whole body": Behaviour(error="overloaded"),
    "stream cut after its head": Behaviour(cut_at=0),
}


STREAM_ONLY = ("error instead of the first event", "stream cut after its head")


@pytest.mark.parametrize(
    "name, stream", [(name, stream) for name in FAILURES for stream in (True, False) if stream or name not in STREAM_ONLY]
)
def test_the_next_key_answers(tool: Tool, name: str, stream: bool) -> None:
    failure = FAILURES[name]
    answered: list[str] = []

    def rule(received):  # type: ignore[no-untyped-def]
        answered.append(received.header("x-api-key"))
        return failure if len(answered) == 1 else None

    tool.provider.script(rule)
    answer = tool.ask("<**six.m**> hello", stream=stream)
    assert answer.status == 200
    assert "hello" in text_of(Dialect.MESSAGES, answer.body, stream)
    assert len(answered) == 2
    assert answered[0] != answered[1]
    assert answer.body.count(b"message_start") <= (2 if stream else 0)  # the event's name and its type, once


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_key_that_dies_for_many_calls_at_once_costs_none_of_them(tool: Tool, stream: bool) -> None:
    """Three may be repeated at a time; the others wait a moment for their turn."""
    waiting = [f"call {number} of many" for number in range(12)]

    def rule(received: Received) -> Behaviour | None:
        mine = next((mark for mark in waiting if mark.encode() in received.body), None)
        if mine is None:
            return None
        waiting.remove(mine)
        return Behaviour(status=529, error="overloaded")

    tool.provider.script(rule)

    async def ask(mark: str) -> Answer:
        path, body = write(Dialect.MESSAGES, "m", [("user", f"<**six.m**> {mark}")], stream)
        async with Http1(Route(HOSTS[Dialect.MESSAGES], tool.proxy)) as client:
            return await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]])

    async def all_of_them() -> list[Answer]:
        return list(await asyncio.gather(*map(ask, tuple(waiting))))

    answers = asyncio.run(all_of_them())
    assert waiting == []
    assert [answer.status for answer in answers] == [200] * 12


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_every_dialect_fails_over(tool: Tool, dialect: Dialect, stream: bool) -> None:
    tool.dialect = dialect
    tool.provider.enqueue(Behaviour(status=503, error="down"))
    answer = tool.ask("<**six.m**> bonjour", stream=stream)
    assert answer.status == 200
    assert "bonjour" in text_of(dialect, answer.body, stream)
    assert len(tool.received) == 2


def test_h15_stops_after_six_attempts_and_h06_tells_the_first_error(tool: Tool) -> None:
    tool.provider.always(Behaviour(status=500, error="the first provider's words"), host="six.example")
    answer = tool.ask("<**six.m**> hello")
    assert len(tool.received) <= 6
    assert answer.status == 500
    assert "the first provider's words" in answer.body.decode()
    assert answer.header("x-should-retry") == "false"


def test_h07_a_400_is_passed_on_and_harms_no_key(tool: Tool) -> None:
    tool.provider.enqueue(Behaviour(status=400, error="prompt is too long"))
    answer = tool.ask("<**glm.backup.glm-4.7**> hello")
    assert answer.status == 400
    assert "prompt is too long" in answer.body.decode()
    assert len(tool.received) == 1
    assert tool.ask("<**glm.backup.glm-4.7**> again").status == 200


def test_h14_an_error_after_content_is_passed_on_and_not_retried(tool: Tool) -> None:
    tool.provider.enqueue(Behaviour(error="overloaded late", error_after=4))
    answer = tool.ask("<**six.m**> hello", stream=True)
    assert answer.status == 200
    assert len(tool.received) == 1
    assert answer.body.count(b"event: error") == 1


def test_a_stream_without_its_last_event_ends_in_an_error(tool: Tool) -> None:
    tool.provider.enqueue(Behaviour(cut_after=4, ending="clean"))
    answer = tool.ask("hello", stream=True)
    assert b"event: error" in answer.body
    assert b"message_stop" not in answer.body
    assert len(tool.received) == 1


def test_a_refused_key_of_ours_is_named_and_not_passed_off_as_the_callers(tool: Tool) -> None:
    tool.provider.always(Behaviour(status=401, error="invalid x-api-key sk-ant-own"))
    answer = tool.ask("<**claude.claude-sonnet-4-5**> hello")
    assert answer.status == 400
    error = json.loads(answer.body)["error"]
    assert "claude" in error["message"]
    assert "own" in error["message"]
    assert "sk-ant-own" not in answer.body.decode()


@pytest.mark.parametrize("status", [401, 429, 529])
def test_errors_of_origin_alone_pass_untouched(tool: Tool, status: int) -> None:
    headers = (("retry-after", "7"), ("anthropic-ratelimit-requests-remaining", "0"), ("x-own", "kept"))
    tool.provider.enqueue(Behaviour(status=status, error="the vendor's own words", headers=headers))
    answer = tool.ask("hello")
    assert answer.status == status
    assert "the vendor's own words" in answer.body.decode()
    for name, value in headers:
        assert answer.header(name) == value
    assert answer.header("x-should-retry") is None
    assert len(tool.received) == 1
