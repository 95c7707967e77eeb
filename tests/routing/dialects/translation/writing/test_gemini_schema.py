# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.translation.neutral import Feature, LeftOut
from routecodex.routing.dialects.translation.writing.gemini_schema import clean, clean_any
from routecodex.routing.values import JsonObject
from tests.rig.work import calls_of
from tests.routing.dialects.calls.recorded import CALLS

S, N, B = {"type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}
ANY = {"anyOf": [S, N, B, {"type": "OBJECT"}]}
TREE = {
    "$defs": {"N": {"type": "object", "description": "a node", "properties": {"next": {"$ref": "#/$defs/N"}}}},
    "$ref": "#/$defs/N",
}

CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    # a schema, what is left of it, the words for what was lost
    "types": ({"type": "integer", "description": "how many"}, {"type": "INTEGER", "description": "how many"}, ""),
    "capitals": ({"type": "STRING"}, S, ""),
    "a title": ({"type": "string", "title": "Name"}, {"type": "STRING", "description": "Name"}, ""),
    "a title beside a description": ({"type": "string", "title": "Name", "description": "d"}, {"type": "STRING", "description": "d"}, ""),
    "limits": ({"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a"}, {"type": "STRING", "maxLength": 5, "minLength": 1, "pattern": "^a"}, ""),
    "limits of numbers": ({"type": "number", "minimum": 0, "maximum": 1.5}, {"type": "NUMBER", "maximum": 1.5, "minimum": 0}, ""),
    "limits of lists": ({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": -1}, {"type": "ARRAY", "minItems": 1, "items": S}, ""),
    "limits of other types": ({"type": "boolean", "minimum": 1, "minLength": 2}, B, ""),
    "what says nothing": ({"$schema": "x", "$id": "y", "$comment": "z", "type": "string", "deprecated": True}, S, ""),
    "a date": ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}, ""),
    "another format": ({"type": "string", "format": "uri", "description": "where"}, {"type": "STRING", "description": 'where (format: "uri")'}, "format"),
    "formats of numbers": ({"type": "integer", "format": "int64"}, {"type": "INTEGER", "format": "int64"}, ""),
    "a default": ({"type": "integer", "default": 5}, {"type": "INTEGER", "description": "(default: 5)"}, "default"),
    "a default of nothing": ({"type": "string", "default": None}, S, ""),
    "examples": ({"type": "string", "examples": ["a"]}, {"type": "STRING", "description": '(examples: ["a"])'}, "examples"),
    "examples that are too long": ({"type": "string", "examples": ["a" * 300]}, S, "examples"),
    "an open limit of whole numbers": ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, {"type": "INTEGER", "minimum": 1, "maximum": 9}, ""),
    "two limits": ({"type": "integer", "exclusiveMinimum": 0, "minimum": 5}, {"type": "INTEGER", "minimum": 5}, ""),
    "an open limit": ({"type": "number", "exclusiveMinimum": 0}, {"type": "NUMBER", "description": "(exclusiveMinimum: 0)"}, "exclusiveMinimum"),
    "an open limit, the old way": ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "INTEGER", "description": "(exclusiveMinimum: true)", "minimum": 0}, "exclusiveMinimum"),
    "steps": ({"type": "integer", "multipleOf": 5}, {"type": "INTEGER", "description": "(multipleOf: 5)"}, "multipleOf"),
    "words": ({"type": "string", "enum": ["a", "b", "a"]}, {"type": "STRING", "enum": ["a", "b"]}, ""),
    "words without a type": ({"enum": ["a", "b"]}, {"type": "STRING", "enum": ["a", "b"]}, ""),
    "words or null": ({"enum": ["a", None]}, {"type": "STRING", "nullable": True, "enum": ["a"]}, ""),
    "an empty word": ({"type": "string", "enum": ["", "a"]}, {"type": "STRING", "description": '(one of: "", "a")', "enum": ["a"]}, "enum"),
    "numbers to choose from": ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "(one of: 1, 2)"}, "enum"),
    "numbers without a type": ({"enum": [1, 2]}, {"type": "INTEGER", "description": "(one of: 1, 2)"}, "enum"),
    "a constant": ({"const": "a"}, {"type": "STRING", "enum": ["a"]}, ""),
    "a constant truth": ({"type": "boolean", "const": True}, {"type": "BOOLEAN", "description": "(one of: true)"}, "enum"),
    "truths without a type": ({"enum": [True]}, {"type": "BOOLEAN", "description": "(one of: true)"}, "enum"),
    "or null": ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}, ""),
    "or null, the other way": ({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "description": "d"}, {"type": "STRING", "minLength": 1, "description": "d", "nullable": True}, ""),
    "nothing but null": ({"type": "null"}, {"type": "STRING", "nullable": True}, ""),
    "two types": ({"type": ["string", "number"], "minLength": 1, "minimum": 2}, {"anyOf": [{"type": "STRING", "minLength": 1}, {"type": "NUMBER", "minimum": 2}]}, ""),
    "two types of number": ({"type": ["integer", "number"]}, N, ""),
    "two types or null": ({"type": ["string", "boolean", "null"]}, {"anyOf": [{"type": "STRING", "nullable": True}, {"type": "BOOLEAN", "nullable": True}]}, ""),
    "alternatives": ({"anyOf": [{"type": "string"}, {"type": "integer", "description": "own"}], "description": "d"}, {"anyOf": [{"type": "STRING", "description": "d"}, {"type": "INTEGER", "description": "own"}]}, ""),
    "the same alternative twice": ({"anyOf": [{"type": "string"}, {"type": "string"}]}, S, ""),
    "alternatives within alternatives": ({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"type": "boolean"}]}, {"anyOf": [S, N, B]}, ""),
    "alternative words": ({"anyOf": [{"const": "a"}, {"const": "b"}, {"enum": ["b", "c"]}]}, {"type": "STRING", "enum": ["a", "b", "c"]}, ""),
    "alternative words with their meanings": ({"oneOf": [{"const": "a", "description": "first"}, {"const": "b", "description": "second"}]}, {"type": "STRING", "description": "first\nsecond", "enum": ["a", "b"]}, "oneOf"),
    "one of": ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"anyOf": [S, N]}, "oneOf"),
    "alternatives of one type": ({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "number"}}}]}, {"anyOf": [{"type": "OBJECT", "properties": {"a": S}}, {"type": "OBJECT", "properties": {"b": N}}]}, ""),
    "alternatives beside fields": ({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "number"}}, "required": ["a", "b"]}]}, {"type": "OBJECT", "properties": {"a": S, "b": N}, "required": ["a"]}, "anyOf"),
    "an alternative that nothing fits": ({"anyOf": [False, {"type": "string"}]}, S, ""),
    "no alternative": ({"anyOf": []}, ANY, "any type"),
    "all of": ({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "number"}}, "required": ["b"]}]}, {"type": "OBJECT", "properties": {"a": S, "b": N}, "required": ["a", "b"]}, ""),
    "all of one": ({"allOf": [{"$ref": "#/$defs/A"}], "description": "mine", "$defs": {"A": {"type": "string", "description": "its"}}}, {"type": "STRING", "description": "mine"}, ""),
    "all of what cannot be": ({"allOf": [{"type": "string"}, {"type": "number"}]}, S, "allOf"),
    "a reference": ({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}}, {"type": "ARRAY", "items": S}, ""),
    "a reference of the old kind": ({"type": "array", "items": {"$ref": "#/definitions/A"}, "definitions": {"A": {"type": "string"}}}, {"type": "ARRAY", "items": S}, ""),
    "a reference with a name of its own": ({"type": "array", "items": {"$ref": "#/$defs/a~1b%20c~0d~01"}, "$defs": {"a/b c~d~1": {"type": "string"}}}, {"type": "ARRAY", "items": S}, ""),
    "a reference to a reference": ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}}}, S, ""),
    "a reference into a list": ({"anyOf": [{"type": "string"}, {"$ref": "#/anyOf/0"}]}, S, ""),
    "a reference to nothing": ({"type": "object", "properties": {"a": {"$ref": "#/$defs/X", "description": "d"}}}, {"type": "OBJECT", "properties": {"a": {"anyOf": [{**one, "description": "d"} for one in ANY["anyOf"]]}}}, "$ref, any type"),
    "a reference elsewhere": ({"$ref": "https://x.test/a.json", "type": "string"}, S, "$ref"),
    "a circle": (TREE, {"type": "OBJECT", "description": "a node", "properties": {"next": {"type": "OBJECT", "description": "a node"}}}, "$ref to itself"),
    "a circle through the root": ({"type": "array", "items": {"$ref": "#"}}, {"type": "ARRAY", "items": {"type": "ARRAY", "items": {"type": "ARRAY", "items": {"type": "OBJECT"}}}}, "$ref to itself"),
    "a reference to itself alone": ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, {"type": "OBJECT"}, "$ref to itself"),
    "closed fields": ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}, {"type": "OBJECT", "properties": {"a": S}}, ""),
    "free fields": ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "OBJECT", "description": "(more fields may be added, each of them: string)"}, "additionalProperties"),
    "free fields of any kind": ({"type": "object", "additionalProperties": {}}, {"type": "OBJECT"}, ""),
    "names of fields": ({"type": "object", "propertyNames": {"maxLength": 3}}, {"type": "OBJECT", "description": '(propertyNames: {"maxLength":3})'}, "propertyNames"),
    "patterns of fields": ({"type": "object", "patternProperties": {"^x": {}}}, {"type": "OBJECT"}, "patternProperties"),
    "conditions": ({"type": "object", "if": {}, "then": {}, "not": {}, "dependentRequired": {}}, {"type": "OBJECT"}, "if, then, not, dependentRequired"),
    "no fields": ({"type": "object", "properties": {}, "required": ["a"]}, {"type": "OBJECT"}, ""),
    "required fields that are not there": ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", "a", 3]}, {"type": "OBJECT", "properties": {"a": S}, "required": ["a"]}, "required"),
    "a field that must not be": ({"type": "object", "properties": {"a": False, "b": {"type": "string"}}}, {"type": "OBJECT", "properties": {"b": S}}, ""),
    "fields named like keywords": ({"type": "object", "properties": {"$ref": {"type": "string"}, "const": {"type": "number"}, "default": {"type": "boolean"}, "anyOf": {"type": "string"}}, "required": ["const"]}, {"type": "OBJECT", "properties": {"$ref": S, "const": N, "default": B, "anyOf": S}, "required": ["const"]}, ""),
    "a field without a type": ({"properties": {"a": {"description": "d"}}}, {"type": "OBJECT", "properties": {"a": {"anyOf": [{**one, "description": "d"} for one in ANY["anyOf"]]}}}, "any type"),
    "a list without items": ({"type": "array"}, {"type": "ARRAY", "items": ANY}, "any type"),
    "a list of anything": ({"type": "array", "items": True}, {"type": "ARRAY", "items": ANY}, "any type"),
    "a list of nothing": ({"type": "array", "items": {"enum": []}}, {"type": "ARRAY", "items": ANY}, "any type"),
    "places of a list": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": False}, {"type": "ARRAY", "items": {"anyOf": [S, N]}}, "prefixItems"),
    "places of a list, the old way": ({"type": "array", "items": [{"type": "string"}, {"type": "string"}]}, {"type": "ARRAY", "items": S}, "prefixItems"),
    "different things only": ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, {"type": "ARRAY", "description": "(uniqueItems: true)", "items": S}, "uniqueItems"),
    "a type from its limits": ({"properties": {"a": {"minimum": 1}, "b": {"items": {"type": "string"}}, "c": {"pattern": "x"}}}, {"type": "OBJECT", "properties": {"a": {"type": "NUMBER", "minimum": 1}, "b": {"type": "ARRAY", "items": S}, "c": {"type": "STRING", "pattern": "x"}}}, ""),
    "fields that are nothing": ({"type": "object", "properties": {"a": 3, "b": None}, "required": 7, "description": 9}, {"type": "OBJECT", "properties": {"a": ANY, "b": ANY}}, "any type"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cleaning(name: str) -> None:
    schema, expected, lost = CASES[name]
    before, left_out = orjson.dumps(schema), LeftOut()
    cleaned = clean_any(schema, left_out, "f")
    assert orjson.dumps(cleaned) == orjson.dumps(expected)
    assert left_out.found.get(Feature.SCHEMA, []) == ([f"f: {lost}"] if lost else [])
    assert orjson.dumps(schema) == before


ROOTS: dict[str, tuple[Any, dict[str, Any] | None]] = {
    # parameters of a tool: an object, or nothing
    "nothing": (None, None),
    "empty": ({}, None),
    "no fields": ({"type": "object", "properties": {}, "additionalProperties": False}, None),
    "no object": ({"type": "string"}, None),
    "an object": ({"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "OBJECT", "properties": {"a": S}}),
    "an object without the word": ({"properties": {"a": {"type": "string"}}}, {"type": "OBJECT", "properties": {"a": S}}),
    "an object or null": ({"type": ["object", "null"], "properties": {"a": {"type": "string"}}}, {"type": "OBJECT", "properties": {"a": S}}),
    "a reference": ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"type": "string"}}}}}, {"type": "OBJECT", "properties": {"a": S}}),
    "alternatives": ({"anyOf": [{"properties": {"a": {"type": "string"}, "k": {"const": "x"}}, "required": ["k", "a"]}, {"properties": {"b": {"type": "number"}}, "required": ["k", "b"]}]}, {"type": "OBJECT", "properties": {"b": N, "a": S, "k": {"type": "STRING", "enum": ["x"]}}, "required": ["k"]}),
    "alternatives behind a reference": ({"$ref": "#/$defs/A", "$defs": {"A": {"oneOf": [{"properties": {"a": {"type": "string"}}}]}}}, {"type": "OBJECT", "properties": {"a": S}}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_parameters_are_an_object_with_fields(name: str) -> None:
    schema, expected = ROOTS[name]
    assert clean(schema, LeftOut(), "f") == expected


def test_each_tool_names_its_own_losses() -> None:
    left_out = LeftOut()
    for name in ("f", "g"):
        clean({"properties": {"a": {"type": "string", "format": "uri"}}}, left_out, name)
    clean({"properties": {"a": {"type": "string"}}}, left_out, "h")
    assert left_out.found == {Feature.SCHEMA: ["f: format", "g: format"]}


def _bomb(levels: int) -> JsonObject:
    """A schema that doubles with each level when it is written out."""
    defs: JsonObject = {
        f"L{level}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/L{level + 1}"} for side in "ab"}}
        for level in range(levels)
    }
    return {"$defs": defs, "$ref": "#/$defs/L0"}


def test_a_bomb_of_references_is_cut() -> None:
    left_out = LeftOut()
    calls = calls_of(lambda: clean(_bomb(60), left_out, "f"))
    assert clean(_bomb(60), LeftOut(), "f") is not None
    assert "depth" in str(left_out)
    assert calls < 1_000_000, "written out it would be 2**60 objects"


def _nested(levels: int, *, key: str) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema} if key == "items" else {key: [schema]}
    return schema


@pytest.mark.parametrize("key", ["items", "anyOf", "allOf"])
def test_deep_schemas_end(key: str) -> None:
    cleaned = clean_any(_nested(150, key=key), LeftOut(), "f")
    assert _problems(cleaned) == []


# --- what every host takes -------------------------------------------------------------------------------------------------

_TAKEN = {
    "STRING": {"enum", "format", "minLength", "maxLength", "pattern"},
    "NUMBER": {"format", "minimum", "maximum"},
    "INTEGER": {"format", "minimum", "maximum"},
    "BOOLEAN": set(),
    "ARRAY": {"items", "minItems", "maxItems"},
    "OBJECT": {"properties", "required", "minProperties", "maxProperties"},
}


def _problems(schema: Any, path: str = "") -> list[str]:
    """Why Google would refuse it."""
    if not isinstance(schema, dict) or not schema:
        return [f"{path}: no schema"]
    if "anyOf" in schema:
        found = [] if schema.keys() == {"anyOf"} and len(schema["anyOf"]) > 1 else [f"{path}: beside anyOf"]
        return found + [one for place, branch in enumerate(schema["anyOf"]) for one in _problems(branch, f"{path}|{place}")]
    kind = schema.get("type")
    if kind not in _TAKEN:
        return [f"{path}: type {kind}"]
    found = [f"{path}: {key}" for key in schema.keys() - _TAKEN[kind] - {"type", "description", "nullable"}]
    if "enum" in schema and not (schema["enum"] and all(isinstance(word, str) and word for word in schema["enum"])):
        found.append(f"{path}: enum")
    if kind == "ARRAY":
        found += _problems(schema.get("items"), f"{path}[]")
    if "properties" in schema:
        found += [one for name, inner in schema["properties"].items() for one in _problems(inner, f"{path}.{name}")]
        found += [] if schema["properties"] else [f"{path}: no properties"]
    required = schema.get("required", [])
    if len(set(required)) != len(required) or not set(required) <= schema.get("properties", {}).keys():
        found.append(f"{path}: required")
    return found


def test_the_judge_of_schemas_sees_mistakes() -> None:
    bad: list[Any] = [
        {},
        {"type": "string"},
        {"type": "ARRAY"},
        {"type": "OBJECT", "properties": {}},
        {"type": "OBJECT", "required": ["a"]},
        {"type": "STRING", "default": 1},
        {"anyOf": [S, N], "description": "x"},
        {"type": "STRING", "enum": [1]},
    ]
    assert all(_problems(one) for one in bad)


def _schemas(value: object) -> list[JsonObject]:
    if isinstance(value, list):
        return [one for inner in value for one in _schemas(inner)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in ("input_schema", "parameters", "parametersJsonSchema") if isinstance(value.get(key), dict)]
    return own + [one for inner in value.values() for one in _schemas(inner)]


RECORDED = [(request.name, found) for request, _ in CALLS if (found := _schemas(orjson.loads(request.raw)))]


@pytest.mark.parametrize(("name", "schemas"), RECORDED, ids=[name for name, _ in RECORDED])
def test_recorded_schemas(name: str, schemas: list[JsonObject]) -> None:
    for schema in schemas:
        cleaned = clean(schema, LeftOut(), "f")
        if schema.get("properties"):
            assert cleaned is not None
            assert _problems(cleaned) == []
            assert list(cleaned["properties"]) == list(schema["properties"])  # type: ignore[call-overload]


WORDS = """type title description properties required items prefixItems anyOf oneOf allOf $ref $defs enum const default format
additionalProperties minimum exclusiveMinimum exclusiveMaximum minLength minItems pattern nullable not if propertyNames a b"""
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["string", "number", "integer", "boolean", "array", "object", "null", "#", "#/$defs/a", "#/anyOf/0", "a", ""]
    )
)
SCHEMAS = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(WORDS.split()), SCHEMAS, max_size=6))
def test_whatever_comes_is_cleaned(schema: dict[str, Any]) -> None:
    assert _problems(clean_any(schema, LeftOut(), "f")) == []
    if (cleaned := clean(schema, LeftOut(), "f")) is not None:
        assert _problems(cleaned) == []
        assert cleaned["type"] == "OBJECT"
