"""Gemini's generateContent: errors, keep-alives, and what of a provider's is which.

`error` is the first key of an error event: Google's SDK looks for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import JsonObject, ProviderError
from ..failures import failure_inside, has_error
from ..fields import list_of, object_of, read_json
from ..sse import write_event

KEEP_ALIVE = b"\n"
"""White space between events or array items: a comment breaks Google's SDKs."""

_STATUS_WORDS = {
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def write_error(
    status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
) -> bytes:
    """`code` and `details` travel as Google's own ErrorInfo."""
    told = {name: value if isinstance(value, str) else dumps(value).decode() for name, value in (details or {}).items()}
    info: JsonObject = {"@type": _ERROR_INFO, "reason": code, "domain": "routecodex", "metadata": told}
    written = dumps({"error": {**_error(status, message), "details": [info]}})
    return b"[" + written + b"]" if json_array else written


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
    """Behind chunks that were sent. A JSON array that has not begun is `write_error(…, json_array=True)` instead."""
    info: JsonObject = {"@type": _ERROR_INFO, "reason": code, "domain": "routecodex"}
    written = dumps({"error": {**_error(status, message), "details": [info]}})
    return b",\r\n" + written + b"]" if json_array else write_event(written)


def write_keep_alive(*, id: str, model: str, created: int, sequence: int = 0, json_array: bool = False) -> bytes:
    return KEEP_ALIVE


def error_of(document: JsonObject) -> ProviderError | None:
    document = _unwrapped(document)
    return None if document.get("candidates") and not has_error(document) else failure_inside(document)


def is_content(data: bytes) -> bool:
    value = read_json(data)
    documents = [_unwrapped(object_of(item)) for item in (value if isinstance(value, list) else [value])]
    return any(_carries(document) for document in documents)


def _carries(document: JsonObject) -> bool:
    if object_of(document.get("promptFeedback")).get("blockReason"):
        return True
    for candidate in map(object_of, list_of(document.get("candidates"))):
        parts = list_of(object_of(candidate.get("content")).get("parts"))
        if candidate.get("finishReason") or any(_says(object_of(part)) for part in parts):
            return True
    return False


def _says(part: JsonObject) -> bool:
    return any(value for name, value in part.items() if name != "thought")


def _unwrapped(document: JsonObject) -> JsonObject:
    """Code Assist puts the answer into `response`."""
    inner = document.get("response")
    return inner if isinstance(inner, dict) else document


def _error(status: int, message: str) -> JsonObject:
    word = _STATUS_WORDS.get(status, "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    return {"code": status, "message": message, "status": word}
