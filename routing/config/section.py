"""A part of the file as a class: its annotated names are the keys, and what they are set to is what holds without them.

Checked by pydantic's core alone: the rest of pydantic, and the making of its models, took a third of our start.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic_core import SchemaValidator

S = TypeVar("S", bound="Section")

_Schema = dict[str, Any]
_MUST_BE_SAID: Any = object()


@dataclass(frozen=True)
class Limits:
    """What a value must keep to, by the words of pydantic's core."""

    default: Any = _MUST_BE_SAID
    alias: str = ""
    words: tuple[tuple[str, Any], ...] = ()


def field(default: Any = _MUST_BE_SAID, *, alias: str = "", **words: Any) -> Any:
    """A key with limits (`ge`, `le`, `min_length`, `max_length`, `pattern`, `allow_inf_nan`), or spelt in a way of its own."""
    return Limits(default, alias, tuple(words.items()))


class Section:
    """A key that stands nowhere in it is refused."""

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
    file_keys: ClassVar[dict[str, Limits]]
    """By the name that it has here."""
    validator: ClassVar[SchemaValidator]
    """Made when the first file is read."""

    def __init_subclass__(cls) -> None:
        cls.file_keys = {name: _limits(name, vars(cls).get(name, _MUST_BE_SAID)) for name in cls.__annotations__}
        for name, limits in cls.file_keys.items():
            if limits.default is not _MUST_BE_SAID:
                setattr(cls, name, limits.default)


def _limits(name: str, given: Any) -> Limits:
    found = given if isinstance(given, Limits) else Limits(given)
    first, *others = name.split("_")
    return Limits(found.default, found.alias or first + "".join(map(str.capitalize, others)), found.words)


def validated(section: type[S], tree: object) -> S:
    """Raises pydantic_core's ValidationError."""
    found = _validator(section).validate_python(tree)
    assert isinstance(found, section)
    return found


def _validator(section: type[Section]) -> SchemaValidator:
    if "validator" not in vars(section):
        section.validator = SchemaValidator(_of_section(section))
    return section.validator


def _of_section(section: type[Section]) -> _Schema:
    hints = get_type_hints(section, include_extras=True)
    fields: _Schema = {}
    for name, limits in section.file_keys.items():
        schema = {**_of(hints[name]), **dict(limits.words)}
        if limits.default is not _MUST_BE_SAID:
            schema = {"type": "default", "schema": schema, "default": limits.default}
        fields[name] = {"type": "model-field", "schema": schema, "validation_alias": limits.alias}
    inner = {"type": "model-fields", "fields": fields, "extra_behavior": "forbid"}
    return {"type": "model", "cls": section, "schema": inner}


def _of(kind: Any) -> _Schema:
    origin, given = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**_of(given[0]), **dict(given[1].words)}
    if origin in (Union, UnionType):
        (one,) = (arg for arg in given if arg is not NoneType)
        return {"type": "nullable", "schema": _of(one)}
    if origin is Literal:
        return {"type": "literal", "expected": list(given)}
    if origin is list:
        return {"type": "list", "items_schema": _of(given[0])}
    if origin is dict:
        return {"type": "dict", "keys_schema": _of(given[0]), "values_schema": _of(given[1])}
    if issubclass(kind, Section):
        return _of_section(kind)
    return {"type": _PLAIN[kind]}


_PLAIN = {int: "int", float: "float", str: "str", bool: "bool"}
