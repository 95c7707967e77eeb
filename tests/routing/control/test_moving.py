"""From files to another store and back: nothing of a conversation is lost, and nothing is taken that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.control.elsewhere import Elsewhere, InFiles
from routecodex.routing.control.kept import NoSession
from routecodex.routing.control.moving import BadLine, from_line, into_files, into_store, of_files, of_store, to_line
from routecodex.routing.sessions.state import EMPTY, Sticky, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.storage.contract import Key, Kind, Put
from routecodex.routing.storage.shared_file import SharedFile
from routecodex.routing.turn.hidden_store import HiddenStore
from tests.routing.house import done, inline
from tests.routing.turn.test_hidden_store import entry

ODD = "An Id/with:odd \ud800 letters"
KEYS = [SessionKey("session", "abc-1"), SessionKey("conversation", ODD), SessionKey("session", "idle")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    states, tasks, hidden = FileStore(tmp_path), ClockStore(tmp_path), HiddenStore(tmp_path)
    kept = EMPTY.with_(sticky=Sticky("glm", model="glm-4.7"), stop=StopMessage("go", 3, used=1), client="codex", begins="hello")
    for key in KEYS[:2]:
        states.update(key, lambda state: kept)
        for number in range(3):
            hidden.add(key, entry(number))
        tasks.update(key.id, lambda _, key=key: [Task("t1", key.id, 5, 5, 5, "look", arguments={"a": "\ud800"})])
    states.update(KEYS[2], lambda state: EMPTY.with_(obeyed_before="0:x"))
    tasks.save_ntp_state(b"{}")
    return tmp_path


def opened(folder: Path) -> SharedFile:
    return SharedFile(folder, inline, wall=lambda: 1.0)


def lines_of(store: SharedFile) -> list[str]:
    async def listed() -> list[str]:
        return [to_line(put) async for put in of_store(store)]

    return done(listed())


def test_there_and_back(folder: Path, tmp_path: Path) -> None:
    lines = [to_line(put) for put in of_files(folder)]
    store, other = opened(tmp_path / "store"), tmp_path / "other"
    assert done(into_store(store, [from_line(line, 1) for line in lines])) == len(lines) == 3 + 2 + 6
    back = lines_of(store)
    assert sorted(map(without_time, back)) == sorted(map(without_time, lines))
    assert into_files(other, [from_line(line, 1) for line in back]) == len(lines)
    for key in KEYS:
        assert FileStore(other).load(key) == FileStore(folder).load(key)
        assert HiddenStore(other).load(key) == HiddenStore(folder).load(key)
        assert ClockStore(other).load(key.id) == ClockStore(folder).load(key.id)
    assert done(into_store(store, [from_line(line, 1) for line in lines])) == len(lines)
    assert len(lines_of(store)) == len(lines), "twice is once"


def without_time(line: str) -> str:
    found = json.loads(line)
    if found["kind"] == "tasks":
        found["entry"] = json.loads(found["entry"])["tasks"]
    return json.dumps(found, sort_keys=True)


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "{}",
        '{"kind": "memo", "id": "session:a", "place": "", "entry": "x"}',
        '{"kind": "state", "id": "a", "place": "", "entry": "x"}',
        '{"kind": "state", "id": "session:a", "place": "", "entry": ""}',
    ],
)
def test_what_is_no_export_is_refused(line: str) -> None:
    with pytest.raises(BadLine, match="line 7"):
        from_line(line, 7)


def test_a_chain_does_not_become_a_file(tmp_path: Path) -> None:
    assert into_files(tmp_path, [Put(Key(Kind.STATE, "chain:x"), "", b"{}")]) == 0


def test_sessions_elsewhere_are_told_and_erased_alike(folder: Path, tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    done(into_store(store, of_files(folder)))
    done(store.put([Put(Key(Kind.MEMO, "session:abc-1"), "pin:x", b"[]")]))
    files, elsewhere = InFiles(folder), Elsewhere(store, lambda work: done(work()))
    assert {one.id: one.state for one in elsewhere.sessions()} == {one.id: one.state for one in files.sessions()}
    for id in ("abc", ODD):
        told = [{**kept.session(id), "changed": 0, "files": []} for kept in (files, elsewhere)]
        assert told[0] == told[1]
        assert told[0]["hiddenRounds"] == 3
    assert elsewhere.reminders() == files.reminders() != []
    assert elsewhere.reminders("nobody") == []
    assert len(elsewhere.clear("abc")) == 4
    with pytest.raises(NoSession):
        elsewhere.clear("abc")
    assert len(elsewhere.clear_all()) == 4
    assert elsewhere.sessions() == []
