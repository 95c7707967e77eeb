"""Anthropic Messages: what a document of its answers says.

1. Tools that the provider ran, their results and what is not known are traces: they pass, and correct no reason.
2. Counts are of all so far; a later zero of what went in only means that nothing is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....values import Dialect, JsonObject
from ...failures import failure_inside, has_error
from ...fields import count_of, object_of, read_object, text_of
from ...finish import is_served, said_reason
from ...translation.neutral import Seal, Tokens
from ..events import (
    BROKEN,
    Block,
    Closed,
    Counted,
    Done,
    Ended,
    Event,
    Extra,
    Failed,
    Field,
    Kind,
    Opened,
    Piece,
)
from ..stream import AnyReader
from ..words import written_text

GROWS: Mapping[str, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thought": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
    "trace": ("input_json_delta", "partial_json"),
}
"""Kind of block → the type of its deltas, and the field that grows."""
_PIECES = dict(GROWS.values())
_KINDS: Mapping[str, Kind] = {"text": "text", "thinking": "thought", "redacted_thinking": "thought", "tool_use": "call"}
_NOT_YET = frozenset(("message_start", "ping", "error"))
_UNTOLD = object()


class Reader(AnyReader):
    dialect = Dialect.MESSAGES
    LOUD = (b'"message_', b"_block_st", b'"error"')

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._blocks: dict[object, Block] = {}
        """By the provider's index, those that have not ended."""
        self._usage: JsonObject = {}
        self._counted: Tokens | None = None
        """What that comes to, once it was asked for."""
        self._given: dict[Block, JsonObject] = {}
        """Calls whose input came where they begin, of which nothing more has been said: should more come, it is all of it."""

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        delta, index = document.get("delta"), document.get("index")
        if (
            type(delta) is dict and type(index) is int and (block := self._blocks.get(index)) is not None
        ):  # nearly all of a stream
            told = delta.get("type")
            grows = _PIECES.get(told) if type(told) is str else None
            if grows is not None and type(text := delta.get(grows)) is str:
                if text and self._given:
                    self._given.pop(block, None)
                return [Piece(block, text)]
        kind = document.get("type") or name
        read = _READ.get(kind) if isinstance(kind, str) else None
        if read is not None:
            return read(self, document)
        return self._read_error(document) if has_error(document) else []

    def read_word(self, data: bytes) -> list[Event]:
        return []

    def read_whole(self, document: JsonObject) -> list[Event]:
        content = document.get("content")
        if not isinstance(content, list) or has_error(document):
            return self._read_error(document)
        events = self._begin(document)
        for index, start in enumerate(content):
            if isinstance(start, dict):
                events += self._open(index, start)
                events += self._close(self._blocks.pop(index))
        return [*events, *self._read_end({"delta": document}), Done()]

    # --- the answer -----------------------------------------------------------------------------------------------------

    def _read_start(self, document: JsonObject) -> list[Event]:
        return self._begin(object_of(document.get("message")))

    def _begin(self, message: JsonObject) -> list[Event]:
        if not self._began:
            self._count(message)
        return self._told_who(message.get("id"), message.get("model"), self._tokens()) or [Field("", message)]

    def _read_end(self, document: JsonObject) -> list[Event]:
        delta = object_of(document.get("delta"))
        self._count(document if "usage" in document else delta)
        out: list[Event] = [event for block in list(self._given) for event in self._told_late(block)]
        if (tokens := self._tokens()) is not None:
            out.append(Counted(tokens, dict(self._usage)))
        if word := said_reason(delta.get("stop_reason")):
            out.append(Ended(word, text_of(delta.get("stop_sequence"))))
        return out

    def _read_stop(self, document: JsonObject) -> list[Event]:
        return [Done()]

    def _read_error(self, document: JsonObject) -> list[Event]:
        return [Failed(failure_inside(document) or BROKEN)]

    def _count(self, document: JsonObject) -> None:
        for name, count in object_of(document.get("usage")).items():
            if (count or name not in self._usage or name == "output_tokens") and self._usage.get(name, _UNTOLD) != count:
                self._usage[name], self._counted = count, None

    def _tokens(self) -> Tokens | None:
        if self._counted is None and self._usage:
            self._counted = tokens_of(self._usage)
        return self._counted

    # --- blocks ---------------------------------------------------------------------------------------------------------

    def _read_block_start(self, document: JsonObject) -> list[Event]:
        index = _index(document)
        before = self._close(same) if (same := self._blocks.pop(index, None)) is not None else []
        return before + self._open(index, object_of(document.get("content_block")))

    def _open(self, index: object, start: JsonObject) -> list[Event]:
        """A block begins; some providers put all of it there."""
        kind = text_of(start.get("type"))
        unknown: Kind = "text" if isinstance(start.get("text"), str) else "trace"
        block = Block(
            _KINDS.get(kind, unknown),
            start,
            id=text_of(start.get("id")),
            name=text_of(start.get("name")),
            ends_itself=True,
        )
        if is_served(start):
            block.kind = "trace"
        self._blocks[index] = block
        out: list[Event] = [Opened(block)]
        if block.kind in ("text", "thought") and (text := text_of(start.get(GROWS[block.kind][1]))):
            out.append(Piece(block, text, start))
        elif block.kind == "call" and written_text(start.get("input")):
            self._given[block] = start
        self._seal(block, start)
        return out

    def _read_block_stop(self, document: JsonObject) -> list[Event]:
        block = self._blocks.pop(_index(document), None)
        return self._close(block) if block is not None else []

    def _close(self, block: Block) -> list[Event]:
        return [*self._told_late(block), Closed(block)]

    def _told_late(self, block: Block) -> list[Event]:
        start = self._given.pop(block, None)
        return [Piece(block, written_text(start["input"]), start)] if start is not None else []

    def _read_delta(self, document: JsonObject) -> list[Event]:
        index, delta = _index(document), object_of(document.get("delta"))
        kind = text_of(delta.get("type"))
        before: list[Event] = []
        if index not in self._blocks:  # some provider forgot to start it
            implied = kind.removesuffix("_delta")
            if implied not in ("text", "thinking"):
                return []
            before = self._open(index, {"type": implied, implied: ""})
        block = self._blocks[index]
        if kind in _PIECES:
            self._given.pop(block, None)
            return [*before, Piece(block, text_of(delta.get(_PIECES[kind])), delta)]
        self._seal(block, delta)
        return [*before, *self._extra(block, delta)]

    def _extra(self, block: Block, delta: JsonObject) -> list[Event]:
        return [Extra(block, delta)]

    def _seal(self, block: Block, where: JsonObject) -> None:
        if block.kind == "thought":
            for name in ("signature", "data"):
                if word := text_of(where.get(name)):
                    block.seal = Seal(Dialect.MESSAGES, self._maker, {name: word})


_READ: dict[str, Callable[[Reader, JsonObject], list[Event]]] = {
    "message_start": Reader._read_start,
    "content_block_start": Reader._read_block_start,
    "content_block_delta": Reader._read_delta,
    "content_block_stop": Reader._read_block_stop,
    "message_delta": Reader._read_end,
    "message_stop": Reader._read_stop,
    "error": Reader._read_error,
}


def _index(document: JsonObject) -> object:
    index = document.get("index")
    return index if isinstance(index, int) else 0


def tokens_of(usage: JsonObject) -> Tokens:
    cached, written = count_of(usage.get("cache_read_input_tokens")), count_of(usage.get("cache_creation_input_tokens"))
    return Tokens(
        input=count_of(usage.get("input_tokens")) + cached + written,
        output=count_of(usage.get("output_tokens")),
        cached=cached,
        written=written,
        reasoning=count_of(object_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )


def is_content(data: bytes) -> bool:
    document = read_object(data)
    kind = text_of(document.get("type")) if document else ""
    if document and kind == "content_block_delta":  # an empty one is a sign of life
        return any(value for name, value in object_of(document.get("delta")).items() if name != "type")
    return bool(kind) and kind not in _NOT_YET
