"""An alarm rings after its deadline, again where it moved, and late where the process stood still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from routecodex.addons.alarm import LATE_S, Alarm
from tests.rig.leaping import Leaping

CLOCK = Leaping()


@pytest.fixture(autouse=True)
def leaping(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the alarm reads, and what its loop waits by."""
    monkeypatch.setattr("routecodex.addons.alarm.time", SimpleNamespace(monotonic=CLOCK))


def stand_still(seconds: float) -> None:
    CLOCK.now += seconds


def rung(work: Callable[[Alarm, Callable[[], None]], None], within: float = 20.0) -> list[float]:
    """Seconds after which it rang."""

    async def run() -> list[float]:
        began, rings, alarm = CLOCK.now, list[float](), Alarm()
        work(alarm, lambda: rings.append(CLOCK.now - began))
        await asyncio.sleep(within)
        return rings

    return CLOCK.run(run())


def test_it_rings_once_when_the_time_has_come() -> None:
    assert rung(lambda alarm, ring: alarm.set(CLOCK.now + 0.1, ring)) == pytest.approx([0.1])


def test_an_end_that_moves_away_leaves_the_earlier_ring() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        for wait in (0.1, 5, 9):
            alarm.set(CLOCK.now + wait, ring)

    assert rung(work) == pytest.approx([0.1])


def test_an_end_that_comes_nearer_is_rung_at() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        for wait in (5, 0.1):
            alarm.set(CLOCK.now + wait, ring)

    assert rung(work) == pytest.approx([0.1])


def test_never_is_no_time() -> None:
    assert rung(lambda alarm, ring: alarm.set(float("inf"), ring)) == []


def test_stopped() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        alarm.set(CLOCK.now + 0.05, ring)
        alarm.stop()

    assert rung(work) == []


def test_after_a_standstill_it_waits_as_long_again() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        alarm.set(CLOCK.now + 0.05, ring)
        stand_still(0.25)

    assert rung(work) == pytest.approx([0.25 + 0.2])


def test_a_loop_that_is_always_late_is_rung_in_all_the_same() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        def busy() -> None:
            stand_still(2 * LATE_S)
            asyncio.get_running_loop().call_soon(busy)

        alarm.set(CLOCK.now + 0.05, ring)
        busy()

    assert len(rung(work)) == 1
