"""Bytes → chunks: one round's answer, in whichever form it came.

1. The chunks' raw bytes, joined, are the round's, byte for byte, and do not depend on where it was cut. Only an event that
   the end of the stream cut in two is left out: it says nothing to anybody. What is no UTF-8 is made it.
2. Nothing is read behind the last unit, or behind an error, and nothing that says something passes there.
3. Quiet, where nobody takes part: a read that ends with a whole event `passes`, unread, where it is the event before with
   another text in it, or holds nothing of the reader's `LOUD`. What it said is not known, which is not the same as nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Literal

from ...errors import BadAnswer
from ...jsonbytes import as_utf8, dumps
from ...values import Dialect, JsonObject
from ..failures import failure_of_page, without_empty_error
from ..fields import read_json, read_object, text_of
from ..sse import ArrayItems, Events, write_event
from ..sse import Event as Unit
from ..translation.neutral import Tokens
from .echoes import Echoes, texts_behind
from .events import UNREADABLE, Began, Block, Chunk, Ended, Event, Failed, Field, Opened, Piece, Rank
from .repeated import LONG, Repeated
from .said import keep_nothing

WHOLE_BYTES = 64 << 20
"""A whole document longer than this is no answer."""
CALLS_BYTES = 1 << 20
"""So much of calls is kept where nobody takes part."""
_DONE = b"[DONE]"
_BLANK = (b"\n\n", b"\n\r\n")
_QUOTE, _BACKSLASH = b'"', ord("\\")
_LOOKS = 5
"""So many units are read whatever they are, after something began: most of what follows is like them but for its text."""
_COUNTS = b'"usage"'
_NO_COUNT = (b',"usage":null', b', "usage": null')
"""No text: quotes in a text are escaped."""
_NUMBERED = b'index"'
_INDEX = re.compile(_NUMBERED + rb"\s*:\s*-?\d+\D")
"""Of a choice, a candidate, a block, an item, a call: whose text it is."""
_NO_FRAME = (b"\0", b"\0")
"""No event is like that."""
_SAYS, _ENDS = Rank.SAYS, Rank.ENDS


class AnyReader(ABC):
    """One dialect, one round: documents → events. Knows nothing of bytes, rounds, or what a client is shown."""

    dialect: Dialect
    ARRAYS: ClassVar[bool] = False
    """A stream may also be one JSON array."""
    LOUD: ClassVar[tuple[bytes, ...]] = ()
    """One of these stands in every event that ends something, or says that it failed."""
    CALLS: ClassVar[tuple[bytes, ...]] = ()
    """One of these stands in every event that begins a call, if none of `LOUD` does."""

    def __init__(self, maker: str = "", id: str = "") -> None:
        """`maker`: the provider's id. `id`: of an answer that does not say who it is."""
        self._maker, self._id = maker, id
        self._began = False

    @abstractmethod
    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        """One event of a stream."""

    def read_word(self, data: bytes) -> list[Event]:
        """One whose data is no JSON object."""
        return [Field("", None)]

    @abstractmethod
    def read_whole(self, document: JsonObject) -> list[Event]:
        """A whole answer: `Began`, blocks, each closed, `Ended`, `Done`; or `Failed` alone."""

    def _told_who(self, id: object, model: object, tokens: Tokens | None = None) -> list[Event]:
        """Once."""
        if self._began:
            return []
        self._began = True
        return [Began(text_of(id) or self._id, text_of(model), tokens)]


class Source:
    def __init__(
        self,
        reader: AnyReader,
        *,
        quiet: Callable[[], AnyReader] | None = None,
        bounded: bool = False,
        anew: bool = False,
        abroad: bool = False,
    ) -> None:
        """`quiet`: nobody takes part, and what passed unread is read by another reader if it has to be. `bounded`: its client
        waits for all of it, which is kept until then. `anew`: none of it leaves as it came. `abroad`: the client hears another
        dialect, and no event that nobody understood."""
        self.form: Literal["stream", "document"] | None = None
        """None: not known yet."""
        self.dialect = reader.dialect
        self._reader = reader
        self._units: Events | ArrayItems | None = None
        self._whole = bytearray()
        """A whole document, or what came before it is known whether it is one."""
        self._repeated = Repeated()
        """Long texts that are told more than once."""
        self._over = self._said_all = False
        """The end has come; so has a bare word that ends the stream."""
        self.quiet, self._another = quiet is not None, quiet
        self.calm = False
        """Content has come, its end has not, and no half of an event is held: what follows may pass."""
        self._anew = anew
        self._abroad = abroad
        self._most = WHOLE_BYTES if bounded else None
        self._size = 0
        """Of what is kept."""
        self._marks = reader.LOUD + reader.CALLS
        self._loud = True
        self._before, self._after = _NO_FRAME
        """What stood around the text of the event that was read last."""
        self._start = 0
        self._long = 0
        """The size of an event whose text is worth looking at."""
        self._marker = _NO_FRAME[0]
        """What stands before a text, whatever stands around it."""
        self._indexes: frozenset[bytes] = frozenset()
        """Those around it."""
        self.echoes: Echoes | None = None
        """Looks at what passes."""
        self._looks = _LOOKS
        self._newest = self._told = b""
        """What passed last; what of it was looked at."""
        self.same: Block | None = None
        """Its plain pieces leave for `left`, once they are kept, until something else comes: as they come, or as `tell` writes
        another dialect's for the block where the client sees them."""
        self.tell: Callable[[Event], bytes] | None = None
        self.keep: Callable[[str], None] = keep_nothing
        self.left: list[bytes] = []
        self.hides_count = False
        """Chat's: it counts because we asked for that."""
        self.strips = False
        """And says in each event that it has not counted yet."""
        self._since_calls: list[bytes] | None = None
        """What has come since the first call began."""

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
            return self._loudly(data, self._units)
        if self._most is not None:
            self._size += len(data)
            if self._size > self._most:
                raise _too_long()
        return self._chunks(self._units.feed(data))

    def _loudly(self, data: bytes, units: Events | ArrayItems) -> Iterator[Chunk]:
        """Where nobody takes part, what cannot pass is read; and what may follow it unread is known by it."""
        if self.echoes is not None:
            self._tell_newest(self.echoes)
        self.calm, self._newest = False, b""
        chunk: Chunk | None = None
        for chunk in self._chunks(units.feed(data)):
            opens = [event.block.kind for event in chunk.events if type(event) is Opened]
            self._looks = _LOOKS if opens else self._looks - 1
            if self._since_calls is None and "call" in opens:
                self._since_calls, self._marks = [], self._reader.LOUD
            if self._since_calls is not None:
                self._keep(chunk.raw)
            yield chunk
        if chunk is not None and not self._loud and data.endswith(_BLANK):
            self.calm = True
            self._before, self._after = _frame_of(chunk)
            self._start = len(self._before)
            if self.echoes is not None:
                self._long = self._start + len(self._after) + self.echoes.short
            self._marker = self._before[max(self._before.rfind(b"{"), self._before.rfind(b",")) :]
            self._indexes = frozenset(_INDEX.findall(self._before) + _INDEX.findall(self._after))

    def passes(self, data: bytes) -> bool:
        """Whether these bytes, which follow those that were fed, may leave unread. To be asked where it is `calm`."""
        one = data.startswith(self._before) and data.endswith(self._after) and self._is_one(data)
        if not one:
            if self.hides_count and _COUNTS in data:
                return False
            if self._looks > 0 or not data.endswith(_BLANK):
                return False
            for mark in self._marks:
                if mark in data:
                    return False
        if not data.isascii() and as_utf8(data) is not data:
            return False
        if (echoes := self.echoes) is not None and (
            not one or len(data) >= self._long or data[self._start] in echoes.raw_nexts or echoes.busy or echoes.may_escape(data)
        ):
            texts = data[self._start : len(data) - len(self._after)] if one else self._texts_in(data)
            self._tell_newest(echoes)
            if texts is None or not echoes.pass_unread(texts):
                return False
            self._told = data
        self._newest = data
        if self._since_calls is not None:
            self._keep(data)
        return True

    def _texts_in(self, data: bytes) -> bytes | None:
        """More of the same text, in events of any number; None where that is not sure."""
        same = data.count(_NUMBERED) == sum(map(data.count, self._indexes))
        return texts_behind(self._marker, data) if same else None

    def _tell_newest(self, echoes: Echoes) -> None:
        """What passed last, where it was not even looked at: an event like the one that was read last."""
        if self._newest and self._newest is not self._told:
            text = self._newest[self._start : len(self._newest) - len(self._after)]
            echoes.newest, self._told = text.decode("utf-8", "surrogatepass"), self._newest

    def _is_one(self, data: bytes) -> bool:
        """Whether nothing but a string stands between what stood around the last one."""
        start, end = self._start, len(data) - len(self._after)
        quote = data.find(_QUOTE, start)
        if quote == end:
            return True
        if not start < quote < end or data[quote - 1] != _BACKSLASH:
            return False
        bare = data[start:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        return _QUOTE not in bare and not bare.endswith(b"\\")

    def _keep(self, raw: bytes) -> None:
        self._size += len(raw)
        if self._since_calls is not None and self._size <= CALLS_BYTES:
            self._since_calls.append(raw)

    def newest(self) -> list[Event]:
        """What was said in the last bytes that passed, where nothing came behind them."""
        return self._read_again((self._newest,))

    def since_calls(self) -> list[Event] | None:
        """What was said since the first call began; None where that was not kept."""
        reads = self._since_calls
        return self._read_again(reads) if reads is not None and self._size <= CALLS_BYTES else None

    def _read_again(self, reads: Iterable[bytes]) -> list[Event]:
        found: list[Event] = []
        if self._another is None:
            return found
        reader, units = self._another(), Events()
        for unit in units.feed(b"".join(reads)):
            document = read_object(unit.data)
            found += reader.read(document, unit.name) if document is not None else reader.read_word(unit.data)
        return found

    def _word(self, data: bytes) -> list[Event]:
        """What is no JSON. Half an object holds something that is missing from now on."""
        if self._abroad and data.lstrip().startswith(b"{"):
            return [Failed(UNREADABLE)]
        return self._reader.read_word(data)

    def close(self) -> list[Chunk]:
        """The round has no more to say. A last event without its blank line counts if it is whole."""
        self.same = None
        if self._units is not None:
            chunks = list(self._chunks([unit for unit in self._units.close() if _is_whole(unit)]))
            for chunk in chunks:
                chunk.form = "ragged" if chunk.form == "event" else chunk.form
            self._repeated = Repeated()
            return chunks
        self.form, raw = "document", as_utf8(bytes(self._whole))
        self._whole.clear()
        document = read_object(raw)
        if document is not None and (settled := without_empty_error(document)) is not document:
            document, raw = settled, dumps(settled)
        if document is None:
            error = failure_of_page(raw) or UNREADABLE
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
            name, data, raw = units.pop()  # a long one is gone once it is understood
            if not raw.isascii() and (mended := as_utf8(raw)) is not raw:
                data, raw = as_utf8(data), mended
            if not data:
                yield Chunk(raw, None, (), dialect)
                continue
            if self.hides_count:
                data, bare = without_empty_count(data), without_empty_count(raw)
                self.strips, raw = self.strips or bare is not raw, bare
            document = read_object(data)
            if document is not None and ("error" in document or "response" in document) and name != "error":
                settled = without_empty_error(document)
                if settled is not document:
                    new = dumps(settled)
                    raw = raw.replace(data, new, 1) if data in raw else write_event(new, name)
                    document, data = settled, new
            if self._over:
                if not self._said_all and data.strip() == _DONE:
                    self._said_all = True
                    yield Chunk(raw, None, (), dialect, name, "behind")
                continue
            if (is_long := len(raw) >= LONG) and document is not None:
                self._repeated.share(document)
            events = read(document, name) if document is not None else self._word(data)
            if (same := self.same) is not None:
                echoes, tell = self.echoes, self.tell
                if (
                    len(events) == 1
                    and type(event := events[0]) is Piece
                    and event.block is same
                    and (tell is not None or event.native is None)
                    and (echoes is None or echoes.lets(event))
                ):
                    if echoes is not None:
                        echoes.newest = event.text or echoes.newest
                    self.keep(event.text)
                    if tell is not None:
                        event.block = same.into or same
                    self.left.append(raw if tell is None else tell(event))
                    continue
                self.same = None
            chunk = Chunk(raw, document, events, dialect, name)
            if events:
                rank = events[-1].rank
                self._loud = rank is not _SAYS
                if rank is _ENDS:
                    self._over, self._said_all = type(events[-1]) is not Ended, document is None
                if is_long and chunk.rests and not self._anew:
                    chunk.raw, *rest = self._repeated.cut(raw)
                    chunk.rest = tuple(rest)
            yield chunk


def without_empty_count(data: bytes) -> bytes:
    """A stream that counts at its end says in each event that it has not counted yet."""
    if _COUNTS in data:
        for empty in _NO_COUNT:
            if empty in data:
                return data.replace(empty, b"")
    return data


def _frame_of(chunk: Chunk) -> tuple[bytes, bytes]:
    """What stands around the text of an event that says one piece of text, and nothing else."""
    if len(chunk.events) == 1 and type(piece := chunk.events[0]) is Piece and piece.text:
        text = dumps(piece.text)
        if chunk.raw.count(text) == 1:
            before, _, after = chunk.raw.partition(text)
            return before + _QUOTE, _QUOTE + after
    return _NO_FRAME


def _too_long() -> BadAnswer:
    return BadAnswer(f"The provider's answer is longer than {WHOLE_BYTES >> 20} MiB")


def _is_whole(unit: Unit) -> bool:
    """Or nothing but white space and comments."""
    if not unit.data:
        return not unit.raw.strip() or unit.raw.lstrip().startswith(b":")
    return unit.data.strip() == _DONE or read_json(unit.data) is not None
