"""One round of a Responses stream as it is read: its events, its output items, and where the client finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...values import JsonObject
from ..fields import text_of
from .common import GrowingText
from .responses_message import OpenMessage, Piece
from .untouched import Heard

_WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
"""Where what the model wrote for a tool stands."""
_ARGUMENTS = {
    "response.function_call_arguments.delta": "delta",
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.delta": "delta",
    "response.custom_tool_call_input.done": "input",
}


@dataclass(slots=True)
class Step(Heard):
    """One event, and what the client gets where it does not get its bytes."""

    document: JsonObject | None = None
    told: Sequence[JsonObject] = ()
    bare: bool = False
    """A comment, or bytes that are no JSON: they pass as they are."""


@dataclass(slots=True)
class Place:
    """One output item."""

    item: JsonObject
    """As it was added; once it is done, as it is."""
    shown: bool = False
    index: int = -1
    """As the client counts."""
    id: str = ""
    """As the client knows it."""
    message: OpenMessage | None = None
    goes_on: bool = False
    """It is a message that goes on in another one."""
    pieces: dict[int | None, Piece] = field(default_factory=dict)
    """The parts of a message, by the provider's index."""
    done: bool = False
    _arguments: GrowingText = field(default_factory=GrowingText)

    def hear(self, kind: str, document: JsonObject) -> None:
        """What the model writes for a tool: some providers tell it only once."""
        key = _ARGUMENTS.get(kind)
        if key == "delta" or (key is not None and not str(self._arguments)):
            self._arguments.add(text_of(document.get(key)))

    @property
    def whole(self) -> JsonObject:
        """The item as the provider ended it, or would have."""
        kind = text_of(self.item.get("type"))
        if kind == "message":
            return self.item if self.done else {**self.item, "content": [piece.own_part for piece in self.pieces.values()]}
        key, written = _WRITTEN.get(kind), str(self._arguments)
        return {**self.item, key: written} if key is not None and written and not self.item.get(key) else self.item

    def named(self, item: JsonObject) -> JsonObject:
        return {**item, "id": self.id} if "id" in item else item

    def moved(self, document: JsonObject) -> JsonObject:
        """An event of this item, as the client has to see it."""
        if self.message is not None:
            return self.message.placed(document, self.pieces.get(number_in(document, "content_index")))
        named = {"item_id": self.id} if "item_id" in document else {}
        return {**document, "output_index": self.index, **named}


@dataclass(slots=True)
class Round:
    """One provider's stream."""

    glue: str = ""
    """What its first text needs in front of it."""
    opens: bool = False
    """Its response.created is the client's."""
    places: dict[int | None, Place] = field(default_factory=dict)
    """By the provider's output index."""
    response: JsonObject = field(default_factory=dict)
    """What it told of its response, the latest last."""
    ending: JsonObject | None = None
    """The event that ended it."""
    items: list[JsonObject] = field(default_factory=list)
    """What it put out, once it is over."""

    def close(self) -> None:
        self.items = [place.whole for _, place in sorted(self.places.items(), key=_order)]
        for place in self.places.values():
            place.pieces = {}


def number_in(document: JsonObject, name: str) -> int | None:
    number = document.get(name)
    return number if isinstance(number, int) else None


def _order(entry: tuple[int | None, Place]) -> int:
    return -1 if entry[0] is None else entry[0]
