"""Large calls that come at once are read one in every other turn of the loop, since reading one mostly takes two: whoever else
waits, waits for one of them, not for all."""

from __future__ import annotations

import asyncio
from collections import deque

LARGE_BYTES = 64 << 10
"""A shorter one is read in less than a millisecond."""


class InTurn:
    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        """One is being read."""

    async def wait(self, size: int) -> None:
        """Until a call of this size may be read: nearly always that is now."""
        if size < LARGE_BYTES:
            return
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            loop.call_soon(self._rest)
            return
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _rest(self) -> None:
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            if not (first := self._waiting.popleft()).done():  # its client may have left
                first.set_result(None)
                asyncio.get_running_loop().call_soon(self._rest)
                return
        self._taken = False
