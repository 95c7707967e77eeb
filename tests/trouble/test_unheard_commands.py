"""A command whose terminal is in trouble: stdout is closed or full, the folder that it stands in is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig.door import MAIN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no shell of this kind")

ON_LINUX = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")


def typed(home: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A line in a shell, in which `routecodex` is the command."""
    function = f'routecodex() {{ "{sys.executable}" -P "{MAIN}" "$@"; }}\n'
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        ["/bin/sh", "-c", function + line], env=env, cwd=home, capture_output=True, text=True, timeout=120, check=False
    )


@ON_LINUX
@pytest.mark.parametrize("command", ["check", "check --json", "status", "sessions", "statusline"])
def test_a_full_stdout(command: str, tmp_path: Path) -> None:
    done = typed(tmp_path, f"routecodex {command} >/dev/full </dev/null")
    assert done.returncode == 1
    assert done.stderr == "routecodex: stdout cannot be written: No space left on device\n  make room on that disk\n"


@pytest.mark.parametrize("command, code", [("check", 0), ("status", 3), ("--help", 0), ("nonsense", 2)])
def test_a_closed_stdout_is_one_that_nobody_reads(command: str, code: int, tmp_path: Path) -> None:
    done = typed(tmp_path, f"routecodex {command} >&-")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert typed(tmp_path, f"routecodex {command} >&- 2>&-").returncode == code


@pytest.mark.parametrize(
    "command", ["check x.yaml", "provider add glm --key-file key", "start --config x.yaml", "start -w flows"]
)
def test_a_folder_that_is_gone(command: str, tmp_path: Path) -> None:
    gone = "mkdir gone && cd gone && rmdir ../gone && "
    done = typed(tmp_path, f"{gone}routecodex {command}")
    assert done.returncode == 1
    assert done.stderr == "routecodex: the folder that this terminal stands in is gone\n  cd to one that is there\n"
    done = typed(tmp_path, f"{gone}routecodex {command} --json")
    assert json.loads(done.stdout)["next"] == "cd to one that is there"


def test_a_home_that_is_named_from_the_working_directory(tmp_path: Path) -> None:
    """Neither state nor a configuration is looked for wherever a person happens to be."""
    done = typed(tmp_path, "HOME=here; export HOME; routecodex start")
    assert done.returncode == 1
    assert done.stderr.startswith("routecodex: HOME names no folder by its whole path\n  set HOME")
    assert list(tmp_path.iterdir()) == []
