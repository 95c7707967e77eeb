"""`python -m tests.loaded [PYTEST'S ARGUMENTS]`: the tests while two processes keep the processors busy and two the disk.

They end with this one, however it ends: each of them waits for the end of its input. With `-m races --times 20 -n 0` every test
that waits or races is run twenty times.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_UNTIL_THE_END = (
    "import os, sys, threading\nthreading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()\n"
)
PROCESSOR = _UNTIL_THE_END + "while True:\n    sum(range(100_000))\n"
DISK = _UNTIL_THE_END + (
    "piece = os.urandom(1 << 20)\n"
    "while True:\n"
    "    with open(sys.argv[1], 'wb') as file:\n"
    "        for _ in range(64):\n"
    "            file.write(piece)\n"
    "            file.flush()\n"
    "            os.fsync(file.fileno())\n"
)


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="loaded-") as folder:
        commands = [[PROCESSOR], [PROCESSOR], [DISK, f"{folder}/one"], [DISK, f"{folder}/two"]]
        busy = [subprocess.Popen([sys.executable, "-c", *command], stdin=subprocess.PIPE, cwd=ROOT) for command in commands]
        try:
            return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=ROOT, check=False).returncode
        finally:
            for process in busy:
                process.kill()
            for process in busy:
                process.wait()
                assert process.stdin is not None
                process.stdin.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
