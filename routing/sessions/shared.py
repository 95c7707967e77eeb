"""Sessions' states that lie in a store of several processes: known here as they were read last, changed there."""

from __future__ import annotations

from collections.abc import Sequence

from ..storage.cached import Rest, Warnings, no_rest
from ..storage.contract import InThread, Key, Kind, Store, aside
from ..storage.known import Known
from .state import EMPTY, SessionState
from .store import Change, SessionKey, StateForm

_Kept = tuple[bytes, SessionState]


def name_of(key: SessionKey) -> str:
    """Of a session's shelves."""
    return f"{key.prefix}:{key.id}"


def key_of(name: str) -> SessionKey:
    """ValueError where it is none."""
    prefix, _, id = name.partition(":")
    match prefix:
        case "session" | "conversation" | "chain":
            return SessionKey(prefix, id)
    raise ValueError(prefix)


class SharedStates:
    def __init__(self, store: Store) -> None:
        self.warnings = Warnings()
        self.known: Known[_Kept] = Known(Kind.STATE, (b"", EMPTY), self._fold)
        self._store = store
        self._form = StateForm()

    def load(self, key: SessionKey) -> SessionState:
        return self.known.get(name_of(key))[1]

    async def change(self, key: SessionKey, change: Change, in_thread: InThread) -> SessionState:
        name = name_of(key)
        version, (known_raw, known) = self.known.version(name), self.known.get(name)
        now = known
        if known_raw and not self._form.read("", known_raw).is_whole:
            await self._store.put([aside(Key(Kind.STATE, name), known_raw)])

        def changed(raw: bytes) -> bytes:
            nonlocal now
            before = known if raw == known_raw else self._read(raw)
            now = change(before)
            if now == before:
                now = before
                return raw
            return b"" if now.empty else self._form.write(key.id, now, before)

        new, raw = await self._store.change(Key(Kind.STATE, name), changed, (version, known_raw))
        self.known.put(name, new, (raw, now))
        return now

    def sweep(self, now: float, retention_days: float, rest: Rest = no_rest) -> int:
        """The store does that by itself."""
        return 0

    def _fold(self, before: _Kept, entries: Sequence[tuple[str, bytes]]) -> _Kept:
        raw = entries[-1][1] if entries else b""
        return raw, self._read(raw)

    def _read(self, raw: bytes) -> SessionState:
        if not raw:
            return EMPTY
        found = self._form.read("", raw)
        if not found.is_whole:
            self.warnings.say(
                f"A session's state in the store is damaged; {found.stays}, and all of it is kept until it is changed"
            )
        return found.value
