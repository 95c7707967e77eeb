"""Clients that take all the time in the world, in their heads or in their bodies: others are served as if they were not there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import Mitmdump
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, Tool, write
from tests.system.watched import held, settles, watched

pytestmark = pytest.mark.system

SLOW = 400 if LONG else 60
OTHERS = 20
URL = HOSTS[Dialect.MESSAGES]


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder: Path = tmp_path_factory.mktemp("slow")
    with watched(provider, CONFIG, folder=folder) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


def beginning(number: int) -> bytes:
    """Of a request that never gets further: a third within the head, a third before the body, a third within it."""
    path, asked = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> never")], True)
    body = json.dumps(asked).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: api.anthropic.com\r\nx-api-key: k\r\n"
    whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
    return (head.encode(), whole, whole + body[: len(body) // 2])[number % 3]


def test_slow_clients_hold_up_nobody(provider: FakeProvider, proxy: Mitmdump) -> None:
    provider.forget()
    Tool(provider, proxy).ask("hello")
    before, files = held(proxy), proxy.open_files

    async def all_of_them() -> list[str]:
        slow = [Http1(Route(URL, proxy)) for _ in range(SLOW)]
        ended: list[str] = []
        try:
            for start in range(0, SLOW, 20):
                await asyncio.gather(*(client.__aenter__() for client in slow[start : start + 20]))
            rests = [beginning(number) for number in range(SLOW)]
            for at in range(OTHERS):
                await asyncio.gather(
                    *(client.write_raw(rest[at * 5 : at * 5 + 5]) for client, rest in zip(slow, rests, strict=True))
                )
                path, body = write(Dialect.MESSAGES, "m", [("user", f"<**six.m**> other {at}")], True)
                async with Http1(Route(URL, proxy)) as client:
                    ended.append((await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]])).ended)
        finally:
            for client in slow:
                await client.__aexit__(None, None, None)
        return ended

    ended = asyncio.run(all_of_them())
    assert ended == ["complete"] * OTHERS
    assert not any("never" in received.said for received in provider.calls), "half a call was sent"
    settles(proxy, before)
    provider.wait_until(lambda: (proxy.open_files or 0) <= (files or 0) + 4)
    seen("N", f"{SLOW} clients that send five bytes at a time: {OTHERS} of {OTHERS} others served, nothing left of them")
