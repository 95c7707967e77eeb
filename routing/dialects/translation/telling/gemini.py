"""Gemini's generateContent: neutral events as an answer, in events or one JSON array, with Code Assist's envelope or without.

1. Only the last chunk has a `finishReason` and the usage, and it has a part: Gemini CLI takes less for a broken stream.
2. A call leaves whole. Thinking is marked as such, or not there at all.
3. A thought's seal stands on an empty part of its own behind the thought, which has left by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject, ProviderError
from ... import answers
from ...finish import decide_finish, is_cut
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
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    Tokens,
)
from . import words
from .gemini_parts import Joined, Parts, identity_of, usage_of

_CUT_OFF = ProviderError(502, words.CUT_OFF, "UPSTREAM_ERROR")
_NOTHING = b'{"text":""}'


class Teller:
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._parts = Parts(asked)
        self._begun = False
        """A chunk has left: an array is open."""
        self._over = False
        self._finished = False
        self._tokens = Tokens(input=asked.estimate)
        self._frame("")

    def tell(self, event: Event) -> bytes:
        if self._over:
            return b""
        if isinstance(event, TextPiece) and self._parts.is_idle:
            self._parts.spoken = True
            return self._chunk(b'{"text":' + dumps(event.text) + b"}") if event.text else b""
        return _TOLD[type(event)](self, event)

    def close(self) -> bytes:
        return b"]" if self._finished and self._asked.endpoint.json_array else b""

    def _frame(self, id: str) -> None:
        """What stands around the parts of every chunk: nothing in it changes but the very first byte of an array."""
        array, envelope = self._asked.endpoint.json_array, self._asked.endpoint.envelope
        self._tail = dumps(identity_of(id, self._asked))[1:-1]
        self._head = (
            (b"" if array else b"data: ") + (b'{"response":' if envelope else b"") + b'{"candidates":[{"content":{"parts":['
        )
        self._end = (b"}" if envelope else b"") + (b"" if array else b"\n\n")
        self._rest = b'],"role":"model"},"index":0}],' + self._tail + b"}" + self._end

    def _chunk(self, parts: bytes) -> bytes:
        return b"".join((self._between(), self._head, parts, self._rest))

    def _between(self) -> bytes:
        begun, self._begun = self._begun, True
        return (b",\r\n" if begun else b"[") if self._asked.endpoint.json_array else b""

    def _started(self, event: Started) -> bytes:
        self._tokens = event.tokens or self._tokens
        if not self._begun:
            self._frame(event.id)
        return b""

    def _part(self, event: Event) -> bytes:
        parts = self._parts.of(event)
        return self._chunk(dumps(parts)[1:-1]) if parts else b""

    def _finish(self, event: Finished) -> bytes:
        half = is_cut(event.word) and self._parts.drop()
        parts = self._parts.rest()
        written = dumps(parts)[1:-1] if parts else _NOTHING
        reason = dumps(decide_finish(event.word, Dialect.GEMINI, calls=None if half else self._parts.calls > 0).word)
        usage = dumps(usage_of(event.tokens or self._tokens))
        self._over = self._finished = True
        middle = b'],"role":"model"},"finishReason":' + reason + b',"index":0}],"usageMetadata":' + usage + b","
        return b"".join((self._between(), self._head, written, middle, self._tail, b"}", self._end))

    def _broken(self, event: Broken) -> bytes:
        self._over = True
        error, array = event.error, self._asked.endpoint.json_array
        if array and not self._begun:
            return answers.write_error(Dialect.GEMINI, error.status, error.message, error.code, json_array=True)
        return answers.write_error_event(Dialect.GEMINI, error.status, error.message, error.code, json_array=array)


_TOLD: dict[type[Event], Callable[[Teller, Any], bytes]] = {
    Started: Teller._started,
    TextPiece: Teller._part,
    ThoughtPiece: Teller._part,
    ThoughtEnded: Teller._part,
    CallStarted: Teller._part,
    CallPiece: Teller._part,
    CallEnded: Teller._part,
    MediaShown: Teller._part,
    BlockEnded: Teller._part,
    Finished: Teller._finish,
    Broken: Teller._broken,
}


def tell_whole(events: Iterable[Event], asked: Asked) -> bytes:
    """The whole answer; what a stream of the same events adds up to."""
    parts, joined = Parts(asked), Joined()
    id, tokens = "", Tokens(input=asked.estimate)
    for event in events:
        match event:
            case Started():
                id, tokens = event.id, event.tokens or tokens
            case Broken():
                return _failed(event.error)
            case Finished():
                half = is_cut(event.word) and parts.drop()
                joined.add(parts.rest())
                word = decide_finish(event.word, Dialect.GEMINI, calls=None if half else parts.calls > 0).word
                content: JsonObject = {"parts": joined.parts, "role": "model"}
                candidate: JsonObject = {"content": content, "finishReason": word, "index": 0}
                usage = usage_of(event.tokens or tokens)
                answer: JsonObject = {"candidates": [candidate], "usageMetadata": usage, **identity_of(id, asked)}
                return dumps({"response": answer} if asked.endpoint.envelope else answer)
            case ThoughtEnded(None) | BlockEnded():
                joined.close()
            case _:
                joined.add(parts.of(event))
    return _failed(_CUT_OFF)


def _failed(error: ProviderError) -> bytes:
    return answers.write_error(Dialect.GEMINI, error.status, error.message, error.code)
