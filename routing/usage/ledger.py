"""The file of what was used: one row for each round that a provider answered, whatever the client was shown of it.

1. Several processes write to one file; a row that was written is there after a crash.
2. A file that cannot be read is set aside, never overwritten.
3. Everything here waits for the disk.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from .spending import Row

_VERSION = 2
_DAY_MS = 86_400_000
_WAIT_S = 5.0
_SWEEP_ROWS = 10_000
_MADE = """
create table if not exists rounds (
    time integer not null, session text not null, client text not null, call text not null, round integer not null,
    provider text not null, key text not null, asked text not null, model text not null,
    input integer, cached integer, written integer, output integer, reasoning integer, dollars real,
    user text not null default ''
);
create index if not exists rounds_by_time on rounds (time);
create index if not exists rounds_by_session on rounds (session, time);
"""
_GROWN = {2: "alter table rounds add column user text not null default ''"}
"""What a version added to a file of the version before it."""
_WRITE = f"insert into rounds ({', '.join(Row._fields).replace('time_ms', 'time')}) values ({','.join('?' * len(Row._fields))})"


class Ledger:
    def __init__(self, path: Path, *, retention_days: int, note: Callable[[str], None] = lambda line: None) -> None:
        self.path = path
        self._days, self._note = retention_days, note
        self._open: sqlite3.Connection | None = None
        self._mine = 0
        """Which file that is."""
        self._since_sweep = _SWEEP_ROWS

    def write(self, rows: Iterable[Row], now_ms: int) -> None:
        rows = list(rows)
        try:
            self._write(rows)
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # a busy or a full disk, and the like
                raise
            self.close()
            if self._mine == _identity(self.path):  # else another process has put it aside already
                self._set_aside(error)  # spoiled further inside, which opening it does not see
            self._write(rows)
        connection = self._connection()
        self._since_sweep += len(rows)
        if self._since_sweep >= _SWEEP_ROWS:
            self._since_sweep = 0
            with connection:
                connection.execute("delete from rounds where time < ?", (now_ms - self._days * _DAY_MS,))

    def read(self, query: str, values: Iterable[object] = ()) -> list[sqlite3.Row]:
        return self._connection().execute(query, tuple(values)).fetchall()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _write(self, rows: list[Row]) -> None:
        with (connection := self._connection()):
            connection.executemany(_WRITE, rows)

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._open = _opened(self.path)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._set_aside(error)
                self._open = _opened(self.path)
            self._mine = _identity(self.path)
        return self._open

    def _set_aside(self, error: sqlite3.Error) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged-{os.getpid()}")
        self._note(f"{self.path} cannot be read ({error}); it is kept as {aside.name}, and a new one is begun")
        for ending in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self.path}{ending}", f"{aside}{ending}")


def _identity(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _grow(connection: sqlite3.Connection) -> None:
    """To the present version; of several processes that come upon an older file the first one does it."""
    connection.execute("begin immediate")
    with connection:
        (version,) = connection.execute("pragma user_version").fetchone()
        if version == 0:
            for statement in _MADE.split(";"):
                connection.execute(statement)
        else:
            for grown in range(version + 1, _VERSION + 1):
                connection.execute(_GROWN[grown])
        connection.execute(f"pragma user_version = {_VERSION}")


def _opened(path: Path) -> sqlite3.Connection:
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(path, timeout=_WAIT_S, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        (version,) = connection.execute("pragma user_version").fetchone()
        if version > _VERSION:
            raise sqlite3.OperationalError(f"{path} was written by a newer RouteCodex (format {version})")
        if version < _VERSION:
            _grow(connection)
    except BaseException:  # whatever it was, it goes on to whoever asked; the file is not left open
        connection.close()
        raise
    return connection
