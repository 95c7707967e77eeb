"""Thinking comes back on the signature of a call: from a client that gives no thoughts back (Gemini CLI), and from others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.translation.carried import carry, unloaded
from routecodex.routing.dialects.translation.going_up import translate
from routecodex.routing.dialects.translation.neutral import Seal, Thought, ToolUse
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.wire import Asked, Reply, events, whole
from tests.rig.wire import ToolUse as Use
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.translation.telling.spoken import asked

MAKER = "acme"
CLIENTS = Endpoint(Dialect.GEMINI, model="gemini-3-pro", stream=True)
REPLY = Reply("I look.", thinking="Where is it?", calls=(Use("Bash", {"a": 1}), Use("Bash", {"a": 2})))
Part = dict[str, Any]


def parts_told(spoken: Dialect, reply: Reply, *, stream: bool) -> list[Part]:
    """What a client of Google's gets of a provider's answer."""
    upstream = Asked(spoken, "generate", "m", stream)
    translation = Translation(spoken, asked(Dialect.GEMINI, maker=MAKER, stream=stream))
    said = events(reply, upstream) if stream else [whole(reply, upstream)]
    told = (b"".join(map(translation.feed, said)) + translation.close()).decode()
    documents = [line.removeprefix("data: ") for line in told.splitlines() if line.startswith("data: ")] if stream else [told]
    return [part for document in documents for part in json.loads(document)["candidates"][0]["content"]["parts"]]


def sent_again(spoken: Dialect, parts: list[Part], *, maker: str = MAKER) -> dict[str, Any]:
    """The provider's next request when the client says these parts back, with results of their calls."""
    answers = [
        {"functionResponse": {"id": part["functionCall"]["id"], "name": "Bash", "response": {"output": "it is"}}}
        for part in parts
        if "functionCall" in part
    ]
    said = [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": parts}, {"role": "user", "parts": answers}]
    thinks = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}}
    tools = [{"functionDeclarations": [{"name": "Bash"}]}]
    body = {"contents": said, "generationConfig": thinks, "tools": tools}
    model = "claude-sonnet-4-5" if spoken is Dialect.MESSAGES else "glm-4.7"
    return translate(body, CLIENTS, spoken, model=model, stream=True, session="s", maker=maker).body


def as_kept(parts: list[Part], client: str) -> list[Part]:
    return [part for part in parts if client == "keeps all" or not part.get("thought")]


each_client = pytest.mark.parametrize("client", ["drops thoughts", "keeps all"])
each_form = pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])


@each_client
@each_form
def test_claude_gets_its_thinking_back_before_everything_and_goes_on_thinking(client: str, stream: bool) -> None:
    body = sent_again(Dialect.MESSAGES, as_kept(parts_told(Dialect.MESSAGES, REPLY, stream=stream), client))
    said = body["messages"][1]["content"]
    assert said[0] == {"type": "thinking", "thinking": "Where is it?", "signature": REPLY.signature}
    assert [block["type"] for block in said if block["type"] != "text"] == ["thinking", "tool_use", "tool_use"]
    assert body["thinking"]["type"] == "enabled"


@each_client
@each_form
def test_a_chat_model_gets_its_reasoning_back(client: str, stream: bool) -> None:
    body = sent_again(Dialect.CHAT, as_kept(parts_told(Dialect.CHAT, REPLY, stream=stream), client))
    said = next(message for message in body["messages"] if message["role"] == "assistant")
    assert said["reasoning_content"] == "Where is it?"
    assert len(said["tool_calls"]) == 2


@each_client
@each_form
def test_responses_gets_its_encrypted_reasoning_back(client: str, stream: bool) -> None:
    body = sent_again(Dialect.RESPONSES, as_kept(parts_told(Dialect.RESPONSES, REPLY, stream=stream), client))
    kinds = [item["type"] for item in body["input"]]
    assert kinds.count("reasoning") == 1
    assert kinds.index("reasoning") < kinds.index("function_call")
    assert json.dumps(body).count(REPLY.signature) == 1


def test_another_provider_is_not_told() -> None:
    parts = as_kept(parts_told(Dialect.MESSAGES, REPLY, stream=True), "drops thoughts")
    body = sent_again(Dialect.MESSAGES, parts, maker="somebody-else")
    assert "Where is it?" not in json.dumps(body)
    assert REPLY.signature not in json.dumps(body)


def test_only_the_call_behind_the_thought_carries_it() -> None:
    signed = [part.get("thoughtSignature") for part in parts_told(Dialect.MESSAGES, REPLY, stream=True) if "functionCall" in part]
    assert signed[0]
    assert signed[1] is None


def test_thinking_between_calls_comes_back_between_them() -> None:
    one, two = (Thought(text, Seal(Dialect.MESSAGES, MAKER, {"signature": text})) for text in ("one", "two"))
    calls = [
        ToolUse("c1", "f", "{}", seal=carry([one], first=True)),
        ToolUse("c2", "f", "{}", seal=carry([two], first=False)),
    ]
    bare = [ToolUse("c1", "f", "{}"), ToolUse("c2", "f", "{}")]
    assert unloaded(calls) == [one, bare[0], two, bare[1]]


def test_a_call_sealed_by_its_own_maker_is_left_alone() -> None:
    sealed = ToolUse("c", "f", "{}", seal=Seal(Dialect.GEMINI, "", {"for": "call", "thoughtSignature": "x"}))
    assert unloaded([Thought("t"), sealed]) == [Thought("t"), sealed]
    assert carry([Thought("nobody signed this")], first=True) is None


@pytest.mark.parametrize("payload", [{"thoughts": 1}, {"thoughts": [1, None]}, {"thoughts": [{"text": 5, "payload": []}]}])
def test_what_somebody_has_made_up_harms_nothing(payload: dict[str, Any]) -> None:
    calls = [ToolUse("c", "f", "{}", seal=Seal(Dialect.MESSAGES, MAKER, payload))]
    assert any(isinstance(block, ToolUse) and block.id == "c" for block in unloaded(calls))
