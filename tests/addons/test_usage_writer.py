from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from routecodex.addons.usage_writer import CALLS_WAITING, WAITING, UsageWriter
from routecodex.routing.usage.flight import Flown, Loss
from routecodex.routing.usage.ledger import Ledger
from routecodex.routing.usage.prices import Price
from routecodex.routing.usage.report import report
from routecodex.routing.usage.spending import Row, Spent
from tests.routing.usage.test_flight import COLD, flown, messages_body
from tests.routing.usage.test_ledger import row


def spent(flown: Flown | None = None, lost: Callable[[Loss], None] = lambda loss: None, **fields: object) -> Spent:
    return Spent(row(**fields), "", flown, lost)


def test_all_that_was_noted_is_there_after_the_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.sqlite", retention_days=400)
    writer = UsageWriter(ledger, lambda one, url: Price(input=1, output=1))
    for at in range(1000):
        writer.note(spent(round=at, dollars=None))
    writer.close(60)
    totals = report(ledger, "daily")["totals"]
    assert (totals["requests"], totals["totalCost"]) == (1000, 1.05)
    ledger.close()


def test_it_begins_anew_after_its_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.sqlite", retention_days=400)
    writer = UsageWriter(ledger, lambda one, url: None)
    for _ in range(2):
        writer.note(spent())
        writer.close(60)
    assert report(ledger, "daily")["totals"]["requests"] == 2
    ledger.close()


class _Full(Ledger):
    def write(self, rows: Iterable[Row], now_ms: int) -> None:
        raise sqlite3.OperationalError("database or disk is full")


class _Stuck(Ledger):
    def __init__(self, path: Path) -> None:
        super().__init__(path, retention_days=1)
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def write(self, rows: Iterable[Row], now_ms: int) -> None:
        self.begun.set()
        self.goes_on.wait(60)


def test_a_disk_that_hangs_does_not_fill_the_memory(tmp_path: Path) -> None:
    """Rows wait, up to a bound; the calls that they tell of do not, but for a few."""
    ledger = _Stuck(tmp_path / "usage.sqlite")
    writer = UsageWriter(ledger, lambda one, url: None)
    writer.note(spent())
    assert ledger.begun.wait(60)
    call = flown(messages_body())
    for _ in range(WAITING + 500):
        writer.note(spent(call))
    waiting = writer._spent
    assert waiting.qsize() == WAITING
    held = [waiting.get() for _ in range(WAITING)]
    assert sum(one is not None and one.flown is not None for one in held) == CALLS_WAITING
    ledger.goes_on.set()
    writer.close(60)


def test_a_full_disk_is_told_and_holds_nobody(tmp_path: Path, caplog: object) -> None:
    import logging

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("routecodex").addHandler(handler)
    try:
        writer = UsageWriter(_Full(tmp_path / "usage.sqlite", retention_days=1), lambda one, url: None)
        writer.note(spent())
        writer.close(60)
    finally:
        logging.getLogger("routecodex").removeHandler(handler)
    assert len(said) == 1
    assert "disk is full" in said[0]


def test_a_lost_cache_is_told_with_what_it_cost(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.sqlite", retention_days=1)
    writer = UsageWriter(ledger, lambda one, url: Price(input=10, output=1, cached=1))
    told: list[Loss] = []
    body, other = messages_body(), messages_body()
    other["system"][0]["text"] = "another day"
    writer.note(spent(flown(body), told.append))
    writer.note(spent(flown(other, tokens=COLD), told.append))
    writer.close(60)
    (loss,) = told
    assert str(loss) == ("the cache was lost: instructions, part 1 changed, by the tool; 29,900 tokens were read anew ($0.27)")
    ledger.close()
