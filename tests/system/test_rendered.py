"""Five hundred flows of a real proxy, of every kind there is, as the window shows them: whole, cut and garbled."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from mitmproxy import http
from mitmproxy.io import FlowReader

from routecodex.addons.window.content_view import lines
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.tool import CONFIG, Tool

pytestmark = [pytest.mark.system, pytest.mark.long]

SAYS = (
    Behaviour(reply=Reply("a plain answer")),
    Behaviour(reply=Reply("", calls=(ToolUse("read", {"path": "x" * 300}),))),
    Behaviour(reply=Reply("after a thought", thinking="hm " * 200)),
    Behaviour(reply=Reply("w " * 60_000)),
    Behaviour(reply=Reply("ünïcode \U0001f600 \x1b[31m red \x00", input_tokens=90_000, cached_tokens=80_000)),
    Behaviour(status=503, error="down"),
    Behaviour(status=400, error="no"),
    Behaviour(error="worn out", error_after=0),
    Behaviour(error="worn out", error_after=3),
    Behaviour(cut_at=200),
    Behaviour(body=b"<html>a page</html>"),
    Behaviour(reply=Reply("packed"), encoding="gzip"),
)
ASKS = (
    "hello",
    "<**six.m**> hello",
    "<**glm.glm-4.7**> hello",
    "<**claude**> hello",
    '<**six.m**> <**stopMessage:"go on",2**> do it',
)
ALONE = ("<**help**>", "<**nosuch.m**> x", "<**echo**> say this", "<**why**>")


def test_none_of_them_raises(tmp_path: Path) -> None:
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, flows=True) as proxy,
    ):
        for dialect in Dialect:
            for stream in (True, False):
                for number, says in enumerate(SAYS):
                    for at in range(3):
                        provider.forget()
                        provider.enqueue(says)
                        Tool(provider, proxy, dialect).ask(ASKS[(3 * number + at) % len(ASKS)], stream=stream)
                for text in ALONE:
                    Tool(provider, proxy, dialect).ask(text, stream=stream)
        proxy.stop()
        with (tmp_path / "flows").open("rb") as file:
            flows = [flow for flow in FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]
    kinds = Counter(flow.marked for flow in flows)
    assert len(flows) >= 500, kinds
    assert len(kinds) >= 7, kinds
    chance, shown = random.Random(1), 0
    for flow in flows:
        for message in (flow.request, flow.response):
            if message is None:
                continue
            body = message.content or b""
            for form in (body, body[: len(body) // 2], body[len(body) // 3 :], _garbled(body, chance)):
                told = "\n".join(lines(form, flow, message))
                assert told.strip()
                assert all(len(line) <= 120 for line in told.split("\n"))
                assert "\x1b" not in told
                shown += 1
    assert shown >= 4_000


def _garbled(body: bytes, chance: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(min(40, len(data))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)
