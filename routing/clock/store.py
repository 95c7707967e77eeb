"""Where the sessions' tasks are kept: one JSON file each, in a folder of their own beside the sessions' states.

1. `update` is one whole read-modify-write, alone among threads and processes, and on disk before it returns.
2. A session without tasks has no file, and costs one look at a file that is not there. One that has not changed costs one
   look as well, however many tasks it holds.
3. A damaged file costs what cannot be read of it: the rest stays in force, the file is set aside as `.corrupt`, and
   `warnings` says so once.
4. The clock's own file (`ntp-state.json`) lies in the same folder. It is read and written here, and never swept.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..errors import StoreError
from ..sessions.disk import CORRUPT, TEMPORARY, Disk, Folder, NotRegular, Stamp
from ..sessions.names import file_name
from .record import Record, named_session, read_record, write_record
from .tasks import Task, Tasks, in_order, is_expired, undelivered

Change: TypeAlias = Callable[[Tasks], Iterable[Task]]

FOLDER = "clock"
NTP_STATE = "ntp-state.json"
MANY = 1_000
"""More tasks than this in one session are worth a line in the log."""
MOST_BYTES = 32 << 20
"""Beyond this a session takes no new tasks."""

_ENDING = ".json"
_LARGEST_FILE = 2 * MOST_BYTES
"""Tasks that are there grow a little when they are delivered: what was written can always be read."""
_QUICK_BYTES = 16 << 10
"""So much is read sooner than a thread for it would start."""
_MOST_SESSIONS = 10_000
_MOST_REMEMBERED_BYTES = 32 << 20
_MOST_WARNINGS = 100
_SETTLED_S = 0.05
"""A file read so soon after it was written may be written again within the same tick of the file system's clock."""
_KEEP_DAMAGED_MS = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class _Known:
    """What one file held when it was last read."""

    stamp: Stamp | None
    tasks: Tasks
    waiting: Tasks
    """Those that were not delivered."""
    content: int
    """A hash of its bytes."""
    size: int
    settled: bool
    seen: float
    """Since when it has had this stamp, as far as is known (monotonic seconds)."""


class ClockStore:
    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        """`folder`: where the sessions' states are; the tasks lie in `clock/` below it."""
        self.warnings: list[str] = []
        self._folder = Folder(folder / FOLDER, disk, largest=_LARGEST_FILE)
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._size = 0
        self._first_due: dict[str, tuple[Stamp, int]] = {}
        """For the sweep: files in which nothing can have expired are not read again."""
        self._unsure: set[str] = set()
        """Files whose last save failed when they had it already: perhaps it does not last."""
        self._said_many: set[str] = set()
        self._memory = threading.RLock()
        self._remove_strays()

    def load(self, session_id: str) -> Tasks:
        """In order of their time; the very same tuple as long as nothing has changed. StoreError where it cannot be read."""
        name = file_name("", session_id)
        stamp = self._folder.stamp(name)
        known = self._known.get(name)
        if known is not None and known.stamp == stamp and known.settled:
            return known.tasks
        if known is None and stamp is None:
            return ()
        return self._read(name, session_id, locked=False)

    def waiting(self, session_id: str) -> Tasks:
        """Those of `load` that were not delivered; they are found once for each state of the file."""
        tasks = self.load(session_id)
        known = self._known.get(file_name("", session_id))
        return known.waiting if known is not None and known.tasks is tasks else undelivered(tasks)

    def at_hand(self, session_id: str) -> Tasks | None:
        """What `waiting` finds, where that is quick; None: to read it takes longer than other calls should wait. StoreError."""
        name = file_name("", session_id)
        stamp = self._folder.stamp(name)
        known = self._known.get(name)
        if known is not None and known.stamp == stamp and known.settled:
            return known.waiting
        return self.waiting(session_id) if stamp is None or stamp[1] <= _QUICK_BYTES else None

    def update(self, session_id: str, change: Change) -> Tasks:
        """Changes a session's tasks and returns the new ones; StoreError where that cannot be written.

        `change` gets what is on disk, must be quick and must not come back here.
        """
        return self._update(file_name("", session_id), session_id, change)[1]

    def sweep(self, now_ms: int | None, retention_ms: int) -> int:
        """Removes what has expired, and what crashes left. How many tasks.

        `now_ms` must be a time to be trusted; without one no task goes.
        """
        self._remove_strays()
        if now_ms is None:
            return 0
        names = self._folder.names()
        self._first_due = {name: self._first_due[name] for name in names if name in self._first_due}
        removed = 0
        for name in names:
            try:
                if name.endswith(_ENDING) and name != NTP_STATE:
                    removed += self._expire(name, now_ms, retention_ms)
                elif name.endswith(CORRUPT):
                    self._remove_if_older(name, now_ms - _KEEP_DAMAGED_MS)
            except StoreError as error:
                self._warn(error.message)
        return removed

    def ntp_state(self) -> bytes | None:
        """What is known of the right time; None where nothing is."""
        try:
            found = self._folder.read(NTP_STATE)
        except (StoreError, NotRegular):
            return None
        return found[1] if found is not None else None

    def save_ntp_state(self, raw: bytes) -> None:
        """StoreError where it cannot be written."""
        with self._folder.locked(NTP_STATE):
            self._folder.write(NTP_STATE, raw)

    # One file

    def _update(self, name: str, session_id: str, change: Change) -> tuple[Tasks, Tasks]:
        """What was there, and what is there now."""
        with self._folder.locked(name):
            old = self._current(name, session_id)
            new = in_order(change(old))
            if new != old or name in self._unsure:
                self._write(name, session_id, new, grows=len(new) > len(old))
            return old, new

    def _current(self, name: str, session_id: str) -> Tasks:
        """To be called with the lock held."""
        known = self._known.get(name)
        if known is not None and known.settled and known.stamp == self._folder.stamp(name):
            return known.tasks
        return self._read(name, session_id, locked=True)

    def _read(self, name: str, session_id: str, *, locked: bool) -> Tasks:
        try:
            found = self._folder.read(name)
        except NotRegular:
            return self._repair(name, Record(session_id, (), is_whole=False), None, locked=locked)
        if found is None:
            return self._remember(name, None, (), b"")
        stamp, raw = found
        known = self._known.get(name)
        if known is not None and known.stamp is not None and (known.size, known.content) == (len(raw), hash(raw)):
            return self._remember(name, stamp, known.tasks, raw)
        record = read_record(raw, session_id)
        if not record.is_whole:
            return self._repair(name, record, raw, locked=locked)
        if not record.is_own:
            self._warn(f"{FOLDER}/{name} was changed by something else; it is used as it is")
        return self._remember(name, stamp, record.tasks, raw)

    def _repair(self, name: str, record: Record, raw: bytes | None, *, locked: bool) -> Tasks:
        """Keep what is there (`raw`; None: no file of ours) under another name, then put what could be read in its place.

        In this order, so that a crash or a full disk in between loses nothing.
        """
        try:
            if not locked:
                with self._folder.locked(name):
                    return self._read(name, record.session_id, locked=True)
            if raw is None:
                self._folder.set_aside(name)
            else:
                self._folder.write(name + CORRUPT, raw)
            self._write(name, record.session_id, record.tasks, grows=False)
        except StoreError as error:
            if locked:
                raise
            self._warn(f"{FOLDER}/{name} is damaged and cannot be repaired: {error.message}")
            return record.tasks
        kept = f"{len(record.tasks)} tasks of it could be read and stay" if record.tasks else "nothing of it could be read"
        self._warn(f"{FOLDER}/{name} is damaged and was set aside as {name}{CORRUPT}; {kept}")
        return record.tasks

    def _write(self, name: str, session_id: str, tasks: Tasks, *, grows: bool) -> None:
        """To be called with the lock held."""
        raw = write_record(session_id, tasks, time.time_ns() // 1_000_000) if tasks else b""
        if len(raw) > (MOST_BYTES if grows else _LARGEST_FILE):
            raise StoreError(f"The session file {FOLDER}/{name} would be too large with {len(tasks)} tasks")
        before = self._folder.stamp(name)
        self._forget(name)
        try:
            if tasks:
                self._folder.write(name, raw)
            else:
                self._folder.remove(name)
        except StoreError:
            if self._folder.stamp(name) != before:
                self._unsure.add(name)
            raise
        self._unsure.discard(name)
        self._remember(name, self._folder.stamp(name) if tasks else None, tasks, raw)

    # What is remembered

    def _remember(self, name: str, stamp: Stamp | None, tasks: Tasks, raw: bytes) -> Tasks:
        """Most sessions have no tasks: of those there is nothing to remember."""
        now = time.monotonic()
        with self._memory:
            before = self._known.get(name)
            self._forget(name)
            if stamp is None and not tasks:
                return ()
            seen = before.seen if before is not None and before.stamp == stamp else now
            if before is not None and before.tasks == tasks:
                tasks = before.tasks
            waiting = before.waiting if before is not None and before.tasks is tasks else undelivered(tasks)
            self._known[name] = _Known(stamp, tasks, waiting, hash(raw), len(raw), _is_settled(stamp, now - seen), seen)
            self._size += len(raw)
            while len(self._known) > _MOST_SESSIONS or (self._size > _MOST_REMEMBERED_BYTES and len(self._known) > 1):
                self._forget(next(iter(self._known)))
            if len(tasks) > MANY and name not in self._said_many:
                self._said_many.add(name)
                self._warn(f"{FOLDER}/{name} holds more than {MANY} tasks")
        return tasks

    def _forget(self, name: str) -> None:
        with self._memory:
            known = self._known.pop(name, None)
            self._size -= known.size if known else 0

    def _warn(self, warning: str) -> None:
        with self._memory:
            if warning not in self.warnings and len(self.warnings) < _MOST_WARNINGS:
                self.warnings.append(warning)

    # The sweep

    def _expire(self, name: str, now_ms: int, retention_ms: int) -> int:
        stamp = self._folder.stamp(name)
        first = self._first_due.get(name)
        if stamp is None or (first is not None and first[0] == stamp and now_ms <= first[1] + retention_ms):
            return 0
        raw = self._raw(name)
        session_id = named_session(raw) or name.removesuffix(_ENDING)
        record = read_record(raw, session_id)
        if record.is_whole and record.tasks and not is_expired(record.tasks[0], now_ms, retention_ms):
            self._first_due[name] = (stamp, record.tasks[0].due_at_ms)
            return 0
        old, new = self._update(
            name, session_id, lambda tasks: (task for task in tasks if not is_expired(task, now_ms, retention_ms))
        )
        return len(old) - len(new)

    def _raw(self, name: str) -> bytes:
        try:
            found = self._folder.read(name)
        except NotRegular:
            found = None
        return found[1] if found is not None else b""

    def _remove_strays(self) -> None:
        """Temporary files belong to whoever holds the lock: with the lock in hand, one that is there was left by a crash."""
        for name in self._folder.names():
            if name.endswith(TEMPORARY):
                try:
                    self._remove_if_older(name, None)
                except StoreError as error:
                    self._warn(error.message)

    def _remove_if_older(self, name: str, oldest_ms: int | None) -> None:
        with self._folder.locked(name.removesuffix(TEMPORARY).removesuffix(CORRUPT)):
            stamp = self._folder.stamp(name)
            if stamp is not None and (oldest_ms is None or stamp[0] < oldest_ms * 1_000_000):
                self._folder.remove(name)


def _is_settled(stamp: Stamp | None, seen_s: float) -> bool:
    """Told by the wall clock where that can tell, else by how long the stamp has been seen: the wall clock may be set back."""
    return stamp is None or time.time_ns() - stamp[0] > _SETTLED_S * 1e9 or seen_s > _SETTLED_S
