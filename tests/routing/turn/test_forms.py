"""An answer in the form that was not asked for: a cut stays a cut there, too."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.values import Dialect
from tests.routing.dialects.translation.test_finishes import CLIENTS, LENGTH, STOP, answer, stream
from tests.routing.dialects.translation.test_half_calls import STREAMS
from tests.routing.turn.test_turn import passing
from tests.system.grammar import read

_COLUMNS = (Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI)
_LIMITS = dict(zip(_COLUMNS, ("max_tokens", "length", "max_output_tokens", "MAX_TOKENS"), strict=True))


TELLS_COSTS = pytest.mark.parametrize("dialect", [Dialect.MESSAGES, Dialect.CHAT, Dialect.GEMINI])
"""What was not counted is left out of a Responses object."""


def told_as(dialect: Dialect, raw: bytes, *, stream: bool) -> bytes:
    """What a client gets that asked for this form."""
    answer = passing(CLIENTS[dialect], stream)
    answer.begin_round()
    out = answer.feed(raw)
    assert answer.end_round().complete
    return out + b"".join(answer.finish())


@TELLS_COSTS
def test_a_whole_call_at_the_limit_is_told_and_the_reason_stays(dialect: Dialect) -> None:
    whole = told_as(dialect, stream(dialect, _LIMITS[dialect], calls=True), stream=False)
    told = read(dialect, whole, False)
    assert (told.text, told.calls, told.finish) == ("so", [("f", {"a": 1})], LENGTH[_COLUMNS.index(dialect)])


@pytest.mark.parametrize("dialect", [Dialect.MESSAGES, Dialect.CHAT])
def test_half_a_call_is_not_told(dialect: Dialect) -> None:
    whole = told_as(dialect, STREAMS[dialect], stream=False)
    told = read(dialect, whole, False)
    assert (told.text, told.calls, told.finish) == ("so", [], LENGTH[_COLUMNS.index(dialect)])


def test_half_a_call_of_geminis_is_not_told_either() -> None:
    """What it came to is: its reason, and nothing that a client could run."""
    whole = told_as(Dialect.GEMINI, STREAMS[Dialect.GEMINI], stream=False)
    assert b"functionCall" not in whole
    [candidate] = json.loads(whole)["candidates"]
    assert (candidate["content"]["parts"], candidate["finishReason"]) == ([{"text": "so"}], "MAX_TOKENS")


def test_half_a_call_of_responses_says_so() -> None:
    whole = json.loads(told_as(Dialect.RESPONSES, STREAMS[Dialect.RESPONSES], stream=False))
    assert [item["status"] for item in whole["output"] if item["type"] == "function_call"] == ["incomplete"]
    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


@TELLS_COSTS
@pytest.mark.parametrize("word", [None, "stop"])
def test_a_plain_end_stays_one(dialect: Dialect, word: str | None) -> None:
    given = STOP[_COLUMNS.index(dialect)] if word or dialect is Dialect.GEMINI else None
    streamed = told_as(dialect, json.dumps(answer(dialect, given, calls=False)).encode(), stream=True)
    assert read(dialect, streamed, True).finish == STOP[_COLUMNS.index(dialect)]
