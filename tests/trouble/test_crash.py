"""A10 and F21: whatever fails or dies during a save, the file is the old one or the new one, and nothing stays behind."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from routecodex.routing.errors import StoreError
from routecodex.routing.sessions.state import EMPTY, SessionState
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.storage.disk import Disk
from tests.conftest import LONG
from tests.sheet import Tally, seen

ROOT = Path(__file__).parents[2]
KILLS = 500 if LONG else 12
KEY = SessionKey("session", "crash")
OLD = EMPTY.with_(allowed=("old",) * 50)
NEW = EMPTY.with_(allowed=("new",) * 60)
CALLS = ("open", "write", "fsync", "replace", "fsync_dir")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


class FaultyDisk(Disk):
    """Fails, or dies before or after, one of the five calls; half of the bytes are written then."""

    def __init__(self, call: str, fault: str) -> None:
        self.fault = fault
        good = getattr(super(), call)
        half = super().write

        def bad(*arguments: object) -> object:
            if call == "write" and fault != "die after":
                half(arguments[0], bytes(arguments[1])[:40])  # type: ignore[arg-type]
            if fault == "die before":
                os._exit(9)
            if fault == "die after":
                good(*arguments)
                os._exit(9)
            raise OSError(getattr(errno, fault), os.strerror(getattr(errno, fault)))

        setattr(self, call, bad)


def _saved(folder: Path) -> SessionState:
    """What the next start finds; nothing else may lie there."""
    store = FileStore(folder)
    state = store.load(KEY)
    assert store.warnings == []
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["session-crash.json"]
    return state


TALLY = Tally("A10", "{faults} faults of {faults} at the system calls of a save: the old file or the new one, and no other left")


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "EACCES"])
@pytest.mark.parametrize("call", CALLS)
def test_a10_a_failing_call(tmp_path: Path, call: str, fault: str) -> None:
    FileStore(tmp_path).update(KEY, lambda _: OLD)
    store = FileStore(tmp_path, FaultyDisk(call, fault))
    with pytest.raises(StoreError):
        store.update(KEY, lambda _: NEW)
    expected = NEW if call == "fsync_dir" else OLD
    assert store.load(KEY) == expected
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["session-crash.json"]
    assert _saved(tmp_path) == expected
    TALLY["faults"] += 1


@pytest.mark.parametrize("fault", ["die before", "die after"])
@pytest.mark.parametrize("call", CALLS)
def test_a10_dying_at_a_call(tmp_path: Path, call: str, fault: str) -> None:
    FileStore(tmp_path).update(KEY, lambda _: OLD)
    program = (
        "import sys; from pathlib import Path; from tests.trouble.test_crash import *; "
        "FileStore(Path(sys.argv[1]), FaultyDisk(sys.argv[2], sys.argv[3])).update(KEY, lambda _: NEW)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path), call, fault], env=ENVIRONMENT, cwd=ROOT, check=False)
    assert ended.returncode == 9
    is_replaced = call == "fsync_dir" or (call, fault) == ("replace", "die after")
    assert _saved(tmp_path) == (NEW if is_replaced else OLD)
    TALLY["faults"] += 1


COUNTER = """
import sys
import tests
from pathlib import Path
from routecodex.routing.sessions.state import StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey

store, key = FileStore(Path(sys.argv[1])), SessionKey("session", "crash")


def count(state):
    return state.with_(stop=StopMessage("go " * 300, 10**6, used=state.stop.used + 1 if state.stop else 1))


while True:
    state = store.update(key, count)
    sys.stdout.write(f"{state.stop.used}\\n")
    sys.stdout.flush()
"""


def test_f21_kill_9_at_random_points(tmp_path: Path) -> None:
    chance = random.Random(21)
    acknowledged = 0
    for _ in range(KILLS):
        child = subprocess.Popen([sys.executable, "-c", COUNTER, str(tmp_path)], env=ENVIRONMENT, stdout=subprocess.PIPE)
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        time.sleep(chance.uniform(0, 0.03))
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate()
        lines += [line for line in rest.splitlines(keepends=True) if line.endswith(b"\n")]
        acknowledged = max(acknowledged, *(int(line) for line in lines))
        stop = _saved(tmp_path).stop
        assert stop is not None
        assert acknowledged <= stop.used <= acknowledged + 1
        acknowledged = stop.used
    seen("S14", f"sessions: {KILLS} kills, {acknowledged:,} acknowledged saves, 0 lost")
