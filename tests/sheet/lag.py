"""R16: how late the proxy's loop is by the clock while many streams run, and whether their memory comes back.

Told beside it is what of that the proxy computed itself: on a busy machine the rest is others' doing.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write
from tests.system.watched import held, watched

STREAMS = 200
BODY = "x" * 1_000_000
LATE_MS, LATEST_MS, BACK_S, BACK_BYTES = 50.0, 250.0, 10.0, 32 << 20


def at(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


async def ask(proxy: object, number: int, text: str) -> str:
    dialect = list(Dialect)[number % 4]
    tag = "<**six.m**> " if number % 2 else ""
    path, body = write(dialect, "m", [("user", f"{tag}hello {number} {text}")], True)
    async with Http1(Route(HOSTS[dialect], proxy)) as client:  # type: ignore[arg-type]
        return (await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]], within=300)).ended


def test_two_hundred_streams(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forget()
    provider.always(Behaviour(reply=Reply(tuple(f"word{number} " for number in range(100))), delay_s=0.1))
    with watched(provider, CONFIG, folder=tmp_path, options=["flow_detail=0"]) as proxy:

        async def many(text: str) -> list[str]:
            return await asyncio.gather(*(ask(proxy, number, text) for number in range(STREAMS)))

        for name, text in (("small bodies", ""), ("bodies of 1 MB", BODY)):
            asyncio.run(ask(proxy, 1, text))
            time.sleep(1)
            before = proxy.rss_bytes
            held(proxy, "/lag")
            ended = asyncio.run(many(text))
            lag = held(proxy, "/lag")
            assert set(ended) == {"complete"}
            highest = proxy.rss_bytes
            until, back = time.monotonic() + BACK_S, None
            while time.monotonic() < until and back is None:
                if proxy.rss_bytes - before < BACK_BYTES:
                    back = BACK_S - (until - time.monotonic())
                time.sleep(0.1)
            late = lag["late"]
            own = [min(both) for both in zip(late, lag["computed"], strict=True)]
            seen(
                "R16",
                f"{STREAMS} streams with {name}: the loop is late by its own doing p99 {at(own, 0.99):.0f} ms, "
                f"at most {max(own):.0f} ms (by the clock p99 {at(late, 0.99):.0f} ms, at most {max(late):.0f} ms)",
                holds=at(late, 0.99) <= LATE_MS and max(late) <= LATEST_MS,
            )
            left = (proxy.rss_bytes - before) / (1 << 20)
            told = f"{left:.0f} MiB after 10 s"
            if back is not None:
                told = f"within {BACK_BYTES >> 20} MiB of the start after {back:.1f} s"
            seen("R16", f"{name}: {(highest - before) / (1 << 20):.0f} MiB more at the end, {told}", holds=back is not None)


@pytest.fixture
def provider() -> object:
    with FakeProvider() as fake:
        yield fake
