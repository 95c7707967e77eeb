"""OpenAI's Responses: reading a call, editing it, writing it for a target.

1. Every input item is one message; an input that is one string is one user message.
2. A client's lists that run parallel to a content list (Codex says what each part is) keep in step with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...values import Call, Endpoint, JsonObject, Media, Message, Other, Part, Role, Text, Thinking, ToolCall, ToolResult
from ..translation.neutral import Feature, LeftOut
from .compaction import KINDS
from .credentials import tools_without_credentials, without_credentials
from .editing import (
    PLACEHOLDER,
    Exchange,
    Moved,
    Shape,
    content_of,
    drop_from_history,
    edited,
    edits_by_message,
    items_in,
    joined_text,
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

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_METADATA = "internal_chat_message_metadata_passthrough"
_KINDS = "content_item_kinds"
_CARRIER = "additional_tools"
"""An item of the input list that declares tools (Codex)."""
_PARALLEL = {_KINDS: "unknown", "content_item_metadata": {}}
"""Lists with one entry for each content part, and the entry of a part that nothing is known of."""

_PREVIOUS = "previous_response_id"
_FOREIGN_FIELDS = {
    "client_metadata": Feature.METADATA,  # installation, session, thread, turn
    "prompt_cache_key": Feature.METADATA,  # a session id with every client seen
    "prompt_cache_retention": Feature.METADATA,
    "safety_identifier": Feature.METADATA,
    "user": Feature.METADATA,
    "metadata": Feature.METADATA,
    _PREVIOUS: Feature.STORED,  # lives at the account that made it
    "conversation": Feature.STORED,
    "service_tier": Feature.SERVICE_TIER,
}
"""Top-level fields that stay at the host the client called. (`store` travels: its absence would mean yes.)"""
_FOREIGN_INCLUDES = ("reasoning.encrypted_content",)
_FOREIGN_ITEMS = frozenset({"reasoning", *KINDS})
"""Items that are left out whole where they are sealed."""
_FOREIGN_SEALS = frozenset({"encrypted_content", _METADATA})


def read_call(raw: bytes, endpoint: Endpoint) -> Call:
    body = read_body(raw)
    carried = [tool for item in objects_in(body, "input") if item.get("type") == _CARRIER for tool in objects_in(item, "tools")]
    declared = [*objects_in(body, "tools"), *carried]
    form = object_in(object_in(body, "text"), "format")
    return Call(
        endpoint=endpoint,
        raw=raw,
        body=body,
        model=text_in(body, "model"),
        stream=body.get("stream") is True,
        messages=_views(body),
        system=loose_text(body, "instructions"),
        tools=tuple(_tool_names(declared)),
        namespaces=tuple(_namespaces(declared)),
        structured=loose_text(form, "type").startswith("json"),
        schema=object_in(form, "schema") or None,
        forced_tools=body.get("tool_choice") not in (None, "auto"),
        previous_id=text_in(body, "previous_response_id") or None,
    )


def edit_texts(call: Call, edits: Mapping[tuple[int, int], str]) -> None:
    found = edits_by_message(call, edits)
    if not found:
        return
    call.changed = True
    if isinstance(call.body.get("input"), str):
        text = found[0][-1]
        call.body["input"] = text if text.strip() else PLACEHOLDER
        call.messages[:] = _views(call.body)
        return
    items = items_in(call.body, "input")
    for index, texts in found.items():
        item, gone = edited(items[index], "content", texts)
        items[index] = _shrunk(item, frozenset(gone)) if gone else item
        call.messages[index] = _view(index, items[index])


def drop_exchanges(call: Call, exchanges: Iterable[Exchange]) -> bool:
    if not isinstance(call.body.get("input"), list):
        return False
    return drop_from_history(call, call.body, "input", exchanges, _SHAPE, _view)


def bare(call: Call, model: str, own: Collection[str], left: LeftOut) -> JsonObject:
    return renamed(_scrubbed(call.body, own, left), model)


def at_home(call: Call, model: str) -> bytes:
    return sent(call, model)


def _views(body: JsonObject) -> list[Message]:
    given = body.get("input")
    if isinstance(given, str):
        return [Message("user", [Text(given)], 0)]
    return [] if given is None else views_of(body, "input", _view)


def _view(index: int, item: JsonObject) -> Message:
    kind = text_in(item, "type", "message")
    if kind == "message":
        return _message(index, item)
    if kind in _CALLS:
        call = ToolCall(loose_text(item, "call_id") or loose_text(item, "id"), *_CALLS[kind](item))
        return Message("assistant", [call], index)
    if kind.endswith("_output"):
        return Message("tool", [ToolResult(loose_text(item, "call_id"), _output_text(item.get("output")))], index)
    if kind == "reasoning":
        texts = [joined_text(item.get("summary")), joined_text(item.get("content"))]
        return Message("assistant", [Thinking("\n".join(text for text in texts if text))], index)
    by_model = kind.endswith("_call") or kind in KINDS  # what a compaction left stands for the answers before it
    role = _ROLES.get(loose_text(item, "role"), "assistant" if by_model else "system")
    return Message(role, [Other()], index)


def _message(index: int, item: JsonObject) -> Message:
    content = content_of(item, "content")
    parts: list[Part] = [Text(content)] if isinstance(content, str) else [_part(*pair) for pair in enumerate(content)]
    hint: tuple[str, ...] = ()
    if _METADATA in item:
        hint = tuple(kind if isinstance(kind, str) else "" for kind in list_in(object_in(item, _METADATA), _KINDS))
    return Message(_ROLES.get(text_in(item, "role"), "system"), parts, index, hint)


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
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "input_image": lambda raw, slot: Media("image", slot),
    "input_audio": lambda raw, slot: Media("audio", slot),
    "input_video": lambda raw, slot: Media("video", slot),
    "input_file": lambda raw, slot: Media("file", slot),
    "reasoning_text": lambda raw, slot: Thinking(loose_text(raw, "text"), slot),
}

_CALLS: dict[str, Callable[[JsonObject], tuple[str, str]]] = {
    "function_call": lambda item: (loose_text(item, "name"), _written(item.get("arguments"))),
    "custom_tool_call": lambda item: (loose_text(item, "name"), json_text({"input": loose_text(item, "input")})),
    "local_shell_call": lambda item: ("local_shell", json_text(item.get("action", {}))),
    "shell_call": lambda item: ("shell", json_text(item.get("action", {}))),
    "apply_patch_call": lambda item: ("apply_patch", json_text(item.get("operation", {}))),
}
"""Item type → name and arguments. A custom tool takes free text, which becomes the field `input`."""


def _written(arguments: object) -> str:
    """As text; some clients keep the object itself."""
    return arguments if isinstance(arguments, str) else json_text(arguments) if isinstance(arguments, dict) else ""


def _output_text(output: object) -> str:
    return result_text(output)


def _tool_names(tools: Iterable[JsonObject]) -> Iterable[str]:
    """A namespace counts as the tools it holds: calls name those."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _tool_names(objects_in(tool, "tools"))
        elif name := loose_text(tool, "name") or loose_text(tool, "type"):
            yield name


def _namespaces(tools: Iterable[JsonObject]) -> Iterable[str]:
    return (name for tool in tools if tool.get("type") == "namespace" and (name := loose_text(tool, "name")))


def _with_parallel(item: JsonObject, change: Callable[[list[object], str], list[object]]) -> JsonObject:
    """The item with every list changed that runs parallel to its content."""
    metadata = object_in(item, _METADATA)
    lists = {key: change(list_in(metadata, key), key) for key in _PARALLEL if isinstance(metadata.get(key), list)}
    return {**item, _METADATA: {**metadata, **lists}} if lists else item


def _shrunk(item: JsonObject, gone: Collection[int]) -> JsonObject:
    return _with_parallel(item, lambda old, _: [entry for slot, entry in enumerate(old) if slot not in gone])


def _with_moved(receiver: JsonObject, at: int, moved: Sequence[Moved]) -> JsonObject:
    """The receiver of these parts, told what they are."""

    def grown(old: list[object], key: str) -> list[object]:
        known = ((list_in(object_in(source, _METADATA), key), slot) for _, source, slot in moved)
        return [*old[:at], *(entries[slot] if slot < len(entries) else _PARALLEL[key] for entries, slot in known), *old[at:]]

    return _with_parallel(receiver, grown)


_SHAPE = Shape("content", {"type": "input_text"}, _with_moved)


def _scrubbed(source: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    is_own = source.get(_PREVIOUS) in own
    stays = {name: feature for name, feature in _FOREIGN_FIELDS.items() if name != _PREVIOUS or not is_own}
    body = dict(without_credentials(left_behind(source, stays, left), left))
    if "include" in body:
        body["include"] = [name for name in list_in(body, "include") if name not in _FOREIGN_INCLUDES]
        if not body["include"]:
            del body["include"]
    if isinstance(body.get("input"), list):
        body["input"] = [_foreign_item(item, own, left) for item in items_in(body, "input") if not _is_left_out(item, own, left)]
    return body


def _is_left_out(item: JsonObject, own: Collection[str], left: LeftOut) -> bool:
    kind, seal = item.get("type"), item.get("encrypted_content")
    if kind == "item_reference":
        left.add(Feature.STORED, "items by reference")
        return True
    if kind not in _FOREIGN_ITEMS or not seal or (isinstance(seal, str) and seal in own):
        return False
    left.add(Feature.THOUGHTS if kind == "reasoning" else Feature.COMPACTED)
    return True


def _foreign_item(item: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    seal = item.get("encrypted_content")
    if _METADATA in item:
        left.add(Feature.METADATA, "of messages")
    if isinstance(seal, str) and seal in own:
        return without(item, (_METADATA,))
    if seal:
        left.add(Feature.THOUGHTS, "sealed items")
    item = without(item, _FOREIGN_SEALS)
    return {key: _foreign_value(key, value, left) for key, value in item.items()}


def _foreign_value(key: str, value: object, left: LeftOut) -> object:
    if key == "tools" and isinstance(value, list):
        return tools_without_credentials(value, left)
    if key not in ("content", "action", "results"):
        return value
    bare = without_deep(value, _FOREIGN_SEALS)
    if bare != value:
        left.add(Feature.THOUGHTS, "sealed items")
    return bare
