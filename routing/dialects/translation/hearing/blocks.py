"""Blocks that grow side by side, told one after another: what OpenAI's two dialects hear with.

1. The first block is told as it grows; those behind it wait for its end. Nothing that was heard is lost.
2. Free text for a custom tool is told as JSON arguments, `{"input": "…"}`: the same as a function with one string.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from ....jsonbytes import dumps
from ....values import JsonObject
from ...fields import read_json
from ...finish import is_whole_call
from ..neutral import (
    BlockEnded,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Media,
    MediaShown,
    Seal,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)

_PIECES: dict[str, type[TextPiece] | type[ThoughtPiece] | type[CallPiece]] = {
    "text": TextPiece,
    "thought": ThoughtPiece,
    "call": CallPiece,
}
_MOST_PIECES = 4096
"""Pieces that were told are kept as one text beyond this: they are small, and there may be very many."""
_MOST_LOOKS = 64
"""So often a call is looked at for its last brace; then it waits for the end of the answer."""


class Block:
    """One text, thought, call or picture as it is heard."""

    __slots__ = (
        "begun",
        "custom",
        "details",
        "done",
        "field",
        "id",
        "kind",
        "looked",
        "looks",
        "media",
        "name",
        "pieces",
        "seal",
        "told",
        "whole",
    )

    def __init__(self, kind: Literal["text", "thought", "call", "media"]) -> None:
        self.kind = kind
        self.id = self.name = ""
        self.custom = False
        """A call whose pieces are free text."""
        self.pieces: list[str] = []
        """All that was heard."""
        self.told = 0
        """How many of the pieces were told."""
        self.begun = False
        self.done = False
        self.whole = False
        """What was found when its arguments were looked at last, how many pieces there were then, and how often that was."""
        self.looked = self.looks = 0
        self.seal: Seal | None = None
        self.media: Media | None = None
        self.field = ""
        """Where its text stood, where hosts differ in that."""
        self.details: list[JsonObject] = []
        """What a host says of a thought beside its text."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """A call whose arguments are complete: nothing but white space can follow a JSON object."""
        pieces = self.pieces
        if self.looked != len(pieces) and self.looks < _MOST_LOOKS and not self.custom:
            self.looked = len(pieces)
            if pieces[-1].rstrip().endswith("}"):
                self.looks += 1
                self.whole = isinstance(read_json(self.text.encode("utf-8", "surrogatepass")), dict)
        return self.whole


class Blocks:
    """The blocks that are not over, in their order.

    `settles`: the dialect does not say when a block ends, so that one ends where another begins, a call if it is whole.
    """

    def __init__(self, *, settles: bool = False) -> None:
        self._settles = settles
        self._queue: deque[Block] = deque()
        self._text_stands = False
        """The last block that was told is a text: another one would go on in it."""

    @property
    def last(self) -> Block | None:
        return self._queue[-1] if self._queue else None

    def begin(self, block: Block) -> Block:
        self._queue.append(block)
        return block

    def tell(self, out: list[Event]) -> None:
        """Tell what may be told now."""
        queue = self._queue
        while queue:
            block = queue[0]
            if self._settles and len(queue) > 1 and (block.kind != "call" or block.is_whole):
                block.done = True
            if not (block.begun or block.done) and block.kind == "call" and not _may_begin(block):
                return
            self._grow(block, out)
            if not block.done:
                return
            queue.popleft()
            self._end(block, out)

    def tell_all(self, out: list[Event]) -> None:
        """The answer is complete, and so is everything in it."""
        for block in self._queue:
            block.done = True
        self.tell(out)

    @property
    def breaks_off(self) -> bool:
        """A call is not whole."""
        return any(map(self._is_half, self._queue))

    def _is_half(self, block: Block) -> bool:
        """Free text says nothing about its end: what is behind it does."""
        if block.kind != "call" or block.done:
            return False
        return block is self.last if block.custom else not is_whole_call(block.text)

    def cut(self, out: list[Event]) -> None:
        """The answer was cut: what was said is complete, but for calls that it broke off in."""
        for block in self._queue:
            block.done = not self._is_half(block)
        self.release(out)

    def release(self, out: list[Event]) -> None:
        """The answer broke off: all but calls that are not whole. Nobody may run those, so they do not end."""
        kept = [block for block in self._queue if block.begun or block.kind != "call" or block.done or block.is_whole]
        cut = bool(kept) and kept[0].kind == "call" and not (kept[0].done or kept[0].is_whole)
        for block in kept:
            block.done = not cut
        self._queue = deque(kept[:1] if cut else kept)
        self.tell(out)

    def _grow(self, block: Block, out: list[Event]) -> None:
        pieces = block.pieces
        if block.told == len(pieces) and (block.begun or block.kind != "call"):
            return
        if not block.begun:
            self._open(block, out)
            if len(pieces) > 1:  # they have waited for each other
                pieces[:] = ["".join(pieces)]
        if block.custom:
            out += [CallPiece(dumps(piece)[1:-1].decode()) for piece in pieces[block.told :]]
        else:
            make = _PIECES[block.kind]
            out += [make(piece) for piece in pieces[block.told :]]
        block.told = len(pieces)
        if block.told > _MOST_PIECES:
            pieces[:] = ["".join(pieces)]
            block.told = 1

    def _open(self, block: Block, out: list[Event]) -> None:
        block.begun = True
        if block.kind == "text" and self._text_stands:
            out.append(BlockEnded())
        self._text_stands = block.kind == "text"
        if block.kind == "call":
            out.append(CallStarted(block.id, block.name))
            if block.custom:
                out.append(CallPiece('{"input":"'))

    def _end(self, block: Block, out: list[Event]) -> None:
        if block.kind == "call":
            if block.custom:
                out.append(CallPiece('"}'))
            out.append(CallEnded(block.seal))
        elif block.kind == "thought" and (block.begun or block.seal is not None):
            self._text_stands = False
            out.append(ThoughtEnded(block.seal))
        elif block.media is not None:
            self._text_stands = False
            out.append(MediaShown(block.media))


def _may_begin(call: Block) -> bool:
    """It says whose it is, and nothing speaks of a seal: a sealed call is told at once, so that its seal can stand before it."""
    return bool(call.name and call.id) and call.seal is None


def picture(url: str) -> Media:
    """A picture by its address, or by its bytes where the address holds them."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Media("image", head[5:-7].partition(";")[0] or "image/png", data)
    return Media("image", url=url)
