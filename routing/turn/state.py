"""Where a turn stands."""

from __future__ import annotations

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
