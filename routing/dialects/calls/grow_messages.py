"""Anthropic's Messages: a call that grows.

1. Results of tools stand first in their message.
2. Two messages of one role in a row become one; a text of nothing but white space is left out: the interface refuses it.
3. No tool of ours is marked as strict: older models and other hosts of this dialect refuse the mark, and all strict tools of a
   call share one limit, which the client's own may need.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...values import Call, Dialect, JsonObject, ToolCall
from ..fields import is_blank
from .editing import Shape, items_in, list_in
from .replacing import view_of

_SHAPE = Shape("content", {"type": "text"})
_JOINED = ("user", "assistant")


def write_user(text: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def write_results(results: Sequence[tuple[ToolCall, str, bool]]) -> tuple[JsonObject, ...]:
    if not results:
        return ()
    return ({"role": "user", "content": [_result(*result) for result in results]},)


def with_messages(call: Call, items: Sequence[JsonObject]) -> Call:
    history, views = list(items_in(call.body, "messages")), list(call.messages)
    for item in items:
        parts = [part for part in _SHAPE.as_parts(item.get("content")) if not _is_empty(part)]
        if not parts:
            continue
        role = item.get("role")
        if history and role in _JOINED and history[-1].get("role") == role:
            history[-1] = {**history[-1], "content": _joined(_SHAPE.as_parts(history[-1].get("content")), parts)}
            del views[-1]
        else:
            history.append({**item, "content": parts})
        views.append(view_of(Dialect.MESSAGES, len(history) - 1, history[-1]))
    return replace(call, body={**call.body, "messages": history}, messages=views, changed=True)


def with_tool(call: Call, name: str, description: str, schema: JsonObject, *, strict: bool) -> Call:
    tool: JsonObject = {"name": name, "description": description, "input_schema": schema}
    body = {**call.body, "tools": [*list_in(call.body, "tools"), tool]}
    return replace(call, body=body, tools=(*call.tools, name), changed=True)


def _result(call: ToolCall, text: str, is_error: bool) -> JsonObject:
    result: JsonObject = {"type": "tool_result", "tool_use_id": call.id, "content": text}
    return {**result, "is_error": True} if is_error else result


def _joined(old: list[object], new: list[object]) -> list[object]:
    """One message's parts, the results of tools first."""
    at = next((place for place, part in enumerate(old) if not _is_result(part)), len(old))
    results = [part for part in new if _is_result(part)]
    return [*old[:at], *results, *old[at:], *(part for part in new if not _is_result(part))]


def _is_result(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_result"


def _is_empty(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and is_blank(str(part.get("text") or ""))
