"""OpenAI Chat Completions: answers, streams, errors.

1. A stream is a role chunk, content and tool chunks, one chunk with the finish reason, the usage chunk if asked for, `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import Answer, Dialect, JsonObject, ProviderError, ToolCall, Usage
from ..failures import failure_inside, has_error
from ..fields import list_of, object_of, pieces_of, read_object
from ..finish import with_calls, write_finish
from ..sse import write_event

KEEP_ALIVE = b": keepalive\n\n"

_DONE = b"[DONE]"
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def write_answer(answer: Answer, *, id: str, model: str, created: int, envelope: bool = False) -> bytes:
    message: JsonObject = {"role": "assistant", "content": answer.text or None, "refusal": None, "annotations": []}
    if answer.calls:
        message["tool_calls"] = [_tool_call(call) for call in answer.calls]
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(answer)}
    head: JsonObject = {"id": id, "object": "chat.completion", "created": created, "model": model}
    return dumps({**head, "choices": [choice], "usage": _usage(answer.usage)})


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
    head: JsonObject = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
    last: JsonObject = {"usage": None} if include_usage else {}

    def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return write_event(dumps({**head, "choices": [choice], **last}))

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in pieces_of(answer.text)]
    for index, call in enumerate(answer.calls):
        events.append(chunk({"tool_calls": [{"index": index, **_tool_call(call, arguments="")}]}))
        events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": call.arguments or "{}"}}]}))
    events.append(chunk({}, _finish_reason(answer)))
    if include_usage:
        events.append(write_event(dumps({**head, "choices": [], "usage": _usage(answer.usage)})))
    events.append(write_event(_DONE))
    return events


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


def _tool_call(call: ToolCall, arguments: str | None = None) -> JsonObject:
    written = call.arguments or "{}" if arguments is None else arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": written}}


def _finish_reason(answer: Answer) -> str:
    return write_finish(with_calls(answer.finish, answer.calls), Dialect.CHAT)


def _usage(usage: Usage) -> JsonObject:
    return {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.input + usage.output}


def _error(status: int, message: str, code: str) -> JsonObject:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": None, "code": code}
