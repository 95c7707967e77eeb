"""Hidden rounds in a store: each is put there alone, and comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from routecodex.routing.errors import StoreError
from routecodex.routing.sessions.shared import name_of
from routecodex.routing.storage.contract import BOUNDS, Bounds, Key, Kind, Put
from routecodex.routing.storage.shared_file import SharedFile
from routecodex.routing.turn.hidden import Hidden
from routecodex.routing.turn.hidden_shared import SharedHidden
from tests.routing.house import done, inline
from tests.routing.turn.test_hidden_store import ENTRY, KEY, entry


class Counting(SharedFile):
    """Counts what is written and read."""

    written = heard = 0

    async def put(self, puts: list[Put]) -> None:  # type: ignore[override]
        self.written += sum(len(one.entry) for one in puts)
        await SharedFile.put(self, puts)


def opened(folder: Path) -> tuple[SharedHidden, Counting]:
    store = Counting(folder, inline, wall=lambda: 1.0)
    return SharedHidden(store), store


def read(hidden: SharedHidden, store: Counting) -> tuple[Hidden, ...]:
    (found,) = done(store.read([hidden.known.wanted(name_of(KEY))]))
    store.heard += len(found.entries)
    hidden.known.heard(name_of(KEY), found)
    return hidden.load(KEY)


def test_what_one_keeps_the_other_puts_back(tmp_path: Path) -> None:
    (one, _), (other, store) = opened(tmp_path), opened(tmp_path)
    done(one.keep(KEY, lambda: ENTRY, inline))
    done(one.keep(KEY, lambda: None, inline))
    assert read(other, store) == (ENTRY,)


def test_each_is_written_and_read_once(tmp_path: Path) -> None:
    (one, writing), (other, reading) = opened(tmp_path), opened(tmp_path)
    for number in range(20):
        done(one.keep(KEY, lambda number=number: entry(number), inline))
        assert read(other, reading)[-1] == entry(number)
    assert reading.heard == 20
    assert writing.written < 21 * 2 * max(len(repr(entry(number))) for number in range(20))


def test_the_newest_stay_and_take_the_place_of_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BOUNDS, Kind.HIDDEN, Bounds(0, entries=3))
    hidden, store = opened(tmp_path)
    for number in (1, 2, 3, 4):
        done(hidden.keep(KEY, lambda number=number: entry(number), inline))
        read(hidden, store)
    newer = replace(entry(2), items=({"role": "assistant", "content": "again"},))
    done(hidden.keep(KEY, lambda: newer, inline))
    assert read(hidden, store) == (entry(3), entry(4), newer)


def test_damage_is_left_out_and_too_long_a_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, store = opened(tmp_path)
    done(hidden.keep(KEY, lambda: ENTRY, inline))
    done(store.put([Put(Key(Kind.HIDDEN, name_of(KEY)), "x", b'{"items": 1}')]))
    assert read(hidden, store) == (ENTRY,)
    monkeypatch.setitem(BOUNDS, Kind.HIDDEN, Bounds(0, entries=3, bytes=10))
    with pytest.raises(StoreError):
        done(hidden.keep(KEY, lambda: ENTRY, inline))
