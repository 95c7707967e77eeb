"""Pydantic's findings in plain words, at the lines of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ValidationError

from . import schema
from .notes import Notes, nearest
from .section import validated
from .source import Table

_SAID: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda limits: "missing",
    "string_type": lambda limits: "must be text",
    "bool_type": lambda limits: "must be true or false",
    "bool_parsing": lambda limits: "must be true or false",
    "int_type": lambda limits: "must be a whole number",
    "int_parsing": lambda limits: "must be a whole number",
    "int_parsing_size": lambda limits: "is too large a number",
    "int_from_float": lambda limits: "must be a whole number",
    "float_type": lambda limits: "must be a number",
    "float_parsing": lambda limits: "must be a number",
    "finite_number": lambda limits: "must be a finite number",
    "list_type": lambda limits: "must be a list",
    "dict_type": lambda limits: "must be a mapping (name: value)",
    "model_type": lambda limits: "must be a mapping (name: value)",
    "too_short": lambda limits: "must not be empty",
    "too_long": lambda limits: f"must hold at most {limits['max_length']} entries",
    "literal_error": lambda limits: f"must be one of {limits['expected']}",
    "greater_than_equal": lambda limits: f"must be at least {limits['ge']:g}",
    "less_than_equal": lambda limits: f"must be at most {limits['le']:g}",
    "string_pattern_mismatch": lambda limits: "must be a time of day such as 12:00",
}


def validate(root: Table, notes: Notes) -> schema.Document | None:
    """The document; None where `notes` says what is wrong."""
    try:
        return validated(schema.Document, root)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    for one in found:
        path = tuple(step for step in one["loc"] if step != "[key]")
        if one["type"] == "extra_forbidden":
            notes.refuse(path, _unknown(str(path[-1]), at_top=len(path) == 1))
        else:
            say = _SAID.get(one["type"])
            notes.refuse(path, say(one.get("ctx", {})) if say else "not understood")
    return None


def _unknown(key: str, *, at_top: bool) -> str:
    if at_top and key in schema.ROUTER_KEYS:
        return "unknown key here: it belongs under virtualrouter"
    close = nearest(key, schema.ALL_KEYS)
    return f"unknown key (did you mean {' or '.join(close)}?)" if close else "unknown key"
