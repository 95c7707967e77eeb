"""Event streams: bytes in, events out; and one event back to bytes.

1. The events depend on the bytes alone, never on where the chunks were cut.
2. The `raw` of all events, `close()` included, joined is the input, byte for byte.
3. A block without data (a comment, a blank line) is an event with empty `data`: forward its `raw`, nothing more.
4. An event over the limit is a `BadAnswer`; events before it are delivered first. Work is linear in the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..errors import BadAnswer
from ..short_cache import of_short

LIMIT = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"

_PLAIN = re.compile(_LOOKS := rb"(?:event: ?([^\r\n]*+)\r?\n)?+data: ?([^\r\n]*+)\r?\n\r?\n")
"""What nearly every event looks like; must mean exactly what `_read_block` makes of it."""
_PLAINS = re.compile(rb"(" + _LOOKS + rb")")
_SHORT = 128 << 10
"""So much is cut all at once; of a long event no second copy is made for that."""
_END = re.compile(rb"\n\r?\n|\r\r|\n\r(?=[^\n])")
"""A line's end and a blank line. A CR at the very end waits: an LF may belong to it."""
_BLANK = re.compile(rb"\r?\n|\r(?=[^\n])")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_CARRY = 2
"""How many bytes before a cut may belong to an `_END` behind it."""


class Event(NamedTuple):
    """A tuple, not a dataclass: streams make hundreds of thousands of them."""

    name: str
    data: bytes
    raw: bytes


_event = tuple.__new__
"""What `Event(...)` comes to, at half the price."""


def write_event(data: bytes, name: str = "") -> bytes:
    """One event; line breaks in the data (there are none in compact JSON) become several `data` lines."""
    head = f"event: {name}\n".encode() if name else b""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    return head + b"data: " + data + b"\n\n"


def write_event_pieces(data: Iterable[bytes], name: str = "") -> Iterator[bytes]:
    """The same of compact JSON that comes in pieces."""
    yield (f"event: {name}\ndata: " if name else "data: ").encode()
    yield from data
    yield b"\n\n"


@of_short(256)
def _word(name: bytes) -> str:
    return name.decode("utf-8", "replace")


class Events:
    """Reads server-sent events (the WHATWG rules; `id` and `retry` are left in `raw`)."""

    def __init__(self, limit_bytes: int = LIMIT) -> None:
        self._limit = limit_bytes
        self._held = bytearray()
        self._seen = 0
        self._begun = False
        self._broken = False

    def feed(self, chunk: bytes) -> list[Event]:
        if self._broken:
            raise _too_long(self._limit)
        held = self._held
        if not held:  # nearly always: what comes ends with a whole event
            events, rest = self._cut(chunk)
            if rest < len(chunk):
                held += chunk[rest:]
                self._seen = 0
            return events if not (held or self._broken) else self._within_limit(events)
        held += chunk
        if held[0] not in b"\r\n" and _END.search(held, max(0, self._seen - _CARRY)) is None:
            self._seen = len(held)
            return self._within_limit([])
        block = bytes(held)
        held.clear()
        events, rest = self._cut(block)
        held += block[rest:]
        self._seen = 0
        return self._within_limit(events)

    def close(self) -> list[Event]:
        """What the stream left without its blank line, as a last event: some providers end so."""
        if self._broken:
            raise _too_long(self._limit)
        rest, self._held = bytes(self._held), bytearray()
        return [self._read_block(rest)] if rest else []

    def _cut(self, text: bytes) -> tuple[list[Event], int]:
        place, size, limit = 0, len(text), self._limit
        if size <= min(limit, _SHORT):
            plain = _PLAINS.findall(text)
            if sum([len(raw) for raw, _, _ in plain]) == size:  # nearly always: nothing else stands between them
                self._begun = self._begun or bool(plain)
                return [_event(Event, (_word(name) if name else "", data, raw)) for raw, name, data in plain], size
        events: list[Event] = []
        while place < size:
            found = _PLAIN.match(text, place)
            if found is not None and (until := found.end()) - place <= limit:
                name, data = found.groups()
                events.append(_event(Event, (_word(name or b""), data, text[place:until])))
                self._begun = True
                place = until
                continue
            end = _BLANK.match(text, place) or _END.search(text, place)
            if end is None:
                break
            if end.end() - place > limit:
                self._broken = True
                break
            events.append(self._read_block(text[place : end.end()]))
            place = end.end()
        return events, place

    def _read_block(self, raw: bytes) -> Event:
        block = raw if self._begun else raw.removeprefix(_BOM)
        self._begun = True
        name, data = b"", []
        for line in _LINE_END.split(block):
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ")
        return Event(name.decode("utf-8", "replace"), b"\n".join(data), raw)

    def _within_limit(self, events: list[Event]) -> list[Event]:
        if self._broken or len(self._held) > self._limit:
            self._broken = True
            self._held = bytearray()
            if not events:
                raise _too_long(self._limit)
        return events


_OUTSIDE = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+', re.DOTALL)
"""Everything up to the next bracket, whole strings included."""
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
"""The rest of a string, without its closing quote."""
_QUOTE, _ARRAY = b'"['
_DEEPEST = 1024
"""JSON nested deeper is refused by every reader behind this one."""


class ArrayItems:
    """Reads Gemini's stream without `alt=sse`: one JSON array whose objects arrive one by one. Same interface as `Events`."""

    def __init__(self, limit_bytes: int = LIMIT) -> None:
        self._limit = limit_bytes
        self._held = bytearray()
        self._place = 0
        self._depth = 0
        self._base: int | None = None
        """Depth at which an object is an item: 1 in the array, 0 for an object that stands alone (an error)."""
        self._start = -1
        self._quoted = False
        self._ended = False
        self._broken: BadAnswer | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        if self._broken:
            raise self._broken
        self._held += chunk
        events: list[Event] = []
        try:
            self._scan(events)
            if len(self._held) > self._limit:
                raise _too_long(self._limit)
        except BadAnswer as error:
            self._broken = error
            self._held = bytearray()
            if not events:
                raise
        return events

    def close(self) -> list[Event]:
        """What is left. An item that the end cut off is given as it is: its JSON will not parse."""
        if self._broken:
            raise self._broken
        rest, self._held = bytes(self._held), bytearray()
        if not rest:
            return []
        return [Event("", rest[self._start :] if self._start >= 0 else b"", rest)]

    def _scan(self, events: list[Event]) -> None:
        text = self._held
        size, place, sent = len(text), self._place, 0
        while place < size and not self._ended:
            if self._quoted:
                place = _end_of(_INSIDE, text, place)
                if place == size or text[place] != _QUOTE:
                    break
                self._quoted = False
                place += 1
                continue
            place = _end_of(_OUTSIDE, text, place)
            if place == size:
                break
            mark = text[place]
            place += 1
            if mark == _QUOTE:
                self._quoted = True
            elif mark in b"{[":
                self._open(sent, place - 1, mark)
            elif self._shut(sent, place - 1):
                if place - sent > self._limit:
                    raise _too_long(self._limit)
                data = bytes(text[self._start : place]) if self._start >= 0 else b""
                events.append(Event("", data, bytes(text[sent:place])))
                sent, self._start = place, -1
        self._place = place - sent
        if self._start >= 0:
            self._start -= sent
        del text[:sent]

    def _open(self, sent: int, place: int, mark: int) -> None:
        if self._base is None:
            self._base = 1 if mark == _ARRAY else 0
            if not _gap(self._held[sent:place], b""):
                raise BadAnswer("The provider's stream is not a JSON array")
        if self._depth == self._base:
            if mark == _ARRAY or not _gap(self._held[sent:place], b",["):
                raise BadAnswer("The provider's stream is not an array of JSON objects")
            self._start = place
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadAnswer("The provider's stream is nested too deeply")

    def _shut(self, sent: int, place: int) -> bool:
        """True where an item, or the array itself, is complete."""
        self._depth -= 1
        if self._base is None or self._depth < 0:
            raise BadAnswer("The provider's stream is not a JSON array")
        if self._depth:
            return self._depth == self._base
        self._ended = True
        if self._base == 1 and not _gap(self._held[sent:place], b",["):
            raise BadAnswer("The provider's stream is not an array of JSON objects")
        return True


def _end_of(pattern: re.Pattern[bytes], text: bytearray, place: int) -> int:
    found = pattern.match(text, place)
    return found.end() if found else place


def _gap(between: bytes | bytearray, marks: bytes) -> bool:
    return not between.removeprefix(_BOM).strip(b" \t\r\n" + marks)


def _too_long(limit: int) -> BadAnswer:
    return BadAnswer(f"One event of the provider's stream is longer than {limit} bytes")


def headers_for(stream: bool, json_array: bool = False) -> dict[str, str]:
    """The headers that say what the body is."""
    if stream and not json_array:
        return {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return {"content-type": "application/json"}
