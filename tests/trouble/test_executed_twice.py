"""A6, R9: once an answer has begun, its call is never asked again, whatever becomes of the answer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write

pytestmark = pytest.mark.system

EACH = 100 if LONG else 4
"""Calls for each fault; a quarter in each dialect."""
TOGETHER = 20
_WORDS = Reply(tuple(f"word{number} " for number in range(40)))
_BEGUN = 8
"""So many events hold content in every dialect."""
FAULTS: dict[str, Behaviour] = {
    "closed early": Behaviour(cut_after=_BEGUN),
    "closed late": Behaviour(cut_after=30),
    "closed within an event": Behaviour(cut_at=2500),
    "reset early": Behaviour(cut_after=_BEGUN, ending="reset"),
    "reset late": Behaviour(cut_after=30, ending="reset"),
    "a clean end too early": Behaviour(cut_after=_BEGUN, ending="clean"),
    "silent early": Behaviour(stall_after=_BEGUN, stall_s=600),
    "silent late": Behaviour(stall_after=30, stall_s=600),
    "silent within an event": Behaviour(stall_at=2500, stall_s=600),
    "an error early": Behaviour(error="overloaded", error_after=_BEGUN),
    "an error late": Behaviour(error="overloaded", error_after=30),
    "no end": Behaviour(cut_after=30, ending="hang"),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    config = CONFIG.replace("proxy:\n", "proxy:\n  timeouts: {firstByteMs: 20000, idleMs: 3000, contentMs: 20000}\n", 1)
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path_factory.mktemp("twice")) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


@pytest.mark.parametrize("tag", ["", "<**six.m**> "], ids=["home", "elsewhere"])
def test_a6_nothing_is_executed_twice(provider: FakeProvider, proxy: Mitmdump, tag: str) -> None:
    provider.forget()

    def rule(received: Received) -> Behaviour:
        name = next(name for name in FAULTS if f"fault {name};" in received.said)
        return dataclasses.replace(FAULTS[name], reply=_WORDS, delay_s=0.001)

    provider.script(rule)

    async def one(number: int, name: str) -> tuple[str, bool]:
        dialect = list(Dialect)[number % 4]
        path, body = write(dialect, "m", [("user", f"{tag}fault {name}; token{number:04}")], True)
        async with Http1(Route(HOSTS[dialect], proxy)) as client:
            answer = await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]], within=60)
            return answer.ended, b"word0 " in answer.body

    async def all_of_them() -> list[tuple[str, bool]]:
        gate, names = asyncio.Semaphore(TOGETHER), list(FAULTS)

        async def gated(number: int) -> tuple[str, bool]:
            async with gate:
                return await one(number, names[number // EACH])

        return await asyncio.gather(*(gated(number) for number in range(EACH * len(names))))

    ended = asyncio.run(all_of_them())
    assert "timeout" not in {how for how, _ in ended}
    assert all(begun for _, begun in ended), "it had not begun"
    executed = Counter(received.said.rpartition("token")[2][:4] for received in provider.calls)
    assert len(executed) == len(ended)
    assert set(executed.values()) == {1}
    place = "elsewhere" if tag else "at home"
    for row in ("A6", "R9"):
        seen(row, f"{len(FAULTS)} faults × {EACH} calls {place}: {max(executed.values()) - 1} executed twice")
