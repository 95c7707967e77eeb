"""What is new in a message that a tool has put together from several."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.clients.typed import Typed, typed_messages
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.sessions.newest import Seen, newest_of
from routecodex.routing.values import Dialect, Endpoint

Messages = list[list[str]]


def typed(messages: Messages) -> list[Typed]:
    """User messages of several texts each; whatever is between them does not matter here."""
    items = [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]} for texts in messages]
    return typed_messages(read_call(json.dumps({"model": "m", "messages": items}).encode(), Endpoint(Dialect.MESSAGES)))


SEQUENCES: dict[str, list[tuple[Messages, str]]] = {
    "one after another": [([["a"]], "a"), ([["a"], ["b"]], "b"), ([["a"], ["b"], ["c"]], "c")],
    "a tool hop changes nothing": [([["a"]], "a"), ([["a"]], "a"), ([["a"]], "a")],
    "put together": [([["a"]], "a"), ([["a\n", "b"]], "b"), ([["a\n", "b\n", "c"]], "c")],
    "put together, with hops": [([["a"]], "a"), ([["a\n", "b"]], "b"), ([["a\n", "b"]], "b"), ([["a\n", "b\n", "c"]], "c")],
    "two at once": [([["a"]], "a"), ([["a", "b", "c"]], "b\nc"), ([["a", "b", "c"]], "b\nc")],
    "put together behind an older message": [([["x"], ["a"]], "a"), ([["x"], ["a", "b"]], "b")],
    "several texts from the first": [([["a", "b"]], "a\nb"), ([["a", "b"]], "a\nb")],
    "edited": [([["a"]], "a"), ([["A", "b"]], "A\nb")],
    "taken back": [([["a"]], "a"), ([["a", "b"]], "b"), ([["a"]], "a")],
    "the same words in another message": [([["a"]], "a"), ([["a"], ["a", "b"]], "a\nb")],
    "nothing typed": [([["a"]], "a"), ([], ""), ([["a"]], "a"), ([["a", "b"]], "b")],
}


@pytest.mark.parametrize("steps", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_what_is_new(steps: list[tuple[Messages, str]]) -> None:
    seen: Seen | None = None
    for messages, new in steps:
        newest, seen = newest_of(typed(messages), seen)
        assert (newest.words if newest else "") == new


def test_a_message_that_did_not_grow_is_the_object_it_was() -> None:
    found = typed([["a"]])
    newest, _ = newest_of(found, None)
    assert newest is found[-1]
