"""Answers of our own (what `echo` says, what a word in the chat is answered with), told as anybody's."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...values import Answer
from ..fields import pieces_of
from ..finish import with_calls, write_finish
from ..translation.neutral import Asked, Tokens
from .events import Began, Block, Closed, Counted, Done, Ended, Event, Opened, Piece
from .machine import writer_for
from .said import Content


def told(asked: Asked, answer: Answer) -> bytes:
    """All of it, in the client's dialect and form. It bears the call's own id, and repeats nothing of what the call was given."""
    writer, events = writer_for(replace(asked, response={})), list(_events(asked, answer))
    Content().add(events)  # blocks have their texts, for dialects that tell them again
    return b"".join([*map(writer.made, events), *writer.finish()])


def _events(asked: Asked, answer: Answer) -> Iterator[Event]:
    usage = answer.usage
    yield Began(asked.id, asked.model, Tokens(usage.input))
    if answer.text:
        yield from _block(Block("text"), pieces_of(answer.text))
    for call in answer.calls:
        block = Block("call", id=call.id, name=call.name)
        block.named = True
        yield from _block(block, [call.arguments or "{}"])
    yield Counted(Tokens(usage.input, usage.output))
    yield Ended(write_finish(with_calls(answer.finish, answer.calls), asked.endpoint.dialect))
    yield Done()


def _block(block: Block, pieces: Iterator[str] | list[str]) -> Iterator[Event]:
    block.foreign = True
    yield Opened(block)
    yield from (Piece(block, piece) for piece in pieces)
    yield Closed(block)
