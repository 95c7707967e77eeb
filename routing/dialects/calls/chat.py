"""OpenAI's Chat Completions: reading a call, editing it, writing it for a target.

A message's tool calls stand behind its content as the slots -2, -3, …; thinking beside the content has no slot of its own (-1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from ...values import Call, Endpoint, JsonObject, Media, Message, Other, Part, Role, Text, Thinking, ToolCall, ToolResult
from ..fields import THOUGHTS
from ..signed import without_foreign
from ..translation.neutral import Feature, LeftOut
from .credentials import without_credentials
from .editing import (
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
)

_SHAPE = Shape("content", {"type": "text"})
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}
_BESIDE = frozenset({*THOUGHTS, "tool_calls", "function_call"})
"""What a message holds beside its content; most hold none of it."""

_FOREIGN_FIELDS = {
    "user": Feature.METADATA,
    "metadata": Feature.METADATA,  # session and prompt ids
    "safety_identifier": Feature.METADATA,
    "prompt_cache_key": Feature.METADATA,  # a session id with every client seen
    "prompt_cache_retention": Feature.METADATA,
    "session_id": Feature.METADATA,
    "store": Feature.STORED,  # asks for keeping at the client's own account
    "service_tier": Feature.SERVICE_TIER,
    "api_base": Feature.CREDENTIALS,  # where a gateway is to go with the key beside it: never with one of ours
    "base_url": Feature.CREDENTIALS,
}
"""Top-level fields that stay at the host the client called."""
_CACHE = {"cache_control": Feature.CACHE_MARKS}
"""Known to a few hosts only, refused by others."""


def read_call(raw: bytes, endpoint: Endpoint) -> Call:
    body = read_body(raw)
    form = object_in(body, "response_format")
    return Call(
        endpoint=endpoint,
        raw=raw,
        body=body,
        model=text_in(body, "model"),
        stream=body.get("stream") is True,
        messages=views_of(body, "messages", _view),
        tools=_tool_names(body),
        structured=loose_text(form, "type").startswith("json"),
        schema=object_in(object_in(form, "json_schema"), "schema") or None,
        forced_tools=body.get("tool_choice", body.get("function_call")) not in (None, "auto"),
    )


def edit_texts(call: Call, edits: Mapping[tuple[int, int], str]) -> None:
    edit_history(call, call.body, "messages", edits, _SHAPE, _view)


def drop_exchanges(call: Call, exchanges: Iterable[Exchange]) -> bool:
    return drop_from_history(call, call.body, "messages", exchanges, _SHAPE, _view)


def bare(call: Call, model: str, own: Collection[str], left: LeftOut) -> JsonObject:
    return renamed(_scrubbed(call.body, own, left), model)


def at_home(call: Call, model: str) -> bytes:
    return sent(call, model)


def asking_usage(call: Call) -> Call:
    """The same; what its stream cost is told at its end."""
    options = {**object_in(call.body, "stream_options"), "include_usage": True}
    return replace(call, body={**call.body, "stream_options": options}, changed=True)


def _view(index: int, item: JsonObject) -> Message:
    role = _ROLES.get(text_in(item, "role"), "system")
    if role == "tool":
        result = ToolResult(loose_text(item, "tool_call_id") or loose_text(item, "name"), result_text(item.get("content")))
        return Message(role, [result], index)
    content = content_of(item, "content")
    parts: list[Part] = [Text(content)] if isinstance(content, str) else [_part(slot, raw) for slot, raw in enumerate(content)]
    if not _BESIDE.isdisjoint(item):
        if thinking := next((text for name in THOUGHTS if (text := loose_text(item, name))), ""):
            parts.insert(0, Thinking(thinking))
        parts.extend(_tool_calls(item))
    return Message(role, parts, index)


def _part(slot: int, raw: object) -> Part:
    if not isinstance(raw, dict):
        return Other(slot)
    kind = raw.get("type")
    read = _PARTS.get(kind) if isinstance(kind, str) else None
    return read(raw, slot) if read else Other(slot)


def _text(raw: JsonObject, slot: int) -> Part:
    text = raw.get("text")
    return Text(text, slot) if isinstance(text, str) else Other(slot)


_PARTS: dict[str, Callable[[JsonObject, int], Part]] = {
    "text": _text,
    "image_url": lambda raw, slot: Media("image", slot),
    "input_audio": lambda raw, slot: Media("audio", slot),
    "video": lambda raw, slot: Media("video", slot),
    "video_url": lambda raw, slot: Media("video", slot),
    "file": lambda raw, slot: Media("file", slot),
    "thinking": lambda raw, slot: Thinking(loose_text(raw, "thinking"), slot),
}


def _tool_calls(item: JsonObject) -> list[Part]:
    calls: list[Part] = []
    for position, raw in enumerate(objects_in(item, "tool_calls")):
        function = object_in(raw, "function") if "function" in raw else {}
        custom = object_in(raw, "custom") if "custom" in raw else {}
        # a custom tool takes free text, which is not JSON yet
        arguments = json_text({"input": loose_text(custom, "input")}) if custom else _written(function) if function else ""
        name = loose_text(function or custom, "name") if function or custom else ""
        calls.append(ToolCall(loose_text(raw, "id"), name, arguments, -2 - position))
    if not calls and (old := object_in(item, "function_call")):
        calls.append(ToolCall("", loose_text(old, "name"), _written(old), -2))
    return calls


def _written(function: JsonObject) -> str:
    """Arguments as text; some hosts give, and some clients keep, the object itself."""
    given = function.get("arguments")
    return json_text(given) if isinstance(given, dict | list) else loose_text(function, "arguments")


def _tool_names(body: JsonObject) -> tuple[str, ...]:
    declared = [
        loose_text(object_in(tool, "function", "custom"), "name") or loose_text(tool, "name") or loose_text(tool, "type")
        for tool in objects_in(body, "tools")
    ]
    old = [loose_text(function, "name") for function in objects_in(body, "functions")]
    return tuple(name for name in declared + old if name)


def _scrubbed(source: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    body = dict(without_credentials(left_behind(source, _FOREIGN_FIELDS, left), left))
    if isinstance(body.get("tools"), list):
        body["tools"] = [left_behind(tool, _CACHE, left) if isinstance(tool, dict) else tool for tool in list_in(body, "tools")]
    body["messages"] = [_foreign_message(item, own, left) for item in items_in(body, "messages")]
    return body


def _foreign_message(old: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    item = dict(left_behind(old, _CACHE, left))
    content = item.get("content")
    if isinstance(content, list):
        item["content"] = [
            _unsigned(left_behind(part, _CACHE, left), own, left) if isinstance(part, dict) else part for part in content
        ]
    if isinstance(item.get("tool_calls"), list):
        item["tool_calls"] = [
            _foreign_call(raw, own, left) if isinstance(raw, dict) else raw for raw in list_in(item, "tool_calls")
        ]
    if isinstance(function := item.get("function_call"), dict):
        item["function_call"] = _unsigned(function, own, left)
    if isinstance(item.get("reasoning_details"), list):
        entries = objects_in(item, "reasoning_details")
        kept = [entry for entry in entries if not _is_sealed(entry, own)]
        item["reasoning_details"] = kept
        if len(kept) < len(entries):
            left.add(Feature.THOUGHTS)
    return _unsigned(item, own, left)


def _foreign_call(raw: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    call = _unsigned(raw, own, left)
    function = call.get("function")
    if isinstance(function, dict) and (bare := _unsigned(function, own, left)) is not function:
        call = {**call, "function": bare}
    return call


def _unsigned(holder: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    """Without signatures of others."""
    bare = without_foreign(holder, own)
    if bare is not holder:
        left.add(Feature.THOUGHTS, "signatures")
    return bare


def _is_sealed(entry: JsonObject, own: Collection[str]) -> bool:
    """A piece of reasoning that somebody signed or encrypted, and not this target."""
    seal = entry.get("signature") or entry.get("data")
    return bool(seal) and not (isinstance(seal, str) and seal in own)
