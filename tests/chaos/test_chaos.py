"""One of three proxies is killed, one freezes, one is cut off from Redis, while fifty conversations go on through HAProxy."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos import stage
from tests.chaos.judge import Kind, Verdict, judge
from tests.chaos.stage import Cable, Client
from tests.rig.provider import FakeProvider
from tests.rig.proxy import Mitmdump
from tests.rig.redis_server import redis_server
from tests.sheet import seen

pytestmark = [pytest.mark.system, pytest.mark.long]

CLIENTS, CALLS = 50, 12
LEASE_S = 35.0
KINDS: tuple[Kind, ...] = ("say", "remind", "go on")
Trouble = Callable[[list[Mitmdump], Cable, Callable[[float], Awaitable[None]]], Awaitable[int]]


async def killed(proxies: list[Mitmdump], cable: Cable, when: Callable[[float], Awaitable[None]]) -> int:
    """How many calls may fail."""
    await when(0.3)
    alive = stage.connections(proxies[0])
    proxies[0].kill()
    await when(0.6)
    proxies[0].start()
    return alive


async def frozen(proxies: list[Mitmdump], cable: Cable, when: Callable[[float], Awaitable[None]]) -> int:
    await when(0.3)
    alive = stage.connections(proxies[1])
    stage.freeze(proxies[1])
    await when(0.6)
    stage.thaw(proxies[1])
    return alive


async def cut_off(proxies: list[Mitmdump], cable: Cable, when: Callable[[float], Awaitable[None]]) -> int:
    """It refuses what has a session, and HAProxy takes it out within a second."""
    await when(0.3)
    alive = stage.connections(proxies[2])
    cable.cut()
    await when(0.6)
    cable.mend()
    return 20 * max(1, alive)


async def all_of_them(proxies: list[Mitmdump], cable: Cable, when: Callable[[float], Awaitable[None]]) -> int:
    """One after another."""
    allowed = 0
    await when(0.2)
    allowed += stage.connections(proxies[0])
    proxies[0].kill()
    await when(0.4)
    proxies[0].start()
    allowed += stage.connections(proxies[1])
    stage.freeze(proxies[1])
    await when(0.6)
    stage.thaw(proxies[1])
    allowed += 20 * max(1, stage.connections(proxies[2]))
    cable.cut()
    await when(0.8)
    cable.mend()
    return allowed


@pytest.mark.parametrize("time", range(3))
@pytest.mark.parametrize("trouble", [killed, frozen, cut_off, all_of_them], ids=lambda one: one.__name__)
def test_conversations_go_on(tmp_path: Path, trouble: Trouble, time: int) -> None:
    with FakeProvider() as provider, redis_server(tmp_path / "redis", "--appendonly", "yes") as redis:
        provider.script(stage.model)
        clients, allowed = asyncio.run(_run(tmp_path, provider, redis.port, trouble))
        requests = stage.got(provider)
    verdicts = [judge(client.told, requests) for client in clients]
    failed = sum(not told.ok for client in clients for told in client.told)
    calls = sum(client.calls for client in clients)
    bad = [verdict for verdict in verdicts if not verdict.holds]
    lost, doubled = _all(verdicts, "lost"), _all(verdicts, "doubled")
    holds = not bad and failed <= allowed
    seen(
        "B",
        f"{trouble.__name__}: {calls:,} calls of {len(clients)} conversations, {failed} failed (at most {allowed}), "
        f"reminders lost {len(lost)}, gone with an answer that had begun {len(_all(verdicts, 'gone'))}, doubled {len(doubled)}; "
        f"counts exceeded {len(_all(verdicts, 'exceeded'))}",
        holds=holds,
    )
    why = Counter(told.why for client in clients for told in client.told if not told.ok)
    assert not bad, why
    assert failed <= allowed, why


def _all(verdicts: list[Verdict], name: str) -> list[str]:
    return [one for verdict in verdicts for one in getattr(verdict, name)]


async def _run(folder: Path, provider: FakeProvider, redis: int, trouble: Trouble) -> tuple[list[Client], int]:
    cable = Cable(redis)
    await cable.lay()
    with ExitStack() as stack:
        urls = [f"redis://127.0.0.1:{port}/0?wait=10" for port in (redis, redis, cable.port)]
        proxies = [stage.proxy(number, folder, provider, url) for number, url in enumerate(urls)]
        for one in proxies:
            stack.callback(one.stop)
            await asyncio.to_thread(one.start)
        address = await asyncio.to_thread(lambda: stack.enter_context(stage.balancer(folder, proxies)))
        trust = proxies[0].tls()
        clients = [Client(address, trust) for _ in range(CLIENTS)]
        total = CLIENTS * CALLS

        async def when(share: float) -> None:
            while sum(told.ok for client in clients for told in client.told) < share * total:  # noqa: ASYNC110  what is waited for tells nobody
                await asyncio.sleep(0.05)

        kinds = [
            list(itertools.islice(itertools.cycle(KINDS[number % 3 :] + KINDS[: number % 3]), CALLS)) for number in range(CLIENTS)
        ]
        talking = asyncio.gather(*(client.talk([*each, "say"]) for client, each in zip(clients, kinds, strict=True)))
        allowed = await trouble(proxies, cable, when)
        await talking
        await asyncio.sleep(LEASE_S)  # what a proxy held in its hands when it died is let go
        await asyncio.gather(*(client.talk(["say", "say"]) for client in clients))
        return clients, allowed
