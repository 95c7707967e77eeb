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
    S.OVER: frozenset(),
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
