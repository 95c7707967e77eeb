"""What providers write, in their own wire formats: whole answers, event streams, errors, token counts.

1. `Reply` is what the model says; `events` gives one item of bytes per event, `whole` one JSON document.
2. This is a second opinion: it shares no code with the product's dialect modules.
"""

from __future__ import annotations

from typing import Any

from routecodex.routing.values import Dialect
from tests.rig.reply import Asked, Reply, ToolUse, data, dump, read_request, sse
from tests.rig.spoken import EVENTS, WHOLE, gemini_frame, responses_head


def whole(reply: Reply, asked: Asked) -> bytes:
    """The answer to a call that asked for JSON."""
    return dump(WHOLE[asked.dialect](reply, asked))


def events(reply: Reply, asked: Asked) -> list[bytes]:
    """The answer to a call that asked for a stream."""
    return list(EVENTS[asked.dialect](reply, asked))


def count(tokens: int, asked: Asked) -> bytes:
    match asked.dialect:
        case Dialect.GEMINI:
            return dump({"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]})
        case Dialect.RESPONSES:
            return dump({"object": "response.input_tokens", "input_tokens": tokens})
        case _:
            return dump({"input_tokens": tokens})


_MESSAGES_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI_ERRORS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}
_GEMINI_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _error_value(dialect: Dialect, status: int, message: str) -> dict[str, Any]:
    match dialect:
        case Dialect.MESSAGES:
            error = {"type": _MESSAGES_ERRORS.get(status, "api_error"), "message": message}
            return {"type": "error", "error": error, "request_id": "req_011Rig"}
        case Dialect.GEMINI:
            return {"error": {"code": status, "message": message, "status": _GEMINI_ERRORS.get(status, "UNKNOWN")}}
        case _:
            kind, code = _OPENAI_ERRORS.get(status, ("server_error", None))
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def error(dialect: Dialect, status: int, message: str) -> bytes:
    """The body of a refusal."""
    return dump(_error_value(dialect, status, message))


def error_event(asked: Asked, status: int, message: str, *, first: bool) -> bytes:
    """An error in the middle of a stream that began with 200."""
    value = _error_value(asked.dialect, status, message)
    match asked.dialect:
        case Dialect.MESSAGES:
            return sse(value)
        case Dialect.RESPONSES:
            body = value["error"]
            reason = {"code": body["code"] or body["type"], "message": message}
            response = responses_head(Reply(), asked) | {"status": "failed", "error": reason}
            return sse({"type": "response.failed", "sequence_number": 0, "response": response})
        case Dialect.GEMINI:
            return gemini_frame(value, asked, first=first) + (b"]" if asked.json_array else b"")
        case _:
            return data(value)


__all__ = ["Asked", "Reply", "ToolUse", "count", "error", "error_event", "events", "read_request", "whole"]
