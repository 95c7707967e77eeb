"""Anthropic Messages: neutral events as an answer.

1. One block is open at a time, indexes count up from 0, and a stream that finished ends in message_delta and message_stop.
2. A call's arguments leave as they come, once a second piece has come: until then a seal may still have to stand before them
   (a thinking block of nothing but its signature), and text that is no object may still have to be made one. A seal that
   comes later is left out: whoever seals a call gives its arguments whole.
3. A seal behind the text that ends the answer is left out: `claude -p` prints the last block, if that is a text.
4. Claude Code reads a call's arguments from its deltas alone, so there is always one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject, ProviderError
from ... import answers
from ...fields import arguments_of, text_of
from ...finish import is_cut
from ...sse import write_event
from ..neutral import (
    Asked,
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    MediaShown,
    Seal,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    Tokens,
)
from . import words
from .messages_blocks import (
    Ids,
    as_object,
    head_of,
    is_redacted,
    last_usage,
    placeholder,
    sealed_block,
    stop_reason,
    usage_of,
    word_of,
)

_CUT_OFF = ProviderError(502, words.CUT_OFF, "UPSTREAM_ERROR")

_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""Kind of block → type of its deltas, and the field that grows."""


@dataclass(slots=True)
class _Call:
    """The open call: held until its second piece, or to its end where it is no object."""

    head: JsonObject
    pieces: list[str] = field(default_factory=list)
    live: bool = False
    held: bool = False


class Teller:
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._ids = Ids(asked)
        self._begun = False
        self._over = False
        self._tokens = Tokens(input=asked.estimate)
        self._index = -1
        self._open = ""
        """The kind of the open block."""
        self._last = ""
        """The kind of the newest block."""
        self._delta = b""
        """A delta of the open block, up to its text."""
        self._call: _Call | None = None
        self._seals: list[Seal] = []
        """They stand behind a text, and wait for what comes next."""

    def tell(self, event: Event) -> bytes:
        if isinstance(event, TextPiece) and self._open == "text" and event.text and not self._seals:
            return b"".join((self._delta, dumps(event.text), b"}}\n\n"))
        if self._over:
            return b""
        begun = b"" if self._begun or isinstance(event, Started | Broken) else self._begin("", None)
        return begun + _TOLD[type(event)](self, event)

    def close(self) -> bytes:
        return b""

    def _started(self, event: Started) -> bytes:
        return self._begin(event.id, event.tokens)

    def _begin(self, id: str, tokens: Tokens | None) -> bytes:
        if self._begun:
            return b""
        self._begun, self._tokens = True, tokens or self._tokens
        message = {**head_of(id, self._asked), "usage": {**usage_of(self._tokens), "output_tokens": self._tokens.output}}
        return _event({"type": "message_start", "message": message})

    def _text(self, event: TextPiece) -> bytes:
        return self._piece("text", event.text) if event.text else b""

    def _thought(self, event: ThoughtPiece) -> bytes:
        return self._piece("thinking", event.text) if event.text else b""

    def _media(self, event: MediaShown) -> bytes:
        return self._piece("text", placeholder(event.media, alone=self._open != "text"))

    def _piece(self, kind: str, text: str) -> bytes:
        out = b""
        if self._open != kind or self._seals:
            out = self._between() + self._start(kind, dict(_EMPTY[kind]))
        return b"".join((out, self._delta, dumps(text), b"}}\n\n"))

    def _thought_ended(self, event: ThoughtEnded) -> bytes:
        seal = event.seal
        if self._open == "thinking":
            if seal is None or is_redacted(seal):
                return self._stop() + (self._sealed(seal) if seal is not None else b"")
            return self._signature(seal) + self._stop()
        if seal is None:
            return b""
        if self._last == "text" and self._call is None:
            self._seals.append(seal)
            return b""
        return self._between() + self._sealed(seal)

    def _call_started(self, event: CallStarted) -> bytes:
        out = self._between()
        self._call = _Call(self._ids.head(event))
        return out

    def _call_piece(self, event: CallPiece) -> bytes:
        call = self._call
        if call is None or not event.arguments:
            return b""
        if call.live:
            return b"".join((self._delta, dumps(event.arguments), b"}}\n\n"))
        call.pieces.append(event.arguments)
        if call.held or len(call.pieces) < 2:
            return b""
        if not (begun := "".join(call.pieces).lstrip()).startswith("{"):
            call.held = bool(begun)
            return b""
        call.live = True
        return self._arguments(call, "".join(call.pieces))

    def _call_ended(self, event: CallEnded) -> bytes:
        call, self._call = self._call, None
        if call is None:
            return b""
        if call.live:
            return self._stop()
        before = self._sealed(event.seal) if event.seal is not None else b""
        return before + self._arguments(call, as_object("".join(call.pieces))) + self._stop()

    def _arguments(self, call: _Call, text: str) -> bytes:
        return b"".join((self._start("tool_use", {**call.head, "input": {}}), self._delta, dumps(text), b"}}\n\n"))

    def _block_ended(self, event: BlockEnded) -> bytes:
        return self._stop() if self._open != "tool_use" else b""

    def _finished(self, event: Finished) -> bytes:
        half = self._call is not None and is_cut(event.word)
        if half:  # of the call that it broke off in nothing more is told
            self._call = None
        out = self._end_call() + self._stop()
        self._over = True
        tokens = event.tokens or self._tokens
        delta: JsonObject = {
            "stop_reason": stop_reason(event, None if half else self._ids.count > 0, self._asked),
            "stop_sequence": event.stop_sequence or None,
        }
        last: JsonObject = {"type": "message_delta", "delta": delta, "usage": last_usage(tokens)}
        return out + _event(last) + _event({"type": "message_stop"})

    def _broken(self, event: Broken) -> bytes:
        self._over, self._open = True, ""
        error = event.error
        return answers.write_error_event(Dialect.MESSAGES, error.status, error.message, error.code)

    # The blocks

    def _between(self) -> bytes:
        """Whatever is open ends here, and what waited for the next block stands before it."""
        out = self._end_call() + self._stop()
        seals, self._seals = self._seals, []
        return out + b"".join(map(self._sealed, seals))

    def _end_call(self) -> bytes:
        return self._call_ended(CallEnded()) if self._call is not None else b""

    def _sealed(self, seal: Seal) -> bytes:
        """A block of nothing but its seal."""
        if is_redacted(seal):
            return self._start("redacted_thinking", {"type": "redacted_thinking", "data": seal.payload["data"]}) + self._stop()
        return self._start("thinking", dict(_EMPTY["thinking"])) + self._signature(seal) + self._stop()

    def _start(self, kind: str, block: JsonObject) -> bytes:
        self._index += 1
        self._open = self._last = kind
        if kind in _DELTAS:
            name, grows = _DELTAS[kind]
            head = f'{{"type":"content_block_delta","index":{self._index},"delta":{{"type":"{name}","{grows}":'
            self._delta = f"event: content_block_delta\ndata: {head}".encode()
        return _event({"type": "content_block_start", "index": self._index, "content_block": block})

    def _signature(self, seal: Seal) -> bytes:
        delta = {"type": "signature_delta", "signature": word_of(seal)}
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _stop(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return _event({"type": "content_block_stop", "index": self._index})


_TOLD: dict[type[Event], Callable[[Teller, Any], bytes]] = {
    Started: Teller._started,
    TextPiece: Teller._text,
    ThoughtPiece: Teller._thought,
    ThoughtEnded: Teller._thought_ended,
    CallStarted: Teller._call_started,
    CallPiece: Teller._call_piece,
    CallEnded: Teller._call_ended,
    MediaShown: Teller._media,
    BlockEnded: Teller._block_ended,
    Finished: Teller._finished,
    Broken: Teller._broken,
}
_EMPTY: dict[str, JsonObject] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


def tell_whole(events: Iterable[Event], asked: Asked) -> bytes:
    """The whole message; what a stream of the same events adds up to."""
    whole = _Whole(asked)
    for event in events:
        if isinstance(event, Broken):
            return _failed(event.error)
        if isinstance(event, Finished):
            return dumps(whole.finished(event))
        whole.add(event)
    return _failed(_CUT_OFF)


class _Whole:
    """The blocks of one message as they grow."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._ids = Ids(asked)
        self._id, self._tokens = "", Tokens(input=asked.estimate)
        self._blocks: list[JsonObject] = []
        self._pieces: list[str] = []
        """Of the open block, which is the last one."""
        self._open = ""
        self._seals: list[Seal] = []

    def add(self, event: Event) -> None:
        match event:
            case Started():
                self._id, self._tokens = event.id, event.tokens or self._tokens
            case TextPiece() if event.text:
                self._piece("text", event.text)
            case ThoughtPiece() if event.text:
                self._piece("thinking", event.text)
            case MediaShown():
                self._piece("text", placeholder(event.media, alone=self._open != "text"))
            case ThoughtEnded():
                self._thought_ended(event.seal)
            case CallStarted():
                self._begin("tool_use", self._ids.head(event))
            case CallPiece() if self._open == "tool_use":
                self._pieces.append(event.arguments)
            case CallEnded() if self._open == "tool_use":
                self._end()
                if event.seal is not None:
                    self._blocks.insert(len(self._blocks) - 1, sealed_block(event.seal))
            case BlockEnded() if self._open != "tool_use":
                self._end()

    def finished(self, event: Finished) -> JsonObject:
        half = self._open == "tool_use" and is_cut(event.word)
        if half:
            self._blocks.pop()
            self._pieces.clear()
            self._open = ""
        self._end()
        tokens = event.tokens or self._tokens
        return {
            **head_of(self._id, self._asked),
            "content": self._blocks,
            "stop_reason": stop_reason(event, None if half else self._ids.count > 0, self._asked),
            "stop_sequence": event.stop_sequence or None,
            "usage": last_usage(tokens),
        }

    def _thought_ended(self, seal: Seal | None) -> None:
        if self._open == "thinking":
            self._end()
            if seal is not None and not is_redacted(seal):
                self._blocks[-1]["signature"] = word_of(seal)
            elif seal is not None:
                self._blocks.append(sealed_block(seal))
        elif seal is not None and self._blocks and self._blocks[-1]["type"] == "text":
            self._seals.append(seal)
        elif seal is not None:
            self._end()
            self._blocks.append(sealed_block(seal))

    def _piece(self, kind: str, text: str) -> None:
        if self._open != kind or self._seals:
            self._begin(kind, dict(_EMPTY[kind]))
        self._pieces.append(text)

    def _begin(self, kind: str, block: JsonObject) -> None:
        self._end()
        self._blocks += map(sealed_block, self._seals)
        self._seals.clear()
        self._blocks.append(block)
        self._open = kind

    def _end(self) -> None:
        text, kind = "".join(self._pieces), self._open
        self._pieces.clear()
        self._open = ""
        if kind == "tool_use":
            self._blocks[-1]["input"] = arguments_of(as_object(text))
        elif kind:
            self._blocks[-1][kind] = text


def _event(document: JsonObject) -> bytes:
    return write_event(dumps(document), text_of(document["type"]))


def _failed(error: ProviderError) -> bytes:
    return answers.write_error(Dialect.MESSAGES, error.status, error.message, error.code)
