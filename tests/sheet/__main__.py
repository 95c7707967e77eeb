"""`python -m tests.sheet [ROWS]`: runs the rows (all, without the soak, if none is named) and writes what was seen into
`docs/reliability.md`, into the section of this mitmproxy; other rows and other sections stay as they are. SHEET_LONGEST_S: how
long either part may take (what is counted, and what is timed). SOAK_S: how long row Z takes, if it is asked for."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mitmproxy import version

from routecodex.routing.storage.lock import FileLock
from tests.sheet import RECORD, SOAK_S
from tests.sheet.rows import ROWS, Row
from tests.sheet.written import ALL, Result, merge

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reliability.md"
ASKED_S = 2700
"""Of all rows."""
LONGEST_S = float(os.environ.get("SHEET_LONGEST_S", ASKED_S))
"""What is not done by then is to be run again."""
_FIRST = 5
AT_ONCE = int(os.environ.get("SHEET_AT_ONCE", "2"))


@dataclass
class Ran:
    """What became of a row's tests."""

    row: Row
    ended: dict[str, tuple[str, float]] = field(default_factory=dict)
    said: list[tuple[str, bool]] = field(default_factory=list)
    examples: int = 0
    cases: int = 0
    done: bool = True
    """All that belongs to it has run."""

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.ended.values())

    @property
    def failed(self) -> list[str]:
        return [test for test, (outcome, _) in self.ended.items() if outcome == "failed"]

    @property
    def holds(self) -> str:
        if self.failed or not all(holds for _, holds in self.said):
            return "**no**"
        return "yes" if self.done and self.ended else "run again"

    @property
    def seen(self) -> str:
        told = [*dict.fromkeys(figure if holds else f"**{figure}**" for figure, holds in self.said)]
        if self.row.figure and self.ended and not self.failed:
            told.append(self.row.figure.format(cases=self.cases, examples=self.examples))
        told += [f"{self.examples:,} generated examples"] if self.examples else []
        cases = f" of {self.cases:,} cases" if self.cases > len(self.ended) else ""
        told.append(f"{len(self.ended)} tests{cases}" + ("" if self.done else ", then it was ended"))
        return "; ".join(told + [f"**failed: {test.rpartition('/')[2]}**" for test in self.failed[:3]])


def run(rows: Sequence[Row], pytest: Sequence[str], longest_s: float) -> list[Ran]:
    """All of them in one go: what several rows ask for runs once."""
    tests = list(dict.fromkeys(test for row in rows for test in row.tests))
    whole = {test for test in tests if "::" not in test}
    tests = [test for test in tests if test in whole or test.partition("::")[0] not in whole]
    with tempfile.TemporaryDirectory(prefix="sheet-") as folder:
        record = Path(folder, "seen")
        record.touch()
        environment = os.environ | {"ROUTECODEX_TESTS": "long", RECORD: str(record)}
        command = [*pytest, "-q", "-p", "no:cacheprovider", "--tb=short", *tests]
        with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
            try:
                process.wait(longest_s)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                process.send_signal(signal.SIGINT)  # it ends the proxies that it has started
                process.wait()
        lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return [_ran(row, lines) for row in rows]


def longest_of(rows: Sequence[Row]) -> float:
    """What is asked for by its time may take it, and fill its memories before and end its calls after it."""
    return LONGEST_S + SOAK_S if any(row.apart for row in rows) else LONGEST_S


def _ran(row: Row, lines: Sequence[dict[str, Any]]) -> Ran:
    """Figures of its name, and the outcomes of its tests, whichever row they were begun for."""
    ran = Ran(row)
    asked = {test for line in lines for test in line.get("asked", ()) if test.startswith(row.tests)}
    for line in lines:
        if line.get("row") == row.name:
            ran.said.append((line["figure"], line["holds"]))
        elif line.get("test") in asked:
            ran.ended[line["test"]] = (line["outcome"], line["seconds"])
            ran.examples += line["examples"]
            ran.cases += line["cases"]
    ran.done = asked <= ran.ended.keys()
    return ran


def results_of(rans: Sequence[Ran]) -> list[Result]:
    load = busy()
    return [
        Result(ran.row.name, ran.seen + load * ran.row.timed, ran.holds, f"{ran.seconds:.0f} s", today())
        for ran in rans
        if ran.ended
    ]


def busy() -> str:
    """Whether it ran as if nobody else were there is told, too."""
    is_first = hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER
    return f" (load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors{', with real-time priority' if is_first else ''})"


@contextlib.contextmanager
def first() -> Iterator[None]:
    """Before everybody else, where the system allows that: what is timed by the clock says nothing on a machine that is busy with
    something else. What it starts inherits it."""
    try:
        before, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_FIRST))
    except (AttributeError, OSError):
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, parameter)


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def one_command(rans: Sequence[Ran], seconds: float) -> Result:
    """What is asked of the whole: so many minutes."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    said = f"{len(rans)} rows in one command{f', commit {commit}' if commit else ''}{busy()}"
    return Result(
        ALL, said, "yes" if seconds <= ASKED_S and all(ran.done for ran in rans) else "**no**", f"{seconds:.0f} s", today()
    )


def store(found: Sequence[Result]) -> None:
    """Two lines may run side by side."""
    results = {result.name: result for result in found}
    python = ".".join(platform.python_version_tuple()[:2])
    with FileLock(Path(tempfile.gettempdir(), "routecodex-sheet.lock"), wait_s=60):
        text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
        DOCUMENT.write_text(merge(text, f"mitmproxy {version.VERSION}, Python {python}", results), encoding="utf-8")


def main(names: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where it runs behind a shell, it and its tests would hear none
    known = {row.name: row for row in ROWS}
    if unknown := [name for name in names if name not in known]:
        print(f"no such row: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    rows = [known[name] for name in names] if names else [row for row in ROWS if not row.apart]
    began, rans = time.monotonic(), []
    for timed, workers in ((False, str(AT_ONCE)), (True, "0")):  # what is timed is alone
        chosen = [row for row in rows if row.timed is timed]
        if chosen:
            with first() if timed and not any(row.apart for row in chosen) else contextlib.nullcontext():
                some = run(chosen, [sys.executable, "-m", "pytest", "-n", workers], longest_of(chosen))
                store(results_of(some))
            rans += some
    for ran in rans:
        print(f"{ran.row.name:4} {ran.holds:10} {ran.seconds:6.0f} s  {ran.seen}")
    if not names:
        store([one_command(rans, time.monotonic() - began)])
    not_held = [ran.row.name for ran in rans if ran.holds != "yes"]
    print(f"{len(rows)} rows in {(time.monotonic() - began) / 60:.0f} minutes; not held: {', '.join(not_held) or 'none'}")
    return int(bool(not_held))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
