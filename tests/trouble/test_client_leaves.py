"""R8, A7: clients leave at random points; nobody works, waits or pays for them any more, and no key is blamed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Http2, Leave, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write

pytestmark = pytest.mark.system

LEAVES = 300 if LONG else 30
TOGETHER = 10
_ONE = """
    one:
      protocol: openai-chat
      baseURL: https://one.example/v1
      endpoints: {anthropic-messages: https://one.example, openai-responses: https://one.example/v1, gemini-chat: https://one.example}
      auth: {type: apikey, keys: [{alias: only, value: one-key}]}
      models: {m: {}}
"""


@dataclass
class Site:
    proxy: Mitmdump
    provider: FakeProvider
    http2: bool

    async def ask(self, text: str, dialect: Dialect, *, stream: bool, leave: Leave | None = None) -> Answer:
        path, body = write(dialect, "m", [("user", text)], stream)
        client: Http1 | Http2 = (Http2 if self.http2 else Http1)(Route(HOSTS[dialect], self.proxy))
        async with client:
            answer = await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]], leave=leave)
            if self.http2 and leave is not None:
                await asyncio.sleep(0.5)  # the connection stays: only the stream was reset
            return answer


@pytest.fixture(scope="module", params=[False, True], ids=["http1", "http2"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    config = CONFIG.replace("    six:\n", _ONE + "    six:\n")
    options = ["routecodex_http2=true"] if request.param else []
    folder = tmp_path_factory.mktemp("leaves")
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder, options=options) as proxy,
    ):
        yield Site(proxy, provider, request.param)


def _troubles(chance: random.Random) -> Behaviour:
    """What the provider is doing when the client goes."""
    slow = Behaviour(reply=Reply(tuple(f"w{n} " for n in range(300))), delay_s=0.02)
    return chance.choice(
        [
            slow,
            slow,
            Behaviour(before="hang"),
            Behaviour(body_wait_s=600),
            Behaviour(wait_s=0.2, reply=slow.reply, delay_s=0.02),
            Behaviour(status=500, error="down", stall_at=3, stall_s=600),
            Behaviour(error="overloaded", error_after=2, delay_s=0.02),
        ]
    )


def test_random_leaves(site: Site) -> None:
    """Whatever was going on: left by all, no attempt after it, no file or task left over."""
    chance = random.Random(7)
    site.provider.forget()
    asyncio.run(site.ask("<**one.m**> warm", Dialect.MESSAGES, stream=True))
    files = site.proxy.open_files
    site.provider.forget()

    def rule(received: Received) -> Behaviour:
        return _troubles(random.Random(received.body[-400:]))

    site.provider.script(rule)

    async def one(number: int) -> bool:
        dialect = chance.choice(list(Dialect))
        stream = chance.random() < 0.7
        leave = chance.choice(
            [
                Leave(after_s=chance.uniform(0.02, 0.6)),
                Leave(chunks=chance.randint(1, 6), after_s=0.7),
                Leave(after_s=0.3, reset=True),
            ]
        )
        target = chance.choice(["<**one.m**>", "<**six.m**>", ""])
        answer = await asyncio.wait_for(site.ask(f"{target} leave {number}", dialect, stream=stream, leave=leave), 120)
        return answer.ended == "left"

    async def all_of_them() -> int:
        went = 0
        for start in range(0, LEAVES, TOGETHER):
            went += sum(await asyncio.gather(*(one(number) for number in range(start, start + TOGETHER))))
        return went

    assert asyncio.run(all_of_them()) >= LEAVES / 2, "most came too late to leave"
    site.provider.wait_until(lambda: site.provider.open_connections == 0)
    time.sleep(0.3)
    attempts = len(site.provider.requests)
    time.sleep(0.7)
    assert len(site.provider.requests) == attempts, "an attempt was made for somebody who had left"
    assert files is not None
    assert (site.proxy.open_files or 0) <= files + 3
    assert "RouteCodex failed in" not in site.proxy.log
    assert not site.proxy.crash
    assert "Task exception was never retrieved" not in site.proxy.log
    assert site.proxy.alive
    seen("R8", f"{LEAVES} leaves over HTTP/{1 + site.http2}: 0 attempts afterwards, 0 connections or files left")


def test_a_provider_is_left_as_its_client_goes(site: Site) -> None:
    """It would say words for ever, and never end; nobody else is disturbed."""
    for number in range(6):
        site.provider.forget()
        site.provider.always(Behaviour(reply=Reply(tuple(f"w{n} " for n in range(50))), delay_s=0.01, ending="hang"))

        async def leaves(number: int = number) -> None:
            stays = asyncio.create_task(site.ask("<**six.m**> stays", Dialect.CHAT, stream=True))
            await asyncio.to_thread(site.provider.wait_for, 1)
            path, body = write(Dialect.MESSAGES, "m", [("user", f"<**six.m**> goes {number}")], True)
            client: Http1 | Http2 = (Http2 if site.http2 else Http1)(Route(HOSTS[Dialect.MESSAGES], site.proxy))
            async with client:
                answer = await client.send(
                    "POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]], leave=Leave(chunks=5, reset=number % 2 == 1)
                )
                assert answer.ended == "left"
                gone = [received for received in site.provider.calls if b"goes" in received.body]
                await asyncio.to_thread(site.provider.wait_until, lambda: all(received.left_early for received in gone))
            assert not next(received for received in site.provider.calls if b"stays" in received.body).left_early
            stays.cancel()
            await asyncio.gather(stays, return_exceptions=True)

        asyncio.run(leaves())


def test_a7_leaving_blames_no_key(site: Site) -> None:
    """A provider with a single key: after many have left, it is asked as if nothing had been."""
    site.provider.forget()
    site.provider.always(Behaviour(before="hang"))

    async def many() -> list[str]:
        """All of them are waiting when they go."""
        ended: list[str] = []

        def all_asked() -> bool:
            return len(site.provider.calls) >= len(ended) + TOGETHER

        for start in range(0, LEAVES, TOGETHER):
            asked = [
                asyncio.create_task(
                    site.ask(f"<**one.m**> gone {number}", Dialect.MESSAGES, stream=bool(number % 2), leave=Leave(when=all_asked))
                )
                for number in range(start, start + TOGETHER)
            ]
            ended += [answer.ended for answer in await asyncio.gather(*asked)]
        return ended

    assert asyncio.run(many()) == ["left"] * LEAVES
    assert len(site.provider.calls) == LEAVES, "one was refused for the key's sake, or tried twice"
    site.provider.wait_until(lambda: site.provider.open_connections == 0, 3)
    site.provider.forget()
    answer = asyncio.run(site.ask("<**one.m**> still there?", Dialect.MESSAGES, stream=True))
    assert answer.status == 200
    assert len(site.provider.calls) == 1
    seen("A7", f"{LEAVES} leaves over HTTP/{1 + site.http2}: 0 changes of health, 0 second attempts")
