"""The store: one small file per session, alone among threads and processes."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from routecodex.routing.errors import StoreError
from routecodex.routing.sessions.record import to_json
from routecodex.routing.sessions.state import EMPTY, Obeyed, SessionState, Sticky, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.storage.disk import Folder
from tests.rig.patience import wait_for_locks
from tests.rig.work import calls_of

KEY = SessionKey("session", "10eef47d-15c9-42f4-9eaf-4170de80610a")
OTHER = SessionKey("session", "other")


def message(number: int) -> tuple[Obeyed, ...]:
    return (Obeyed(f"m{number}", "words", "open"),)


M1 = message(1)
ALLOW = EMPTY.with_(allowed=("glm",), obeyed=M1)
DAY = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "127.0.0.1_8080"


@pytest.fixture
def store(folder: Path) -> FileStore:
    return FileStore(folder)


def set_to(state: SessionState):  # type: ignore[no-untyped-def]
    return lambda _: state


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def test_s01_sessions_do_not_touch_each_other(store: FileStore) -> None:
    store.update(KEY, set_to(ALLOW))
    assert store.load(OTHER) == EMPTY
    assert store.load(SessionKey("conversation", KEY.id)) == EMPTY
    assert store.load(KEY) == ALLOW


def test_s02_a_restart_keeps_the_state(store: FileStore, folder: Path) -> None:
    state = ALLOW.with_(sticky=Sticky("glm"), stop=StopMessage("go", 3, used=2))
    store.update(KEY, set_to(state))
    assert files(folder) == [f"session-{KEY.id}.json"]
    assert FileStore(folder).load(KEY) == state


def test_s02_the_published_form_on_disk(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW))
    document = json.loads((folder / f"session-{KEY.id}.json").read_bytes())
    assert {**to_json(ALLOW), "id": KEY.id} == {name: value for name, value in document.items() if name != "sum"}


def test_s02_a_file_written_by_hand(store: FileStore, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "session-other.json").write_text('{"version":1,"state":{"allowedProviders":["glm"],"later":{}}}')
    assert store.load(OTHER) == EMPTY.with_(allowed=("glm",))
    assert store.warnings == []


@pytest.mark.parametrize("length", [0, 1, 20, 60, 100])
def test_s04_a_truncated_file_costs_no_call(store: FileStore, folder: Path, length: int) -> None:
    store.update(KEY, set_to(ALLOW.with_(sticky=Sticky("glm"))))
    store.update(OTHER, set_to(ALLOW))
    path = folder / f"session-{KEY.id}.json"
    raw = path.read_bytes()
    path.write_bytes(raw[:length])
    again = FileStore(folder)
    assert again.load(KEY).sticky in (None, Sticky("glm"))
    assert again.load(KEY) == again.load(KEY)
    assert again.load(OTHER) == ALLOW
    assert len(again.warnings) == 1
    assert (folder / f"{path.name}.corrupt").read_bytes() == raw[:length]
    assert again.update(KEY, lambda state: state.with_(allowed=("x",))).allowed == ("x",)
    assert FileStore(folder).load(KEY).allowed == ("x",)


def test_s04_the_longest_valid_beginning_stays_in_force(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW.with_(disabled_providers=("a", "b"))))
    path = folder / f"session-{KEY.id}.json"
    raw = path.read_bytes()
    path.write_bytes(raw[: raw.index(b',"b"')])
    assert FileStore(folder).load(KEY) == ALLOW.with_(disabled_providers=("a",))
    assert FileStore(folder).load(KEY) == ALLOW.with_(disabled_providers=("a",))


def test_s05_an_empty_state_has_no_file(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW))
    store.update(KEY, set_to(EMPTY))
    assert files(folder) == []
    assert store.load(KEY) == EMPTY
    assert FileStore(folder).load(KEY) == EMPTY


def test_s05_a_used_up_state_is_not_armed_again_by_the_message_that_armed_it(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(EMPTY.with_(stop=StopMessage("go", 1), obeyed=M1)))
    store.update(KEY, lambda state: state.with_(stop=None))
    assert store.load(KEY).obeyed == M1
    assert FileStore(folder).load(KEY).obeyed == M1


def test_s05_untouched_sessions_expire(store: FileStore, folder: Path) -> None:
    now = 2_000_000_000.0
    for key, age in ((KEY, 31), (OTHER, 29), (SessionKey("conversation", "c"), 31)):
        store.update(key, set_to(ALLOW))
        path = next(path for path in folder.iterdir() if key.id in path.name)
        os.utime(path, (now - age * DAY,) * 2)
    (folder / "session-old.json.corrupt").touch()
    os.utime(folder / "session-old.json.corrupt", (now - 31 * DAY,) * 2)
    (folder / "notes.txt").touch()
    os.utime(folder / "notes.txt", (now - 31 * DAY,) * 2)
    again = FileStore(folder)
    assert again.sweep(now, 0) == 0
    assert again.sweep(now, 30) == 3
    assert files(folder) == ["notes.txt", "session-other.json"]
    assert again.load(KEY) == EMPTY


def test_s05_a_session_in_use_does_not_expire(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW))
    now = time.time()
    for month in range(1, 4):
        assert store.load(KEY) == ALLOW
        assert store.sweep(now + month * 20 * DAY, 30) == 0
    assert store.sweep(now + 95 * DAY, 30) == 1


def test_s10_servers_have_folders_of_their_own(tmp_path: Path) -> None:
    first, second = FileStore(tmp_path / "127.0.0.1_8080"), FileStore(tmp_path / "127.0.0.1_8081")
    first.update(KEY, set_to(ALLOW))
    assert second.load(KEY) == EMPTY


def test_files_and_folders_are_for_their_owner(store: FileStore, folder: Path) -> None:
    old = os.umask(0)
    try:
        store.update(KEY, set_to(ALLOW))
    finally:
        os.umask(old)
    for path in [folder.parent, folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_strays_of_a_crash_are_removed_at_start(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW))
    (folder / "session-x.json.tmp").write_bytes(b"{")
    again = FileStore(folder)
    assert files(folder) == [f"session-{KEY.id}.json"]
    assert again.load(KEY) == ALLOW


def test_another_process_is_seen(store: FileStore, folder: Path) -> None:
    assert store.load(KEY) == EMPTY
    for n in range(1, 30):
        FileStore(folder).update(KEY, set_to(ALLOW.with_(obeyed=message(n % 10))))
        assert store.load(KEY).obeyed == message(n % 10)


def test_an_unchanged_state_is_not_written(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW))
    before = Folder(folder).stamp(f"session-{KEY.id}.json")
    store.update(KEY, lambda state: state.with_(obeyed=M1))
    assert Folder(folder).stamp(f"session-{KEY.id}.json") == before


def test_a_change_that_fails_changes_nothing(store: FileStore) -> None:
    store.update(KEY, set_to(ALLOW))
    with pytest.raises(ZeroDivisionError):
        store.update(KEY, lambda state: state.with_(allowed=(str(1 // 0),)))
    assert store.load(KEY) == ALLOW
    assert store.update(KEY, set_to(EMPTY)) == EMPTY


def test_a_lock_held_too_long_is_an_error(store: FileStore, folder: Path) -> None:
    with Folder(folder).locked(f"session-{KEY.id}.json"):
        outcome: list[object] = []

        def wait() -> None:
            try:
                outcome.append(store.update(KEY, set_to(ALLOW)))
            except StoreError as error:
                outcome.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join()
    assert isinstance(outcome[0], StoreError)
    assert store.update(KEY, set_to(ALLOW)) == ALLOW


def test_threads_lose_no_update(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_locks(monkeypatch)

    def count() -> None:
        for _ in range(25):
            store.update(
                KEY, lambda state: state.with_(stop=StopMessage("go", 1000, used=state.stop.used + 1 if state.stop else 1))
            )

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop = store.load(KEY).stop
    assert stop is not None
    assert stop.used == 100


def test_chains_stay_in_memory_and_are_bounded(store: FileStore, folder: Path) -> None:
    for n in range(10_050):
        store.update(SessionKey("chain", str(n)), set_to(ALLOW.with_(obeyed=message(n))))
    assert not folder.exists()
    assert store.load(SessionKey("chain", "0")) == EMPTY
    assert store.load(SessionKey("chain", "10049")).obeyed == message(10049)


def test_the_session_file_holds_no_more_than_the_state(store: FileStore, folder: Path) -> None:
    store.update(KEY, set_to(ALLOW))
    document = json.loads((folder / f"session-{KEY.id}.json").read_bytes())
    assert set(document) == {"version", "id", "state", "sum"}


def test_loading_an_unchanged_state_is_a_look_at_its_stamp(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.update(KEY, set_to(ALLOW))
    time.sleep(0.06)
    store.load(KEY)
    with monkeypatch.context() as closed:
        closed.setattr(os, "open", None)
        found = store.load(KEY)
    assert found == ALLOW
    assert calls_of(lambda: store.load(KEY)) < 40


@pytest.mark.parametrize("make", ["folder", "link", "pipe"])
def test_what_is_no_file_is_set_aside(store: FileStore, folder: Path, tmp_path: Path, make: str) -> None:
    folder.mkdir(parents=True)
    path = folder / "session-other.json"
    outside = tmp_path / "outside.json"
    outside.write_text('{"version":1,"state":{"allowedProviders":["evil"]}}')
    {"folder": path.mkdir, "link": lambda: path.symlink_to(outside), "pipe": lambda: os.mkfifo(path)}[make]()
    assert store.load(OTHER) == EMPTY
    assert len(store.warnings) == 1
    store.update(OTHER, set_to(ALLOW))
    assert FileStore(folder).load(OTHER) == ALLOW
    assert "evil" in outside.read_text()


class StoreAgainstDict(RuleBasedStateMachine):
    """The store and a dict, side by side, with a new store now and then."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = Path(tempfile.mkdtemp())
        self.store = FileStore(self.folder)
        self.states: dict[SessionKey, SessionState] = {}

    @rule(
        id=st.sampled_from(["a", "A", "b/../a", ""]),
        prefix=st.sampled_from(["session", "conversation"]),
        names=st.lists(st.sampled_from("xyz")),
    )
    def update(self, id: str, prefix: str, names: list[str]) -> None:
        key = SessionKey(prefix, id)  # type: ignore[arg-type]
        self.states[key] = self.store.update(key, lambda state: state.with_(allowed=(*names,)))

    @rule()
    def restart(self) -> None:
        self.store = FileStore(self.folder)

    @invariant()
    def same(self) -> None:
        for key, state in self.states.items():
            assert self.store.load(key) == state
        assert self.store.warnings == []

    def teardown(self) -> None:
        import shutil

        shutil.rmtree(self.folder)


TestStoreAgainstDict = StoreAgainstDict.TestCase
TestStoreAgainstDict.settings = settings(max_examples=10, stateful_step_count=15, deadline=None)
