from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.usage.ledger import Ledger
from routecodex.routing.usage.report import VERBS, report
from routecodex.routing.usage.spending import Row

DAY = 86_400_000
NOON = 1_780_000_000_000


def row(**fields: Any) -> Row:
    told: dict[str, Any] = {"time_ms": NOON, "session": "s", "client": "claude-code", "call": "c", "round": 1, "asked": "claude"}
    told |= {"provider": "glm", "key": "k1", "model": "glm-4.7", "dollars": 0.5}
    told |= {"input": 1000, "cached": 600, "written": 100, "output": 50, "reasoning": 20}
    return Row(**{**told, **fields})


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    made = Ledger(tmp_path / "usage.sqlite", retention_days=400)
    yield made
    made.close()


def test_four_rounds_of_a_call_are_four_rounds(ledger: Ledger) -> None:
    ledger.write([row(round=at, input=1000, cached=0, written=0) for at in (1, 2, 3, 4)], NOON)
    totals = report(ledger, "daily")["totals"]
    assert (totals["inputTokens"], totals["outputTokens"], totals["requests"]) == (4000, 200, 4)


@pytest.mark.parametrize("by", VERBS)
def test_every_grouping_comes_to_the_same_totals(ledger: Ledger, by: Any) -> None:
    ledger.write([row(), row(time_ms=NOON - 40 * DAY, session="t", key="k2", model="x"), row(client="codex", provider="p")], NOON)
    told = report(ledger, by)
    groups = told["sessions" if by == "session" else by]
    assert sum(group["totalTokens"] for group in groups) == told["totals"]["totalTokens"] == 3 * 1050
    assert sum(group["totalCost"] for group in groups) == told["totals"]["totalCost"] == 1.5
    assert {name for group in groups for name in group["modelsUsed"]} == {"glm-4.7", "x"}
    for group in groups:
        assert sum(one["cost"] for one in group["modelBreakdowns"]) == group["totalCost"]


def test_unknown_is_never_nothing(ledger: Ledger) -> None:
    ledger.write([row(input=None, cached=None, written=None, output=None, reasoning=None, dollars=None)], NOON)
    totals = report(ledger, "model")["totals"]
    assert totals["totalCost"] is None
    assert (totals["unknownRequests"], totals["unpricedRequests"], totals["totalTokens"]) == (1, 1, 0)


def test_a_span_of_days_and_one_session(ledger: Ledger) -> None:
    ledger.write([row(time_ms=NOON - DAY), row(), row(time_ms=NOON + DAY, session="t")], NOON)
    assert report(ledger, "daily", since_ms=NOON, until_ms=NOON + 1)["totals"]["requests"] == 1
    assert report(ledger, "daily", session="t")["totals"]["requests"] == 1


def test_what_is_older_than_people_want_goes(ledger: Ledger) -> None:
    ledger.write([row(time_ms=NOON - 401 * DAY), row(time_ms=NOON - 399 * DAY)], NOON - 399 * DAY)
    ledger.close()
    again = Ledger(ledger.path, retention_days=400)
    again.write([row()], NOON)
    assert report(again, "daily")["totals"]["requests"] == 2
    again.close()


@pytest.mark.parametrize("opened", [True, False], ids=["before it is opened", "while it is open"])
def test_a_file_that_is_damaged_inside_is_set_aside_and_told(tmp_path: Path, opened: bool) -> None:
    """Opening it looks at its head alone."""
    path, told = tmp_path / "usage.sqlite", list[str]()
    ledger = Ledger(path, retention_days=1, note=told.append)
    ledger.write([row() for _ in range(500)], NOON)
    ledger.close()
    if not opened:
        report(ledger, "daily")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    ledger.write([row()], NOON)
    assert report(ledger, "daily")["totals"]["requests"] == 1
    assert "cannot be read" in told[0]
    assert next(tmp_path.glob("*.damaged-*")).stat().st_size
    ledger.close()


def test_a_damaged_file_is_set_aside_and_told(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite"
    path.write_bytes(b"this is no database, " * 100)
    told: list[str] = []
    ledger = Ledger(path, retention_days=1, note=told.append)
    ledger.write([row()], NOON)
    assert report(ledger, "daily")["totals"]["requests"] == 1
    assert "cannot be read" in told[0]
    (aside,) = tmp_path.glob("*.damaged-*")
    assert aside.read_bytes().startswith(b"this is no database")
    ledger.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "usage.sqlite"
    ledger = Ledger(path, retention_days=1)
    ledger.write([row()], NOON)
    ledger._connection().execute("pragma user_version = 99")
    ledger.close()
    with pytest.raises(Exception, match="newer RouteCodex"):
        Ledger(path, retention_days=1).write([row()], NOON)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_nobody_else_reads_it(ledger: Ledger) -> None:
    ledger.write([row()], NOON)
    for path in ledger.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


_WRITER = """
import sys
import tests
from routecodex.routing.usage.ledger import Ledger
from tests.routing.usage.test_ledger import row
from pathlib import Path
ledger = Ledger(Path(sys.argv[1]), retention_days=400)
for at in range(50):
    ledger.write([row(call=sys.argv[2], round=at)], 0)
"""


def test_several_processes_write_to_one_file(ledger: Ledger) -> None:
    root = Path(__file__).parents[3]
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(ledger.path), str(at)], cwd=root) for at in range(3)]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    assert report(ledger, "daily")["totals"]["requests"] == 150


def test_a_file_of_the_version_before_grows(tmp_path: Path) -> None:
    """Two processes may come upon it at once."""
    path = tmp_path / "usage.sqlite"
    made = ", ".join(name.replace("time_ms", "time") for name in Row._fields if name != "user")
    with contextlib.closing(sqlite3.connect(path)) as old, old:
        old.execute(f"create table rounds ({made})")
        old.execute(f"insert into rounds values ({','.join('?' * (len(Row._fields) - 1))})", row()[:-1])
        old.execute("pragma user_version = 1")
    ledgers = [Ledger(path, retention_days=400) for _ in range(2)]
    for at, one in enumerate(ledgers):
        one.write([row(user=f"person {at}")], NOON)
    assert [group["user"] for group in report(ledgers[0], "user")["user"]] == ["", "person 0", "person 1"]
    assert report(ledgers[1], "daily", user="person 1")["totals"]["requests"] == 1
    for one in ledgers:
        one.close()
