"""What the events of a Responses stream mean for a client that is in the middle of one answer.

1. Everything is told in the client's own numbers but the sequence numbers, which are given when an event leaves.
2. Events that providers forget are told in their place: an item or a part that was never announced, a text without deltas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...values import JsonObject, ProviderError
from ..answer.responses.items import CALLS, HIDDEN, TEXT, emptied, is_own, moved_annotation
from ..failures import failure_inside, has_error
from ..fields import count_of, list_of, object_of, text_of
from .common import GrowingText
from .responses_message import OpenMessage, Piece
from .responses_round import Place, Round, number_in
from .untouched import Kind

Answer = tuple[Kind, Sequence[JsonObject]]
"""How an event may wait, and what the client is told of it."""
_NOTHING: Answer = ("rests", ())
_PART_DONE, _ITEM_DONE = "response.content_part.done", "response.output_item.done"
_ENDINGS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "error")


class Reading:
    """The items of one answer as its events come in, round after round."""

    def __init__(self, own_tools: frozenset[str]) -> None:
        self._own = own_tools
        self.round = Round()
        self.later = False
        self.withheld = False
        """The client was not shown all of this answer."""
        self.error: ProviderError | None = None
        """What broke the round."""
        self.first: JsonObject = {}
        """The response object that the client was told at the start."""
        self.items: dict[int, JsonObject] = {}
        """What the client was given, by its index."""
        self._message: OpenMessage | None = None
        self._goes_on = False
        """The next message goes on in the open one."""
        self._count = 0
        self._ids: set[str] = set()
        self._nameless: JsonObject | None = None
        """The event that added a tool call whose name has not come; everything behind it waits, so that the order stays."""
        self._waiting: list[tuple[JsonObject, str]] = []

    def begin(self, round_: Round, *, later: bool) -> None:
        self.round, self.later, self.error = round_, later, None
        self._goes_on = self._goes_on or later

    def end(self) -> Sequence[JsonObject]:
        """The round is over: what is told of it so late."""
        told = self._go_on("")[1] if self._nameless is not None else ()
        for place in self.round.places.values():
            if place.shown and place.message is None:
                self.items.setdefault(place.index, place.named(place.whole))
        self.round.close()
        return told

    @property
    def is_over(self) -> bool:
        return self.round.ending is not None or self.error is not None

    def hear(self, document: JsonObject, name: str) -> Answer:
        kind = text_of(document.get("type")) or name
        if self._nameless is not None:
            return self._wait(document, kind)
        hear = _HEARD.get(kind)
        if hear is None and has_error(document) and not kind.startswith("response."):
            hear = Reading._error
        return hear(self, document) if hear is not None else self._other(document, kind)

    def _wait(self, document: JsonObject, kind: str) -> Answer:
        self._waiting.append((document, kind))
        assert self._nameless is not None
        is_its = number_in(document, "output_index") == number_in(self._nameless, "output_index")
        told = text_of(document.get("name")) or text_of(object_of(document.get("item")).get("name")) if is_its else ""
        return self._go_on(told) if told or kind in _ENDINGS else _NOTHING

    def _go_on(self, tool: str) -> Answer:
        """The name has come, or never will."""
        nameless, self._nameless = self._nameless, None
        waiting, self._waiting = self._waiting, []
        assert nameless is not None
        item = {**object_of(nameless.get("item")), "name": tool}
        heard = [self._begin_item({**nameless, "item": item}, item)]
        heard += [self.hear(document, kind) for document, kind in waiting]
        return "goes" if any(kind == "goes" for kind, _ in heard) else "rests", [one for _, told in heard for one in told]

    def left(self, document: JsonObject) -> None:
        """The event's own bytes are leaving: one of another item may have driven out what closes the open message."""
        place = self.round.places.get(number_in(document, "output_index"))
        if place is None or place.message is None or place.message is not self._message:
            return
        if document.get("type") == _ITEM_DONE:
            self.closed()
        elif document.get("type") == _PART_DONE and place.pieces.get(number_in(document, "content_index")) is self._message.piece:
            self._message.close_part()

    def closed(self) -> list[JsonObject]:
        """The open message comes to its end."""
        if self._message is None:
            return []
        item, told = self._message.close()
        self.items[self._message.index] = item
        self._message = None
        return told

    # How the answer begins and ends

    def _lifecycle(self, document: JsonObject) -> Answer:
        round_, response = self.round, object_of(document.get("response"))
        round_.response = round_.response or response
        if round_.opens:
            self.first = self.first or response
        return "opens", [document] if round_.opens else []

    def _ending(self, document: JsonObject) -> Answer:
        round_ = self.round
        round_.response = {**round_.response, **object_of(document.get("response"))}
        told: list[JsonObject] = []
        if not round_.places:  # nothing but the end was told: it has everything
            for index, item in enumerate(list_of(round_.response.get("output"))):
                done: JsonObject = {"type": _ITEM_DONE, "output_index": index, "item": item}
                told += self._done(done)[1] if isinstance(item, dict) else ()
        round_.ending = document
        is_good = document.get("type") in ("response.completed", "response.incomplete")
        return ("rests", told) if is_good else self._error(document)

    def _error(self, document: JsonObject) -> Answer:
        broken = ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR")
        self.error = self.error or failure_inside(document) or broken
        return _NOTHING

    # The items

    def _added(self, document: JsonObject) -> Answer:
        item = object_of(document.get("item"))
        if item.get("type") in CALLS and not item.get("name"):
            self._nameless = document
            return _NOTHING
        return self._begin_item(document, item)

    def _begin_item(self, document: JsonObject, item: JsonObject) -> Answer:
        place = self.round.places[number_in(document, "output_index")] = Place(item)
        kind = item.get("type")
        if is_own(item, self._own):
            self.withheld, self._goes_on = True, True
            return _NOTHING
        if self.later and kind in HIDDEN:
            return _NOTHING
        place.shown = True
        if kind == "message" and self._message is not None and self._goes_on:
            place.message, place.goes_on = self._message, True
            return _NOTHING
        told = self.closed()
        place.index, place.id = self._count, self._free_id(text_of(item.get("id")))
        self._count += 1
        self._goes_on = self.later
        if kind == "message":
            place.message = self._message = OpenMessage(item, place.index, place.id)
        return "goes", [*told, {**document, "output_index": place.index, "item": place.named(item)}]

    def _free_id(self, id: str) -> str:
        """Ids of items differ within an answer, also where a provider gives every answer the same ones."""
        free, number = id, 1
        while free in self._ids:
            number += 1
            free = f"{id}_{number}"
        if id:
            self._ids.add(free)
        return free

    def _done(self, document: JsonObject) -> Answer:
        index, item = number_in(document, "output_index"), object_of(document.get("item"))
        told: list[JsonObject] = []
        if index not in self.round.places:
            announced = {**item, "content": []} if item.get("type") == "message" else item
            told += self._begin_item({**document, "type": "response.output_item.added", "item": announced}, announced)[1]
        place = self.round.places[index]
        place.item, place.done = item, True
        item = place.item = place.whole
        if not place.shown:
            return _NOTHING
        if place.message is not None:
            return "rests", [*told, *self._end_message(place, place.message, item)]
        given = self.items[place.index] = place.named(item)
        return "goes", [*told, {**document, "output_index": place.index, "item": given}]

    def _end_message(self, place: Place, message: OpenMessage, item: JsonObject) -> list[JsonObject]:
        """A message's item is done; parts that were never announced are in it all the same."""
        told: list[JsonObject] = []
        for content_index, part in enumerate(list_of(item.get("content"))):
            if content_index not in place.pieces and isinstance(part, dict):
                told += self._begin_part(place, message, {"content_index": content_index, "part": part})
        message.end_item(item, goes_on=place.goes_on)
        return told

    def _place_of(self, document: JsonObject) -> tuple[list[JsonObject], Place]:
        """The item that a text belongs to, and what announces it where its provider forgot that."""
        index = number_in(document, "output_index")
        told: list[JsonObject] = []
        if index not in self.round.places:
            item: JsonObject = {"id": document.get("item_id"), "type": "message", "status": "in_progress"}
            item |= {"role": "assistant", "content": []}
            announced: JsonObject = {"type": "response.output_item.added", "output_index": index, "item": item}
            told += self._begin_item(announced, item)[1]
        return told, self.round.places[index]

    # The parts of a message

    def _part_added(self, document: JsonObject) -> Answer:
        told, place = self._place_of(document)
        if place.message is None:
            return self._other(document)
        told += self._begin_part(place, place.message, document)
        return "goes", told

    def _begin_part(self, place: Place, message: OpenMessage, announced: JsonObject) -> list[JsonObject]:
        part = object_of(announced.get("part"))
        text = text_of(part.get("text")) if part.get("type") == TEXT else ""
        announced = {"type": "response.content_part.added", **announced, "part": emptied(part) if text else part}
        piece, told = message.begin_part(announced, goes_on=place.goes_on)
        place.pieces[number_in(announced, "content_index")] = piece
        return [*told, *self._at_once(message, piece, text)]

    def _at_once(self, message: OpenMessage, piece: Piece, text: str) -> list[JsonObject]:
        """A text that came without deltas."""
        if not text or str(piece.text) or piece.kind != TEXT:
            return []
        piece.text.add(text)
        delta: JsonObject = {"type": "response.output_text.delta", "delta": self._glued(piece, text), "logprobs": []}
        return [message.placed(delta, piece)]

    def _part_of(self, document: JsonObject, kind: str) -> tuple[list[JsonObject], OpenMessage, Piece] | None:
        """What announces a part where its provider forgot that, the message, and the part; None: it is in no message."""
        told, place = self._place_of(document)
        if place.message is None:
            return None
        content_index = number_in(document, "content_index")
        if content_index not in place.pieces:
            empty: JsonObject = {"text": "", "annotations": []} if kind == TEXT else {kind: ""}
            announced: JsonObject = {"content_index": content_index, "part": {"type": kind, **empty}}
            told += self._begin_part(place, place.message, announced)
        return told, place.message, place.pieces[content_index]

    def _text_delta(self, document: JsonObject) -> Answer:
        return self._delta(document, TEXT)

    def _refusal_delta(self, document: JsonObject) -> Answer:
        return self._delta(document, "refusal")

    def _delta(self, document: JsonObject, kind: str) -> Answer:
        found = self._part_of(document, kind)
        if found is None:
            return self._other(document)
        told, message, piece = found
        delta = text_of(document.get("delta"))
        piece.text.add(delta)
        return "goes", [*told, message.placed({**document, "delta": self._glued(piece, delta)}, piece)]

    def _glued(self, piece: Piece, text: str) -> str:
        if not text or piece.kind != TEXT or not self.round.glue:
            return text
        piece.glue, self.round.glue = self.round.glue, ""
        return piece.glue + text

    def _text_done(self, document: JsonObject) -> Answer:
        found = self._part_of(document, TEXT)
        if found is None:
            return self._other(document)
        told, message, piece = found
        told = [*told, *self._at_once(message, piece, text_of(document.get("text")))]
        if str(piece.text) == document.get("text"):
            piece.text = GrowingText(text_of(document["text"]))  # the same, kept once
        return "rests", told

    def _refusal_done(self, document: JsonObject) -> Answer:
        found = self._part_of(document, "refusal")
        return self._other(document) if found is None else ("rests", found[0])

    def _part_done(self, document: JsonObject) -> Answer:
        part = object_of(document.get("part"))
        found = self._part_of(document, text_of(part.get("type")))
        if found is None:
            return self._other(document)
        told, message, piece = found
        told = [*told, *self._at_once(message, piece, text_of(part.get("text")))]
        piece.part, piece.done = part, True
        return "rests", told

    def _annotation(self, document: JsonObject) -> Answer:
        found = self._part_of(document, TEXT)
        if found is None:
            return self._other(document)
        told, message, piece = found
        annotation = document.get("annotation")
        piece.annotations.append(annotation)
        moved = {**document, "annotation": moved_annotation(annotation, piece.offset)}
        if "annotation_index" in document:
            moved["annotation_index"] = count_of(document["annotation_index"]) + piece.annotations_before
        return "goes", [*told, message.placed(moved, piece)]

    def _other(self, document: JsonObject, kind: str = "") -> Answer:
        """Events of other items go where their items are; what belongs to no item passes."""
        index = number_in(document, "output_index")
        place = self.round.places.get(index)
        if place is None:
            is_unknown = self.later and (index is not None or kind.startswith("response."))
            return "passes", [] if is_unknown else [document]
        place.hear(kind, document)
        if not place.shown:
            return _NOTHING
        return "goes" if place.message is None else "passes", [place.moved(document)]


_HEARD: dict[str, Callable[[Reading, JsonObject], Answer]] = {
    "response.created": Reading._lifecycle,
    "response.queued": Reading._lifecycle,
    "response.in_progress": Reading._lifecycle,
    "response.output_item.added": Reading._added,
    _ITEM_DONE: Reading._done,
    "response.content_part.added": Reading._part_added,
    _PART_DONE: Reading._part_done,
    "response.output_text.delta": Reading._text_delta,
    "response.output_text.done": Reading._text_done,
    "response.output_text.annotation.added": Reading._annotation,
    "response.refusal.delta": Reading._refusal_delta,
    "response.refusal.done": Reading._refusal_done,
    **dict.fromkeys(_ENDINGS, Reading._ending),
    "error": Reading._error,
}
