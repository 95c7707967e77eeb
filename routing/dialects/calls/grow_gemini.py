"""Google's generateContent: a call that grows.

1. Responses of functions stand first in their content, and two contents of one role in a row become one.
2. Field names follow those that the client uses: camelCase or snake_case, `parameters` or `parametersJsonSchema`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...values import Call, Dialect, JsonObject, ToolCall
from .editing import Shape, inner_body, items_in, list_in, object_in, objects_in
from .replacing import view_of

_SHAPE = Shape("parts", {})
_DECLARED = ("functionDeclarations", "function_declarations")
_RESPONSES = ("functionResponse", "function_response")
_JSON_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema")
_MADE = "#"
_SCHEMA_FIELDS = frozenset(
    (
        "type", "format", "title", "description", "nullable", "enum", "default", "example", "items", "minItems", "maxItems",
        "properties", "required", "propertyOrdering", "minProperties", "maxProperties", "minLength", "maxLength", "pattern",
        "minimum", "maximum", "anyOf",
    )
)  # fmt: skip
"""All that Google's own schema knows; the interface refuses any other field."""


def made_id(name: str, number: int) -> str:
    """An id for a call that the provider gave none."""
    return f"{name}{_MADE}{number}"


def is_made(call: ToolCall) -> bool:
    """The provider knows nothing of this id. A call read from a history carries its name instead of one."""
    return call.id in ("", call.name) or call.id.startswith(call.name + _MADE)


def write_user(text: str) -> JsonObject:
    return {"role": "user", "parts": [{"text": text}]}


def write_results(results: Sequence[tuple[ToolCall, str, bool]]) -> tuple[JsonObject, ...]:
    """A call that the provider gave no id is answered without one: name and order tell which it is."""
    if not results:
        return ()
    return ({"role": "user", "parts": [_response(*result) for result in results]},)


def with_messages(call: Call, items: Sequence[JsonObject]) -> Call:
    inner = inner_body(call)
    history, views = list(items_in(inner, "contents")) if "contents" in inner else [], list(call.messages)
    for item in items:
        parts = [part for part in _SHAPE.as_parts(item.get("parts")) if not _is_empty(part)]
        if not parts:
            continue
        if history and history[-1].get("role", "user") == item.get("role", "user"):
            history[-1] = {**history[-1], "parts": _joined(_SHAPE.as_parts(history[-1].get("parts")), parts)}
            del views[-1]
        else:
            history.append({**item, "parts": parts})
        views.append(view_of(Dialect.GEMINI, len(history) - 1, history[-1]))
    return replace(call, body=_with_inner(call, {**inner, "contents": history}), messages=views, changed=True)


def with_tool(call: Call, name: str, description: str, schema: JsonObject, *, strict: bool) -> Call:
    """Google's interface has no strict tools. All functions stand in one list: some of its servers take no second one."""
    inner = inner_body(call)
    tools = list_in(inner, "tools")
    place = next((place for place, tool in enumerate(tools) if isinstance(tool, dict) and objects_in(tool, *_DECLARED)), None)
    if place is None:
        tools = [*tools, {_DECLARED[0]: [_declared(name, description, schema, ())]}]
    else:
        tool = object_in({"tool": tools[place]}, "tool")
        key = next(key for key in _DECLARED if key in tool)
        known = objects_in(tool, key)
        grown = {**tool, key: [*list_in(tool, key), _declared(name, description, schema, known)]}
        tools = [*tools[:place], grown, *tools[place + 1 :]]
    return replace(call, body=_with_inner(call, {**inner, "tools": tools}), tools=(*call.tools, name), changed=True)


def _with_inner(call: Call, inner: JsonObject) -> JsonObject:
    if inner_body(call) is call.body:
        return inner
    wrap = "request" if call.endpoint.envelope else "generateContentRequest"
    return {**call.body, wrap: inner}


def _response(call: ToolCall, text: str, is_error: bool) -> JsonObject:
    response: JsonObject = {"name": call.name, "response": {"error" if is_error else "output": text}}
    return {"functionResponse": response if is_made(call) else {"id": call.id, **response}}


def _joined(old: list[object], new: list[object]) -> list[object]:
    """One content's parts, the responses of functions first."""
    at = next((place for place, part in enumerate(old) if not _is_response(part)), len(old))
    responses = [part for part in new if _is_response(part)]
    return [*old[:at], *responses, *old[at:], *(part for part in new if not _is_response(part))]


def _is_response(part: object) -> bool:
    return isinstance(part, dict) and any(name in part for name in _RESPONSES)


def _is_empty(part: object) -> bool:
    """A part with nothing in it; an empty text may still carry a signature."""
    return isinstance(part, dict) and not any(value for name, value in part.items() if name != "thought")


def _declared(name: str, description: str, schema: JsonObject, known: Sequence[JsonObject]) -> JsonObject:
    key = next((key for one in known for key in _JSON_SCHEMAS if key in one), None)
    shape = {key: schema} if key is not None else {"parameters": _as_google_writes(schema)}
    return {"name": name, "description": description, **shape}


def _as_google_writes(schema: JsonObject) -> JsonObject:
    """A JSON schema in the fields that Google's own knows."""
    written: JsonObject = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            written[key] = {name: _as_google_writes(one) if isinstance(one, dict) else one for name, one in value.items()}
        elif key == "const":
            written["enum"] = [value]
        elif key in ("anyOf", "oneOf") and isinstance(value, list):
            written["anyOf"] = [_as_google_writes(one) if isinstance(one, dict) else one for one in value]
        elif key == "type" and isinstance(value, list):
            kinds = [kind for kind in value if kind != "null"]
            written |= {"type": kinds[0] if kinds else "string", **({"nullable": True} if "null" in value else {})}
        elif key in _SCHEMA_FIELDS:
            written[key] = _as_google_writes(value) if isinstance(value, dict) and key == "items" else value
    return written
