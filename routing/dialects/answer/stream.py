"""Bytes → chunks: one round's answer, in whichever form it came.

1. The chunks' raw bytes, joined, are the round's, byte for byte, and do not depend on where it was cut. Only an event that
   the end of the stream cut in two is left out: it says nothing to anybody. What is no UTF-8 is made it.
2. Nothing is read behind the last unit, or behind an error, and nothing that says something passes there.
3. Quiet, where nobody takes part: a read that ends with a whole event and holds nothing of the reader's `LOUD` `passes`, unread.
   So what was said in it is not known, which is not the same as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal, Protocol

from ...errors import BadAnswer
from ...values import Dialect, JsonObject, ProviderError
from ..failures import ERROR_KEY, document_without_empty_error, failure_of_page, without_empty_error
from ..fields import read_json, read_object
from ..sse import ArrayItems, Events
from ..sse import Event as Unit
from .events import Chunk, Ended, Event, Failed, Rank
from .repeated import LONG, Repeated

WHOLE_BYTES = 64 << 20
"""A whole document longer than this is no answer."""
_BLANK = (b"\n\n", b"\n\r\n")
_SAYS, _RESTS, _ENDS = Rank.SAYS, Rank.RESTS, Rank.ENDS


class Reader(Protocol):
    """One dialect, one round: documents → events. Knows nothing of bytes, rounds, or what a client is shown."""

    dialect: ClassVar[Dialect]
    ARRAYS: ClassVar[bool]
    """A stream may also be one JSON array."""
    LOUD: ClassVar[tuple[bytes, ...]]
    """What stands in every event that says more than a little more of what is open."""

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        """One event of a stream."""

    def read_word(self, data: bytes) -> list[Event]:
        """One whose data is no JSON object."""

    def read_whole(self, document: JsonObject) -> list[Event]:
        """A whole answer: `Began`, blocks, each closed, `Ended`, `Done`; or `Failed` alone."""


class Source:
    def __init__(self, reader: Reader, *, quiet: bool = False, bounded: bool = False) -> None:
        """`bounded`: its client waits for all of it, which is kept until then."""
        self.form: Literal["stream", "document"] | None = None
        """None: not known yet."""
        self.dialect = reader.dialect
        self._reader = reader
        self._units: Events | ArrayItems | None = None
        self._whole = bytearray()
        """A whole document, or what came before it is known whether it is one."""
        self._repeated = Repeated()
        """Long texts that are told more than once."""
        self._over = False
        self.quiet = quiet
        self._most = WHOLE_BYTES if bounded else None
        self._size = 0
        self._loud_marks = reader.LOUD
        self._loud = True
        """Content has not come, or the end has begun."""
        self._between = True
        """No half of an event is held."""

    def feed(self, data: bytes) -> Iterable[Chunk]:
        """BadAnswer where it is none. Each unit is read when it is taken: what its reader says of it, and of its blocks, is what
        is known by then, however the bytes were cut."""
        if self._units is None:
            self._whole += data
            if len(self._whole) > WHOLE_BYTES:
                raise _too_long()
            if (units := self._units_for(self._whole)) is None:
                return []
            self._units, self.form = units, "stream"
            self.quiet = self.quiet and type(units) is Events  # an array's items have no end of their own to look for
            data = bytes(self._whole)
            self._whole.clear()
        if self.quiet:
            self._between = data.endswith(_BLANK)
        elif self._most is not None:
            self._size += len(data)
            if self._size > self._most:
                raise _too_long()
        return self._chunks(self._units.feed(data))

    def passes(self, data: bytes) -> bool:
        """Whether these bytes, which follow those that were fed, may leave unread."""
        if self._loud or not (self._between and data.endswith(_BLANK)):
            return False
        for mark in self._loud_marks:  # the quickest way, and nearly all that a quiet stream costs
            if mark in data:
                return False
        return data.isascii() or _as_utf8(data) is data

    def close(self) -> list[Chunk]:
        """The round has no more to say. A last event without its blank line counts if it is whole."""
        if self._units is not None:
            chunks = list(self._chunks([unit for unit in self._units.close() if _is_whole(unit)]))
            for chunk in chunks:
                chunk.form = "ragged" if chunk.form == "event" else chunk.form
            self._repeated = Repeated()
            return chunks
        self.form, raw = "document", document_without_empty_error(_as_utf8(bytes(self._whole)))
        self._whole.clear()
        document = read_object(raw)
        if document is None:
            error = failure_of_page(raw) or ProviderError(
                502, "The provider's answer cannot be read.", "BAD_ANSWER", network=True
            )
            return [Chunk(raw, None, [Failed(error)], self._reader.dialect, form="document")] if raw.strip() else []
        return [Chunk(raw, document, self._reader.read_whole(document), self._reader.dialect, form="document")]

    def _units_for(self, begun: bytearray) -> Events | ArrayItems | None:
        """None while it may be a whole document."""
        start = bytes(begun[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")
        if not start or start.startswith((b"{", b"<")):
            return None
        return ArrayItems() if start.startswith(b"[") and self._reader.ARRAYS else Events()

    def _chunks(self, units: list[Unit]) -> Iterator[Chunk]:
        read, dialect = self._reader.read, self.dialect
        units.reverse()
        while units:
            name, data, raw = unit = units.pop()  # a long one is gone once it is understood
            if not data:
                yield Chunk(_as_utf8(raw), None, (), dialect)
                continue
            if ERROR_KEY in data:
                name, data, raw = without_empty_error(unit)
            document = read_object(data)
            if self._over:
                if document is None:
                    yield Chunk(_as_utf8(raw), None, (), dialect, name, "behind")
                continue
            if document is None and (mended := _as_utf8(raw)) is not raw:
                document, data, raw = read_object(_as_utf8(data)), _as_utf8(data), mended
            if (is_long := len(raw) >= LONG) and document is not None:
                self._repeated.share(document)
            events = read(document, name) if document is not None else self._reader.read_word(data)
            chunk = Chunk(raw, document, events, dialect, name)
            if events:
                rank = events[-1].rank
                self._loud = rank is not _SAYS
                if rank is _ENDS:
                    self._over = type(events[-1]) is not Ended
                if is_long and rank >= _RESTS:
                    chunk.raw, *rest = self._repeated.cut(raw)
                    chunk.rest = tuple(rest)
            yield chunk


def _too_long() -> BadAnswer:
    return BadAnswer(f"The provider's answer is longer than {WHOLE_BYTES >> 20} MiB")


def _as_utf8(raw: bytes) -> bytes:
    """The same bytes, but where they are not UTF-8: clients that are strict about it break off there."""
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw


def _is_whole(unit: Unit) -> bool:
    """Or nothing but white space and comments."""
    if not unit.data:
        return not unit.raw.strip() or unit.raw.lstrip().startswith(b":")
    return unit.data.strip() == b"[DONE]" or read_json(unit.data) is not None
