"""Pythons beside the tests' own: one that has the vendors' SDKs, and one that has another translator.

Each is the one that a variable of the environment names, else a folder in the project's, built with pip on first use.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from routecodex.routing.storage.lock import FileLock

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_BUILD_S = 600
_VERSIONS = "import importlib.metadata as m, sys; print(*(f'{name}=={m.version(name)}' for name in sys.argv[1:]))"


class NoSdks(Exception):
    """Why there is no Python with what is needed, and what to do about it."""


@dataclass(frozen=True)
class Environment:
    variable: str
    folder: str
    requirements: Path

    def python(self) -> Path:
        named = os.environ.get(self.variable)
        if named:
            python = Path(named)
            if self._installed(python) is None:
                raise NoSdks(f"${self.variable} names {named}, which has not all of: {', '.join(self._wanted)}")
            return python
        folder = ROOT / self.folder
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        with FileLock(self._lock, _BUILD_S):  # tests run side by side
            if not python.exists() or self._installed(python) != self._wanted:
                self._build(folder, python)
        return python

    @property
    def _lock(self) -> Path:
        """Outside the folder, which is cleared."""
        return Path(tempfile.gettempdir(), f"{sha256(str(ROOT / self.folder).encode()).hexdigest()[:16]}.lock")

    @property
    def _wanted(self) -> list[str]:
        return re.findall(r"^[\w-]+==\S+", self.requirements.read_text(), re.MULTILINE)

    def _installed(self, python: Path) -> list[str] | None:
        names = [one.partition("==")[0] for one in self._wanted]
        try:
            done = subprocess.run([str(python), "-c", _VERSIONS, *names], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.split() if done.returncode == 0 else None

    def _build(self, folder: Path, python: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--no-compile", "-r", str(self.requirements)]  # most of it is never imported
        for step in ([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], install):
            try:
                done = subprocess.run(step, capture_output=True, text=True, timeout=_BUILD_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise self._cannot(step, str(error)) from None
            if done.returncode:
                raise self._cannot(step, done.stderr[-2000:])
        if self._installed(python) != self._wanted:
            raise self._cannot(install, f"installed: {self._installed(python)}")

    def _cannot(self, step: list[str], why: str) -> NoSdks:
        return NoSdks(
            f"The environment for these tests cannot be built: {' '.join(step)}\n{why}\n"
            f"Name a Python that has what {self.requirements.name} lists in ${self.variable}, "
            "or make pip work and run the tests again."
        )


SDKS = Environment("ROUTECODEX_SDK_PYTHON", ".venv-sdk", REQUIREMENTS)
ROSETTA = Environment("ROUTECODEX_ROSETTA_PYTHON", ".venv-rosetta", REQUIREMENTS.with_name("requirements-rosetta.txt"))


def sdk_python() -> Path:
    return SDKS.python()
