"""OpenAI Responses, read for clients of other dialects: where a text has it from, and what has no place but here."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ...translation.neutral import Feature
from ..beside import Citation
from ..events import Block, Cited, Event, Lost
from .read import Part, Reader


class Abroad(Reader):
    """Sources come while the text does, and once more, or for the first time, with its end."""

    def _annotation(self, part: Part, document: JsonObject) -> list[Event]:
        return [*super()._annotation(part, document), self._cited(part, object_of(document.get("annotation")))]

    def _end_part(self, block: Block, index: object, given: JsonObject, out: list[Event]) -> None:
        super()._end_part(block, index, given, out)
        part = self._parts[block][index]
        told = list_of(given.get("annotations"))
        out += [self._cited(part, object_of(one)) for one in told[len(part.annotations) :]]
        part.annotations += told[len(part.annotations) :]
        if given.get("logprobs"):
            out.append(Lost(Feature.LOGPROBS))

    def _cited(self, part: Part, told: JsonObject) -> Cited:
        """Places are those in its part; a block is all parts."""
        before = 0
        for other in self._parts.get(part.block, {}).values():
            if other is part:
                break
            before += other.heard
        start, end = told.get("start_index"), told.get("end_index")
        url, title = text_of(told.get("url")), text_of(told.get("title")) or text_of(told.get("filename"))
        if isinstance(start, int) and isinstance(end, int):
            return Cited(part.block, Citation(url, title, start=before + start, end=before + end))
        return Cited(part.block, Citation(url, title))
