"""Gemini generateContent: answers, streams (events or one JSON array, with or without Code Assist's envelope), errors.

1. Only the last chunk has a `finishReason`, and it has content: Gemini CLI takes an empty last chunk for a broken stream.
2. `error` is the first key of an error event: Google's SDK looks for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import Answer, Dialect, JsonObject, ProviderError
from ..failures import failure_inside, has_error
from ..fields import arguments_of, list_of, object_of, pieces_of, read_json
from ..finish import with_calls, write_finish
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


def write_answer(answer: Answer, *, id: str, model: str, created: int, envelope: bool = False) -> bytes:
    parts: list[JsonObject] = [{"text": answer.text}] if answer.text or not answer.calls else []
    chunk = _chunk(answer, parts + _calls(answer), id, model, last=True)
    return dumps({"response": chunk} if envelope else chunk)


def write_stream(
    answer: Answer,
    *,
    id: str,
    model: str,
    created: int,
    include_usage: bool = False,
    json_array: bool = False,
    envelope: bool = False,
) -> list[bytes]:
    contents: list[list[JsonObject]] = [[{"text": piece}] for piece in pieces_of(answer.text)]
    if answer.calls:
        contents.append(_calls(answer))
    contents = contents or [[{"text": ""}]]
    end = len(contents) - 1
    chunks = [_chunk(answer, parts, id, model, last=index == end) for index, parts in enumerate(contents)]
    written = [dumps({"response": chunk} if envelope else chunk) for chunk in chunks]
    if not json_array:
        return [write_event(chunk) for chunk in written]
    return [b"[" + written[0], *(b",\r\n" + chunk for chunk in written[1:]), b"]"]


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


def _calls(answer: Answer) -> list[JsonObject]:
    return [{"functionCall": {"id": call.id, "name": call.name, "args": arguments_of(call.arguments)}} for call in answer.calls]


def _chunk(answer: Answer, parts: list[JsonObject], id: str, model: str, *, last: bool) -> JsonObject:
    candidate: JsonObject = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = write_finish(with_calls(answer.finish, answer.calls), Dialect.GEMINI)
    usage: JsonObject = {"promptTokenCount": answer.usage.input, "totalTokenCount": answer.usage.input}
    if last:
        usage["candidatesTokenCount"] = answer.usage.output
        usage["totalTokenCount"] = answer.usage.input + answer.usage.output
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": id}


def _error(status: int, message: str) -> JsonObject:
    word = _STATUS_WORDS.get(status, "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    return {"code": status, "message": message, "status": word}
