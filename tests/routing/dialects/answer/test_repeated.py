"""What is told again is kept once, and comes out as it went in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.repeated import LONG, Repeated

TEXT = 'said "so" \\ and so – ' * LONG


def raw(*texts: object) -> bytes:
    return b"data: " + json.dumps({"texts": texts, "n": 1}).encode() + b"\n\n"


def knowing(text: str) -> Repeated:
    """The texts of a document are looked for before its bytes are cut."""
    repeated = Repeated()
    repeated.share({"text": text})
    return repeated


def test_the_same_text_is_the_same_object() -> None:
    repeated = Repeated()
    first, second = json.loads(json.dumps({"a": TEXT})), json.loads(json.dumps({"b": [{"c": TEXT, "d": "short"}]}))
    assert first["a"] is not second["b"][0]["c"]
    for document in (first, second):
        repeated.share(document)
    assert first["a"] is second["b"][0]["c"]
    assert (first, second) == ({"a": TEXT}, {"b": [{"c": TEXT, "d": "short"}]})


def test_the_same_bytes_are_the_same_object() -> None:
    repeated = knowing(TEXT)
    one, other = repeated.cut(raw(TEXT)), repeated.cut(raw("before", TEXT, "behind"))
    assert b"".join(one) == raw(TEXT)
    assert b"".join(other) == raw("before", TEXT, "behind")
    assert one[1] is other[1]
    assert sum(map(len, other)) - len(other[1]) < 100


def test_the_longest_of_several() -> None:
    pieces = knowing(TEXT).cut(raw(TEXT, TEXT + TEXT, TEXT))
    assert json.loads(pieces[1]) == TEXT + TEXT


@pytest.mark.parametrize("event", [b"", b"data: [DONE]\n\n", raw("short"), b'"' + b'\\"' * 100, b"x" * 2 * LONG])
def test_where_nothing_is_long_it_stays_in_one_piece(event: bytes) -> None:
    assert knowing(TEXT).cut(event) == (event,)


@given(st.lists(st.binary(max_size=60), max_size=6), st.integers(1, 3))
def test_whatever_the_bytes_nothing_is_lost(parts: list[bytes], times: int) -> None:
    repeated = knowing(TEXT)
    for part in parts:
        event = part + raw(TEXT[: LONG * times]) + part
        assert b"".join(repeated.cut(event)) == event


def test_quotes_that_are_never_closed_are_read_once() -> None:
    """A hostile comment behind the data: this would take minutes."""
    event = raw(TEXT)[:-1] + b": " + b'\\"' * (1 << 20) + b"\n\n"
    assert b"".join(knowing(TEXT).cut(event)) == event


def test_only_the_last_few_are_known() -> None:
    """A provider may tell a hundred long texts, and each only once."""
    repeated = Repeated()
    for number in range(100):
        repeated.share([{"text": f"{number} {TEXT}"}])
    known = next(value for value in vars(repeated).values() if isinstance(value, dict))
    assert len(known) < 10
