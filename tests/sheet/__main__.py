"""`python -m tests.sheet [ROWS]`: runs the rows (all, without the soak, if none is named) and writes what was seen into
`docs/reliability.md`, into the section of this mitmproxy; other rows and other sections stay as they are."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mitmproxy import version

from tests.sheet import RECORD
from tests.sheet.rows import ROWS, Row
from tests.sheet.written import Result, merge

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reliability.md"
LONGEST_S = 1500
"""No row takes longer: what does is ended, and told so."""
AT_ONCE = 2


@dataclass(frozen=True)
class Ran:
    seconds: float
    passed: int
    failed: int
    said: tuple[tuple[str, bool], ...]

    @property
    def holds(self) -> bool:
        return self.passed > 0 and not self.failed and all(holds for _, holds in self.said)

    @property
    def seen(self) -> str:
        told = [figure if holds else f"**{figure}**" for figure, holds in self.said]
        return "; ".join([*dict.fromkeys(told), f"{self.passed} tests" + (f", **{self.failed} failed**" if self.failed else "")])


def run(row: Row) -> Ran:
    with tempfile.TemporaryDirectory(prefix="sheet-") as folder:
        record, report = Path(folder, "seen"), Path(folder, "report.xml")
        environment = os.environ | {"ROUTECODEX_TESTS": "long", RECORD: str(record)}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={report}", *row.tests]
        began = time.monotonic()
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LONGEST_S, check=False)
            told = done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as error:
            told = f"not done after {LONGEST_S} s\n{(error.stdout or b'').decode(errors='replace')}"
        taken = time.monotonic() - began
        passed, failed = _counted(report)
        ran = Ran(taken, passed, failed or int(not passed), tuple(_said(record, row.name)))
    print(f"{row.name:4} {'holds' if ran.holds else 'DOES NOT HOLD':13} {taken:6.0f} s  {ran.seen}", flush=True)
    if ran.failed:
        print(told[-6000:], flush=True)
    return ran


def _counted(report: Path) -> tuple[int, int]:
    if not report.exists():
        return 0, 0
    suite = next(ElementTree.parse(report).getroot().iter("testsuite")).attrib
    failed = int(suite["failures"]) + int(suite["errors"])
    return int(suite["tests"]) - failed, failed


def _said(record: Path, name: str) -> Iterator[tuple[str, bool]]:
    """What its own tests told; other rows' figures of the same tests are told there."""
    told = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []
    for one in told:
        if one.get("row") == name:
            yield one["figure"], one["holds"]
    if examples := sum(one.get("examples", 0) for one in told):
        yield f"{examples:,} generated examples", True


def main(names: list[str]) -> int:
    known = {row.name: row for row in ROWS}
    if unknown := [name for name in names if name not in known]:
        print(f"no such row: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    rows = [known[name] for name in names] if names else [row for row in ROWS if not row.apart]
    began = time.monotonic()
    results: dict[str, Result] = {}

    def take(row: Row, ran: Ran) -> None:
        load = "" if not row.timed else f" (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors)"
        when = datetime.now(UTC).date().isoformat()
        results[row.name] = Result(row.name, ran.seen + load, "yes" if ran.holds else "**no**", f"{ran.seconds:.0f} s", when)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        counted = [row for row in rows if not row.timed]
        for row, ran in zip(counted, pool.map(run, counted), strict=True):
            take(row, ran)
    for row in rows:  # what is timed is alone
        if row.timed:
            take(row, run(row))
    python = ".".join(platform.python_version_tuple()[:2])
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
    DOCUMENT.write_text(merge(text, f"mitmproxy {version.VERSION}, Python {python}", results), encoding="utf-8")
    no = [name for name, result in results.items() if result.holds != "yes"]
    print(f"{len(results)} rows in {(time.monotonic() - began) / 60:.0f} minutes; not held: {', '.join(no) or 'none'}")
    return int(bool(no))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
