from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from routecodex.addons import usage_writer
from routecodex.addons.usage_writer import WAITING, UsageWriter
from routecodex.routing.usage.ledger import Ledger
from routecodex.routing.usage.prices import Price
from routecodex.routing.usage.report import of_file, report
from routecodex.routing.usage.spending import Row
from tests.routing.usage.test_ledger import row


def test_all_that_was_noted_is_there_after_the_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.sqlite", retention_days=400)
    writer = UsageWriter(ledger, lambda one, url: Price(input=1, output=1))
    for at in range(1000):
        writer.note(row(round=at, dollars=None), "")
    writer.close(60)
    totals = report(ledger, "daily")["totals"]
    assert (totals["requests"], totals["totalCost"]) == (1000, 1.05)
    ledger.close()


def test_it_begins_anew_after_its_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "usage.sqlite", retention_days=400)
    writer = UsageWriter(ledger, lambda one, url: None)
    for _ in range(2):
        writer.note(row(), "")
        writer.close(60)
    assert report(ledger, "daily")["totals"]["requests"] == 2
    ledger.close()


def test_who_asks_hears_of_what_was_noted_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the writer would wait for more."""
    monkeypatch.setattr(usage_writer, "_PAUSE_S", 3600.0)
    ledger = Ledger(tmp_path / "usage.sqlite", retention_days=400)
    writer = UsageWriter(ledger, lambda one, url: None)
    writer.settle()  # nothing was noted yet
    for asked in range(1, 4):
        writer.note(row(), "")
        writer.settle(60)
        assert of_file(ledger.path, "daily")["totals"]["requests"] == asked
        writer.settle(60)  # nothing came since
    writer.close(60)
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
    """Rows wait, up to a bound."""
    ledger = _Stuck(tmp_path / "usage.sqlite")
    writer = UsageWriter(ledger, lambda one, url: None)
    writer.note(row(), "")
    assert ledger.begun.wait(60)
    for _ in range(WAITING + 500):
        writer.note(row(), "")
    assert writer._spent.qsize() == WAITING
    while not writer._spent.empty():
        writer._spent.get()
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
        writer.note(row(), "")
        writer.close(60)
    finally:
        logging.getLogger("routecodex").removeHandler(handler)
    assert len(said) == 1
    assert "disk is full" in said[0]
