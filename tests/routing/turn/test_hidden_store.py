"""Hidden rounds on disk: after a restart, bounded, damaged, swept; and what looking for them costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from routecodex.routing.errors import StoreError
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.storage.disk import Disk, Folder
from routecodex.routing.turn.hidden import Hidden, Key
from routecodex.routing.turn.hidden_store import MOST_BYTES, MOST_ENTRIES, HiddenStore, write_entry
from routecodex.routing.values import Dialect, JsonObject
from tests.rig.patience import wait_for_locks

KEY = SessionKey("session", "abc")
ENTRY = Hidden(
    Dialect.MESSAGES,
    Key("answer", "typed"),
    2,
    (
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm \ud83d", "signature": "s"}]},
        {"x": [1, 2.5, None, 2**70]},
    ),
    ({"role": "user", "content": []},),
    ("resp_1", "resp_2"),
)


def entry(number: int, size: int = 0) -> Hidden:
    return replace(ENTRY, key=Key(f"answer {number}", "typed"), items=({"text": "x" * size, "n": number},))


def file_of(folder: Path) -> Path:
    return folder / "history" / "session-abc.json"


def test_what_was_remembered_is_there_after_a_restart(tmp_path: Path) -> None:
    HiddenStore(tmp_path).add(KEY, ENTRY)
    assert HiddenStore(tmp_path).load(KEY) == (ENTRY,)
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("items", [ENTRY.items, ()], ids=["rounds", "the client's copy"])
def test_what_stood_before_an_answer_is_there_as_well(tmp_path: Path, items: tuple[JsonObject, ...]) -> None:
    entry = replace(ENTRY, items=items, before=("[Clock Reminder] \u00fc", "two"))
    HiddenStore(tmp_path).add(KEY, entry)
    assert HiddenStore(tmp_path).load(KEY) == (entry,)
    path = file_of(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"two"', b'"six"'))
    assert HiddenStore(tmp_path).load(KEY) == (), "damage is left out"


def test_m24_other_sessions_see_nothing_of_it(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    store.add(KEY, ENTRY)
    others = [
        SessionKey("session", "abd"),
        SessionKey("conversation", "abc"),
        SessionKey("chain", "abc"),
        SessionKey("session", "ABC"),
    ]
    assert [store.load(key) for key in others] == [()] * 4


def test_in_order_and_the_newest_of_equals(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    for number in (1, 2, 3, 1):
        store.add(KEY, entry(number))
    newer = replace(entry(2), items=({"text": "asked again"},))
    store.add(KEY, newer)
    assert store.load(KEY) == (entry(3), entry(1), newer)
    assert HiddenStore(tmp_path).load(KEY) == (entry(3), entry(1), newer)


def test_only_the_newest_entries_stay(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    for number in range(MOST_ENTRIES + 5):
        store.add(KEY, entry(number))
    assert store.load(KEY) == tuple(entry(number) for number in range(5, MOST_ENTRIES + 5))


def test_a_session_has_room_for_8_mib(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    for number in range(5):
        store.add(KEY, entry(number, 2_500_000))
    assert [one.items[0]["n"] for one in store.load(KEY)] == [2, 3, 4]
    assert file_of(tmp_path).stat().st_size <= MOST_BYTES + 4096
    store.add(KEY, entry(9, MOST_BYTES))
    assert [one.items[0]["n"] for one in HiddenStore(tmp_path).load(KEY)] == [2, 3, 4]
    store.add(KEY, entry(10, MOST_BYTES - 1000))
    assert [one.items[0]["n"] for one in HiddenStore(tmp_path).load(KEY)] == [10]
    store.add(KEY, entry(11, MOST_BYTES - write_entry(entry(11)).size))
    assert [one.items[0]["n"] for one in HiddenStore(tmp_path).load(KEY)] == [10], "one that has no room takes no other's"


def test_nothing_but_the_conversation_is_written(tmp_path: Path) -> None:
    HiddenStore(tmp_path).add(KEY, ENTRY)
    document = json.loads(file_of(tmp_path).read_bytes())
    assert set(document) == {"version", "id", "entries"}
    fields = {"dialect", "answer", "typed", "ordinal", "ids", "sum", "items", "results"}
    assert [set(one) for one in document["entries"]] == [fields]


# Damage


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"entries": 3}', b"\xff\xfe", b'{"version":1,"id":"abc","entries":[{'])
def test_a_damaged_file_is_set_aside(tmp_path: Path, raw: bytes) -> None:
    HiddenStore(tmp_path).add(KEY, ENTRY)
    file_of(tmp_path).write_bytes(raw)
    store = HiddenStore(tmp_path)
    assert store.load(KEY) == ()
    assert store.warnings == [
        "history/session-abc.json is damaged and was set aside as session-abc.json.corrupt; nothing of it could be read"
    ]
    assert (tmp_path / "history" / "session-abc.json.corrupt").read_bytes() == raw
    store.add(KEY, ENTRY)
    assert HiddenStore(tmp_path).load(KEY) == (ENTRY,)


def test_a_damaged_entry_is_left_out(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    for number in range(3):
        store.add(KEY, entry(number, 20))
    raw = file_of(tmp_path).read_bytes()
    file_of(tmp_path).write_bytes(raw.replace(b'"xxxxxxxxxxxxxxxxxxxx","n":1', b'"xxxxxxxxxxyxxxxxxxxx","n":1'))
    again = HiddenStore(tmp_path)
    assert again.load(KEY) == (entry(0, 20), entry(2, 20))
    assert again.warnings == ["history/session-abc.json has damaged entries that are left out: 1"]


@pytest.mark.parametrize("value", [None, 3, [], {}, {"dialect": "x"}, {"dialect": "openai-chat", "items": [], "sum": ""}])
def test_entries_may_be_any_json(tmp_path: Path, value: object) -> None:
    HiddenStore(tmp_path).add(KEY, ENTRY)
    document = json.loads(file_of(tmp_path).read_bytes())
    file_of(tmp_path).write_text(json.dumps({**document, "entries": [value, *document["entries"]]}))
    assert HiddenStore(tmp_path).load(KEY) == (ENTRY,)


@pytest.mark.parametrize("step", range(0, 400, 7))
def test_any_cut_loses_this_session_at_most(tmp_path: Path, step: int) -> None:
    store = HiddenStore(tmp_path)
    store.add(KEY, ENTRY)
    store.add(SessionKey("session", "other"), ENTRY)
    raw = file_of(tmp_path).read_bytes()
    file_of(tmp_path).write_bytes(raw[: step % len(raw)])
    again = HiddenStore(tmp_path)
    assert again.load(KEY) == ()
    assert again.load(SessionKey("session", "other")) == (ENTRY,)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "elsewhere.json").write_text('{"entries": []}')
    file_of(tmp_path).symlink_to(tmp_path / "elsewhere.json")
    assert HiddenStore(tmp_path).load(KEY) == ()


def test_a_disk_that_fails_is_told_and_the_old_file_stays(tmp_path: Path) -> None:
    HiddenStore(tmp_path).add(KEY, entry(1))

    class Full(Disk):
        def fsync(self, file: int) -> None:
            raise OSError(28, "No space left on device")

    store = HiddenStore(tmp_path, Full())
    assert store.load(KEY) == (entry(1),)
    with pytest.raises(StoreError):
        store.add(KEY, entry(2))
    assert store.load(KEY) == (entry(1),)
    assert [path.name for path in (tmp_path / "history").iterdir() if path.is_file()] == ["session-abc.json"]


def test_a_folder_that_cannot_be_read_costs_no_call(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("a file where the folder should be")
    store = HiddenStore(tmp_path)
    assert store.load(KEY) == ()
    with pytest.raises(StoreError):
        store.add(KEY, ENTRY)


HOSTILE = ["../../etc/passwd", "a/b", "..", "", "CON", "x" * 500, "a\0b", "ü", "A", ".hidden", "history/../x"]


def test_names_stay_inside(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path / "s")
    for id in HOSTILE:
        store.add(SessionKey("session", id), ENTRY)
        assert HiddenStore(tmp_path / "s").load(SessionKey("session", id)) == (ENTRY,)
    written = set(tmp_path.rglob("*.json"))
    assert {path.parent for path in written} == {tmp_path / "s" / "history"}
    assert len(written) == len(HOSTILE)


# What it costs


def test_a_session_without_hidden_rounds_costs_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = HiddenStore(tmp_path)
    looks: list[str] = []
    monkeypatch.setattr(os, "lstat", lambda path, real=os.lstat: (looks.append(str(path)), real(path))[1])
    monkeypatch.setattr(Folder, "read", lambda self, name: pytest.fail("read"))
    for _ in range(3):
        assert store.load(KEY) == ()
    assert looks == [str(file_of(tmp_path))] * 3


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    HiddenStore(tmp_path).add(KEY, ENTRY)
    time.sleep(0.06)
    store, reads = HiddenStore(tmp_path), []
    real = Folder.read
    monkeypatch.setattr(Folder, "read", lambda self, name: (reads.append(name), real(self, name))[1])
    first = store.load(KEY)
    assert all(store.load(KEY) is first for _ in range(5))
    assert len(reads) == 1
    HiddenStore(tmp_path).add(KEY, entry(7))
    assert store.load(KEY) == (ENTRY, entry(7))


def test_chains_live_in_memory_alone(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    key = SessionKey("chain", "id")
    store.add(key, ENTRY)
    store.add(key, entry(1))
    assert store.load(key) == (ENTRY, entry(1))
    assert HiddenStore(tmp_path).load(key) == ()
    assert list(tmp_path.rglob("*.json")) == []


def test_memory_is_bounded_for_all_sessions_together(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    files = store._files
    files.most_bytes, files.most_places = 100_000, 30
    for number in range(50):
        store.add(SessionKey("session", f"s{number}"), entry(number, 10_000))
        store.add(SessionKey("chain", f"c{number}"), entry(number, 10_000))
        assert files._size <= 100_000
    for number in range(100):
        store.load(SessionKey("session", f"never{number}"))
    assert len(files._known) <= 30
    assert files._size == sum(known.size for known in files._known.values())
    assert store.load(SessionKey("session", "s0")) == (entry(0, 10_000),)


# Expiry

DAY = 86_400


def test_it_expires_with_its_session(tmp_path: Path) -> None:
    store = HiddenStore(tmp_path)
    now = time.time()
    for id in ("old", "used", "abc"):
        store.add(SessionKey("session", id), ENTRY)
    for id in ("old", "used"):
        os.utime(tmp_path / "history" / f"session-{id}.json", (now - 40 * DAY,) * 2)
    again = HiddenStore(tmp_path)
    again.load(SessionKey("session", "used"))
    stray = tmp_path / "history" / "session-abc.json.tmp"
    stray.write_text("{")
    assert again.sweep(now, 0) == 1
    assert not stray.exists()
    assert again.sweep(now, 30) == 1
    assert sorted(path.name for path in (tmp_path / "history").glob("*.json")) == ["session-abc.json", "session-used.json"]
    assert again.load(SessionKey("session", "old")) == ()
    assert HiddenStore(tmp_path / "none").sweep(now, 30) == 0


# Several at once

PROGRAM = """
import sys
from pathlib import Path
from tests.rig.patience import wait_for_locks
from tests.routing.turn.test_hidden_store import KEY, entry
from routecodex.routing.turn.hidden_store import HiddenStore

wait_for_locks()
store = HiddenStore(Path(sys.argv[1]))
for number in range(25):
    store.add(KEY, entry(int(sys.argv[2]) + number))
"""


def test_s12_two_processes_and_threads_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_locks(monkeypatch)
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    processes = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), str(start)], env=environment, cwd=root)
        for start in (0, 1000)
    ]
    store = HiddenStore(tmp_path)
    threads = [
        threading.Thread(target=lambda start=start: [store.add(KEY, entry(start + number)) for number in range(25)])
        for start in (2000, 3000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(60) for process in processes] == [0, 0]
    found = {int(str(one.items[0]["n"])) for one in HiddenStore(tmp_path).load(KEY)}
    assert found == {start + number for start in (0, 1000, 2000, 3000) for number in range(25)}
    assert store.load(KEY) == HiddenStore(tmp_path).load(KEY)
