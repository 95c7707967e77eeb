"""OpenAI Responses: errors, keep-alives, an answer's opening, and what of a provider's is which.

Every response object in a stream carries the same id: official SDKs refuse another.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import JsonObject, ProviderError
from ..failures import failure_inside
from ..fields import read_object, text_of
from ..sse import write_event

KEEP_ALIVE = b": keepalive\n\n"
"""Keeps a connection open before `response.created`; after it use `write_keep_alive`, which also resets Codex's idle timer."""

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_NOT_YET = frozenset(
    ("response.created", "response.in_progress", "response.queued", "response.metadata", "response.failed", "response.error")
)
_SHOWN_CODES = frozenset(
    ("context_length_exceeded", "insufficient_quota", "usage_not_included", "invalid_prompt", "cyber_policy")
)
"""Codes that Codex knows and does not answer with retries."""


def write_error(
    status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
) -> bytes:
    return dumps({"error": {**_error(status, message, code), "details": dict(details or {})}})


def write_error_event(
    status: int,
    message: str,
    code: str,
    *,
    id: str = "",
    model: str = "",
    created: int = 0,
    sequence: int = 0,
    json_array: bool = False,
    envelope: bool = False,
) -> bytes:
    """`response.failed`, which Codex shows; `error` beside it makes the official SDKs raise instead of ending quietly."""
    failed = _response(id, model, created, "failed")
    failed["error"] = {"code": _failed_code(status, code), "message": message}
    return _event(sequence, {"type": "response.failed", "response": failed, "error": _error(status, message, code)})


def write_keep_alive(*, id: str, model: str, created: int, sequence: int = 0, json_array: bool = False) -> bytes:
    """A repeated `response.in_progress`; `id` must be the one that `response.created` told."""
    body: JsonObject = {"type": "response.in_progress", "response": _response(id, model, created, "in_progress")}
    return _event(sequence, body)


def write_opening(*, id: str, model: str, created: int) -> bytes:
    """The first event of an answer that nothing is known of yet."""
    return _event(0, {"type": "response.created", "response": _response(id, model, created, "in_progress")})


def error_of(document: JsonObject) -> ProviderError | None:
    if document.get("object") == "response" and document.get("status") in ("completed", "incomplete", "in_progress", "queued"):
        return None
    return failure_inside(document)


def is_content(data: bytes) -> bool:
    document = read_object(data)
    if document is None:
        return False
    if document.get("object") == "response":
        return True
    kind = text_of(document.get("type"))
    return kind.startswith("response.") and kind not in _NOT_YET


def _event(number: int, body: JsonObject) -> bytes:
    kind = text_of(body.get("type"))
    return write_event(dumps({"type": kind, "sequence_number": number, **body}), kind)


def _response(id: str, model: str, created: int, status: str) -> JsonObject:
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _error(status: int, message: str, code: str) -> JsonObject:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": None, "code": code}


def _failed_code(status: int, code: str) -> str:
    """A code that Codex knows: it repeats the whole call after any other, also where that cannot help."""
    if code in _SHOWN_CODES:
        return code
    return "rate_limit_exceeded" if status == 429 else "server_error" if status >= 500 else "invalid_prompt"
