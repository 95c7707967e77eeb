"""Hidden rounds that lie in a store of several processes: each is put there alone, and read once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from ..dialects.fields import read_object
from ..errors import StoreError
from ..sessions.shared import name_of
from ..sessions.store import SessionKey
from ..storage.cached import Rest, Warnings, no_rest
from ..storage.contract import BOUNDS, InThread, Key, Kind, Put, Store
from ..storage.known import Known
from .hidden import Hidden
from .hidden_store import read_entry, write_entry

_Rounds = dict[str, tuple[Hidden, int]]
"""By place, the newest last; and how long each is."""


class SharedHidden:
    def __init__(self, store: Store) -> None:
        self.warnings = Warnings()
        self.known: Known[_Rounds] = Known(Kind.HIDDEN, {}, _fold, size=lambda rounds: sum(size for _, size in rounds.values()))
        self._store = store

    def load(self, key: SessionKey) -> tuple[Hidden, ...]:
        return tuple(entry for entry, _ in self.known.get(name_of(key)).values())

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        def work() -> tuple[str, bytes] | None:
            entry = hidden()
            return (place_of(entry), b"".join(write_entry(entry))) if entry is not None else None

        made = await in_thread(work)
        if made is None:
            return
        if len(made[1]) > BOUNDS[Kind.HIDDEN].bytes:
            raise StoreError("The hidden rounds of this answer are too long to be kept")
        await self._store.put([Put(Key(Kind.HIDDEN, name_of(key)), *made)])

    def sweep(self, now: float, retention_days: float, rest: Rest = no_rest) -> int:
        """The store does that by itself."""
        return 0


def place_of(entry: Hidden) -> str:
    """The same answer, asked for again, takes the place of the one before."""
    named = f"{entry.dialect.value} {entry.key.answer} {entry.key.typed} {entry.ordinal}"
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _fold(before: _Rounds, entries: Sequence[tuple[str, bytes]]) -> _Rounds:
    now, bounds = dict(before), BOUNDS[Kind.HIDDEN]
    for place, raw in entries:
        now.pop(place, None)
        entry = read_entry(read_object(raw))
        if entry is not None:
            now[place] = (entry, len(raw))
    size = sum(length for _, length in now.values())
    while len(now) > bounds.entries or (size > bounds.bytes and len(now) > 1):
        size -= now.pop(next(iter(now)))[1]
    return now
