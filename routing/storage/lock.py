"""A lock among processes: a file that is held open. The system lets go of it with the process, however that ends.

1. The file is made if it is missing, for its owner only, and is never removed: whoever waits for it has it open already.
2. Two locks of one process exclude each other as those of two processes do.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import TracebackType

_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_OFTEN_S, _SELDOM_S = 0.001, 0.02
"""How often it is tried: what is held for one write is free soon."""
_SOON_S = 0.25

if sys.platform == "win32":
    import msvcrt

    def _take(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _give_back(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _give_back(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile has the file open, too


class Taken(Exception):
    """Another holds it, and held it for as long as could be waited."""


class FileLock:
    """For one use: `with FileLock(path, wait_s=2): …`."""

    def __init__(self, path: Path | str, wait_s: float = 0.0) -> None:
        self.path, self.wait_s = path, wait_s
        self._file: int | None = None

    def acquire(self) -> None:
        """Taken, or an OSError where the file cannot be opened or locked."""
        file = os.open(self.path, _OPEN, 0o600)
        try:
            self._wait(file)
        except BaseException:  # whatever it was, it goes on to whoever asked; the file is not left open
            os.close(file)
            raise
        self._file = file

    def _wait(self, file: int) -> None:
        began = time.monotonic()
        while True:
            try:
                return _take(file)
            except (BlockingIOError, PermissionError):  # Windows says the second
                waited = time.monotonic() - began
            if waited >= self.wait_s:
                raise Taken
            time.sleep(_OFTEN_S if waited < _SOON_S else _SELDOM_S)

    def release(self) -> None:
        """Nothing where it is not held."""
        if (file := self._file) is not None:
            self._file = None
            try:
                _give_back(file)
            finally:
                os.close(file)

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.release()
