"""Where sessions' states are kept: one small JSON file each.

1. `update` is one whole read-modify-write, alone among threads and processes. It always reads the file, never what is remembered.
2. An empty state has no file. A state that was used up keeps its file for the fingerprint of the message it obeyed, so that
   the same message, which its client repeats, does not arm it again.
3. A damaged file costs its own session at most (`CachedFolder`).
4. Request chains live in bounded memory, never on disk.
5. What is written comes from `SessionState` and the session's id alone; neither ever holds a credential.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ..errors import BadCall
from ..jsonbytes import dumps, loads
from ..storage.cached import CachedFolder, Found, Place, Rest, Warnings, no_rest
from ..storage.contract import InThread
from ..storage.disk import Disk, Folder
from ..storage.names import file_name
from .record import from_json, to_json
from .salvage import salvage
from .state import EMPTY, SessionState

Prefix: TypeAlias = Literal["session", "conversation", "chain"]
Change: TypeAlias = Callable[[SessionState], SessionState]


class SessionKey(NamedTuple):
    """Whose state it is: what the id names, and the id."""

    prefix: Prefix
    id: str

    @property
    def place(self) -> Place:
        """Where something of that session is kept: request chains live in memory alone."""
        return Place("" if self.prefix == "chain" else file_name(*self), self.id)


class States(Protocol):
    """Where sessions' states are kept, wherever that is."""

    warnings: Warnings

    def load(self, key: SessionKey) -> SessionState:
        """The state in force, as far as it is known here. Quick."""

    async def change(self, key: SessionKey, change: Change, in_thread: InThread) -> SessionState:
        """The new one, once it is kept. `change` may be asked again: the last try counts."""

    def sweep(self, now: float, retention_days: float, rest: Rest = ...) -> int: ...


class FileStore:
    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.warnings = Warnings()
        self._files = CachedFolder(
            Folder(folder, disk), StateForm(), self.warnings, own=("session-", "conversation-"), always_reads=True
        )

    def load(self, key: SessionKey) -> SessionState:
        """The state in force; one look at the file's stamp where nothing has changed."""
        return self._files.read(key.place)

    def update(self, key: SessionKey, change: Change) -> SessionState:
        """Changes the state and returns the new one. `change` must be quick and must not come back here."""
        return self._files.change(key.place, change)[1]

    async def change(self, key: SessionKey, change: Change, in_thread: InThread) -> SessionState:
        return await in_thread(partial(self.update, key, change))

    def sweep(self, now: float, retention_days: float, rest: Rest = no_rest) -> int:
        """Removes what nobody has touched for so long (epoch seconds; no retention: for ever) and what crashes left. How many."""
        return self._files.sweep(now, retention_days, rest)


class StateForm:
    """A session's state, its id beside it, and a sum that tells damage."""

    empty = EMPTY

    def is_empty(self, value: SessionState) -> bool:
        return value.empty

    def size(self, value: SessionState) -> int:
        return 0

    def read(self, id: str, raw: bytes) -> Found[SessionState]:
        document = _document(raw)
        if document is None:
            return Found(from_json(salvage(raw)), is_whole=False)
        state = from_json(document)
        if "sum" not in document or document["sum"] == _sum(document["state"]):
            return Found(state)
        if state.empty:
            return Found(EMPTY, is_whole=False)
        return Found(state, warning="was changed by something else; it is used as it is")

    def write(self, id: str, value: SessionState, before: SessionState) -> bytes:
        document = to_json(value)
        return dumps({"version": document["version"], "id": id, **document, "sum": _sum(document["state"])})


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
