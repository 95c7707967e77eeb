"""What many tasks cost a call: ten thousand in its own session, and ten thousand sessions on the disk, through real proxies.

Proxies with and without them take turns, call by call, so that a slow minute of the machine falls on all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest
from msgspec.structs import replace

from routecodex.routing.clock.record import write_record
from routecodex.routing.clock.tasks import Task, Tasks
from routecodex.routing.storage.names import file_name
from tests.bench.__main__ import start_upstream
from tests.bench.load import Side, exchange
from tests.rig.proxy import SCRIPT, Mitmdump

pytestmark = [pytest.mark.system, pytest.mark.long]

MANY = 10_000
CALLS = 2_500
OWN = "5f0c7b5e-0000-4000-8000-00000000be7c"
"""The session of the benchmark's calls."""
OTHERS = tuple(f"session-{number:05}-0000-0000-000000000000" for number in range(MANY))
CONFIG = """
virtualrouter:
  routing: {default: [origin]}
  clock: {enabled: true, tickMs: 5000, ntp: {enabled: false}}
"""
HOUR_MS = 3_600_000
MOST_MORE = 1.5


def far(session: str, count: int) -> Tasks:
    now = round(time.time() * 1000)
    return tuple(
        Task(f"{session[-12:]}-{number:06}", session, now + HOUR_MS + number, now, now, f"look at build number {number} again")
        for number in range(count)
    )


def delivered(session: str, count: int) -> Tasks:
    """They stand before everything else until they are too old."""
    now = round(time.time() * 1000)
    return tuple(replace(task, due_at_ms=now, delivered_at_ms=now, delivery_count=1) for task in far(session, count))


def fill(folder: Path, tasks: Callable[[str, int], Tasks]) -> None:
    clock = folder / "sessions" / "clock"
    clock.mkdir(parents=True, mode=0o700)
    for session, count in ((OWN, MANY), *((session, 3) for session in OTHERS)):
        (clock / file_name("", session)).write_bytes(write_record(session, tasks(session, count), 0))


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[list[Side]]:
    with ExitStack() as stack:
        upstream = stack.enter_context(start_upstream())
        players = {"*": (int(str(upstream["plain"])), int(str(upstream["tls"])))}
        found = []
        for name, tasks in (("none", None), ("far", far), ("delivered", delivered)):
            if tasks is not None:
                fill(tmp_path / name, tasks)
            options = [f"ssl_verify_upstream_trusted_ca={upstream['ca']}", "flow_detail=0"]
            proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream=players, options=options, folder=tmp_path / name)
            found.append(Side(name, stack.enter_context(proxy)))
        yield found


async def take_turns(sides: list[Side], requests: Callable[[Side, int], bytes]) -> None:
    try:
        for side in sides:
            await side.connect()
        await asyncio.sleep(3)  # the scan at the start
        for side in sides:
            side.figures["cpu"] = [side.proxy.cpu_s or 0.0]
        for number in range(CALLS):
            for side in sides if number % 2 else sides[::-1]:
                began = time.perf_counter()
                await exchange(side.pipes[0], requests(side, number))
                side.figures.setdefault("ms", []).append((time.perf_counter() - began) * 1000)
        for side in sides:
            side.figures["cpu"].append(side.proxy.cpu_s or 0.0)
    finally:
        for side in sides:
            side.close()


def p99(figures: list[float]) -> float:
    return sorted(figures)[len(figures) * 99 // 100]


def judge(sides: list[Side]) -> None:
    """By what the proxies computed; how long their clients waited is told, and depends on what else the machine does."""
    plain, *others = sides
    for side in others:
        figures, usual = side.figures["ms"], plain.figures["ms"]
        print(f"{side.name}: p50 {median(figures):.2f} ms, without {median(usual):.2f}; p99 {p99(figures):.2f}, {p99(usual):.2f}")
        mine, without = (one.figures["cpu"][1] - one.figures["cpu"][0] for one in (side, plain))
        assert mine <= MOST_MORE * without, f"{side.name}: {mine:.1f} s of CPU for {CALLS} calls, {without:.1f} s without"
        assert "more than 1000 tasks" in side.proxy.log


def test_a_session_with_ten_thousand_tasks(sides: list[Side]) -> None:
    asyncio.run(take_turns(sides, lambda side, number: side.small))
    judge(sides)


def test_each_call_another_of_ten_thousand_sessions(sides: list[Side]) -> None:
    def request(side: Side, number: int) -> bytes:
        return side.small.replace(OWN.encode(), OTHERS[number].encode())

    assert all(len(session) == len(OWN) for session in OTHERS)
    asyncio.run(take_turns(sides, request))
    judge(sides)
