"""Somebody else's script beside ours, before it and behind it: its hooks run as mitmproxy runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool, text_of

pytestmark = pytest.mark.system

_FOREIGN = """
import asyncio
import logging

class Foreign:
    async def _waits(self, where, flow):
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(30)
        except TimeoutError:
            logging.info("foreign %s: timed out", where)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        same = asyncio.current_task() is task and not task.cancelling()
        logging.info("foreign %s: %s", where, "in its own task" if same else "in another's task")

    async def requestheaders(self, flow):
        await self._waits("requestheaders", flow)

    async def request(self, flow):
        await self._waits("request", flow)

    async def response(self, flow):
        await self._waits("response", flow)

addons = [Foreign()]
"""
HOOKS = ("requestheaders", "request", "response")


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module", params=["before", "behind"])
def proxy(request: pytest.FixtureRequest, provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder: Path = tmp_path_factory.mktemp("foreign")
    (folder / "foreign.py").write_text(_FOREIGN)
    scripts = [folder / "foreign.py", SCRIPT] if request.param == "before" else [SCRIPT, folder / "foreign.py"]
    with Mitmdump(script=scripts, config=CONFIG, upstream=provider, folder=folder) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log
        assert "Addon error" not in started.log


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("text", ["hello", "<**six.m**> hello", "<**echo**> hello"], ids=["home", "elsewhere", "echo"])
def test_its_hooks_run_to_their_end(proxy: Mitmdump, provider: FakeProvider, text: str, stream: bool) -> None:
    provider.forget()
    known = proxy.log.count("timed out")
    answer = Tool(provider, proxy).ask(text, stream=stream)
    assert (answer.status, answer.ended) == (200, "complete")
    assert "hello" in text_of(Dialect.MESSAGES, answer.body, stream)
    assert proxy.log.count("timed out") > known
    assert "another's task" not in proxy.log


def test_several_calls_on_one_connection_and_a_failing_provider(proxy: Mitmdump, provider: FakeProvider) -> None:
    provider.forget()
    provider.enqueue(Behaviour(status=529, error="busy"))
    tool = Tool(provider, proxy)
    for _ in range(3):
        assert tool.ask("<**six.m**> hello", stream=True).status == 200
    assert len(provider.calls) == 4
    for hook in HOOKS:
        assert len(re.findall(rf"foreign {hook}: in its own task", proxy.log)) >= 4


def test_without_the_shortcuts(provider: FakeProvider, tmp_path: Path) -> None:
    provider.forget()
    options = ["routecodex_shortcuts=false"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "proxy", options=options) as proxy:
        for dialect in Dialect:
            for stream in (True, False):
                tool = Tool(provider, proxy, dialect)
                answer = tool.ask("<**six.m**> hello", stream=stream)
                assert text_of(dialect, answer.body, stream) == "m was asked: hello"
        assert not proxy.crash
