"""Whole-file reads and writes in one folder, safe against crashes and against other processes.

1. A file is the old one or the new one, never anything between: temporary file, write, fsync, replace, fsync of the folder.
2. Whoever changes a file holds its lock. Locks are a fixed number of side files, each with the number of the process that has
   it or had it last, for people. A lock file is never removed, and the temporary file of a name can be a fixed one: it belongs
   to the lock's holder, and what a crash leaves is overwritten or swept.
3. Files are readable by their owner only. Links are not followed, and only regular files are read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import Locked, StoreError
from .lock import FileLock, Taken

TEMPORARY = ".tmp"
CORRUPT = ".corrupt"

_LARGEST_FILE = 4 * 1024 * 1024
_STRIPES = 64
_LOCK_WAIT_S = 2.0
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_NAME = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_here = threading.local()

Stamp = tuple[int, int, int]
"""Modification time, size and inode: a file that was replaced has another one."""


class NotRegular(Exception):
    """A link, a folder or a device stands where a file should be, or the file is far too large."""


class Disk:
    """The five calls of a save, so that tests can let each of them fail."""

    def open(self, path: Path) -> int:
        """A new, empty file."""
        try:
            return os.open(path, _WRITE, 0o600)
        except FileExistsError:
            path.unlink()
            return os.open(path, _WRITE, 0o600)

    def write(self, file: int, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]

    def fsync(self, file: int) -> None:
        os.fsync(file)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def fsync_dir(self, folder: Path) -> None:
        """Makes a rename or a removal last, where the system can say so for a folder."""
        if os.name == "nt":
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in _NO_FOLDER_SYNC:
                raise
        finally:
            os.close(handle)


class Folder:
    """One folder of small files."""

    def __init__(self, path: Path, disk: Disk | None = None, *, largest: int = _LARGEST_FILE) -> None:
        self.path = path
        self._prefix = os.path.join(path, "")
        self._largest = largest
        self._disk = disk or Disk()
        self._threads = tuple(threading.Lock() for _ in range(_STRIPES))

    def names(self) -> list[str]:
        return sorted(self.each_name())

    def each_name(self) -> Iterator[str]:
        """In no order, one after the other: of a month's conversations there are very many, and a list of them would leave its
        room behind."""
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.name

    def stamp(self, name: str) -> Stamp | None:
        """None where there is no such file."""
        try:
            found = os.lstat(self._prefix + name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _store_error("read", name, error) from error
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def read(self, name: str) -> tuple[Stamp, bytes] | None:
        """None where there is no such file."""
        try:
            file = os.open(self.path / name, _READ)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP or (self.path / name).is_dir():
                raise NotRegular from error
            raise _store_error("read", name, error) from error
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size > self._largest:
                raise NotRegular
            pieces = []
            while piece := os.read(file, _LARGEST_FILE):
                pieces.append(piece)
        except OSError as error:
            raise _store_error("read", name, error) from error
        finally:
            os.close(file)
        return (found.st_mtime_ns, found.st_size, found.st_ino), b"".join(pieces)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Alone with that file, among threads and processes. Locked after two seconds of waiting for another process, or at once
        in a thread that never waits; this process's own threads are quick."""
        stripe = hashlib.sha256(name.encode()).digest()[0] % _STRIPES
        deadline = time.monotonic() + getattr(_here, "wait_s", _LOCK_WAIT_S)
        if not self._threads[stripe].acquire(timeout=_LOCK_WAIT_S):
            raise Locked(f"The session file {name} is locked: this process itself is still busy with it")
        try:
            with self._file_lock(stripe, name, deadline):
                yield
        finally:
            self._threads[stripe].release()

    def write(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """To be called with the lock held. A long file may come in pieces."""
        target = self.path / name
        temporary = self.path / (name + TEMPORARY)
        try:
            self._save(temporary, target, data)
        except OSError as error:
            _remove_quietly(temporary)
            raise _store_error("written", name, error) from error

    def remove(self, name: str) -> None:
        """To be called with the lock held."""
        try:
            (self.path / name).unlink(missing_ok=True)
            self._disk.fsync_dir(self.path)
        except OSError as error:
            raise _store_error("removed", name, error) from error

    def set_aside(self, name: str) -> None:
        """Keep a file that cannot be used, under another name. To be called with the lock held."""
        try:
            os.replace(self.path / name, self.path / (name + CORRUPT))
        except OSError as error:
            raise _store_error("set aside", name, error) from error

    def _save(self, temporary: Path, target: Path, data: bytes | Iterable[bytes]) -> None:
        file = self._disk.open(temporary)
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                self._disk.write(file, piece)
            self._disk.fsync(file)
        finally:
            os.close(file)
        self._disk.replace(temporary, target)
        self._disk.fsync_dir(self.path)

    @contextmanager
    def _file_lock(self, stripe: int, name: str, deadline: float) -> Iterator[None]:
        locks = self.path / "locks"
        try:
            make_private(locks)
            path = locks / f"{stripe:02x}.lock"
            lock = FileLock(path, deadline - time.monotonic())
            lock.acquire()
        except Taken as error:
            raise Locked(f"The session file {name} is locked by {_holder(path)}") from error
        except OSError as error:
            raise _store_error("locked", name, error) from error
        try:
            _sign(path)
            yield
        finally:
            lock.release()


def never_wait() -> None:
    """From now on this thread waits for no other process: whoever gave it work tries again later."""
    _here.wait_s = 0.0


def _sign(lock: Path) -> None:
    """Only for people: what cannot be written here does no harm."""
    try:
        file = os.open(lock, _NAME)
        try:
            os.write(file, b"%d\n" % os.getpid())
        finally:
            os.close(file)
    except OSError:
        pass


def _holder(lock: Path) -> str:
    try:
        pid = int(lock.read_bytes()[:20])
    except (OSError, ValueError):
        return "another process"
    return f"process {pid}" if pid != os.getpid() else "another process"


def make_private(folder: Path) -> None:
    """The folder and those above it that are missing, for their owner only."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _remove_quietly(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass


def _store_error(what: str, name: str, error: OSError) -> StoreError:
    return StoreError(f"The session file {name} could not be {what}: {error.strerror or type(error).__name__}")
