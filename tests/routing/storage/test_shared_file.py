"""What the one file does beyond the contract (`tests/addons/test_stores.py`): time, damage, other processes."""

from __future__ import annotations

import contextlib
import random
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


# ---- a file that is damaged inside ----

SHELVES = 300


def filled(folder: Path) -> Path:
    store = opened(folder)
    for number in range(SHELVES):
        done(store.put([Put(Key(Kind.STATE, f"session:{number}"), "", b"%d " % number * 200)]))
        done(store.put([Put(Key(Kind.HIDDEN, f"session:{number}"), f"{place}", b"x" * 300) for place in range(3)]))
    done(store.claim(["task:1"], "me", 1e9))
    done(store.close())
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as file:
        file.execute("pragma wal_checkpoint(truncate)")
    return folder / FILE_NAME


def left(store: SharedFile) -> int:
    return sum(held(store, Key(Kind.STATE, f"session:{number}")) == {"": b"%d " % number * 200} for number in range(SHELVES))


@pytest.mark.parametrize("what", ["zeros", "noise", "cut"])
@pytest.mark.parametrize("first", ["read", "put", "change", "claim", "scan"])
def test_a_file_damaged_inside_is_put_aside_with_a_word(tmp_path: Path, what: str, first: str) -> None:
    """Whoever comes upon it: every call failed from then on, for ever. What can be read of it stays in force."""
    path = filled(tmp_path / "whole")
    whole, chance, set_aside = path.read_bytes(), random.Random(f"{what} {first}"), 0
    pages = range(4096, len(whole), 4096)
    for at in chance.sample(pages, 5):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        middle = {"zeros": bytes(4096), "noise": chance.randbytes(4096), "cut": b""}[what]
        (folder / FILE_NAME).write_bytes(whole[:at] + (middle + whole[at + 4096 :] if middle else b""))
        said: list[str] = []
        one = SharedFile(folder, inline, wall=lambda: 5.0, heard=said.append)
        two = SharedFile(folder, inline, wall=lambda: 5.0, heard=said.append)
        key = Key(Kind.STATE, "session:new")
        for store in (one, two):
            match first:
                case "put":
                    done(store.put([Put(key, "", b"1")]))
                case "change":
                    assert done(store.change(key, lambda old: b"1"))[1] == b"1"
                case "claim":
                    assert done(store.claim(["task:2"], "me", 1e9)) == {"task:2"}
                case "scan":
                    done(store.scan(Kind.STATE))
                case _:
                    left(store)
        left(one)
        found = [left(store) for store in (one, two)]
        done(one.put([Put(key, "", b"2")]))
        assert held(two, key) == {"": b"2"}, "both are at the same file"
        is_leaf = whole[at] in (0x0A, 0x0D) and what != "cut"
        assert found[0] == found[1] >= (SHELVES - 40) * is_leaf, "no more is lost than what stood there"
        assert len([line for line in said if "is damaged" in line]) <= 2, "once, and not by each of them"
        set_aside += (folder / f"{FILE_NAME}.damaged").is_file()
        for store in (one, two):
            done(store.close())
    assert set_aside


def test_a_claim_outlives_a_damaged_file(tmp_path: Path) -> None:
    """Else a reminder came twice."""
    path = filled(tmp_path)
    raw = bytearray(path.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as file:
        (page,) = file.execute("select rootpage from sqlite_master where name = 'entries_in_order'").fetchone()
    raw[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(raw)
    store = opened(tmp_path)
    assert left(store) == SHELVES
    assert done(store.claim(["task:1"], "you", 30)) == set()
    assert path.with_name(f"{FILE_NAME}.damaged").is_file()
    done(store.close())


def test_a_file_that_somebody_took_away_is_begun_anew_by_all(tmp_path: Path) -> None:
    """Who had it open went on with what nobody else could see."""
    one, two = opened(tmp_path), opened(tmp_path)
    for store in (one, two):
        done(store.put([Put(STATE, "", b"x")]))
        assert held(store, STATE) == {"": b"x"}
    for path in tmp_path.glob(f"{FILE_NAME}*"):
        path.unlink()
    done(one.put([Put(STATE, "", b"y")]))
    assert held(two, STATE) == {"": b"y"}
    for store in (one, two):
        done(store.close())
