"""What waits for a client leaves in order, and a long end is made no sooner than it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from routecodex.addons.open_answer import AT_ONCE_BYTES, OpenAnswer, in_bites
from routecodex.routing.turn.state import Course, State


def answer() -> OpenAnswer:
    upstream: Any = None
    course = Course()
    course.go(State.OVER)
    course.end()
    return OpenAnswer(upstream, course)


def test_what_waits_leaves_at_once() -> None:
    open_ = answer()
    open_.outbox += [b"a", b"b"]
    assert open_.take() == b"ab"
    assert open_.take() == b""


def test_a_short_end_leaves_with_what_waits() -> None:
    open_ = answer()
    open_.outbox.append(b"text ")
    open_.ending = iter((b"the", b" end"))
    assert open_.take() == b"text the end"
    assert open_.ending is None


def test_a_long_end_is_made_as_it_is_taken() -> None:
    made = 0

    def end() -> Iterator[bytes]:
        nonlocal made
        for number in range(10):
            made += 1
            yield bytes([number]) * AT_ONCE_BYTES

    open_ = answer()
    open_.ending = end()
    taken = open_.take()
    assert made == 1
    while open_.ending is not None:
        more = open_.take()
        assert len(more) <= AT_ONCE_BYTES
        taken += more
    assert taken == b"".join(bytes([number]) * AT_ONCE_BYTES for number in range(10))


def test_one_long_piece_is_taken_bite_by_bite() -> None:
    long = bytes(range(256)) * 1000
    bites = list(in_bites((b"", long, b"x")))
    assert b"".join(bites) == long + b"x"
    assert max(map(len, bites)) == AT_ONCE_BYTES


def test_an_end_that_cannot_be_made_cuts_the_client_off(caplog: pytest.LogCaptureFixture) -> None:
    def end() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("broken")

    open_ = answer()
    open_.ending = end()
    assert open_.take() == b"half"
    assert open_.course.state is State.CUT
    assert open_.ending is None
    assert "the end of an answer" in caplog.text
