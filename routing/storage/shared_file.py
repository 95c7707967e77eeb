"""The contract served by one file (SQLite) beside the sessions: what the processes of one machine agree on.

1. Looking takes a few microseconds and waits for nobody. What is only told is written at once where nobody else is writing, which
   is quicker than to wake a thread; everything else waits for the other processes, and for the disk, in a thread.
2. It stands in for memory: a process that dies loses nothing, a machine that loses power may lose the last moments.
3. A file that is damaged, wherever, is put aside, once for all processes, and a new one is begun with what could be read of it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from .contract import BOUNDS, NEVER, Busy, Change, Found, InThread, Key, Kind, Lost, Put, Version
from .disk import Folder, make_private

T = TypeVar("T")

FILE_NAME = "shared.db"

_WAIT_S = 0.25
_AT_ONCE = 500
"""So often, then what was written ahead is put in its place, in a thread."""
_SLOW_S, _SLOW_FOR_S = 0.1, 5.0
"""A disk that took so long is left to a thread for a while."""
_MADE = """
create table if not exists shelves (
    kind text not null, id blob not null, born text not null, seq integer not null, held integer not null, bytes integer not null,
    used real not null, primary key (kind, id)
) without rowid;
create table if not exists entries (
    kind text not null, id blob not null, place blob not null, seq integer not null, size integer not null, entry blob not null,
    primary key (kind, id, place)
);
create index if not exists entries_in_order on entries (kind, id, seq);
create table if not exists claims (name text primary key, owner text not null, until real not null) without rowid;
"""
_WRITE = """insert into entries values (?, ?, ?, ?, ?, ?) on conflict (kind, id, place)
do update set seq = excluded.seq, size = excluded.size, entry = excluded.entry"""
_OLDEST = "select place, size from entries where kind = ? and id = ? order by seq limit 1"


class SharedFile:
    """The file is opened by the process that uses it first: nothing of it survives a fork."""

    def __init__(
        self,
        folder: Path,
        in_thread: InThread,
        *,
        wall: Callable[[], float],
        retention_s: float = 0,
        heard: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`heard`: what a person should know."""
        self.path = folder / FILE_NAME
        self._folder, self._heard = Folder(folder), heard
        self.retention_s = retention_s
        """0: for ever."""
        self._in_thread = in_thread
        self._wall = wall
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._read_from = self._written_to = 0
        """Which file each of them is: another process may have put it aside."""
        self._writing = threading.Lock()
        self._at_once = 0
        """How often something was written so since a thread looked after the disk."""
        self._slow_until = 0.0

    @property
    def gone(self) -> str:
        return ""

    async def read(self, wanted: Sequence[tuple[Key, Version]]) -> list[Found]:
        try:
            try:
                return self._look(wanted)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._close_reader()
                await self._in_thread(partial(self._begin_anew, self._read_from, error))
                return self._look(wanted)
        except (OSError, sqlite3.Error) as error:
            raise self._lost("read", error) from error

    def _look(self, wanted: Sequence[tuple[Key, Version]]) -> list[Found]:
        file = self._looking()
        return [_found(file, key, known) for key, known in wanted]

    async def change(self, key: Key, change: Change, known: tuple[Version, bytes] | None = None) -> tuple[Version, bytes]:
        return await self._in_thread(partial(self._write, partial(self._change, key=key, change=change)))

    async def put(self, puts: Sequence[Put]) -> None:
        if self._put_at_once(puts):
            return
        await self._in_thread(partial(self._write, partial(self._put, puts=puts)))

    async def claim(self, names: Collection[str], owner: str, ttl_s: float) -> frozenset[str]:
        return await self._in_thread(partial(self._write, partial(self._claim, names=names, owner=owner, ttl_s=ttl_s)))

    async def release(self, names: Collection[str], owner: str) -> None:
        def work(file: sqlite3.Connection) -> None:
            file.executemany("delete from claims where name = ? and owner = ?", [(name, owner) for name in names])

        await self._in_thread(partial(self._write, work))

    async def scan(self, kind: Kind) -> list[str]:
        def work(file: sqlite3.Connection) -> list[str]:
            return [_text(id) for (id,) in file.execute("select id from shelves where kind = ? order by id", (kind,))]

        return await self._in_thread(partial(self._write, work))

    async def erase(self, keys: Collection[Key]) -> int:
        def work(file: sqlite3.Connection) -> int:
            return sum(_erase(file, key) for key in keys)

        return await self._in_thread(partial(self._write, work))

    async def expire(self) -> None:
        def work(file: sqlite3.Connection) -> None:
            now = self._wall()
            file.execute("delete from claims where until < ?", (now,))
            for kind, bounds in BOUNDS.items():
                if ttl_s := bounds.ttl_s or self.retention_s:
                    old = file.execute("select id from shelves where kind = ? and used < ?", (kind, now - ttl_s)).fetchall()
                    for (id,) in old:
                        _erase(file, Key(kind, _text(id)))

        await self._in_thread(partial(self._write, work))

    async def close(self) -> None:
        with self._writing:
            for file in (self._reader, self._writer):
                if file is not None:
                    file.close()
            self._reader = self._writer = None

    def _put_at_once(self, puts: Sequence[Put]) -> bool:
        """False where it has to be done in a thread: somebody else is writing, the disk was slow, or what was written is to be
        put in its place."""
        if self._at_once >= _AT_ONCE or time.monotonic() < self._slow_until or not self._writing.acquire(blocking=False):
            return False
        try:
            file = self._looking()
            began = time.monotonic()
            with _transaction(file):
                self._put(file, puts=puts)
        except (OSError, sqlite3.Error):
            return False
        finally:
            self._writing.release()
        self._at_once += 1
        if (now := time.monotonic()) - began > _SLOW_S:
            self._slow_until = now + _SLOW_FOR_S
        return True

    # In a thread

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._writing:
            try:
                try:
                    return self._written(work)
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    self._anew(self._written_to, error)
                    return self._written(work)
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    raise Busy(f"{self.path.name} is kept busy by other processes") from error
                raise self._lost("written", error) from error
            except (OSError, sqlite3.Error) as error:
                raise self._lost("written", error) from error

    def _written(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._writer is None or self._written_to != _identity(self.path):
            if self._writer is not None:
                self._writer.close()
            self._writer = self._opened()
            self._written_to = _identity(self.path)
        self._at_once = 0
        with _transaction(self._writer):
            return work(self._writer)

    def _change(self, file: sqlite3.Connection, *, key: Key, change: Change) -> tuple[Version, bytes]:
        found = _found(file, key, NEVER)
        old = dict(found.entries).get("", b"")
        new = change(old)
        if new == old:
            return found.version, old
        if not new:
            _erase(file, key)
            return NEVER, b""
        return self._keep(file, key, [Put(key, "", new)]), new

    def _put(self, file: sqlite3.Connection, *, puts: Sequence[Put]) -> None:
        for key in dict.fromkeys(one.key for one in puts):
            self._keep(file, key, [one for one in puts if one.key == key])

    def _keep(self, file: sqlite3.Connection, key: Key, puts: Sequence[Put]) -> Version:
        named = _named(key)
        head = file.execute("select born, seq, held, bytes from shelves where kind = ? and id = ?", named).fetchone()
        born, seq, held, size = head or (uuid.uuid4().hex, 0, 0, 0)
        for _, place, entry in puts:
            at, seq = (*named, _bytes(place)), seq + 1
            before = file.execute("select size from entries where kind = ? and id = ? and place = ?", at).fetchone()
            held, size = held + (before is None), size + len(entry) - (before[0] if before is not None else 0)
            file.execute(_WRITE, (*at, seq, len(entry), entry))
        bounds = BOUNDS[key.kind]
        while held > bounds.entries or (size > bounds.bytes and held > 1):
            place, gone = file.execute(_OLDEST, named).fetchone()
            file.execute("delete from entries where kind = ? and id = ? and place = ?", (*named, place))
            held, size = held - 1, size - gone
        file.execute("insert or replace into shelves values (?, ?, ?, ?, ?, ?, ?)", (*named, born, seq, held, size, self._wall()))
        return born, seq

    def _claim(self, file: sqlite3.Connection, *, names: Collection[str], owner: str, ttl_s: float) -> frozenset[str]:
        now, taken = self._wall(), set()
        for name in names:
            held = file.execute("select owner, until from claims where name = ?", (name,)).fetchone()
            if held is None or held[0] == owner or held[1] <= now:
                file.execute("insert or replace into claims values (?, ?, ?)", (name, owner, now + ttl_s))
                taken.add(name)
        return frozenset(taken)

    def _opened(self) -> sqlite3.Connection:
        which = _identity(self.path)
        try:
            return _opened(self.path)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self._anew(which, error)
            return _opened(self.path)

    def _looking(self) -> sqlite3.Connection:
        """It waits for no lock, and never for the disk."""
        if self._reader is not None and self._read_from == _identity(self.path):
            return self._reader
        self._close_reader()
        file = self._opened()
        file.execute("pragma busy_timeout = 0")
        file.execute("pragma wal_autocheckpoint = 0")
        self._reader, self._read_from = file, _identity(self.path)
        return file

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _begin_anew(self, which: int, error: sqlite3.Error) -> None:
        with self._writing:
            self._anew(which, error)

    def _anew(self, which: int, error: sqlite3.Error) -> None:
        """The damaged file makes way, unless another process has seen to that."""
        with self._folder.locked(FILE_NAME):
            if which != _identity(self.path):
                return
            aside = Path(f"{self.path}.damaged")
            for ending in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{self.path}{ending}", f"{aside}{ending}")
            fresh = _opened(self.path)
            with contextlib.closing(fresh), _transaction(fresh):
                count = _salvaged(aside, fresh, self._wall())
        self._heard(
            f"{self.path} is damaged ({error}); it is kept as {aside.name}, and a new one is begun with the {count} entries "
            "of it that could be read"
        )

    def _lost(self, what: str, error: Exception) -> Lost:
        return Lost(f"The shared file {self.path.name} could not be {what}: {error}")


def _is_damage(error: sqlite3.Error) -> bool:
    """Not a busy or a full disk, and the like."""
    return type(error) is sqlite3.DatabaseError or "malformed" in str(error) or "no such table" in str(error)


def _identity(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


_TABLES = {
    "claims": ("name", (str, str, float | int)),
    "shelves": ("kind, id", (str, bytes, str, int, int, int, float | int)),
    "entries": ("rowid", (str, bytes, bytes, int, int, bytes)),
}


def _salvaged(damaged: Path, into: sqlite3.Connection, now: float) -> int:
    """From either end as far as it can be read. Whoever knows a shelf reads it anew."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(damaged)) as old:
        old.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for table, (order, types) in _TABLES.items():
            for way in ("asc", "desc"):
                by = ", ".join(f"{name} {way}" for name in order.split(", "))
                with contextlib.suppress(sqlite3.Error):
                    for row in old.execute(f"select * from {table} order by {by}"):
                        if len(row) == len(types) and all(map(isinstance, row, types)):
                            into.execute(f"insert or ignore into {table} values ({','.join('?' * len(types))})", row)
    into.execute("delete from entries where size != length(entry)")
    into.execute("insert or ignore into shelves select distinct kind, id, '', 0, 0, 0, ? from entries", (now,))
    held = "from entries where entries.kind = shelves.kind and entries.id = shelves.id"
    into.execute(
        f"update shelves set born = lower(hex(randomblob(16))), held = (select count(*) {held}), "
        f"bytes = (select coalesce(sum(size), 0) {held}), seq = (select coalesce(max(seq), 0) {held})"
    )
    into.execute("delete from shelves where held = 0")
    return int(into.execute("select count(*) from entries").fetchone()[0])


@contextlib.contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("begin immediate")
    try:
        yield
    except BaseException:  # whatever it was, it goes on to whoever asked; nothing half-written stays
        file.execute("rollback")
        raise
    file.execute("commit")


def _found(file: sqlite3.Connection, key: Key, known: Version) -> Found:
    named = _named(key)
    head = file.execute("select born, seq from shelves where kind = ? and id = ?", named).fetchone()
    if head is None:
        return Found(NEVER, (), known != NEVER)
    born, seq = head
    if (born, seq) == known:
        return Found(known, (), False)
    whole = born != known[0]
    newer = "select place, entry from entries where kind = ? and id = ? and seq > ? order by seq"
    rows = file.execute(newer, (*named, 0 if whole else known[1])).fetchall()
    try:
        return Found((str(born), int(seq)), tuple((_text(place), bytes(entry)) for place, entry in rows), whole)
    except (ValueError, TypeError, AttributeError) as error:
        raise sqlite3.DatabaseError(f"an entry is none: {type(error).__name__}") from error


def _erase(file: sqlite3.Connection, key: Key) -> int:
    file.execute("delete from entries where kind = ? and id = ?", _named(key))
    return file.execute("delete from shelves where kind = ? and id = ?", _named(key)).rowcount


def _named(key: Key) -> tuple[str, bytes]:
    return key.kind.value, _bytes(key.id)


def _bytes(text: str) -> bytes:
    """Ids come from outside: what is no text is kept all the same."""
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _opened(path: Path) -> sqlite3.Connection:
    make_private(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    file = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        file.execute("pragma journal_mode = wal")
        file.execute("pragma synchronous = normal")
        file.executescript(_MADE)
    except BaseException:  # whatever it was, it goes on to whoever asked; the file is not left open
        file.close()
        raise
    return file
