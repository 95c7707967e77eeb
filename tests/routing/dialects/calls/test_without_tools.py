"""Messages without the calls of some tools and their results, in four dialects."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.dialects.calls.without_tools import without_tools
from routecodex.routing.values import Dialect, JsonObject


def use(id: str, name: str = "dice") -> JsonObject:
    return {"type": "tool_use", "id": id, "name": name}


def result(id: str) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": id}


LEFT_OUT: list[tuple[Dialect, list[JsonObject], list[JsonObject]]] = [
    (
        Dialect.MESSAGES,
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "t"}, use("1")],
            },
            {"role": "user", "content": [result("1")]},
            {"role": "assistant", "content": "plain"},
        ],
        [{"role": "assistant", "content": "plain"}],
    ),
    (
        Dialect.MESSAGES,
        [
            {"role": "assistant", "content": [{"type": "text", "text": "a"}, use("1")]},
            {
                "role": "user",
                "content": [result("1"), result("2")],
            },
        ],
        [
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
            {"role": "user", "content": [result("2")]},
        ],
    ),
    (
        Dialect.CHAT,
        [
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "dice"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "6"},
            {
                "role": "assistant",
                "content": "x",
                "tool_calls": [{"id": "2", "function": {"name": "dice"}}, {"id": "3", "function": {"name": "bash"}}],
            },
            {"role": "tool", "tool_call_id": "2", "content": "6"},
            {"role": "tool", "tool_call_id": "3", "content": "7"},
        ],
        [
            {"role": "assistant", "content": "x", "tool_calls": [{"id": "3", "function": {"name": "bash"}}]},
            {"role": "tool", "tool_call_id": "3", "content": "7"},
        ],
    ),
    (
        Dialect.RESPONSES,
        [
            {"type": "reasoning", "id": "r1"},
            {"type": "function_call", "call_id": "1", "name": "dice"},
            {"type": "function_call_output", "call_id": "1"},
            {"type": "reasoning", "id": "r2"},
            {"type": "function_call", "call_id": "2", "name": "dice"},
            {"type": "function_call", "call_id": "3", "name": "bash"},
            {"type": "function_call_output", "call_id": "2"},
            {"type": "message", "id": "m"},
        ],
        [
            {"type": "reasoning", "id": "r2"},
            {"type": "function_call", "call_id": "3", "name": "bash"},
            {"type": "message", "id": "m"},
        ],
    ),
    (
        Dialect.GEMINI,
        [
            {"role": "model", "parts": [{"text": "t", "thought": True}, {"functionCall": {"name": "dice"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "dice"}}]},
            {"role": "model", "parts": [{"text": "a"}, {"functionCall": {"name": "dice"}}, {"functionCall": {"name": "bash"}}]},
        ],
        [{"role": "model", "parts": [{"text": "a"}, {"functionCall": {"name": "bash"}}]}],
    ),
]


ODD: list[JsonObject] = [
    {"role": "assistant", "content": [5, {"type": "tool_use", "id": {}, "name": {}}, {"type": "tool_result", "tool_use_id": []}]},
    {"role": "assistant", "tool_calls": [5, {"id": {}, "function": {"name": []}}]},
    {"role": "tool", "tool_call_id": {}},
    {"type": "function_call", "name": {}, "call_id": []},
    {"type": "function_call_output", "call_id": {}},
    {"role": "model", "parts": [5, {"functionCall": {"name": {}}}, {"functionResponse": 5}]},
]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_l16_what_is_not_understood_stays(dialect: Dialect) -> None:
    assert list(without_tools(dialect, ODD, {"dice"})) == ODD


@pytest.mark.parametrize("dialect, items, left", LEFT_OUT)
def test_l16_in_every_dialect(dialect: Dialect, items: list[JsonObject], left: list[JsonObject]) -> None:
    before = json.dumps(items)
    assert list(without_tools(dialect, items, {"dice"})) == left
    assert json.dumps(items) == before
    assert list(without_tools(dialect, items, {"cards"})) == items
    assert list(without_tools(dialect, items, ())) == items
