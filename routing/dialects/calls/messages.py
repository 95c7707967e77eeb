"""Anthropic's Messages: reading a call, editing it, writing it for a target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ...values import Call, Endpoint, JsonObject, Media, Message, Other, Part, Role, Text, Thinking, ToolCall, ToolResult
from ..translation.neutral import Feature, LeftOut
from .credentials import without_credentials
from .editing import (
    SPEAK,
    Exchange,
    Shape,
    content_of,
    drop_from_history,
    edit_history,
    items_in,
    json_text,
    left_behind,
    list_in,
    loose_text,
    object_in,
    objects_in,
    read_body,
    renamed,
    result_text,
    sent,
    text_in,
    views_of,
    without,
    without_deep,
)

_SHAPE = Shape("content", {"type": "text"})
_BILLING = "x-anthropic-billing-header"
_CACHE = "cache_control"
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}

_FOREIGN_FIELDS = {
    "metadata": Feature.METADATA,  # user_id: device, account, session
    "diagnostics": Feature.METADATA,  # ids of earlier answers
    "container": Feature.CONTAINER,  # a sandbox of the account at Anthropic
    "mcp_servers": Feature.MCP,  # addresses with their tokens
    "user_profile_id": Feature.METADATA,
    "context_management": Feature.CONTEXT_MANAGEMENT,  # needs Anthropic's beta header, which does not travel
    "service_tier": Feature.SERVICE_TIER,  # capacity bought from Anthropic
    "speed": Feature.SERVICE_TIER,
    "inference_geo": Feature.SERVICE_TIER,
}
"""Top-level fields that stay at the host the client called; fields named `cc_…` as well.
`thinking` and `output_config` say what answer is wanted, and travel."""
_FOREIGN_MESSAGE_FIELDS = {"output_config": Feature.EFFORT}
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
        messages=views_of(body, "messages", _view),
        system=_system_text(body.get("system")),
        tools=tuple(name for tool in tools if (name := loose_text(tool, "name") or loose_text(tool, "type"))),
        structured=bool(form),
        schema=object_in(form, "schema") or None,
        forced_tools=choice in ("any", "tool", "none"),
    )


def edit_texts(call: Call, edits: Mapping[tuple[int, int], str]) -> None:
    edit_history(call, call.body, "messages", edits, _SHAPE, _view)


def drop_exchanges(call: Call, exchanges: Iterable[Exchange]) -> bool:
    return drop_from_history(call, call.body, "messages", exchanges, _SHAPE, _view)


def bare(call: Call, model: str, own: Collection[str], left: LeftOut) -> JsonObject:
    return renamed(_scrubbed(call.body, own, left), model)


def at_home(call: Call, model: str) -> bytes:
    return sent(call, model)


def _view(index: int, item: JsonObject) -> Message:
    """All parts at once: a history has hundreds of them."""
    content, role, readers = content_of(item, "content"), item.get("role"), _PARTS
    parts: list[Part] = (
        [Text(content)]
        if isinstance(content, str)
        else [
            read(raw, slot)
            if type(raw) is dict and type(kind := raw.get("type")) is str and (read := readers.get(kind)) is not None
            else Other(slot)
            for slot, raw in enumerate(content)
        ]
    )
    return Message(_ROLES[role] if role in SPEAK else _ROLES.get(text_in(item, "role"), "system"), parts, index)


def _text(raw: JsonObject, slot: int) -> Part:
    text = raw.get("text")
    return Text(text, slot) if isinstance(text, str) else Other(slot)


def _tool_call(raw: JsonObject, slot: int) -> Part:
    return ToolCall(loose_text(raw, "id"), loose_text(raw, "name"), json_text(raw.get("input", {})), slot)


def _tool_result(raw: JsonObject, slot: int) -> Part:
    content = raw.get("content")
    return ToolResult(loose_text(raw, "tool_use_id"), content if type(content) is str else result_text(content), slot)


_PARTS: dict[str, Callable[[JsonObject, int], Part]] = {
    "text": _text,
    "image": lambda raw, slot: Media("image", slot),
    "document": lambda raw, slot: Media("file", slot),
    "thinking": lambda raw, slot: Thinking(loose_text(raw, "thinking"), slot),
    "redacted_thinking": lambda raw, slot: Thinking("", slot),
    "tool_use": _tool_call,
    "tool_result": _tool_result,
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


def _scrubbed(source: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    of_client = {key: Feature.METADATA for key in source if key.startswith("cc_")}
    body = without_credentials(left_behind(source, {**_FOREIGN_FIELDS, **of_client}, left), left)
    if body is source:
        body = dict(source)
    if "system" in body:
        body["system"] = _foreign_system(body["system"], left)
        if not body["system"]:
            del body["system"]
    if isinstance(body.get("tools"), list):
        # a toolset lives on an MCP server, and those are left out above
        tools = list_in(body, "tools")
        kept = [tool for tool in tools if not (isinstance(tool, dict) and tool.get("type") == "mcp_toolset")]
        if len(kept) < len(tools):
            left.add(Feature.MCP, "toolsets")
        body["tools"] = [_everywhere_cached(tool, left) for tool in kept]
        if tools and not kept:
            body = without(body, ("tools", "tool_choice"))
    body["messages"] = [item for old in items_in(body, "messages") if (item := _foreign_message(old, own, left)) is not None]
    return body


def _foreign_system(system: object, left: LeftOut) -> object:
    if isinstance(system, str):
        if system.startswith(_BILLING):
            left.add(Feature.METADATA, "billing line")
        return _without_billing_line(system)
    if not isinstance(system, list):
        return system
    kept = [block for block in system if not (isinstance(block, dict) and loose_text(block, "text").startswith(_BILLING))]
    if len(kept) < len(system):
        left.add(Feature.METADATA, "billing line")
    return [_everywhere_cached(block, left) for block in kept]


def _foreign_message(item: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject | None:
    """None for an answer that was nothing but sealed thinking."""
    content = item.get("content")
    item = left_behind(item, _FOREIGN_MESSAGE_FIELDS, left)
    if not isinstance(content, list) or all(map(_may_pass, content)):
        return item
    parts = [_foreign_part(part, left) for part in content if not _is_sealed_thinking(part, own)]
    if len(parts) < len(content):
        left.add(Feature.THOUGHTS)
    return {**item, "content": parts} if parts or not content else None


def _may_pass(part: object) -> bool:
    """At a glance: nearly all of a long history."""
    return isinstance(part, dict) and part.get("type") in _PLAIN_PARTS and "citations" not in part and _CACHE not in part


def _is_sealed_thinking(part: object, own: Collection[str]) -> bool:
    """Thinking that somebody signed, and not this target."""
    if not isinstance(part, dict) or part.get("type") not in ("thinking", "redacted_thinking"):
        return False
    seal = part.get("signature") or part.get("data")
    return bool(seal) and not (isinstance(seal, str) and seal in own)


def _foreign_part(part: object, left: LeftOut) -> object:
    part = _everywhere_cached(part, left)
    if not isinstance(part, dict) or part.get("type") == "thinking":
        return part
    if part.get("type") in _PLAIN_PARTS:
        if not list_in(part, "citations"):
            return part
        citations = without_deep(part["citations"], _FOREIGN_SEALS)
        if citations != part["citations"]:
            left.add(Feature.CITATIONS, "their seals")
        return {**part, "citations": citations}
    bare = without_deep(part, _FOREIGN_SEALS)
    if bare != part:
        left.add(Feature.SERVER_RESULTS, "their seals")
    return bare


def _everywhere_cached(part: object, left: LeftOut) -> object:
    """A cache mark without its `scope`, which is a beta of Anthropic's."""
    mark = part.get(_CACHE) if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(mark, dict) or "scope" not in mark:
        return part
    left.add(Feature.CACHE_MARKS, "scope")
    return {**part, _CACHE: without(mark, ("scope",))}
