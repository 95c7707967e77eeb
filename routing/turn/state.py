"""Where a turn stands, where it may go from there, and when it may be told what to do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    ASKING = "asking"
    """A round is on its way; no head yet."""
    PEEKING = "peeking"
    """A good head; content has not begun."""
    FAILING = "failing"
    """A bad head; its body is being read."""
    WAITING = "waiting"
    """Between two rounds."""
    FLOWING = "flowing"
    DECIDING = "deciding"
    """A round is complete; whether another one follows is being decided."""
    CLOSING = "closing"
    """No other round follows; what the next call needs is being kept."""
    OVER = "over"
    """Nothing more is heard or done; what it said last may wait for what others must know first."""
    ENDED = "ended"
    """What it said last leaves."""
    CUT = "cut"
    """The client is cut off: the answer has begun and cannot be completed."""


class OutOfPlace(RuntimeError):
    """A turn was told to do what it cannot do where it stands: a mistake of whoever carries it."""


S = State
GOES: Mapping[State, frozenset[State]] = {
    S.ASKING: frozenset((S.PEEKING, S.FAILING, S.WAITING, S.DECIDING, S.OVER)),
    S.PEEKING: frozenset((S.FLOWING, S.WAITING, S.DECIDING, S.OVER)),
    S.FAILING: frozenset((S.WAITING, S.DECIDING, S.OVER)),
    S.WAITING: frozenset((S.ASKING, S.DECIDING, S.OVER)),
    S.FLOWING: frozenset((S.DECIDING, S.OVER)),
    S.DECIDING: frozenset((S.WAITING, S.CLOSING, S.OVER)),
    S.CLOSING: frozenset((S.OVER,)),
    S.OVER: frozenset((S.ENDED, S.CUT)),
    S.ENDED: frozenset((S.CUT,)),
    S.CUT: frozenset(),
}
"""Behind a round that fails comes another one (`WAITING`), the end of an answer that stood before it (`DECIDING`), or nothing."""
DOES: Mapping[str, frozenset[State]] = {
    "begin": frozenset((S.WAITING,)),
    "crowded": frozenset((S.WAITING,)),
    "proceed": frozenset((S.DECIDING,)),
    "close": frozenset((S.DECIDING,)),
    "conclude": frozenset((S.DECIDING, S.CLOSING)),
    "refuse": frozenset((S.DECIDING, S.CLOSING, S.WAITING)),
}
"""What it is told to do. What it only hears of (bytes, ends, the client, time) may come too late, and is nothing to it then."""
_OVER = frozenset((S.OVER, S.ENDED, S.CUT))


class Course:
    """One turn's way through its states: who writes to the client asks it as well, and outlives the turn."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = State.ASKING

    @property
    def over(self) -> bool:
        return self.state in _OVER

    def go(self, to: State) -> None:
        if to not in GOES[self.state]:
            raise OutOfPlace(f"a turn does not go from {self.state.value} to {to.value}")
        self.state = to

    def check(self, what: str) -> None:
        """Whether it may be told to do that now."""
        if self.state not in DOES[what]:
            raise OutOfPlace(f"{what} is out of place where a turn is {self.state.value}")

    def end(self) -> None:
        """What was said last leaves, whichever of those who wait for it comes first."""
        if self.state is State.OVER:
            self.go(State.ENDED)

    def cut(self) -> None:
        """Also where the end is on its way."""
        if self.state is not State.CUT:
            self.go(State.CUT)
