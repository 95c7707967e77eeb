"""One folder of values, a file each, that are read far more often than changed.

1. `read` costs one look at the file's stamp where nothing has changed. `change` is one whole read-modify-write, alone among
   threads and processes, and on disk before it returns.
2. A value that is empty has no file, and costs one look at a file that is not there.
3. A damaged file costs what cannot be read of it: the rest stays in force, the file is kept as `.corrupt`, and `warnings` says so
   once. In this order, so that a crash or a full disk in between loses nothing.
4. A place without a file lives in memory alone. What is remembered is bounded, for all places together.
5. Nothing in here knows what a value means: its `Form` does. Whoever keeps the same values elsewhere serves `read` and `change`.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from ..errors import Locked, StoreError
from .disk import CORRUPT, TEMPORARY, Folder, NotRegular, Stamp

V = TypeVar("V")

SETTLED_S = 0.05
"""A file read so soon after it was written may be written again within the same tick of the file system's clock."""
_MOST_PLACES = 10_000
_MOST_BYTES = 32 << 20
_MOST_WARNINGS = 100
_DAY_S = 86_400


class Place(NamedTuple):
    """Where one value is kept."""

    file: str
    """Empty: in memory alone."""
    id: str


class Found(Struct, Generic[V], frozen=True):
    """What could be read of a file."""

    value: V
    is_whole: bool = True
    """The file can be used as it is."""
    warning: str = ""
    """What is to be said of a file that can."""
    stays: str = "what could be read of it stays in force"
    """Of one that cannot."""


class Form(Protocol[V]):
    """How a value is written."""

    empty: V

    def is_empty(self, value: V) -> bool:
        """Whether it needs no file. One that is not `empty` all the same is remembered as long as there is room."""

    def size(self, value: V) -> int:
        """Roughly, of a value that lives in memory alone."""

    def read(self, id: str, raw: bytes) -> Found[V]: ...

    def write(self, id: str, value: V, before: V) -> bytes | Iterable[bytes]:
        """StoreError where it is too large."""


Rest = Callable[[], None]
"""Waits a moment, so that others have their turns."""
_WITHOUT_REST = 16


def no_rest() -> None:
    pass


def unhurried(names: Iterable[str], rest: Rest) -> Iterator[str]:
    """The names, with a rest after every few of them."""
    for count, name in enumerate(names, 1):
        yield name
        if not count % _WITHOUT_REST:
            rest()


class Warnings(list[str]):
    """What people should know, each once."""

    def say(self, warning: str) -> None:
        if warning not in self and len(self) < _MOST_WARNINGS:
            self.append(warning)

    def taken(self) -> list[str]:
        said = list(self)
        del self[: len(said)]
        return said


class _Known(Struct, Generic[V]):
    """What one file held when it was last read."""

    stamp: Stamp | None
    value: V
    size: int
    content: int | None
    """A hash of its bytes."""
    seen: float
    """Since when it has had this stamp, as far as is known (monotonic seconds)."""
    settled: bool
    used: bool = True
    """Asked for since the last sweep."""


class CachedFolder(Generic[V]):
    def __init__(
        self,
        folder: Folder,
        form: Form[V],
        warnings: Warnings,
        *,
        label: str = "",
        own: tuple[str, ...] = ("",),
        always_reads: bool = False,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        """`label`: how a file's name begins in warnings. `own`: how the names of our files begin, where others lie beside them.
        `always_reads`: `change` never trusts what is remembered."""
        self.folder = folder
        self.warnings = warnings
        self.most_places, self.most_bytes = _MOST_PLACES, most_bytes
        self._form = form
        self._label = label
        self._own = own
        self._always_reads = always_reads
        self._known: OrderedDict[Place, _Known[V]] = OrderedDict()
        self._size = 0
        self._unsure: set[str] = set()
        """Files whose last save failed when they had it already: perhaps it does not last."""
        self._all_unsure = False
        """There are too many of them to name: a disk that fails each time."""
        self._memory = threading.RLock()
        self.remove_strays()

    def read(self, place: Place) -> V:
        """StoreError where the file cannot be read."""
        if not place.file:
            return self._in_memory(place)
        return self._as_stamped(place, self.folder.stamp(place.file))

    def _as_stamped(self, place: Place, stamp: Stamp | None) -> V:
        known = self._known.get(place)
        if known is not None and known.settled and known.stamp == stamp:
            known.used = True
            return known.value
        if stamp is not None:
            return self._read(place, locked=False)
        return self._absent(place) if known is not None else self._form.empty

    def at_hand(self, place: Place, quick_bytes: int) -> V | None:
        """What `read` finds, where that is quick; None: the file is longer than that, and has to be read."""
        known, stamp = self._known.get(place), self.folder.stamp(place.file)
        if stamp is not None and stamp[1] > quick_bytes and (known is None or not known.settled or known.stamp != stamp):
            return None
        return self._as_stamped(place, stamp)

    def change(self, place: Place, change: Callable[[V], V]) -> tuple[V, V]:
        """What was there, and what is there now. StoreError where that cannot be written.

        `change` gets what is on disk, must be quick and must not come back here.
        """
        if not place.file:
            with self._memory:
                old = self._in_memory(place)
                return old, self._remember(place, None, change(old), b"")
        with self.folder.locked(place.file):
            old = self._current(place)
            new = change(old)
            if new != old or self._all_unsure or place.file in self._unsure:
                self._store(place, new, old)
            return old, new

    def raw(self, file: str) -> bytes:
        """Its bytes, where a file of ours can be read; StoreError where the disk fails."""
        try:
            found = self.folder.read(file)
        except NotRegular:
            found = None
        return found[1] if found is not None else b""

    # What nobody needs any more

    def sweep(self, now: float, retention_days: float, rest: Rest = no_rest) -> int:
        """Removes what nobody has asked for so long (epoch seconds; no retention: for ever) and what crashes left. How many."""
        for file in unhurried(self._used_since_last_sweep(), rest):
            _touch(os.path.join(self.folder.path, file), now)
        removed = self.remove_strays()
        if retention_days > 0:
            removed += self.remove_older(int((now - retention_days * _DAY_S) * 1e9), (".json", CORRUPT), rest)
        return removed

    def remove_older(self, oldest_ns: int, endings: tuple[str, ...], rest: Rest = no_rest) -> int:
        names = (name for name in self._names() if name.endswith(endings))
        return sum(self._is_older(name, oldest_ns) and self._remove(name, oldest_ns) for name in unhurried(names, rest))

    def remove_strays(self) -> int:
        """Temporary files belong to whoever holds the lock: with the lock in hand, one that is there was left by a crash."""
        return sum(self._remove(name, None) for name in self._names() if name.endswith(TEMPORARY))

    def _names(self) -> Iterator[str]:
        return (name for name in self.folder.each_name() if name.startswith(self._own))

    def _is_older(self, name: str, oldest_ns: int) -> bool:
        """At a glance: a lock for each of ten thousand files took twenty seconds."""
        try:
            stamp = self.folder.stamp(name)
        except StoreError:
            return True
        return stamp is not None and stamp[0] < oldest_ns

    def _remove(self, name: str, oldest_ns: int | None) -> bool:
        try:
            with self.folder.locked(name.removesuffix(TEMPORARY).removesuffix(CORRUPT)):
                stamp = self.folder.stamp(name)
                if stamp is None or (oldest_ns is not None and stamp[0] >= oldest_ns):
                    return False
                self.folder.remove(name)
                return True
        except Locked:
            return False  # somebody is at work with it: it is not old
        except StoreError as error:
            self._warn(error.message)
            return False

    def _used_since_last_sweep(self) -> Iterator[str]:
        with self._memory:
            places = list(self._known)
        for place in places:
            known = self._known.get(place)
            if known is not None and known.used and known.stamp is not None:
                known.used = False
                yield place.file

    # One file

    def _current(self, place: Place) -> V:
        """To be called with the lock held."""
        known = self._known.get(place)
        if not self._always_reads and known is not None and known.settled and known.stamp == self.folder.stamp(place.file):
            return known.value
        return self._read(place, locked=True)

    def _read(self, place: Place, *, locked: bool) -> V:
        try:
            found = self.folder.read(place.file)
        except NotRegular:
            return self._repair(place, Found(self._form.empty, is_whole=False), None, locked=locked)
        if found is None:
            return self._absent(place)
        stamp, raw = found
        known = self._known.get(place)
        if known is not None and known.stamp is not None and (known.size, known.content) == (len(raw), hash(raw)):
            return self._remember(place, stamp, known.value, raw)
        read = self._form.read(place.id, raw)
        if not read.is_whole:
            return self._repair(place, read, raw, locked=locked)
        if read.warning:
            self._warn(f"{self._label}{place.file} {read.warning}")
        return self._remember(place, stamp, read.value, raw)

    def _absent(self, place: Place) -> V:
        """There is no file: what needs none is still known."""
        known = self._known.get(place)
        value = known.value if known is not None and self._form.is_empty(known.value) else self._form.empty
        return self._remember(place, None, value, b"")

    def _repair(self, place: Place, found: Found[V], raw: bytes | None, *, locked: bool) -> V:
        """Keep what is there (`raw`; None: no file of ours) under another name, and put what could be read in its place."""
        name, is_empty = place.file, self._form.is_empty(found.value)
        try:
            if not locked:
                with self.folder.locked(name):
                    return self._read(place, locked=True)
            if raw is None or is_empty:
                self.folder.set_aside(name)
            else:
                self.folder.write(name + CORRUPT, raw)
            self._store(place, found.value, found.value)
        except StoreError as error:
            if locked:
                raise
            self._warn(f"{self._label}{name} is damaged and cannot be repaired: {error.message}")
            return found.value
        stays = "nothing of it could be read" if is_empty else found.stays
        self._warn(f"{self._label}{name} is damaged and was set aside as {name}{CORRUPT}; {stays}")
        return found.value

    def _store(self, place: Place, value: V, before: V) -> None:
        """To be called with the lock held. Until the write has succeeded, only the file can say what it holds."""
        name, is_empty = place.file, self._form.is_empty(value)
        data = b"" if is_empty else self._form.write(place.id, value, before)
        known = self._known.get(place)
        stamp = known.stamp if known is not None else None
        if known is not None:
            known.settled = False
        try:
            if is_empty:
                self.folder.remove(name)
            else:
                self.folder.write(name, data)
        except StoreError:
            if self.folder.stamp(name) != stamp:
                self._unsure.add(name)
                self._all_unsure = self._all_unsure or len(self._unsure) > self.most_places
                if self._all_unsure:
                    self._unsure.clear()
            raise
        self._unsure.discard(name)
        stamp = None if is_empty else self.folder.stamp(name)
        if stamp is None and not is_empty:  # somebody has removed it in this very moment
            with self._memory:
                self._forget(place)
            return
        self._remember(place, stamp, value, data)

    # What is remembered

    def _in_memory(self, place: Place) -> V:
        with self._memory:
            known = self._known.get(place)
            if known is None:
                return self._form.empty
            self._known.move_to_end(place)
            return known.value

    def _remember(self, place: Place, stamp: Stamp | None, value: V, data: bytes | Iterable[bytes]) -> V:
        """Most places are empty: of those there is nothing to remember."""
        now = time.monotonic()
        content = hash(data) if isinstance(data, bytes) else None
        with self._memory:
            before = self._forget(place)
            if stamp is None and value == self._form.empty:
                return value
            seen = before.seen if before is not None and before.stamp == stamp else now
            size = stamp[1] if stamp is not None else self._form.size(value)
            self._known[place] = _Known(stamp, value, size, content, seen, _is_settled(stamp, now - seen))
            self._size += size
            while len(self._known) > self.most_places or (self._size > self.most_bytes and len(self._known) > 1):
                self._forget(next(iter(self._known)))
        return value

    def _forget(self, place: Place) -> _Known[V] | None:
        known = self._known.pop(place, None)
        self._size -= known.size if known is not None else 0
        return known

    def _warn(self, warning: str) -> None:
        with self._memory:
            self.warnings.say(warning)


def _is_settled(stamp: Stamp | None, seen_s: float) -> bool:
    """Told by the wall clock where that can tell, else by how long the stamp has been seen: the wall clock may be set back."""
    return stamp is None or time.time_ns() - stamp[0] > SETTLED_S * 1e9 or seen_s > SETTLED_S


def _touch(path: str, now: float) -> None:
    try:
        os.utime(path, (now, now))
    except OSError:
        pass
