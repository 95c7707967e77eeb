"""Starts mitmdump from a process that has imported mitmproxy already: half a second of computing less, each time.

One such process serves a test process: a line on its input is a start, and it becomes the mitmdump in a fork of itself, with
the environment, the folder and the arguments of that start. Lines on its output say who was started and who ended. It ends with
its input, and so do those it started. Where a start itself is the subject, or where something must be said to Python before it
runs, mitmdump is started plainly. One that is given our script has imported what this script imports, too: that is for those who
load it before anything else.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

BEFORE_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "TZ")
"""What stands in the environment for an interpreter that is yet to start."""


class Child:
    """What `subprocess.Popen` says of a process, for one that another process started."""

    def __init__(self, starter: Starter, pid: int) -> None:
        self._starter = starter
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._starter.code_of(self.pid, 0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self.returncode = self._starter.code_of(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("mitmdump", timeout)
        return self.returncode

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Starter:
    def __init__(self, environment: Mapping[str, str], script: Path | None = None) -> None:
        command = [sys.executable, "-P", str(Path(__file__)), *([str(script)] if script is not None else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment))
        self._lock = threading.Lock()
        self._read = b""
        self._started: list[int] = []
        self._codes: dict[int, int] = {}
        atexit.register(self._end)

    def start(self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Child:
        wanted = {"arguments": list(arguments), "environment": dict(environment), "folder": str(folder), "log": str(log)}
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(wanted).encode() + b"\n")
            self._process.stdin.flush()
            while not self._started:
                self._listen(1)
            return Child(self, self._started.pop())

    def code_of(self, pid: int, within_s: float) -> int | None:
        end = time.monotonic() + within_s
        while True:
            with self._lock:
                self._listen(0)
                if pid in self._codes:
                    return self._codes[pid]
            if time.monotonic() >= end:
                return None
            select.select([self._process.stdout], [], [], 0.02)

    def _listen(self, within_s: float) -> None:
        assert self._process.stdout is not None
        while select.select([self._process.stdout], [], [], within_s)[0]:
            said = os.read(self._process.stdout.fileno(), 1 << 16)
            if not said:
                raise RuntimeError(f"what starts mitmdump has ended with {self._process.wait()}")
            *lines, self._read = (self._read + said).split(b"\n")
            for line in lines:
                match json.loads(line):
                    case [pid]:
                        self._started.append(pid)
                    case [pid, code]:
                        self._codes[pid] = code
            within_s = 0

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


# --- in the process of its own ---------------------------------------------------------------------------------------------


def serve() -> dict[str, object] | None:
    """What to start, in a child; nothing when all is over."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    running: set[int] = set()
    read = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 10)
            for pid in list(running):
                if (ended := os.waitpid(pid, os.WNOHANG))[0]:
                    running.discard(pid)
                    _say(pid, os.waitstatus_to_exitcode(ended[1]))
        if 0 not in ready:
            continue
        said = os.read(0, 1 << 16)
        if not said:
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            return None
        *lines, read = (read + said).split(b"\n")
        for line in lines:
            if not (pid := os.fork()):
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(woken)
                os.close(wakes)
                wanted: dict[str, object] = json.loads(line)
                return wanted
            running.add(pid)
            _say(pid)


def _say(*what: int) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _become(wanted: dict[str, object]) -> None:
    match wanted:
        case {"arguments": list(arguments), "environment": dict(environment), "folder": str(folder), "log": str(log)}:
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(folder)
            sys.argv = ["-c", *arguments]
            nothing, written = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            for place, file in ((0, nothing), (1, written), (2, written)):
                os.dup2(file, place)
            os.close(nothing)
            os.close(written)


def _import_as(script: Path) -> None:
    """What the script imports of ours, under the names that it gives it."""
    house = sys.modules["routecodex"] = ModuleType("routecodex")
    house.__path__ = [str(script.parents[1])]
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("routecodex."):
            __import__(node.module, fromlist=[alias.name for alias in node.names])


if __name__ == "__main__":
    import mitmproxy.tools.dump
    import mitmproxy.tools.main
    import orjson  # noqa: F401
    import ruamel.yaml  # noqa: F401
    import wsproto  # noqa: F401

    for script in sys.argv[1:]:
        _import_as(Path(script))
    gc.collect()
    gc.freeze()
    if (wanted := serve()) is not None:
        _become(wanted)
        gc.unfreeze()
        mitmproxy.tools.main.mitmdump()
