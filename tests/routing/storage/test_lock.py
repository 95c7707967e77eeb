"""The lock among processes: whom it keeps out, how long it waits, and what becomes of it with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from routecodex.routing.storage.lock import FileLock, Taken

HOLDER = """
import sys
from routecodex.routing.storage.lock import FileLock
lock = FileLock(sys.argv[1])
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with FileLock(path):
        with pytest.raises(Taken), FileLock(path):
            pass
        with FileLock(tmp_path / "b.lock"):
            pass
    with FileLock(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_it_is_waited_for(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.lock", []
    held = FileLock(path)
    held.acquire()

    def wait() -> None:
        with FileLock(path, wait_s=60):
            seen.append("taken")

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.05)
    assert not seen
    held.release()
    held.release()
    waiting.join(60)
    assert seen == ["taken"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no signals to end it by")
def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", _as_package(HOLDER), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Taken), FileLock(path, wait_s=0.05):
            pass
        holder.send_signal(signal.SIGKILL)
        with FileLock(path, wait_s=60):
            pass
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked there")
def test_a_forked_child_keeps_nobody_out(tmp_path: Path) -> None:
    """It has the file open as well: closing alone would not give it back."""
    path = tmp_path / "a.lock"
    code = f"""
import os, time
from routecodex.routing.storage.lock import FileLock
held = FileLock({str(path)!r})
held.acquire()
if not (child := os.fork()):
    time.sleep(600)
held.release()
try:
    with FileLock({str(path)!r}):
        print("free")
finally:
    os.kill(child, 9)
    os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", _as_package(code)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "free\n", done.stderr


def test_what_cannot_be_a_lock_is_said(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "link", tmp_path / "no" / "folder", tmp_path):
        with pytest.raises(OSError), FileLock(path):
            pass


def _as_package(code: str) -> str:
    root = str(Path(__file__).parents[3])
    return (
        f"import sys, types\nsys.modules['routecodex'] = house = types.ModuleType('routecodex')\nhouse.__path__ = [{root!r}]\n"
        + code
    )
