"""Rings when a deadline has passed that moves while it is waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

LATE_S = 0.01
"""A ring that comes later than this comes late because the whole process stood still."""
SHORTEST_S, LONGEST_S = 0.05, 1.0
"""So long it then waits once more, for what came meanwhile."""


class Alarm:
    """Holds nobody once it is stopped."""

    __slots__ = ("_timer",)

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def set(self, deadline: float, ring: Callable[[], None]) -> None:
        """By `time.monotonic`. An earlier ring stays, and looks again: the end of a wait often moves, and is seldom reached."""
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self.stop()
        if deadline != float("inf"):
            wait = max(deadline - time.monotonic(), 0.01)
            self._timer = asyncio.get_running_loop().call_later(wait, self._due, ring)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self, ring: Callable[[], None], *, waited: bool = False) -> None:
        """After a standstill, what came meanwhile is heard before anybody is blamed for silence. Once only."""
        loop = asyncio.get_running_loop()
        assert self._timer is not None
        late, self._timer = loop.time() - self._timer.when(), None
        if late > LATE_S and not waited:
            self._timer = loop.call_later(min(max(late, SHORTEST_S), LONGEST_S), partial(self._due, ring, waited=True))
        else:
            ring()
