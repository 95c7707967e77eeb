"""OpenAI Chat Completions: errors, keep-alives, and what of a provider's is which."""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import JsonObject, ProviderError
from ..failures import failure_inside, has_error
from ..fields import list_of, object_of, read_object
from ..sse import write_event

KEEP_ALIVE = b": keepalive\n\n"

_DONE = b"[DONE]"
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


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
    return write_event(dumps({"error": _error(status, message, code)}))


def write_keep_alive(*, id: str, model: str, created: int, sequence: int = 0, json_array: bool = False) -> bytes:
    return KEEP_ALIVE


def error_of(document: JsonObject, name: str = "") -> ProviderError | None:
    """Also an error inside the first choice (OpenRouter), in `x_groq`, or in an event of that name."""
    if "x_groq" in document and has_error(groq := object_of(document["x_groq"])):
        return failure_inside(groq)
    choices = document.get("choices")
    if isinstance(choices, list) and choices and not has_error(document):
        first = choices[0]
        return failure_inside(first) if isinstance(first, dict) and has_error(first) else None
    if (error := failure_inside(document)) is not None:
        return error
    return ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR") if name == "error" else None


def is_content(data: bytes) -> bool:
    if data.strip() == _DONE:
        return True
    document = read_object(data)
    choices = list_of(document.get("choices")) if document else []
    return any(_carries(object_of(choice)) for choice in choices)


def _carries(choice: JsonObject) -> bool:
    if choice.get("finish_reason") or choice.get("message") or choice.get("text"):
        return True
    delta = object_of(choice.get("delta"))
    return any(value for name, value in delta.items() if name != "role")


def _error(status: int, message: str, code: str) -> JsonObject:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": None, "code": code}
