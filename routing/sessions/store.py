"""Where sessions' states are kept: one small JSON file each.

1. `update` is one whole read-modify-write, alone among threads and processes. It always reads the file, never the cache.
2. An empty state has no file. A state that was used up keeps its file for the fingerprint of the message it obeyed, so that
   the same message, which its client repeats, does not arm it again.
3. A damaged file costs its own session at most: what can be read of it stays in force, the file is set aside as `.corrupt`,
   and `warnings` says so once.
4. Request chains live in bounded memory, never on disk.
5. What is written comes from `SessionState` and the session's id alone; neither ever holds a credential.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ..errors import BadCall, Locked, StoreError
from ..jsonbytes import dumps, loads
from .disk import CORRUPT, TEMPORARY, Disk, Folder, NotRegular, Stamp
from .names import file_name
from .record import from_json, to_json
from .salvage import salvage
from .state import EMPTY, SessionState

Prefix: TypeAlias = Literal["session", "conversation", "chain"]
Change: TypeAlias = Callable[[SessionState], SessionState]


class SessionKey(NamedTuple):
    """Whose state it is: what the id names, and the id."""

    prefix: Prefix
    id: str


_REMEMBERED = 10_000
_MOST_WARNINGS = 100
_SETTLED_NS = 50_000_000
"""A file read so soon after it was written may be written again within the same tick of the file system's clock."""
_DAY_S = 86_400
_PREFIXES = ("session-", "conversation-")


@dataclass(slots=True)
class _Known:
    """What one file held when it was last read."""

    name: str
    stamp: Stamp | None
    state: SessionState
    settled: bool = True
    used: bool = True
    """Asked for since the last sweep."""


class FileStore:
    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.warnings: list[str] = []
        self._folder = Folder(folder, disk)
        self._known: OrderedDict[SessionKey, _Known] = OrderedDict()
        self._chains: OrderedDict[str, SessionState] = OrderedDict()
        self._memory = threading.Lock()
        self._remove_strays()

    def load(self, key: SessionKey) -> SessionState:
        """The state in force; one look at the file's stamp where nothing has changed."""
        if key[0] == "chain":
            with self._memory:
                return self._chain(key[1])
        known = self._known.get(key)
        name = known.name if known else file_name(*key)
        stamp = self._folder.stamp(name)
        if known is not None and known.stamp == stamp and known.settled:
            known.used = True
            return known.state
        if stamp is None:
            return self._remember(key, name, None, known.state if known and known.state.empty else EMPTY)
        return self._read(key, name, locked=False)

    def update(self, key: SessionKey, change: Change) -> SessionState:
        """Changes the state and returns the new one. `change` must be quick and must not come back here."""
        if key[0] == "chain":
            with self._memory:
                state = self._chains[key[1]] = change(self._chain(key[1]))
                while len(self._chains) > _REMEMBERED:
                    self._chains.popitem(last=False)
                return state
        name = file_name(*key)
        with self._folder.locked(name):
            old = self._read(key, name, locked=True)
            new = change(old)
            if new != old:
                self._store(key, name, new)
            return new

    def sweep(self, now: float, retention_days: float) -> int:
        """Removes what nobody has touched for so long (epoch seconds; no retention: for ever) and what crashes left. How many."""
        removed = self._remove_strays()
        for known in self._used_since_last_sweep():
            _touch(self._folder.path / known.name, now)
        if retention_days <= 0:
            return removed
        oldest_ns = int((now - retention_days * _DAY_S) * 1e9)
        for name in self._folder.names():
            if name.startswith(_PREFIXES) and name.endswith((".json", CORRUPT)):
                removed += self._remove_if_older(name, oldest_ns)
        return removed

    def _chain(self, id: str) -> SessionState:
        if id in self._chains:
            self._chains.move_to_end(id)
        return self._chains.get(id, EMPTY)

    def _read(self, key: SessionKey, name: str, *, locked: bool) -> SessionState:
        try:
            found = self._folder.read(name)
        except NotRegular:
            return self._repair(key, name, EMPTY, locked=locked)
        if found is None:
            known = self._known.get(key)
            return self._remember(key, name, None, known.state if known and known.state.empty else EMPTY)
        stamp, raw = found
        document = _document(raw)
        if document is None:
            return self._repair(key, name, from_json(salvage(raw)), locked=locked)
        state = from_json(document)
        if "sum" in document and document["sum"] != _sum(document["state"]):
            if state.empty:
                return self._repair(key, name, EMPTY, locked=locked)
            self._warn(f"{name} was changed by something else; it is used as it is")
        return self._remember(key, name, stamp, state)

    def _repair(self, key: SessionKey, name: str, rest: SessionState, *, locked: bool) -> SessionState:
        """Set the file aside and put what could be read of it in its place."""
        if not locked:
            try:
                with self._folder.locked(name):
                    return self._read(key, name, locked=True)
            except StoreError as error:
                self._warn(f"{name} is damaged and cannot be repaired: {error.message}")
                return self._remember(key, name, self._folder.stamp(name), rest)
        kept = "nothing of it could be read" if rest.empty else "what could be read of it stays in force"
        self._warn(f"{name} is damaged and was set aside as {name}{CORRUPT}; {kept}")
        self._folder.set_aside(name)
        self._store(key, name, rest)
        return rest

    def _store(self, key: SessionKey, name: str, state: SessionState) -> None:
        """To be called with the lock held."""
        self._doubt(key)
        if state.empty:
            self._folder.remove(name)
            self._remember(key, name, None, state)
            return
        document = to_json(state)
        self._folder.write(
            name, dumps({"version": document["version"], "id": key[1], **document, "sum": _sum(document["state"])})
        )
        self._remember(key, name, self._folder.stamp(name), state)

    def _remember(self, key: SessionKey, name: str, stamp: Stamp | None, state: SessionState) -> SessionState:
        """Most sessions never set anything: of those there is nothing to remember."""
        settled = stamp is None or time.time_ns() - stamp[0] > _SETTLED_NS
        with self._memory:
            if stamp is None and state == EMPTY:
                self._known.pop(key, None)
                return EMPTY
            self._known[key] = _Known(name, stamp, state, settled)
            self._known.move_to_end(key)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return state

    def _doubt(self, key: SessionKey) -> None:
        """Until the write has succeeded, only the file can say which state it holds."""
        known = self._known.get(key)
        if known is not None:
            known.settled = False

    def _warn(self, warning: str) -> None:
        with self._memory:
            if warning not in self.warnings and len(self.warnings) < _MOST_WARNINGS:
                self.warnings.append(warning)

    def _used_since_last_sweep(self) -> list[_Known]:
        with self._memory:
            used = [known for known in self._known.values() if known.used and known.stamp is not None]
            for known in used:
                known.used = False
        return used

    def _remove_strays(self) -> int:
        """Temporary files belong to whoever holds the lock: with the lock in hand, one that is there was left by a crash."""
        removed = 0
        for stray in self._folder.names():
            if stray.startswith(_PREFIXES) and stray.endswith(TEMPORARY):
                removed += self._remove_if_older(stray, None)
        return removed

    def _remove_if_older(self, name: str, oldest_ns: int | None) -> int:
        owner = name.removesuffix(TEMPORARY).removesuffix(CORRUPT)
        try:
            with self._folder.locked(owner):
                stamp = self._folder.stamp(name)
                if stamp is None or (oldest_ns is not None and stamp[0] >= oldest_ns):
                    return 0
                self._folder.remove(name)
                return 1
        except Locked:
            return 0  # somebody is at work with it: it is not old
        except StoreError as error:
            self._warn(error.message)
            return 0


def _document(raw: bytes) -> dict[str, object] | None:
    """The file's JSON; None where it is none, or not that of a state."""
    try:
        document = loads(raw)
    except BadCall:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("state"), dict) else None


def _sum(state: object) -> str:
    """Tells damage that is still JSON from what was written."""
    return hashlib.sha256(dumps(state)).hexdigest()[:16]


def _touch(path: Path, now: float) -> None:
    try:
        os.utime(path, (now, now))
    except OSError:
        pass
