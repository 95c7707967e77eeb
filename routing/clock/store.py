"""Where the sessions' tasks are kept: one JSON file each, in a folder of their own beside the sessions' states.

1. `update` is one whole read-modify-write, alone among threads and processes, and on disk before it returns.
2. A session without tasks has no file, and costs one look at a file that is not there. One that has not changed costs one
   look as well, however many tasks it holds.
3. A damaged file costs what cannot be read of it (`CachedFolder`).
4. The clock's own file (`ntp-state.json`) lies in the same folder. It is read and written here, and never swept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from ..errors import StoreError
from ..storage.cached import CachedFolder, Found, Place, Rest, Warnings, no_rest, unhurried
from ..storage.disk import CORRUPT, Disk, Folder, NotRegular, Stamp
from ..storage.names import file_name
from .record import named_session, read_record, write_record
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
_KEEP_DAMAGED_MS = 30 * 86_400_000


class _Kept(Struct, frozen=True):
    """One session's tasks."""

    tasks: Tasks = ()
    waiting: Tasks = ()
    """Those that were not delivered."""


class ClockStore:
    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        """`folder`: where the sessions' states are; the tasks lie in `clock/` below it."""
        self.warnings = Warnings()
        self._folder = Folder(folder / FOLDER, disk, largest=_LARGEST_FILE)
        self._files = CachedFolder(self._folder, _KeptForm(self.warnings), self.warnings, label=f"{FOLDER}/")
        self._first_due: dict[str, tuple[Stamp, int]] = {}
        """For the sweep: files in which nothing can have expired are not read again."""
        self._missed: dict[str, Tasks] = {}
        """What expired in each session before anybody was reminded of it."""

    def load(self, session_id: str) -> Tasks:
        """In order of their time; the very same tuple as long as nothing has changed. StoreError where it cannot be read."""
        return self._files.read(_place(session_id)).tasks

    def waiting(self, session_id: str) -> Tasks:
        """Those of `load` that were not delivered; they are found once for each state of the file."""
        return self._files.read(_place(session_id)).waiting

    def at_hand(self, session_id: str) -> Tasks | None:
        """What `waiting` finds, where that is quick; None: to read it takes longer than other calls should wait. StoreError."""
        kept = self._files.at_hand(_place(session_id), _QUICK_BYTES)
        return kept.waiting if kept is not None else None

    def missed(self, session_id: str) -> Tasks:
        """What was swept since this was asked last, and nobody had been reminded of it."""
        return self._missed.pop(session_id, ())

    def update(self, session_id: str, change: Change) -> Tasks:
        """Changes a session's tasks and returns the new ones; StoreError where that cannot be written.

        `change` gets what is on disk, must be quick and must not come back here.
        """
        return self._update(_place(session_id), change)[1]

    def sweep(self, now_ms: int | None, retention_ms: int, rest: Rest = no_rest) -> int:
        """Removes what has expired, and what crashes left. How many tasks.

        `now_ms` must be a time to be trusted; without one no task goes.
        """
        self._files.remove_strays()
        if now_ms is None:
            return 0
        self._files.remove_older((now_ms - _KEEP_DAMAGED_MS) * 1_000_000, (CORRUPT,), rest)
        names = [name for name in self._folder.names() if name.endswith(_ENDING) and name != NTP_STATE]
        self._first_due = {name: self._first_due[name] for name in names if name in self._first_due}
        removed = 0
        for name in unhurried(names, rest):
            try:
                removed += self._expire(name, now_ms, retention_ms)
            except StoreError as error:
                self.warnings.say(error.message)
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

    def _update(self, place: Place, change: Change) -> tuple[Tasks, Tasks]:
        """What was there, and what is there now."""
        old, new = self._files.change(place, lambda kept: _kept(in_order(change(kept.tasks))))
        return old.tasks, new.tasks

    def _expire(self, name: str, now_ms: int, retention_ms: int) -> int:
        stamp = self._folder.stamp(name)
        first = self._first_due.get(name)
        if stamp is None or (first is not None and first[0] == stamp and now_ms <= first[1] + retention_ms):
            return 0
        raw = self._files.raw(name)
        session_id = named_session(raw) or name.removesuffix(_ENDING)
        record = read_record(raw, session_id)
        if record.is_whole and record.tasks and not is_expired(record.tasks[0], now_ms, retention_ms):
            self._first_due[name] = (stamp, record.tasks[0].due_at_ms)
            return 0
        old, new = self._update(
            Place(name, session_id), lambda tasks: (task for task in tasks if not is_expired(task, now_ms, retention_ms))
        )
        if missed := tuple(task for task in undelivered(old) if task not in new):
            self._missed.pop(session_id, None)
            self._missed[session_id] = missed
            while len(self._missed) > MANY:
                del self._missed[next(iter(self._missed))]
        return len(old) - len(new)


class _KeptForm:
    empty = _Kept()

    def __init__(self, warnings: Warnings) -> None:
        self._warnings = warnings
        self._said_many: set[str] = set()

    def is_empty(self, value: _Kept) -> bool:
        return not value.tasks

    def size(self, value: _Kept) -> int:
        return 0

    def read(self, id: str, raw: bytes) -> Found[_Kept]:
        record = read_record(raw, id)
        self._count(id, record.tasks)
        kept = _kept(record.tasks)
        if not record.is_whole:
            return Found(kept, is_whole=False, stays=f"{len(record.tasks)} tasks of it could be read and stay")
        return Found(kept, warning="" if record.is_own else "was changed by something else; it is used as it is")

    def write(self, id: str, value: _Kept, before: _Kept) -> bytes:
        raw = write_record(id, value.tasks, time.time_ns() // 1_000_000)
        if len(raw) > (MOST_BYTES if len(value.tasks) > len(before.tasks) else _LARGEST_FILE):
            name = file_name("", id)
            raise StoreError(f"The session file {FOLDER}/{name} would be too large with {len(value.tasks)} tasks")
        self._count(id, value.tasks)
        return raw

    def _count(self, id: str, tasks: Tasks) -> None:
        if len(tasks) > MANY and id not in self._said_many and len(self._said_many) < MANY:
            self._said_many.add(id)
            self._warnings.say(f"{FOLDER}/{file_name('', id)} holds more than {MANY} tasks")


def _place(session_id: str) -> Place:
    return Place(file_name("", session_id), session_id)


def _kept(tasks: Tasks) -> _Kept:
    return _Kept(tasks, undelivered(tasks))
