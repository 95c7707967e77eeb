"""Where the hidden rounds of sessions are kept: one JSON file each, in a folder of their own beside the sessions' states.

1. A file holds what the conversation itself said, nothing else, and the newest of it: `MOST_ENTRIES` and `MOST_BYTES`.
2. A session without hidden rounds costs one look at a file that is not there.
3. What is damaged is left out, one entry or the whole file: then the history stays as the client sends it.
4. Request chains live in memory. What is remembered there, and of the files, is bounded for all sessions together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ..dialects.fields import count_of, list_of, object_of, read_object, text_of
from ..errors import StoreError
from ..jsonbytes import WRITERS, Writer, dump_pieces, dumps
from ..sessions.store import SessionKey
from ..storage.cached import CachedFolder, Found, Rest, Warnings, no_rest
from ..storage.contract import InThread
from ..storage.disk import Disk, Folder
from ..values import Dialect, JsonObject
from .hidden import Hidden, Key

FOLDER = "history"
MOST_ENTRIES = 200
MOST_BYTES = 8 << 20
_WRITE_BYTES = 64 << 10
_FRAME_BYTES = 4 << 10
"""What a file holds beside its entries."""
_MOST_REMEMBERED_BYTES = 64 << 20


class _Kept(Struct, frozen=True):
    """One session's hidden rounds."""

    entries: tuple[Hidden, ...] = ()
    written: tuple[_Written, ...] = ()
    """The same as they are written; where they were read, they are not written again."""


class HiddenStore:
    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.warnings = Warnings()
        self._files = CachedFolder(
            Folder(folder / FOLDER, disk, largest=MOST_BYTES + _FRAME_BYTES),
            _KeptForm(),
            self.warnings,
            label=f"{FOLDER}/",
            most_bytes=_MOST_REMEMBERED_BYTES,
        )

    def load(self, key: SessionKey) -> tuple[Hidden, ...]:
        """What is to be put back into this session's histories; nothing where that cannot be read."""
        try:
            return self._files.read(key.place).entries
        except StoreError as error:
            self.warnings.say(error.message)
            return ()

    def add(self, key: SessionKey, entry: Hidden) -> None:
        """Waits for the disk; StoreError where it cannot be written."""
        self._files.change(key.place, lambda kept: _newest([*kept.entries, entry]))

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        def work() -> None:
            if (entry := hidden()) is not None:
                self.add(key, entry)

        await in_thread(work)

    def sweep(self, now: float, retention_days: float, rest: Rest = no_rest) -> int:
        """Removes what nobody has touched for so long (epoch seconds; no retention: for ever) and what crashes left. How many."""
        return self._files.sweep(now, retention_days, rest)


class _KeptForm:
    empty = _Kept()

    def is_empty(self, value: _Kept) -> bool:
        return not value.entries

    def size(self, value: _Kept) -> int:
        return sum(entry.size + 1 for entry in value.written)

    def read(self, id: str, raw: bytes) -> Found[_Kept]:
        document = read_object(raw)
        if document is None or not isinstance(document.get("entries"), list):
            return Found(self.empty, is_whole=False)
        written = list_of(document["entries"])
        entries = [entry for value in written if (entry := read_entry(value)) is not None]
        lost = len(written) - len(entries)
        return Found(_Kept(tuple(entries)), warning=f"has damaged entries that are left out: {lost}" if lost else "")

    def write(self, id: str, value: _Kept, before: _Kept) -> Iterator[bytes]:
        return _gathered(_file(dumps({"version": 1, "id": id})[:-1], value.written))


class _Written(Struct, frozen=True):
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


def _newest(entries: Sequence[Hidden]) -> _Kept:
    """As many of the newest as there is room for, oldest first."""
    kept: list[Hidden] = []
    written: list[_Written] = []
    places: set[object] = set()
    size = 0
    for entry in reversed(entries):
        place = (entry.dialect, entry.key, entry.ordinal)
        if place in places:
            continue  # the client asked the same again: the newer answer is the one that it holds
        raw = write_entry(entry)
        if raw.size >= MOST_BYTES:
            continue
        if len(kept) == MOST_ENTRIES or size + raw.size + 1 > MOST_BYTES:
            break
        places.add(place)
        kept.append(entry)
        written.append(raw)
        size += raw.size + 1
    return _Kept(tuple(reversed(kept)), tuple(reversed(written)))


def write_entry(entry: Hidden) -> _Written:
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


def read_entry(value: object) -> Hidden | None:
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
