"""The sheet is whole: no row without a test, no row that nobody asks for, and the document says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sheet import SOAK_S
from tests.sheet.__main__ import DOCUMENT, LONGEST_S, longest_of, one_command
from tests.sheet.rows import ROWS, Row
from tests.sheet.written import Result, merge, read, write

ROOT = Path(__file__).parents[2]
WANTED = {f"{letter}{number}" for letter, last in (("A", 14), ("R", 17), ("S", 14)) for number in range(1, last + 1)}


def test_every_figure_that_is_asked_has_its_row() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert set(names) - {"F", "N", "P", "Z"} == WANTED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_its_tests_are_there(row: Row) -> None:
    assert row.tests
    for test in row.tests:
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), test
        assert f"def {name}" in (ROOT / file).read_text() if name else True, test


def test_the_document_is_the_table() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert write(read(text)) == text, "python -m tests.sheet ROW writes it anew"


def test_what_was_seen_stays_until_it_is_seen_again() -> None:
    one, two = Result("A1", "10 / 10 | 2\ntests", "yes", "3 s", "2026-01-01"), Result("R1", "x", "**no**", "9 s", "2026-01-02")
    text = merge(merge("", "mitmproxy 1, Python 3", {"A1": one}), "mitmproxy 2, Python 4", {"A1": one})
    text = merge(text, "mitmproxy 1, Python 3", {"R1": two})
    found = read(text)
    assert found["mitmproxy 1, Python 3"]["R1"] == two
    assert found["mitmproxy 1, Python 3"]["A1"].seen == found["mitmproxy 2, Python 4"]["A1"].seen == "10 / 10 / 2 tests"
    assert found["mitmproxy 2, Python 4"]["R1"].seen == "not run yet"
    assert write(found) == text


def test_a_run_that_may_take_longer_does_not_hold_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.sheet.__main__.LONGEST_S", 90_000.0)
    assert one_command([], 2700).holds == "yes"
    assert one_command([], 2701).holds == "**no**"


def test_the_soak_is_not_ended_before_it_is_over() -> None:
    soak = [row for row in ROWS if row.apart]
    assert longest_of(soak) >= SOAK_S + 1800
    assert longest_of([row for row in ROWS if not row.apart]) == LONGEST_S
