"""Blocks that grow side by side, told one after another."""

from __future__ import annotations

import pytest

from routecodex.routing.dialects.answer.events import Block, Closed, Ended, Event, Failed, Opened, Piece
from routecodex.routing.dialects.answer.serial import Serial
from routecodex.routing.values import ProviderError


def call(name: str) -> Block:
    return Block("call", {}, id=name, name=name)


def told(serial: Serial, *events: Event) -> list[str]:
    return [word(event) for event in serial.order(events)]


def word(event: Event) -> str:
    match event:
        case Piece(block=block, text=text):
            return f"{block.name or block.kind}:{text}"
        case Opened(block=block):
            return f"+{block.name or block.kind}"
        case Closed(block=block):
            return f"-{block.name or block.kind}"
        case _:
            return type(event).__name__


def test_the_first_is_told_as_it_grows_and_the_others_wait() -> None:
    serial, a, b = Serial(), call("a"), call("b")
    assert told(serial, Opened(a), Piece(a, '{"x"')) == ["+a", 'a:{"x"']
    assert told(serial, Opened(b), Piece(b, "{}")) == []
    assert told(serial, Piece(a, ":1}")) == ["a::1}", "-a", "+b", "b:{}"]
    assert told(serial, Ended("tool_use")) == ["-b", "Ended"]
    assert a.closed
    assert b.closed


def test_a_text_is_over_where_another_block_begins() -> None:
    serial, text, a = Serial(), Block("text"), call("a")
    assert told(serial, Opened(text), Piece(text, "so")) == ["+text", "text:so"]
    assert told(serial, Opened(a), Piece(a, "")) == ["-text", "+a", "a:"]


def test_a_text_whose_dialect_says_when_it_ends_is_not_over_before() -> None:
    serial, text, a = Serial(), Block("text", {}, ends_itself=True), call("a")
    told(serial, Opened(text), Piece(text, "so"))
    assert told(serial, Opened(a), Piece(a, "{}")) == []
    assert told(serial, Piece(text, "!"), Closed(text)) == ["text:!", "-text", "+a", "a:{}"]


def test_a_call_begins_when_it_is_known_whose_it_is() -> None:
    serial, a = Serial(), Block("call", {})
    assert told(serial, Opened(a), Piece(a, "{")) == []
    a.id = a.name = "a"
    assert told(serial, Piece(a, "}")) == ["+a", "a:{", "a:}"]


def test_a_call_that_the_answer_was_cut_off_in_ends_as_a_block_alone() -> None:
    serial, a, b, c = Serial(), call("a"), call("b"), call("c")
    told(serial, Opened(a), Piece(a, '{"x"'), Opened(b), Piece(b, "{}"), Opened(c), Piece(c, "{"))
    a.half = c.half = True
    assert told(serial, Ended("length")) == ["-a", "+b", "b:{}", "-b", "Ended"], "what never began is not told"


@pytest.mark.parametrize("first", ["{}", '{"x"'])
def test_nobody_may_run_half_a_call_of_a_broken_answer(first: str) -> None:
    serial, a, b = Serial(), call("a"), call("b")
    told(serial, Opened(a), Piece(a, first), Opened(b), Piece(b, "{"))
    a.half, b.half = first != "{}", True
    assert told(serial, Failed(ProviderError(502, "broken"))) == ["Failed"]
    assert a.closed is (first == "{}")
    assert not b.closed


def test_a_text_stays_open_between_two_rounds() -> None:
    serial, a, text = Serial(), call("a"), Block("text")
    told(serial, Opened(a), Piece(a, "{}"), Opened(text), Piece(text, "so"))
    assert [word(event) for event in serial.between()] == []
    assert not text.closed
    assert told(serial, Closed(text)) == ["-text"]
    assert told(serial, Closed(text)) == []


def test_a_text_that_waited_is_told_between_two_rounds() -> None:
    serial, first, text = Serial(), Block("text", {}, ends_itself=True), Block("text", {}, ends_itself=True)
    assert told(serial, Opened(first), Piece(first, "so"), Opened(text), Piece(text, "on")) == ["+text", "text:so"]
    assert [word(event) for event in serial.between()] == ["-text", "+text", "text:on"]
    assert not text.closed
