"""The `routecodex` command as a person types it, with a home of its own: `with Door(folder) as door: door.run("try")`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.rig.proxy import ROOT

MAIN = ROOT / "addons" / "control" / "__main__.py"
ASKS = Path(__file__).with_name("asks.py")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
LIMIT_S = 180.0


class Door:
    def __init__(self, folder: Path, command: tuple[str, ...] = (sys.executable, "-P", str(MAIN)), **env: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.command = command
        kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self.env = {**kept, "HOME": str(self.home), "PYTHONUTF8": "1", **env}
        self.begun: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.begun:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=LIMIT_S)
        self.run("stop", "--now")
        until(lambda: not self.status()["running"], "the proxy does not end")

    def begin(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.command, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env={**self.env, **(env or {})},
        )
        self.begun.append(process)
        return process

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        process = self.begin(*words, env=env)
        out, err = process.communicate(timeout=LIMIT_S)
        self.begun.remove(process)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def ask(self, *texts: str, env: Mapping[str, str] | None = None, session: str = "s-1") -> Any:
        """A small tool, started by `run`: what it was told, where its proxy was, and whose process that was."""
        done = self.run("run", sys.executable, str(ASKS), session, *texts, env=env)
        assert done.returncode == 0, done.stderr + self.log
        return json.loads(done.stdout)

    def status(self) -> Any:
        return json.loads(self.run("status", "--json").stdout)

    @property
    def log(self) -> str:
        file = self.home / ".routecodex" / "run" / "proxy.log"
        return file.read_text() if file.exists() else ""


def until(condition: Callable[[], object], otherwise: str) -> None:
    """A generous end: a machine that does ten things at once is slow."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)
