"""S12: several processes share one file; no update is lost, no lock stays behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from routecodex.routing.sessions.state import EMPTY, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from tests.conftest import LONG
from tests.sheet import seen

ROOT = Path(__file__).parents[2]
UPDATES = 1_000 if LONG else 50
KEY = SessionKey("session", "shared")
PROGRAM = """
import sys
import tests
from pathlib import Path
from routecodex.routing.sessions.state import StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from tests.rig.patience import wait_for_locks

wait_for_locks()
store, key = FileStore(Path(sys.argv[1])), SessionKey("session", "shared")
for n in range(int(sys.argv[2])):
    store.update(key, lambda state: state.with_(stop=StopMessage("go", 10**6, used=state.stop.used + 1 if state.stop else 1)))
    print(n, flush=True)
"""


def _start(folder: Path, updates: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), str(updates)], env=environment, stdout=subprocess.PIPE)


def _used(folder: Path) -> int:
    stop = FileStore(folder).load(KEY).stop
    return stop.used if stop else 0


def test_s12_four_processes_lose_no_update(tmp_path: Path) -> None:
    processes = [_start(tmp_path, UPDATES) for _ in range(4)]
    acknowledged = [len((process.communicate(timeout=600)[0] or b"").split()) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert acknowledged == [UPDATES] * 4
    assert _used(tmp_path) == 4 * UPDATES
    seen("S12", f"4 processes, {4 * UPDATES:,} updates: 0 lost")


def test_s12_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    steady = [_start(tmp_path, UPDATES) for _ in range(2)]
    chance = random.Random(12)
    acknowledged = killed = 0
    while any(process.poll() is None for process in steady) or killed < 3:
        victim = _start(tmp_path, 10**6)
        assert victim.stdout is not None
        victim.stdout.readline()
        time.sleep(chance.uniform(0, 1.0 if LONG else 0.05))
        victim.send_signal(signal.SIGKILL)
        acknowledged += 1 + len(victim.communicate()[0].split())
        killed += 1
    for process in steady:
        acknowledged += len(process.communicate()[0].split())
        assert process.returncode == 0
    assert acknowledged <= _used(tmp_path) <= acknowledged + killed
    FileStore(tmp_path).update(KEY, lambda _: EMPTY.with_(stop=StopMessage("go", 1)))  # an error where a lock is left
    seen("S12", f"{killed} processes killed meanwhile: 0 locks left")
