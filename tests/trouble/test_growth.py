"""A proxy that runs for months sees thousands of conversations that set nothing: a few hundred bytes of each stay."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from routecodex.routing.clients.typed import typed_messages
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.sessions.newest import Seen, newest_of
from routecodex.routing.sessions.state import EMPTY, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.turn.hidden_store import HiddenStore
from tests.routing.sessions.calls import messages_call, user

SESSIONS = 5000


def growth(work: Callable[[int], object]) -> float:
    """Bytes that stay, for each of many sessions."""
    tracemalloc.start()
    try:
        for number in range(SESSIONS, 2 * SESSIONS):  # what is only kept for a while is full then
            work(number)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(SESSIONS):
            work(number)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / SESSIONS
    finally:
        tracemalloc.stop()


def key(number: int) -> SessionKey:
    return SessionKey("session", f"a-session-of-somebody-{number}")


@pytest.mark.parametrize("store", ["states", "history", "clock"])
def test_a_session_that_set_nothing_costs_no_memory(store: str, tmp_path: Path) -> None:
    states, history, clock = FileStore(tmp_path), HiddenStore(tmp_path), ClockStore(tmp_path)
    look: Callable[[int], object] = {
        "states": lambda number: states.load(key(number)),
        "history": lambda number: history.load(key(number)),
        "clock": lambda number: clock.waiting(key(number).id),
    }[store]
    assert growth(look) < 100  # it was 270


def test_a_session_that_was_emptied_costs_no_memory(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.update(key(1), lambda state: state.with_(stop=StopMessage("go", 3)))
    assert len(store._files._known) == 1
    store.update(key(1), lambda state: EMPTY)
    assert store.load(key(1)) == EMPTY
    assert len(store._files._known) == 0


def test_what_was_typed_is_not_kept() -> None:
    """Only as much of it as tells whether it is the same."""

    def seen(number: int) -> Seen | None:
        typed = typed_messages(messages_call(user(f"{number} " + "a long text " * 1000)))
        return newest_of(list(typed), None)[1]

    kept: list[Seen | None] = []
    assert growth(lambda number: kept.append(seen(number)) if number < SESSIONS else None) < 500  # it was 12,000
