"""The clock on the lifecycle (C): what each round is sent, what is committed and when, what a held answer becomes."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.clock.plugin import HOLD_SUFFIX, ClockSwitchedOff
from routecodex.routing.clock.record import Record, read_record
from routecodex.routing.clock.reminders import MOST_AT_ONCE, Reservations
from routecodex.routing.config.values import Clock
from routecodex.routing.errors import StoreError
from routecodex.routing.storage.cached import CachedFolder
from routecodex.routing.storage.disk import Disk
from routecodex.routing.turn.plugins import STOP_FOLLOWUP, AfterRequest, Plugin, PluginFailed, TurnInfo, UserText
from routecodex.routing.values import Caller, Dialect, Kind
from tests.routing.clock.playing import FAILS, LEAVES, SESSION, House, Played, calls_clock, said
from tests.routing.turn.acting import tcall, tturn

REMINDER, TAG = "[Clock Reminder]", "[Time/Date]:"
HERE, NOBODY = Caller("test", Kind.MAIN, SESSION), Caller("test", Kind.MAIN)
BASH = {"name": "Bash", "input_schema": {"type": "object"}}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def counts(sent: list[str], mark: str) -> list[int]:
    return [body.count(mark) for body in sent]


def offered(body: dict[str, Any]) -> bool:
    return any(tool["name"] == "clock" for tool in body.get("tools", ()))


# ---- who takes part ----


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_1a_only_main_calls(house: House, kind: Kind) -> None:
    assert house.plugin.wants(tturn(kind=kind)) is (kind is Kind.MAIN)


def test_1a_not_where_structured_output_is_demanded_nor_in_a_compaction(house: House) -> None:
    structured = tcall(output_config={"format": {"type": "json_schema"}})
    compaction = tcall(messages=[{"role": "user", "content": "Context checkpoint compaction: sum it up"}])
    assert not house.plugin.wants(tturn(structured))
    assert not house.plugin.wants(tturn(compaction))


# ---- the first round ----


@pytest.mark.parametrize("dialect", list(Dialect), ids=str)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_c06_c28_c31_c36_a_reminder_and_the_time(tmp_path: Path, dialect: Dialect, stream: bool) -> None:
    house = House(tmp_path)
    house.task("look", 30)
    answer = said("let me see", dialect=dialect, own=[calls_clock("get")])
    played = house.play(answer, said("done", dialect=dialect), call=tcall(dialect, stream=stream))
    assert counts(played.sent, REMINDER) == counts(played.sent, TAG) == [1, 0]
    assert played.sent[0].index(REMINDER) < played.sent[0].index(TAG)
    assert counts(played.sent, '"clock"')[0] > 0
    assert played.suffixes == [":clock_followup"]
    assert house.delivered == {"look": 1}
    assert counts(house.play(said("x", dialect=dialect), call=tcall(dialect, stream=stream), id="turn-2").sent, REMINDER) == [0]


@pytest.mark.parametrize("swept", [False, True])
def test_d31_a_reminder_that_nobody_asked_for_in_time_is_told(house: House, swept: bool) -> None:
    """Not what it says: when it was due."""
    task = house.task("look", -2 * house.settings.retention_ms / 1000)
    if swept:
        house.store.sweep(house.moments.trusted_now_ms(), house.settings.retention_ms)
    assert counts(house.play(said("x")).sent, REMINDER) == [0]
    [cause] = house.lives[-1].turn.tells
    assert cause.id == f"missed {task.task_id}"
    assert "has expired: no call came in time" in cause.sentence
    assert "look" not in cause.sentence


def test_the_earliest_first_and_only_so_many(house: House) -> None:
    first = house.task("t000", 0)
    more = [replace(first, task_id=f"id-{n}", task=f"t{n:03}", due_at_ms=first.due_at_ms - n) for n in range(MOST_AT_ONCE + 3)]
    house.store.update(SESSION, lambda tasks: more)
    played = house.play(said("ok"), said("there are more"))
    assert counts(played.sent, "[scheduled task:") == [MOST_AT_ONCE, 3]
    assert played.sent[0].index("t102") < played.sent[0].index("t050")
    assert len(house.delivered) == MOST_AT_ONCE + 3


FREE = {
    "no session": {"session": None},
    "a session that only its beginning tells": {"derived": True},
    "another session": {"session": "other"},
    "tools are forced": {"call": tcall(tool_choice={"type": "any"}, tools=[BASH])},
    "the client has its own clock": {"call": tcall(tools=[{"name": "clock", "input_schema": {"type": "object"}}])},
    "the model is to go on with its own words": {
        "call": tcall(messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "{"}])
    },
}


@pytest.mark.parametrize("name", FREE)
def test_c31_calls_without_a_reminder(house: House, name: str) -> None:
    house.task("look", 30)
    house.task("later", 60.5)
    played = house.play(said("ok"), **FREE[name])
    assert counts(played.sent, REMINDER) == [0]
    assert counts(played.sent, TAG) == [0 if "own words" in name else 1]
    assert house.delivered == {}


def test_12_sessions_known_by_their_beginning_where_that_is_asked_for(tmp_path: Path) -> None:
    house = House(tmp_path, derived_too=True)
    house.task("look", 30)
    assert counts(house.play(said("ok"), derived=True).sent, REMINDER) == [1]


def test_19a_a_target_without_tools_still_reminds(house: House) -> None:
    house.task("look", 30)
    played = house.play(said("ok"), able=False)
    assert not offered(played.bodies[0])
    assert counts(played.sent, REMINDER) == [1]
    assert played.notes[0] == "tools of ours are left out: the target takes no tools"


@pytest.mark.parametrize("guard, expected", [("turn-1", 0), ("turn", 1), ("turn-1:x", 1)])
def test_c05_not_in_the_request_that_scheduled_it(house: House, guard: str, expected: int) -> None:
    house.task("look", 30, not_before_request_id=guard)
    assert counts(house.play(said("ok")).sent, REMINDER) == [expected]


# ---- reserved, committed, given up ----


@pytest.mark.parametrize("ending", [FAILS, LEAVES])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_c07_what_ends_before_its_content_is_given_up(house: House, ending: str, stream: bool) -> None:
    house.task("look", 30)
    assert counts(house.play(ending, call=tcall(stream=stream)).sent, REMINDER) == [1]
    assert house.delivered == {}
    assert counts(house.play(said("ok"), id="turn-2").sent, REMINDER) == [1]
    assert house.delivered == {"look": 1}
    assert "not delivered; a later call brings them" in house.told["turn-1"][-1]


def test_c07_a_hook_of_another_plugin_that_fails(tmp_path: Path) -> None:
    class Broken(Plugin):
        async def on_before_request(self, turn: TurnInfo, request: object) -> None:
            raise ValueError

    house = House(tmp_path, later=[Broken()])
    house.task("look", 30)
    with pytest.raises(PluginFailed):
        house.play(said("ok"))
    assert house.delivered == {}
    house.later = []
    assert counts(house.play(said("ok"), id="turn-2").sent, REMINDER) == [1]


def test_20_committed_while_the_answer_still_streams(house: House) -> None:
    house.task("look", 30)

    async def begun() -> None:
        for _ in range(100):
            if house.delivered:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("not committed")

    house.play(said("ok"), begun=begun)
    assert house.delivered == {"look": 1}


def test_20_parallel_calls_of_one_session(house: House) -> None:
    house.task("look", 30)

    async def both() -> list[int]:
        async def other() -> None:
            inner.append((await house.played(said("two"), id="turn-2")).sent[0].count(REMINDER))

        inner: list[int] = []
        outer = await house.played(said("one"), begun=other)
        return [outer.sent[0].count(REMINDER), *inner]

    assert asyncio.run(both()) == [1, 0]
    assert house.delivered == {"look": 1}


class Full(Disk):
    """Nothing more can be written."""

    full = False

    def write(self, file: int, data: bytes) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(file, data)


def test_20_what_cannot_be_committed_is_not_delivered_again(tmp_path: Path) -> None:
    disk = Full()
    house = House(tmp_path, disk=disk)
    house.task("look", 30)
    disk.full = True
    played = house.play(said("ok"))
    assert (played.status, counts(played.sent, REMINDER)) == ("completed", [1])
    assert "could not be written" in house.told["turn-1"][-1]
    assert counts(house.play(said("ok"), id="turn-2").sent, REMINDER) == [0]
    disk.full = False
    assert house.delivered == {}


def test_a_store_that_cannot_be_read_costs_the_reminder_alone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(folder: object, *_: object) -> None:
        raise StoreError("The session file clock/s1.json could not be read: I/O error")

    for name in ("read", "at_hand"):
        monkeypatch.setattr(CachedFolder, name, fails)
    played = house.play(said("ok"))
    assert (played.status, counts(played.sent, TAG)) == ("completed", [1])
    assert house.told["turn-1"][0].startswith("clock: no reminders, The session file")
    assert "could not be read" in house.plugin.status(HERE)


def test_a_large_file_is_read_where_nobody_waits_for_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that carries all calls only looks whether it has changed."""
    for number in range(3):
        house.task(f"task {number} " + "x" * 10_000, 30)
    house.watch.store._files._known.clear()  # as after a start
    in_the_loop: list[bool] = []

    def read(raw: bytes, session: str) -> Record:
        in_the_loop.append(threading.current_thread() is threading.main_thread())
        return read_record(raw, session)

    monkeypatch.setattr("routecodex.routing.clock.store.read_record", read)
    assert counts(house.play(said("ok")).sent, "[scheduled task") == [3]
    assert list(house.delivered.values()) == [1, 1, 1]
    assert in_the_loop
    assert not any(in_the_loop)


class Slow:
    """Claims that take a while: meanwhile the client leaves, and its turn is over."""

    waits = True

    def __init__(self) -> None:
        self.asked: Callable[[], None] = lambda: None
        self.answers = threading.Event()
        self.held: set[str] = set()

    def take(self, task_id: str) -> bool:
        self.asked()
        assert self.answers.wait(60)
        self.held.add(task_id)
        return True

    def give_back(self, task_id: str) -> None:
        self.held.discard(task_id)


def test_what_is_reserved_for_a_client_that_has_left_is_given_up(tmp_path: Path) -> None:
    """Held for ever, it would never be delivered."""
    claims = Slow()
    house = House(tmp_path, reservations=Reservations(claims))
    task = house.task("look", 30)

    async def leaves() -> Played:
        loop = asyncio.get_running_loop()
        claims.asked = lambda: loop.call_soon_threadsafe(house.lives[-1].abort) and None
        played = await house.played(LEAVES)
        assert house.reservations.is_reserved(task), "it is on its way"
        claims.answers.set()
        await asyncio.sleep(1)
        return played

    assert house.clock.run(leaves()).status == "aborted"
    assert not house.reservations.is_reserved(task)
    assert not claims.held
    claims.asked = lambda: None
    assert counts(house.play(said("ok"), id="turn-2").sent, "[scheduled task") == [1]


def test_c10_cleared_between_reservation_and_commit(house: House) -> None:
    house.task("look", 30)

    async def clear() -> None:
        house.plugin.clear(HERE)

    played = house.play(said("ok"), begun=clear)
    assert (played.status, house.store.load(SESSION)) == ("completed", ())
    house.task("look", 40)
    assert counts(house.play(said("ok"), id="turn-2").sent, REMINDER) == [1], "nothing of the old one is left"


# ---- hold ----

SOON = Clock(due_window_ms=60_000, hold_max_ms=3_000)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_c23_c36_held_and_followed_up(tmp_path: Path, stream: bool, finish: str) -> None:
    house = House(tmp_path, SOON)
    house.task("look", 60.6)
    began = house.clock.now
    played = house.play(said("set", finish=finish), said("I looked"), call=tcall(stream=stream))
    assert house.clock.now - began == pytest.approx(0.6, abs=0.1), "held until it is due"
    assert played.suffixes == [HOLD_SUFFIX]
    assert counts(played.sent, REMINDER) == [0, 1]
    assert counts(played.sent, TAG) == [1, 0]
    assert house.delivered == {"look": 1}


def test_22_one_after_the_other(tmp_path: Path) -> None:
    house = House(tmp_path, SOON)
    house.task("one", 60.3)
    house.task("two", 61.2)
    played = house.play(said("set"), said("first"), said("second"))
    assert counts(played.sent, "[scheduled task:") == [0, 1, 2], "the first one stays in the history"
    assert house.delivered == {"one": 1, "two": 1}


NOT_HELD: dict[str, tuple[float, Clock, dict[str, Any], Any]] = {
    "c24 far away": (600, SOON, {}, said("set")),
    "c25 json, forbidden": (60.5, Clock(hold_non_streaming=False), {"call": tcall(stream=False)}, said("set")),
    "refused": (60.5, SOON, {}, said("set", finish="content_filter")),
    "no session": (60.5, SOON, {"session": None}, said("set")),
    "c05 kept back from this request": (30, SOON, {}, said("set")),
    "the model has no tool": (60.5, SOON, {"call": tcall(tool_choice={"type": "none"})}, said("set")),
}


@pytest.mark.parametrize("name", NOT_HELD)
def test_22_not_held(tmp_path: Path, name: str) -> None:
    in_s, settings, how, answer = NOT_HELD[name]
    house = House(tmp_path, settings)
    house.task("look", in_s, **({"not_before_request_id": "turn-1"} if name.startswith("c05") else {}))
    began = house.clock.now
    assert house.play(answer, **how).suffixes == []
    assert house.clock.now == began, "it was held"
    assert house.delivered == {}


def test_c07_c36_a_held_round_that_fails_is_given_up(tmp_path: Path) -> None:
    for stream in (True, False):
        house = House(tmp_path / str(stream), SOON)
        house.task("look", 60.3)
        played = house.play(said("set"), FAILS, call=tcall(stream=stream))
        assert (played.status, counts(played.sent, REMINDER)) == ("completed", [0, 1])
        assert house.delivered == {}
        assert counts(house.play(said("ok"), id="turn-2").sent, REMINDER) == [1]


class Asks(Plugin):
    def __init__(self, times: int, suffix: str) -> None:
        self.left, self.suffix = times, suffix

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        if self.left:
            self.left -= 1
            after.append_and_request(UserText("carry on"))


@pytest.mark.parametrize("suffix, held", [(STOP_FOLLOWUP, []), (":other_followup", [HOLD_SUFFIX])])
def test_m32_whoever_is_asked_first_goes_on_first(tmp_path: Path, suffix: str, held: list[str]) -> None:
    """And once it has spoken for the person, the turn is not held at all: the next call brings the reminder."""
    house = House(tmp_path, SOON, others=[Asks(2, suffix)])
    house.task("look", 60.2)
    played = house.play(said("one"), said("two"), said("three"), said("four"))
    assert played.suffixes == [suffix, suffix, *held]
    assert house.delivered == ({"look": 1} if held else {})


@pytest.mark.parametrize("how", ["cleared", "cancelled", "delivered elsewhere", "a nearer one comes"])
def test_c26_what_changes_meanwhile(tmp_path: Path, how: str) -> None:
    house = House(tmp_path, SOON)
    house.task("look", 62.5)

    async def change() -> None:
        await asyncio.sleep(0.4)
        match how:
            case "cleared":
                house.plugin.clear(HERE)
            case "cancelled":
                house.store.update(SESSION, lambda tasks: ())
            case "delivered elsewhere":
                found = house.watch.reservations.reserve("other", SESSION, lambda: house.store.load(SESSION))
                assert found is not None
                house.watch.commit(found)
            case _:
                house.task("near", 60.1)

    async def both() -> tuple[Any, float]:
        began = house.clock.now
        played, _ = await asyncio.gather(house.played(said("set"), said("x"), said("y")), change())
        return played, house.clock.now - began

    played, took = house.clock.run(both())
    if how == "a nearer one comes":
        assert played.sent[1].count("near") == 1
    else:
        assert played.suffixes == []
        assert 0.3 < took < 1.2
        assert "no longer held, nothing is left to wait for" in house.told["turn-1"][-1]


def test_c26_the_client_leaves_while_it_is_held(tmp_path: Path) -> None:
    house = House(tmp_path, SOON)
    house.task("look", 62)

    async def leaving() -> float:
        playing = asyncio.ensure_future(house.played(said("set"), said("never")))
        await asyncio.sleep(0.4)
        began = house.clock.now
        house.lives[-1].abort()
        assert (await playing).status == "aborted"
        return house.clock.now - began

    assert house.clock.run(leaving()) < 0.2
    assert house.delivered == {}
    assert not house.watch.reservations.is_reserved(house.store.load(SESSION)[0])


# ---- tool and tags ----


def test_7_logs_hold_no_text(house: House) -> None:
    due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    item = {"dueAt": due, "task": "very secret", "tool": "", "arguments": "{}"}
    house.play(said("", own=[calls_clock("schedule", items=[item])]), said("ok"))
    house.task("very secret too", 10)
    house.play(said("ok"), id="turn-2")
    house.plugin.clear(HERE)
    lines = [*house.told["turn-1"], *house.told["turn-2"], *house.lines]
    assert lines[0].startswith(f"clock schedule: ok, session {SESSION}, 1 task, the earliest due 20")
    assert lines[1] == f"clock: request turn-2, session {SESSION}: 1 task due, id-very secret too"
    assert lines[2] == "clock: request turn-2: 1 task delivered, id-very secret too (delivery 1)"
    assert lines[3] == f"clock:clear: session {SESSION}, 1 task removed"
    assert not any("very secret" in line.replace("id-very secret too", "") for line in lines)


def test_c10_c22_clear(house: House) -> None:
    house.task("one", 10)
    house.task("two", 4000)
    house.task("three", -10, delivered_at_ms=1, delivery_count=1)
    assert house.plugin.status(HERE).startswith("Clock: 2 tasks, the earliest due 20")
    assert house.plugin.clear(HERE) == "The clock's tasks are cleared: 2."
    assert not list(house.folder.glob("clock/*.json"))
    assert house.plugin.status(HERE) == "Clock: no tasks."
    assert house.plugin.clear(HERE) == "The clock's tasks are cleared: 0."
    assert "names no session" in house.plugin.clear(NOBODY)
    assert "names no session" in house.plugin.status(NOBODY)


def test_c02_switched_off(house: House) -> None:
    off = ClockSwitchedOff(house.watch)
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "clock", "input": {}}]}
    asked: list[Any] = [{"role": "user", "content": "hi"}]
    assert not off.wants(tturn(tcall(messages=asked)))
    known = tcall(messages=[*asked, called, *asked])
    assert off.wants(tturn(known))
    assert not off.wants(tturn(known, kind=Kind.TITLE))
    assert not off.wants(tturn(tcall(messages=[*asked, called], tools=[{"name": "clock", "input_schema": {}}])))
    house.plugin = off  # type: ignore[assignment]
    played = house.play(said("", own=[calls_clock("get")]), said("ok"), call=known)
    assert not offered(played.bodies[0])
    assert counts(played.sent, TAG) == [0, 0]
    result = json.loads(played.bodies[1]["messages"][-1]["content"][0]["content"])  # type: ignore[index]
    assert result["ok"] is False
    assert "virtualrouter.clock.enabled" in result["message"]
