"""Anthropic Messages: an answer as neutral events.

1. Seals: `{"signature": …}` of a thought, `{"data": …}` of a redacted one; a word that we wrapped for somebody is such a
   signature like any other, and goes back to whoever said it.
2. Blocks of tools that the provider ran, citations and what is not known are passed over, but for their text.
3. The end is `message_stop`. Where it is missing, `close` takes the provider's stop reason for the end: it stands behind all
   content. What was cut off before it stays unfinished, and so does a call that the answer broke off in: its block ends as any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject, ProviderError
from ...failures import failure_inside, failure_of_page, has_error
from ...fields import count_of, object_of, read_object, text_of
from ...finish import is_cut, is_whole_call
from ..neutral import (
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Seal,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    Tokens,
)

_CALL, _THOUGHT, _REDACTED = "tool_use", "thinking", "redacted_thinking"
_KNOWN = frozenset((_CALL, _THOUGHT, _REDACTED))
"""Every other kind of block is a text, mostly an empty one."""
_NO_ANSWER = ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR")


@dataclass(slots=True)
class _Block:
    kind: str
    start: JsonObject
    index: int
    held: list[Event] | None = None
    """What it said while it was not its turn; None: it is its turn."""
    ended: bool = False
    signature: str = ""
    spoke: bool = False
    written: list[str] = field(default_factory=list)
    """The arguments of a call."""


@dataclass(slots=True)
class Hearer:
    """One stream."""

    maker: str
    id: str
    _begun: bool = False
    _over: bool = False
    _blocks: dict[int, _Block] = field(default_factory=dict)
    """By the provider's index, those that have not ended."""
    _open: _Block | None = None
    _waiting: list[_Block] = field(default_factory=list)
    """Blocks that began while a call was open, in order."""
    _usage: JsonObject = field(default_factory=dict)
    _word: str | None = None
    """Why it ended; None: it has not."""
    _stop_sequence: str = ""
    _half: bool = False
    """The call that ended last is not whole: whether it ends depends on the reason."""

    def hear(self, data: bytes, name: str = "") -> list[Event]:
        if self._over or not data:
            return []
        document = read_object(data)
        if document is None:
            return []
        hear = _HEARD.get(text_of(document.get("type")) or name)
        if hear is not None:
            return hear(self, document)
        return self._error(document) if has_error(document) else []

    def close(self) -> list[Event]:
        return [] if self._over or self._word is None else self._message_stop({})

    def _message_start(self, document: JsonObject) -> list[Event]:
        if self._begun:
            return []
        self._begun = True
        message = object_of(document.get("message"))
        self._count(message)
        tokens = _tokens(self._usage) if self._usage else None
        return [Started(text_of(message.get("id")) or self.id, text_of(message.get("model")), tokens)]

    def _block_start(self, document: JsonObject) -> list[Event]:
        start, index = object_of(document.get("content_block")), _index(document)
        events: list[Event] = [] if self._begun else self._message_start({})
        events += self._end_half()
        self._word = None
        if (same := self._blocks.get(index)) is not None:
            events += self._end(same)
        if self._open is not None and self._open.kind != _CALL:
            events += self._end(self._open)
        kind = text_of(start.get("type"))
        block = _Block(kind if kind in _KNOWN else "text", start, index)
        self._blocks[index] = block
        if self._open is not None:
            block.held = []
            self._waiting.append(block)
        else:
            self._open = block
        return events + self._said(block, _first(block))

    def _block_delta(self, document: JsonObject) -> list[Event]:
        index, delta = _index(document), object_of(document.get("delta"))
        block = self._blocks.get(index)
        before: list[Event] = []
        if block is None:
            implied: JsonObject = {"type": text_of(delta.get("type")).removesuffix("_delta")}
            if implied["type"] not in ("text", _THOUGHT):
                return []
            before = self._block_start({"index": index, "content_block": implied})
            block = self._blocks[index]
        kind = delta.get("type")
        if kind == "text_delta":
            event: Event | None = TextPiece(text) if block.kind == "text" and (text := text_of(delta.get("text"))) else None
        elif kind == "input_json_delta":
            piece = text_of(delta.get("partial_json"))
            event = CallPiece(piece) if block.kind == _CALL and piece else None
            block.written.append(piece)
        elif kind == "thinking_delta":
            event = ThoughtPiece(text) if block.kind == _THOUGHT and (text := text_of(delta.get("thinking"))) else None
        else:
            if kind == "signature_delta":
                block.signature = text_of(delta.get("signature"))
            event = None
        if event is None:
            return before
        block.spoke, self._word = True, None
        if block.held is None:
            return [*before, event] if before else [event]
        block.held.append(event)
        return before

    def _block_stop(self, document: JsonObject) -> list[Event]:
        block = self._blocks.get(_index(document))
        return [] if block is None else self._end(block)

    def _message_delta(self, document: JsonObject) -> list[Event]:
        delta = object_of(document.get("delta"))
        self._count(document)
        self._stop_sequence = text_of(delta.get("stop_sequence")) or self._stop_sequence
        if word := text_of(delta.get("stop_reason")):
            self._word = word
        return []

    def _message_stop(self, document: JsonObject) -> list[Event]:
        events: list[Event] = [] if self._begun else self._message_start({})
        while self._open is not None:
            events += self._end(self._open)
        if not is_cut(self._word):
            events += self._end_half()
        self._over = True
        tokens = _tokens(self._usage) if self._usage else None
        return [*events, Finished(self._word or "", tokens, self._stop_sequence)]

    def _error(self, document: JsonObject) -> list[Event]:
        self._over = True
        return [Broken(failure_inside(document) or _NO_ANSWER)]

    def _count(self, document: JsonObject) -> None:
        """Counts are of all so far; a later zero only means that nothing is told."""
        for name, count in object_of(document.get("usage")).items():
            if count or name not in self._usage:
                self._usage[name] = count

    def _said(self, block: _Block, events: list[Event]) -> list[Event]:
        block.spoke = block.spoke or any(not isinstance(event, CallStarted) for event in events)
        if block.held is None:
            return events
        block.held += events
        return []

    def _end(self, block: _Block) -> list[Event]:
        """The block's end, and what those behind it have said meanwhile."""
        if self._blocks.get(block.index) is block:
            del self._blocks[block.index]
        block.ended = True
        events = self._said(block, self._last(block))
        if block is not self._open:
            return events
        self._open = None
        while self._open is None and self._waiting:
            block = self._waiting.pop(0)
            events += self._end_half()
            events += block.held or []
            block.held = None
            self._open = None if block.ended else block
        return events

    def _last(self, block: _Block) -> list[Event]:
        if block.kind == "text":
            return [BlockEnded()] if block.spoke else []
        if block.kind == _CALL:
            if block.spoke and not is_whole_call("".join(block.written)):
                self._half = block.held is None
                return [] if self._half else [CallEnded()]
            given = object_of(block.start.get("input"))
            return [CallPiece(dumps(given).decode()), CallEnded()] if given and not block.spoke else [CallEnded()]
        seal = (
            self._seal("data", block.start)
            if block.kind == _REDACTED
            else self._seal("signature", {"signature": block.signature})
        )
        return [ThoughtEnded(seal)] if block.spoke or seal is not None else []

    def _end_half(self) -> list[Event]:
        half, self._half = self._half, False
        return [CallEnded()] if half else []

    def _seal(self, name: str, where: JsonObject) -> Seal | None:
        word = text_of(where.get(name))
        return Seal(Dialect.MESSAGES, self.maker, {name: word}) if word else None


_HEARD: dict[str, Callable[[Hearer, JsonObject], list[Event]]] = {
    "message_start": Hearer._message_start,
    "content_block_start": Hearer._block_start,
    "content_block_delta": Hearer._block_delta,
    "content_block_stop": Hearer._block_stop,
    "message_delta": Hearer._message_delta,
    "message_stop": Hearer._message_stop,
    "error": Hearer._error,
}


def hear_whole(body: bytes, maker: str, id: str) -> list[Event]:
    document = read_object(body)
    if document is None:
        page = failure_of_page(body)
        return [Broken(page)] if page is not None else []
    content = document.get("content")
    if not isinstance(content, list) or has_error(document):
        failure = failure_inside(document)
        return [Broken(failure)] if failure is not None else []
    hearer = Hearer(maker, id)
    events = hearer._message_start({"message": document})
    for index, block in enumerate(content):
        events += hearer._block_start({"index": index, "content_block": block})
        events += hearer._block_stop({"index": index})
    return events + hearer._message_delta({"delta": document}) + hearer._message_stop({})


def _first(block: _Block) -> list[Event]:
    """What a block says by its beginning: some providers put all of it there."""
    start = block.start
    if block.kind == _CALL:
        return [CallStarted(text_of(start.get("id")), text_of(start.get("name")))]
    if block.kind == _THOUGHT:
        block.signature = text_of(start.get("signature"))
        return [ThoughtPiece(text)] if (text := text_of(start.get("thinking"))) else []
    return [TextPiece(text)] if block.kind == "text" and (text := text_of(start.get("text"))) else []


def _index(document: JsonObject) -> int:
    index = document.get("index")
    return index if isinstance(index, int) else 0


def _tokens(usage: JsonObject) -> Tokens:
    cached, written = count_of(usage.get("cache_read_input_tokens")), count_of(usage.get("cache_creation_input_tokens"))
    return Tokens(
        input=count_of(usage.get("input_tokens")) + cached + written,
        output=count_of(usage.get("output_tokens")),
        cached=cached,
        written=written,
        reasoning=count_of(object_of(usage.get("output_tokens_details")).get("thinking_tokens")),
    )
