"""Threads for what waits for the disk or for another process's lock.

The loop's own threads also look names up: whoever waits there, keeps other calls from their providers. So there are few of these,
and those that obey tags, count rounds and keep histories wait for no lock at all: what cannot have its lock is tried again, from
the loop, and holds no thread meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from ..routing.errors import Locked, StoreError
from ..routing.storage import disk
from ..routing.storage.contract import InThread
from . import garbage

T = TypeVar("T")

WAIT_S = 2.0
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05
_BREATH_S = 0.005

QUICK = ThreadPoolExecutor(4, "routecodex-disk", initializer=disk.never_wait)
PATIENT = ThreadPoolExecutor(2, "routecodex-clock")
"""For work that cannot be tried again as a whole: each lock is waited for, up to the same two seconds."""
COMPUTING = ThreadPoolExecutor(1, "routecodex-computing")
_SHORT_TURN_S = 0.0005
_computing = 0
_interval = 0.0


def breathe() -> None:
    """In a thread that has much to do and all the time for it: calls do not wait for it."""
    time.sleep(_BREATH_S)


async def in_thread(work: Callable[..., T], *given: object) -> T:
    """`work` must change nothing before it has its lock. Locked where another process keeps it for too long."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + WAIT_S, _FIRST_PAUSE_S
    while True:
        try:
            return await loop.run_in_executor(QUICK, partial(work, *given))
        except Locked:
            if loop.time() >= until:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


async def computed(work: Callable[[], T]) -> T:
    """What takes long to compute: meanwhile others have their turns."""
    with short_turns(), garbage.resting():
        return await asyncio.get_running_loop().run_in_executor(COMPUTING, work)


@contextmanager
def short_turns() -> Iterator[None]:
    """A thread that computes gives way to the loop, but for each of the loop's reads and writes only after a whole interval: a
    short one, meanwhile."""
    global _computing, _interval
    if not _computing:
        _interval = sys.getswitchinterval()
        sys.setswitchinterval(min(_interval, _SHORT_TURN_S))
    _computing += 1
    try:
        yield
    finally:
        _computing -= 1
        if not _computing:
            sys.setswitchinterval(_interval)


async def if_possible(work: Callable[[InThread], Awaitable[object]], note: Callable[[str], None]) -> None:
    """For what may be lost: nobody's call fails by it."""
    try:
        await work(in_thread)
    except StoreError as error:
        note(error.message)
