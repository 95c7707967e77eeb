"""Whether an answer was the last word of a turn: it came to its end, and calls no tool of the client's. In every form."""

from __future__ import annotations

import pytest

from routecodex.routing.turn.actions import Limits
from routecodex.routing.turn.turn import Turn
from routecodex.routing.values import Answer, Dialect, Endpoint, ToolCall, Usage
from tests.routing.dialects.answer.own import write_answer, write_stream
from tests.routing.turn.test_turn import Script, passing
from tests.routing.turn.test_turn_rounds import shared

CALL = Answer("let me see", (ToolCall("t1", "Bash", '{"command":"ls"}'),), "tool_calls", Usage(1, 1))
TEXT = Answer('say "type":"tool_use" and {"functionCall":{}} ' * 900, (), "stop", Usage(1, 1))
FORMS = pytest.mark.parametrize("dialect, stream", [(dialect, stream) for dialect in Dialect for stream in (True, False)])


def written(dialect: Dialect, answer: Answer, stream: bool) -> bytes:
    if stream:
        return b"".join(write_stream(dialect, answer, id="i", model="m", created=1, include_usage=True))
    return write_answer(dialect, answer, id="i", model="m", created=1)


def turn_of(dialect: Dialect, raw: bytes, *, stream: bool, merged: bool) -> Turn:
    endpoint = Endpoint(dialect)
    answer = shared(endpoint, stream) if merged else passing(endpoint, stream)
    turn = Turn(endpoint, stream, Script(dialect), Limits(), 0.0, answer, alone=True)
    turn.head(200, {"content-type": "text/event-stream" if stream else "application/json"}, 0.0)
    for at in range(0, len(raw), 700):
        turn.data(raw[at : at + 700], 0.0)
    turn.end(0.0)
    return turn


@FORMS
@pytest.mark.parametrize("merged", [False, True], ids=["as-it-comes", "merged"])
def test_the_last_word(dialect: Dialect, stream: bool, merged: bool) -> None:
    assert turn_of(dialect, written(dialect, TEXT, stream), stream=stream, merged=merged).ended
    assert not turn_of(dialect, written(dialect, CALL, stream), stream=stream, merged=merged).ended


@FORMS
@pytest.mark.parametrize("merged", [False, True], ids=["as-it-comes", "merged"])
def test_an_answer_that_breaks_off_is_none(dialect: Dialect, stream: bool, merged: bool) -> None:
    raw = written(dialect, TEXT, stream)
    assert not turn_of(dialect, raw[: len(raw) * 2 // 3], stream=stream, merged=merged).ended
    broken = Turn(Endpoint(dialect), stream, Script(dialect), Limits(), 0.0, passing(Endpoint(dialect), stream), alone=True)
    broken.head(200, {}, 0.0)
    broken.data(raw[: len(raw) * 2 // 3], 0.0)
    broken.gone()
    assert not broken.ended


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_refusal_is_none(dialect: Dialect) -> None:
    turn = Turn(Endpoint(dialect), False, Script(dialect), Limits(), 0.0, passing(Endpoint(dialect), False), alone=True)
    turn.head(500, {}, 0.0)
    turn.data(b"{}", 0.0)
    turn.end(0.0)
    assert not turn.ended
