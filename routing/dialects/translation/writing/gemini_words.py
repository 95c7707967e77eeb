"""JSON Schema's words beside those of Google's schema: types, limits, alternatives."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import list_of, object_of, text_of

_TYPES = {
    "string": "STRING",
    "number": "NUMBER",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
}
LIMITS_OF: dict[str, frozenset[str]] = {
    "STRING": frozenset(("minLength", "maxLength", "pattern")),
    "NUMBER": frozenset(("minimum", "maximum")),
    "INTEGER": frozenset(("minimum", "maximum")),
    "BOOLEAN": frozenset(),
    "ARRAY": frozenset(("minItems", "maxItems")),
    "OBJECT": frozenset(("minProperties", "maxProperties")),
}
"""Limits that Google's schema has for a type; they pass as they are."""
_HINTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("properties", "required", "additionalProperties", "patternProperties", "propertyNames"), "object"),
    (("items", "prefixItems", "minItems", "maxItems", "uniqueItems"), "array"),
    (("pattern", "minLength", "maxLength", "format"), "string"),
    (("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
)
"""What a schema without a type is about."""


def without_const(schema: JsonObject) -> JsonObject:
    if "const" not in schema:
        return schema
    return {**{key: value for key, value in schema.items() if key != "const"}, "enum": [schema["const"]]}


def types_of(schema: JsonObject) -> tuple[list[str], bool]:
    """Google's types of a schema, and whether null fits as well."""
    given, enum = schema.get("type"), list_of(schema.get("enum"))
    words = [text_of(one).lower() for one in (given if isinstance(given, list) else [given])]
    nullable = "null" in words or schema.get("nullable") is True or (not given and None in enum)
    types = [_TYPES[word] for word in dict.fromkeys(words) if word in _TYPES]
    if "INTEGER" in types and "NUMBER" in types:
        types.remove("INTEGER")
    if not types and words != ["null"]:
        kinds = [_type_of_value(value) for value in enum if value is not None]
        hinted = [_TYPES[kind] for keys, kind in _HINTS if any(key in schema for key in keys)][:1]
        types = list(dict.fromkeys(kinds)) or hinted
    if words == ["null"]:
        types = ["STRING"]  # null alone: no type of Google's hosts says it
        nullable = True
    return types, nullable


def _type_of_value(value: object) -> str:
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int | float):
        return "INTEGER" if isinstance(value, int) else "NUMBER"
    return "OBJECT" if isinstance(value, dict) else "ARRAY" if isinstance(value, list) else "STRING"


def cut(schema: JsonObject) -> JsonObject:
    """A schema inside itself, without what it holds."""
    types, nullable = types_of(schema)
    out: JsonObject = {"type": types[0] if types else "OBJECT"}
    if told := text_of(schema.get("description")) or text_of(schema.get("title")):
        out["description"] = told
    if nullable:
        out["nullable"] = True
    if out["type"] == "ARRAY":
        out["items"] = {"type": "OBJECT"}
    return out


def joined(branches: list[JsonObject]) -> list[JsonObject]:
    """Each alternative once; lists of words as one list."""
    only = {"type", "enum", "description"}
    if len(branches) > 1 and all(one.get("type") == "STRING" and "enum" in one and one.keys() <= only for one in branches):
        told = "\n".join(dict.fromkeys(text_of(one["description"]) for one in branches if "description" in one))
        words = list(dict.fromkeys(word for one in branches for word in list_of(one["enum"])))
        return [{"type": "STRING", **({"description": told} if told else {}), "enum": words}]
    return [one for place, one in enumerate(branches) if one not in branches[:place]]


def alone(branches: list[JsonObject]) -> JsonObject:
    flat = [one for branch in branches for one in (list_of(branch["anyOf"]) if "anyOf" in branch else [branch])]
    return object_of(flat[0]) if len(flat) == 1 else {"anyOf": flat}


def number_of(value: object) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_limit(key: str, value: object) -> bool:
    if key == "pattern":
        return isinstance(value, str)
    number = number_of(value)
    if key in ("minimum", "maximum"):
        return number is not None
    return isinstance(number, int) and number >= 0
