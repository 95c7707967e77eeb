"""How each dialect's stream says that it is complete, and what of a stream may leave before it has.

1. Inside JSON strings quotes and line breaks are escaped, so nothing that ends a stream can stand in a text.
2. An event leaves as a whole: one that was cut off never does, so what is written behind it stands on a line of its own.
3. Nearly every event is quiet: a search for a few words says that it neither ends the stream nor fails, and it is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..dialects.failures import may_hold_error, without_empty_error
from ..dialects.fields import read_json
from ..dialects.sse import LIMIT, ArrayItems, Events
from ..values import Dialect, Endpoint

_LINE = rb"(?:\A|[\r\n])"
_TYPED_ERROR = _LINE + rb'(?:event: ?error\b|data: ?\{\s{0,4}"type"\s{0,4}:\s{0,4}"error")'
_BARE_ERROR = rb'(?:\A[\s\[,]{0,8}|[\r\n]|\A)(?:data: ?)?\{\s{0,4}"error"\s{0,4}:\s{0,4}[{"]'
TERMINAL: Mapping[Dialect, re.Pattern[bytes]] = {
    Dialect.MESSAGES: re.compile(rb'"type"\s{0,4}:\s{0,4}"message_stop"|' + _TYPED_ERROR),
    Dialect.CHAT: re.compile(_LINE + rb'data: ?\[DONE\]|"finish_reason"\s{0,4}:\s{0,4}"|' + _BARE_ERROR),
    Dialect.RESPONSES: re.compile(rb'"type"\s{0,4}:\s{0,4}"response\.(?:completed|incomplete|failed|cancelled)"|' + _TYPED_ERROR),
    Dialect.GEMINI: re.compile(rb'"(?:finishReason|blockReason)"\s{0,4}:\s{0,4}"|' + _BARE_ERROR),
}
"""What to look for in whole events. An error event is the end of its stream too."""
_LOUD: Mapping[Dialect, tuple[bytes, ...]] = {
    Dialect.MESSAGES: (b'"message_stop"', b"error"),
    Dialect.CHAT: (b"[DONE]", b'"error"'),
    Dialect.RESPONSES: (b'"response.c', b'"response.incomplete"', b'"response.failed"', b"error"),
    Dialect.GEMINI: (b'Reason"', b'"error"'),
}
"""Without one of these there is no match."""
_REASON, _NO_REASON = b'"finish_reason"', (b'"finish_reason":null', b'"finish_reason": null')
"""Chat's stands in every event."""

_NOTHING = re.compile(rb"(?:\s|:[^\r\n]*|event: ?ping\r?\ndata:[^\r\n]*)*")
"""Comments, pings, white space."""
_BREAKS = (b"\n\n", b"\n\r\n", b"\r\r")
_LONGEST_BREAK = 3


def says_nothing(events: bytes) -> bool:
    """Whether these whole events are nothing but keep-alives of the provider's."""
    return _NOTHING.fullmatch(events) is not None


class Passage:
    """Lets the bytes of one stream through, whole events only, and knows whether its end has passed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.complete = False
        self._terminal = TERMINAL[endpoint.dialect]
        self._loud = _LOUD[endpoint.dialect]
        self._reasons = endpoint.dialect is Dialect.CHAT
        self._held = bytearray()
        self._items = ArrayItems() if endpoint.json_array else None
        self._ended = self._items is None
        """The array is closed."""
        self._said = False
        """The terminal event has passed."""

    def feed(self, chunk: bytes) -> bytes:
        """What may leave now. BadAnswer where an array is none."""
        return self._passed(self._whole_events(chunk) if self._items is None else self._whole_items(chunk, self._items))

    def close(self) -> bytes:
        """The stream is over: what is left, if it is whole or comes behind the end."""
        rest = bytes(self._held) if self._items is None else b"".join(event.raw for event in self._items.close())
        if self._items is None and rest.strip() and not self.complete and _is_event(rest):
            rest = self._passed(rest)
            return rest if self.complete else rest + b"\n\n"
        return rest if self.complete else b""

    def _passed(self, whole: bytes) -> bytes:
        if self._is_loud(whole):
            whole = self._without_empty_errors(whole)
            self._said = self._said or self._terminal.search(whole) is not None
        self.complete = self._said and self._ended
        return whole

    def _is_loud(self, whole: bytes) -> bool:
        for word in self._loud:
            if word in whole:
                return True
        if not self._reasons or not (reasons := whole.count(_REASON)):
            return False
        return whole.count(_NO_REASON[0]) != reasons and whole.count(_NO_REASON[1]) != reasons

    def _without_empty_errors(self, whole: bytes) -> bytes:
        if self._items is not None or not may_hold_error(whole):
            return whole
        reader = Events()
        return b"".join(without_empty_error(event).raw for event in (*reader.feed(whole), *reader.close()))

    def _whole_events(self, chunk: bytes) -> bytes:
        held = self._held
        if not held and chunk.endswith(_BREAKS):
            return chunk  # as nearly every chunk does
        since = max(0, len(held) - _LONGEST_BREAK)
        held += chunk
        cut = max((at + len(mark) if (at := held.rfind(mark, since)) >= 0 else 0) for mark in _BREAKS)
        if len(held) - cut > LIMIT:
            cut = len(held)
        whole = bytes(held[:cut])
        del held[:cut]
        return whole

    def _whole_items(self, chunk: bytes, items: ArrayItems) -> bytes:
        events = items.feed(chunk)
        self._ended = self._ended or any(not event.data for event in events)
        return b"".join(without_empty_error(event).raw for event in events)


def _is_event(block: bytes) -> bool:
    """Nothing but the blank line is missing."""
    data = b"".join(event.data for event in Events().feed(block + b"\n\n")).strip()
    return data == b"[DONE]" or read_json(data) is not None
