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

RESPONSES = Dialect.RESPONSES
RECORDED = [pair[0] for pair in CALLS if pair[1].dialect is RESPONSES and pair[1].action == "generate"]
OWN_CALL = ToolCall("call_1", "clock", '{"action": "now"}')
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}
ASKS = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "clock", "arguments": '{"action": "now"}', "status": "completed"}  # fmt: skip
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
SAID: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "b", "annotations": []}]}  # fmt: skip
GO_ON: dict[str, Any] = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}
SCHEMA = {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]}
TOOL = {"type": "function", "name": "clock", "description": "Tells the time", "parameters": SCHEMA, "strict": False}


def _call(given: Any, **rest: Any) -> Call:
    return read_call(json.dumps({"model": "m", "input": given, **rest}).encode(), Endpoint(RESPONSES))


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def test_write_user() -> None:
    assert write_user(RESPONSES, "go on") == GO_ON


def test_l13_write_results() -> None:
    """One item for each call, in the order of the calls."""
    results = [(OWN_CALL, "noon", False), (ToolCall("call_2", "lookup", "{}"), "no such thing", True)]
    assert write_results(RESPONSES, results) == (
        RESULT,
        {"type": "function_call_output", "call_id": "call_2", "output": "no such thing"},
    )
    assert write_results(RESPONSES, []) == ()


_EMPTY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": " \n"}]}
_A = {"type": "message", "role": "user", "content": "a"}

APPENDED: dict[str, tuple[Any, dict[str, Any], list[Any], list[Any]]] = {
    # input, other fields, what is appended, the input afterwards
    "m09 follow-up": ([_user("a")], {}, [THOUGHT, SAID, GO_ON], [_user("a"), THOUGHT, SAID, GO_ON]),
    "a tool's result": ([_user("a")], {}, [THOUGHT, ASKS, RESULT], [_user("a"), THOUGHT, ASKS, RESULT]),
    "result, then text": ([_user("a")], {}, [ASKS, RESULT, GO_ON], [_user("a"), ASKS, RESULT, GO_ON]),
    "an input of one text": ("a", {}, [SAID, GO_ON], [_A, SAID, GO_ON]),
    "no input at all": (None, {"prompt": {"id": "pmpt_1"}}, [SAID, GO_ON], [SAID, GO_ON]),
    "nothing empty": ([_user("a")], {}, [_EMPTY, {**_EMPTY, "content": []}, {**_EMPTY, "content": ""}, write_user(RESPONSES, "")], [_user("a")]),
    "a refusal": ([_user("a")], {}, [{**SAID, "content": [{"type": "refusal", "refusal": "no"}]}], [_user("a"), {**SAID, "content": [{"type": "refusal", "refusal": "no"}]}]),
    "behind a previous response": ([_user("a")], {"previous_response_id": "resp_0"}, [SAID, GO_ON], [_user("a"), SAID, GO_ON]),
    "in a conversation": ([_user("a")], {"conversation": "conv_1"}, [THOUGHT, SAID, GO_ON], [GO_ON]),
    "in a conversation, several rounds": ("a", {"conversation": {"id": "conv_1"}}, [SAID, GO_ON, THOUGHT, ASKS, RESULT, GO_ON], [RESULT, GO_ON]),
    "in a conversation, no answer": ([_user("a")], {"conversation": "conv_1"}, [GO_ON], [_user("a"), GO_ON]),
}  # fmt: skip


@pytest.mark.parametrize("case", APPENDED)
def test_with_messages(case: str) -> None:
    given, rest, items, expected = APPENDED[case]
    call = _call(given, **rest)
    before = copy.deepcopy((call, items))
    grown = with_messages(call, items)
    sent = for_target(grown, "", foreign=False)
    assert json.loads(sent) == {"model": "m", "input": expected, **rest}
    assert (call, items) == before
    assert grown.changed
    assert not call.changed
    assert read_call(sent, Endpoint(RESPONSES)).messages == grown.messages


def test_a_conversation_goes_on_from_where_it_is() -> None:
    """Each round brings only what its provider has not heard, also where the call grows step by step."""
    call = with_messages(_call([_user("a")], conversation="conv_1"), [SAID, GO_ON])
    assert with_messages(call, [ASKS, RESULT]).body["input"] == [RESULT]
    assert with_messages(with_messages(call, [ASKS]), [RESULT]).body["input"] == [RESULT]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.name)
def test_a_recorded_call_grows(recorded: Recorded) -> None:
    """M08, M09: everything the client sent is still there as it was, the same additions give the same bytes, views are true."""
    assert recorded.endpoint is not None
    call = read_call(recorded.raw, recorded.endpoint)
    before = copy.deepcopy(call)
    items = [THOUGHT, SAID, ASKS, RESULT, write_user(RESPONSES, "继续执行")]
    grown, twice = (with_tool(with_messages(call, items), "clock", "Tells the time", SCHEMA, strict=False) for _ in "12")
    sent = for_target(grown, "", foreign=False)
    assert sent == for_target(twice, "", foreign=False)
    assert call == before
    again = read_call(sent, recorded.endpoint)
    assert again.messages == grown.messages
    assert sorted(again.tools) == sorted(grown.tools) == sorted((*call.tools, "clock"))
    old, new = json.loads(recorded.raw), json.loads(sent)
    old["input"] = (
        old["input"] if isinstance(old["input"], list) else [{"type": "message", "role": "user", "content": old["input"]}]
    )
    assert new["input"][len(old["input"]) :] == items
    carried = [item for item in new["input"] if item.get("type") == "additional_tools"]
    if carried and not old.get("tools"):
        assert carried[-1]["tools"].pop() == TOOL
        assert "tools" not in new
    else:
        assert new.pop("tools") == [*old.pop("tools", []), TOOL]
    assert new["input"][: len(old["input"])] == old["input"]
    assert {**new, "input": 0} == {**old, "input": 0}


def test_with_tool() -> None:
    """`strict` is always told: without it the interface takes the schema for a strict one."""
    first = {"type": "function", "name": "exec_command", "parameters": {}}
    call = _call("a", tools=[first])
    grown = with_tool(call, "clock", "Tells the time", SCHEMA, strict=False)
    assert grown.body["tools"] == [first, TOOL]
    assert grown.body["input"] == "a"
    assert (call.tools, grown.tools) == (("exec_command",), ("exec_command", "clock"))
    grown = with_tool(_call("a"), "clock", "Tells the time", SCHEMA, strict=True)
    assert grown.body["tools"] == [{**TOOL, "strict": True}]


def test_our_tool_stands_where_the_clients_own_are() -> None:
    """Codex declares its tools in an item of the input."""
    carried = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]}
    call = _call([carried, _user("a")])
    grown = with_tool(call, "clock", "Tells the time", SCHEMA, strict=False)
    assert grown.body["input"] == [{**carried, "tools": [*carried["tools"], TOOL]}, _user("a")]
    assert "tools" not in grown.body
    assert call.body["input"] == [carried, _user("a")]
    both = with_tool(_call([carried], tools=[{"type": "web_search"}]), "clock", "Tells the time", SCHEMA, strict=False)
    assert both.body["tools"] == [{"type": "web_search"}, TOOL]


@pytest.mark.parametrize("store", [True, False])
def test_d15_what_a_round_said_goes_back_as_it_was_said(store: bool) -> None:
    """Reasoning, answer, our call, its result, follow-up; ids only where the provider can know them."""
    merger = answer_for(Endpoint(RESPONSES), stream=True, own_tools=OWN)
    round_ = spoken(("thinking", "let me see"), ("text", "Looking."), ("own", '{"action": "now"}'))
    raw = openai.responses_stream(round_, 1).replace(b'"store": true', f'"store": {json.dumps(store)}'.encode())
    _, said = rounds.feed_round(merger, raw)
    results = write_results(RESPONSES, [(call, "noon", False) for call in said.own])
    call = _call([_user("a")], store=store)
    grown = with_messages(call, [*said.native, *results, write_user(RESPONSES, "go on")])
    sent = json.loads(for_target(grown, "", foreign=False))["input"]
    assert [item.get("type") for item in sent] == [
        None,
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert sent[3]["call_id"] == sent[4]["call_id"]
    assert all(("id" in item) is store for item in sent[1:4])
    assert sent[1]["encrypted_content"]
    assert grown.messages[2].text == "Looking."
    elsewhere = json.loads(for_target(grown, "", foreign=True))["input"]
    assert [item.get("type") for item in elsewhere] == [None, "message", "function_call", "function_call_output", "message"]
