"""What a process knows of shelves that lie elsewhere: as it was told last, bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from .contract import NEVER, Found, Key, Kind, Version

V = TypeVar("V")

Fold = Callable[[V, Sequence[tuple[str, bytes]]], V]
"""From what was known and the entries that are newer to what is known now."""

_MOST = 5_000
_MOST_BYTES = 64 << 20


class Known(Generic[V]):
    """Of all shelves of a kind."""

    def __init__(
        self, kind: Kind, empty: V, fold: Fold[V], *, most: int = _MOST, size: Callable[[V], int] = lambda value: 0
    ) -> None:
        self.kind, self.empty = kind, empty
        self._fold, self._most, self._size_of = fold, most, size
        self._shelves: OrderedDict[str, tuple[Version, V, int]] = OrderedDict()
        self._size = 0

    def wanted(self, id: str) -> tuple[Key, Version]:
        """How to ask for what is newer."""
        return Key(self.kind, id), self.version(id)

    def version(self, id: str) -> Version:
        known = self._shelves.get(id)
        return known[0] if known is not None else NEVER

    def get(self, id: str) -> V:
        known = self._shelves.get(id)
        if known is None:
            return self.empty
        self._shelves.move_to_end(id)
        return known[1]

    def heard(self, id: str, found: Found) -> None:
        if not found.whole and not found.entries:
            return
        before = self.empty if found.whole else self.get(id)
        self.put(id, found.version, self._fold(before, found.entries))

    def put(self, id: str, version: Version, value: V) -> None:
        self.forget(id)
        if version == NEVER:
            return
        size = self._size_of(value)
        self._shelves[id] = (version, value, size)
        self._size += size
        while len(self._shelves) > self._most or (self._size > _MOST_BYTES and len(self._shelves) > 1):
            self.forget(next(iter(self._shelves)))

    def forget(self, id: str) -> None:
        known = self._shelves.pop(id, None)
        self._size -= known[2] if known is not None else 0
