"""mitmweb under many streams: it stays usable, and its list keeps the newest flows only."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.test_web import Web
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, text_of, write

pytestmark = pytest.mark.system

STREAMS, MOST = 200, 50


def test_its_list_is_bounded(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forget()
    provider.always(Behaviour(reply=Reply(tuple(f"w{number} " for number in range(10))), delay_s=0.05))
    options = [f"routecodex_web_flows={MOST}"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, web=True, options=options) as proxy:
        web = Web(proxy)

        async def one(number: int) -> bool:
            dialect = list(Dialect)[number % 4]
            path, body = write(dialect, "m", [("user", f"hello {number} " + "x" * 10_000)], True)
            async with Http1(Route(HOSTS[dialect], proxy)) as client:
                answer = await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]])
            return answer.ended == "complete" and text_of(dialect, answer.body, True).endswith("w9 ")

        async def all_of_them() -> list[bool]:
            return await asyncio.gather(*(one(number) for number in range(STREAMS)))

        assert all(asyncio.run(all_of_them()))
        until = time.monotonic() + 60
        while len(flows := web.flows) > MOST:
            assert time.monotonic() < until, len(flows)
            time.sleep(0.1)
        assert {flow["response"]["status_code"] for flow in flows} == {200}
        assert not proxy.crash
        assert "RouteCodex failed" not in proxy.log
    seen("N", f"mitmweb: {STREAMS} streams, {len(flows)} of their flows kept ({MOST} asked for)")
