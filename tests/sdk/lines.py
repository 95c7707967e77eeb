"""A program beside the tests that answers one line of JSON with one line of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP")


class Lines:
    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=kept | dict(environment or {}),
            text=True,
            encoding="utf-8",
        )

    def ask(self, command: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the process has ended:\n{self._log.read()[-3000:]}")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
        self._process.stdout.close()
        self._log.close()
