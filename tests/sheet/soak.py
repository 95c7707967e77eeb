"""R12's day: 20 streams at a time for as long as SOAK_S says. The slope is told with the time it was measured over.

Before that what the proxy remembers of 10,000 conversations and messages, and of as many that obeyed a tag, is filled: until then
it grows, as row P shows.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import linear_regression

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.sheet.growth import small_calls
from tests.sheet.lag import ask
from tests.system.tool import CONFIG
from tests.system.watched import held, settles, watched

SECONDS = float(os.environ.get("SOAK_S", "3600"))
WARM = 0.25
"""What the first quarter takes is not growth: memories fill up to their bounds."""
WINDOWS = 12
"""Of each only the least counts: what the collector of garbage has not come to yet is not growth either."""
FILLS = 24_000
"""Every other one with a tag, as the streams are."""
STREAMS, EVERY_S, DAY_S, MIB = 20, 5.0, 86_400.0, 1 << 20


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


def test_a_day_of_streams(provider: FakeProvider, tmp_path: Path) -> None:
    def calm() -> None:
        provider.forget()
        provider.always(Behaviour(reply=Reply(tuple(f"word{number} " for number in range(50))), delay_s=0.02))

    calm()
    with watched(provider, CONFIG, folder=tmp_path, options=["flow_detail=0"]) as proxy:
        asyncio.run(small_calls(proxy, 0, FILLS, FILLS, calm, tag="<**six.m**> "))
        before, files = held(proxy), proxy.open_files or 0
        began, calls, points = time.monotonic(), 0, []

        async def stream(last: float) -> int:
            made = 0
            while time.monotonic() < last:
                assert await ask(proxy, calls + made, "") == "complete"
                made += 1
            return made

        async def some() -> int:
            last = min(time.monotonic() + EVERY_S, began + SECONDS)
            return sum(await asyncio.gather(*(stream(last) for _ in range(STREAMS))))

        while time.monotonic() - began < SECONDS:
            calls += asyncio.run(some())
            calm()
            points.append((time.monotonic() - began, float(proxy.rss_bytes)))
        after = settles(proxy, before, within=30, spare=5)  # the last ones are only just leaving
        files_then = proxy.open_files or 0
    hourly, give_or_take = slope_of(lowest([point for point in points if point[0] > SECONDS * WARM]))
    over_h = (1 - WARM) * SECONDS / 3600
    seen(
        "Z",
        f"{calls:,} calls in {SECONDS / 3600:.2f} h of the {DAY_S / 3600:.0f} asked; over the last {over_h:.2f} h "
        f"{hourly:+.2f} MiB an hour, give or take {give_or_take:.2f} (two standard errors"
        + ("; too short to tell 1 MiB an hour" if give_or_take > 1 else "")
        + f"); files {files} → {files_then}, tasks {before['tasks']} → {after['tasks']}",
        holds=hourly <= 1.0 and abs(files_then - files) <= 5 and abs(after["tasks"] - before["tasks"]) <= 5,
    )


def lowest(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    size = max(1, len(points) // WINDOWS)
    return [min(points[at : at + size], key=lambda point: point[1]) for at in range(0, len(points), size)]


def slope_of(points: list[tuple[float, float]]) -> tuple[float, float]:
    """In MiB an hour, and how far the truth may be from it."""
    x, y = zip(*points, strict=True)
    slope, start = linear_regression(x, y)
    mean = sum(x) / len(x)
    rest = sum((b - start - slope * a) ** 2 for a, b in points) / max(1, len(points) - 2)
    error = sqrt(rest / sum((a - mean) ** 2 for a in x))
    return slope * 3600 / MIB, 2 * error * 3600 / MIB
