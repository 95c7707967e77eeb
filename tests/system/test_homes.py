"""A program that was made for one host is answered by another provider: it hears what its own host would have said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.client import call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply, ToolUse

pytestmark = pytest.mark.system
CONFIG = """
virtualrouter:
  providers:
    chat: {protocol: openai-chat, baseURL: "https://chat.example/v1", auth: {keys: [{value: sk-chat-1}]}, models: {m: {}}}
    msg: {protocol: anthropic-messages, baseURL: "https://msg.example", auth: {keys: [{value: sk-msg-1}]}, models: {m: {}}}
  routing: {default: [origin]}
"""
REPLY = Reply("let me see", thinking="hmm", calls=(ToolUse("look", {"path": "a"}), ToolUse("look", {"path": "b"})))
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider) -> Iterator[Mitmdump]:
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider) as running:
        yield running


def chunks(provider: FakeProvider, proxy: Mitmdump, host: str, target: str, **more: Any) -> list[dict[str, Any]]:
    provider.forget()
    provider.enqueue(Behaviour(reply=REPLY))
    messages = [{"role": "user", "content": f"<**{target}.m**> look"}]
    body = {"model": "x", "stream": True, "tools": [TOOL], "messages": messages, **more}
    answer = call(f"https://{host}", "/v1/chat/completions", body, proxy=proxy, headers=[("authorization", "Bearer sk-own")])
    assert answer.status == 200
    assert [received.host for received in provider.requests] == [f"{target}.example"]
    return [json.loads(line[6:]) for line in answer.body.split(b"\n") if line.startswith(b"data: {")]


@pytest.mark.parametrize("target", ["chat", "msg"])
@pytest.mark.parametrize("host", ["api.mistral.ai", "api.x.ai", "open.bigmodel.cn"])
def test_calls_in_one_piece(provider: FakeProvider, proxy: Mitmdump, host: str, target: str) -> None:
    told = chunks(provider, proxy, host, target)
    calls = [entry for one in told for choice in one["choices"] for entry in choice["delta"].get("tool_calls", [])]
    assert [(one["index"], json.loads(one["function"]["arguments"])) for one in calls] == [(0, {"path": "a"}), (1, {"path": "b"})]
    assert all(one["id"] and one["type"] == "function" and one["function"]["name"] == "look" for one in calls)
    [last] = [one for one in told if one.get("usage")]
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["usage"]["prompt_tokens"] == 25


def test_other_dialects_of_such_a_host_pass_as_anybodys(provider: FakeProvider, proxy: Mitmdump) -> None:
    reply = Reply("let me see", id="msg_1", calls=(ToolUse("look", {"path": "a"}, id="toolu_1"),))
    body = {"model": "x", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "<**msg.m**> look"}]}
    told = []
    for host, prefix in (("api.z.ai", "/api/anthropic"), ("api.anthropic.com", "")):
        provider.forget()
        provider.enqueue(Behaviour(reply=reply))
        answer = call(f"https://{host}", f"{prefix}/v1/messages", body, proxy=proxy, headers=[("x-api-key", "sk-own")])
        told.append(answer.body)
    assert told[0] == told[1]
    assert told[0].count(b"input_json_delta") > 1


@pytest.mark.parametrize("target", ["chat", "msg"])
def test_the_cost_though_nobody_asks(provider: FakeProvider, proxy: Mitmdump, target: str) -> None:
    for host, more in (("openrouter.ai", {}), ("api.cerebras.ai", {}), ("api.openai.com", {"usage": {"include": True}})):
        [counted] = [one for one in chunks(provider, proxy, host, target, **more) if one.get("usage")]
        assert counted["usage"]["prompt_tokens"] == 25
    usual = chunks(provider, proxy, "api.openai.com", target)
    assert not any(one.get("usage") for one in usual)
    assert sum("tool_calls" in choice["delta"] for one in usual for choice in one["choices"]) > 2
