"""OpenAI Responses: answers, streams, errors.

1. A stream is response.created, response.in_progress, whole output items, then response.completed, .incomplete or .failed.
2. Sequence numbers count from 0 without a gap; every item and part is closed by its `done` event, which repeats its content.
3. Every response object in a stream carries the same id: official SDKs refuse another.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...jsonbytes import dumps
from ...values import Answer, JsonObject, ProviderError, Usage
from ..failures import failure_inside
from ..fields import list_of, object_of, pieces_of, read_object, text_of
from ..finish import response_status, with_calls
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


def write_answer(answer: Answer, *, id: str, model: str, created: int, envelope: bool = False) -> bytes:
    items = _items(answer, id)
    return dumps(_ended(answer, items, id, model, created))


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
    items = _items(answer, id)
    opened = _response(id, model, created, "in_progress")
    bodies: list[JsonObject] = [{"type": f"response.{name}", "response": opened} for name in ("created", "in_progress")]
    for index, item in enumerate(items):
        opening, steps = _text_steps(item) if item["type"] == "message" else _call_steps(item)
        bodies.append({"type": "response.output_item.added", "output_index": index, "item": opening})
        bodies += [{"item_id": item["id"], "output_index": index, **step} for step in steps]
        bodies.append({"type": "response.output_item.done", "output_index": index, "item": item})
    ended = _ended(answer, items, id, model, created)
    bodies.append({"type": f"response.{ended['status']}", "response": ended})
    return [_event(number, body) for number, body in enumerate(bodies)]


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


def _items(answer: Answer, id: str) -> list[JsonObject]:
    """The output items; their ids follow from the response's."""
    stem = id.removeprefix("resp_").partition(".")[0]  # OpenAI takes ids of items up to 64 characters
    items: list[JsonObject] = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        head: JsonObject = {"id": f"msg_{stem}", "type": "message", "status": "completed"}
        items.append({**head, "role": "assistant", "content": [part]})
    for number, call in enumerate(answer.calls):
        head = {"id": f"fc_{stem}_{number}", "type": "function_call", "status": "completed"}
        items.append({**head, "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"})
    return items


def _text_steps(item: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """The item as it opens, and what happens until it is done."""
    part = object_of(list_of(item["content"])[0])
    text = text_of(part.get("text"))
    steps: list[JsonObject] = [{"type": "response.content_part.added", "part": {**part, "text": ""}}]
    steps += [{"type": "response.output_text.delta", "delta": piece, "logprobs": []} for piece in pieces_of(text)]
    steps.append({"type": "response.output_text.done", "text": text, "logprobs": []})
    steps.append({"type": "response.content_part.done", "part": part})
    return {**item, "status": "in_progress", "content": []}, [{"content_index": 0, **step} for step in steps]


def _call_steps(item: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    arguments = item["arguments"]
    done: JsonObject = {"type": "response.function_call_arguments.done", "name": item["name"], "arguments": arguments}
    steps: list[JsonObject] = [{"type": "response.function_call_arguments.delta", "delta": arguments}, done]
    return {**item, "status": "in_progress", "arguments": ""}, steps


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


def _ended(answer: Answer, items: list[JsonObject], id: str, model: str, created: int) -> JsonObject:
    status, reason = response_status(with_calls(answer.finish, answer.calls))
    ended = _response(id, model, created, status)
    ended["output"] = items
    ended["usage"] = _usage(answer.usage)
    if reason:
        ended["incomplete_details"] = {"reason": reason}
    if status == "failed":
        ended["error"] = {"code": "server_error", "message": answer.text or "The answer ended with an error"}
    return ended


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def _error(status: int, message: str, code: str) -> JsonObject:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"message": message, "type": kind, "param": None, "code": code}


def _failed_code(status: int, code: str) -> str:
    """A code that Codex knows: it repeats the whole call after any other, also where that cannot help."""
    if code in _SHOWN_CODES:
        return code
    return "rate_limit_exceeded" if status == 429 else "server_error" if status >= 500 else "invalid_prompt"
