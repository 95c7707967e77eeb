"""Why providers' caches were lost: found beside the calls, in a thread, once the counts of an answer tell of a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from ..routing.dialects.translation.neutral import Tokens
from ..routing.usage.flight import FlightRecorder, Loss, Suspicion
from ..routing.usage.prices import Price
from ..routing.usage.spending import Row, Spent
from . import fail_closed
from .disk_threads import computed

_MOST = 16
"""So many are looked into at a time: each holds two calls."""
_LONGEST_S = 2.0


class CacheLosses:
    def __init__(self, price: Callable[[Row, str], Price | None]) -> None:
        """`price` is asked in the thread: the table of prices is read where nobody waits for it."""
        self._price = price
        self._recorder = FlightRecorder()
        self._open: dict[str, asyncio.Task[None]] = {}

    def hear(self, spent: Spent) -> None:
        if spent.flown is None or (suspicion := self._recorder.heard(spent.flown)) is None or len(self._open) >= _MOST:
            return
        call = spent.row.call
        self._open[call] = task = asyncio.get_running_loop().create_task(self._find(suspicion, spent))
        task.add_done_callback(lambda _: self._open.pop(call, None))

    def verdict(self, call: str) -> Awaitable[object] | None:
        """For who writes a call down with its answer, and so not before this; None: nothing is looked into."""
        task = self._open.get(call)
        return asyncio.wait((task,), timeout=_LONGEST_S) if task is not None else None

    async def _find(self, suspicion: Suspicion, spent: Spent) -> None:
        try:
            loss = await computed(lambda: self._priced(suspicion.loss(), spent))
        except Exception as error:
            fail_closed.report("a lost cache", error, "Nobody is told why it was lost.")
            return
        if loss is not None:
            spent.lost(loss)

    def _priced(self, loss: Loss | None, spent: Spent) -> Loss | None:
        """What reading it anew cost more than finding it in the cache."""
        if loss is None or (price := self._price(spent.row, spent.url)) is None:
            return loss
        count = loss.tokens
        return replace(loss, dollars=price.of(Tokens(count, 0)) - price.of(Tokens(count, 0, cached=count)))
