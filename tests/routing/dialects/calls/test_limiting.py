"""A call asks for no more tokens than its target's model can write."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.calls.limiting import limited
from routecodex.routing.dialects.translation.neutral import LeftOut
from routecodex.routing.values import Dialect, Endpoint, JsonObject

MESSAGES, CHAT, RESPONSES = Endpoint(Dialect.MESSAGES), Endpoint(Dialect.CHAT), Endpoint(Dialect.RESPONSES)
GEMINI, ENVELOPE = Endpoint(Dialect.GEMINI, model="g"), Endpoint(Dialect.GEMINI, envelope=True)
COUNT = Endpoint(Dialect.GEMINI, action="count", model="g")
TOLD = "fields that only its own dialect knows (a limit of 128000 tokens: 8192 is the model's)"


@pytest.mark.parametrize(
    "endpoint, body, lowered",
    [
        (MESSAGES, {"max_tokens": 128000, "messages": []}, {"max_tokens": 8192, "messages": []}),
        (CHAT, {"max_tokens": 128000, "messages": []}, {"max_tokens": 8192, "messages": []}),
        (CHAT, {"max_completion_tokens": 128000, "messages": []}, {"max_completion_tokens": 8192, "messages": []}),
        (RESPONSES, {"max_output_tokens": 128000, "input": "x"}, {"max_output_tokens": 8192, "input": "x"}),
        (
            GEMINI,
            {"generationConfig": {"a": 1, "maxOutputTokens": 128000}},
            {"generationConfig": {"a": 1, "maxOutputTokens": 8192}},
        ),
        (GEMINI, {"generation_config": {"max_output_tokens": 128000}}, {"generation_config": {"max_output_tokens": 8192}}),
        (
            ENVELOPE,
            {"project": "p", "request": {"generationConfig": {"maxOutputTokens": 128000}, "contents": []}},
            {"project": "p", "request": {"generationConfig": {"maxOutputTokens": 8192}, "contents": []}},
        ),
        (
            COUNT,
            {"generateContentRequest": {"generationConfig": {"maxOutputTokens": 128000}}},
            {"generateContentRequest": {"generationConfig": {"maxOutputTokens": 8192}}},
        ),
    ],
)  # fmt: skip
def test_lowered(endpoint: Endpoint, body: JsonObject, lowered: JsonObject) -> None:
    call, left = read_call(json.dumps(body).encode(), endpoint), LeftOut()
    found = limited(call, 8192, left)
    assert found.body == lowered
    assert found.changed
    assert str(left) == TOLD
    assert call.body == body
    assert not call.changed


@pytest.mark.parametrize(
    "endpoint, body",
    [
        (MESSAGES, {"max_tokens": 8192, "messages": []}),
        (CHAT, {"messages": []}),
        (CHAT, {"max_tokens": None, "max_completion_tokens": "many", "messages": []}),
        (RESPONSES, {"max_output_tokens": True, "input": "x"}),
        (GEMINI, {"generationConfig": {"maxOutputTokens": 1}, "maxOutputTokens": 128000}),
        (GEMINI, {}),
        (MESSAGES, {"max_tokens": 100, "thinking": {"budget_tokens": 128000}, "messages": []}),
    ],
)
def test_as_it_came(endpoint: Endpoint, body: JsonObject) -> None:
    call, left = read_call(json.dumps(body).encode(), endpoint), LeftOut()
    assert limited(call, 8192, left) is call
    assert str(left) == ""


@pytest.mark.parametrize(
    "budget, most, thinking",
    [
        (8191, 8192, {"type": "enabled", "budget_tokens": 8191}),
        (8192, 8192, {"type": "enabled", "budget_tokens": 6144}),
        (31999, 8192, {"type": "enabled", "budget_tokens": 6144}),
        (31999, 1300, None),
    ],
)
def test_thinking_leaves_room(budget: int, most: int, thinking: JsonObject | None) -> None:
    body = {"max_tokens": 32000, "thinking": {"type": "enabled", "budget_tokens": budget}, "messages": []}
    found = limited(read_call(json.dumps(body).encode(), MESSAGES), most, LeftOut())
    assert found.body["max_tokens"] == most
    assert found.body.get("thinking") == thinking
