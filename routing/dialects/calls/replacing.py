"""Put other items in the place of some in a call's history.

1. The items that stay are never written to, and neither are those that come in.
2. `call.messages[i].index == i` afterwards; the views of items that stay are the same objects, with their new index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ...values import Call, Dialect, JsonObject, Message
from . import chat, gemini, messages, responses
from .editing import inner_body, items_in


class Swap(Struct, frozen=True):
    """`items` for what stands from `start` up to `end`; nothing for an equal `start` and `end` puts them in between."""

    start: int
    end: int
    items: Sequence[JsonObject]


LIST_KEYS: Mapping[Dialect, str] = {
    Dialect.MESSAGES: "messages",
    Dialect.CHAT: "messages",
    Dialect.RESPONSES: "input",
    Dialect.GEMINI: "contents",
}
_VIEWS: Mapping[Dialect, Callable[[int, JsonObject], Message]] = {
    Dialect.MESSAGES: messages._view,
    Dialect.CHAT: chat._view,
    Dialect.RESPONSES: responses._view,
    Dialect.GEMINI: gemini._view,
}


def raw_items(call: Call) -> list[JsonObject]:
    """The items of the history as they stand in the body; a Responses input that is one text counts as the message it is."""
    body, key = inner_body(call), LIST_KEYS[call.endpoint.dialect]
    if isinstance(text := body.get(key), str):
        return [{"type": "message", "role": "user", "content": text}]
    return items_in(body, key) if key in body else []


def history_of(dialect: Dialect, items: Sequence[JsonObject]) -> JsonObject:
    """A body that holds nothing but this history."""
    return {LIST_KEYS[dialect]: list(items)}


def view_of(dialect: Dialect, index: int, item: JsonObject) -> Message:
    """How an item reads as the message at `index`."""
    return _VIEWS[dialect](index, item)


def replace_items(call: Call, swaps: Sequence[Swap]) -> None:
    """Make all the swaps; they are in order and do not overlap."""
    if not swaps:
        return
    old, view = raw_items(call), _VIEWS[call.endpoint.dialect]
    edges = [0, *(edge for swap in swaps for edge in (swap.start, swap.end)), len(old)]
    if edges != sorted(edges):
        raise ValueError("these swaps overlap, or name items that do not exist")
    items: list[JsonObject] = []
    views: list[Message] = []
    at = 0
    for swap in [*swaps, Swap(len(old), len(old), ())]:
        for kept in call.messages[at : swap.start]:
            kept.index = len(views)
            views.append(kept)
        items += old[at : swap.start]
        views += [view(len(views) + offset, item) for offset, item in enumerate(swap.items)]
        items += swap.items
        at = swap.end
    inner_body(call)[LIST_KEYS[call.endpoint.dialect]] = items
    call.messages[:] = views
    call.changed = True
