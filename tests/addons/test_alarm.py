"""An alarm rings after its deadline, again where it moved, and late where the process stood still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from routecodex.addons.alarm import LATE_S, Alarm


def rung(work: Callable[[Alarm, Callable[[], None]], None], within: float = 1.0) -> list[float]:
    """Seconds after which it rang."""

    async def run() -> list[float]:
        began, rings, alarm = time.monotonic(), list[float](), Alarm()
        work(alarm, lambda: rings.append(time.monotonic() - began))
        await asyncio.sleep(within)
        return rings

    return asyncio.run(run())


def test_it_rings_once_when_the_time_has_come() -> None:
    (at,) = rung(lambda alarm, ring: alarm.set(time.monotonic() + 0.1, ring), 0.5)
    assert at >= 0.09


def test_an_end_that_moves_away_leaves_the_earlier_ring() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        for wait in (0.1, 5, 9):
            alarm.set(time.monotonic() + wait, ring)

    assert len(rung(work, 0.5)) == 1


def test_an_end_that_comes_nearer_is_rung_at() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        for wait in (5, 0.1):
            alarm.set(time.monotonic() + wait, ring)

    assert len(rung(work, 0.5)) == 1


def test_never_is_no_time() -> None:
    assert rung(lambda alarm, ring: alarm.set(float("inf"), ring), 0.1) == []


def test_stopped() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        alarm.set(time.monotonic() + 0.05, ring)
        alarm.stop()

    assert rung(work, 0.2) == []


def test_after_a_standstill_it_waits_as_long_again() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        alarm.set(time.monotonic() + 0.05, ring)
        time.sleep(0.25)

    (at,) = rung(work)
    assert at >= 0.25 + 0.9 * 0.2


def test_a_loop_that_is_always_late_is_rung_in_all_the_same() -> None:
    def work(alarm: Alarm, ring: Callable[[], None]) -> None:
        def busy() -> None:
            time.sleep(2 * LATE_S)
            asyncio.get_running_loop().call_soon(busy)

        alarm.set(time.monotonic() + 0.05, ring)
        busy()

    assert len(rung(work)) == 1
