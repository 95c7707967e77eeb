"""What the one file does beyond the contract (`tests/addons/test_stores.py`): time, damage, other processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from routecodex.routing.storage import shared_file
from routecodex.routing.storage.contract import DAY_S, NEVER, Bounds, Busy, Key, Kind, Put
from routecodex.routing.storage.shared_file import FILE_NAME, SharedFile
from tests.routing.house import done, inline

T = TypeVar("T")
STATE, MEMO = Key(Kind.STATE, "session:a"), Key(Kind.MEMO, "session:a")


@dataclass
class Wall:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def opened(folder: Path, wall: Wall | None = None, *, retention_s: float = 0) -> SharedFile:
    return SharedFile(folder, inline, wall=wall or Wall(), retention_s=retention_s)


def held(store: SharedFile, key: Key) -> dict[str, bytes]:
    return dict(done(store.read([(key, NEVER)]))[0].entries)


def test_looking_makes_only_a_file_for_its_owner(tmp_path: Path) -> None:
    store = opened(tmp_path / "new")
    assert held(store, STATE) == {}
    assert (tmp_path / "new" / FILE_NAME).stat().st_mode & 0o077 == 0
    done(store.close())


def test_what_is_past_its_time_goes(tmp_path: Path) -> None:
    wall = Wall()
    store = opened(tmp_path, wall, retention_s=30 * DAY_S)
    done(store.put([Put(STATE, "", b"x"), Put(MEMO, "pin", b"y")]))
    wall.now += 8 * DAY_S
    done(store.expire())
    assert (held(store, STATE), held(store, MEMO)) == ({"": b"x"}, {})
    wall.now += 23 * DAY_S
    done(store.expire())
    assert held(store, STATE) == {}
    done(store.close())


def test_a_lease_ends(tmp_path: Path) -> None:
    wall = Wall()
    store = opened(tmp_path, wall)
    assert done(store.claim(["t"], "me", 30)) == {"t"}
    wall.now += 29
    assert done(store.claim(["t"], "you", 30)) == set()
    assert done(store.claim(["t"], "me", 30)) == {"t"}, "renewed"
    wall.now += 29
    assert done(store.claim(["t"], "you", 30)) == set()
    wall.now += 2
    assert done(store.claim(["t"], "you", 30)) == {"t"}
    done(store.release(["t"], "me"))
    assert done(store.claim(["t"], "me", 30)) == set(), "nobody lets go for another"
    done(store.close())


def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database at all" * 100)
    store = opened(tmp_path)
    done(store.put([Put(STATE, "", b"x")]))
    assert held(store, STATE) == {"": b"x"}
    assert (tmp_path / f"{FILE_NAME}.damaged").is_file()
    done(store.close())


def test_nobody_waits_long_for_another_process(tmp_path: Path) -> None:
    store = opened(tmp_path)
    done(store.put([Put(STATE, "", b"x")]))
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(Busy):
        done(store.put([Put(STATE, "", b"y")]))
    assert held(store, STATE) == {"": b"x"}, "looking waits for nobody"
    other.execute("rollback")
    other.close()
    done(store.put([Put(STATE, "", b"y")]))
    assert held(store, STATE) == {"": b"y"}
    done(store.close())


@dataclass
class Threads:
    used: int = 0

    async def __call__(self, work: Callable[[], T]) -> T:
        self.used += 1
        return work()


def test_what_is_told_is_written_at_once_and_now_and_then_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the disk may take its time to put it in its place."""
    monkeypatch.setattr(shared_file, "_AT_ONCE", 3)
    monkeypatch.setattr(shared_file, "_SLOW_S", 60.0)
    threads = Threads()
    store = SharedFile(tmp_path, threads, wall=Wall())
    for number in range(9):
        done(store.put([Put(MEMO, f"pin:{number}", b"x")]))
    assert threads.used == 2
    assert len(held(store, MEMO)) == 9
    done(store.close())


def test_a_slow_disk_is_left_to_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_file, "_SLOW_S", -1.0)
    threads = Threads()
    store = SharedFile(tmp_path, threads, wall=Wall())
    for number in range(5):
        done(store.put([Put(MEMO, f"pin:{number}", b"x")]))
    assert threads.used == 4
    done(store.close())


def test_a_shelf_keeps_count_of_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said again, and what had no room, counts once."""
    monkeypatch.setitem(shared_file.BOUNDS, Kind.MEMO, Bounds(DAY_S, entries=3, bytes=100))
    store = opened(tmp_path)
    for place, entry in (("a", b"x" * 30), ("b", b"y"), ("a", b"z"), ("c", b"x" * 60), ("d", b""), ("e", b"")):
        done(store.put([Put(MEMO, place, entry)]))
    assert set(held(store, MEMO)) == {"c", "d", "e"}
    done(store.put([Put(MEMO, "f", b"x" * 60)]))
    assert set(held(store, MEMO)) == {"d", "e", "f"}
    done(store.erase([MEMO]))
    done(store.put([Put(MEMO, "g", b"x" * 101)]))
    assert set(held(store, MEMO)) == {"g"}
    done(store.close())
