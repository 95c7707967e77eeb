"""Conversations on their way from one store to another: a line of JSON for each entry, whoever keeps it.

`{"kind": "state" | "tasks" | "hidden", "id": "session:…", "place": "…", "entry": "…"}`: an entry is what lies in Redis, as text.
What is there already under the same name is replaced; of hidden rounds the newest stay. What only saves time is not moved.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

from ..clock import store as clock_store
from ..clock.record import named_session, read_record, write_record
from ..dialects.fields import list_of, object_of, read_object, text_of
from ..errors import RouteCodexError, StoreError
from ..sessions.shared import key_of, name_of
from ..sessions.store import FileStore, SessionKey, StateForm
from ..storage.contract import BOUNDS, Key, Kind, Put, Store, read_all
from ..storage.disk import Folder, NotRegular
from ..turn import hidden_store
from ..turn.hidden_shared import place_of
from . import kept

MOVED = (Kind.STATE, Kind.TASKS, Kind.HIDDEN)
_AT_ONCE = 50
_LARGEST = 64 << 20
_LONGEST_NAME = 4096


class BadLine(RouteCodexError):
    """What is read is no line of an export."""

    code = "BAD_LINE"


def to_line(put: Put) -> str:
    entry = put.entry.decode("utf-8", "surrogateescape")
    return json.dumps({"kind": put.key.kind.value, "id": put.key.id, "place": put.place, "entry": entry}) + "\n"


def from_line(line: str, number: int) -> Put:
    """BadLine where it is none, or holds what cannot be read whole: what is there already would make way for it."""
    try:
        found = json.loads(line)
        kind, id, place, entry = (found[name] for name in ("kind", "id", "place", "entry"))
        if not (isinstance(id, str) and isinstance(place, str) and isinstance(entry, str)):
            raise ValueError
        put = Put(Key(Kind(kind), id), place, entry.encode("utf-8", "surrogateescape"))
        session = key_of(id).id if put.key.kind is not Kind.TASKS else id
        if not session or max(len(id), len(place)) > _LONGEST_NAME:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadLine(f"line {number} is none of an export; nothing was imported") from None
    if put.key.kind not in MOVED or not put.entry:
        raise BadLine(f"line {number} holds nothing that is moved; nothing was imported")
    if not _is_whole(put, session):
        raise BadLine(f"line {number} holds what this version cannot read; nothing was imported")
    return put


def _is_whole(put: Put, session: str) -> bool:
    match put.key.kind:
        case Kind.STATE:
            found = StateForm().read(session, put.entry)
            return put.place == "" and found.is_whole and not found.value.empty
        case Kind.TASKS:
            record = read_record(put.entry, session)
            return put.place == "" and record.is_whole and bool(record.tasks)
        case _:
            one = hidden_store.read_entry(read_object(put.entry))
            return len(put.entry) <= BOUNDS[Kind.HIDDEN].bytes and one is not None and put.place == place_of(one)


def read_lines(lines: Iterable[str]) -> list[Put]:
    """All of them, before anything of it is kept. What is there twice counts as it was said last."""
    puts: dict[tuple[Key, str], Put] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            put = from_line(line, number)
            puts.pop((put.key, put.place), None)
            puts[put.key, put.place] = put
    return [*puts.values()]


# Files


def of_files(folder: Path) -> Iterator[Put]:
    for one in kept.all_of(folder):
        key = SessionKey("conversation" if one.kind == "conversation" else "session", one.id)
        yield Put(Key(Kind.STATE, name_of(key)), "", StateForm().write(one.id, one.state, one.state))
    for raw in _documents(folder / clock_store.FOLDER):
        session = named_session(raw)
        if session and (tasks := read_record(raw, session).tasks):
            yield Put(Key(Kind.TASKS, session), "", write_record(session, tasks, 0))
    for name, raw in _named_documents(folder / hidden_store.FOLDER):
        document = object_of(read_object(raw))
        kind, id = name.partition("-")[0], text_of(document.get("id"))
        for entry in map(hidden_store.read_entry, list_of(document.get("entries"))):
            if entry is not None and kind in ("session", "conversation"):
                written = b"".join(hidden_store.write_entry(entry))
                yield Put(Key(Kind.HIDDEN, f"{kind}:{id}"), place_of(entry), written)


def into_files(folder: Path, puts: Iterable[Put]) -> int:
    states, tasks, hidden = FileStore(folder), clock_store.ClockStore(folder), hidden_store.HiddenStore(folder)
    count = 0
    for (kind, id), _, entry in puts:
        if kind is Kind.TASKS:
            found = read_record(entry, id).tasks
            tasks.update(id, lambda _, found=found: found)  # type: ignore[misc]
        elif (key := key_of(id)).prefix == "chain":
            continue  # it lives no longer than its proxy
        elif kind is Kind.STATE:
            state = StateForm().read(key.id, entry).value
            states.update(key, lambda _, state=state: state)  # type: ignore[misc]
        elif (one := hidden_store.read_entry(read_object(entry))) is not None:
            hidden.add(key, one)
        count += 1
    return count


def _documents(folder: Path) -> Iterator[bytes]:
    return (raw for name, raw in _named_documents(folder) if name != clock_store.NTP_STATE)


def _named_documents(folder: Path) -> Iterator[tuple[str, bytes]]:
    files = Folder(folder, largest=_LARGEST)
    for name in files.names():
        if name.endswith(".json"):
            try:
                found = files.read(name)
            except (NotRegular, StoreError):
                continue
            if found is not None:
                yield name, found[1]


# Another store


async def of_store(store: Store) -> AsyncIterator[Put]:
    for kind in MOVED:
        ids = await store.scan(kind)
        for at in range(0, len(ids), _AT_ONCE):
            keys = [Key(kind, id) for id in ids[at : at + _AT_ONCE]]
            for key, entries in zip(keys, await read_all(store, keys), strict=True):
                for place, entry in entries:
                    if entry:
                        yield Put(key, place, entry)


async def into_store(store: Store, puts: Iterable[Put]) -> int:
    count, waiting = 0, list[Put]()
    for put in puts:
        waiting.append(put)
        count += 1
        if len(waiting) == _AT_ONCE:
            await store.put(waiting)
            waiting = []
    if waiting:
        await store.put(waiting)
    return count
