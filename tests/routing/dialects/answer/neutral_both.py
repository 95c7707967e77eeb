"""The new answer side's readers and writers, asked in the old one's neutral events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from routecodex.routing.dialects.answer import events as new
from routecodex.routing.dialects.answer.gemini.abroad import Abroad
from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.dialects.answer.serial import Serial
from routecodex.routing.dialects.answer.stream import Source
from routecodex.routing.dialects.translation import neutral as old
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.translation import coming_down as down

OLD = (down.hear, down.hear_documents, down.tell, down.tell_whole)


def hear(dialect: Dialect, raw: bytes, cut: Any = rounds.whole, *, array: bool = False) -> list[old.Event]:
    if dialect is not Dialect.GEMINI:
        return OLD[0](dialect, raw, cut, array=array)
    source = Source(Abroad("acme", "round-1"))
    chunks = [chunk for piece in cut(raw) for chunk in source.feed(piece)] + source.close()
    return list(_as_old(event for chunk in chunks for event in chunk.events))


def hear_documents(dialect: Dialect, documents: Iterable[Any]) -> list[old.Event]:
    if dialect is not Dialect.GEMINI:
        return OLD[1](dialect, documents)
    return hear(dialect, b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in documents))


def _as_old(events: Iterable[new.Event]) -> Iterator[old.Event]:
    serial, counted, ended = Serial(), None, None
    for event in events:
        match event:
            case new.Counted():
                counted = event
            case new.Ended():
                ended = event
            case _:
                for one in serial.order([event]):
                    yield from _one_as_old(one)
    if ended is not None:
        for one in serial.order([ended]):
            yield from _one_as_old(one)
        yield old.Finished(ended.word, counted.tokens if counted is not None else None)


def _one_as_old(event: new.Event) -> Iterator[old.Event]:
    match event:
        case new.Began():
            yield old.Started(event.id, event.model, event.tokens)
        case new.Opened(block=block) if block.kind == "call":
            yield old.CallStarted(block.id, block.name)
        case new.Opened(block=block) if block.kind == "media" and block.media is not None:
            yield old.MediaShown(block.media)
        case new.Piece(block=block, text=text) if text and block.kind != "trace":
            yield {"text": old.TextPiece, "thought": old.ThoughtPiece, "call": old.CallPiece}[block.kind](text)
        case new.Closed(block=block) if block.kind == "call":
            yield old.CallEnded(block.seal)
        case new.Closed(block=block) if block.kind == "thought":
            yield old.ThoughtEnded(block.seal)
        case new.Failed(error=error):
            yield old.Broken(error)
        case _:
            pass


def tell(events: Iterable[old.Event], asked: old.Asked) -> bytes:
    if asked.endpoint.dialect is not Dialect.GEMINI:
        return OLD[2](events, asked)
    answer = Answer(replace(asked, tools={}))
    answer.begin_round(Round(Dialect.CHAT, asked.maker, asked.tools))
    as_new = _New()
    chunks = [new.Chunk(b"", None, told, Dialect.CHAT) for event in events if (told := as_new.of(event))]
    out: list[bytes] = []
    answer._hear(chunks, out)
    said = answer.end_round()
    return b"".join((*out, *(answer.finish() if said.complete or said.error else (answer.feed(b""),))))


def tell_whole(events: Iterable[old.Event], asked: old.Asked) -> Any:
    if asked.endpoint.dialect is not Dialect.GEMINI:
        return OLD[3](events, asked)
    told = tell(events, replace(asked, stream=False))
    return json.loads(told) if told else OLD[3]([], asked)


class _New:
    """The old one's events as the new one's, block by block."""

    def __init__(self) -> None:
        self._last: new.Block | None = None
        self._over = False

    def of(self, event: old.Event) -> list[new.Event]:
        return [] if self._over else list(self._of(event))

    def _of(self, event: old.Event) -> Iterator[new.Event]:
        match event:
            case old.Started():
                yield new.Began(event.id, event.model, event.tokens)
            case old.TextPiece():
                yield from self._grow("text", event.text)
            case old.ThoughtPiece():
                yield from self._grow("thought", event.text)
            case old.CallPiece():
                if self._last is not None and self._last.kind == "call":
                    yield new.Piece(self._last, event.arguments)
            case old.CallStarted():
                yield from self._open(new.Block("call", id=event.id, name=event.name))
            case old.CallEnded() | old.ThoughtEnded():
                kind = "call" if isinstance(event, old.CallEnded) else "thought"
                if (self._last is None or self._last.kind != kind) and kind == "thought" and event.seal is not None:
                    yield from self._open(new.Block("thought"))
                if self._last is not None and self._last.kind == kind:
                    self._last.seal = event.seal
                    yield new.Closed(self._last)
                    self._last = None
            case old.MediaShown():
                block = new.Block("media")
                block.media = event.media
                yield from self._open(block)
            case old.BlockEnded():
                self._last = None
            case old.Finished():
                self._over = True
                if event.tokens is not None:
                    yield new.Counted(event.tokens)
                yield from (new.Ended(event.word, event.stop_sequence), new.Done())
            case old.Broken():
                self._over = True
                yield new.Failed(event.error)

    def _grow(self, kind: new.Kind, text: str) -> Iterator[new.Event]:
        if text and (self._last is None or self._last.kind != kind):
            yield from self._open(new.Block(kind))
        if text and self._last is not None:
            yield new.Piece(self._last, text)

    def _open(self, block: new.Block) -> Iterator[new.Event]:
        if self._last is not None and self._last.kind == "call":
            yield new.Closed(self._last)
        self._last = block
        yield new.Opened(block)
