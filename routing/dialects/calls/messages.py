"""Anthropic's Messages: reading a call, editing it, writing it for a target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ... import jsonbytes
from ...values import Call, Endpoint, JsonObject, Media, Message, Other, Part, Role, Text, Thinking, ToolCall, ToolResult
from .editing import (
    Shape,
    content_of,
    edited,
    edits_by_message,
    items_in,
    joined_text,
    json_text,
    list_in,
    loose_text,
    object_in,
    objects_in,
    read_body,
    take_exchange,
    text_in,
    untouched,
    without,
    without_deep,
)

_SHAPE = Shape("content", {"type": "text"})
_BILLING = "x-anthropic-billing-header"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}

_FOREIGN_FIELDS = frozenset(
    {
        "metadata",  # user_id: device, account, session
        "diagnostics",  # ids of earlier answers
        "container",  # a sandbox of the account at Anthropic
        "mcp_servers",  # addresses with their tokens
        "user_profile_id",
        "context_management",  # needs Anthropic's beta header, which does not travel
        "service_tier",  # capacity bought from Anthropic
        "speed",
        "inference_geo",
    }
)
"""Top-level fields that stay at the host the client called; fields named `cc_…` as well.
`thinking` and `output_config` say what answer is wanted, and travel."""
_FOREIGN_MESSAGE_FIELDS = frozenset({"output_config"})
_FOREIGN_SEALS = frozenset({"signature", "encrypted_content", "encrypted_index"})
_PLAIN_PARTS = ("text", "image", "document", "tool_use", "tool_result")
"""Parts that hold no seal, but in a text's citations."""


def read_call(raw: bytes, endpoint: Endpoint) -> Call:
    body = read_body(raw)
    tools = objects_in(body, "tools")
    choice = object_in(body, "tool_choice").get("type")
    form = object_in(body, "output_format") or object_in(object_in(body, "output_config"), "format")
    return Call(
        endpoint=endpoint,
        raw=raw,
        body=body,
        model=text_in(body, "model"),
        stream=body.get("stream") is True,
        messages=_views(body),
        system=_system_text(body.get("system")),
        tools=tuple(name for tool in tools if (name := loose_text(tool, "name") or loose_text(tool, "type"))),
        structured=bool(form),
        schema=object_in(form, "schema") or None,
        forced_tools=choice in ("any", "tool", "none"),
    )


def edit_texts(call: Call, edits: Mapping[tuple[int, int], str]) -> None:
    items = items_in(call.body, "messages")
    for index, texts in edits_by_message(call, edits).items():
        items[index], _ = edited(items[index], "content", texts)
        call.messages[index] = _view(index, items[index])
        call.changed = True


def drop_exchange(call: Call, asked: int, answered: int, typed_slots: Collection[int]) -> bool:
    taken = take_exchange(items_in(call.body, "messages"), call.messages, asked, answered, typed_slots, _SHAPE)
    if taken is None:
        return False
    call.body["messages"] = taken.items
    call.messages[:] = _views(call.body)
    call.changed = True
    return True


def for_target(call: Call, model: str, *, foreign: bool, own: Collection[str] = ()) -> bytes:
    if untouched(call, model, foreign=foreign):
        return call.raw
    body = _scrubbed(call.body, own) if foreign else dict(call.body)
    if model:
        body["model"] = model
    return jsonbytes.dumps(body)


def _views(body: JsonObject) -> list[Message]:
    return [_view(index, item) for index, item in enumerate(items_in(body, "messages"))]


def _view(index: int, item: JsonObject) -> Message:
    content = content_of(item, "content")
    parts: list[Part] = [Text(content)] if isinstance(content, str) else [_part(raw, slot) for slot, raw in enumerate(content)]
    return Message(_ROLES.get(text_in(item, "role"), "system"), parts, index)


def _part(raw: object, slot: int) -> Part:
    if not isinstance(raw, dict):
        return Other(slot)
    kind = raw.get("type")
    read = _PARTS.get(kind) if isinstance(kind, str) else None
    return read(raw, slot) if read else Other(slot)


def _text(raw: JsonObject, slot: int) -> Part:
    text = raw.get("text")
    return Text(text, slot) if isinstance(text, str) else Other(slot)


def _tool_call(raw: JsonObject, slot: int) -> Part:
    return ToolCall(loose_text(raw, "id"), loose_text(raw, "name"), json_text(raw.get("input", {})), slot)


_PARTS: dict[str, Callable[[JsonObject, int], Part]] = {
    "text": _text,
    "image": lambda raw, slot: Media("image", slot),
    "document": lambda raw, slot: Media("file", slot),
    "thinking": lambda raw, slot: Thinking(loose_text(raw, "thinking"), slot),
    "redacted_thinking": lambda raw, slot: Thinking("", slot),
    "tool_use": _tool_call,
    "tool_result": lambda raw, slot: ToolResult(loose_text(raw, "tool_use_id"), joined_text(raw.get("content")), slot),
}


def _system_text(system: object) -> str:
    """What the model is told; the client's billing line is not for the model."""
    if isinstance(system, str):
        return _without_billing_line(system)
    blocks = system if isinstance(system, list) else []
    texts = (loose_text(block, "text") for block in blocks if isinstance(block, dict))
    return "\n".join(text for text in texts if not text.startswith(_BILLING))


def _without_billing_line(text: str) -> str:
    return text.partition("\n")[2] if text.startswith(_BILLING) else text


def _scrubbed(source: JsonObject, own: Collection[str]) -> JsonObject:
    body = {key: value for key, value in source.items() if key not in _FOREIGN_FIELDS and not key.startswith("cc_")}
    if "system" in body:
        body["system"] = _foreign_system(body["system"])
        if not body["system"]:
            del body["system"]
    if isinstance(body.get("tools"), list):
        # a toolset lives on an MCP server, and those are left out above
        kept = [tool for tool in list_in(body, "tools") if not (isinstance(tool, dict) and tool.get("type") == "mcp_toolset")]
        body["tools"] = [_everywhere_cached(tool) for tool in kept]
    body["messages"] = [item for old in items_in(body, "messages") if (item := _foreign_message(old, own)) is not None]
    return body


def _foreign_system(system: object) -> object:
    if isinstance(system, str):
        return _without_billing_line(system)
    if not isinstance(system, list):
        return system
    return [
        _everywhere_cached(block)
        for block in system
        if not (isinstance(block, dict) and loose_text(block, "text").startswith(_BILLING))
    ]


def _foreign_message(item: JsonObject, own: Collection[str]) -> JsonObject | None:
    """None for an answer that was nothing but sealed thinking."""
    content = item.get("content")
    if not isinstance(content, list):
        return without(item, _FOREIGN_MESSAGE_FIELDS)
    parts = [_foreign_part(part, own) for part in content if not _is_sealed_thinking(part, own)]
    return {**without(item, _FOREIGN_MESSAGE_FIELDS), "content": parts} if parts or not content else None


def _is_sealed_thinking(part: object, own: Collection[str]) -> bool:
    """Thinking that somebody signed, and not this target."""
    if not isinstance(part, dict) or part.get("type") not in ("thinking", "redacted_thinking"):
        return False
    seal = part.get("signature") or part.get("data")
    return bool(seal) and not (isinstance(seal, str) and seal in own)


def _foreign_part(part: object, own: Collection[str]) -> object:
    part = _everywhere_cached(part)
    if not isinstance(part, dict) or part.get("type") == "thinking":
        return part
    if part.get("type") in _PLAIN_PARTS:
        return {**part, "citations": without_deep(part["citations"], _FOREIGN_SEALS)} if list_in(part, "citations") else part
    return without_deep(part, _FOREIGN_SEALS)


def _everywhere_cached(part: object) -> object:
    """A cache mark without its `scope`, which is a beta of Anthropic's."""
    mark = part.get("cache_control") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(mark, dict) or "scope" not in mark:
        return part
    return {**part, "cache_control": without(mark, ("scope",))}
