"""F15: what a reload stops, and what stays of many small calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write
from tests.system.watched import held, watched

PROVIDERS, MODELS, RELOADS = 200, 50, 8
PIECE_MS = 50.0
FIRST, THEN, BESIDE = 12_000, 8_000, 4
MIB = 1 << 20


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


def large() -> str:
    lines = ["virtualrouter:", "  providers:"]
    for number in range(PROVIDERS):
        lines += [f"    p{number}:", "      type: openai", f"      baseURL: https://p{number}.example/v1"]
        lines += [f"      auth: {{type: apiKey, entries: [{{alias: a, value: key-{number}}}]}}", "      models:"]
        lines += [f"        m{model}: {{maxContextTokens: 100000}}" for model in range(MODELS)]
    return "\n".join([*lines, "  routing:", "    default: [origin]"]) + "\n"


def test_a_large_configuration_that_changes(provider: FakeProvider, tmp_path: Path) -> None:
    with watched(provider, large(), folder=tmp_path) as proxy:
        file, late, computed = tmp_path / "mitm-config.yaml", [], []
        call(HOSTS[Dialect.MESSAGES], *write(Dialect.MESSAGES, "m", [("user", "<**status**>")], False), proxy=proxy)
        for number in range(RELOADS):
            held(proxy, "/lag")
            before = proxy.log.count("Configuration reloaded")
            part = file.with_suffix(".part")
            part.write_text(large() + f"# {number}\n")
            part.replace(file)
            until = time.monotonic() + 120
            while proxy.log.count("Configuration reloaded") == before:
                assert time.monotonic() < until
                time.sleep(0.1)
            time.sleep(1)
            lag = held(proxy, "/lag")
            late.append(max(lag["late"]))
            computed.append(max(lag["computed"]))
        seen(
            "P",
            f"{RELOADS} reloads of {PROVIDERS} × {MODELS} models: at most {max(computed):.0f} ms of computing in one piece, "
            f"asked {PIECE_MS:.0f}; late by {max(late):.0f} ms by the clock",
            holds=max(computed) <= PIECE_MS,
        )


async def small_calls(proxy: Mitmdump, first: int, count: int, sessions: int, calm: Callable[[], None], *, tag: str = "") -> None:
    """Several beside each other, in so many sessions; `calm`: the provider forgets what it was asked; `tag`: in every other."""

    async def row(first: int, last: int) -> None:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], proxy)) as client:
            for number in range(first, last):
                _, body = write(Dialect.MESSAGES, "m", [("user", f"{tag * (number % 2)}hello {number}")], False)
                headers = [CREDENTIALS[Dialect.MESSAGES], ("x-session-id", f"row-{number % sessions}")]
                assert (await client.send("POST", "/v1/messages", body=body, headers=headers)).status == 200
                if number % 50 == 49:
                    calm()

    each = count // BESIDE
    await asyncio.gather(*(row(first + each * number, first + each * (number + 1)) for number in range(BESIDE)))


@pytest.mark.parametrize("sessions", [50, 20_000])
def test_twenty_thousand_small_calls(provider: FakeProvider, tmp_path: Path, sessions: int) -> None:
    """The newest 10,000 conversations and messages are remembered: that grows until it is full, and nothing else does."""
    reply = Behaviour(reply=Reply("word " * 10))

    def calm() -> None:
        provider.forget()
        provider.always(reply)

    with watched(provider, CONFIG, folder=tmp_path, options=["flow_detail=0"]) as proxy:

        async def several(first: int, count: int) -> None:
            await small_calls(proxy, first, count, sessions, calm)

        calm()
        asyncio.run(several(0, 400))
        held(proxy)
        start = proxy.rss_bytes
        asyncio.run(several(400, FIRST))
        held(proxy)
        then = proxy.rss_bytes
        asyncio.run(several(400 + FIRST, THEN))
        held(proxy)
        end = proxy.rss_bytes
    seen(
        "P",
        f"{FIRST:,} small calls of {sessions:,} sessions: {(then - start) / MIB:.1f} MiB more, the next {THEN:,}: "
        f"{(end - then) / MIB:.1f} MiB (10,000 conversations and messages are remembered; then it stands)",
        holds=end - then < 4 * MIB,
    )
