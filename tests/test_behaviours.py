"""Every case of the published behaviours is tested somewhere under an id of its own.

A test names its case in its own name (`test_h05_…`), in the id of a parameter, or in a comment.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

BEHAVIOURS = {
    # tags, stopMessage tags, cleaning, state, routing with tags, the router, health
    "P": "01 03 04 05 07 08 09 11 12 13 15 18 19 20 21 22 23 24 26 27 28 29",
    "Q": "01 02 04 06 07 08 10 11 12 13 14 15 17 18 19 20",
    "X": "01 02 03 06 07 08",
    "S": "01 02 04 05 06 08 10 11 12",
    "R": "01 03 04 05 07 09 10 11 12 14",
    "V": "01 02 04 06 07 09 10 11 12 14 15 17 18 19 20",
    "H": "01 03 04 05 06 07 09 10 11 12 14 15 17",
    # stopMessage at work, the clock, finish reasons, the plugins' lifecycle, the command line
    "M": "01 02 03 05 06 07 08 09 10 11 13 14 15 17 18 19 21 22 24 25 26 27 28 29 32 33 34 35",
    "C": "01 02 03 04 05 06 07 09 10 11 12 14 15 16 17 20 21 22 23 24 25 26 28 29 30 31 32 33 34 35 36 38 39",
    "F": "01 02 03 05 06 08 09 11 12",
    "L": "01 02 03 05 06 08 09 10 13 14 16",
    "D": "01 02 03 04 06",
}
IDS = [f"{family}{number}" for family, numbers in BEHAVIOURS.items() for number in numbers.split()]

TROUBLE = {
    "trouble/test_retries.py": {"R10"},
    "routing/router/test_health.py": {"R10"},
    "routing/dialects/answer/test_answers.py": {"R05"},
    "routing/dialects/calls/test_reading.py": {"S11"},
}
"""Ids of another list, of what goes wrong, that look like these."""

_ID = re.compile(r"(?<![a-z0-9])([pqxsrvhmcfld]\d\d)(?![a-z0-9])", re.IGNORECASE)


def _ids_in(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8").replace("_", " ").replace("\\x", "")
    return {found.upper() for found in _ID.findall(text)} - TROUBLE.get(path.relative_to(TESTS).as_posix(), set())


TESTED = {id for path in TESTS.rglob("*.py") if path != Path(__file__) for id in _ids_in(path)}


@pytest.mark.parametrize("id", IDS)
def test_each_is_tested(id: str) -> None:
    assert id in TESTED


def test_the_other_lists_ids_are_where_they_are_said_to_be() -> None:
    for path, ids in TROUBLE.items():
        text = (TESTS / path).read_text(encoding="utf-8").upper().replace("_", " ")
        assert all(id in text for id in ids), path


@pytest.mark.parametrize(
    "text, ids",
    [
        ("def test_h05_another_key", {"H05"}),
        ('pytest.param(1, id="P13-fourth")', {"P13"}),
        ('"V02 first pool"', {"V02"}),
        ("# R04: cleared", {"R04"}),
        ("test_h05x sh05 ch051 0xP01 \\x00", set()),
    ],
)
def test_how_ids_are_found(text: str, ids: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.TESTS", tmp_path)
    (tmp_path / "test_a.py").write_text(text)
    assert _ids_in(tmp_path / "test_a.py") == ids
