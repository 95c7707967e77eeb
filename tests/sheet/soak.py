"""R12's day: 20 streams at a time for as long as SOAK_S says. The slope is told with the time it was measured over.

1. Before that each memory that has a bound is filled by calls like those that follow: of 10,000 conversations, of as many that
   obeyed a tag, and of as many answers that a later call may go on from. Until then it grows, as row P shows. Like they are in
   everything: what is remembered of another dialect, or of several calls of one conversation, is a little more or less. And it is
   filled twice: what comes first lies side by side, and what takes its place later lies among what is gone soon.
2. Looked at is what is in use: garbage is collected first, and what the C library keeps for later goes back to the system. Pages
   of programs and libraries are told apart: a system drops those that nobody reads for a while, and reads them again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import linear_regression

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply
from tests.sheet import SOAK_S, seen
from tests.sheet.lag import ask
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write
from tests.system.watched import held, settles, watched

WARM = 0.25
"""What the first quarter takes is not growth: memories fill up to their bounds."""
FILLS, TURNS = 44_000, 2
"""Of which every fourth is one that a later call may go on from."""
FIRST = 1_000_000
"""All are counted in as many letters: what is remembered of the last ones is no longer than what is forgotten of the first."""
STREAMS, EVERY_S, DAY_S, MIB = 20, 15.0, 86_400.0, 1 << 20


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


def test_a_day_of_streams(provider: FakeProvider, tmp_path: Path) -> None:
    def calm(*, words: int = 50, delay_s: float = 0.02) -> None:
        provider.forget()
        provider.always(Behaviour(reply=Reply(tuple(f"word{number} " for number in range(words))), delay_s=delay_s))

    with watched(provider, CONFIG, folder=tmp_path, options=["flow_detail=0"]) as proxy:
        for turn in range(TURNS):
            asyncio.run(filled(proxy, partial(calm, delay_s=0), FIRST + turn * FILLS))
        calm()
        before, files = held(proxy), proxy.open_files or 0
        points: list[tuple[float, float, float, float]] = []
        began, numbers = time.monotonic(), itertools.count(FIRST + TURNS * FILLS)

        async def stream(last: float) -> None:
            while time.monotonic() < last:
                assert await ask(proxy, next(numbers), "") == "complete"

        async def some() -> None:
            last = min(time.monotonic() + EVERY_S, began + SOAK_S)
            await asyncio.gather(*(stream(last) for _ in range(STREAMS)))

        while time.monotonic() - began < SOAK_S:
            asyncio.run(some())
            calm()
            settles(proxy, before, within=30, spare=5)
            spared = held(proxy, "/spare")
            own, resident = proxy.own_bytes / MIB, proxy.rss_bytes / MIB
            points.append((time.monotonic() - began, own, spared["pieces"] / 1000, resident - own))
        after = settles(proxy, before, within=30, spare=5)  # the last ones are only just leaving
        files_then, calls = proxy.open_files or 0, next(numbers) - FIRST - TURNS * FILLS
    warm = [point for point in points if point[0] > SOAK_S * WARM]
    mib, mib_off = slope_of([(at, size) for at, size, *_ in warm])
    pieces, pieces_off = slope_of([(at, count) for at, _, count, _ in warm])
    read, read_off = slope_of([(at, size) for at, *_, size in warm])
    late, late_off = slope_of([(at, size) for at, size, *_ in warm[len(warm) // 2 :]])
    over_h = (1 - WARM) * SOAK_S / 3600
    short = "; too short to tell 1 MiB" if mib_off > 1 else ""
    seen(
        "Z",
        f"{calls:,} calls in {SOAK_S / 3600:.2f} h of the {DAY_S / 3600:.0f} asked; over the last {over_h:.2f} h {mib:+.2f} ± "
        f"{mib_off:.2f} MiB an hour of its own (two standard errors{short}; the later half {late:+.2f} ± {late_off:.2f}; pages "
        f"of files beside it {read:+.2f} ± {read_off:.2f}), and {pieces:+.1f} ± {pieces_off:.1f} thousand of {warm[-1][2]:.0f} "
        f"thousand pieces of Python's memory; files {files} → {files_then}, tasks {before['tasks']} → {after['tasks']}",
        holds=mib + mib_off <= 1.0 and abs(files_then - files) <= 5 and abs(after["tasks"] - before["tasks"]) <= 5,
    )


async def filled(proxy: Mitmdump, calm: Callable[[], None], first: int) -> None:
    """As `ask` does it, as many at once, but quickly."""
    dialects = list(Dialect)

    async def row(place: int) -> None:
        dialect = dialects[place % len(dialects)]
        async with Http1(Route(HOSTS[dialect], proxy)) as client:
            for number in range(place, FILLS, STREAMS):
                path, body = write(dialect, "m", [("user", f"{'<**six.m**> ' * (number % 2)}hello {first + number} ")], True)
                assert (await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]])).ended == "complete"
                if place == 0 and number % (10 * STREAMS) == 0:
                    calm()

    calm()
    await asyncio.gather(*map(row, range(STREAMS)))


def slope_of(points: list[tuple[float, float]]) -> tuple[float, float]:
    """An hour's, and how far the truth may be from it."""
    x, y = zip(*points, strict=True)
    slope, start = linear_regression(x, y)
    mean = sum(x) / len(x)
    rest = sum((b - start - slope * a) ** 2 for a, b in points) / max(1, len(points) - 2)
    error = sqrt(rest / sum((a - mean) ** 2 for a in x))
    return slope * 3600, 2 * error * 3600
