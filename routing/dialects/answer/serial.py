"""Blocks that grow side by side, one after another: what a round of another dialect says, in front of the client's writer.

1. The first block is told as it grows; those behind it wait for its end. Nothing that was heard is lost.
2. A block whose dialect does not say when it ends has ended where another begins; a call, if its arguments are whole.
3. Nobody may run a call that the answer was cut off in (`Block.half`): it ends as a block alone, or (a broken answer) not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..fields import read_json
from .events import Block, Cited, Closed, Closing, Ended, Event, Extra, Failed, Opened, Piece

_MOST_LOOKS = 64
"""So often a call is looked at for its last brace; then it waits for the end of the answer."""


class _Waiting(Struct, eq=False):
    """One block that has not ended."""

    block: Block
    queue: list[Event] = []
    """What was not told yet."""
    text: list[str] = []
    """A call's arguments as they came by here, told or not: the block knows more of what is held back."""
    begun: bool = False
    says: bool = False
    ended: bool = False
    whole: bool = False
    looked: int = 0
    """So many pieces were there when it was last looked at."""
    looks: int = 0

    @property
    def is_whole(self) -> bool:
        """A call whose arguments are complete: nothing but white space can follow a JSON object."""
        text = self.text
        if self.looked != len(text) and self.looks < _MOST_LOOKS and not self.block.custom:
            self.looked = len(text)
            if text[-1].rstrip().endswith("}"):
                self.looks += 1
                self.whole = isinstance(read_json("".join(text).encode("utf-8", "surrogatepass")), dict)
        return self.whole

    @property
    def is_somebodys(self) -> bool:
        """Not a call that never said whose it is."""
        return self.block.kind != "call" or bool(self.block.name)

    @property
    def is_over(self) -> bool:
        """It ends because another block has begun."""
        return self.is_whole if self.block.kind == "call" else not self.block.ends_itself

    @property
    def is_seal(self) -> bool:
        """A thought of nothing but its seal: a text before it may go on."""
        return self.block.kind == "thought" and self.block.seal is not None and not self.says

    @property
    def may_begin(self) -> bool:
        """A call says whose it is, and nothing speaks of a seal: that may have to stand before it, and comes with its end."""
        block = self.block
        return self.begun or self.ended or block.kind != "call" or bool(block.name and block.id and block.seal is None)


class Serial:
    def __init__(self) -> None:
        self._waiting: dict[Block, _Waiting] = {}
        self._order: list[_Waiting] = []
        self._seals = 0
        """So many of those behind the first are seals: nobody looks at them again."""

    def order(self, events: Sequence[Event]) -> Sequence[Event]:
        """What may be told now."""
        if len(events) == 1 and len(self._order) == 1 and type(event := events[0]) is Piece:
            one = self._order[0]
            if one.begun and one.block is event.block:
                if event.block.kind == "call":
                    one.text.append(event.text)
                return events
        out: list[Event] = []
        for event in events:
            match event:
                case Opened() | Piece() | Extra() | Cited() | Closed():
                    self._put(event, out)
                case Closing():
                    pass
                case Ended() | Failed():
                    self._end(out, open_=[one for one in self._order if one.block.half and type(event) is Failed])
                    out.append(event)
                case _:
                    out.append(event)
        self._tell(out)
        return out

    @property
    def grows(self) -> Block | None:
        """The block whose pieces are told as they come: nothing waits."""
        return self._order[0].block if len(self._order) == 1 and self._order[0].begun else None

    def between(self) -> Sequence[Event]:
        """A round is complete and another follows: so is everything in it, but for a last text, which may go on."""
        out: list[Event] = []
        last = self._order[-1:]
        self._end(out, open_=[one for one in last if one.block.kind == "text" and not one.ended])
        return out

    def _put(self, event: Opened | Piece | Extra | Cited | Closed, out: list[Event]) -> None:
        block = event.block
        one = self._waiting.get(block)
        if type(event) is Closed:
            if one is not None:
                one.ended = True
            elif not block.closed:
                block.closed = True
                out.append(event)
            return
        if type(event) is Cited and one is None:
            out.append(event)  # the writer knows whether it can still be told
            return
        if one is None:
            if block.closed and block.kind == "call":
                return  # some hosts say nothing once more
            one = self._waiting[block] = _Waiting(block)
            self._order.append(one)
        one.queue.append(event)
        if type(event) is Piece and event.text:
            if not one.says:
                one.says, self._seals = True, 0
            if block.kind == "call":
                one.text.append(event.text)

    def _tell(self, out: list[Event]) -> None:
        order = self._order
        while order:
            one = order[0]
            if one.is_over and self._goes_on_elsewhere():
                one.ended = True
            if one.ended and not one.is_somebodys:
                self._drop_first()
                continue
            if not one.may_begin:
                return
            out += one.queue
            one.begun = one.begun or bool(one.queue)
            one.queue.clear()
            if not one.ended:
                return
            self._drop_first()
            one.block.closed = True
            out.append(Closed(one.block))

    def _goes_on_elsewhere(self) -> bool:
        """Something else than a seal stands behind the first."""
        while (behind := self._seals + 1) < len(self._order) and self._order[behind].is_seal:
            self._seals = behind
        return behind < len(self._order)

    def _drop_first(self) -> None:
        del self._waiting[self._order.pop(0).block]
        self._seals = max(0, self._seals - 1)

    def _end(self, out: list[Event], open_: Sequence[_Waiting] = ()) -> None:
        """All is over, but for these; of those what has begun is told, and nothing behind it. What never began and is half
        never was."""
        for one in self._order:
            one.ended = one not in open_
        self._order = [one for one in self._order if one.begun or not one.block.half]
        self._seals = 0
        self._tell(out)
        self._order.clear()
        self._waiting.clear()
