"""S12 for the clock: several processes share one session's tasks; no update is lost, and nothing is delivered twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from routecodex.routing.clock.store import ClockStore
from tests.conftest import LONG
from tests.sheet import seen

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
PROCESSES = 4
UPDATES = 1_000 if LONG else 50
DELIVERIES = 200 if LONG else 25
"""For each process. Every delivery reads and writes all that there is."""

BEGINNING = """
import sys
import tests
from pathlib import Path
from msgspec.structs import replace
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from tests.rig.patience import wait_for_locks

wait_for_locks()
store, mine, updates = ClockStore(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
"""
SCHEDULE_AND_CANCEL = """
for number in range(updates):
    new = Task(f"{mine}-{number}", "shared", 1_800_000_000_000 + number, 0, 0, f"task {number} of {mine}")
    assert new in store.update("shared", lambda tasks: [*tasks, new])
    print(f"+{new.task_id}")
    if number % 10:
        left = store.update("shared", lambda tasks: [task for task in tasks if task.task_id != new.task_id])
        assert new not in left
        print(f"-{new.task_id}")
"""
FILL = """
new = [Task(f"{mine}-{number}", "shared", number, 0, 0, "task") for number in range(updates)]
store.update("shared", lambda tasks: [*tasks, *new])
"""
DELIVER = """
while True:
    told = []

    def deliver(tasks):
        waiting = next((task for task in tasks if task.delivered_at_ms is None), None)
        told[:] = [waiting.task_id] if waiting else []
        changed = [replace(task, delivered_at_ms=1, delivery_count=task.delivery_count + 1) for task in tasks if task is waiting]
        return [*changed, *(task for task in tasks if task is not waiting)]

    store.update("shared", deliver)
    if not told:
        break
    print(f"+{told[0]}")
"""
SWEEP = """
for number in range(updates):
    store.update("shared", lambda tasks: [*tasks, Task(f"{mine}-{number}", "shared", number, 0, 0, "old")])
    print(f"+{store.sweep(10**12, 5)}")
"""


def run(folder: Path, program: str, updates: int = UPDATES) -> list[list[str]]:
    """What each process said."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BEGINNING + program, str(folder), f"p{number}", str(updates)],
            env=ENVIRONMENT,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    said = [process.communicate(timeout=900)[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0] * PROCESSES
    return said


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "clock").iterdir() if path.is_file())


def test_s12_no_update_is_lost(tmp_path: Path) -> None:
    said = run(tmp_path, SCHEDULE_AND_CANCEL)
    kept = UPDATES // 10
    assert [len(lines) for lines in said] == [2 * UPDATES - kept] * PROCESSES
    expected = {f"p{process}-{number}" for process in range(PROCESSES) for number in range(0, UPDATES, 10)}
    store = ClockStore(tmp_path)
    assert {task.task_id for task in store.load("shared")} == expected
    assert store.warnings == []
    assert files(tmp_path) == ["shared.json"]
    seen("S12", f"clock: {PROCESSES} processes, {sum(map(len, said)):,} acknowledged changes, 0 lost")


def test_s12_each_is_marked_once(tmp_path: Path) -> None:
    run(tmp_path, FILL, DELIVERIES)
    said = [line for lines in run(tmp_path, DELIVER) for line in lines]
    assert len(said) == len(set(said)) == PROCESSES * DELIVERIES
    tasks = ClockStore(tmp_path).load("shared")
    assert [task.delivery_count for task in tasks] == [1] * PROCESSES * DELIVERIES


def test_s12_each_is_swept_once(tmp_path: Path) -> None:
    said = run(tmp_path, SWEEP)
    assert sum(int(line) for lines in said for line in lines) == PROCESSES * UPDATES
    assert files(tmp_path) == []
