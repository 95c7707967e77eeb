"""Reminders of several processes: each is delivered once, by whoever is asked first."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from routecodex.routing.clock.moment import Moments
from routecodex.routing.clock.reminders import Reservation, Reservations
from routecodex.routing.clock.shared import LEASE_S, SharedClaims, SharedTasks
from routecodex.routing.clock.tasks import Task, Tasks
from routecodex.routing.clock.watch import Watch
from routecodex.routing.config.values import Clock as Settings
from routecodex.routing.errors import StoreError
from routecodex.routing.storage.contract import Change, Key, Lost, Version
from routecodex.routing.storage.shared_file import SharedFile
from tests.routing.house import Clock, done, inline

T = TypeVar("T")

SETTINGS = Settings()
S = "session-a"


class Ill(SharedFile):
    """A store that stops answering."""

    lost = False
    does_it_all_the_same = False

    async def change(self, key: Key, change: Change, known: tuple[Version, bytes] | None = None) -> tuple[Version, bytes]:
        if self.lost:
            if self.does_it_all_the_same:
                await SharedFile.change(self, key, change, known)
            raise Lost("gone")
        return await SharedFile.change(self, key, change, known)


@dataclass
class Process:
    folder: Path
    clock: Clock
    name: str
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        def bridge(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
            return done(work())

        self.store = Ill(self.folder, inline, wall=lambda: self.clock.epoch)
        self.tasks = SharedTasks(self.folder / self.name, self.store, bridge)
        self.claims = SharedClaims(self.store, bridge, self.name, self.notes.append)
        moments = Moments(lambda: self.clock.epoch, lambda: self.clock.now, timezone="UTC")
        self.watch = Watch(self.tasks, moments, Reservations(self.claims), lambda: "id", dict)

    def schedule(self, *names: str) -> None:
        due = round(self.clock.epoch * 1000)
        self.tasks.update(S, lambda tasks: (*tasks, *(Task(name, S, due, due, due, f"do {name}") for name in names)))

    def reserve(self, request: str) -> Reservation | None:
        return self.watch.reserve(S, request, SETTINGS)


Pair = tuple[Process, Process]


@pytest.fixture
def two(tmp_path: Path) -> Pair:
    clock = Clock()
    return Process(tmp_path, clock, "one"), Process(tmp_path, clock, "other")


def ids(tasks: Tasks) -> set[str]:
    return {task.task_id for task in tasks}


def test_what_one_schedules_the_other_delivers_once(two: Pair) -> None:
    one, other = two
    one.schedule("a", "b")
    found = other.reserve("r1")
    assert found is not None
    assert set(found.task_ids) == {"a", "b"}
    assert one.reserve("r2") is None, "somebody is about to"
    delivered = other.watch.commit(found)
    assert not isinstance(delivered, StoreError)
    assert ids(delivered) == {"a", "b"}
    done(other.claims.keep(renews=False))
    assert one.reserve("r3") is None
    assert [task.delivery_count for task in one.tasks.load(S)] == [1, 1]


def test_what_was_given_up_comes_with_the_next_call(two: Pair) -> None:
    one, other = two
    one.schedule("a")
    found = one.reserve("r1")
    assert found is not None
    one.watch.reservations.give_up(found)
    assert one.reserve("r2") is not None, "here at once"
    one.watch.reservations.give_up(found)
    one.watch.reservations.drop(S)
    done(one.claims.keep(renews=False))
    assert other.reserve("r3") is not None


def test_a_lease_that_is_renewed_lasts(two: Pair) -> None:
    one, other = two
    one.schedule("a")
    assert one.reserve("r1") is not None
    for _ in range(10):
        one.clock.passes(LEASE_S - 1)
        done(one.claims.keep(renews=True))
        assert other.reserve("r2") is None


def test_who_dies_lets_go_and_who_thaws_says_so(two: Pair) -> None:
    one, other = two
    one.schedule("a")
    mine = one.reserve("r1")
    assert mine is not None
    one.clock.passes(LEASE_S + 1)
    found = other.reserve("r2")
    assert found is not None
    assert ids(other.watch.commit(found)) == {"a"}  # type: ignore[arg-type]
    done(one.claims.keep(renews=True))
    assert len(one.notes) == 1
    assert "another process" in one.notes[0]
    assert one.watch.commit(mine) == (), "it is counted once"


def test_while_nobody_answers_nothing_is_delivered(two: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    one.schedule("a")

    async def lost(*_: object) -> frozenset[str]:
        raise Lost("gone")

    monkeypatch.setattr(one.store, "claim", lost)
    assert one.reserve("r1") is None


@pytest.mark.parametrize("was_done", [True, False])
def test_a_delivery_that_could_not_be_written_is_written_later(two: Pair, was_done: bool) -> None:
    """Whether the store did it all the same: marked twice, it is counted once."""
    one, other = two
    one.schedule("a")
    found = one.reserve("r1")
    assert found is not None
    one.store.lost, one.store.does_it_all_the_same = True, was_done
    assert isinstance(one.watch.commit(found), StoreError)
    assert other.reserve("r2") is None, "it stays reserved"
    one.store.lost = False
    one.watch.write_unwritten()
    assert [task.delivery_count for task in other.tasks.load(S)] == [1]
    done(one.claims.keep(renews=True))
    assert other.reserve("r3") is None


def test_nobody_has_tasks_without_a_file(two: Pair) -> None:
    one, other = two
    one.schedule("a")
    assert one.watch.clear(S, SETTINGS.retention_ms) == 1
    assert other.tasks.load(S) == other.tasks.waiting(S) == ()
