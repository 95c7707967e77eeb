"""The smallest value that a JSON schema allows, for answers that no model wrote.

1. Never raises, and never takes long: what is nested too deeply, or refers to itself, becomes null.
2. What a schema can say beyond types and bounds (`not`, `if`, patterns of any kind) is not looked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ..jsonbytes import dumps
from ..values import JsonObject
from .fields import list_of, object_of, text_of

_DEEPEST = 24
_MOST_SCHEMAS = 2_000
_LONGEST = 1_000
"""Characters, or members, that a bound may ask for."""
_FORMATS = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "duration": "P0D",
    "email": "a@b.example",
    "hostname": "a.example",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://a.example",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_SAMPLES = ("", "a", "A", "0", "1", "-", "_", "a1", "aa", "AA", "00", "000", "0000", "a-a", "a_a", "a.a", "1.0.0", "#000000")
"""What most patterns of names, numbers and versions take."""


def smallest(schema: object) -> object:
    """A value that fits; an empty object where the schema leaves everything open."""
    value = _Builder(object_of(schema)).build(schema, 0)
    return {} if value is None and not _names_type(schema) else value


def _names_type(schema: object) -> bool:
    return any(name in object_of(schema) for name in ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"))


class _Builder(Struct):
    root: JsonObject
    open: list[str] = field(default_factory=list)
    """The references that are being followed."""
    built: int = 0

    def build(self, schema: object, depth: int) -> object:
        self.built += 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self.built > _MOST_SCHEMAS:
            return None
        if isinstance(reference := schema.get("$ref"), str):
            return self._follow(reference, depth)
        if isinstance(schema.get("allOf"), list):
            return self.build(_joined(schema), depth + 1)
        if "const" in schema:
            return schema["const"]
        if enum := list_of(schema.get("enum")):
            return min(enum, key=_size)
        for several in ("anyOf", "oneOf"):
            if options := list_of(schema.get(several)):
                rest = {name: value for name, value in schema.items() if name != several}
                built = [self.build(_joined({"allOf": [rest, option]}), depth + 1) for option in options]
                return min(built, key=_size)
        return self._of_type(schema, depth)

    def _follow(self, reference: str, depth: int) -> object:
        if reference in self.open:
            return None
        self.open.append(reference)
        value = self.build(_found(self.root, reference), depth + 1)
        self.open.pop()
        return value

    def _of_type(self, schema: JsonObject, depth: int) -> object:
        types = schema.get("type")
        names = [text_of(name).lower() for name in (types if isinstance(types, list) else [types])]
        if "null" in names or schema.get("nullable") is True:
            return None
        makers: Mapping[str, Callable[[JsonObject, int], object]] = {
            "boolean": lambda schema, depth: False,
            "integer": lambda schema, depth: _number(schema, whole=True),
            "number": lambda schema, depth: _number(schema, whole=False),
            "string": lambda schema, depth: _string(schema),
            "array": self._array,
            "object": self._object,
        }
        for name, make in makers.items():
            if name in names:
                return make(schema, depth)
        if "properties" in schema or "required" in schema:
            return self._object(schema, depth)
        return self._array(schema, depth) if "items" in schema else None

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        properties = object_of(schema.get("properties"))
        wanted = [name for name in list_of(schema.get("required")) if isinstance(name, str)]
        wanted += [name for name in properties if name not in wanted][: max(_bound(schema, "minProperties") - len(wanted), 0)]
        wanted = [name for name in properties if name in wanted] + [name for name in wanted if name not in properties]
        return {name: self.build(properties.get(name), depth + 1) for name in wanted[:_LONGEST]}

    def _array(self, schema: JsonObject, depth: int) -> list[object]:
        first = list_of(schema.get("prefixItems"))
        items = [*first, *([schema.get("items")] * _LONGEST)][: min(_bound(schema, "minItems"), _LONGEST)]
        return [self.build(item, depth + 1) for item in items]


def _joined(schema: JsonObject) -> JsonObject:
    """What stands beside `allOf`, and all of its members, as one schema."""
    joined = {name: value for name, value in schema.items() if name != "allOf"}
    for member in list_of(schema.get("allOf")):
        for name, value in object_of(member).items():
            old = joined.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                joined[name] = {**old, **value}
            elif name == "required" and isinstance(old, list) and isinstance(value, list):
                joined[name] = [*old, *(one for one in value if one not in old)]
            else:
                joined[name] = value
    return joined


def _found(root: JsonObject, reference: str) -> object:
    """`#/$defs/name`; nothing else is at hand."""
    place: object = root
    for step in reference.removeprefix("#").split("/")[1:]:
        place = object_of(place).get(step.replace("~1", "/").replace("~0", "~"))
    return place if reference.startswith("#") else None


def _string(schema: JsonObject) -> str:
    shortest = min(_bound(schema, "minLength"), _LONGEST)
    pattern, known = text_of(schema.get("pattern")), _FORMATS.get(text_of(schema.get("format")), "")
    for sample in (known, *_SAMPLES, "a" * shortest, "0" * shortest):
        if len(sample) >= shortest and (not known or sample) and _fits(pattern, sample):
            return sample
    return known or "a" * shortest


def _fits(pattern: str, sample: str) -> bool:
    try:
        return not pattern or len(pattern) > 200 or re.search(pattern, sample) is not None
    except (re.error, RecursionError, OverflowError):
        return True


def _number(schema: JsonObject, *, whole: bool) -> int | float:
    """Nought where it is allowed, else what lies nearest to it."""
    step = _real(schema, "multipleOf") or (1 if whole else 0)
    low, high = _real(schema, "minimum"), _real(schema, "maximum")
    above, below = _real(schema, "exclusiveMinimum"), _real(schema, "exclusiveMaximum")
    if above is not None and (low is None or above >= low):
        low = above + (step or 1)
        low = (above + below) / 2 if not step and below is not None and low >= below else low
    if below is not None and (high is None or below <= high):
        high = below - (step or 1)
    value: float = low if low is not None and low > 0 else high if high is not None and high < 0 else 0
    if step:
        value = (math.ceil if value > 0 else math.floor)(value / step) * step
    return int(value) if whole or float(value).is_integer() else value


def _real(schema: JsonObject, name: str) -> float | None:
    value = schema.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 else None


def _bound(schema: JsonObject, name: str) -> int:
    return int(max(_real(schema, name) or 0, 0))


def _size(value: object) -> int:
    return len(dumps(value))
