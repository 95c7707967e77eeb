# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import for_target, inner_body, read_call
from routecodex.routing.dialects.calls.growing import with_messages, with_tool, write_results, write_user
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.values import Call, Dialect, ToolCall
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.calls.recorded import CALLS, Recorded

GEMINI = Dialect.GEMINI
RECORDED = [pair[0] for pair in CALLS if pair[1].dialect is GEMINI and pair[1].action == "generate"]
PLAIN, ENVELOPE = "/v1beta/models/m:generateContent", "/v1internal:generateContent"
OWN = ToolCall("clock#0", "clock", "{}")
ANSWER: dict[str, Any] = {
    "role": "model",
    "parts": [
        {"text": "let me see", "thought": True},
        {"text": "Looking."},
        {"functionCall": {"name": "clock", "args": {}}, "thoughtSignature": "Eg=="},
    ],
}


def _call(*contents: dict[str, Any], path: str = PLAIN, **rest: Any) -> Call:
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    inner = {"contents": list(contents), **rest}
    body = {"model": "m", "project": "p", "request": inner} if path == ENVELOPE else inner
    return read_call(json.dumps(body).encode(), endpoint)


def _text(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


RESULT = {"functionResponse": {"name": "clock", "response": {"output": "noon"}}}
GO_ON = {"text": "go on"}


def test_write_user() -> None:
    assert write_user(GEMINI, "go on") == _text("user", "go on")


def test_l13_write_results() -> None:
    """A call with an id of the provider's is answered by it, any other by name and order alone."""
    results = [
        (OWN, "noon", False),
        (ToolCall("clock#1", "clock", "{}"), "midnight", False),
        (ToolCall("adk-7", "lookup", "{}"), "no such thing", True),
        (ToolCall("lookup", "lookup", "{}"), "", False),
    ]
    assert write_results(GEMINI, results) == (
        {
            "role": "user",
            "parts": [
                RESULT,
                {"functionResponse": {"name": "clock", "response": {"output": "midnight"}}},
                {"functionResponse": {"id": "adk-7", "name": "lookup", "response": {"error": "no such thing"}}},
                {"functionResponse": {"name": "lookup", "response": {"output": ""}}},
            ],
        },
    )
    assert write_results(GEMINI, []) == ()


def test_made_ids_go_out_and_come_back() -> None:
    """Two calls of one tool without ids: two ids for us, and two answers in their order for the provider."""
    endpoint = endpoint_of("POST", "/v1beta/models/m:streamGenerateContent?alt=sse")
    assert endpoint is not None
    merger = answer_for(endpoint, stream=True, own_tools=rounds.OWN)
    asked = rounds.spoken(("own", '{"a": 1}'), ("own", '{"a": 2}'))
    _, said = rounds.drive(merger, [rounds.gemini_stream(asked, 1), rounds.gemini_stream(asked, 2)])
    assert [[call.id for call in one.own] for one in said] == [["clock#0", "clock#1"], ["clock#2", "clock#3"]]
    results = write_results(GEMINI, [(call, call.arguments, False) for call in said[0].own])
    grown = with_messages(_call(_text("user", "a")), [*said[0].native, *results])
    contents: Any = grown.body["contents"]
    assert [part["functionCall"]["args"] for part in contents[1]["parts"]] == [{"a": 1}, {"a": 2}]
    given = [part["functionResponse"] for part in contents[2]["parts"]]
    assert given == [{"name": "clock", "response": {"output": f'{{"a":{number}}}'}} for number in (1, 2)]


APPENDED: dict[str, tuple[list[dict[str, Any]], list[Any], list[Any]]] = {
    # contents, what is appended, the contents afterwards
    "m09 follow-up": ([_text("user", "a")], [_text("model", "b"), write_user(GEMINI, "go on")], [_text("user", "a"), _text("model", "b"), _text("user", "go on")]),
    "a tool's result": ([_text("user", "a")], [ANSWER, *write_results(GEMINI, [(OWN, "noon", False)])], [_text("user", "a"), ANSWER, {"role": "user", "parts": [RESULT]}]),
    "result, then text": ([_text("user", "a")], [ANSWER, *write_results(GEMINI, [(OWN, "noon", False)]), write_user(GEMINI, "go on")], [_text("user", "a"), ANSWER, {"role": "user", "parts": [RESULT, GO_ON]}]),
    "text, then result": ([_text("user", "a"), ANSWER], [write_user(GEMINI, "go on"), *write_results(GEMINI, [(OWN, "noon", False)])], [_text("user", "a"), ANSWER, {"role": "user", "parts": [RESULT, GO_ON]}]),
    "the answer said nothing": ([{"parts": [{"text": "a"}]}], [write_user(GEMINI, "go on")], [{"parts": [{"text": "a"}, GO_ON]}]),
    "nothing empty": ([_text("user", "a")], [_text("model", ""), {"role": "model", "parts": [{"text": ""}, {"text": "", "thoughtSignature": "Eg=="}]}, write_user(GEMINI, "")], [_text("user", "a"), {"role": "model", "parts": [{"text": "", "thoughtSignature": "Eg=="}]}]),
}  # fmt: skip


@pytest.mark.parametrize("path", [PLAIN, ENVELOPE])
@pytest.mark.parametrize("case", APPENDED)
def test_with_messages(case: str, path: str) -> None:
    contents, items, expected = APPENDED[case]
    call = _call(*contents, path=path, generationConfig={"temperature": 0.5})
    before = copy.deepcopy((call, items))
    grown = with_messages(call, items)
    sent = json.loads(for_target(grown, "", foreign=False))
    if path == ENVELOPE:
        assert (sent["model"], sent["project"]) == ("m", "p")
        sent = sent["request"]
    assert sent == {"contents": expected, "generationConfig": {"temperature": 0.5}}
    assert (call, items) == before
    assert grown.changed
    assert not call.changed


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.name)
def test_a_recorded_call_grows(recorded: Recorded) -> None:
    assert recorded.endpoint is not None
    call = read_call(recorded.raw, recorded.endpoint)
    before = copy.deepcopy(call)
    items = [ANSWER, *write_results(GEMINI, [(OWN, "noon", False)]), write_user(GEMINI, "继续执行")]
    grown = with_tool(with_messages(call, items), "clock", "Tells the time", {"type": "object"}, strict=True)
    sent = for_target(grown, "", foreign=False)
    assert call == before
    again = read_call(sent, recorded.endpoint)
    assert again.messages == grown.messages
    assert sorted(again.tools) == sorted(grown.tools)
    assert [message.index for message in grown.messages] == list(range(len(grown.messages)))
    old, new = inner_body(call), inner_body(again)
    assert new["contents"] == [*old["contents"], ANSWER, {"role": "user", "parts": [RESULT, {"text": "继续执行"}]}]  # type: ignore[misc]
    rest = [{key: value for key, value in inner.items() if key not in ("contents", "tools")} for inner in (old, new)]
    assert rest[0] == rest[1]


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["action"],
    "properties": {
        "action": {"const": "now", "description": "what"},
        "additionalProperties": {"type": ["string", "null"]},
        "items": {"type": "array", "items": {"type": "object", "additionalProperties": False}},
        "at": {"oneOf": [{"type": "string", "format": "date-time"}, {"type": "integer", "exclusiveMinimum": 0}]},
    },
}
WRITTEN: dict[str, Any] = {
    "type": "object",
    "required": ["action"],
    "properties": {
        "action": {"enum": ["now"], "description": "what"},
        "additionalProperties": {"type": "string", "nullable": True},
        "items": {"type": "array", "items": {"type": "object"}},
        "at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]},
    },
}
CLOCK = {"name": "clock", "description": "Tells the time"}
SEARCH: dict[str, Any] = {"googleSearch": {}}
TOOLS: dict[str, tuple[Any, Any]] = {
    # the client's tools, and those with ours
    "none": (None, [{"functionDeclarations": [{**CLOCK, "parameters": WRITTEN}]}]),
    "built-in alone": ([SEARCH], [SEARCH, {"functionDeclarations": [{**CLOCK, "parameters": WRITTEN}]}]),
    "parameters": ([SEARCH, {"functionDeclarations": [{"name": "Bash", "parameters": {}}]}], [SEARCH, {"functionDeclarations": [{"name": "Bash", "parameters": {}}, {**CLOCK, "parameters": WRITTEN}]}]),
    "json schema": ([{"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": {}}]}], [{"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": {}}, {**CLOCK, "parametersJsonSchema": SCHEMA}]}]),
    "snake case": ([{"function_declarations": [{"name": "Bash", "parameters_json_schema": {}}]}], [{"function_declarations": [{"name": "Bash", "parameters_json_schema": {}}, {**CLOCK, "parameters_json_schema": SCHEMA}]}]),
}  # fmt: skip


@pytest.mark.parametrize("path", [PLAIN, ENVELOPE])
@pytest.mark.parametrize("case", TOOLS)
def test_with_tool(case: str, path: str) -> None:
    tools, expected = TOOLS[case]
    call = _call(_text("user", "a"), path=path, **({} if tools is None else {"tools": tools}))
    before = copy.deepcopy(call)
    grown = with_tool(call, "clock", "Tells the time", SCHEMA, strict=True)
    assert inner_body(grown)["tools"] == expected
    assert call == before
    assert grown.tools == (*call.tools, "clock")
