"""What every store has from `CachedFolder`: what a read costs, what a damaged file costs, what is bounded."""

from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path

import pytest

from routecodex.routing.errors import StoreError
from routecodex.routing.storage import cached
from routecodex.routing.storage.cached import CachedFolder, Found, Place, Warnings
from routecodex.routing.storage.disk import Disk, Folder

A, B, CHAIN = Place("a.json", "a"), Place("b.json", "b"), Place("", "c")


class Words:
    """A value for the tests: words behind each other; one that has an `x` is damaged."""

    empty: tuple[str, ...] = ()

    def is_empty(self, value: tuple[str, ...]) -> bool:
        return not value

    def size(self, value: tuple[str, ...]) -> int:
        return 1

    def read(self, id: str, raw: bytes) -> Found[tuple[str, ...]]:
        words = raw.decode().split()[1:]
        whole = tuple(word for word in words if "x" not in word)
        return Found(whole, is_whole=len(whole) == len(words), warning="" if raw.startswith(id.encode()) else "is odd")

    def write(self, id: str, value: tuple[str, ...], before: tuple[str, ...]) -> bytes:
        return " ".join((id, *value)).encode()


class Failing(Disk):
    """The folder cannot be synced: perhaps what was saved does not last."""

    fails = False

    def fsync_dir(self, folder: Path) -> None:
        if self.fails:
            raise OSError(5, "I/O error")
        super().fsync_dir(folder)


@pytest.fixture
def files(tmp_path: Path) -> CachedFolder[tuple[str, ...]]:
    return over(tmp_path)


def over(folder: Path, disk: Disk | None = None, *, own: tuple[str, ...] = ("",)) -> CachedFolder[tuple[str, ...]]:
    return CachedFolder(Folder(folder, disk), Words(), Warnings(), label="words/", own=own)


def calls_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    for name in ("lstat", "open", "fsync", "replace", "unlink"):
        real = getattr(os, name)

        def noted(*given: object, _name: str = name, _real: object = real, **more: object) -> object:
            made.append(_name)
            return _real(*given, **more)  # type: ignore[operator]

        monkeypatch.setattr(os, name, noted)
    return made


def test_a_read_costs_one_look(files: CachedFolder[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.change(A, lambda old: (*old, "one")) == ((), ("one",))
    monkeypatch.setattr(cached, "SETTLED_S", 0.0)
    files.read(A)
    made = calls_of(monkeypatch)
    assert files.read(A) == ("one",)
    assert files.read(B) == ()
    assert files.at_hand(A, 0) == ("one",)
    assert files.read(CHAIN) == ()
    assert made == ["lstat"] * 3


@pytest.mark.parametrize(
    "raw, value, said",
    [
        (b"a one", ("one",), []),
        (b"b one", ("one",), ["words/a.json is odd"]),
        (
            b"a one x two",
            ("one", "two"),
            ["words/a.json is damaged and was set aside as a.json.corrupt; what could be read of it stays in force"],
        ),
        (b"a x", (), ["words/a.json is damaged and was set aside as a.json.corrupt; nothing of it could be read"]),
    ],
)
def test_a_damaged_file_costs_what_cannot_be_read(tmp_path: Path, raw: bytes, value: tuple[str, ...], said: list[str]) -> None:
    (tmp_path / "a.json").write_bytes(raw)
    files = over(tmp_path)
    assert files.read(A) == files.read(A) == over(tmp_path).read(A) == value
    assert files.warnings == said
    kept = tmp_path / "a.json.corrupt"
    assert (kept.read_bytes() if kept.is_file() else None) == (raw if any("damaged" in line for line in said) else None)


def test_what_somebody_removes_while_it_is_saved_is_gone(tmp_path: Path) -> None:
    """Between the file's new name and the look at it: nothing that has no file is in force."""

    class Removed(Disk):
        def fsync_dir(self, folder: Path) -> None:
            super().fsync_dir(folder)
            (folder / A.file).unlink()

    files = over(tmp_path, Removed())
    files.change(A, lambda old: ("one",))
    for _ in range(2):
        assert files.read(A) == ()
    assert files.at_hand(A, 0) == ()


def test_warnings_are_taken_once() -> None:
    warnings = Warnings()
    for line in ("one", "two", "one"):
        warnings.say(line)
    assert (warnings.taken(), warnings.taken()) == (["one", "two"], [])


def test_what_perhaps_does_not_last_is_saved_again(tmp_path: Path) -> None:
    """The file is there, and its folder could not be synced: the same value is written once more."""
    disk = Failing()
    files = over(tmp_path, disk)
    disk.fails = True
    with pytest.raises(StoreError):
        files.change(A, lambda old: ("one",))
    disk.fails = False
    before = os.lstat(tmp_path / "a.json").st_ino
    assert files.change(A, lambda old: old) == (("one",), ("one",))
    after = os.lstat(tmp_path / "a.json").st_ino
    files.change(A, lambda old: old)
    assert before != after == os.lstat(tmp_path / "a.json").st_ino


def test_what_lives_in_memory_alone(files: CachedFolder[tuple[str, ...]], tmp_path: Path) -> None:
    files.most_places = 2
    for number in range(3):
        files.change(Place("", str(number)), lambda old: (*old, "one"))
    assert [files.read(Place("", str(number))) for number in range(3)] == [(), ("one",), ("one",)]
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_the_sweep_leaves_what_is_used_and_what_is_not_ours(tmp_path: Path) -> None:
    files = over(tmp_path, own=("a", "b"))
    then = time.time() - 100 * 86_400
    for name in ("a.json", "b.json", "b.json.tmp", "a.json.corrupt", "other.json", "other.json.tmp"):
        (tmp_path / name).write_bytes(b"a one")
        os.utime(tmp_path / name, (then, then))
    files.read(A)
    assert files.sweep(time.time(), 0) == 1, "what crashes left goes in any case"
    assert files.read(A) == ("one",)
    os.utime(tmp_path / "a.json", (then, then))
    files.read(A)
    assert files.sweep(time.time(), 30) == 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.json", "other.json", "other.json.tmp"]


def test_a_sweep_locks_only_what_goes_and_lets_others_have_their_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = over(tmp_path)
    for number in range(40):
        (tmp_path / f"{number}.json").write_bytes(b"a one")
    os.utime(tmp_path / "7.json", (0, 0))
    locked: list[str] = []
    lock = files.folder.locked
    monkeypatch.setattr(files.folder, "locked", lambda name: (locked.append(name), lock(name))[1])
    rests: list[int] = []
    assert files.sweep(time.time(), 30, lambda: rests.append(len(locked))) == 1
    assert locked == ["7.json"]
    assert len(rests) == 40 // 16


def test_a_sweep_holds_no_list_of_a_months_conversations(tmp_path: Path) -> None:
    """What it took for a moment each hour stayed with the process: its room lay between what others needed."""
    files = over(tmp_path)
    for number in range(2_000):
        (tmp_path / f"session-of-somebody-{number:06}.json").write_bytes(b"a one")
        files.read(Place(f"session-of-somebody-{number:06}.json", "a"))
    tracemalloc.start()
    try:
        assert files.sweep(time.time(), 30) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000, "their names alone take 160,000 bytes, and what is known of each as much again"


def test_a_disk_that_fails_each_time_is_remembered_in_bounds(tmp_path: Path) -> None:
    """Every file may not last: what is acknowledged was written again."""
    disk = Failing()
    files = over(tmp_path, disk)
    files.most_places, disk.fails = 5, True
    for number in range(20):
        with pytest.raises(StoreError):
            files.change(Place(f"f{number}.json", f"f{number}"), lambda old: ("one",))
    assert len(files._unsure) <= 5
    disk.fails = False
    (tmp_path / "f3.json").unlink()
    files.read(Place("f3.json", "f3"))
    assert files.change(Place("f3.json", "f3"), lambda old: ("one",))[1] == ("one",)
    made: list[str] = []
    disk.fsync_dir = made.append  # type: ignore[assignment]
    files.change(Place("f3.json", "f3"), lambda old: old)
    assert made, "it is saved again, though nothing changes"
