# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.calls.growing import with_messages, with_tool, write_results, write_user
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.values import Call, Dialect, ToolCall
from tests.routing.dialects.calls.recorded import CALLS, Recorded

MESSAGES = Dialect.MESSAGES
RECORDED = [pair[0] for pair in CALLS if pair[1].dialect is MESSAGES and pair[1].action == "generate"]
OWN = ToolCall("toolu_1", "clock", '{"action": "now"}')
THINKING = {"type": "thinking", "thinking": "let me see", "signature": "EuYB+/=="}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {"action": "now"}}
ANSWER: dict[str, Any] = {"role": "assistant", "content": [THINKING, {"type": "text", "text": "Looking."}, TOOL_USE]}


def _call(*messages: dict[str, Any], **rest: Any) -> Call:
    endpoint = endpoint_of("POST", "/v1/messages")
    assert endpoint is not None
    return read_call(json.dumps({"model": "m", "messages": list(messages), **rest}).encode(), endpoint)


def _text(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _grown(call: Call, *items: Any) -> list[Any]:
    return json.loads(for_target(with_messages(call, items), "", foreign=False))["messages"]


def test_write_user() -> None:
    assert write_user(MESSAGES, "go on") == _text("user", "go on")


def test_l13_write_results() -> None:
    """All results of one answer stand in one message, in the order of their calls."""
    results = [(OWN, "noon", False), (ToolCall("toolu_2", "lookup", "{}"), "no such thing", True)]
    assert write_results(MESSAGES, results) == (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such thing", "is_error": True},
            ],
        },
    )
    assert write_results(MESSAGES, []) == ()


RESULT = write_results(MESSAGES, [(OWN, "noon", False)])[0]["content"]
GO_ON = {"type": "text", "text": "go on"}

APPENDED: dict[str, tuple[list[dict[str, Any]], list[Any], list[Any]]] = {
    # history, what is appended, the history afterwards
    "m09 follow-up": ([_text("user", "a")], [_text("assistant", "b"), write_user(MESSAGES, "go on")], [_text("user", "a"), _text("assistant", "b"), _text("user", "go on")]),
    "a tool's result": ([_text("user", "a")], [ANSWER, *write_results(MESSAGES, [(OWN, "noon", False)])], [_text("user", "a"), ANSWER, {"role": "user", "content": RESULT}]),
    "result, then text": ([_text("user", "a")], [ANSWER, *write_results(MESSAGES, [(OWN, "noon", False)]), write_user(MESSAGES, "go on")], [_text("user", "a"), ANSWER, {"role": "user", "content": [*RESULT, GO_ON]}]),
    "text, then result": ([_text("user", "a"), ANSWER], [write_user(MESSAGES, "go on"), *write_results(MESSAGES, [(OWN, "noon", False)])], [_text("user", "a"), ANSWER, {"role": "user", "content": [*RESULT, GO_ON]}]),
    "the answer said nothing": ([{"role": "user", "content": "a"}], [write_user(MESSAGES, "go on")], [{"role": "user", "content": [{"type": "text", "text": "a"}, GO_ON]}]),
    "a prefilled answer": ([_text("user", "a"), _text("assistant", "It is")], [_text("assistant", " noon")], [_text("user", "a"), {"role": "assistant", "content": [{"type": "text", "text": "It is"}, {"type": "text", "text": " noon"}]}]),
    "behind a system item": ([_text("user", "a"), {"role": "system", "content": "# Environment"}], [_text("assistant", "b"), write_user(MESSAGES, "go on")], [_text("user", "a"), {"role": "system", "content": "# Environment"}, _text("assistant", "b"), _text("user", "go on")]),
    "a user text behind a system item": ([_text("user", "a"), {"role": "system", "content": "# Environment"}], [write_user(MESSAGES, "go on")], [_text("user", "a"), {"role": "system", "content": "# Environment"}, _text("user", "go on")]),
    "nothing empty": ([_text("user", "a")], [_text("assistant", " \n"), {"role": "assistant", "content": [{"type": "text", "text": ""}, GO_ON]}, write_user(MESSAGES, "")], [_text("user", "a"), {"role": "assistant", "content": [GO_ON]}]),
    "a cache mark stays where it is": ([{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}], [write_user(MESSAGES, "go on")], [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, GO_ON]}]),
}  # fmt: skip


@pytest.mark.parametrize("case", APPENDED)
def test_with_messages(case: str) -> None:
    history, items, expected = APPENDED[case]
    call = _call(*history, temperature=0.5)
    before = copy.deepcopy((call, items))
    grown = with_messages(call, items)
    assert json.loads(for_target(grown, "", foreign=False)) == {"model": "m", "messages": expected, "temperature": 0.5}
    assert (call, items) == before
    assert grown.changed
    assert not call.changed


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.name)
def test_a_recorded_call_grows(recorded: Recorded) -> None:
    """M08, M09: everything the client sent is still there as it was, the same additions give the same bytes, views are true."""
    assert recorded.endpoint is not None
    call = read_call(recorded.raw, recorded.endpoint)
    before = copy.deepcopy(call)
    items = [ANSWER, *write_results(MESSAGES, [(OWN, "noon", False)]), write_user(MESSAGES, "继续执行")]
    grown, twice = (
        with_tool(with_messages(call, items), "clock", "Tells the time", {"type": "object"}, strict=True) for _ in "12"
    )
    sent = for_target(grown, "", foreign=False)
    assert sent == for_target(twice, "", foreign=False)
    assert call == before
    again = read_call(sent, recorded.endpoint)
    assert again.messages == grown.messages
    assert again.tools == grown.tools == (*call.tools, "clock")
    assert [message.index for message in grown.messages] == list(range(len(grown.messages)))
    old, new = json.loads(recorded.raw), json.loads(sent)
    assert new["messages"][-1]["content"][-1] == {"type": "text", "text": "继续执行"}
    assert new["messages"][: len(old["messages"]) - 1] == old["messages"][:-1]
    assert new["tools"][:-1] == old.get("tools", [])
    assert {key: value for key, value in new.items() if key not in ("messages", "tools")} == {
        key: value for key, value in old.items() if key not in ("messages", "tools")
    }
    roles = [item["role"] for item in new["messages"][len(old["messages"]) - 1 :]]
    assert all(one != other for one, other in itertools.pairwise(roles))


def test_with_tool() -> None:
    schema = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}
    first = {"name": "Bash", "description": "", "input_schema": {}, "cache_control": {"type": "ephemeral"}}
    call = _call(_text("user", "a"), tools=[first])
    grown = with_tool(call, "clock", "Tells the time", schema, strict=False)
    written = {"name": "clock", "description": "Tells the time", "input_schema": schema}
    assert grown.body["tools"] == [first, written]
    assert (call.tools, grown.tools) == (("Bash",), ("Bash", "clock"))
    grown = with_tool(_call(_text("user", "a")), "clock", "Tells the time", schema, strict=True)
    assert grown.body["tools"] == [written], "not every host and model of this dialect takes the mark"
