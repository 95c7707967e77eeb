"""Schemas as the Messages API takes them: of a tool's arguments, and of what the model must keep to exactly."""

from __future__ import annotations

import re
from typing import cast

from ....values import JsonObject
from ...calls.editing import json_text
from ...fields import list_of, object_of, text_of

_COMBINED = ("anyOf", "oneOf", "allOf")
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_DEFINED = re.compile(r"#/(?:\$defs|definitions)/([^/]+)")
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"))
_KEPT = frozenset(("type", "enum", "const", "anyOf", "allOf", "properties", "required", "items", "description", "title", "$ref"))
_SILENT = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "additionalProperties", "oneOf", "default", "examples")
)
"""Handled elsewhere, or nothing that an answer has to keep to."""
_DEEPEST = 64


def tool_schema(schema: JsonObject | None) -> tuple[JsonObject, str]:
    """The schema of a tool's arguments, an object at its root; and in words what could not stay in it."""
    if not schema:
        return {"type": "object", "properties": {}}, ""
    if found := _DEFINED.fullmatch(text_of(schema.get("$ref"))):
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        schema = {**object_of(_definitions(schema).get(found[1])), **rest}
    root = {name: value for name, value in schema.items() if name not in _COMBINED}
    taken: JsonObject = {name: schema[name] for name in _COMBINED if name in schema}
    branches = [object_of(branch) for name in taken for branch in list_of(taken[name])]
    properties: JsonObject = {}
    for part in (*branches, root):
        properties |= object_of(part.get("properties"))
    unnamed = {name: value for name, value in properties.items() if not _KEY.fullmatch(name)}
    if unnamed:
        taken["properties"] = unnamed
        root["required"] = [name for name in list_of(root.get("required")) if name not in unnamed]
    if root.get("type") != "object":
        root["type"] = "object"
    root["properties"] = {name: value for name, value in properties.items() if name not in unnamed}
    return root, f"Its arguments also obey this JSON schema: {json_text(taken)}" if taken else ""


def strict_schema(schema: JsonObject) -> JsonObject | None:
    """The schema in the part of JSON schema that the API can hold a model to; None where that would mean something else.

    Closed objects only, so no maps; no definition that leads to itself. Bounds, patterns and the like move to descriptions.
    """
    definitions = _definitions(schema)
    if _leads_to_itself(definitions):
        return None
    root = _strict(schema, 0)
    if root is None or not definitions:
        return root
    kept = {name: _strict(object_of(definition), 0) for name, definition in definitions.items()}
    if None in kept.values():
        return None
    place = "$defs" if isinstance(schema.get("$defs"), dict) else "definitions"
    return {**root, place: kept}


def _definitions(schema: JsonObject) -> JsonObject:
    return object_of(schema.get("$defs")) or object_of(schema.get("definitions"))


def _strict(schema: JsonObject, depth: int) -> JsonObject | None:
    if depth > _DEEPEST:
        return None
    kind = schema.get("type")
    if schema.get("$ref") is not None:
        return {"$ref": schema["$ref"]} if _DEFINED.fullmatch(text_of(schema.get("$ref"))) else None
    if isinstance(kind, list):
        rest = {name: value for name, value in schema.items() if name != "type"}
        return _strict({"anyOf": [{**rest, "type": word} if word != "null" else {"type": "null"} for word in kind]}, depth + 1)
    strict: JsonObject = {name: value for name, value in schema.items() if name in _KEPT}
    rest = {name: value for name, value in schema.items() if name not in _KEPT and name not in _SILENT}
    if any(isinstance(value, dict | list) for value in list_of(schema.get("enum"))):
        rest["enum"] = strict.pop("enum")
    if isinstance(schema.get("const"), dict | list):
        rest["const"] = strict.pop("const")
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            inner = [_strict(object_of(branch), depth + 1) for branch in list_of(schema[name])]
            if not inner or None in inner or "properties" in schema:
                return None
            strict["anyOf" if name == "oneOf" else name] = inner
    if not any(name in strict for name in ("type", "enum", "const", "anyOf", "allOf")):
        return None
    if ("enum" in strict or "const" in strict) and kind != "string":
        strict.pop("type", None)
    parts = _PARTS.get(kind if isinstance(kind, str) else "")
    if parts is not None and not parts(schema, strict, rest, depth):
        return None
    if rest:
        words = ", ".join(f"{name}: {value if isinstance(value, str) else json_text(value)}" for name, value in rest.items())
        strict["description"] = "\n".join(filter(None, (text_of(strict.get("description")), f"({words})")))
    return strict


def _object(schema: JsonObject, strict: JsonObject, rest: JsonObject, depth: int) -> bool:
    properties = object_of(schema.get("properties"))
    if isinstance(schema.get("additionalProperties"), dict) or "patternProperties" in schema:
        return False
    if not properties and schema.get("additionalProperties") is not False:
        return False
    inner = {name: _strict(object_of(value), depth + 1) for name, value in properties.items()}
    strict["properties"] = inner
    strict["additionalProperties"] = False
    return None not in inner.values()


def _array(schema: JsonObject, strict: JsonObject, rest: JsonObject, depth: int) -> bool:
    if rest.get("minItems") in (0, 1):
        strict["minItems"] = rest.pop("minItems")
    if "items" not in schema:
        return False
    items = _strict(object_of(schema["items"]), depth + 1)
    strict["items"] = items
    return items is not None


def _string(schema: JsonObject, strict: JsonObject, rest: JsonObject, depth: int) -> bool:
    if rest.get("format") in _FORMATS:
        strict["format"] = rest.pop("format")
    return True


_PARTS = {"object": _object, "array": _array, "string": _string}


def _leads_to_itself(definitions: JsonObject) -> bool:
    leads = {name: set(_references(definition)) for name, definition in definitions.items()}
    while leads:
        free = [name for name, others in leads.items() if not others & leads.keys()]
        if not free:
            return True
        for name in free:
            del leads[name]
    return False


def _references(value: object) -> list[str]:
    found: list[str] = []
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if match := _DEFINED.fullmatch(text_of(inner.get("$ref"))):
                found.append(match[1])
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += cast("list[object]", inner)
    return found
