"""Calls in the four shapes that the tests of this room need."""

from __future__ import annotations

import json
from typing import Any

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.values import Call, Dialect, Endpoint


def messages_call(*messages: dict[str, Any], **fields: Any) -> Call:
    return _call(Dialect.MESSAGES, {"model": "m", "messages": list(messages), **fields})


def chat_call(*messages: dict[str, Any], **fields: Any) -> Call:
    return _call(Dialect.CHAT, {"model": "m", "messages": list(messages), **fields})


def responses_call(*items: dict[str, Any], **fields: Any) -> Call:
    return _call(Dialect.RESPONSES, {"model": "m", "input": list(items), **fields})


def gemini_call(*contents: dict[str, Any], **fields: Any) -> Call:
    return _call(Dialect.GEMINI, {"contents": list(contents), **fields})


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _call(dialect: Dialect, body: dict[str, Any]) -> Call:
    model = "m" if dialect is Dialect.GEMINI else None
    return read_call(json.dumps(body).encode(), Endpoint(dialect, model=model))
