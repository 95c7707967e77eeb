"""The message item of a Responses stream that stays open: what closes it is written anew, with its whole text."""

from __future__ import annotations

from ...values import JsonObject
from ..answer.responses.items import TEXT, continued_item, continued_part, emptied
from ..fields import list_of, text_of
from .common import GrowingText

_KEYS = {TEXT: "text", "refusal": "refusal"}
"""The kinds of parts that grow, and in which field."""


class Piece:
    """What one round adds to a part."""

    def __init__(self, part: JsonObject, place: int, before: JsonObject | None = None) -> None:
        self.part = part
        """As it was announced; once it is done, as it is."""
        self.place = place
        """The part's index as the client counts."""
        self.before = before
        """The part as earlier rounds left it, where this one goes on in it."""
        self.text = GrowingText(text_of(part.get(_KEYS.get(self.kind, ""))))
        self.glue = ""
        self.annotations: list[object] = []
        self.done = False

    @property
    def kind(self) -> str:
        return text_of(self.part.get("type"))

    @property
    def offset(self) -> int:
        """Where its text begins."""
        return len(text_of((self.before or {}).get("text"))) + len(self.glue)

    @property
    def annotations_before(self) -> int:
        return len(list_of((self.before or {}).get("annotations")))

    @property
    def own_part(self) -> JsonObject:
        """The round's own part."""
        key = _KEYS.get(self.kind)
        if self.done or key is None:
            return self.part
        written: JsonObject = {**self.part, key: str(self.text)}
        return {**written, "annotations": self.annotations} if self.annotations else written

    @property
    def whole(self) -> JsonObject:
        """The part as the client has it."""
        if self.before is None and not self.glue:
            return self.own_part
        own = self.own_part
        return continued_part(self.before if self.before is not None else emptied(own), own, self.glue)


class OpenMessage:
    """A message that the client has not seen the end of."""

    def __init__(self, item: JsonObject, index: int, id: str) -> None:
        self.item = item
        self.index = index
        self.id = id
        self.piece: Piece | None = None
        """What is being added to its last part."""
        self._parts: list[JsonObject] = []
        """The parts before that."""

    def begin_part(self, announced: JsonObject, *, goes_on: bool) -> tuple[Piece, list[JsonObject]]:
        """The piece that begins, and what the client has to be told: nothing where a text goes on."""
        part = announced.get("part")
        part = part if isinstance(part, dict) else {}
        last = self.piece
        if goes_on and last is not None and part.get("type") == last.kind == TEXT:
            self.piece = Piece(part, last.place, last.whole)
            return self.piece, []
        told = self.close_part()
        self.piece = Piece(part, len(self._parts))
        return self.piece, [*told, self.placed(announced, self.piece)]

    def placed(self, document: JsonObject, piece: Piece | None) -> JsonObject:
        """An event, as one of this message's."""
        where: JsonObject = {"item_id": self.id, "output_index": self.index}
        return {**document, **where, **({"content_index": piece.place} if piece is not None else {})}

    def close_part(self) -> list[JsonObject]:
        piece, self.piece = self.piece, None
        if piece is None:
            return []
        part = piece.whole
        self._parts.append(part)
        told: list[JsonObject] = []
        if (key := _KEYS.get(piece.kind)) is not None:
            probabilities = {"logprobs": list_of(part.get("logprobs"))} if piece.kind == TEXT else {}
            done: JsonObject = {"type": f"response.{piece.kind}.done", key: text_of(part.get(key)), **probabilities}
            told.append(self.placed(done, piece))
        told.append(self.placed({"type": "response.content_part.done", "part": part}, piece))
        return told

    def end_item(self, item: JsonObject, *, goes_on: bool) -> None:
        """A round's own message is done; this one stays open."""
        self.item = continued_item(self.item, item) if goes_on else item

    def close(self) -> tuple[JsonObject, list[JsonObject]]:
        """The whole item, and the events that end it."""
        told = self.close_part()
        status = text_of(self.item.get("status"))
        item = {**self.item, "content": self._parts, "status": "completed" if status in ("", "in_progress") else status}
        if "id" in item:
            item["id"] = self.id
        return item, [*told, {"type": "response.output_item.done", "output_index": self.index, "item": item}]
