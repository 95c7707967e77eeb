"""What calls cost, through a real proxy: written down round by round, and asked in the chat."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.io import FlowReader

from routecodex.routing.usage.report import of_file
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG, Tool, text_of

pytestmark = pytest.mark.system
PRICES = "usage:\n  prices: {six.m: {input: 1000000, output: 0}}\n"


def used(proxy: Mitmdump, requests: int) -> dict[str, Any]:
    """Once so many are written down."""
    path, deadline = proxy.folder / "user" / "usage.sqlite", time.monotonic() + 60
    while (totals := of_file(path, "daily")["totals"])["requests"] < requests:
        assert time.monotonic() < deadline, (totals, proxy.log)
        time.sleep(0.1)
    return dict(totals)


def test_every_round_counts_in_every_dialect_and_is_told_in_the_chat(provider: FakeProvider, tmp_path: Path) -> None:
    with Mitmdump(script=SCRIPT, config=PRICES + CONFIG, upstream=provider, folder=tmp_path) as proxy:
        expected = 0
        for dialect in Dialect:
            for stream in (True, False):
                tool = Tool(provider, proxy, dialect)
                before = used(proxy, expected)
                answers = [tool.ask("<**six.m**> hello", stream=stream)]
                provider.enqueue(Behaviour(status=503, error="down"))
                answers.append(tool.ask('<**six.m**> <**stopMessage:"go on",2**> hello', stream=stream))
                assert [answer.status for answer in answers] == [200, 200]
                if dialect is Dialect.CHAT and stream:
                    assert not any(b'"usage"' in answer.body for answer in answers), "we asked for it, the client did not"
                expected += 4
                told = text_of(dialect, tool.ask("<**usage**>").body, False)  # at once
                assert "This session: 4 requests" in told, (dialect, stream)
                assert f"Today, all sessions: {expected} requests" in told
                assert "$" in told
                after = used(proxy, expected)
                assert after["requests"] == expected
                assert after["unknownRequests"] == 0, (dialect, stream)
                assert after["outputTokens"] > before["outputTokens"], (dialect, stream)
                assert after["totalCost"] == pytest.approx(after["inputTokens"]), "the price of one's own: a dollar for a token"


def test_a_cache_that_was_lost_is_explained(provider: FakeProvider, tmp_path: Path) -> None:
    def reply(cached: int) -> Behaviour:
        return Behaviour(reply=Reply("well", input_tokens=30_000, cached_tokens=cached))

    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, flows=True) as proxy:
        tool = Tool(provider, proxy)
        provider.enqueue(reply(20_000), reply(29_000), reply(0))
        tool.ask("one", system="You are A.")
        tool.ask("two", system="You are A.")
        tool.ask("three", system="You are B, since midnight.", stream=True)
        used(proxy, 3)
        why = text_of(tool.dialect, tool.ask("<**why**>").body, False)
        loss = "the cache was lost: instructions changed, by the tool; 30,000 tokens were read anew"
        assert loss in why
    records = [flow.metadata["routecodex"] for flow in FlowReader(io.BytesIO(proxy.flows_path.read_bytes())).stream()]
    assert [loss in record.get("cacheLost", "") for record in records] == [False, False, True, False], "the file says it, too"
