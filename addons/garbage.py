"""Python's collector of garbage, for a process that makes thousands of short-lived objects in each call beside a hundred thousand
that stay."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator

from . import allocator

YOUNG_OBJECTS = 2000
"""What Python waits for from 3.13 on before it looks for garbage: reading one large call makes more than 700."""
MANY_OBJECTS = 50_000
"""To look through so many takes 10 ms."""
_settled = False
_usual = gc.get_threshold()[0]
"""So many young objects the collector waits for where no call is made of very many."""
_resting = 0
"""So many have it rest."""
_was_on = True


def loaded() -> None:
    """What was loaded is there to stay: nobody has to look through it even once."""
    if not _settled:
        gc.freeze()
    gc.enable()


def settle() -> None:
    """Once in a process. What was loaded at the start stays; looking through it again took 40 ms, every thousand calls.

    Python itself could say that it was done, but goes through all that stays to count it.
    """
    global _settled, _usual
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
        _usual = max(gc.get_threshold()[0], YOUNG_OBJECTS)
        _wait_for(_usual)


class Spent:
    """What calls have used goes back to the system soon after they are over: connections and their streams refer to each other,
    so that only the collector finds them, and it looks as seldom as little is made."""

    EACH_BYTES = 192 << 10
    """Of a call with its connections, whatever it says."""
    MUCH_BYTES = 24 << 20
    SOON_S = 2.0
    FEW_CALLS = 32
    """With many more, to look through what they hold stops all of them for as long as some of their events may take: it waits
    until most are over. Python itself still looks where much more is made than goes."""

    def __init__(self, running: Callable[[], int] = lambda: 0) -> None:
        """`running`: so many calls are not over."""
        self._running = running
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, size: int) -> None:
        """A call is over."""
        if gc.get_threshold()[0] > _usual and gc.get_count()[0] < MANY_OBJECTS:
            _wait_for(_usual)
        self._bytes += self.EACH_BYTES + size
        if self._timer is None and self._bytes >= self.MUCH_BYTES:
            self._wait()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.SOON_S, self._give_back)

    def _give_back(self) -> None:
        if self._running() > self.FEW_CALLS:
            self._wait()
            return
        self._bytes, self._timer = 0, None
        if gc.isenabled():
            gc.collect()
        allocator.give_back()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _wait_for(young: int) -> None:
    gc.set_threshold(young, *gc.get_threshold()[1:])


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """While a million objects are made of which most are gone soon: looking through all of them stops everybody, for 80 ms at a
    time. What else becomes garbage meanwhile waits; next to nothing of a call does. What is left of them lives as long as its
    call, and is not looked through for nothing: the collector waits until as many more are there."""
    global _resting, _was_on
    if not _resting:
        _was_on = gc.isenabled()
        gc.disable()
    _resting += 1
    try:
        yield
    finally:
        _resting -= 1
        if (made := gc.get_count()[0]) >= MANY_OBJECTS:
            _wait_for(2 * made)
        if _was_on and not _resting:
            gc.enable()
