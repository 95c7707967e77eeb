"""OpenAI's Chat Completions: a call that grows.

1. Results of tools are messages of their own, right behind the message that calls them.
2. A call that declares `functions`, the older kind of tools, gets ours as one of those.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...values import Call, Dialect, JsonObject, ToolCall
from .editing import items_in, list_in
from .replacing import view_of


def write_user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def write_results(results: Sequence[tuple[ToolCall, str, bool]]) -> tuple[JsonObject, ...]:
    """The dialect has no mark for an error: the text says so."""
    return tuple(_result(call, text) for call, text, _ in results)


def with_messages(call: Call, items: Sequence[JsonObject]) -> Call:
    old = items_in(call.body, "messages") if "messages" in call.body else []
    new = [item for item in items if not _is_empty(item)]
    views = [view_of(Dialect.CHAT, len(old) + offset, item) for offset, item in enumerate(new)]
    return replace(call, body={**call.body, "messages": [*old, *new]}, messages=[*call.messages, *views], changed=True)


def with_tool(call: Call, name: str, description: str, schema: JsonObject, *, strict: bool) -> Call:
    function: JsonObject = {"name": name, "description": description, "parameters": schema}
    if list_in(call.body, "functions") and not list_in(call.body, "tools"):
        grown: JsonObject = {"functions": [*list_in(call.body, "functions"), function]}
    else:
        tool: JsonObject = {"type": "function", "function": {**function, "strict": True} if strict else function}
        grown = {"tools": [*list_in(call.body, "tools"), tool]}
    return replace(call, body={**call.body, **grown}, tools=(*call.tools, name), changed=True)


def _result(call: ToolCall, text: str) -> JsonObject:
    if not call.id:  # the older kind of call has none
        return {"role": "function", "name": call.name, "content": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def _is_empty(item: JsonObject) -> bool:
    """A message that says nothing; a tool may answer nothing, and an answer may be nothing but calls."""
    if item.get("role") not in ("user", "assistant"):
        return False
    content = item.get("content")
    said = content.strip() if isinstance(content, str) else content
    return not said and not any(value for name, value in item.items() if name not in ("role", "content"))
