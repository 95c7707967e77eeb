"""Anthropic Messages: chunks as the client's bytes.

1. A chunk of this dialect whose block stands at its provider's own index, and that still says what it said, leaves as it came.
2. One that was changed is written event by event, each in its native frame.
3. What others said: one block is open at a time, indexes count up from 0. A call's arguments leave as they come, once a second
   piece has come: until then a seal may still have to stand before them (a thinking block of nothing but its signature), and
   text that is no object may still have to be made one.
4. A seal behind the text that ends the answer is left out: `claude -p` prints the last block, if that is a text.
5. Claude Code reads a call's arguments from its deltas alone, so there is always one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...failures import ANTHROPIC
from ...fields import object_of, text_of
from ...finish import sends_message_stop
from ...sse import write_event
from ...translation.neutral import Asked, Feature, Seal, Tokens
from ..beside import name_media, name_tool
from ..events import (
    Began,
    Block,
    Chunk,
    Cited,
    Closed,
    Counted,
    Done,
    Ended,
    Event,
    Extra,
    Failed,
    Opened,
    Piece,
)
from ..said import arguments_of
from ..written import AnyWriter, Document
from .blocks import (
    Ids,
    as_object,
    head_of,
    is_redacted,
    last_usage,
    message_id,
    placeholder,
    sealed_block,
    usage_of,
    word_of,
)
from .history import blocks, citation, served
from .read import GROWS

_ERROR_TYPES = {status: kind for kind, status in ANTHROPIC.items()}
_EMPTY: Mapping[str, JsonObject] = {
    "text": {"type": "text", "text": ""},
    "thought": {"type": "thinking", "thinking": "", "signature": ""},
}
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation")
"""Counts that a stream tells at its start; where its end does not repeat them, the last round's are added there."""


class _Writer(AnyWriter):
    """What a stream's and a document's writer share."""

    dialect = Dialect.MESSAGES
    ALIVE = b'event: ping\ndata: {"type":"ping"}\n\n'

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._ids = Ids(asked)

    def name(self, block: Block, answer: str = "") -> None:
        """What the client knows a call by, whoever made it."""
        known = self._tools.get(block.name)
        name = known.name if known is not None else block.name
        block.id, block.name, block.named = self._ids.of(block.id, name, answer), name, True

    def id_of(self, id: str) -> str:
        return message_id(id, self._asked)

    def _name_lost(self, block: Block) -> None:
        if block.foreign and block.media is not None:
            name_media(self.left_out, block.media)

    def _end_of(self, ended: Ended) -> JsonObject:
        word = "stop_sequence" if ended.stop and ended.finish_reason == "end_turn" else ended.finish_reason
        return {"stop_reason": word, "stop_sequence": ended.stop or None}

    def _usage(self, counted: Counted | None, told: JsonObject) -> JsonObject:
        """`told`: what the last round's own end says of it."""
        if counted is None:
            return told or last_usage(Tokens(input=self._asked.estimate()))
        if counted.native is None or not (told or counted.rounds):
            return {**told, **last_usage(counted.tokens)}
        if not counted.rounds:
            return told
        given = {name: value for name, value in counted.native.items() if name in _INPUT}
        return {**given, **told, "output_tokens": counted.tokens.output}


class Writer(_Writer):
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._begun = False
        self._next = 0
        """The client's next index."""
        self._before: dict[Block, bytes] = {}
        """What stands before the text of a block's deltas, of blocks that are open."""
        self._tokens: Tokens | None = None
        self._stops = True
        """`message_stop` ends the stream."""
        self._calls: dict[Block, list[str]] = {}
        """What was said of calls that have not begun."""
        self._seals: list[Seal] = []
        """They stand behind a text, and wait for what comes next."""
        self._newest: str = ""

    @property
    def steady(self) -> bool:
        return True

    def write(self, chunk: Chunk) -> bytes:
        document, events = chunk.native, chunk.events
        if (
            len(events) == 1
            and type(piece := events[0]) is Piece
            and chunk.raw
            and chunk.dialect is Dialect.MESSAGES
            and document is not None
            and piece.block.place == document.get("index")
        ):
            return chunk.raw  # nearly all of a stream
        if chunk.dialect is not Dialect.MESSAGES or chunk.form == "document" or (document is None and not chunk.raw):
            return b"".join([self.made(event) for event in chunk.events])
        if document is None or (chunk.raw and not chunk.events):
            return chunk.raw
        if not chunk.raw:
            return b"".join([self._framed(event, chunk, document) for event in chunk.events])
        event = chunk.events[0]
        match event:
            case Piece(block=block) | Extra(block=block) | Closed(block=block) | Opened(block=block):
                index = document.get("index")
                if block.place < 0:
                    self._give_place(block, index)
                if block.place != index:
                    return write_event(dumps({**document, "index": block.place}), chunk.name)
            case Began():
                self._begun = True
            case Done() if not self._stops:
                return b""
            case _:
                for other in chunk.events:
                    if type(other) is Ended:
                        self._ends(other)
        return chunk.raw

    def _give_place(self, block: Block, native: object = None) -> int:
        if block.place < 0:
            block.place = native if isinstance(native, int) and not self.altered else self._next
            self._next = max(self._next, block.place + 1)
        return block.place

    def _ends(self, ended: Ended) -> None:
        self._stops = sends_message_stop(ended.finish_reason, self._asked.endings.message_stop)

    # --- events of this dialect -----------------------------------------------------------------------------------------

    def _framed(self, event: Event, chunk: Chunk, document: JsonObject) -> bytes:
        """One event of a unit that was changed."""
        match event:
            case Opened(block=block):
                grown = GROWS[block.kind][1] if block.kind in ("text", "thought") else "input"
                said = any(type(other) is Piece and other.block is block for other in chunk.events)
                empty: JsonObject = {grown: {} if grown == "input" else ""} if said else {}
                start = {**(block.native or {"type": "text"}), **empty}
                return _event(
                    {**document, "type": "content_block_start", "index": self._give_place(block), "content_block": start}
                )
            case Piece(block=block):
                kind, grows = GROWS[block.kind]
                is_delta = document.get("type") == "content_block_delta"
                frame = {n: v for n, v in document.items() if n not in ("content_block", "type", "index", "delta")}
                delta = {"type": kind, **(object_of(document.get("delta")) if is_delta else {}), grows: event.text}
                index = self._give_place(block)
                return (
                    _event({"type": "content_block_delta", "index": index, **frame, "delta": delta})
                    if event.text or is_delta
                    else b""
                )
            case Extra(block=block):
                return _event({**document, "index": self._give_place(block)})
            case Closed(block=block):
                frame = document if document.get("type") == "content_block_stop" else {}
                return _event({**frame, "type": "content_block_stop", "index": self._give_place(block)})
            case Ended():
                self._ends(event)
                counted = next((other for other in chunk.events if type(other) is Counted), None)
                delta = {"stop_sequence": None, **object_of(document.get("delta")), "stop_reason": event.finish_reason}
                whole: JsonObject = {**document, "type": "message_delta", "delta": delta}
                usage = self._usage(counted, object_of(document.get("usage")))
                return _event({**whole, "usage": usage or {"output_tokens": 0}})
            case Began():
                self._begun = True
                return _event(document)
            case Done():
                frame = document if document.get("type") == "message_stop" else {"type": "message_stop"}
                return _event(frame) if self._stops else b""
            case _:
                return b""

    # --- what was said elsewhere ----------------------------------------------------------------------------------------

    def made(self, event: Event) -> bytes:
        if type(event) is Piece:
            block, text = event.block, event.text
            if (before := self._before.get(block)) is not None:
                return b"".join((before, dumps(text), b"}}\n\n")) if text else b""
            return self._first(block, text)
        match event:
            case Opened(block=block):
                return self._open(block)
            case Closed(block=block):
                return self._close(block)
            case Cited():
                return self._cite(event)
            case Began():
                return self._begin(event)
            case Counted():
                self._tokens = event.tokens
                return b""
            case Ended():
                self._ends(event)
                usage = last_usage(self._tokens or Tokens(input=self._asked.estimate()))
                return self._begin(None) + _event({"type": "message_delta", "delta": self._end_of(event), "usage": usage})
            case Done():
                return _event({"type": "message_stop"}) if self._stops else b""
            case Failed(error=error):
                told = {"type": _error_type(error.status), "message": error.message, "code": error.code}
                return _event({"type": "error", "error": told})
            case _:
                return b""

    def _begin(self, event: Began | None) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        tokens = (event.tokens if event is not None else None) or Tokens(input=self._asked.estimate())
        usage = {**usage_of(tokens), "output_tokens": tokens.output}
        return _event({"type": "message_start", "message": {**head_of(event.id if event else "", self._asked), "usage": usage}})

    def _open(self, block: Block) -> bytes:
        begun = self._begin(None)
        self._name_lost(block)
        match block.kind:
            case "call":
                self._calls[block] = []
                return begun + self._waiting_seals()
            case "media" if block.media is not None:
                text = Block("text")
                shown = self._first(text, placeholder(block.media, alone=self._newest != "text"))
                return begun + shown + self._stop(text)
            case "trace" if block.native is not None and not block.foreign:
                return begun + self._waiting_seals() + self._start(block, block.native)
            case _:
                return begun

    def _cite(self, cited: Cited) -> bytes:
        block, told = cited.block, citation(cited)
        if told is None or block.place < 0 or block.closed:
            self.left_out.add(Feature.CITATIONS, cited.citation.title)
            return b""
        delta = {"type": "citations_delta", "citation": told}
        return _event({"type": "content_block_delta", "index": block.place, "delta": delta})

    def _first(self, block: Block, text: str) -> bytes:
        """The first piece of a block that has not begun, or one that its provider's own event began."""
        if not text or block.kind == "trace":
            return b""
        if block.place >= 0 and block not in self._calls:
            self._know_deltas(block)
            return self.made(Piece(block, text))
        if block.kind == "call":
            pieces = self._calls.setdefault(block, [])
            pieces.append(text)
            if len(pieces) < 2 or block.custom or block.seal is not None or not "".join(pieces).lstrip().startswith("{"):
                return b""
            return self._begin_call(block, "".join(pieces))
        native = block.native if block.native is not None and not block.foreign else None
        return (
            self._begin(None)
            + self._waiting_seals()
            + self._start(block, {**(native or {}), **_EMPTY[block.kind]})
            + self.made(Piece(block, text))
        )

    def _begin_call(self, block: Block, arguments: str) -> bytes:
        del self._calls[block]
        head: JsonObject = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
        return self._start(block, head) + self.made(Piece(block, arguments))

    def _start(self, block: Block, start: JsonObject) -> bytes:
        place = self._give_place(block)
        self._newest = block.kind
        self._know_deltas(block)
        return _event({"type": "content_block_start", "index": place, "content_block": start})

    def _know_deltas(self, block: Block) -> None:
        kind, grows = GROWS[block.kind]
        head = f'{{"type":"content_block_delta","index":{block.place},"delta":{{"type":"{kind}","{grows}":'
        self._before[block] = f"event: content_block_delta\ndata: {head}".encode()

    def _close(self, block: Block) -> bytes:
        out = b""
        if block.kind == "trace" and block.foreign:
            return self._trace(block)
        if block.half and block in self._calls:
            del self._calls[block]
            return b""
        if block.kind == "call" and block in self._calls:
            written = as_object(arguments_of(block, "".join(self._calls[block])))
            out = (self._sealed(block.seal) if block.seal is not None else b"") + self._begin_call(block, written)
        elif block.kind == "thought" and (seal := block.seal) is not None:
            if block.place < 0:
                if self._newest == "text":
                    self._seals.append(seal)
                    return b""
                return self._begin(None) + self._sealed(seal)
            if is_redacted(seal):
                return self._stop(block) + self._sealed(seal)
            out = self._signature(block, seal)
        return out + self._stop(block)

    def _trace(self, block: Block) -> bytes:
        """A use of a tool, and its result: two blocks."""
        told = served(block)
        if not told:
            name_tool(self.left_out, block.name, block.native)
        out = self._begin(None) + self._waiting_seals()
        for start in told:
            one, given = Block("trace"), object_of(start.get("input"))
            out += self._start(one, {**start, "input": {}} if "input" in start else start)
            out += self.made(Piece(one, dumps(given).decode())) if "input" in start else b""
            out += self._stop(one)
        return out

    def _stop(self, block: Block) -> bytes:
        if block.place < 0:
            return b""
        self._before.pop(block, None)
        return _event({"type": "content_block_stop", "index": block.place})

    def _waiting_seals(self) -> bytes:
        seals, self._seals = self._seals, []
        return b"".join(map(self._sealed, seals))

    def _sealed(self, seal: Seal) -> bytes:
        """A block of nothing but its seal."""
        block = Block("thought")
        if is_redacted(seal):
            return self._start(block, sealed_block(seal)) + self._stop(block)
        return self._start(block, _EMPTY["thought"]) + self._signature(block, seal) + self._stop(block)

    def _signature(self, block: Block, seal: Seal) -> bytes:
        delta = {"type": "signature_delta", "signature": word_of(seal)}
        return _event({"type": "content_block_delta", "index": block.place, "delta": delta})


class Whole(Document, _Writer):
    """One JSON message."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._frame: JsonObject = {}
        """The first round's own message, but for what was said."""
        self._last: JsonObject = {}
        """What the last one says of its end."""

    def _frame_in(self, document: JsonObject, *, is_whole: bool) -> None:
        self._content.as_document = self._content.as_document or not is_whole
        if is_whole:
            self._frame, self._last = self._frame or document, document
        elif document.get("type") == "message_start":
            self._frame = self._frame or object_of(document.get("message"))
        elif document.get("type") == "message_delta":
            rest = {name: value for name, value in document.items() if name not in ("type", "delta")}
            self._last = {**object_of(document.get("delta")), **rest}

    def _lose(self, event: Event) -> None:
        if type(event) is Opened:
            self._name_lost(event.block)
        elif type(event) is Closed and event.block.kind == "trace" and event.block.foreign and not served(event.block):
            name_tool(self.left_out, event.block.name, event.block.native)
        elif type(event) is Cited and citation(event) is None:
            self.left_out.add(Feature.CITATIONS, event.citation.title)

    def _put_together(self) -> JsonObject:
        content, asked, frame = self._content, self._asked, self._frame
        head = frame or head_of(content.began.id if content.began is not None else "", asked)
        last = {name: value for name, value in self._last.items() if name not in ("id", "model", "type", "role")}
        told = {**object_of(frame.get("usage")), **object_of(last.get("usage"))}
        counted = content.counted or (Counted(content.began.tokens) if content.began and content.began.tokens else None)
        end = {**self._end_of(content.ended or Ended("end_turn")), "usage": self._usage(counted, told)}
        return {**head, **last, "content": blocks(content, beside=True), **end}


def _event(document: JsonObject) -> bytes:
    return write_event(dumps(document), text_of(document["type"]))


def write_error(
    status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
) -> bytes:
    error: JsonObject = {"type": _error_type(status), "message": message, "code": code, "details": dict(details or {})}
    return dumps({"type": "error", "error": error})


def _error_type(status: int) -> str:
    return _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
