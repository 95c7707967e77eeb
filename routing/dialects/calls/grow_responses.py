"""OpenAI's Responses: a call that grows.

1. An input that is one text becomes a list.
2. `previous_response_id` stays: the input then holds what followed that answer, and goes on with our rounds. So it does not
   matter whether a provider stored them, and every call of a turn follows the same answer.
3. A `conversation` is kept by the provider, which adds each call's input and output by itself: a call that goes on in one brings
   only what comes behind the model's last words.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...values import Call, Dialect, JsonObject, ToolCall
from ..fields import is_blank
from .editing import list_in, loose_text
from .replacing import raw_items, view_of

_CARRIED = "additional_tools"


def write_user(text: str) -> JsonObject:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def write_results(results: Sequence[tuple[ToolCall, str, bool]]) -> tuple[JsonObject, ...]:
    """The dialect has no mark for an error: the text says so."""
    return tuple({"type": "function_call_output", "call_id": call.id, "output": text} for call, text, _ in results)


def with_messages(call: Call, items: Sequence[JsonObject]) -> Call:
    old = raw_items(call) if call.body.get("input") is not None else []
    views = list(call.messages)
    new = [item for item in items if not _is_empty(item)]
    if call.body.get("conversation") is not None:
        said = [place for place, item in enumerate(new) if view_of(Dialect.RESPONSES, place, item).role == "assistant"]
        if said:
            old, views, new = [], [], new[said[-1] + 1 :]
    views += [view_of(Dialect.RESPONSES, len(old) + offset, item) for offset, item in enumerate(new)]
    return replace(call, body={**call.body, "input": [*old, *new]}, messages=views, changed=True)


def with_tool(call: Call, name: str, description: str, schema: JsonObject, *, strict: bool) -> Call:
    # without `strict` the interface would take the schema for a strict one
    tool: JsonObject = {"type": "function", "name": name, "description": description, "parameters": schema, "strict": strict}
    body = _with_carried(call, tool) or {**call.body, "tools": [*list_in(call.body, "tools"), tool]}
    return replace(call, body=body, tools=(*call.tools, name), changed=True)


def _with_carried(call: Call, tool: JsonObject) -> JsonObject | None:
    """The body with the tool where the client's own are: Codex declares them in an item of the input."""
    given = call.body.get("input")
    if list_in(call.body, "tools") or not isinstance(given, list):
        return None
    places = [place for place, item in enumerate(given) if isinstance(item, dict) and item.get("type") == _CARRIED]
    if not places:
        return None
    items, place = list(given), places[-1]
    items[place] = {**given[place], "tools": [*list_in(given[place], "tools"), tool]}
    return {**call.body, "input": items}


def _is_empty(item: JsonObject) -> bool:
    """A message that says nothing is refused."""
    if loose_text(item, "type") not in ("", "message"):
        return False
    content = item.get("content")
    if isinstance(content, str):
        return is_blank(content)
    parts = list_in(item, "content")
    return all(isinstance(part, dict) and "text" in part and is_blank(loose_text(part, "text")) for part in parts)
