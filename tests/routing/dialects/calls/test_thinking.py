"""Whether a model thinks while it works: what was asked for, and what it has thought since the person spoke."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.calls.thinking import thinks
from routecodex.routing.values import Dialect, Endpoint

KEYS = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}


def thinking(dialect: Dialect, *items: dict[str, Any], **fields: Any) -> bool:
    said: dict[str, Any] = (
        {"role": "user", "parts": [{"text": "go"}]} if dialect is Dialect.GEMINI else {"role": "user", "content": "go"}
    )
    body = {"model": "m", **fields, KEYS[dialect]: [said, *items]}
    return thinks(read_call(json.dumps(body).encode(), Endpoint(dialect, model="m" if dialect is Dialect.GEMINI else None)))


@pytest.mark.parametrize(
    "dialect, on, off",
    [
        (Dialect.MESSAGES, {"thinking": {"type": "adaptive"}}, {"thinking": {"type": "disabled"}}),
        (Dialect.CHAT, {"reasoning": {"max_tokens": 2000}}, {"reasoning": {"enabled": False, "effort": "high"}}),
        (Dialect.RESPONSES, {"previous_response_id": "resp_1"}, {"reasoning": {"effort": "none"}}),
        (
            Dialect.GEMINI,
            {"generation_config": {"thinking_config": {"include_thoughts": True}}},
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
        ),
    ],
)
def test_what_is_asked_for(dialect: Dialect, on: dict[str, Any], off: dict[str, Any]) -> None:
    assert [thinking(dialect, **fields) for fields in (on, off, {})] == [True, False, False]


@pytest.mark.parametrize(
    "items, found",
    [
        ([{"role": "assistant", "content": [THOUGHT, USE]}, {"role": "user", "content": [RESULT]}], True),
        ([{"role": "assistant", "content": [THOUGHT]}, {"role": "user", "content": "again"}], False),
    ],
    ids=["since the person spoke", "before that"],
)
def test_what_was_thought(items: list[dict[str, Any]], found: bool) -> None:
    assert thinking(Dialect.MESSAGES, *items) is found
