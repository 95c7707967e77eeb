"""What real answers, read by the mergers, come to: which of them are continued (M02-M07)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.sessions.state import StopMessage
from routecodex.routing.stop_message.decide import Continue, Info, should_continue
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.answer.own import answer_for

STOP = StopMessage("go on", 3)


def anthropic(reason: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": usage}
    return {**head, "content": list(blocks), "stop_reason": reason, "stop_sequence": None}


def choice(index: int, reason: str | None, **message: Any) -> dict[str, Any]:
    return {"index": index, "finish_reason": reason, "message": {"role": "assistant", **message}}


def chat(*choices: dict[str, Any]) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": list(choices)}


def responses(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "r", "object": "response", "status": "completed", "output": list(output), **fields}


def gemini(reason: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"index": 0, "content": {"role": "model", "parts": list(parts)}, "finishReason": reason}]}


TEXT = {"type": "text", "text": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAYS = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hi"}],
}
ASKS = {"type": "function_call", "id": "f", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}
SEARCHES = {"type": "web_search_call", "id": "w", "status": "completed"}
CUT = {"incomplete_details": {"reason": "max_output_tokens"}, "status": "incomplete"}

CASES: list[tuple[str, Dialect, dict[str, Any], bool]] = [
    ("M01-chat", Dialect.CHAT, chat(choice(0, "stop", content="hi")), True),
    ("M02-chat", Dialect.CHAT, chat(choice(0, "stop", content="hi", tool_calls=[CALL])), False),
    ("M03-chat-length", Dialect.CHAT, chat(choice(0, "length", content="hi")), False),
    ("M03-chat-filter", Dialect.CHAT, chat(choice(0, "content_filter", content="hi")), False),
    ("M07-first-stops", Dialect.CHAT, chat(choice(0, "stop", content="a"), choice(1, "length", content="b")), True),
    ("M07-first-is-cut", Dialect.CHAT, chat(choice(0, "length", content="a"), choice(1, "stop", content="b")), False),
    ("M01-messages", Dialect.MESSAGES, anthropic("end_turn", TEXT), True),
    ("M01-messages-sequence", Dialect.MESSAGES, anthropic("stop_sequence", TEXT), True),
    (
        "M02-messages",
        Dialect.MESSAGES,
        anthropic("end_turn", TEXT, {"type": "tool_use", "id": "t", "name": "f", "input": {}}),
        False,
    ),
    ("M03-messages", Dialect.MESSAGES, anthropic("max_tokens", TEXT), False),
    ("M03-messages-refusal", Dialect.MESSAGES, anthropic("refusal", TEXT), False),
    (
        "M06-messages-pause",
        Dialect.MESSAGES,
        anthropic("pause_turn", TEXT, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        False,
    ),
    ("M05", Dialect.RESPONSES, responses(SAYS), True),
    ("M05-search", Dialect.RESPONSES, responses(SEARCHES, SAYS), True),
    ("M06-call", Dialect.RESPONSES, responses(SAYS, ASKS), False),
    ("M06-incomplete", Dialect.RESPONSES, responses(SAYS, **CUT), False),
    ("M06-failed", Dialect.RESPONSES, responses(status="failed", error={"code": "server_error", "message": "x"}), False),
    ("M06-required-action", Dialect.RESPONSES, responses(SAYS, status="requires_action", required_action={"type": "x"}), False),
    ("M06-background", Dialect.RESPONSES, responses(status="queued", background=True), False),
    ("M06-background-runs", Dialect.RESPONSES, responses(status="in_progress", background=True), False),
    ("M06-approval", Dialect.RESPONSES, responses({"type": "mcp_approval_request", "id": "a", "name": "f"}), False),
    ("M01-gemini", Dialect.GEMINI, gemini("STOP", {"text": "hi"}), True),
    ("M02-gemini", Dialect.GEMINI, gemini("STOP", {"functionCall": {"name": "f", "args": {}}}), False),
    ("M03-gemini", Dialect.GEMINI, gemini("MAX_TOKENS", {"text": "hi"}), False),
    ("M03-gemini-safety", Dialect.GEMINI, gemini("SAFETY", {"text": "hi"}), False),
]


@pytest.mark.parametrize("dialect,answer,expected", [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_answers(dialect: Dialect, answer: dict[str, Any], expected: bool) -> None:
    merger = answer_for(Endpoint(dialect, model="m" if dialect is Dialect.GEMINI else None), stream=False)
    merger.begin_round()
    merger.feed(json.dumps(answer).encode())
    decision = should_continue(merger.end_round(), STOP, Info())
    assert isinstance(decision, Continue) is expected, decision
