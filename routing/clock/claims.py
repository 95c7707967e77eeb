"""Which process delivers a task, where several share one folder.

1. A claim is a lock on one byte of one file, at a place made from the task's id. Nobody ever waits for one: what another process
   has claimed is its business.
2. The system itself lets go of the claims of a process that dies. Nothing is written, so nothing has to be cleaned up.
3. Between the threads of one process this says nothing: `Reservations` does.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from pathlib import Path

from ..storage.disk import make_private

_PLACES = (1 << 31) - 1
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    def _unlock(file: int, place: int) -> None:
        os.lseek(file, place, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place, os.SEEK_SET)

    def _unlock(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place, os.SEEK_SET)


class FileClaims:
    """One for each folder and process: a second one would lose the first one's locks when its file is closed."""

    waits = False

    def __init__(self, folder: Path) -> None:
        self._path = folder / "clock" / "locks" / "deliveries.lock"
        self._file: int | None = None

    def take(self, task_id: str) -> bool:
        """False where another process has it, or where nothing can be written here: then it could not be committed either."""
        try:
            if self._file is None:
                make_private(self._path.parent)
                self._file = os.open(self._path, _OPEN, 0o600)
            _lock(self._file, _place(task_id))
        except OSError as error:
            return error.errno in _WITHOUT_LOCKS
        return True

    def give_back(self, task_id: str) -> None:
        if self._file is not None:
            try:
                _unlock(self._file, _place(task_id))
            except OSError:
                pass  # a file system without locks has none to give back


def _place(task_id: str) -> int:
    return int.from_bytes(hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).digest()[:8], "big") % _PLACES
