"""An answer in plain words, one block after another: what a reader's events come to, and what a writer is asked to say.

Four readers and four writers are tested in one vocabulary, in which a test can be written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from routecodex.routing.dialects.answer import events as said
from routecodex.routing.dialects.answer.machine import Answer, Round, reader_of
from routecodex.routing.dialects.answer.said import Content
from routecodex.routing.dialects.answer.serial import Serial
from routecodex.routing.dialects.answer.stream import Source
from routecodex.routing.dialects.finish import read_finish
from routecodex.routing.dialects.sse import write_event
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens
from routecodex.routing.errors import BadAnswer
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.values import Dialect, ProviderError
from tests.rig.asked import Asked


@dataclass(frozen=True, slots=True)
class Started:
    id: str
    model: str
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Pieces in a row are one text, until another block begins or `BlockEnded` comes."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtEnded:
    """Ends the thought whose pieces came before; without any, this is a thought of nothing but its seal."""

    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class CallStarted:
    id: str
    """Empty where the dialect gives none; the writer makes one."""
    name: str
    """As the provider was told it."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """The next piece of the open call's arguments (JSON text, however it is cut)."""

    arguments: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class MediaShown:
    """A picture or sound that the model made."""

    media: Media


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """The open text or thought is complete: what comes next is another one."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The provider said that this is the end, and why, in its own word ("" where it gave none)."""

    word: str
    tokens: Tokens | None = None
    stop_sequence: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The provider said that it failed. Nothing comes behind it."""

    error: ProviderError


Event: TypeAlias = (
    Started
    | TextPiece
    | ThoughtPiece
    | ThoughtEnded
    | CallStarted
    | CallPiece
    | CallEnded
    | MediaShown
    | BlockEnded
    | Finished
    | Broken
)


# --- a reader's events ------------------------------------------------------------------------------------------------


class Hearer:
    """One round of a provider's, as clients of other dialects are told it."""

    def __init__(self, spoken: Dialect, maker: str, id: str) -> None:
        self._source = Source(reader_of(spoken, maker, id, abroad=True))
        self._serial = Serial()
        self._content = Content()
        self._last: said.Block | None = None
        """The text that was told last: another one is another text."""
        self._begun: set[said.Block] = set()
        self._id = id
        self._started = self._over = False

    def hear(self, data: bytes, name: str = "") -> list[Event]:
        return self.feed(write_event(data, name))

    def feed(self, raw: bytes) -> list[Event]:
        return self._heard(lambda: self._source.feed(raw))

    def close(self) -> list[Event]:
        told = self._heard(self._source.close)
        content = self._content
        content.settle()
        if self._over or content.error is not None:
            return told
        self._over = True
        if not content.complete:
            broken = self._serial.order([said.Failed(ProviderError(502, ""))])
            return [*told, *(event for one in broken if type(one) is not said.Failed for event in self._told(one))]
        ended = content.ended or said.Ended("")
        word = "content_filter" if read_finish(ended.finish_reason) == "stop" and content.refused else ended.finish_reason
        told += [event for one in self._serial.order([ended]) if one is not ended for event in self._told(one)]
        return [*told, *self._start(), Finished(word, content.tokens, ended.stop)]

    def _heard(self, chunks: Callable[[], Iterable[said.Chunk]]) -> list[Event]:
        if self._over:
            return []
        try:
            return [event for chunk in chunks() for event in self._read(chunk)]
        except BadAnswer as error:
            self._over = True
            return [Broken(ProviderError(error.status, error.message, error.code))]

    def _read(self, chunk: said.Chunk) -> Iterator[Event]:
        self._content.add(chunk.events)
        self._content.settle()
        for event in self._serial.order([one for one in chunk.events if type(one) not in (said.Ended, said.Done)]):
            yield from self._told(event)

    def _start(self) -> list[Event]:
        """A client is told who answers before all else, whoever says so."""
        begun, self._started = self._started, True
        return [] if begun else [Started(self._id, "")]

    def _told(self, event: said.Event) -> Iterator[Event]:
        match event:
            case said.Began():
                if not self._started:
                    self._started = True
                    yield Started(event.id, event.model, event.tokens)
            case said.Opened(block=block):
                yield from self._open(block)
            case said.Piece(block=block, text=text) if text:
                yield from self._start()
                yield from self._grow(block, text)
            case said.Closed(block=block) if block.kind == "call":
                if block.custom:
                    yield CallPiece('"}')
                yield CallEnded(block.seal)
            case said.Closed(block=block) if block.kind == "thought" and (block in self._begun or block.seal is not None):
                self._last = None
                yield from self._start()
                yield ThoughtEnded(block.seal)
            case said.Failed(error=error):
                self._over = True
                yield Broken(error)
            case _:
                pass

    def _open(self, block: said.Block) -> Iterator[Event]:
        if block.kind == "call":
            yield from self._start()
            yield CallStarted(block.id, block.name)
            if block.custom:
                yield CallPiece('{"input":"')
        elif block.kind == "media" and block.media is not None:
            self._last = None
            yield from self._start()
            yield MediaShown(block.media)

    def _grow(self, block: said.Block, text: str) -> Iterator[Event]:
        self._begun.add(block)
        if block.kind == "text":
            if self._last not in (None, block):
                yield BlockEnded()
            yield TextPiece(text)
        elif block.kind == "thought":
            yield ThoughtPiece(text)
        elif block.kind == "call":
            yield CallPiece(dumps(text)[1:-1].decode() if block.custom else text)
        if block.kind in ("text", "call"):
            self._last = block if block.kind == "text" else None


def hear_whole(spoken: Dialect, raw: bytes, maker: str, id: str) -> list[Event]:
    """The same of a whole document."""
    hearer = Hearer(spoken, maker, id)
    return [*hearer.feed(raw), *hearer.close()]


# --- what a writer is asked to say ------------------------------------------------------------------------------------


class Teller:
    """One answer to a client, of a provider of another dialect that says the same events."""

    def __init__(self, asked: Asked, *, compacts: bool = False) -> None:
        spoken = Dialect.CHAT if asked.endpoint.dialect is not Dialect.CHAT else Dialect.MESSAGES
        self._spoken = spoken
        self._answer = Answer(asked)
        self._answer.begin_round(Round(spoken, asked.maker, asked.tools, compacts=compacts))
        self._last: said.Block | None = None
        self._over = False

    def tell(self, event: Event) -> bytes:
        events = [] if self._over else list(self._as_said(event))
        if not events:
            return b""
        out: list[bytes] = []
        self._answer._hear([said.Chunk(b"", None, events, self._spoken)], out)
        if not self._over:
            return b"".join(out)
        return b"".join((*out, self.close()))

    def close(self) -> bytes:
        if self._answer._over:
            return b""
        self._over = True
        self._answer.end_round()
        return b"".join(self._answer.finish())

    def _as_said(self, event: Event) -> Iterator[said.Event]:
        match event:
            case Started():
                yield said.Began(event.id, event.model, event.tokens)
            case TextPiece():
                yield from self._grow("text", event.text)
            case ThoughtPiece():
                yield from self._grow("thought", event.text)
            case CallPiece():
                if self._last is not None and self._last.kind == "call":
                    yield said.Piece(self._last, event.arguments)
            case CallStarted():
                yield from self._open(said.Block("call", id=event.id, name=event.name))
            case CallEnded() | ThoughtEnded():
                kind = "call" if isinstance(event, CallEnded) else "thought"
                if self._last is not None and self._last.kind == kind:
                    self._last.seal = event.seal
                    yield said.Closed(self._last)
                    self._last = None
                elif kind == "thought" and event.seal is not None:
                    seal, last = said.Block("thought"), self._last  # a text goes on behind it
                    seal.seal = event.seal
                    yield from self._open(seal)
                    yield said.Closed(seal)
                    self._last = last if last is not None and last.kind == "text" else None
            case MediaShown():
                block = said.Block("media")
                block.media = event.media
                yield from self._open(block)
            case BlockEnded():
                self._last = None
            case Finished():
                self._over = True
                if event.tokens is not None:
                    yield said.Counted(event.tokens)
                yield from (said.Ended(event.word, event.stop_sequence), said.Done())
            case Broken():
                self._over = True
                yield said.Failed(event.error)

    def _grow(self, kind: said.Kind, text: str) -> Iterator[said.Event]:
        if text and (self._last is None or self._last.kind != kind):
            yield from self._open(said.Block(kind))
        if text and self._last is not None:
            yield said.Piece(self._last, text)

    def _open(self, block: said.Block) -> Iterator[said.Event]:
        if self._last is not None and self._last.kind == "call":
            yield said.Closed(self._last)
        self._last = block
        yield said.Opened(block)


def tell_whole(events: Iterable[Event], asked: Asked, *, compacts: bool = False) -> bytes:
    teller = Teller(replace(asked, stream=False), compacts=compacts)
    return b"".join((*map(teller.tell, events), teller.close()))
