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

from ..routing.usage.ledger import Ledger
from ..routing.usage.prices import Price
from ..routing.usage.spending import Row, tokens_of

WAITING = 20_000
"""So many rows are kept while the disk does not take them."""
_PAUSE_S = 0.5
_AGAIN_S = 5.0

logger = logging.getLogger("routecodex")


class UsageWriter:
    def __init__(self, ledger: Ledger, price: Callable[[Row, str], Price | None]) -> None:
        """`price` is asked in the thread: the table of prices is read where nobody waits for it."""
        self._ledger, self._price = ledger, price
        self._spent: queue.SimpleQueue[tuple[Row, str] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._complained = False

    def note(self, row: Row, url: str) -> None:
        """`url`: where to; prices are a host's."""
        if self._spent.qsize() >= WAITING:
            return
        self._spent.put((row, url))
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

    def _take(self, spent: tuple[Row, str] | None, waiting: list[Row]) -> bool:
        """True at the end."""
        if spent is None:
            return True
        row, url = spent
        price, tokens = self._price(row, url), tokens_of(row)
        if price is not None and tokens is not None:
            row = row._replace(dollars=price.of(tokens))
        waiting.append(row)
        return False

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            logger.warning("RouteCodex cannot write down what calls cost (%s: %s); it tries again", self._ledger.path, error)
