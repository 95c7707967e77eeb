"""Anthropic Messages: errors, keep-alives, and what of a provider's is which."""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import JsonObject, ProviderError
from ..failures import failure_inside, has_error
from ..fields import read_object, text_of
from ..sse import write_event

KEEP_ALIVE = b'event: ping\ndata: {"type":"ping"}\n\n'

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_NOT_YET = frozenset(("message_start", "ping", "error"))


def write_error(
    status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
) -> bytes:
    error: JsonObject = {"type": _error_type(status), "message": message, "code": code, "details": dict(details or {})}
    return dumps({"type": "error", "error": error})


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
    return _event("error", error={"type": _error_type(status), "message": message, "code": code})


def write_keep_alive(*, id: str, model: str, created: int, sequence: int = 0, json_array: bool = False) -> bytes:
    return KEEP_ALIVE


def error_of(document: JsonObject) -> ProviderError | None:
    if document.get("type") in ("message", "message_start") and not has_error(document):
        return None
    return failure_inside(document)


def is_content(data: bytes) -> bool:
    document = read_object(data)
    kind = text_of(document.get("type")) if document else ""
    return bool(kind) and kind not in _NOT_YET


def _event(name: str, **fields: object) -> bytes:
    return write_event(dumps({"type": name, **fields}), name)


def _error_type(status: int) -> str:
    return _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
