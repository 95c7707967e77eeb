"""The store of tasks: one small file per session, on disk before anything is acknowledged."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.clock.record import read_record, write_record
from routecodex.routing.clock.store import MANY, NTP_STATE, ClockStore
from routecodex.routing.clock.tasks import Task, Tasks, in_order, to_json
from routecodex.routing.errors import StoreError
from routecodex.routing.storage.disk import Disk, Folder
from tests.rig.patience import wait_for_locks

NOW = 1_800_000_000_000
RETENTION = 1_200_000
DAY_MS = 86_400_000


def task(number: int = 1, session: str = "s1", **changes: Any) -> Task:
    return replace(Task(f"t{number}", session, NOW + number, NOW, NOW, f"task {number}"), **changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the tasks lie."""
    return tmp_path / "127.0.0.1_8080" / "clock"


@pytest.fixture
def store(folder: Path) -> ClockStore:
    return ClockStore(folder.parent)


def put(store: ClockStore, *tasks: Task, session: str = "s1") -> Tasks:
    return store.update(session, lambda _: tasks)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


class Looks(Counter[str]):
    """How often a store reads files, and looks at them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        for name in ("read", "stamp", "write", "locked"):
            monkeypatch.setattr(Folder, name, self._counted(name, getattr(Folder, name)))

    def _counted(self, name: str, original: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            self[name] += 1
            return original(*arguments, **named)

        return counted


def settle(folder: Path, name: str = "s1.json") -> None:
    """As if the file had been written a while ago."""
    then = time.time_ns() - 10**9
    os.utime(folder / name, ns=(then, then))


# --- files


def test_the_published_form(store: ClockStore, folder: Path) -> None:
    put(store, task(1), task(2, tool="Bash", arguments={"a": [1]}))
    document = json.loads((folder / "s1.json").read_bytes())
    assert document["tasks"] == [to_json(task(1)), to_json(task(2, tool="Bash", arguments={"a": [1]}))]
    assert (document["version"], document["sessionId"]) == (1, "s1")
    assert abs(document["updatedAtMs"] - time.time() * 1000) < 60_000


def test_a_file_written_by_another_program(store: ClockStore, folder: Path) -> None:
    folder.mkdir(parents=True)
    entry = {"taskId": "a", "sessionId": "s1", "dueAtMs": NOW, "task": "look", "later": {"field": 1}, "deliveryCount": 0}
    (folder / "s1.json").write_text(json.dumps({"version": 1, "sessionId": "s1", "tasks": [entry], "updatedAtMs": 5}, indent=2))
    assert store.load("s1") == (Task("a", "s1", NOW, NOW, NOW, "look"),)
    assert store.warnings == []


def test_c34_a_restart_keeps_what_is_not_delivered(store: ClockStore, folder: Path) -> None:
    tasks = put(store, task(1, due_at_ms=NOW - RETENTION), task(2))
    after = ClockStore(folder.parent)
    assert after.sweep(NOW, RETENTION) == 0
    assert after.load("s1") == tasks


def test_sessions_do_not_touch_each_other(store: ClockStore, folder: Path) -> None:
    ids = ["s1", "S1", "a/b", "a_b", "../s1", "ntp-state", "con", "", "x" * 300, "会话", "\ud800"]
    for number, id in enumerate(ids):
        put(store, task(number, session=id), session=id)
    for number, id in enumerate(ids):
        assert store.load(id) == ClockStore(folder.parent).load(id) == (task(number, session=id),)
    assert len(files(folder)) == len(ids)
    assert [path.name for path in folder.parent.iterdir()] == ["clock"]
    assert NTP_STATE not in files(folder)


def test_only_the_owner_may_read(store: ClockStore, folder: Path) -> None:
    put(store, task())
    assert stat.S_IMODE((folder / "s1.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_c22_without_tasks_there_is_no_file(store: ClockStore, folder: Path) -> None:
    put(store, task(1), task(2))
    assert store.update("s1", lambda _: ()) == ()
    assert files(folder) == []
    assert store.load("s1") == ()


def test_nothing_is_written_where_nothing_changes(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, task(1))
    looks = Looks(monkeypatch)
    assert store.update("s1", lambda tasks: list(tasks)) == (task(1),)
    assert store.update("s2", lambda tasks: tasks) == ()
    assert looks["write"] == 0
    assert files(folder) == ["s1.json"]


def test_tasks_stand_in_order_of_their_time(store: ClockStore, folder: Path) -> None:
    assert put(store, task(3), task(1), task(2)) == (task(1), task(2), task(3))
    assert ClockStore(folder.parent).load("s1") == (task(1), task(2), task(3))


def test_a_change_that_fails_leaves_everything(store: ClockStore) -> None:
    put(store, task(1))
    with pytest.raises(ZeroDivisionError):
        store.update("s1", lambda _: [task(1 // 0)])
    assert store.load("s1") == (task(1),)
    assert store.update("s1", lambda tasks: [*tasks, task(2)]) == (task(1), task(2))


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_what_cannot_be_written_is_not_there(store: ClockStore, folder: Path, call: str) -> None:
    put(store, task(1))
    disk = Disk()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    setattr(disk, call, refuse)
    full = ClockStore(folder.parent, disk)
    with pytest.raises(StoreError, match="No space left on device"):
        full.update("s1", lambda tasks: [*tasks, task(2)])
    assert full.load("s1") == store.load("s1") == (task(1),)
    assert files(folder) == ["s1.json"]


def test_a_save_that_may_not_last_is_done_again(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Disk, "fsync_dir", lambda *_: (_ for _ in ()).throw(OSError(5, "no")))
        with pytest.raises(StoreError):
            put(store, task(1))
    looks = Looks(monkeypatch)
    put(store, task(1))
    assert looks["write"] == 1
    put(store, task(1))
    assert looks["write"] == 1


def test_beyond_its_limit_a_session_takes_no_new_tasks(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecodex.routing.clock.store.MOST_BYTES", 100_000)
    long = [task(number, task="x" * 1_000) for number in range(80)]
    old = put(store, *long)
    with pytest.raises(StoreError, match="too large with 160 tasks"):
        store.update("s1", lambda tasks: [*tasks, *(replace(one, task_id=one.task_id + "b") for one in long)])
    assert store.load("s1") == old
    delivered = [replace(one, delivered_at_ms=NOW, delivery_count=1, not_before_request_id="r" * 600) for one in old]
    assert put(store, *delivered) == in_order(delivered), "what is there may still be marked"
    assert ClockStore(folder.parent).load("s1") == in_order(delivered)


# --- how often the disk is looked at


@pytest.mark.parametrize("tasks", [1, 10_000])
def test_a_session_that_has_not_changed_costs_one_look(
    store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    put(store, *(task(number) for number in range(tasks)))
    settle(folder)
    first = store.load("s1")
    looks = Looks(monkeypatch)
    for _ in range(100):
        assert store.load("s1") is first
    assert looks == {"stamp": 100}


def test_a_session_without_tasks_costs_one_look(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, task(), session="other")
    looks = Looks(monkeypatch)
    for _ in range(100):
        assert store.load("none") == ()
    assert looks["stamp"] == 100
    assert looks["read"] <= 1
    assert files(folder) == ["other.json"]


@pytest.mark.parametrize("delivered", [0, 9_999])
def test_what_waits_is_found_once(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch, delivered: int) -> None:
    """However many were delivered and stand before it: they are not gone through at every call."""
    put(store, *(task(number, delivered_at_ms=NOW if number < delivered else None) for number in range(10_000)))
    settle(folder)
    first = store.waiting("s1")
    assert first == store.load("s1")[delivered:]
    looks = Looks(monkeypatch)
    assert all(store.waiting("s1") is first for _ in range(100))
    assert looks == {"stamp": 100}
    store.update("s1", lambda tasks: [replace(task, delivered_at_ms=NOW) for task in tasks])
    assert store.waiting("s1") == ()
    assert len(store.load("s1")) == 10_000


def test_whether_the_file_has_to_be_read(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = task(0, task="x" * 20_000)
    assert store.at_hand("s1") == (), "there is none"
    put(store, long)
    settle(folder)
    store.load("s1")
    assert store.at_hand("s1") == (long,)
    again = ClockStore(folder.parent)
    looks = Looks(monkeypatch)
    assert again.at_hand("s1") is None
    assert looks["read"] == 0
    again.load("s1")
    assert again.at_hand("s1") == (long,)
    put(store, long, task(2))
    assert again.at_hand("s1") is None, "another process has changed it"
    put(store, task(1), task(2, delivered_at_ms=NOW))
    assert again.at_hand("s1") == (task(1),), "it is short"


def test_ten_thousand_sessions_cost_one_look_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    ids = [f"s{number}" for number in range(10_000)]
    for id in ids:
        (folder / f"{id}.json").write_bytes(write_record(id, (task(1, session=id),), NOW))
        settle(folder, f"{id}.json")
    store = ClockStore(folder.parent)
    for id in ids:
        store.load(id)
    looks = Looks(monkeypatch)
    for id in ids:
        assert len(store.load(id)) == 1
    assert looks == {"stamp": 10_000}
    assert store.sweep(NOW, RETENTION) == 0
    looks.clear()
    assert store.sweep(NOW + 1, RETENTION) == 0
    assert looks == {"stamp": 10_000}, "the regular sweep reads only what may have expired, or has changed"


def test_another_process_is_noticed(store: ClockStore, folder: Path) -> None:
    put(store, task(1))
    settle(folder)
    store.load("s1")
    other = ClockStore(folder.parent)
    put(other, task(1), task(2))
    assert store.load("s1") == (task(1), task(2))
    put(other)
    assert store.load("s1") == ()
    put(other, task(3))
    assert store.load("s1") == (task(3),)


def test_a_file_written_twice_within_a_tick_is_noticed(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecodex.routing.storage.cached.SETTLED_S", 60.0)  # a tick that no slow machine outlasts
    put(store, task(1, task="abc"))
    path = folder / "s1.json"
    found = path.stat()
    store.load("s1")
    path.write_bytes(path.read_bytes().replace(b"abc", b"xyz"))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert [one.task for one in store.load("s1")] == ["xyz"]


def test_files_from_the_future_are_remembered_as_well(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock was set back: it cannot tell any more how long ago a file was written."""
    put(store, task(1))
    then = time.time_ns() + 10**18
    os.utime(folder / "s1.json", ns=(then, then))
    first = store.load("s1")
    time.sleep(0.06)
    store.load("s1")
    looks = Looks(monkeypatch)
    assert store.load("s1") is first
    assert looks == {"stamp": 1}


def test_what_is_remembered_is_bounded(folder: Path) -> None:
    store = ClockStore(folder.parent)
    files = store._files
    files.most_places = 10
    for number in range(50):
        put(store, task(1, session=f"s{number}"), session=f"s{number}")
        store.load(f"none{number}")
    assert len(files._known) <= 10
    files.most_bytes = 1_000
    for number in range(50):
        assert len(store.load(f"s{number}")) == 1
    assert 0 < sum(known.size for known in files._known.values()) == files._size <= 1_000


# --- together


def test_threads_lose_no_update(store: ClockStore, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_locks(monkeypatch)

    def work(first: int) -> None:
        for number in range(first, first + 20):
            store.update("s1", lambda tasks, number=number: [*tasks, task(number)])

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.load("s1")) == 80


def test_a_change_sees_what_is_on_disk(store: ClockStore, folder: Path) -> None:
    put(store, task(1))
    settle(folder)
    store.load("s1")
    put(ClockStore(folder.parent), task(1), task(2))
    assert store.update("s1", lambda tasks: [*tasks, task(3)]) == (task(1), task(2), task(3))


# --- damage


def _spoil_entry(raw: bytes) -> bytes:
    return raw.replace(b'"dueAtMs":1800000000002', b'"dueAtMs":"soon"')


@pytest.mark.parametrize(
    "spoil, kept",
    [
        pytest.param(lambda raw: raw[:-1], [1, 2, 3], id="its end is cut"),
        pytest.param(lambda raw: raw[: raw.index(b'"task 3"')], [1, 2], id="a task is cut"),
        pytest.param(lambda raw: raw.replace(b'"task 2"', b'"task \x00"'), [1, 3], id="a byte in the middle"),
        pytest.param(lambda raw: raw.replace(b'"task 1"', b'"task \xff"'), [1, 2, 3], id="a byte that is no text"),
        pytest.param(lambda raw: raw.replace(b'"tasks":[', b'"tasks":{', 1), [1, 2, 3], id="a bracket"),
        pytest.param(lambda raw: raw.replace(b'"tasks":', b'"asks":', 1), [1, 2, 3], id="the list's name"),
        pytest.param(_spoil_entry, [1, 3], id="a time"),
        pytest.param(lambda raw: b"", [], id="empty"),
        pytest.param(lambda raw: b"null", [], id="null"),
        pytest.param(lambda raw: bytes(4096), [], id="zeros"),
        pytest.param(lambda raw: b'{"tasks":[' + b'{"taskId":' * 200_000, [], id="deep"),
        pytest.param(lambda raw: b"[" * 200_000, [], id="deep list"),
        pytest.param(lambda raw: b'{"taskId":"' * 100_000, [], id="never closed"),
        pytest.param(lambda raw: b'{"version":1,"tasks":[' + b"9" * 100_000 + b"]}", [], id="endless number"),
    ],
)
def test_damage_costs_what_cannot_be_read(store: ClockStore, folder: Path, spoil: Any, kept: list[int]) -> None:
    put(store, task(1), task(2), task(3))
    path = folder / "s1.json"
    spoiled = spoil(path.read_bytes())
    path.write_bytes(spoiled)
    after = ClockStore(folder.parent)
    assert [one.task_id for one in after.load("s1")] == [f"t{number}" for number in kept]
    assert len(after.warnings) == 1
    assert "clock/s1.json" in after.warnings[0]
    assert (folder / "s1.json.corrupt").read_bytes() == spoiled
    again = ClockStore(folder.parent)
    assert again.load("s1") == after.load("s1")
    assert again.warnings == []
    assert files(folder) == (["s1.json"] if kept else []) + ["s1.json.corrupt"]
    assert len(again.update("s1", lambda tasks: [*tasks, task(9)])) == len(kept) + 1


def test_an_empty_file_is_not_the_same_as_none(store: ClockStore, folder: Path) -> None:
    """A machine that lost its power may leave one."""
    folder.mkdir(parents=True)
    assert store.load("s1") == ()
    (folder / "s1.json").touch()
    assert store.load("s1") == ()
    assert len(store.warnings) == 1


def test_the_text_of_a_task_is_never_taken_for_a_task(store: ClockStore, folder: Path) -> None:
    forged = json.dumps(to_json(task(7, task="forged")))
    put(store, task(1, task=forged), task(2, arguments={"a": to_json(task(8))}))
    path = folder / "s1.json"
    path.write_bytes(path.read_bytes()[:-1])
    assert ClockStore(folder.parent).load("s1") == (task(1, task=forged), task(2, arguments={"a": to_json(task(8))}))


def test_a_file_changed_by_hand_is_used_as_it_is(store: ClockStore, folder: Path) -> None:
    put(store, task(1))
    path = folder / "s1.json"
    path.write_bytes(path.read_bytes().replace(b"task 1", b"task 5"))
    assert [one.task for one in store.load("s1")] == ["task 5"]
    assert len(store.warnings) == 1
    assert files(folder) == ["s1.json"]


def test_another_sessions_file_gives_no_tasks(store: ClockStore, folder: Path) -> None:
    put(store, task(1, session="s2"), session="s2")
    shutil.copy(folder / "s2.json", folder / "s1.json")
    assert store.load("s1") == ()
    assert store.load("s2") == (task(1, session="s2"),)
    assert files(folder) == ["s1.json.corrupt", "s2.json"]


@pytest.mark.parametrize("what", ["link", "folder", "too large"])
def test_what_is_no_file_of_ours(store: ClockStore, folder: Path, tmp_path: Path, what: str) -> None:
    folder.mkdir(parents=True)
    secret = tmp_path / "secret.json"
    secret.write_bytes(write_record("s1", (task(1),), NOW))
    match what:
        case "link":
            (folder / "s1.json").symlink_to(secret)
        case "folder":
            (folder / "s1.json").mkdir()
        case _:
            with (folder / "s1.json").open("wb") as file:
                file.truncate((64 << 20) + 1)
    assert store.load("s1") == ()
    assert put(store, task(2)) == ClockStore(folder.parent).load("s1") == (task(2),)
    assert secret.read_bytes() == write_record("s1", (task(1),), NOW)


def test_damage_on_a_full_disk_loses_nothing(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, task(1), task(2))
    path = folder / "s1.json"
    path.write_bytes(path.read_bytes()[:-1])

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    after = ClockStore(folder.parent)
    with monkeypatch.context() as full:
        full.setattr(Disk, "write", refuse)
        assert after.load("s1") == (task(1), task(2))
        assert after.load("s1") == (task(1), task(2))
        with pytest.raises(StoreError):
            put(after, task(1), task(2), task(3))
    assert files(folder) == ["s1.json"]
    assert ClockStore(folder.parent).update("s1", lambda tasks: [*tasks, task(3)]) == (task(1), task(2), task(3))
    assert ClockStore(folder.parent).load("s1") == (task(1), task(2), task(3))


def test_a_file_that_may_not_be_read_is_an_error(store: ClockStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, task(1))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("routecodex.routing.storage.disk.os.lstat", refuse)
    with pytest.raises(StoreError):
        store.load("s1")
    monkeypatch.undo()
    assert store.load("s1") == (task(1),)


# --- the sweep


@pytest.mark.parametrize("restart", [False, True])
def test_c35_what_has_expired_goes(store: ClockStore, folder: Path, restart: bool) -> None:
    put(store, task(1, due_at_ms=NOW - RETENTION - 1), task(2, due_at_ms=NOW - RETENTION), task(3, due_at_ms=NOW + 10**9))
    put(store, task(1, "old", due_at_ms=NOW - 10**9, delivered_at_ms=5), session="old")
    store = ClockStore(folder.parent) if restart else store
    assert store.sweep(NOW, RETENTION) == 2
    assert [one.task_id for one in store.load("s1")] == ["t2", "t3"]
    assert store.load("old") == ()
    assert files(folder) == ["s1.json"]
    assert store.sweep(NOW, RETENTION) == 0
    assert store.sweep(NOW + 1, RETENTION) == 1, "what was looked at before is looked at again in time"


def test_d31_what_expired_before_anybody_was_reminded_of_it_is_told_once(store: ClockStore) -> None:
    put(store, task(1, due_at_ms=NOW - RETENTION - 1), task(2, due_at_ms=NOW - RETENTION - 1, delivered_at_ms=5))
    store.sweep(NOW, RETENTION)
    assert [one.task_id for one in store.missed("s1")] == ["t1"]
    assert store.missed("s1") == store.missed("another") == ()


def test_s13_without_a_time_to_be_trusted_nothing_goes(store: ClockStore, folder: Path) -> None:
    put(store, task(1, due_at_ms=5))
    (folder / "s1.json.tmp").touch()
    assert store.sweep(None, RETENTION) == 0
    assert files(folder) == ["s1.json"]


@pytest.mark.parametrize("content", [b'{"version":1,"offsetMs":5}', b"", b"damaged", b'{"tasks":[]}'])
def test_c33_the_clocks_own_file_is_never_swept(store: ClockStore, folder: Path, content: bytes) -> None:
    assert store.ntp_state() is None
    store.save_ntp_state(content)
    put(store, task(1, due_at_ms=5))
    for _ in range(3):
        store.sweep(NOW * 2, RETENTION)
    assert files(folder) == [NTP_STATE]
    assert store.ntp_state() == ClockStore(folder.parent).ntp_state() == content


def test_c33_a_session_of_that_name_is_another_file(store: ClockStore, folder: Path) -> None:
    store.save_ntp_state(b"{}")
    put(store, task(1, "ntp-state"), session="ntp-state")
    put(store, session="ntp-state")
    assert store.ntp_state() == b"{}"


def test_the_clocks_own_file_as_a_link_is_not_followed(store: ClockStore, folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    (tmp_path / "other").write_bytes(b"{}")
    (folder / NTP_STATE).symlink_to(tmp_path / "other")
    assert store.ntp_state() is None
    store.save_ntp_state(b"new")
    assert (tmp_path / "other").read_bytes() == b"{}"


def test_what_crashes_left_goes_at_the_start_and_in_the_sweep(store: ClockStore, folder: Path) -> None:
    put(store, task(1))
    for name in ("s1.json.tmp", "gone.json.tmp", "ntp-state.json.tmp"):
        (folder / name).write_bytes(b'{"vers')
    ClockStore(folder.parent)
    assert files(folder) == ["s1.json"]
    (folder / "s1.json.tmp").write_bytes(b'{"vers')
    store.sweep(NOW, RETENTION)
    assert files(folder) == ["s1.json"]


def test_a_damaged_file_is_repaired_by_the_sweep(store: ClockStore, folder: Path) -> None:
    put(store, task(1, due_at_ms=5), task(2))
    put(store, task(1, "b", due_at_ms=5), session="b")
    for name in ("s1.json", "b.json"):
        (folder / name).write_bytes((folder / name).read_bytes()[:-1])
    (folder / "c.json").write_bytes(b"nothing")
    assert store.sweep(NOW, RETENTION) == 2
    assert files(folder) == ["b.json.corrupt", "c.json.corrupt", "s1.json", "s1.json.corrupt"]
    assert store.load("s1") == (task(2),)


def test_what_was_set_aside_goes_after_a_month(store: ClockStore, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, age_ms in (("a.json.corrupt", 31 * DAY_MS), ("b.json.corrupt", 29 * DAY_MS)):
        (folder / name).touch()
        os.utime(folder / name, ns=((NOW - age_ms) * 10**6,) * 2)
    store.sweep(NOW, RETENTION)
    assert files(folder) == ["b.json.corrupt"]


def test_a_sweep_that_cannot_write_says_so_and_goes_on(store: ClockStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, task(1, "a", due_at_ms=5), task(2, "a"), session="a")
    put(store, task(1, "b", due_at_ms=5), session="b")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Disk, "write", refuse)
    assert store.sweep(NOW, RETENTION) == 1
    assert store.warnings == ["The session file a.json could not be written: No space left on device"]
    assert len(store.load("a")) == 2


# --- many


def test_more_than_a_thousand_tasks_are_said_once(store: ClockStore, folder: Path) -> None:
    put(store, *(task(number) for number in range(MANY)))
    assert store.warnings == []
    for number in range(3):
        store.update("s1", lambda tasks, number=number: [*tasks, task(MANY + number)])
        store.load("s1")
    warnings, store.warnings = store.warnings, []
    assert warnings == ["clock/s1.json holds more than 1000 tasks"]
    store.update("s1", lambda tasks: tasks[1:])
    assert store.warnings == []
    again = ClockStore(folder.parent)
    again.load("s1")
    assert len(again.warnings) == 1


# --- one file's bytes


def test_a_record_is_read_as_it_was_written() -> None:
    tasks = (task(1, arguments={"a": -0.0, "b": 2**70, "\ud800": "\n"}), task(2, task="\ud800 text\r\n"))
    record = read_record(write_record("s1", tasks, NOW), "s1")
    assert (record.tasks, record.is_whole, record.is_own) == (tasks, True, True)
