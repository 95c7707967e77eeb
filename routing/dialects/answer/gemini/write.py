"""Gemini's generateContent: chunks as the client's bytes, in events or one JSON array, with Code Assist's envelope or without.

1. A chunk of this dialect that still says what it said, in the client's form, leaves as it came.
2. The last chunk has the reason and the counts, and a part, be it an empty text: Gemini CLI takes less for a broken stream. So
   what ends an answer that was altered waits for `Done`.
3. All chunks of an altered answer carry the first one's id and model.
4. What others said: a call leaves whole, and a thought's seal stands on an empty part of its own behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...calls.grow_gemini import made_id
from ...failures import GOOGLE
from ...fields import list_of, object_of, text_of
from ...sse import write_event
from ...translation.ids import digest
from ...translation.neutral import Asked, Feature, Tokens
from ..beside import name_tool
from ..events import (
    Aside,
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
    Field,
    Opened,
    Piece,
)
from ..written import AnyWriter, Document
from .history import Thinking, call_of, parts, plain_part, sealed
from .parts import EMPTY, identity_of, inner_of, main_candidate, media_part, summed_counts, usage_of
from .read import SHOWN_BESIDE

_IDENTITY = ("responseId", "modelVersion")
_END = ("finishReason", "finishMessage")
_DATA = ord("d")
"""How nearly every event of a stream begins."""
_ITEM = frozenset((b"[", b",", b"{", b"]"))
"""How an array's items and its end begin."""
_STATUS_WORDS = {402: "FAILED_PRECONDITION", 499: "CANCELLED", **{status: word.upper() for word, status in GOOGLE.items()}}
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class _Writer(AnyWriter):
    """What a stream's and a document's writer share."""

    dialect = Dialect.GEMINI
    by_order = True
    apart = True
    ALIVE = b"\n"
    """White space between events or array items: a comment breaks Google's SDKs."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._array, self._envelope = asked.endpoint.json_array, asked.endpoint.envelope
        self._named = 0
        self._given: set[str] = set()
        self._identity: JsonObject | None = None
        """The whole answer's id and model."""

    def name(self, block: Block, answer: str = "") -> None:
        """What the client knows a call by. One of this dialect's is told as it came: its name and order stand for an id."""
        number, self._named = self._named, self._named + 1
        block.named = True
        if not block.foreign:
            block.id = made_id(block.name, number)
            return
        if not block.id or block.id in self._given:
            block.id = f"call_{digest(f'{self._asked.id} {number} {block.name}', 24)}"
        self._given.add(block.id)
        known = self._tools.get(block.name)
        block.name = known.name if known is not None else block.name

    def id_of(self, id: str) -> str:
        return text_of(identity_of(id, self._asked)["responseId"])

    def _name_lost(self, event: Event) -> bytes:
        if type(event) is Opened and event.block.foreign and event.block.kind == "trace":
            name_tool(self.left_out, event.block.name, event.block.native)
        elif type(event) is Cited:
            self.left_out.add(Feature.CITATIONS)
        elif type(event) is Aside:
            self.left_out.add(Feature.CANDIDATES)
        return b""

    def _usage(self, counted: Counted | None) -> JsonObject:
        if counted is None:
            return usage_of(Tokens(input=self._asked.estimate()))
        if counted.rounds:
            return summed_counts(counted.rounds)
        native = counted.native
        return dict(native) if native is not None and "promptTokenCount" in native else usage_of(counted.tokens)


class Writer(_Writer):
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._begun = False
        """A chunk has left: an array is open."""
        self._tail = b""
        """The end of the array, as it came."""
        self._last: tuple[JsonObject, Sequence[Event]] | None = None
        """What ends an altered answer."""
        self._counted: Counted | None = None
        self._head = self._rest = b""
        """What stands around the parts of a chunk of ours."""
        self._thinking = Thinking()
        self._texts: dict[Block, list[str]] = {}
        """What was written of thoughts, and what waits of calls."""

    @property
    def steady(self) -> bool:
        return not (self.altered or self._array)

    def write(self, chunk: Chunk) -> bytes:
        document, raw = chunk.native, chunk.raw
        if chunk.dialect is not Dialect.GEMINI or chunk.form == "document" or (document is None and not raw):
            if document is not None and main_candidate(inner_of(document)).get("logprobsResult"):
                self.left_out.add(Feature.LOGPROBS)
            return b"".join([self.made(event) for event in chunk.events])
        if document is None:
            return self._between_chunks(raw, chunk.events)
        if self._identity is None:
            self._identity = {name: inner[name] for name in _IDENTITY if name in (inner := inner_of(document))}
        if not raw or (self.altered and not self._is_in_step(inner_of(document), chunk.events)):
            return self._patched(chunk.events, document)
        if self._array or (raw[0] != _DATA and raw.lstrip()[:1] in _ITEM):
            return self._in_form(chunk, document)
        self._begun = True
        return raw

    # --- chunks of this dialect ------------------------------------------------------------------------------------------

    def _between_chunks(self, raw: bytes, events: Sequence[Event]) -> bytes:
        """White space, the array's end, comments, what is not JSON, or what nobody read."""
        if self._array and not events:
            if raw.isspace() and not self._tail:
                return raw
            self._tail += raw if self._tail or b"]" in raw else b""
            return b""
        if self._array or raw.lstrip()[:1] in _ITEM or (self.altered and not raw.isspace()):
            return b"".join([self.made(event) for event in events])
        return raw

    def _is_in_step(self, inner: JsonObject, events: Sequence[Event]) -> bool:
        """Nothing in it contradicts what the client was told before, or will be."""
        if any(type(event) is Ended or type(event) is Counted for event in events):
            return False
        return all(inner.get(name) == value for name, value in (self._identity or {}).items())

    def _in_form(self, chunk: Chunk, document: JsonObject) -> bytes:
        """As it came, but for what stands between two chunks."""
        failed = next((event for event in chunk.events if type(event) is Failed), None)
        if failed is not None:
            return self.made(failed)
        raw = chunk.raw
        start = raw.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if not self._array or start not in _ITEM:
            return self._item(dumps(document))
        if (start == b"[") == self._begun:
            return self._item(raw[raw.index(b"{") :])
        self._begun = True
        return raw

    def _patched(self, events: Sequence[Event], document: JsonObject) -> bytes:
        """What is left of a chunk, or was put into it, in its own frame."""
        if self.altered and self._last is None and any(type(event) is Ended for event in events):
            self._last = (document, events)
            return b""
        if self._last is not None and not any(event.rank >= event.rank.SAYS for event in events):
            self._counted = next((event for event in events if type(event) is Counted), self._counted)
            return b""
        shown = [part for event in events if (part := _part_of(event)) is not None]
        fields = {event.name: event.native for event in events if type(event) is Field and event.name}
        asides = [event.native for event in events if type(event) is Aside]
        ended = next((event for event in events if type(event) is Ended), None)
        counted = next((event for event in events if type(event) is Counted), None)
        if not (shown or fields or asides or ended):
            return b""
        inner = inner_of(document)
        candidate = main_candidate(inner)
        hidden = (*_END, *SHOWN_BESIDE)
        rest = {name: value for name, value in candidate.items() if name not in hidden} | fields
        if ended is not None:
            rest |= {name: candidate[name] for name in _END if name in candidate} | {"finishReason": ended.finish_reason}
        content = {"role": "model", **object_of(candidate.get("content")), "parts": shown or [EMPTY]}
        whole = {**inner, "candidates": [{"index": 0, **rest, "content": content}, *asides]}
        if self.altered:
            whole = {**{name: value for name, value in whole.items() if name not in _IDENTITY}, **(self._identity or {})}
        if ended is not None and (counted := counted or self._counted) is not None:
            whole["usageMetadata"] = self._usage(counted)
        return self._item(dumps(_wrapped(document, whole, self._envelope)))

    def _item(self, data: bytes) -> bytes:
        return self._between() + data if self._array else write_event(data)

    def _between(self) -> bytes:
        begun, self._begun = self._begun, True
        return (b",\r\n" if begun else b"[") if self._array else b""

    # --- what was said elsewhere ----------------------------------------------------------------------------------------

    def made(self, event: Event) -> bytes:
        match event:
            case Piece(block=block, text=text):
                if block.kind == "call" and block.foreign:
                    self._texts.setdefault(block, []).append(text)
                    return b""
                return self._piece(event)
            case Began():
                if self._identity is None:
                    self._identity = identity_of(event.id, self._asked)
                self._counted = Counted(event.tokens) if event.tokens is not None else self._counted
                return b""
            case Opened(block=block) if block.kind == "media" and block.foreign and block.media is not None:
                return self._chunk(dumps(media_part(block.media)))
            case Extra() | Opened() if not event.block.foreign:
                part = _part_of(event)
                return self._chunk(dumps(part)) if part is not None else b""
            case Field(says=True) if event.name in SHOWN_BESIDE:
                document: JsonObject = {"candidates": [{"content": {"parts": [EMPTY]}, event.name: event.native}]}
                return self._patched([event], {**document, **(self._identity or {})})
            case Closed(block=block) if block.foreign:
                return self._close(block)
            case Cited() | Opened() | Aside():
                return self._name_lost(event)
            case Counted():
                self._counted = event
                return b""
            case Ended() if self._last is None:
                return self._end(event)
            case Done():
                return self._done()
            case Failed():
                return self._fail(event)
            case _:
                return b""

    def _piece(self, piece: Piece) -> bytes:
        block, text = piece.block, piece.text
        if block.foreign:
            if not text or block.kind == "trace":
                return b""
            if block.kind == "thought":
                self._texts.setdefault(block, []).append(text)
            else:
                self._thinking.spoken = True
            thought = b'{"thought":true,"text":' if block.kind == "thought" else b'{"text":'
            return self._chunk(thought + dumps(text) + b"}")
        part = _part_of(piece)
        return self._chunk(dumps(part)) if part is not None else b""

    def _close(self, block: Block) -> bytes:
        pieces = "".join(self._texts.pop(block, ()))
        if block.half:
            return b""
        if block.kind == "call":
            self._thinking.spoken = True
            return self._chunk(dumps(call_of(block, pieces, self._thinking)))
        if block.kind == "thought" and block.seal is not None:
            self._thinking.add(pieces, block.seal)
            return self._chunk(dumps(sealed(block.seal)))
        return b""

    def _chunk(self, written: bytes) -> bytes:
        if not self._head:
            self._frame()
        return b"".join((self._between(), self._head, written, self._rest))

    def _frame(self) -> None:
        """Nothing in it changes but the very first byte of an array."""
        identity = dumps(self._identity or identity_of("", self._asked))[1:-1]
        self._identity = self._identity or identity_of("", self._asked)
        opened = b'{"response":' if self._envelope else b""
        closed = (b"}" if self._envelope else b"") + (b"" if self._array else b"\n\n")
        self._head = (b"" if self._array else b"data: ") + opened + b'{"candidates":[{"content":{"parts":['
        self._rest = b'],"role":"model"},"index":0}],' + identity + b"}" + closed

    def _end(self, ended: Ended) -> bytes:
        if not self._head:
            self._frame()
        written = b'"role":"model"},"finishReason":' + dumps(ended.finish_reason) + b',"index":0}],"usageMetadata":'
        rest = self._rest.replace(b'"role":"model"},"index":0}],', written + dumps(self._usage(self._counted)) + b",", 1)
        return b"".join((self._between(), self._head, dumps(EMPTY), rest))

    def _done(self) -> bytes:
        out = b""
        if self._last is not None:
            (document, events), self._last = self._last, None
            altered, self.altered = self.altered, False
            whole = {**inner_of(document), **(self._identity or {})}
            out = self._patched(events, _wrapped(document, whole, self._envelope))
            self.altered = altered
        if not self._array:
            return out
        if self._tail and not self.altered and (b"[" in self._tail) is not self._begun:
            return self._tail
        return out + (b"]" if self._begun else b"[]")

    def _fail(self, failed: Failed) -> bytes:
        error = failed.error
        is_first = self._array and not self._begun
        written = write_error(error.status, error.message, error.code, json_array=is_first)
        if is_first:
            return written
        return b",\r\n" + written + b"]" if self._array else write_event(written)


class Whole(Document, _Writer):
    """One JSON document."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._first: JsonObject = {}
        self._last: JsonObject = {}
        """The documents that the answer began and ended with."""

    def _frame_in(self, document: JsonObject, *, is_whole: bool) -> None:
        self._first = self._first or document
        self._last = document if main_candidate(inner_of(document)) else self._last

    def _lose(self, event: Event) -> None:
        self._name_lost(event)
        if type(event) is Opened and event.block.foreign:
            self._last = {}

    def _put_together(self) -> JsonObject:
        content, inner = self._content, inner_of(self._first)
        first, last = main_candidate(inner), main_candidate(inner_of(self._last))
        head = {name: value for name, value in first.items() if name not in _END}
        told: JsonObject = {"role": "model", **object_of(first.get("content")), "parts": parts(content) or [EMPTY]}
        beside = {given.name: given.native for given in content.fields if given.says and given.name in SHOWN_BESIDE}
        reason = {"finishReason": content.ended.finish_reason if content.ended is not None else "STOP"}
        others = [one for one in list_of(inner.get("candidates")) if one in content.asides]
        whole = {
            **(inner or identity_of(content.began.id if content.began is not None else "", self._asked)),
            "candidates": [{"index": 0, **head, **last, **beside, "content": told, **reason}, *others],
            "usageMetadata": self._usage(content.counted or (Counted(content.tokens) if content.tokens is not None else None)),
        }
        return _wrapped(self._first, whole, self._envelope)


def _part_of(event: Event) -> JsonObject | None:
    """What an event of this dialect is in its chunk."""
    match event:
        case Piece(block=block, text=text, native=native):
            if block.kind not in ("text", "thought"):
                return native if isinstance(native, dict) else None
            if isinstance(native, dict):
                return {**native, "text": text}
            return plain_part(block, text) if text else None
        case Extra(block=block, native=native) if not block.foreign:
            return native
        case Opened(block=block) if block.kind in ("media", "trace") and not block.foreign:
            return block.native
        case _:
            return None


def _wrapped(document: JsonObject, inner: JsonObject, envelope: bool) -> JsonObject:
    """Code Assist's clients find the answer in `response`."""
    rest = document if isinstance(document.get("response"), dict) else {}
    return {**rest, "response": inner} if envelope or rest else inner


def write_error(
    status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
) -> bytes:
    """`code` and `details` travel as Google's own ErrorInfo. `error` comes first: Google's SDK looks for nothing else."""
    told = {name: value if isinstance(value, str) else dumps(value).decode() for name, value in (details or {}).items()}
    info: JsonObject = {"@type": _ERROR_INFO, "reason": code, "domain": "routecodex", "metadata": told}
    word = _STATUS_WORDS.get(status, "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    written = dumps({"error": {"code": status, "message": message, "status": word, "details": [info]}})
    return b"[" + written + b"]" if json_array else written
