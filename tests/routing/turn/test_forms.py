"""An answer in the form that was not asked for: a cut stays a cut there, too."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.turn import forms
from routecodex.routing.values import Dialect
from tests.routing.dialects.translation.test_finishes import CLIENTS, LENGTH, STOP, answer, stream
from tests.routing.dialects.translation.test_half_calls import STREAMS
from tests.system.grammar import read

_COLUMNS = (Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI)
_LIMITS = dict(zip(_COLUMNS, ("max_tokens", "length", "max_output_tokens", "MAX_TOKENS"), strict=True))


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_whole_call_at_the_limit_is_told_and_the_reason_stays(dialect: Dialect) -> None:
    whole = forms.as_whole(CLIENTS[dialect], stream(dialect, _LIMITS[dialect], calls=True))
    assert whole is not None
    told = read(dialect, whole, False)
    assert (told.text, told.calls, told.finish) == ("so", [("f", {"a": 1})], LENGTH[_COLUMNS.index(dialect)])


@pytest.mark.parametrize("dialect", [Dialect.MESSAGES, Dialect.CHAT])
def test_half_a_call_is_not_told(dialect: Dialect) -> None:
    whole = forms.as_whole(CLIENTS[dialect], STREAMS[dialect])
    assert whole is not None
    told = read(dialect, whole, False)
    assert (told.text, told.calls, told.finish) == ("so", [], LENGTH[_COLUMNS.index(dialect)])


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("word", [None, "stop"])
def test_a_plain_end_stays_one(dialect: Dialect, word: str | None) -> None:
    given = STOP[_COLUMNS.index(dialect)] if word or dialect is Dialect.GEMINI else None
    streamed = forms.as_stream(CLIENTS[dialect], json.dumps(answer(dialect, given, calls=False)).encode())
    assert streamed is not None
    assert read(dialect, streamed, True).finish == STOP[_COLUMNS.index(dialect)]
