"""Where the hidden rounds of sessions are kept: one JSON file each, in a folder of their own beside the sessions' states.

1. A file holds what the conversation itself said, nothing else, and the newest of it: `MOST_ENTRIES` and `MOST_BYTES`.
2. A session without hidden rounds costs one look at a file that is not there.
3. What is damaged is left out, one entry or the whole file: then the history stays as the client sends it.
4. Request chains live in memory. What is remembered there, and of the files, is bounded for all sessions together.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..dialects.fields import count_of, list_of, object_of, read_object, text_of
from ..errors import Locked, StoreError
from ..jsonbytes import WRITERS, Writer, dump_pieces, dumps
from ..sessions.disk import CORRUPT, TEMPORARY, Disk, Folder, NotRegular, Stamp
from ..sessions.names import file_name
from ..sessions.store import SessionKey
from ..values import Dialect, JsonObject
from .hidden import Hidden, Key

FOLDER = "history"
MOST_ENTRIES = 200
MOST_BYTES = 8 << 20
_WRITE_BYTES = 64 << 10
_FRAME_BYTES = 4 << 10
"""What a file holds beside its entries."""
_MOST_SESSIONS = 10_000
_MOST_REMEMBERED_BYTES = 64 << 20
_SETTLED_NS = 50_000_000
"""A file read so soon after it was written may be written again within the same tick of the file system's clock."""
_DAY_S = 86_400
_MOST_WARNINGS = 100


@dataclass(slots=True)
class _Known:
    name: str
    stamp: Stamp | None
    entries: tuple[Hidden, ...]
    size: int
    settled: bool
    used: bool = True


class HiddenStore:
    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.warnings: list[str] = []
        self._folder = Folder(folder / FOLDER, disk, largest=MOST_BYTES + _FRAME_BYTES)
        self._known: OrderedDict[SessionKey, _Known] = OrderedDict()
        self._size = 0
        self._memory = threading.RLock()

    def load(self, key: SessionKey) -> tuple[Hidden, ...]:
        """What is to be put back into this session's histories; nothing where that cannot be read."""
        known = self._known.get(key)
        if key.prefix == "chain":
            return known.entries if known else ()
        name = known.name if known else file_name(*key)
        try:
            stamp = self._folder.stamp(name)
            if known is not None and known.stamp == stamp and known.settled:
                known.used = True
                return known.entries
            if stamp is None and known is None:
                return ()
            return self._read(key, name) if stamp is not None else self._remember(key, _Known(name, None, (), 0, True))
        except StoreError as error:
            self._warn(error.message)
            return ()

    def add(self, key: SessionKey, entry: Hidden) -> None:
        """Waits for the disk; StoreError where it cannot be written."""
        if key.prefix == "chain":
            with self._memory:
                kept, size = _newest([*self.load(key), entry])
                self._remember(key, _Known("", None, tuple(entry for entry, _ in kept), size, True))
            return
        name = file_name(*key)
        with self._folder.locked(name):
            kept, size = _newest([*self._current(key, name), entry])
            head = dumps({"version": 1, "id": key.id})[:-1]
            self._forget(key)
            self._folder.write(name, _gathered(_file(head, [raw for _, raw in kept])))
            self._note(key, name, self._folder.stamp(name), [entry for entry, _ in kept], size)

    def sweep(self, now: float, retention_days: float) -> int:
        """Removes what nobody has touched for so long (epoch seconds; no retention: for ever) and what crashes left. How many."""
        for name in self._used_since_last_sweep():
            try:
                os.utime(self._folder.path / name, (now, now))
            except OSError:
                pass
        oldest_ns = int((now - retention_days * _DAY_S) * 1e9) if retention_days > 0 else None
        return sum(self._remove_if_old(name, oldest_ns) for name in self._folder.names())

    def _remove_if_old(self, name: str, oldest_ns: int | None) -> bool:
        """Temporary files belong to whoever holds the lock: with the lock in hand, one that is there was left by a crash."""
        is_stray = name.endswith(TEMPORARY)
        if not is_stray and (oldest_ns is None or not name.endswith((".json", CORRUPT))):
            return False
        try:
            with self._folder.locked(name.removesuffix(TEMPORARY).removesuffix(CORRUPT)):
                stamp = self._folder.stamp(name)
                if stamp is None or not (is_stray or (oldest_ns is not None and stamp[0] < oldest_ns)):
                    return False
                self._folder.remove(name)
                return True
        except Locked:
            return False  # somebody is at work with it: it is not old
        except StoreError as error:
            self._warn(error.message)
            return False

    def _current(self, key: SessionKey, name: str) -> tuple[Hidden, ...]:
        """To be called with the lock held."""
        known = self._known.get(key)
        if known is not None and known.settled and known.stamp == self._folder.stamp(name):
            return known.entries
        return self._read(key, name, locked=True)

    def _read(self, key: SessionKey, name: str, *, locked: bool = False) -> tuple[Hidden, ...]:
        try:
            found = self._folder.read(name)
        except NotRegular:
            return self._set_aside(key, name, locked=locked)
        if found is None:
            return self._remember(key, _Known(name, None, (), 0, True))
        stamp, raw = found
        document = read_object(raw)
        if document is None or not isinstance(document.get("entries"), list):
            return self._set_aside(key, name, locked=locked)
        written = list_of(document["entries"])
        entries = [entry for value in written if (entry := _from_json(value)) is not None]
        if len(entries) < len(written):
            self._warn(f"{FOLDER}/{name}: {len(written) - len(entries)} damaged entries are left out")
        return self._note(key, name, stamp, entries, len(raw))

    def _set_aside(self, key: SessionKey, name: str, *, locked: bool) -> tuple[Hidden, ...]:
        if not locked:
            with self._folder.locked(name):
                return self._read(key, name, locked=True)
        self._warn(f"{FOLDER}/{name} is damaged and was set aside as {name}{CORRUPT}")
        self._folder.set_aside(name)
        return self._remember(key, _Known(name, None, (), 0, True))

    def _note(self, key: SessionKey, name: str, stamp: Stamp | None, entries: Sequence[Hidden], size: int) -> tuple[Hidden, ...]:
        settled = stamp is None or time.time_ns() - stamp[0] > _SETTLED_NS
        return self._remember(key, _Known(name, stamp, tuple(entries), size, settled))

    def _remember(self, key: SessionKey, known: _Known) -> tuple[Hidden, ...]:
        """Most sessions hide nothing: of those there is nothing to remember."""
        with self._memory:
            self._forget(key)
            if known.stamp is None and not known.entries:
                return ()
            self._known[key] = known
            self._size += known.size
            while len(self._known) > _MOST_SESSIONS or (self._size > _MOST_REMEMBERED_BYTES and len(self._known) > 1):
                self._forget(next(iter(self._known)))
        return known.entries

    def _forget(self, key: SessionKey) -> None:
        with self._memory:
            known = self._known.pop(key, None)
            self._size -= known.size if known else 0

    def _used_since_last_sweep(self) -> Iterator[str]:
        with self._memory:
            used = [known for known in self._known.values() if known.used and known.stamp is not None]
        for known in used:
            known.used = False
            yield known.name

    def _warn(self, warning: str) -> None:
        with self._memory:
            if warning not in self.warnings and len(self.warnings) < _MOST_WARNINGS:
                self.warnings.append(warning)


@dataclass(frozen=True, slots=True)
class _Written:
    """An entry as it is written: short ones at once; of long ones no copy is made, they are written piece by piece."""

    head: bytes
    said: JsonObject
    write: Writer
    size: int

    def __iter__(self) -> Iterator[bytes]:
        yield self.head
        yield b","
        pieces = dump_pieces(self.said, self.write)
        yield next(pieces)[1:]
        yield from pieces


def _file(head: bytes, entries: Iterable[_Written]) -> Iterator[bytes]:
    yield head
    yield b',"entries":['
    for place, entry in enumerate(entries):
        yield b"," if place else b""
        yield from entry
    yield b"]}"


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Not a call of the system for every comma."""
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) >= _WRITE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def _newest(entries: Sequence[Hidden]) -> tuple[list[tuple[Hidden, _Written]], int]:
    """As many of the newest as there is room for, oldest first, each as it is written; and how long they are together."""
    kept: list[tuple[Hidden, _Written]] = []
    places: set[object] = set()
    size = 0
    for entry in reversed(entries):
        place = (entry.dialect, entry.key, entry.ordinal)
        if place in places:
            continue  # the client asked the same again: the newer answer is the one that it holds
        raw = _to_json(entry)
        if raw.size >= MOST_BYTES:
            continue
        if len(kept) == MOST_ENTRIES or size + raw.size + 1 > MOST_BYTES:
            break
        places.add(place)
        kept.append((entry, raw))
        size += raw.size + 1
    kept.reverse()
    return kept, size


def _to_json(entry: Hidden) -> _Written:
    said = _said(entry.items, entry.results, entry.before, entry.behind)
    sum, size, write = _sum(said)
    head = {
        "dialect": entry.dialect.value,
        "answer": entry.key.answer,
        "typed": entry.key.typed,
        "ordinal": entry.ordinal,
        "ids": entry.ids,
        "sum": sum,
    }
    written = dumps(head)[:-1]
    return _Written(written, said, write, len(written) + size)


def _from_json(value: object) -> Hidden | None:
    """None where it is damaged."""
    fields = object_of(value)
    try:
        dialect = Dialect(text_of(fields.get("dialect")))
    except ValueError:
        return None
    items, results = _objects(fields.get("items")), _objects(fields.get("results"))
    before = tuple(text for text in list_of(fields.get("before")) if isinstance(text, str))
    behind = _objects(fields.get("behind", []))
    said = _said(items, results, before, behind)
    if not (items or before or behind) or _sum(said)[0] != fields.get("sum"):
        return None
    key = Key(text_of(fields.get("answer")), text_of(fields.get("typed")))
    ids = tuple(id for id in list_of(fields.get("ids")) if isinstance(id, str))
    return Hidden(dialect, key, count_of(fields.get("ordinal")), items, results, ids, before, behind)


def _said(
    items: Sequence[JsonObject], results: Sequence[JsonObject], before: Sequence[str], behind: Sequence[JsonObject]
) -> JsonObject:
    more = {name: value for name, value in (("before", before), ("behind", behind)) if value}
    return {"items": items, "results": results, **more}


def _objects(value: object) -> tuple[JsonObject, ...]:
    return tuple(item for item in list_of(value) if isinstance(item, dict))


def _sum(said: JsonObject) -> tuple[str, int, Writer]:
    """Tells damage that is still JSON from what was written; how long that is, and what writes it."""
    *others, last = WRITERS
    for write in others:
        with suppress(TypeError):  # orjson's own error is one
            return (*_summed(said, write), write)
    return (*_summed(said, last), last)


def _summed(said: JsonObject, write: Writer) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for piece in dump_pieces(said, write):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest()[:16], size
