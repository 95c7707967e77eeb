"""Anthropic Messages: answers, streams, errors.

1. A stream is message_start, whole content blocks with indexes 0, 1, 2…, message_delta, message_stop.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import Answer, Dialect, JsonObject, ProviderError, ToolCall
from ..failures import failure_inside, has_error
from ..fields import arguments_of, pieces_of, read_object, text_of
from ..finish import with_calls, write_finish
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
_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def write_answer(answer: Answer, *, id: str, model: str, created: int, envelope: bool = False) -> bytes:
    content: list[object] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [_tool_use(call) for call in answer.calls]
    usage = {**_usage(answer), "output_tokens": answer.usage.output}
    return dumps({**_head(id, model), "content": content, "stop_reason": _stop_reason(answer), "usage": usage})


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
    usage = {**_usage(answer), "output_tokens": 0}
    events = [_event("message_start", message={**_head(id, model), "usage": usage})]
    index = 0
    if answer.text:
        deltas: list[JsonObject] = [{"type": "text_delta", "text": piece} for piece in pieces_of(answer.text)]
        events += _block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for call in answer.calls:
        delta: JsonObject = {"type": "input_json_delta", "partial_json": dumps(arguments_of(call.arguments)).decode()}
        events += _block(index, {**_tool_use(call), "input": {}}, [delta])
        index += 1
    stop: JsonObject = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    events.append(_event("message_delta", delta=stop, usage={"output_tokens": answer.usage.output}))
    events.append(_event("message_stop"))
    return events


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


def _block(index: int, start: JsonObject, deltas: list[JsonObject]) -> list[bytes]:
    return [
        _event("content_block_start", index=index, content_block=start),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _head(id: str, model: str) -> JsonObject:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _tool_use(call: ToolCall) -> JsonObject:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call.arguments)}


def _stop_reason(answer: Answer) -> str:
    return write_finish(with_calls(answer.finish, answer.calls), Dialect.MESSAGES)


def _usage(answer: Answer) -> JsonObject:
    return {"input_tokens": answer.usage.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def _error_type(status: int) -> str:
    return _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
