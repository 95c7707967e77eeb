"""S14 for the clock: whatever fails or dies while tasks are saved, none that was acknowledged is lost and no file is torn."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routecodex.routing.clock.moment import moment_at
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task, Tasks
from routecodex.routing.clock.tool import ToolDesk, answer
from routecodex.routing.storage.disk import Disk
from tests.conftest import LONG
from tests.sheet import seen

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
KILLS = 500 if LONG else 12
NOW = 1_800_000_000_000
RETENTION = 1_200_000
ID = "crash"
CALLS = ("open", "write", "fsync", "replace", "fsync_dir")
FAULTS = ("EIO", "ENOSPC", "EACCES", "die before", "die after")
DEAD = 9


class FaultyDisk(Disk):
    """Fails, or dies before or after, one of the five calls; of what is written, a part is written then."""

    def __init__(self, call: str, fault: str) -> None:
        good, half = getattr(super(), call), super().write

        def bad(*arguments: object) -> object:
            if call == "write" and fault != "die after":
                half(arguments[0], bytes(arguments[1])[:60])  # type: ignore[arg-type]
            if fault == "die after":
                good(*arguments)
            if fault.startswith("die"):
                os._exit(DEAD)
            raise OSError(getattr(errno, fault), os.strerror(getattr(errno, fault)))

        setattr(self, call, bad)


def tool(folder: Path, disk: Disk | None = None, **arguments: object) -> dict[str, object]:
    """One call of the tool, in a process that has just started."""
    desk = ToolDesk(
        store=ClockStore(folder, disk),
        session_id=ID,
        request_id="r1",
        prompt="p1",
        moment=moment_at(NOW, 0, "UTC"),
        trusted_now_ms=NOW,
        window_ms=60_000,
        retention_ms=RETENTION,
        new_id=lambda: f"id-{time.monotonic_ns()}",
        ntp={},
    )
    return answer(arguments, desk)


def item(text: str, due: str = "2027-01-15T09:00:00Z") -> dict[str, object]:
    return {"dueAt": due, "task": text, "tool": "", "arguments": "{}"}


def prepare(folder: Path) -> None:
    store = ClockStore(folder)
    store.update(
        ID, lambda _: [Task(f"old-{number}", ID, NOW - RETENTION - number, NOW, NOW, f"old {number}") for number in range(3)]
    )
    store.save_ntp_state(b'{"version":1}')


CHANGES: dict[str, tuple[Callable[[Path, Disk], object], list[str]]] = {
    "schedule": (
        lambda folder, disk: tool(folder, disk, action="schedule", items=[item("new")]),
        ["old 0", "old 1", "old 2", "new"],
    ),
    "cancel": (lambda folder, disk: tool(folder, disk, action="cancel", taskId="old-1"), ["old 0", "old 2"]),
    "clear": (lambda folder, disk: tool(folder, disk, action="clear"), []),
    "sweep": (lambda folder, disk: ClockStore(folder, disk).sweep(NOW, RETENTION), ["old 0"]),
}
OLD = ["old 0", "old 1", "old 2"]


def texts(tasks: Tasks) -> list[str]:
    return sorted(task.task for task in tasks)


def after_the_next_start(folder: Path) -> Tasks:
    """What is there; nothing that a crash left may lie about, nothing may be damaged."""
    store = ClockStore(folder)
    tasks = store.load(ID)
    assert store.warnings == []
    assert store.ntp_state() == b'{"version":1}'
    files = {path.name for path in (folder / "clock").iterdir() if path.is_file()}
    assert files == {"ntp-state.json"} | ({"crash.json"} if tasks else set())
    return tasks


def lasts(change: str, call: str, fault: str) -> bool | None:
    """Whether the new tasks are there after the fault; None where the change does without that call."""
    if change == "clear":
        return True if call == "fsync_dir" else None
    return call == "fsync_dir" or (call, fault) == ("replace", "die after")


@pytest.mark.parametrize("fault", FAULTS[:3])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("change", CHANGES)
def test_a10_a_failing_call(tmp_path: Path, change: str, call: str, fault: str) -> None:
    prepare(tmp_path)
    run, new = CHANGES[change]
    said = run(tmp_path, FaultyDisk(call, fault))
    expected = lasts(change, call, fault)
    if isinstance(said, dict):
        assert said["ok"] is (expected is None), "acknowledged only where the disk has it"
    assert texts(after_the_next_start(tmp_path)) == sorted(OLD if expected is False else new)


@pytest.fixture(scope="module")
def dying() -> Iterator[Callable[..., int]]:
    """One process that is begun once and splits for each death: what it returns is how it died."""
    program = """
import os, sys
from pathlib import Path
from tests.trouble.test_clock_crash import *
for line in sys.stdin:
    folder, change, call, fault = line.rstrip("\\n").split("\\t")
    if not (child := os.fork()):
        CHANGES[change][0](Path(folder), FaultyDisk(call, fault))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=ENVIRONMENT, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:

        def die(*how: object) -> int:
            assert parent.stdin is not None
            assert parent.stdout is not None
            parent.stdin.write("\t".join(map(str, how)) + "\n")
            parent.stdin.flush()
            return int(parent.stdout.readline())

        yield die
        parent.communicate(timeout=60)


@pytest.mark.parametrize("fault", FAULTS[3:])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("change", CHANGES)
def test_a10_dying_at_a_call(tmp_path: Path, dying: Callable[..., int], change: str, call: str, fault: str) -> None:
    prepare(tmp_path)
    ended = dying(tmp_path, change, call, fault)
    expected = lasts(change, call, fault)
    assert ended == (0 if expected is None else DEAD)
    assert texts(after_the_next_start(tmp_path)) == sorted(OLD if expected is False else CHANGES[change][1])


class Diary(Disk):
    """What is done, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        for call in CALLS:
            setattr(self, call, self._noted(call, getattr(super(), call)))

    def _noted(self, call: str, good: Callable[..., object]) -> Callable[..., object]:
        def noted(*arguments: object) -> object:
            self.done.append(call)
            return good(*arguments)

        return noted


@pytest.mark.parametrize("change", CHANGES)
def test_a10_everything_is_on_disk_before_it_is_acknowledged(tmp_path: Path, change: str) -> None:
    prepare(tmp_path)
    disk = Diary()
    CHANGES[change][0](tmp_path, disk)
    assert disk.done == (["fsync_dir"] if change == "clear" else list(CALLS))


def text_of(number: int) -> str:
    return f"task {number} " + "x" * (number * 37 % 4000)


SCHEDULER = """
import sys
from pathlib import Path
from tests.trouble.test_clock_crash import item, text_of, tool

folder, first = Path(sys.argv[1]), int(sys.argv[2])
with open(sys.argv[3], "a", buffering=1) as acknowledged:
    for number in range(first, first + 10**6):
        found = tool(folder, action="schedule", items=[item(text_of(number))])
        assert found["ok"], found
        acknowledged.write(f"+{number} {found['scheduled'][0]['taskId']}\\n")
        if number % 3 == 0:
            acknowledged.write(f"?{number}\\n")
            assert tool(folder, action="cancel", taskId=found["scheduled"][0]["taskId"])["removed"]
            acknowledged.write(f"-{number}\\n")
"""


def test_s14_kill_9_at_random_points(tmp_path: Path) -> None:
    """The child writes down what was acknowledged; what it was just about to hear may be there or not, and nothing else."""
    chance = random.Random(14)
    folder, acknowledged = tmp_path / "sessions", tmp_path / "acknowledged"
    ClockStore(folder).save_ntp_state(b'{"version":1}')
    alive: dict[int, str] = {}
    first = total = 0
    for _ in range(KILLS):
        acknowledged.write_text("")
        child = subprocess.Popen(
            [sys.executable, "-c", SCHEDULER, str(folder), str(first), str(acknowledged)], env=ENVIRONMENT, cwd=ROOT
        )
        while acknowledged.stat().st_size == 0:
            assert child.poll() is None
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=120)
        lines = acknowledged.read_text().splitlines()
        doubtful = judge(lines, alive)
        total += len(lines)
        tasks = after_the_next_start(folder)
        found = {int(task.task.split()[1]): task.task_id for task in tasks}
        assert {task.task for task in tasks} == {text_of(number) for number in found}
        missing = {number for number, id in alive.items() if found.get(number) != id}
        assert missing <= doubtful, "an acknowledged task is lost"
        newest = max(number for number in (int(line[1:].split()[0]) for line in lines))
        assert found.keys() - alive.keys() <= {newest + 1}, "only what was being written may be there as well"
        alive, first = trimmed(folder, found), newest + 2
    assert total >= KILLS
    seen("S14", f"clock: {KILLS} kills, {total:,} acknowledged changes, 0 lost")


def judge(lines: list[str], alive: dict[int, str]) -> set[int]:
    """Brings what must be there up to date; tells what may be there or not."""
    doubtful: set[int] = set()
    for line in lines:
        number = int(line[1:].split()[0])
        if line[0] == "+":
            alive[number] = line.split()[1]
        elif line[0] == "?":
            doubtful.add(number)
        else:
            del alive[number]
            doubtful.discard(number)
    return doubtful


def trimmed(folder: Path, found: dict[int, str]) -> dict[int, str]:
    """Only the newest stay, so that the file does not grow from kill to kill."""
    kept = dict(sorted(found.items())[-20:])
    ClockStore(folder).update(ID, lambda tasks: [task for task in tasks if task.task_id in kept.values()])
    return kept
