"""The benchmark measures what it says, and ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from routecodex.routing import config
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.values import Dialect, Endpoint
from tests.bench import agents
from tests.bench.__main__ import SHIPPED, without_clock
from tests.bench.before import slower
from tests.bench.load import (
    COSTS,
    EVENTS,
    LARGE_BYTES,
    MEASURES,
    ONE,
    ONE_STREAM,
    TWO,
    TWO_STREAM,
    Measure,
    join_chunks,
    make_request,
    per_second,
)
from tests.bench.parts import parts
from tests.rig.proxy import ROOT


@pytest.mark.parametrize("size", [0, LARGE_BYTES])
def test_requests_are_well_formed_and_as_large_as_said(size: int) -> None:
    head, _, body = make_request(size=size, headers=(("x-more", "1"),)).partition(b"\r\n\r\n")
    call = json.loads(body)
    assert b"Content-Length: %d\r\n" % len(body) in head
    assert head.endswith(b"x-more: 1")
    assert [message["role"] for message in call["messages"]] == [
        ("user", "assistant")[n % 2] for n in range(len(call["messages"]))
    ]
    assert abs(len(body) - size) < 5_000
    assert json.loads(make_request(stream=True).partition(b"\r\n\r\n")[2])["stream"] is True


@pytest.mark.parametrize(
    "measure, plain, ours, compared, met",
    [
        pytest.param(MEASURES[0], [2.0, 4.0], [2.2, 4.4], [1.1, 1.1], True, id="a little slower"),
        pytest.param(MEASURES[0], [2.0], [2.4], [1.2], False, id="too slow"),
        pytest.param(MEASURES[1], [1000.0], [950.0], [0.95], True, id="enough calls"),
        pytest.param(MEASURES[1], [1000.0], [800.0], [0.8], False, id="too few calls"),
        pytest.param(MEASURES[-1], [90.0], [129.0], [39.0], True, id="memory within bounds"),
        pytest.param(MEASURES[-1], [90.0], [131.0], [41.0], False, id="too much memory"),
    ],
)
def test_comparing(measure: Measure, plain: list[float], ours: list[float], compared: list[float], met: bool) -> None:
    assert measure.compare(plain, ours) == pytest.approx(compared)
    assert measure.met(compared[0]) is met


def test_the_goals_are_about_what_they_name() -> None:
    assert [measure.limit for measure in MEASURES] == [1.15, 0.9, 1.15, 1.3, 1.3, 1.5, 1.0, 40]
    assert MEASURES[1].take is per_second


def test_joining_chunks() -> None:
    assert join_chunks(b"5\r\ndata:\r\n3\r\n \n\n\r\n0\r\n\r\n") == b"data: \n\n"


def test_what_a_turn_costs() -> None:
    """A second round's fixed cost is no cost of its events."""
    ours = {ONE: [2.0], TWO: [5.0], ONE_STREAM: [EVENTS / 100], TWO_STREAM: [EVENTS / 100 + 3.0 + EVENTS / 50]}
    figures = {"alone": {ONE: [1.5], ONE_STREAM: [EVENTS / 200]}, "ours": ours}
    found = [(cost.unit, cost.without(figures), cost.with_it(figures)) for cost in COSTS]
    assert [unit for unit, *_ in found] == ["ms", "µs", "ms", "µs"]
    assert [without for _, (without,), _ in found] == pytest.approx([1.5, 5.0, 2.0, 10.0])
    assert [with_it for *_, (with_it,) in found] == pytest.approx([2.0, 10.0, 5.0, 20.0])


def test_the_shipped_configuration_without_its_clock() -> None:
    """Nothing else of it changes."""
    shipped = SHIPPED.read_text(encoding="utf-8")
    without = without_clock(shipped)
    assert without is not None
    assert config.read(shipped, name="a", env={}).clock is not None
    assert config.read(without, name="b", env={}).clock is None
    assert len([1 for a, b in zip(shipped.splitlines(), without.splitlines(), strict=True) if a != b]) == 1
    assert without_clock(without) is None


@pytest.mark.system
@pytest.mark.long
def test_plain_against_plain_is_about_one() -> None:
    command = [sys.executable, "-m", "tests.bench", "--rounds", "3", "--script", "tests/bench/plain.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    ratios = [float(line.split(" ×")[0].split()[-1]) for line in done.stdout.splitlines() if " ×" in line]
    assert len(ratios) == 7
    assert all(0.7 < ratio < 1.4 for ratio in ratios), done.stdout


@pytest.mark.parametrize("wrong", [["--rounds", "0"], ["--script", "no-such-file.py"]], ids=["rounds", "script"])
def test_wrong_arguments_are_told(wrong: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.bench", *wrong], cwd=ROOT, capture_output=True, timeout=30, check=False)
    assert done.returncode == 2
    assert b"error:" in done.stderr


def test_every_part_of_the_core_can_be_measured(tmp_path: Path) -> None:
    assert all(part.best_ms(tries=1) > 0 for part in parts(tmp_path))


@pytest.mark.parametrize("row", agents.ROWS, ids=lambda row: row.name)
def test_an_agents_call_is_one_and_as_large_as_said(row: agents.Row) -> None:
    head, _, body = row.make(agents.AGENT, agents.GOES_THERE).partition(b"\r\n\r\n")
    call = read_call(body, Endpoint(Dialect.MESSAGES))
    assert call.stream
    assert call.model == agents.SHORT
    assert f"{agents.AGENT + 0xBE7C:012x}".encode() in head
    size, _, unit = row.name.removeprefix("agent's call of ").partition(" ")[::1]
    if size.replace(".", "").isdigit():
        assert len(body) == pytest.approx(float(size) * (1e6 if unit.startswith("MB") else 1e3), rel=0.1)
    assert row.side in agents.CONFIGS


def test_what_agents_wait_for_is_judged_by_what_is_computed() -> None:
    took = agents.Took(first_ms=90.0, last_ms=99.0, first_cpu_ms=2.0, last_cpu_ms=4.0)
    slower = agents.Took(first_ms=5.0, last_ms=9.0, first_cpu_ms=3.5, last_cpu_ms=5.0)
    row = agents.Row("a row", agents.small, 1, 1.0)
    assert agents.Compared(row, [took, took], [took, took]).met
    assert not agents.Compared(row, [took], [slower]).met
    assert agents.Compared(row, [took], [slower]).more("first_cpu_ms") == 1.5
    assert not agents.Compared(agents.Row("a row", agents.small, 1, most=1.7), [took], [slower]).met
    assert agents.Compared(agents.Row("a row", agents.small, 1, most=1.8), [took], [slower]).met


def test_the_sessions_and_reminders_of_others_are_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "MANY", 3)
    agents.fill(tmp_path)
    for number in range(3):
        assert FileStore(tmp_path).load(SessionKey("session", f"other-{number}")).sticky is not None
        assert len(ClockStore(tmp_path).load(f"other-{number}")) == 1
    assert not [warning for store in (FileStore(tmp_path), ClockStore(tmp_path)) for warning in store.warnings.taken()]
    assert len(config.read(agents.CONFIGS["wide"], name="wide", env={}).registry.providers) >= 200


@pytest.mark.parametrize(
    "measure, now, again, ratio, spread, is_slower",
    [
        pytest.param(MEASURES[0], [1.02] * 5, [1.02] * 5, 1.02, 0.0, False, id="within three per cent"),
        pytest.param(MEASURES[0], [1.04] * 5, [1.04] * 5, 1.04, 0.0, True, id="slower"),
        pytest.param(MEASURES[0], [1.04] * 4, [1.04, 1.04, 1.092, 1.092], 1.04, 0.05, False, id="no more than noise"),
        pytest.param(MEASURES[0], [1.1] * 5, [1.1, 1.1, 1.1, 1.1, 9.0], 1.1, 0.0, True, id="one wild round excuses nothing"),
        pytest.param(MEASURES[1], [0.5] * 5, [0.5] * 5, 2.0, 0.0, True, id="fewer a second"),
    ],
)
def test_slower_than_before(
    measure: Measure, now: list[float], again: list[float], ratio: float, spread: float, is_slower: bool
) -> None:
    found = slower(measure, [1.0] * len(now), now, again)
    assert found == (pytest.approx(ratio), pytest.approx(spread), is_slower)
