"""A12: the store, the tool and the clock do what a few plain dictionaries do, whatever comes in which order."""

from __future__ import annotations

import dataclasses
import errno
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from routecodex.routing.clock.moment import Moments, utc_text
from routecodex.routing.clock.reminders import deliverable, delivered
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task, Tasks
from routecodex.routing.clock.tool import ToolDesk, answer
from routecodex.routing.storage.disk import Disk
from tests.conftest import LONG

WINDOW = 60_000
RETENTION = 1_200_000
MINUTE, HOUR, TEN_YEARS = 60, 3_600, 315_576_000

SESSION = st.sampled_from(["s1", "S1"])
PROMPT = st.sampled_from(["p1", "p2", ""])
TEXT = st.sampled_from(["look", 'at "the\nbuild"'])
IN_S = st.sampled_from([-30 * MINUTE, -19 * MINUTE, -1, 30, 2 * MINUTE, 2 * MINUTE + 1, HOUR])
TOOL = st.sampled_from(["", "Bash"])
SUFFIX = st.sampled_from(["", ":retry", ":clock_followup", ":clock_hold_followup:retry"])


def due_now(store: ClockStore, session: str, moments: Moments, request: str) -> Tasks:
    now, trusted = moments.now_ms(), moments.trusted_now_ms()
    tasks = store.load(session)
    return tuple(deliverable(tasks, now, trusted, window_ms=WINDOW, retention_ms=RETENTION, request_id=request))


@dataclass(slots=True)
class Plain:
    """A task as the model of the store knows it."""

    id: str
    session: str
    text: str
    due: int
    tool: str
    prompt: str
    guard: str | None
    updated: int
    delivered: int | None = None


class Full(Disk):
    """A disk that can be full."""

    full = False

    def write(self, file: int, data: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(file, data)


class Clock(RuleBasedStateMachine):
    """Two processes share one folder, one wall clock, and nothing else."""

    @initialize()
    def start(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name)
        self.disk = Full()
        self.wall, self.steady = 1_800_000_000, 1_000
        self.apart = self.doubt_s = 0
        self.stores = [ClockStore(self.folder, self.disk) for _ in range(2)]
        self.moments = Moments(lambda: self.wall, lambda: self.steady)
        self.known: list[Plain] = []
        self.requests = self.ids = 1
        self.told: set[tuple[str, int]] = set()
        """What was delivered: a task, and how often it had been asked for anew until then."""
        self.asked: dict[str, int] = {}

    # The model's own reckoning

    @property
    def now(self) -> int:
        return (self.wall - max(self.apart, 0)) * 1000

    @property
    def trusted(self) -> int | None:
        return None if self.doubt_s > 0 else self.wall * 1000

    def of(self, session: str) -> list[Plain]:
        return sorted((task for task in self.known if task.session == session), key=lambda task: task.due)

    def is_gone(self, task: Plain) -> bool:
        return self.trusted is not None and self.trusted > task.due + RETENTION

    # What is done

    def call(self, process: int, session: str, prompt: str = "", **arguments: Any) -> dict[str, Any]:
        self.ids += 1
        return answer(
            arguments,
            ToolDesk(
                store=self.stores[process],
                session_id=session,
                request_id=f"r{self.requests}",
                prompt=prompt,
                moment=self.moments.moment(),
                trusted_now_ms=self.moments.trusted_now_ms(),
                window_ms=WINDOW,
                retention_ms=RETENTION,
                new_id=lambda: f"id{self.ids}",
                ntp={},
            ),
        )

    @rule(process=st.integers(0, 1), session=SESSION, prompt=PROMPT, text=TEXT, in_s=IN_S, tool=TOOL)
    def schedule(self, process: int, session: str, prompt: str, text: str, in_s: int, tool: str) -> None:
        due = (self.now // 60_000 * 60 + in_s) * 1000
        item = {"dueAt": utc_text(due), "task": text, "tool": tool, "arguments": "{}"}
        found = self.call(process, session, prompt, action="schedule", items=[item], taskId="")
        guard = f"r{self.requests}" if self.now >= due - WINDOW else None
        wish = Plain("", session, text, due, tool, prompt, guard, self.now)
        if self.is_gone(wish):
            assert found["ok"] is False
            return
        before = next((task for task in self.of(session) if (task.text, task.due) == (text, due)), None)
        is_same = before is not None and (before.prompt, before.tool) == (prompt, tool) and prompt != ""
        if before is not None and is_same:
            wish = dataclasses.replace(before, guard=guard)
        if self.disk.full and (before is None or dataclasses.replace(wish, id=before.id) != before):
            assert found["ok"] is False
            return
        assert found["ok"] is True
        wish.id = found["scheduled"][0]["taskId"]
        if before is None:
            assert wish.id not in self.asked, "an id is never used twice"
            self.known.append(wish)
        else:
            assert wish.id == before.id
            self.known[self.known.index(before)] = wish
        if not is_same:
            self.asked[wish.id] = self.asked.get(wish.id, 0) + 1

    @rule(process=st.integers(0, 1), session=SESSION, number=st.integers(0, 5))
    def cancel(self, process: int, session: str, number: int) -> None:
        id = self.known[number].id if number < len(self.known) else "nobody"
        found = self.call(process, session, action="cancel", items=[], taskId=id)
        mine = [task for task in self.of(session) if task.id == id]
        if self.disk.full and mine and len(self.of(session)) > 1:
            assert found["ok"] is False
            return
        assert found == {"ok": True, "action": "cancel", "removed": id if mine else None}
        self.known = [task for task in self.known if task not in mine]

    @rule(process=st.integers(0, 1), session=SESSION)
    def clear(self, process: int, session: str) -> None:
        found = self.call(process, session, action="clear", items=[], taskId="")
        assert found == {"ok": True, "action": "clear", "removedCount": len(self.of(session))}
        self.known = [task for task in self.known if task.session != session]

    @rule(process=st.integers(0, 1), session=SESSION)
    def list_all(self, process: int, session: str) -> None:
        expected = []
        for task in self.of(session):
            if not self.is_gone(task):
                at = {} if task.delivered is None else {"deliveredAt": utc_text(task.delivered)}
                expected.append({"taskId": task.id, "dueAt": utc_text(task.due), "task": task.text, **at})
        assert self.call(process, session, action="list") == {"ok": True, "action": "list", "items": expected}

    @rule()
    def next_request(self) -> None:
        self.requests += 1

    @rule(process=st.integers(0, 1), session=SESSION, suffix=SUFFIX, answered=st.booleans())
    def remind(self, process: int, session: str, suffix: str, answered: bool) -> None:
        """A round of the current request; its answer may fail before it has begun."""
        found = due_now(self.stores[process], session, self.moments, f"r{self.requests}{suffix}")
        expected = [
            task
            for task in self.of(session)
            if self.now >= task.due - WINDOW
            and not self.is_gone(task)
            and task.delivered is None
            and task.guard != f"r{self.requests}"
        ]
        assert [task.task_id for task in found] == [task.id for task in expected]
        if answered and not self.disk.full and found:
            self.commit(process, session, found, expected)

    def commit(self, process: int, session: str, found: Tasks, expected: list[Plain]) -> None:
        ids = {task.task_id for task in found}
        self.stores[process].update(session, lambda tasks: delivered(tasks, ids, self.now))
        for task in expected:
            time = (task.id, self.asked[task.id])
            assert time not in self.told, "delivered twice"
            assert self.now >= task.due - WINDOW, "delivered early"
            self.told.add(time)
            task.delivered = self.now

    # What happens

    @rule(process=st.integers(0, 1))
    def tick(self, process: int) -> None:
        gone = [task for task in self.known if self.is_gone(task)]
        removed = self.stores[process].sweep(self.moments.trusted_now_ms(), RETENTION)
        if self.disk.full:  # a session that loses all its tasks needs no room
            gone = [task for task in gone if all(self.is_gone(other) for other in self.of(task.session))]
        assert removed == len(gone)
        self.known = [task for task in self.known if task not in gone]

    @rule(process=st.integers(0, 1))
    def restart(self, process: int) -> None:
        self.stores[process] = ClockStore(self.folder, self.disk)

    @rule()
    def restart_the_clock(self) -> None:
        """A new process knows no other time than what the wall clock says."""
        self.moments = Moments(lambda: self.wall, lambda: self.steady)
        self.apart = self.doubt_s = 0

    @rule(seconds=st.sampled_from([1, 29, 59, 60, 61, 20 * MINUTE, HOUR]))
    def pass_by(self, seconds: int) -> None:
        self.wall += seconds
        self.steady += seconds
        self.doubt_s -= seconds
        if self.doubt_s <= 0:
            self.apart = 0

    @rule(seconds=st.sampled_from([HOUR, -HOUR, TEN_YEARS, -TEN_YEARS]))
    def jump(self, seconds: int) -> None:
        if not 10**9 < self.wall + seconds < 5 * 10**9:
            return
        self.wall += seconds
        self.apart += seconds
        self.doubt_s = MINUTE

    @precondition(lambda self: self.apart)
    @rule()
    def jump_back(self) -> None:
        self.wall -= self.apart
        self.apart = 0
        self.doubt_s = MINUTE

    @rule(full=st.booleans())
    def fill(self, full: bool) -> None:
        self.disk.full = full

    # What always holds

    @invariant()
    def time_is_what_it_is(self) -> None:
        if hasattr(self, "moments"):
            assert self.moments.now_ms() == self.now
            assert self.moments.trusted_now_ms() == self.trusted

    @invariant()
    def every_process_sees_the_same(self) -> None:
        for session in ("s1", "S1") if hasattr(self, "stores") else ():
            expected = [(task.id, task.due, task.text, task.delivered, task.guard) for task in self.of(session)]
            for store in self.stores:
                tasks = store.load(session)
                told = [
                    (task.task_id, task.due_at_ms, task.task, task.delivered_at_ms, task.not_before_request_id) for task in tasks
                ]
                assert told == expected
                assert all(task.delivery_count == (task.delivered_at_ms is not None) for task in tasks)

    @invariant()
    def nothing_lies_about(self) -> None:
        if hasattr(self, "stores"):
            names = {path.name for path in (self.folder / "clock").glob("*") if path.is_file()}
            assert len(names) == len({task.session for task in self.known})
            assert not any(name.endswith((".tmp", ".corrupt")) for name in names)
            warnings = [warning for store in self.stores for warning in store.warnings]
            assert all("No space left on device" in warning for warning in warnings)

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.place.cleanup()


TestClock = Clock.TestCase
TestClock.settings = settings(max_examples=2_000 if LONG else 20, stateful_step_count=50 if LONG else 20, deadline=None)


START = 1_800_000_000


@dataclass(slots=True)
class Night:
    """A server that is called every ten seconds, swept every minute, and whose wall clock is set, or which sleeps."""

    folder: Path
    error: int = 0
    """How wrong the wall clock is."""
    true: int = START
    steady: int = 0
    told: list[tuple[str, int]] = field(default_factory=list)
    """Which task was delivered, and when in truth."""

    store: ClockStore = field(init=False)
    moments: Moments = field(init=False)

    def __post_init__(self) -> None:
        self.store = ClockStore(self.folder)
        self.moments = Moments(lambda: self.true + self.error, lambda: self.steady)

    def plan(self, due: Iterable[int]) -> None:
        tasks = [Task(f"t{at}", "s1", at * 1000, 0, 0, "look") for at in due]
        self.store.update("s1", lambda _: tasks)

    def goes_on(self, seconds: int) -> None:
        for _ in range(seconds // 10):
            self.true += 10
            self.steady += 10
            if self.steady % 60 == 0:
                self.store.sweep(self.moments.trusted_now_ms(), RETENTION)
            due = due_now(self.store, "s1", self.moments, "r")
            ids = {task.task_id for task in due}
            self.told += [(task.task_id, self.true) for task in due]
            self.store.update("s1", lambda tasks, ids=ids: delivered(tasks, ids, self.moments.now_ms()))

    def judge(self, due: Iterable[int], *, late: int, since: int = START) -> None:
        told = dict(self.told)
        assert len(told) == len(self.told), "doubled"
        for at in due:
            assert f"t{at}" in told, "lost"
            assert at - 60 <= told[f"t{at}"], "early"
            assert told[f"t{at}"] <= max(at - 60, since) + 10 + late, "late"


DUE = range(START - 15 * MINUTE, START + 40 * MINUTE, 30)


@pytest.mark.parametrize("wrong_for", [10, 50])
@pytest.mark.parametrize("error", [HOUR, -HOUR, TEN_YEARS, -TEN_YEARS])
def test_s13_a_wall_clock_that_is_wrong_for_a_while(tmp_path: Path, error: int, wrong_for: int) -> None:
    night = Night(tmp_path)
    night.plan(DUE)
    for _ in range(5):
        night.goes_on(120)
        night.error = error
        night.goes_on(wrong_for)
        night.error = 0
    night.goes_on(40 * MINUTE)
    night.judge(DUE, late=0 if error > 0 else wrong_for)
    night.goes_on(30 * MINUTE)
    assert night.store.load("s1") == (), "what was delivered is swept in the end"


@pytest.mark.parametrize("steady_too", [True, False])
def test_s13_a_night_asleep(tmp_path: Path, steady_too: bool) -> None:
    night = Night(tmp_path)
    wakes = START + 5 * MINUTE + 8 * HOUR
    before = range(START - 15 * MINUTE, START + 5 * MINUTE, 30)
    after = range(wakes - 15 * MINUTE, wakes + 20 * MINUTE, 30)
    night.plan([*before, *after])
    night.goes_on(5 * MINUTE)
    night.true += 8 * HOUR
    night.steady += 8 * HOUR if steady_too else 0
    night.goes_on(30 * MINUTE)
    night.judge(before, late=0)
    night.judge(after, late=0 if steady_too else MINUTE, since=wakes)


@pytest.mark.parametrize("behind", [HOUR, TEN_YEARS])
def test_s13_a_wall_clock_that_is_set_forward_for_good(tmp_path: Path, behind: int) -> None:
    """From then on it is the truth: what was due meanwhile comes, and nothing comes before its time."""
    night = Night(tmp_path, error=-behind)
    due = range(START - 15 * MINUTE, START + 40 * MINUTE, 30)
    night.plan(due)
    night.error = 0
    night.goes_on(40 * MINUTE)
    night.judge(due, late=MINUTE)


@pytest.mark.parametrize("ahead", [HOUR, TEN_YEARS])
def test_s13_a_wall_clock_that_is_set_back_for_good(tmp_path: Path, ahead: int) -> None:
    """What was planned by the wrong time is not due for long, and waits."""
    night = Night(tmp_path, error=ahead)
    due = range(START + ahead + 2 * MINUTE, START + ahead + 30 * MINUTE, 30)
    night.plan(due)
    night.error = 0
    night.goes_on(50 * MINUTE)
    assert night.told == []
    assert len(night.store.load("s1")) == len(due)
    if ahead == HOUR:
        night.goes_on(HOUR)
        night.judge(due, late=0)
