# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.calls.growing import with_messages, with_tool, write_results, write_user
from routecodex.routing.values import Call, Dialect, Endpoint, ToolCall
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.rounds import OWN, spoken
from tests.routing.dialects.calls.recorded import CALLS, Recorded

CHAT = Dialect.CHAT
RECORDED = [pair[0] for pair in CALLS if pair[1].dialect is CHAT and pair[1].action == "generate"]
OWN_CALL = ToolCall("call_1", "clock", '{"action": "now"}')
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "noon"}
ASKS: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": '{"action": "now"}'}}]}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}


def _call(*messages: dict[str, Any], **rest: Any) -> Call:
    return read_call(json.dumps({"model": "m", "messages": list(messages), **rest}).encode(), Endpoint(CHAT))


def _text(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def test_write_user() -> None:
    assert write_user(CHAT, "go on") == _text("user", "go on")


def test_l13_write_results() -> None:
    """One message for each call, in the order of the calls; the older kind of call has no id."""
    results = [(OWN_CALL, "noon", False), (ToolCall("call_2", "lookup", "{}"), "no such thing", True), (ToolCall("", "clock", "{}"), "", False)]  # fmt: skip
    assert write_results(CHAT, results) == (
        RESULT,
        {"role": "tool", "tool_call_id": "call_2", "content": "no such thing"},
        {"role": "function", "name": "clock", "content": ""},
    )
    assert write_results(CHAT, []) == ()


APPENDED: dict[str, tuple[list[dict[str, Any]], list[Any], list[Any]]] = {
    # history, what is appended, what stands behind the history then
    "m09 follow-up": ([_text("user", "a")], [_text("assistant", "b"), write_user(CHAT, "go on")], [_text("assistant", "b"), _text("user", "go on")]),
    "a tool's result": ([_text("user", "a")], [ASKS, RESULT], [ASKS, RESULT]),
    "a tool's empty result": ([_text("user", "a")], [ASKS, {**RESULT, "content": ""}], [ASKS, {**RESULT, "content": ""}]),
    "result, then text": ([_text("user", "a")], [ASKS, RESULT, write_user(CHAT, "go on")], [ASKS, RESULT, _text("user", "go on")]),
    "the answer said nothing": ([_text("user", "a")], [write_user(CHAT, "go on")], [_text("user", "go on")]),
    "behind a system message": ([_text("user", "a"), _text("system", "rules")], [_text("assistant", "b"), write_user(CHAT, "go on")], [_text("assistant", "b"), _text("user", "go on")]),
    "nothing empty": ([_text("user", "a")], [_text("assistant", " \n"), {"role": "assistant", "content": None}, {"role": "assistant", "content": []}, write_user(CHAT, "")], []),
    "an answer of nothing but a call": ([_text("user", "a")], [ASKS], [ASKS]),
    "a refusal": ([_text("user", "a")], [{"role": "assistant", "content": None, "refusal": "no"}], [{"role": "assistant", "content": None, "refusal": "no"}]),
}  # fmt: skip


@pytest.mark.parametrize("case", APPENDED)
def test_with_messages(case: str) -> None:
    history, items, expected = APPENDED[case]
    call = _call(*history, temperature=0.5)
    before = copy.deepcopy((call, items))
    grown = with_messages(call, items)
    sent = for_target(grown, "", foreign=False)
    assert json.loads(sent) == {"model": "m", "messages": [*history, *expected], "temperature": 0.5}
    assert (call, items) == before
    assert grown.changed
    assert not call.changed
    assert read_call(sent, Endpoint(CHAT)).messages == grown.messages


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.name)
def test_a_recorded_call_grows(recorded: Recorded) -> None:
    """M08, M09: everything the client sent is still there as it was, the same additions give the same bytes, views are true."""
    assert recorded.endpoint is not None
    call = read_call(recorded.raw, recorded.endpoint)
    before = copy.deepcopy(call)
    items = [ASKS, RESULT, write_user(CHAT, "继续执行")]
    grown, twice = (with_tool(with_messages(call, items), "clock", "Tells the time", SCHEMA, strict=True) for _ in "12")
    sent = for_target(grown, "", foreign=False)
    assert sent == for_target(twice, "", foreign=False)
    assert call == before
    again = read_call(sent, recorded.endpoint)
    assert again.messages == grown.messages
    assert again.tools == grown.tools == (*call.tools, "clock")
    old, new = json.loads(recorded.raw), json.loads(sent)
    assert new["messages"] == [*old["messages"], *items]
    assert new["tools"][:-1] == old.get("tools", [])
    assert {**new, "messages": 0, "tools": 0} == {**old, "messages": 0, "tools": 0}
    assert list(new)[: len(old)] == list(old)


def test_with_tool() -> None:
    written = {"name": "clock", "description": "Tells the time", "parameters": SCHEMA}
    first = {"type": "function", "function": {"name": "exec_command", "parameters": {}}}
    call = _call(_text("user", "a"), tools=[first])
    grown = with_tool(call, "clock", "Tells the time", SCHEMA, strict=False)
    assert grown.body["tools"] == [first, {"type": "function", "function": written}]
    assert (call.tools, grown.tools) == (("exec_command",), ("exec_command", "clock"))
    assert call.body["tools"] == [first]
    grown = with_tool(_call(_text("user", "a")), "clock", "Tells the time", SCHEMA, strict=True)
    assert grown.body["tools"] == [{"type": "function", "function": {**written, "strict": True}}]
    assert grown.changed


def test_a_call_with_functions_gets_a_function() -> None:
    first = {"name": "exec_command", "parameters": {}}
    grown = with_tool(_call(_text("user", "a"), functions=[first]), "clock", "Tells the time", SCHEMA, strict=True)
    assert grown.body["functions"] == [first, {"name": "clock", "description": "Tells the time", "parameters": SCHEMA}]
    assert "tools" not in grown.body
    assert grown.tools == ("exec_command", "clock")


def test_d15_what_a_round_said_goes_back_as_it_was_said() -> None:
    """Answer, our call, its result, follow-up: legal for the interface, and read again as what was said."""
    merger = answer_for(Endpoint(CHAT), stream=True, own_tools=OWN)
    round_ = spoken(("thinking", "let me see"), ("text", "Looking."), ("own", '{"action": "now"}'))
    _, said = rounds.feed_round(merger, openai.chat_stream(round_, 1))
    results = write_results(CHAT, [(call, "noon", False) for call in said.own])
    grown = with_messages(_call(_text("user", "a")), [*said.native, *results, write_user(CHAT, "go on")])
    sent = json.loads(for_target(grown, "", foreign=False))["messages"]
    assert [item["role"] for item in sent] == ["user", "assistant", "tool", "user"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
    assert sent[1]["reasoning_content"] == "let me see"
    assert (grown.messages[1].text, grown.messages[1].parts[-1].name) == ("Looking.", "clock")  # type: ignore[union-attr]
