"""R15: what clients send that no schema allows: every reader takes it, passes it over, or refuses it by name."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from routecodex.routing.dialects import calls
from routecodex.routing.dialects.calls import growing
from routecodex.routing.dialects.estimate import estimate_tokens
from routecodex.routing.dialects.translation import going_up
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.router.features import read_features
from routecodex.routing.values import Call, Caller, Dialect, Endpoint, Kind, ToolResult

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
OBJECT = {"rows": [1, 2], "ok": True}
JSON = '{"rows":[1,2],"ok":true}'


def _endpoint(dialect: Dialect) -> Endpoint:
    return Endpoint(dialect, stream=False if dialect is GEMINI else None)


def _with_result(dialect: Dialect, result: object) -> dict[str, Any]:
    """A call whose history holds one call of a tool and what it answered."""
    match dialect:
        case Dialect.MESSAGES:
            use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"q": 1}}]}
            told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]}
            return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, use, told]}
        case Dialect.CHAT:
            call = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": {"q": 1}}}
            use = {"role": "assistant", "tool_calls": [call]}
            told = {"role": "tool", "tool_call_id": "t1", "content": result}
            return {"model": "m", "messages": [{"role": "user", "content": "hi"}, use, told]}
        case Dialect.RESPONSES:
            use = {"type": "function_call", "call_id": "t1", "name": "f", "arguments": {"q": 1}}
            told = {"type": "function_call_output", "call_id": "t1", "output": result}
            return {"model": "m", "input": [{"role": "user", "content": "hi"}, use, told]}
        case Dialect.GEMINI:
            use = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"q": 1}}}]}
            told = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": result}}]}
            return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, use, told]}


def _read(dialect: Dialect, body: object) -> Call:
    return calls.read_call(json.dumps(body).encode(), _endpoint(dialect))


def _told(call: Call, target: Dialect) -> Any:
    source = call.endpoint
    bare = json.loads(calls.for_target(call, "m", foreign=True))
    return going_up.translate(bare, source, target, model="gpt-5", stream=False, session="", maker="acme").body


def _results(body: Any, dialect: Dialect) -> list[str]:
    """What the provider reads of the tool's answer."""
    match dialect:
        case Dialect.MESSAGES:
            blocks = [
                block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
            ]
            told = [block["content"] for block in blocks if block["type"] == "tool_result"]
            return ["\n".join(part["text"] for part in one) if isinstance(one, list) else one for one in told]
        case Dialect.CHAT:
            return [message["content"] for message in body["messages"] if message["role"] == "tool"]
        case Dialect.RESPONSES:
            return [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
        case Dialect.GEMINI:
            parts = [part for content in body["contents"] for part in content["parts"]]
            return [part["functionResponse"]["response"]["output"] for part in parts if "functionResponse" in part]


PAIRS = [pytest.param(source, target, id=f"{source}-to-{target}") for source in Dialect for target in Dialect if target != source]


@pytest.mark.parametrize("source, target", PAIRS)
@pytest.mark.parametrize("result, text", [(OBJECT, JSON), ([OBJECT], f"[{JSON}]"), ([1, 2], "[1,2]"), (7, "7"), (True, "true")])
def test_a_tools_answer_that_is_a_value_is_told_as_its_json(source: Dialect, target: Dialect, result: object, text: str) -> None:
    call = _read(source, _with_result(source, result))
    assert json.loads(calls.for_target(call, "", foreign=False)) == _with_result(source, result)
    assert _results(_told(call, target), target) == [text]
    (view,) = [part for message in call.messages for part in message.parts if isinstance(part, ToolResult)]
    assert view.text == text or source is GEMINI


@pytest.mark.parametrize("source", [MESSAGES, CHAT, RESPONSES])
@pytest.mark.parametrize("target", list(Dialect))
def test_values_beside_parts(source: Dialect, target: Dialect) -> None:
    kind = "input_text" if source is RESPONSES else "text"
    if source is not target:
        call = _read(source, _with_result(source, [{"type": kind, "text": "see"}, OBJECT, "plain"]))
        (told,) = _results(_told(call, target), target)
        assert told.split() == ["see", JSON, "plain"]


@pytest.mark.parametrize("source, target", PAIRS)
def test_arguments_that_are_an_object_are_told(source: Dialect, target: Dialect) -> None:
    text = json.dumps(_told(_read(source, _with_result(source, "ok")), target))
    assert '"q": 1' in text or '\\"q\\":1' in text or '\\"q\\": 1' in text


NO_TOOLS: list[object] = [7, "x", None, True, 1.5, [], [[]], {}]
NAMED: dict[Dialect, object] = {
    MESSAGES: {"name": "f", "input_schema": {"type": "object"}},
    CHAT: {"type": "function", "function": {"name": "f"}},
    RESPONSES: {"type": "function", "name": "f"},
    GEMINI: {"functionDeclarations": [7, "x", None, {"name": "f"}]},
}


@pytest.mark.parametrize("source, target", PAIRS)
def test_an_entry_of_tools_that_is_no_tool_is_passed_over(source: Dialect, target: Dialect) -> None:
    body = {**_with_result(source, "ok"), "tools": [*NO_TOOLS, NAMED[source]]}
    call = _read(source, body)
    assert call.tools[-1] == "f"
    written = _told(call, target)
    named = json.dumps(written["tools"])
    assert '"f"' in named
    (tool,) = written["tools"]
    assert isinstance(tool, dict)


@pytest.mark.parametrize("source", list(Dialect))
@pytest.mark.parametrize("tools", [7, "x", True, {"name": "f"}, [7], ["x"], [[NAMED]]])
def test_tools_that_are_no_tools(source: Dialect, tools: Any) -> None:
    tools = [[NAMED[source]]] if tools == [[NAMED]] else tools
    call = _read(source, {**_with_result(source, "ok"), "tools": tools})
    assert "f" not in call.tools
    _every_way(call)


def _every_way(call: Call) -> None:
    """All that reads a call's body: an error of ours is fine, any other is a crash."""
    read_features(call, Caller("tester", Kind.MAIN), 0, None)
    estimate_tokens(call)
    for way in (
        lambda: growing.with_tool(call, "clock", "d", {"type": "object", "properties": {}}, strict=True),
        lambda: calls.for_target(call, "m", foreign=True),
        lambda: going_up.repeated(call),
        *(lambda target=target: _told(call, target) for target in Dialect if target is not call.endpoint.dialect),
    ):
        with suppress(RouteCodexError):
            way()


# --- anything anywhere ----------------------------------------------------------------------------------------------------

JUNK: list[Any] = [None, 0, 7, True, 1.5, "", "x", [], {}, [1], ["x"], [None], {"a": 1}, [{}], {"type": 7}, {"name": []}, 1e300]


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if before:
        yield before
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _paths(value[key], (*before, key))


def _changed(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    new = copy.deepcopy(value)
    holder = new
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = junk
    return new


@pytest.mark.parametrize("source", list(Dialect))
def test_no_value_anywhere_crashes_a_reader(source: Dialect) -> None:
    chance = random.Random(str(source))
    body = {
        **_with_result(source, "ok"),
        "tools": [NAMED[source], NAMED[source]],
        "tool_choice": {"type": "auto"},
        "metadata": {},
    }
    for path in list(_paths(body)):
        for junk in chance.sample(JUNK, 4):
            with suppress(RouteCodexError):
                _every_way(_read(source, _changed(body, path, junk)))
