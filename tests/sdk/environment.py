"""A Python that has the SDKs: the one that $ROUTECODEX_SDK_PYTHON names, else `.venv-sdk`, built with pip on first use."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
VARIABLE = "ROUTECODEX_SDK_PYTHON"
_BUILD_S = 600
_VERSIONS = "import importlib.metadata as m, sys; print(*(f'{name}=={m.version(name)}' for name in sys.argv[1:]))"


class NoSdks(Exception):
    """Why there is no Python with the SDKs, and what to do about it."""


def sdk_python() -> Path:
    named = os.environ.get(VARIABLE)
    if named:
        python = Path(named)
        if _installed(python) is None:
            raise NoSdks(f"${VARIABLE} names {named}, which has not all of: {', '.join(_wanted())}")
        return python
    folder = ROOT / ".venv-sdk"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists() or _installed(python) != _wanted():
        _build(folder, python)
    return python


def _wanted() -> list[str]:
    return re.findall(r"^[\w-]+==\S+", REQUIREMENTS.read_text(), re.MULTILINE)


def _installed(python: Path) -> list[str] | None:
    names = [one.partition("==")[0] for one in _wanted()]
    try:
        done = subprocess.run([str(python), "-c", _VERSIONS, *names], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split() if done.returncode == 0 else None


def _build(folder: Path, python: Path) -> None:
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
    for step in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=_BUILD_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _cannot(step, str(error)) from None
        if done.returncode:
            raise _cannot(step, done.stderr[-2000:])
    if _installed(python) != _wanted():
        raise _cannot(install, f"installed: {_installed(python)}")


def _cannot(step: list[str], why: str) -> NoSdks:
    return NoSdks(
        f"The environment for the SDK tests cannot be built: {' '.join(step)}\n{why}\n"
        f"Name a Python that has what {REQUIREMENTS.name} lists in ${VARIABLE}, or make pip work and run the tests again."
    )
