"""Anthropic Messages, read for clients of other dialects: where a text has it from."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ..beside import Citation
from ..events import Block, Cited, Event
from .read import Reader


class Abroad(Reader):
    """A block's sources are those of all its text, so that they are told when it is over, though they may come before it: what
    rests on others stands in another block."""

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._sources: dict[Block, list[Citation]] = {}

    def _open(self, index: object, start: JsonObject) -> list[Event]:
        out = super()._open(index, start)
        self._sources[self._blocks[index]] = [citation_of(object_of(one)) for one in list_of(start.get("citations"))]
        return out

    def _extra(self, block: Block, delta: JsonObject) -> list[Event]:
        if citation := object_of(delta.get("citation")):
            self._sources[block].append(citation_of(citation))
        return super()._extra(block, delta)

    def _close(self, block: Block) -> list[Event]:
        return [*(Cited(block, source) for source in self._sources.pop(block, ())), *super()._close(block)]


def citation_of(told: JsonObject) -> Citation:
    source = text_of(told.get("source"))  # of a search result of the call's own
    url = text_of(told.get("url")) or (source if "://" in source else "")
    title = text_of(told.get("title")) or text_of(told.get("document_title"))
    return Citation(url, title or source, text_of(told.get("cited_text")))
