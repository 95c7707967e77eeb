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
        self._spent: queue.SimpleQueue[tuple[Row, str] | threading.Event | None] = queue.SimpleQueue()
        self._asked = threading.Event()
        """Somebody waits for what was noted: no pause now."""
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

    def settle(self, timeout_s: float = 2.0) -> None:
        """Waits until what was noted so far is written, if the disk takes it by then. For who reads the file."""
        if self._thread is None or self._complained:
            return
        written = threading.Event()
        self._spent.put(written)
        self._asked.set()
        written.wait(timeout_s)

    def close(self, timeout_s: float = 2.0) -> None:
        """What is noted is written, if the disk takes it by then."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._spent.put(None)
            thread.join(timeout_s)

    def _write(self) -> None:
        waiting: list[Row] = []
        hears: list[threading.Event] = []
        over = False
        while not over:
            if not waiting:
                over = self._take(self._spent.get(), waiting, hears)
                if not over:
                    self._asked.wait(_PAUSE_S)  # those that come right behind it are written with it
            self._asked.clear()
            while not (over or self._spent.empty()):
                over = self._take(self._spent.get(), waiting, hears)
            try:
                self._ledger.write(waiting, time.time_ns() // 1_000_000)
                waiting.clear()
                self._complained = False
                while hears:
                    hears.pop().set()
            except (OSError, sqlite3.Error) as error:
                self._complain(error)
                del waiting[:-WAITING]
                if not over:
                    time.sleep(_AGAIN_S)
        self._ledger.close()

    def _take(self, spent: tuple[Row, str] | threading.Event | None, waiting: list[Row], hears: list[threading.Event]) -> bool:
        """True at the end."""
        if spent is None:
            return True
        if isinstance(spent, threading.Event):
            hears.append(spent)
            return False
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
