"""States that lie in a store: known as they were read, changed there."""

from __future__ import annotations

from pathlib import Path

from routecodex.routing.sessions.shared import SharedStates, name_of
from routecodex.routing.sessions.state import EMPTY, SessionState, Sticky
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.storage.contract import NEVER, Key, Kind, Put
from routecodex.routing.storage.shared_file import SharedFile
from tests.routing.house import done, inline

KEY = SessionKey("session", "a")
SHELF = Key(Kind.STATE, name_of(KEY))
STUCK = EMPTY.with_(sticky=Sticky("p", model="m"), client="tool")


def opened(folder: Path) -> tuple[SharedStates, SharedFile]:
    store = SharedFile(folder, inline, wall=lambda: 1.0)
    return SharedStates(store), store


def read(states: SharedStates, store: SharedFile) -> SessionState:
    asked = states.known.wanted(name_of(KEY))
    states.known.heard(name_of(KEY), done(store.read([asked]))[0])
    return states.load(KEY)


def test_what_one_changes_the_other_reads(tmp_path: Path) -> None:
    (one, _), (other, store) = opened(tmp_path), opened(tmp_path)
    assert done(one.change(KEY, lambda state: STUCK, inline)) == STUCK
    assert one.load(KEY) == STUCK
    assert other.load(KEY) == EMPTY, "not asked yet"
    assert (read(other, store), other.load(KEY).client) == (STUCK, "tool")


def test_a_change_sees_what_is_there_not_what_was_known(tmp_path: Path) -> None:
    (one, _), (other, store) = opened(tmp_path), opened(tmp_path)
    done(one.change(KEY, lambda state: STUCK, inline))
    now = done(other.change(KEY, lambda state: state.with_(allowed=("q",)), inline))
    assert now == STUCK.with_(allowed=("q",))
    assert read(other, store) == now


def test_an_empty_state_is_none(tmp_path: Path) -> None:
    states, store = opened(tmp_path)
    done(states.change(KEY, lambda state: STUCK, inline))
    done(states.change(KEY, lambda state: EMPTY, inline))
    assert done(store.scan(Kind.STATE)) == []
    assert read(states, store) == EMPTY


def test_damage_costs_what_cannot_be_read(tmp_path: Path) -> None:
    states, store = opened(tmp_path)
    done(states.change(KEY, lambda state: STUCK, inline))
    (found,) = done(store.read([(SHELF, NEVER)]))
    raw = dict(found.entries)[""]
    done(store.put([Put(SHELF, "", raw[:-20])]))
    assert read(states, store) == STUCK
    done(store.put([Put(SHELF, "", b"\xff")]))
    assert read(states, store) == EMPTY
