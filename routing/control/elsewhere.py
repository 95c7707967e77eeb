"""What is stored of sessions where no file holds it: told, and erased."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from ..clock.record import read_record
from ..errors import StoreError
from ..sessions.shared import key_of
from ..sessions.store import StateForm
from ..sessions.whose import is_of
from ..storage.contract import Key, Kind, Store, read_all
from ..values import JsonObject
from . import kept

T = TypeVar("T")

_OF_SESSION = (Kind.STATE, Kind.HIDDEN, Kind.MEMO, Kind.SEALS)
_AT_ONCE = 100


class KeptSessions(Protocol):
    """Wherever they are kept. All of it waits. `person`: of them alone."""

    def sessions(self, person: str | None = None) -> list[kept.Kept]:
        """Those with something in force, the newest first."""

    def session(self, id: str, person: str | None = None) -> JsonObject: ...
    def reminders(self, person: str | None = None) -> list[JsonObject]: ...
    def clear(self, id: str, person: str | None = None) -> list[str]: ...
    def clear_all(self) -> list[str]: ...


class InFiles(Struct, frozen=True):
    folder: Path

    def sessions(self, person: str | None = None) -> list[kept.Kept]:
        return kept.sessions(self.folder, person)

    def session(self, id: str, person: str | None = None) -> JsonObject:
        return kept.session(self.folder, id, person)

    def reminders(self, person: str | None = None) -> list[JsonObject]:
        return kept.reminders(self.folder, person)

    def clear(self, id: str, person: str | None = None) -> list[str]:
        return kept.clear(self.folder, id, person)

    def clear_all(self) -> list[str]:
        return kept.clear_all(self.folder)


class Wait(Protocol):
    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T | None:
        """What comes of it, in the loop."""


class Elsewhere(Struct, frozen=True):
    store: Store
    wait: Wait

    def sessions(self, person: str | None = None) -> list[kept.Kept]:
        return sorted((one for one in self._of(person) if not one.state.idle), key=lambda one: one.id)

    def session(self, id: str, person: str | None = None) -> JsonObject:
        one = kept.the_one(self._of(person), id)
        asked = [Key(Kind.TASKS, one.id), Key(Kind.HIDDEN, f"{one.kind}:{one.id}")]
        tasks, hidden = ([raw for _, raw in found if raw] for found in self._in_loop(lambda: read_all(self.store, asked)))
        reminders = len(read_record(tasks[0], one.id).tasks) if tasks else 0
        return {**one.told, "reminders": reminders, "hiddenRounds": len(hidden), "files": []}

    def reminders(self, person: str | None = None) -> list[JsonObject]:
        return kept.waiting_of([raw for _, raw in self._in_loop(lambda: self._entries(Kind.TASKS))], person)

    def clear(self, id: str, person: str | None = None) -> list[str]:
        one = kept.the_one(self._of(person), id)
        keys = [Key(Kind.TASKS, one.id), *(Key(kind, f"{one.kind}:{one.id}") for kind in _OF_SESSION)]
        return self._in_loop(lambda: self._erased(keys))

    def clear_all(self) -> list[str]:
        async def clear() -> list[str]:
            keys = [Key(kind, id) for kind in (Kind.TASKS, *_OF_SESSION) for id in await self.store.scan(kind)]
            return await self._erased(keys)

        return self._in_loop(clear)

    async def _erased(self, keys: list[Key]) -> list[str]:
        """A name for each that was there."""
        return [f"{key.kind} {key.id}" for key in keys if await self.store.erase([key])]

    async def _all(self) -> list[kept.Kept]:
        found = [(key_of(id), raw) for id, raw in await self._entries(Kind.STATE)]
        return [kept.Kept(key.prefix, key.id, StateForm().read(key.id, raw).value, 0.0) for key, raw in found]

    async def _entries(self, kind: Kind) -> list[tuple[str, bytes]]:
        """What lies on all shelves of a kind that hold one."""
        ids, found = await self.store.scan(kind), list[tuple[str, bytes]]()
        for at in range(0, len(ids), _AT_ONCE):
            asked = [Key(kind, id) for id in ids[at : at + _AT_ONCE]]
            for shelf, entries in zip(asked, await read_all(self.store, asked), strict=True):
                found += [(shelf.id, raw) for _, raw in entries]
        return found

    def _of(self, person: str | None) -> list[kept.Kept]:
        return [one for one in self._in_loop(self._all) if person is None or is_of(person, one.id)]

    def _in_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        done = self.wait(work)
        if done is None:
            raise StoreError("This is asked from a thread")
        return done
