"""What is stored of sessions, told and erased, with or without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecodex.routing.clock.store import NTP_STATE, ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.control.kept import NoSession, clear, clear_all, reminders, session, sessions
from routecodex.routing.control.overlay import Overlay
from routecodex.routing.sessions.state import EMPTY, Sticky
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.storage.names import file_name
from tests.routing.house import config_text

ODD = "An Id/with:odd letters"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = FileStore(tmp_path)
    kept = EMPTY.with_(sticky=Sticky("glm", model="glm-4.7"), client="codex", begins="hello there")
    for key in (SessionKey("session", "abc-1"), SessionKey("session", "abd-2"), SessionKey("conversation", ODD)):
        store.update(key, lambda state: kept)
    store.update(SessionKey("session", "idle"), lambda state: EMPTY.with_(obeyed="0:x"))
    for below, name in (("clock", file_name("", "abc-1")), ("history", file_name("session", "abc-1")), ("clock", NTP_STATE)):
        (tmp_path / below).mkdir(exist_ok=True)
        (tmp_path / below / name).write_text("{}")
    return tmp_path


def test_those_with_something_in_force_are_named(folder: Path) -> None:
    found = {kept.id: kept.told for kept in sessions(folder)}
    assert set(found) == {"abc-1", "abd-2", ODD}
    assert found[ODD]["kind"] == "conversation"
    assert found["abc-1"]["client"] == "codex"
    assert found["abc-1"]["begins"] == "hello there"
    assert found["abc-1"]["inForce"] == ["Sticky: glm.glm-4.7 (all keys)."]
    assert sessions(folder / "nowhere") == []


def test_the_beginning_of_an_id_is_enough_where_it_is_one(folder: Path) -> None:
    assert session(folder, "abc")["id"] == "abc-1"
    assert session(folder, ODD)["id"] == ODD
    with pytest.raises(NoSession, match="2 sessions begin with ab"):
        session(folder, "ab")
    for nobody in ("zzz", ""):
        with pytest.raises(NoSession):
            session(folder, nobody)


def test_clear_erases_all_of_one_and_nothing_of_others(folder: Path) -> None:
    assert len(clear(folder, "abc")) == 3
    assert {kept.id for kept in sessions(folder)} == {"abd-2", ODD}
    assert not list(folder.rglob("*abc-1*"))
    assert FileStore(folder).load(SessionKey("session", "abc-1")) == EMPTY
    with pytest.raises(NoSession):
        clear(folder, "abc-1")
    assert len(clear(folder, ODD)) == 1


def test_what_a_running_store_remembers_goes_too(folder: Path) -> None:
    store = FileStore(folder)
    assert store.load(SessionKey("session", "abc-1")) != EMPTY
    clear(folder, "abc-1")
    assert store.load(SessionKey("session", "abc-1")) == EMPTY


def test_reminders_without_a_state_can_be_erased_by_their_whole_id(folder: Path) -> None:
    (folder / "clock" / file_name("", "only-reminders")).write_text("{}")
    assert clear(folder, "only-reminders") == [file_name("", "only-reminders")]


def test_all_means_every_session_and_nothing_else(folder: Path) -> None:
    from routecodex.routing.config import read

    Overlay(folder, "a").change([("disable", "glm")], read(config_text(), name="c", env={}).registry)
    clear_all(folder)
    left = {path.name for path in folder.rglob("*.json")}
    assert left == {NTP_STATE, "routing-a.json"}


def test_what_models_want_to_be_reminded_of(folder: Path) -> None:
    store = ClockStore(folder)
    for id, due, more in (("@ann:1", 9_000, {}), ("b", 5_000, {}), ("c", 1_000, {"delivered_at_ms": 3})):
        store.update(id, lambda _, id=id, due=due, more=more: [Task("t", id, due, 1, 1, "look\n at it " * 99, **more)])
    found = reminders(folder)
    assert [(one["session"], one["due"]) for one in found] == [("b", 5.0), ("@ann:1", 9.0)]
    assert len(str(found[0]["task"])) <= 200
    assert str(found[0]["task"]).endswith("…")
    assert [one["session"] for one in reminders(folder, "ann")] == ["@ann:1"]
    assert reminders(folder / "nowhere") == []
