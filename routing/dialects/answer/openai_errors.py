"""OpenAI's errors, which Chat Completions and Responses share."""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import JsonObject

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def error_told(status: int, message: str, code: str) -> JsonObject:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": None, "code": code}


def write_error(
    status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
) -> bytes:
    return dumps({"error": {**error_told(status, message, code), "details": dict(details or {})}})
