"""R7: a provider that falls silent, wherever: each call ends, nothing of it stays. (At home the client's own patience counts.)"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write
from tests.system.watched import held, settles, watched

pytestmark = pytest.mark.system

EACH = 25 if LONG else 2
_REPLY = Reply(tuple(f"word{number} " for number in range(40)))
PLACES: dict[str, Behaviour] = {
    "before its head": Behaviour(before="hang"),
    "behind its head": Behaviour(body_wait_s=600),
    "at its first byte": Behaviour(stall_at=1, stall_s=600),
    "behind its first event": Behaviour(stall_after=1, stall_s=600),
    "within an event": Behaviour(stall_at=700, stall_s=600),
    "in the middle": Behaviour(stall_after=20, stall_s=600),
    "before its end": Behaviour(stall_after=40, stall_s=600),
    "within an error": Behaviour(status=500, error="x" * 3000, stall_at=10, stall_s=600),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    config = CONFIG.replace("proxy:\n", "proxy:\n  timeouts: {firstByteMs: 1000, idleMs: 1000, contentMs: 5000}\n", 1)
    with watched(provider, config, folder=tmp_path_factory.mktemp("stalls")) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


def test_r7_wherever_it_stops_the_call_ends(provider: FakeProvider, proxy: Mitmdump) -> None:
    provider.forget()
    before, names = held(proxy), list(PLACES)

    def rule(received: Received) -> Behaviour:
        name = next(name for name in names if f"silent {name};" in received.said)
        return dataclasses.replace(PLACES[name], reply=_REPLY)

    provider.script(rule)

    async def one(number: int) -> str:
        dialect, name = list(Dialect)[number % 4], names[number // EACH]
        path, body = write(dialect, "m", [("user", f"<**six.m**> silent {name}; {number}")], True)
        async with Http1(Route(HOSTS[dialect], proxy)) as client:
            return (await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]], within=90)).ended

    async def all_of_them() -> list[str]:
        gate = asyncio.Semaphore(20)

        async def gated(number: int) -> str:
            async with gate:
                return await one(number)

        return await asyncio.gather(*(gated(number) for number in range(EACH * len(names))))

    ended = asyncio.run(all_of_them())
    assert "timeout" not in ended
    provider.wait_until(lambda: provider.open_connections == 0)
    settles(proxy, before)
    seen("R7", f"{len(names)} places × {EACH}: {len(ended)} of {len(ended)} calls ended, 0 tasks or connections left")
