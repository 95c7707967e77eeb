"""A provider gets back the thinking that it signed itself; another one never does."""

from __future__ import annotations

import json

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.wire import Reply
from tests.system.tool import CREDENTIALS, HOSTS, Dialect, Tool

pytestmark = pytest.mark.system


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_foreign_provider_gets_its_own_thinking_back(tool: Tool, stream: bool) -> None:
    tool.provider.enqueue(Behaviour(reply=Reply(text="well", thinking="let me see")))
    answer = tool.ask("<**!glm.glm-4.7**> think", stream=stream)
    signature = _signature(answer.body.decode(), stream)
    blocks = [{"type": "thinking", "thinking": "let me see", "signature": signature}, {"type": "text", "text": "well"}]
    history = [
        {"role": "user", "content": "<**!glm.glm-4.7**> think"},
        {"role": "assistant", "content": blocks},
    ]
    for target, kept in (("", True), ("<**six.m**> ", False)):
        body = {
            "model": "claude-x",
            "max_tokens": 9,
            "messages": [*history[:2], {"role": "user", "content": target + "and now?"}],
        }
        headers = (CREDENTIALS[Dialect.MESSAGES], ("x-session-id", str(tool.session)))
        assert call(HOSTS[Dialect.MESSAGES], "/v1/messages", body, proxy=tool.proxy, headers=headers).status == 200
        assert (signature in tool.received[-1].body.decode()) is kept


def _signature(body: str, stream: bool) -> str:
    if not stream:
        return str(json.loads(body)["content"][0]["signature"])
    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]
    return next(str(event["delta"]["signature"]) for event in events if event.get("delta", {}).get("type") == "signature_delta")
