"""Google's generateContent, plain or in the envelope of Code Assist: reading a call, editing it, writing it for a target.

The interface takes field names in camelCase and in snake_case; so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ... import jsonbytes
from ...values import (
    Call,
    Endpoint,
    JsonObject,
    Media,
    Message,
    Other,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    media_kind,
)
from ..translation.neutral import Feature, LeftOut
from .credentials import without_credentials
from .editing import (
    Exchange,
    Shape,
    content_of,
    drop_from_history,
    edit_history,
    inner_body,
    items_in,
    joined_text,
    json_text,
    left_behind,
    list_in,
    loose_text,
    object_in,
    objects_in,
    read_body,
    text_in,
    unwrapped,
    views_of,
    without,
)

_SHAPE = Shape("parts", {})
_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}
_DECLARED = ("functionDeclarations", "function_declarations")
_SCHEMAS = (
    "responseSchema",
    "response_schema",
    "responseJsonSchema",
    "response_json_schema",
    "_responseJsonSchema",
)
_SIGNATURES = ("thoughtSignature", "thought_signature")
_COUNTED = "generateContentRequest"
"""What a call for a count may wrap the conversation in."""

_FOREIGN_FIELDS = dict.fromkeys(("labels", "session_id", "sessionId", "user_prompt_id"), Feature.METADATA)
"""Fields of the call that stay at the host the client called. Its envelope (project, prompt id) stays whole."""
_ENVELOPE = dict.fromkeys(("project", "user_prompt_id"), Feature.METADATA)
_NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google's interface accepts instead of a signature on a function call that another model made."""


def read_call(raw: bytes, endpoint: Endpoint) -> Call:
    body = read_body(raw)
    inner = _listed(unwrapped(body, envelope=endpoint.envelope))
    config = object_in(inner, "generationConfig", "generation_config")
    choice = object_in(object_in(inner, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config")
    mime = loose_text(config, "responseMimeType") or loose_text(config, "response_mime_type")
    return Call(
        endpoint=endpoint,
        raw=raw,
        body=body,
        model=(endpoint.model or text_in(body, "model") or text_in(inner, "model")).removeprefix("models/"),
        stream=endpoint.stream is True,
        messages=_views(inner),
        system=_system_text(inner),
        tools=_tool_names(inner),
        structured="json" in mime or any(config.get(name) is not None for name in _SCHEMAS),
        schema=object_in(config, *_SCHEMAS) or None,
        forced_tools=loose_text(choice, "mode").upper() in ("ANY", "NONE"),
    )


def _listed(inner: JsonObject) -> JsonObject:
    """Google's interface takes a single thing where it wants a list, and its own examples are written so: the list is made here.
    What nobody edits is sent as it came."""
    _list_each(inner, "contents", "tools")
    for item in list_in(inner, "contents"):
        _list_each(item, "parts")
    for tool in list_in(inner, "tools"):
        _list_each(tool, *_DECLARED)
    return inner


def _list_each(holder: object, *names: str) -> None:
    if type(holder) is dict:
        for name in names:
            if type(one := holder.get(name)) is dict:
                holder[name] = [one]


def edit_texts(call: Call, edits: Mapping[tuple[int, int], str]) -> None:
    edit_history(call, inner_body(call), "contents", edits, _SHAPE, _view)


def drop_exchanges(call: Call, exchanges: Iterable[Exchange]) -> bool:
    if not call.messages:
        return False
    return drop_from_history(call, inner_body(call), "contents", exchanges, _SHAPE, _view)


def bare(call: Call, model: str, own: Collection[str], left: LeftOut) -> JsonObject:
    """An envelope belongs to the host the client called: any other host gets what was in it."""
    inner = _scrubbed(inner_body(call), own, left)
    if call.endpoint.envelope:
        left_behind(call.body, _ENVELOPE, left)
        return without(inner, ("model",))
    whole = inner if inner_body(call) is call.body else {**_scrubbed(call.body, own, left), _COUNTED: inner}
    return _renamed(whole, model)


def at_home(call: Call, model: str) -> bytes:
    """A plain call's model is in its path; the body changes only where it names one as well."""
    body = call.body if model in ("", call.model) else _renamed(call.body, model)
    return call.raw if body is call.body and not call.changed else jsonbytes.dumps(body)


def _renamed(body: JsonObject, model: str) -> JsonObject:
    """The body for another model, where it names one."""
    for wrap in (_COUNTED, "request"):
        nested = object_in(body, wrap)
        if model and "model" in nested:
            body = {**body, wrap: _renamed(nested, model)}
    if not model or "model" not in body:
        return body
    prefix = "models/" if loose_text(body, "model").startswith("models/") else ""
    return {**body, "model": prefix + model.removeprefix("models/")}


def _views(inner: JsonObject) -> list[Message]:
    return views_of(inner, "contents", _view) if "contents" in inner else []


def _view(index: int, item: JsonObject) -> Message:
    content = content_of(item, "parts")
    parts: list[Part] = [Text(content)] if isinstance(content, str) else [_part(*pair) for pair in enumerate(content)]
    return Message(_ROLES.get(text_in(item, "role", "user"), "system"), parts, index)


def _part(slot: int, raw: object) -> Part:
    if not isinstance(raw, dict):
        return Other(slot)
    text = raw.get("text")
    if isinstance(text, str) and (text or raw.keys().isdisjoint(_PARTS)):  # some clients leave no field of a part out
        return Thinking(text, slot) if raw.get("thought") is True else Text(text, slot)
    for key, read in _PARTS.items():
        if isinstance(value := raw.get(key), dict):
            return read(value, slot)
    return Other(slot)


def _call(raw: JsonObject, slot: int) -> Part:
    name = loose_text(raw, "name")
    return ToolCall(loose_text(raw, "id") or name, name, json_text(raw.get("args") or {}), slot)


def _result(raw: JsonObject, slot: int) -> Part:
    response = object_in(raw, "response")
    text = loose_text(response, "output") or json_text(response)
    return ToolResult(loose_text(raw, "id") or loose_text(raw, "name"), text, slot)


def _media(raw: JsonObject, slot: int) -> Part:
    mime = loose_text(raw, "mimeType") or loose_text(raw, "mime_type")
    return Media(media_kind(mime), slot)


_PARTS: dict[str, Callable[[JsonObject, int], Part]] = {
    "functionCall": _call,
    "function_call": _call,
    "functionResponse": _result,
    "function_response": _result,
    "inlineData": _media,
    "inline_data": _media,
    "fileData": _media,
    "file_data": _media,
}


def _system_text(inner: JsonObject) -> str:
    given = inner.get("systemInstruction", inner.get("system_instruction"))
    if isinstance(given, dict):
        given = given.get("parts")
    return joined_text([given] if isinstance(given, dict) else given)


def _tool_names(inner: JsonObject) -> tuple[str, ...]:
    """Functions by name; what Google itself brings (`googleSearch`) by its field."""
    names: list[str] = []
    for tool in objects_in(inner, "tools"):
        if tool.keys().isdisjoint(_DECLARED):
            names.extend(tool)
            continue
        names.extend(loose_text(function, "name") for function in objects_in(tool, *_DECLARED))
        names.extend(key for key in tool if key not in _DECLARED)
    return tuple(name for name in names if name)


def _scrubbed(source: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject:
    inner = dict(without_credentials(left_behind(source, _FOREIGN_FIELDS, left), left))
    if "contents" in inner:
        items = items_in(inner, "contents")
        inner["contents"] = [item for old in items if (item := _foreign_message(old, own, left)) is not None]
    return inner


def _foreign_message(item: JsonObject, own: Collection[str], left: LeftOut) -> JsonObject | None:
    """None for an answer that was nothing but sealed thinking."""
    content = item.get("parts")
    if not isinstance(content, list):
        return item
    parts = [kept for part in content if (kept := _foreign_part(part, own)) is not None]
    if len(parts) < len(content) or any(new is not old for new, old in zip(parts, content, strict=True)):
        left.add(Feature.THOUGHTS)
    return {**item, "parts": parts} if parts or not content else None


def _foreign_part(part: object, own: Collection[str]) -> object:
    """None where nothing remains that another model could use."""
    seals = [part[key] for key in _SIGNATURES if key in part] if isinstance(part, dict) else []
    if not isinstance(part, dict) or all(isinstance(seal, str) and seal in own for seal in seals):
        return part
    bare = without(part, _SIGNATURES)
    if "functionCall" in bare or "function_call" in bare:
        return {**bare, _SIGNATURES[0]: _NO_SIGNATURE}
    if bare.get("thought") is True or bare.get("text") == "" or not bare:
        return None
    return bare
