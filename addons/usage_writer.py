"""Writes down what rounds cost, off the loop: a thread of its own, a transaction for all that came meanwhile.

A disk that hangs or is full stops nobody's call: rows wait, the oldest are given up beyond a bound, and the log says so once.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from ..routing.dialects.translation.neutral import Tokens
from ..routing.usage.flight import FlightRecorder, Loss
from ..routing.usage.ledger import Ledger
from ..routing.usage.prices import Price
from ..routing.usage.spending import Row, Spent, tokens_of

WAITING = 20_000
"""So many rows are kept while the disk does not take them."""
CALLS_WAITING = 64
"""Of so many, the calls themselves wait beside their rows, to be compared."""
_PAUSE_S = 0.5
_AGAIN_S = 5.0

logger = logging.getLogger("routecodex")


class UsageWriter:
    def __init__(
        self,
        ledger: Ledger,
        price: Callable[[Row, str], Price | None],
        post: Callable[[Callable[[Loss], None], Loss], None] = lambda lost, loss: lost(loss),
    ) -> None:
        """`price` is asked in the thread: the table of prices is read where nobody waits for it. `post` brings what is told of a
        loss to where it is heard."""
        self._post = post
        self._ledger, self._price = ledger, price
        self._recorder = FlightRecorder()
        self._spent: queue.SimpleQueue[Spent | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._complained = False

    def note(self, spent: Spent) -> None:
        if (waits := self._spent.qsize()) >= CALLS_WAITING:
            if waits >= WAITING:
                return
            spent = replace(spent, flown=None)
        self._spent.put(spent)
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="usage", daemon=True)
            self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """What is noted is written, if the disk takes it by then."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._spent.put(None)
            thread.join(timeout_s)

    def _write(self) -> None:
        waiting: list[Row] = []
        over = False
        while not over:
            if not waiting:
                over = self._take(self._spent.get(), waiting)
                if not over:
                    time.sleep(_PAUSE_S)  # those that come right behind it are written with it
            while not (over or self._spent.empty()):
                over = self._take(self._spent.get(), waiting)
            try:
                self._ledger.write(waiting, time.time_ns() // 1_000_000)
                waiting.clear()
                self._complained = False
            except (OSError, sqlite3.Error) as error:
                self._complain(error)
                del waiting[:-WAITING]
                if not over:
                    time.sleep(_AGAIN_S)
        self._ledger.close()

    def _take(self, spent: Spent | None, waiting: list[Row]) -> bool:
        """True at the end."""
        if spent is None:
            return True
        row, price = spent.row, self._price(spent.row, spent.url)
        tokens = tokens_of(row)
        if price is not None and tokens is not None:
            row = row._replace(dollars=price.of(tokens))
        waiting.append(row)
        if spent.flown is not None and (loss := self._recorder.heard(spent.flown)) is not None:
            self._post(spent.lost, replace(loss, dollars=_cost_of(loss, price) if price is not None else None))
        return False

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            logger.warning("RouteCodex cannot write down what calls cost (%s: %s); it tries again", self._ledger.path, error)


def _cost_of(loss: Loss, price: Price) -> float:
    """What reading it anew cost more than finding it in the cache."""
    count = loss.tokens
    return price.of(Tokens(count, 0)) - price.of(Tokens(count, 0, cached=count))
