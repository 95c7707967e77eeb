"""One answer: rounds of any dialect and form in, the client's bytes out. All that a turn sees of the answer side.

    Source → Reader → Join → [Serial →] Writer

The source cuts bytes into units of the wire, a dialect's reader says what each of them says, the join makes one answer of
several rounds (and knows no dialect), a dialect's writer makes bytes of it.

1. Each round is `begin_round`, any number of `feed`s, `end_round`; then another round, or `finish`, or `fail`.
2. The client gets one start and one end; what ends the answer leaves with `finish` or `fail` alone.
3. Where one round ran in the client's dialect and form, and all of it fits, its bytes are the client's.
4. What the output is does not depend on where the bytes were cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from itertools import chain
from math import inf
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from ...errors import BadAnswer
from ...values import Dialect, FinishReason, JsonObject, ProviderError, Usage
from ..finish import CUT_OFF
from ..translation.neutral import Asked, LeftOut, ToolName
from . import chat, counting, gemini, messages, responses
from .echoes import Echoes
from .events import Chunk, Counted, Event, Failed, Opened, Piece
from .join import Join, without_ends
from .responses.compaction import NOTHING, Summary
from .responses.made import Names
from .said import Content, Said
from .serial import Serial
from .stream import AnyReader, Source, without_empty_count
from .written import AnyWriter

_CUT_OFF = ProviderError(502, CUT_OFF, "UPSTREAM_ERROR")


_MakesReader: TypeAlias = Callable[[str, str], AnyReader]
_MakesWriter: TypeAlias = Callable[[Asked], AnyWriter]


class _Room(Protocol):
    """What each dialect's package offers."""

    @property
    def Reader(self) -> _MakesReader: ...
    @property
    def Abroad(self) -> _MakesReader:
        """Reads for clients of other dialects: what has no neutral form is told in words, made one, or named."""

    @property
    def Writer(self) -> _MakesWriter:
        """Of a stream."""

    @property
    def Whole(self) -> _MakesWriter: ...

    def history(self, content: Content) -> tuple[JsonObject, ...]: ...

    def write_error(
        self, status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
    ) -> bytes: ...

    def is_content(self, data: bytes) -> bool: ...


_DIALECTS: Mapping[Dialect, _Room] = {
    Dialect.MESSAGES: messages,
    Dialect.CHAT: chat,
    Dialect.RESPONSES: responses,
    Dialect.GEMINI: gemini,
}


def write_error(
    dialect: Dialect,
    status: int,
    message: str,
    code: str,
    details: Mapping[str, object] | None = None,
    *,
    json_array: bool = False,
) -> bytes:
    """The body of an error answer. `json_array` where the client asked for a stream that is an array."""
    return _DIALECTS[dialect].write_error(status, message, code, details, json_array=json_array)


def is_content(dialect: Dialect, data: bytes) -> bool:
    """Whether this event's data carries or starts the answer, whatever came before it."""
    return _DIALECTS[dialect].is_content(data)


def writer_for(asked: Asked) -> AnyWriter:
    room = _DIALECTS[asked.endpoint.dialect]
    return room.Writer(asked) if asked.stream else room.Whole(asked)


def reader_of(dialect: Dialect, maker: str = "", id: str = "", *, abroad: bool = False) -> AnyReader:
    """Of one round. `abroad`: it is told to a client of another dialect."""
    room = _DIALECTS[dialect]
    return (room.Abroad if abroad else room.Reader)(maker, id)


class Round(Struct):
    """Who answers, and how."""

    spoken: Dialect
    maker: str = ""
    """The provider's id."""
    tools: Mapping[str, ToolName] = field(default_factory=dict)
    """Tools that were sent under another name or as another kind."""
    compacts: bool = False
    """It writes down the conversation, for a client that asked for a compaction of it."""


class Answer:
    def __init__(self, asked: Asked, *, own: frozenset[str] = frozenset(), quiet: bool = False) -> None:
        """`own`: names of tools that are ours. `quiet`: nobody takes part, so that what only grows need not be read."""
        self._asked = asked
        self._client = asked.endpoint.dialect
        self._history = _DIALECTS[self._client].history
        self._writer = writer_for(asked)
        self._before_end = self._writer
        """The writer as it was when nothing of the end had been written."""
        self._unsent: tuple[list[bytes], list[Chunk]] = [], []
        """What waited then, and the end itself: `fail` may come instead of it."""
        self.quiet = quiet
        """Nobody takes part, and nothing of ours stands in it."""
        passes = quiet and asked.stream
        apart = self._writer.apart
        self._join = Join(self._client, own=own, endings=asked.endings, live=asked.stream, quiet=passes, apart=apart)
        self._serial: Serial | Summary | None = None
        """What brings events in the order in which the writer can tell them."""
        self._source = Source(reader_of(self._client))
        self._round = Round(self._client)
        self._secrets: Collection[str] = ()
        self._foreign = False
        """The running round speaks another dialect than the client, or not as its library reads it."""
        self._pending: list[bytes] = []
        """What may leave as soon as somebody asks."""
        self._due = b""
        """The blank line that the last event which left is lacking."""
        self.echoes: Echoes | None = None
        """What takes the running round's credentials out of it; None where there are none."""
        self._over = self._failed = False
        self._opened = ""
        """Who we said it is, where we began it."""

    @property
    def opens(self) -> bool:
        """Keep-alives of its stream need a beginning, even before a round has said anything."""
        return self._asked.stream and self._writer.opens

    def open(self, *, id: str, model: str, created: int) -> bytes:
        """Begin a stream that nothing is known of yet; nothing where keep-alives need no beginning."""
        if not self.opens:
            return b""
        self._opened = id
        self.quiet = self._source.quiet = False
        self._join.open()
        self._writer.altered = True
        return self._writer.open(id=id, model=model, created=created)

    # --- rounds ---------------------------------------------------------------------------------------------------------

    def begin_round(
        self,
        round_: Round | None = None,
        *,
        exact: bool = False,
        secrets: Collection[str] = (),
        notice: str = "",
        hides_count: bool = False,
    ) -> None:
        """Another round begins; without a word about it, in the client's own dialect. `exact`: the provider is where the
        client was going anyway, and its reason counts even where it is wrong. `secrets`: what the provider was sent, and nobody
        may be told. `notice`: what we tell the person before the first text of all. `hides_count`: its stream counts since we
        asked for that; the client did not."""
        self._round = round_ = round_ or Round(self._client)
        self._secrets = secrets
        self._foreign = round_.spoken is not self._client or round_.compacts or (self._asked.whole_calls and not exact)
        counts, streams = self._asked.endpoint.action == "count", self._asked.stream
        read = partial(reader_of, round_.spoken, round_.maker, self._asked.id if self._foreign else "", abroad=self._foreign)
        passes = self.quiet and streams and not (self._foreign or self._join.altered or self._asked.endpoint.json_array or notice)
        reader, anew = counting.Reader(self._client) if counts else read(), bool(self._join.rounds) or self._foreign
        source = Source(reader, quiet=read if passes else None, bounded=not streams, anew=anew, abroad=self._foreign)
        self._source = source
        source.echoes = self.echoes = Echoes(secrets) if secrets else None
        source.hides_count = hides_count and not self._foreign
        self._writer.begin_round(round_.tools)
        calls = source.since_calls if passes else None
        self._pending += self._written(self._join.begin(foreign=self._foreign, exact=exact, notice=notice, calls=calls))
        if self._serial is not None:
            self._pending += [self._writer.made(event) for event in self._serial.between()]
        self._serial = Serial() if self._foreign else None
        if round_.compacts:
            self._serial = Summary(Names(self._asked).item("cmp", 0))

    def alone(self) -> Callable[[], Answer] | None:
        """Gives what makes of the running round's bytes the client's dialect, for whoever wants to hear that round by itself;
        None where they are it already."""
        return partial(_alone, self._asked, self._round, self._secrets) if self._foreign else None

    def feed(self, data: bytes, now: float = 0.0) -> bytes:
        """The provider's bytes; for the client as many as may leave.

        `feed(b"")` between two rounds: another round follows, so what the one before held back may leave.
        """
        source = self._source
        if source.calm:
            if source.strips:
                data = without_empty_count(data)
            if source.passes(data):
                return data
        if not data:
            return self._released()
        out, self._pending = self._pending, []
        try:
            self._hear(source.feed(data), out, self.echoes, now)
        except BadAnswer as error:
            self._spoil(error)
        return out[0] if len(out) == 1 else b"".join(out)

    def _released(self, *, begins: bool = False) -> bytes:
        """What waits for another round, which follows. `begins`: with how the answer begins, also where nothing stands behind."""
        out, join = self._take(), self._join
        if join.over and join.content.complete and self._asked.stream:
            out += self._written(join.release(begins=begins))
        return b"".join(out)

    @property
    def due(self) -> float:
        """When `tick` is to be told the time."""
        return self.echoes.due if self.echoes is not None else inf

    def tick(self, now: float) -> bytes:
        """What leaves because it waited too long."""
        out = self._take()
        if self.echoes is not None:
            self._hear(self.echoes.tick(now), out)
        return b"".join(out)

    def end_round(self) -> Said:
        """The round's bytes are over: what it said."""
        try:
            chunks = self._source.close()
            if self._source.form == "document" and self._asked.stream:
                self._join.composes = True
            self._hear(chunks, self._pending, self.echoes)
            if self.echoes is not None:
                self._hear(self.echoes.rest(), self._pending)
            if chunks and chunks[-1].form == "ragged" and self._pending and not self._asked.endpoint.json_array:
                self._due = b"\n\n"
        except BadAnswer as error:
            self._spoil(error)
        join, content = self._join, self._join.content
        if isinstance(self._serial, Summary) and content.complete and not content.text.strip():
            content.error = NOTHING
        if self._source.quiet:
            join.overhear(self._source.newest())
        if content.done and not content.complete:
            content.error = content.error or _CUT_OFF
        id = content.began.id if content.began is not None else ""
        for block, _ in content.calls:
            if not (block.named or block.id) and (join.is_own(block) or self._writer.by_order):
                self._writer.name(block, id)  # its result is told under this id
        join.end()
        calls = content.calls
        return Said(
            text=content.text,
            calls=tuple(call for _, call in calls),
            own=tuple(call for block, call in calls if join.is_own(block)),
            finish=self._finish_reason(content),
            usage=content.usage,
            id=self.round_id,
            native=() if self.quiet else self._history(content),
            complete=content.complete,
            error=content.error,
        )

    def _finish_reason(self, content: Content) -> FinishReason:
        """Why the round ended, for us. A refusal is no plain stop, though its reason says so."""
        word = content.ended.finish_reason if content.ended is not None else ""
        error = content.error is not None
        finish = self._asked.endings.read(word, self._source.dialect, calls=content.holds_calls, error=error)
        return "content_filter" if finish == "stop" and content.refused else finish

    # --- the end --------------------------------------------------------------------------------------------------------

    def finish(self) -> Iterable[bytes]:
        """The one end of the answer, which is an error where the last round broke off after it had shown something."""
        if self._over:
            return ()
        join = self._join
        self._over, self._before_end = True, copy(self._writer)
        if not (join.over and join.content.complete) and (join.visible or not join.rounds):
            return self._broken_off()
        chunks = join.finish()
        if not self._asked.stream:
            self._written(chunks)
            return self._writer.finish()
        waited = self._take()
        self._unsent = waited, list(chunks)
        at = next((place for place, chunk in enumerate(chunks) if chunk.rests), len(chunks))
        before, end = self._written(chunks[:at]), self._pieces(chunks[at:])
        return chain(waited, before, end if self._writer.opens else list(end))

    def _broken_off(self) -> Iterable[bytes]:
        told = self._join.broken() if self._asked.stream else None
        if told is not None:
            return [*self._take(), *self._written(told)]
        return [*self._take(), self._error(self._join.content.error or _CUT_OFF)]

    def fail(self, status: int, message: str, code: str) -> bytes:
        """Instead of `finish`: the error that ends a stream which has begun. In JSON: the whole error answer."""
        if self._failed:
            return b""
        over, self._over, self._failed = self._over, True, True
        error, told = ProviderError(status, message, code), self._join.content.error
        if over or not self._asked.stream:  # what `finish` gave never left: what the model said does
            self._writer, (waited, unsent) = self._before_end, self._unsent
            self._join.altered = True
            return b"".join([*waited, *self._written(without_ends(unsent))]) + self._error(error)
        if told is not None and told.message == message and (chunks := self._join.broken()) is not None:
            return b"".join([*self._take(), *self._written(chunks)])  # the provider's own words say it best
        return b"".join(self._take()) + self._error(error)

    def keep_alive(self) -> bytes:
        """What keeps the connection open and is valid at this very moment."""
        if self._over:
            return b""
        if not self._asked.stream:
            return b" "
        writer, join = self._writer, self._join
        out = self._released(begins=writer.opens)
        join.altered = join.altered or (writer.opens and join.started)  # an event of ours moves the numbers
        return out + self._due_line() + writer.keep_alive()

    def _error(self, error: ProviderError) -> bytes:
        if not self._asked.stream:
            return write_error(self._client, error.status, error.message, error.code)
        self._join.content.settle()
        waits = self._join.release() if self._join.started else []
        return b"".join(self._written([*waits, Chunk(b"", None, [Failed(error)], self._client)]))

    def _spoil(self, error: BadAnswer) -> None:
        content = self._join.content
        content.error = content.error or ProviderError(error.status, error.message, error.code, network=True)

    # --- what a turn asks -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Who the answer says it is, once a round has counted."""
        if self._opened:
            return self._opened
        first = self._join.rounds[0] if self._join.rounds else None
        return self._id_of(first.content, first.foreign) if first is not None else ""

    @property
    def round_id(self) -> str:
        """Who the running round says it is."""
        return self._id_of(self._join.content, self._foreign)

    def _id_of(self, content: Content, foreign: bool) -> str:
        id = content.began.id if content.began is not None else ""
        return self._writer.id_of(id) if foreign else id

    @property
    def visible(self) -> bool:
        """Content of the running round has left: from here on nothing can be taken back."""
        return self._join.visible and self._asked.stream

    @property
    def notice_sent(self) -> bool:
        """The notice stands before the text."""
        return self._join.notice_sent

    @property
    def finish_reason(self) -> str:
        """The client's word for why the answer ended."""
        ended = self._join.content.ended
        return self._join.finish_reason or (ended.finish_reason if ended is not None else "")

    @property
    def error(self) -> ProviderError | None:
        """What the provider said instead of an answer, or of the rest of it."""
        return self._join.content.error

    @property
    def usage(self) -> Usage:
        """Of the running round, as far as it has told."""
        return self._join.content.usage

    @property
    def content(self) -> Content:
        """What the running round has said so far."""
        return self._join.content

    @property
    def left_out(self) -> str:
        """What of rounds in other dialects the client is not told, or in another form only."""
        joined, written = self._join.left_out, self._writer.left_out
        if not (joined.found or written.found):
            return ""
        whole = LeftOut()
        whole.add_all(joined)
        whole.add_all(written)
        return str(whole)

    @property
    def converted(self) -> bool:
        """The round came in the form that was not asked for."""
        return self._source.form is not None and (self._source.form == "stream") is not self._asked.stream

    # --- from chunks to bytes -------------------------------------------------------------------------------------------

    def _hear(self, chunks: Iterable[Chunk], out: list[bytes], echoes: Echoes | None = None, now: float = 0.0) -> None:
        """`echoes`: takes out of them what nobody may be told."""
        join, source = self._join, self._source
        writer, serial, foreign = self._writer, self._serial, self._foreign
        source.left = out
        for chunk in chunks:
            events = chunk.events
            if echoes is not None:
                if len(events) == 1 and type(event := events[0]) is Piece and echoes.lets(event):
                    echoes.newest = event.text or echoes.newest
                else:
                    self._hear(echoes.look(chunk, now), out)
                    continue
            if foreign:
                self._name_calls(events)
            for shown in join.hear(chunk):
                if source.hides_count and _only_counts(shown):
                    continue
                writer.altered = join.altered
                if serial is not None and not self._is_own(shown):
                    out += map(writer.made, serial.order(shown.events))
                    continue
                out.append(data := writer.write(shown))
                if shown.rest and data is shown.raw:
                    out += shown.rest
                if data is chunk.raw and join.plain is not None and writer.steady:
                    source.same, source.keep = join.plain, join.keep
            if foreign:
                plain = join.plain
                if plain is not None and plain.kind != "call" and (serial is None or serial.grows is (plain.into or plain)):
                    source.same, source.keep, source.tell = plain, join.keep, writer.made

    def _name_calls(self, events: Iterable[Event]) -> None:
        """Before anybody asks whose they are."""
        for event in events:
            if type(event) is Opened or type(event) is Piece:
                block = event.block
                if type(event) is Opened:
                    block.foreign = True
                if block.kind == "call" and block.name and not block.named:
                    self._writer.name(block)

    def _written(self, chunks: Iterable[Chunk]) -> list[bytes]:
        return list(self._pieces(chunks))

    def _pieces(self, chunks: Iterable[Chunk]) -> Iterator[bytes]:
        """Their bytes, made as they are taken: the end of an answer may tell all of it again."""
        writer, serial = self._writer, self._serial
        writer.altered = self._join.altered
        for chunk in chunks:
            if serial is not None and self._is_own(chunk):
                yield from map(writer.made, serial.between())  # of another round, which is complete
            elif serial is not None:
                chunk = Chunk(b"", None, serial.order(chunk.events), chunk.dialect)
            is_ragged = False
            for piece in filter(None, writer.pieces(chunk)):
                yield self._due_line() + piece
                is_ragged = is_ragged or (chunk.form == "ragged" and piece is chunk.raw)
            self._due = b"\n\n" if is_ragged else self._due

    def _is_own(self, chunk: Chunk) -> bool:
        """A unit of the client's dialect: of an earlier round, where all leaves at the end."""
        retold = type(self._serial) is Summary or self._asked.whole_calls
        return not retold and chunk.native is not None and chunk.dialect is self._client

    def _due_line(self) -> bytes:
        due, self._due = self._due, b""
        return due

    def _take(self) -> list[bytes]:
        out = self._pending
        self._pending = []
        return out


def _alone(asked: Asked, round_: Round, secrets: Collection[str]) -> Answer:
    one = Answer(asked)
    one.begin_round(round_, secrets=secrets)
    return one


def _only_counts(chunk: Chunk) -> bool:
    """A unit of Chat's of its own, behind the end."""
    native = chunk.native
    return native is not None and not native.get("choices") and all(type(event) is Counted for event in chunk.events)
