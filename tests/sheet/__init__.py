"""The acceptance sheet: what must hold in trouble, in figures; which tests show it; and what was seen (`docs/reliability.md`).

`python -m tests.sheet` runs it in the long profile.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path

RECORD = "ROUTECODEX_SHEET"
"""The file that takes what tests have seen, where the sheet runs them."""
SOAK_S = float(os.environ.get("SOAK_S", "3600"))
"""How long the soak takes, when its memories are full."""


def seen(row: str, figure: str, *, holds: bool = True) -> None:
    """What a test has counted, for a row of the sheet. `holds`: for what is timed, where a busy machine must fail no test."""
    print(f"{row}: {figure}{'' if holds else ' (does not hold)'}")
    _record({"row": row, "figure": figure, "holds": holds})


class Tally(Counter[str]):
    """What the tests of one file count together, told when the last of them is over."""

    _all: list[Tally] = []  # noqa: RUF012 - each that there is

    def __init__(self, rows: str, figure: str) -> None:
        """`figure`: with the counts in braces."""
        super().__init__()
        self._rows, self._figure = rows, figure
        self._all.append(self)

    @classmethod
    def tell(cls) -> None:
        for one in cls._all:
            for row in one._rows.split() if one.total() else ():
                seen(row, one._figure.format_map(defaultdict(int, one)))
            one.clear()


def note_asked(tests: list[str]) -> None:
    """All that is going to be run."""
    _record({"asked": tests})


def note_outcome(test: str, outcome: str, seconds: float, examples: int, cases: int) -> None:
    """How a test ended, whichever rows it belongs to; how many examples its search tried, and how many cases it has."""
    _record({"test": test, "outcome": outcome, "seconds": seconds, "examples": examples, "cases": cases})


def _record(told: dict[str, object]) -> None:
    if path := os.environ.get(RECORD):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
