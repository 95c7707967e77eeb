"""The smallest value of a schema: what asks for it gets something it can read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.instance import smallest
from routecodex.routing.jsonbytes import dumps

ROUTER = {
    "type": "OBJECT",
    "properties": {"reasoning": {"type": "STRING"}, "complexity_score": {"type": "INTEGER", "minimum": 1, "maximum": 100}},
    "required": ["reasoning", "complexity_score"],
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}},
}


@pytest.mark.parametrize(
    "schema, value",
    [
        pytest.param(ROUTER, {"reasoning": "", "complexity_score": 1}, id="a tool's router, types in capitals"),
        pytest.param({}, {}, id="anything"),
        pytest.param(None, {}, id="none was given"),
        pytest.param(True, {}, id="true"),
        pytest.param({"type": "object"}, {}, id="an open object"),
        pytest.param({"type": "object", "properties": {"a": {"type": "string"}}}, {}, id="nothing is required"),
        pytest.param({"type": "object", "required": ["a"]}, {"a": None}, id="required and not described"),
        pytest.param(
            {"type": "object", "minProperties": 1, "properties": {"a": {"type": "null"}}}, {"a": None}, id="one at least"
        ),
        pytest.param({"type": "array", "items": {"type": "string"}}, [], id="an array"),
        pytest.param({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, [False, False], id="two at least"),
        pytest.param({"type": "array", "minItems": 2, "prefixItems": [{"const": 1}], "items": {"const": 2}}, [1, 2], id="places"),
        pytest.param({"enum": ["simple", "pro"]}, "pro", id="the shortest of a list"),
        pytest.param({"const": {"a": 1}}, {"a": 1}, id="a constant"),
        pytest.param({"type": ["string", "null"]}, None, id="or null"),
        pytest.param({"type": "STRING", "nullable": True}, None, id="nullable"),
        pytest.param({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "string"}]}, "", id="the smaller choice"),
        pytest.param(
            {"type": "object", "allOf": [{"required": ["a"]}, {"properties": {"a": {"const": 1}}}]}, {"a": 1}, id="all of"
        ),
        pytest.param({"type": "string", "minLength": 3}, "000", id="three letters at least"),
        pytest.param({"type": "string", "pattern": r"^\d\.\d\.\d$"}, "1.0.0", id="a version"),
        pytest.param({"type": "string", "format": "date"}, "2000-01-01", id="a date"),
        pytest.param({"type": "integer", "minimum": 3}, 3, id="three at least"),
        pytest.param({"type": "integer", "exclusiveMinimum": 3}, 4, id="more than three"),
        pytest.param({"type": "integer", "maximum": -3}, -3, id="minus three at most"),
        pytest.param({"type": "integer", "minimum": 4, "multipleOf": 3}, 6, id="in steps"),
        pytest.param({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5, id="between"),
        pytest.param(TREE, {"next": None}, id="refers to itself"),
        pytest.param({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"const": 1}}}, 1, id="a name with a slash"),
        pytest.param({"$ref": "#/$defs/a~0b", "$defs": {"a~b": {"const": 1}}}, 1, id="a name with a tilde"),
        pytest.param({"$ref": "https://elsewhere.example/schema"}, None, id="stands elsewhere"),
        pytest.param({"type": "string", "pattern": "("}, "", id="no pattern at all"),
    ],
)
def test_the_smallest(schema: object, value: object) -> None:
    assert smallest(schema) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "enum",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "$ref",
                    "items",
                    "properties",
                    "required",
                    "minItems",
                    "minLength",
                    "minimum",
                    "exclusiveMinimum",
                    "multipleOf",
                    "pattern",
                    "format",
                    "prefixItems",
                    "minProperties",
                    "const",
                    "nullable",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("asked, gets", [(999, 999), (1_000, 1_000), (1_001, 1_000), (10**9, 1_000)])
def test_a_bound_asks_for_so_much_and_no_more(asked: int, gets: int) -> None:
    names = [f"n{number}" for number in range(min(asked, 1_500))]
    assert len(smallest({"type": "string", "minLength": asked})) == gets  # type: ignore[arg-type]
    assert len(smallest({"type": "array", "minItems": asked, "items": {"type": "null"}})) == gets  # type: ignore[arg-type]
    assert len(smallest({"type": "object", "required": names})) == gets  # type: ignore[arg-type]


@given(JSON)
def test_whatever_a_schema_holds(schema: object) -> None:
    dumps(smallest(schema))


def test_a_schema_that_branches_without_end() -> None:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(100):
        schema = {"anyOf": [schema, schema]}
    smallest(schema)
