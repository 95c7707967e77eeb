"""Gemini's generateContent, read for clients of other dialects.

1. They are told in words what Google's own tools did, and the signature of a text behind all of it: providers sign its last
   piece, which is in the middle of it for them.
2. What an answer is grounded in are sources of its text. Google counts bytes; where they do not fit, what the text says does.
"""

from __future__ import annotations

from msgspec.structs import replace

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ...translation.neutral import Feature, Seal
from ..beside import Citation
from ..events import Block, Cited, Closed, Event, Kind, Lost, Opened, Piece
from .parts import main_candidate, shown_in
from .read import Reader


class Abroad(Reader):
    """The same for clients of other dialects."""

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._signed: Seal | None = None
        """Of the text before, until it is over."""
        self._text: Block | None = None
        """The newest."""
        self._cited: set[Citation] = set()

    def _read(self, inner: JsonObject) -> list[Event]:
        out = super()._read(inner)
        candidate = main_candidate(inner)
        if candidate.get("logprobsResult"):
            out.insert(0, Lost(Feature.LOGPROBS))
        if candidate.get("urlContextMetadata"):
            out.insert(0, Lost(Feature.SERVER_RESULTS, "pages that were read"))
        return out

    def _read_beside(self, name: str, told: JsonObject, out: list[Event]) -> None:
        super()._read_beside(name, told, out)
        if told.get("webSearchQueries"):
            out.append(Lost(Feature.SERVER_RESULTS, "web searches"))
        block = self._text
        found = grounding(told) if name == "groundingMetadata" else sources(told) if name == "citationMetadata" else []
        if block is None or not found:
            return
        # what came with this very unit is not in the block yet
        text = str(block.text or "") + "".join([one.text for one in out if type(one) is Piece and one.block is block])
        for citation, segment in found:
            start, end = place_of(segment, text)
            citation = replace(citation, start=start, end=end)
            if citation not in self._cited:
                self._cited.add(citation)
                out.append(Cited(block, citation))

    def _open(self, block: Block, out: list[Event]) -> Block:
        self._text = block if block.kind == "text" else self._text
        return super()._open(block, out)

    def _read_text(self, part: JsonObject, text: str, word: str, out: list[Event]) -> None:
        kind: Kind = "thought" if part.get("thought") is True else "text"
        if kind == "text" and word and not text and (self._last is None or self._last.kind == "text"):
            self._wait(word, out)
        else:
            super()._read_text(part, text, word, out)

    def _sign(self, block: Block, kind: Kind, word: str, out: list[Event]) -> None:
        if block.kind == "thought":
            super()._sign(block, kind, word, out)
        else:
            self._wait(word, out)

    def _read_other(self, part: JsonObject, word: str, out: list[Event]) -> None:
        shown = None if part.get("thought") is True else shown_in(part)
        if isinstance(shown, str):
            last = self._last
            if last is None or last.kind != "text":
                last = self._open(Block("text"), out)
            out.append(Piece(last, shown))
        elif shown is not None:
            super()._read_other(part, "", out)
        if word and self._last is not None and self._last.kind == "thought":
            self._sign(self._last, "text", word, out)
        elif word:
            self._wait(word, out)

    def _wait(self, word: str, out: list[Event]) -> None:
        self._tell_seal(out)
        self._signed = self._seal(word, "part")

    def _end(self, out: list[Event], *, half: bool) -> None:
        super()._end(out, half=half)
        self._tell_seal(out)

    def _tell_seal(self, out: list[Event]) -> None:
        """A thought of nothing else."""
        seal, self._signed = self._signed, None
        if seal is not None:
            block = Block("thought")
            block.seal = seal
            out += (Opened(block), Closed(block))


def grounding(told: JsonObject) -> list[tuple[Citation, JsonObject]]:
    """Each source, and where it is said to stand."""
    chunks = [_source(object_of(chunk)) for chunk in list_of(told.get("groundingChunks"))]
    found: list[tuple[Citation, JsonObject]] = []
    supports = [support for support in list_of(told.get("groundingSupports")) if isinstance(support, dict)]
    for support in supports:
        for number in list_of(support.get("groundingChunkIndices")):
            if isinstance(number, int) and 0 <= number < len(chunks) and (citation := chunks[number]) is not None:
                found.append((citation, object_of(support.get("segment"))))
    return found if supports else [(citation, {}) for citation in chunks if citation is not None]


def _source(chunk: JsonObject) -> Citation | None:
    for name in ("web", "retrievedContext", "maps"):
        if isinstance(of := chunk.get(name), dict):
            return Citation(text_of(of.get("uri")), text_of(of.get("title")), text_of(of.get("text")))
    return None


def sources(told: JsonObject) -> list[tuple[Citation, JsonObject]]:
    given = list_of(told.get("citations")) or list_of(told.get("citationSources"))
    return [(Citation(text_of(one.get("uri")), text_of(one.get("title"))), one) for one in given if isinstance(one, dict)]


def place_of(segment: JsonObject, text: str) -> tuple[int, int]:
    """In characters; (-1, -1) where nothing is said that fits."""
    first, last, said = segment.get("startIndex", 0), segment.get("endIndex"), text_of(segment.get("text"))
    if isinstance(first, int) and isinstance(last, int) and 0 <= first < last:
        start, end = (first, last) if text.isascii() else _in_characters(text, first, last)
        if start < end <= len(text) and (not said or text[start:end] == said):
            return start, end
    place = text.find(said) if said else -1
    return (place, place + len(said)) if place >= 0 else (-1, -1)


def _in_characters(text: str, first: int, last: int) -> tuple[int, int]:
    raw = text.encode("utf-8", "surrogatepass")
    start = len(raw[:first].decode("utf-8", "ignore"))
    return start, start + len(raw[first:last].decode("utf-8", "ignore"))
