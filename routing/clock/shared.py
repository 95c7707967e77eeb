"""Tasks that lie in a store of several processes, and who of these delivers them.

The clock asks from threads; the store answers in the loop, and `Bridge` carries between them. In the loop itself only what was
read for the call is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..errors import StoreError
from ..storage.cached import Rest, no_rest
from ..storage.contract import Key, Kind, Store, aside
from ..storage.known import Known
from .record import named_session, read_record, write_record
from .store import MOST_BYTES, Change, ClockStore
from .tasks import Tasks, in_order, undelivered

T = TypeVar("T")

LEASE_S = 30.0
RENEW_S = 10.0

KeptTasks = tuple[bytes, Tasks, Tasks]
"""As it is written; all tasks; those that wait."""


class Bridge(Protocol):
    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T | None:
        """From a thread: what comes of it in the loop. None in the loop itself, where nobody may wait."""


class SharedTasks(ClockStore):
    """What is known of the right time stays this machine's own."""

    def __init__(self, folder: Path, store: Store, bridge: Bridge) -> None:
        super().__init__(folder)
        self.known: Known[KeptTasks] = Known(Kind.TASKS, (b"", (), ()), _fold)
        self._store = store
        self._bridge = bridge

    def load(self, session_id: str) -> Tasks:
        self._refresh(session_id)
        return self.known.get(session_id)[1]

    def waiting(self, session_id: str) -> Tasks:
        self._refresh(session_id)
        return self.known.get(session_id)[2]

    def at_hand(self, session_id: str) -> Tasks | None:
        return self.known.get(session_id)[2]

    def missed(self, session_id: str) -> Tasks:
        return ()

    def update(self, session_id: str, change: Change) -> Tasks:
        """From a thread. StoreError; where that is `Lost`, it may have been done all the same."""
        known = (self.known.version(session_id), self.known.get(session_id)[0])
        new: Tasks = ()
        if (raw := known[1]) and not read_record(raw, named_session(raw)).is_whole:
            self._bridge(lambda: self._store.put([aside(Key(Kind.TASKS, session_id), raw)]))

        def changed(raw: bytes) -> bytes:
            nonlocal new
            old = _read(raw)
            new = in_order(change(old))
            if new == old:
                return raw
            written = write_record(session_id, new, time.time_ns() // 1_000_000) if new else b""
            if len(written) > MOST_BYTES and len(new) > len(old):
                raise StoreError(f"The session would be too large with {len(new)} tasks")
            return written

        done = self._bridge(lambda: self._store.change(Key(Kind.TASKS, session_id), changed, known))
        if done is None:
            raise StoreError("Tasks are changed from a thread")
        self.known.put(session_id, done[0], (done[1], new, undelivered(new)))
        return new

    def sweep(self, now_ms: int | None, retention_ms: int, rest: Rest = no_rest) -> int:
        """The store does that by itself."""
        return 0

    def _refresh(self, session_id: str) -> None:
        asked = self.known.wanted(session_id)  # one entry: it comes at once
        found = self._bridge(lambda: self._store.read([asked]))
        if found is not None:
            self.known.heard(session_id, found[0])


class SharedClaims:
    """Leases: who is frozen or dies, lets go with the lease."""

    waits = True

    def __init__(self, store: Store, bridge: Bridge, owner: str, note: Callable[[str], None] = lambda line: None) -> None:
        self._store, self._bridge, self._owner, self._note = store, bridge, owner, note
        self._held: set[str] = set()
        self._freed: set[str] = set()

    def take(self, task_id: str) -> bool:
        """False also where nobody answers: another process may hold it."""
        try:
            taken = self._bridge(lambda: self._store.claim([_name(task_id)], self._owner, LEASE_S))
        except StoreError:
            return False
        if not taken:
            return False
        self._held.add(task_id)
        return True

    def give_back(self, task_id: str) -> None:
        """Soon: what is not given back in time ends with its lease."""
        self._held.discard(task_id)
        self._freed.add(task_id)

    async def keep(self, *, renews: bool) -> None:
        """Now and then: what was given back is free, and what is held stays held."""
        freed, self._freed = self._freed - self._held, set()
        if freed:
            await self._store.release([_name(task_id) for task_id in freed], self._owner)
        held = {_name(task_id): task_id for task_id in self._held}
        if not (held and renews):
            return
        kept = await self._store.claim(held, self._owner, LEASE_S)
        for name in held.keys() - kept:
            self._held.discard(held[name])
            self._note(f"clock: the lease of {held[name]} has ended: another process may deliver it, too")


def _name(task_id: str) -> str:
    return f"task:{task_id}"


def _read(raw: bytes) -> Tasks:
    return read_record(raw, named_session(raw)).tasks if raw else ()


def _fold(before: KeptTasks, entries: Sequence[tuple[str, bytes]]) -> KeptTasks:
    raw = entries[-1][1] if entries else b""
    tasks = _read(raw)
    return raw, tasks, undelivered(tasks)
