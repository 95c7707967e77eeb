"""Google's schemas (OpenAPI words, types in capitals) as JSON Schema, which every other dialect speaks."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import list_of

_SPELLED = {
    "any_of": "anyOf",
    "one_of": "oneOf",
    "all_of": "allOf",
    "prefix_items": "prefixItems",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "property_ordering": "propertyOrdering",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "ref": "$ref",
}
_ONE = frozenset(("items", "additionalProperties", "not", "propertyNames", "contains", "if", "then", "else"))
"""Keywords that hold one schema (`items` of older drafts: several)."""
_SEVERAL = frozenset(("anyOf", "oneOf", "allOf", "prefixItems", "items"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_COUNTS = frozenset(("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"))
_NULL: JsonObject = {"type": "null"}


def json_schema(schema: JsonObject) -> JsonObject:
    """The same schema in standard words. A schema that uses them already comes back equal."""
    out: JsonObject = {}
    for spelled, value in schema.items():
        key = _SPELLED.get(spelled, spelled)
        out[key] = _value(key, value)
    if out.get("format") == "enum":
        del out["format"]  # Google's own way of saying that `enum` is meant
    if out.get("type") in ("", "type_unspecified"):
        del out["type"]
    if "example" in out:
        out.setdefault("examples", [out.pop("example")])
    _put_in_order(out)
    return _with_null(out)


def _value(key: str, value: object) -> object:
    if key == "type":
        return [_lower(one) for one in value] if isinstance(value, list) else _lower(value)
    if key in _NAMED and isinstance(value, dict):
        return {name: json_schema(one) if isinstance(one, dict) else one for name, one in value.items()}
    if key in _SEVERAL and isinstance(value, list):
        return [json_schema(one) if isinstance(one, dict) else one for one in value]
    if key in _ONE and isinstance(value, dict):
        return json_schema(value)
    if key in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])  # int64 travels as text in Google's JSON
    if key == "$ref" and isinstance(value, str):
        return value.replace("#/defs/", "#/$defs/")
    return value


def _lower(word: object) -> object:
    return word.lower() if isinstance(word, str) else word


def _put_in_order(schema: JsonObject) -> None:
    """`propertyOrdering` is Google's alone; everywhere else the order of the properties says it."""
    order = list_of(schema.pop("propertyOrdering", None))
    properties = schema.get("properties")
    if order and isinstance(properties, dict):
        first = {name: properties[name] for name in order if isinstance(name, str) and name in properties}
        schema["properties"] = {**first, **properties}


def _with_null(schema: JsonObject) -> JsonObject:
    if schema.pop("nullable", None) is not True:
        return schema
    kind, enum = schema.get("type"), schema.get("enum")
    if isinstance(enum, list) and None not in enum:
        schema["enum"] = [*enum, None]
    if isinstance(kind, str):
        schema["type"] = [kind, "null"] if kind != "null" else kind
    elif isinstance(kind, list):
        schema["type"] = kind if "null" in kind else [*kind, "null"]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*list_of(schema["anyOf"]), dict(_NULL)]
    elif schema:
        return {"anyOf": [schema, dict(_NULL)]}
    return schema
