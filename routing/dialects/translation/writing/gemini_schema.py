"""JSON Schema cut down to what every host of Google's models takes: the schema of OpenAPI that `parameters` is.

1. References are written out where they stand; one that leads back to itself ends as an object without fields.
2. `anyOf` stands alone on its node: Vertex refuses anything beside it.
3. What cannot be said goes into the description where it is short, and is named in `left_out` with the tool's name.
4. Names of properties are the caller's own and are never taken for keywords.

The newer `parametersJsonSchema` takes more of JSON Schema, but not all hosts know it.
"""

from __future__ import annotations

import math
from urllib.parse import unquote

from msgspec import Struct, field

from ....jsonbytes import dumps
from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ..neutral import Feature, LeftOut
from .gemini_words import (
    LIMITS_OF,
    alone,
    cut,
    is_limit,
    joined,
    number_of,
    types_of,
    without_const,
)

_LIMITS = frozenset(limit for limits in LIMITS_OF.values() for limit in limits)
_FORMATS = {"STRING": ("date-time",), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
_SAID = ("default", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "examples", "propertyNames")
"""What goes into the description instead."""
_USED = frozenset(
    (
        *("type", "title", "description", "nullable", "enum", "const", "properties", "required", "items", "prefixItems"),
        *("anyOf", "oneOf", "allOf", "$ref", "additionalProperties", *_SAID, *_LIMITS),
    )
)
_MEANINGLESS = frozenset(
    (
        "$schema",
        "$id",
        "id",
        "$comment",
        "$defs",
        "definitions",
        "$anchor",
        "readOnly",
        "writeOnly",
        "deprecated",
        "additionalItems",
    )
)
"""Says nothing that a model would need."""
_DETAILS = frozenset(("properties", "items", "prefixItems", "enum"))
_MOST_NODES, _DEEPEST = 3000, 24
_LONGEST_SAID = 160


def clean(schema: JsonObject | None, left_out: LeftOut, name: str) -> JsonObject | None:
    """An object's schema; None where it has no properties: an object without any is refused, a missing one is not."""
    walk = _Walk(schema or {})
    root, refs, _ = walk.resolved(dict(schema or {}), ())
    root = {**walk.folded(root, _unions_in(root), refs), "type": "object"}
    cleaned = walk.node(root, refs) or {}
    _name_losses(walk, left_out, name)
    return cleaned if cleaned.get("properties") else None


def clean_any(schema: JsonObject, left_out: LeftOut, name: str) -> JsonObject:
    """A schema of anything (structured output)."""
    walk = _Walk(schema)
    cleaned = walk.node(schema)
    _name_losses(walk, left_out, name)
    return cleaned if cleaned is not None else {"type": "OBJECT"}


def _name_losses(walk: _Walk, left_out: LeftOut, name: str) -> None:
    if walk.lost:
        left_out.add(Feature.SCHEMA, f"{name}: {', '.join(walk.lost)}")


class _Walk(Struct):
    """One schema on its way: where its references point, and what was lost."""

    root: JsonObject
    lost: dict[str, None] = field(default_factory=dict)
    _nodes: int = 0

    def node(self, schema: object, refs: tuple[str, ...] = (), depth: int = 0) -> JsonObject | None:
        """None for the schema that nothing fits (`false`)."""
        if schema is False:
            return None
        self._nodes += 1
        if depth > _DEEPEST or self._nodes > _MOST_NODES:
            self.lose("depth")
            return {"type": "OBJECT"}
        given, refs, circle = self.resolved(object_of(schema), refs)
        if circle:
            return cut(given)
        given = without_const(given)
        self.lost.update(dict.fromkeys(key for key in given if key not in _USED | _MEANINGLESS))
        types, nullable = types_of(given)
        if unions := _unions_in(given):
            if not types or self._only_typed(given, unions):
                return self._union(given, unions, refs, depth, nullable=nullable)
            given = self.folded(given, unions, refs)
        if not types:
            return self._anything(given)
        if len(types) > 1:
            return alone([self._typed(kind, given, refs, depth, nullable=nullable) for kind in types])
        return self._typed(types[0], given, refs, depth, nullable=nullable)

    def lose(self, word: str) -> None:
        self.lost[word] = None

    # References and combinations

    def resolved(self, schema: JsonObject, refs: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...], bool]:
        """The schema with what it refers to and all of `allOf`; true where it is a part of itself."""
        while isinstance(ref := schema.get("$ref"), str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._pointed(ref)
            if ref in refs:
                self.lose("$ref to itself")
                return {**(target or {}), **rest}, refs, True
            if target is None:
                self.lose("$ref")
            schema, refs = {**(target or {}), **rest}, (*refs, ref)
        if not isinstance(schema.get("allOf"), list):
            return schema, refs, False
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for part in list_of(schema["allOf"]):
            if len(refs) > _DEEPEST:
                self.lose("depth")
                break
            one, refs, circle = self.resolved(object_of(part), refs)
            if not circle:
                merged = self._both(merged, one)
        return merged, refs, False

    def _pointed(self, ref: str) -> JsonObject | None:
        if not ref.startswith("#"):
            return None
        found: object = self.root
        for step in unquote(ref[1:]).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isascii() and step.isdigit() and len(step) < 6:
                found = found[int(step)] if int(step) < len(found) else None
            else:
                found = object_of(found).get(step)
        return found if isinstance(found, dict) else None

    def _both(self, one: JsonObject, other: JsonObject) -> JsonObject:
        """What both demand, as far as one schema can say it: fields of both, the first one's word where they differ."""
        if any(one[key] != other[key] for key in one.keys() & other.keys() - {"properties", "required", "description", "title"}):
            self.lose("allOf")
        merged = {**other, **one}
        if "properties" in one and "properties" in other:
            merged["properties"] = {**object_of(one["properties"]), **object_of(other["properties"])}
        if "required" in one and "required" in other:
            merged["required"] = [*list_of(one["required"]), *list_of(other["required"])]
        return merged

    def folded(self, schema: JsonObject, unions: list[str], refs: tuple[str, ...]) -> JsonObject:
        """Alternatives beside other fields, as one object that may have the fields of all: nothing stands beside `anyOf`."""
        folded = {key: value for key, value in schema.items() if key not in unions}
        demands: list[set[str]] = []
        for key in unions:
            self.lose(key)
            for branch in list_of(schema[key]):
                found, _, circle = self.resolved(object_of(branch), refs)
                if circle or found.get("type") == "null":
                    continue
                demands.append({name for name in list_of(found.get("required")) if isinstance(name, str)})
                if properties := object_of(found.get("properties")):
                    own = object_of(folded.get("properties"))
                    folded["properties"] = {**own, **{name: one for name, one in properties.items() if name not in own}}
        always = set.intersection(*demands) if demands else set()
        if always:
            folded["required"] = [*list_of(folded.get("required")), *sorted(always)]
        return folded

    def _only_typed(self, schema: JsonObject, unions: list[str]) -> bool:
        """The alternatives say all but the type, and not just which fields are required."""
        branches = [object_of(branch) for key in unions for branch in list_of(schema[key])]
        return not schema.keys() & _DETAILS and all(branch.keys() - {"required", "not"} for branch in branches)

    def _union(
        self, schema: JsonObject, unions: list[str], refs: tuple[str, ...], depth: int, *, nullable: bool
    ) -> JsonObject | None:
        if "oneOf" in unions:
            self.lose("oneOf")
        typed = {"type": schema["type"]} if "type" in schema else {}
        branches = []
        for branch in (one for key in unions for one in list_of(schema[key]) if one is not False):
            if isinstance(branch, dict) and branch.get("type") == "null":
                nullable = True
            elif (cleaned := self.node({**typed, **object_of(branch)}, refs, depth + 1)) is not None:
                branches.append(cleaned)
        branches = joined(branches)
        outer = self._description(schema)
        if not branches:
            return self._anything(schema)
        for place, branch in enumerate(branches):
            own = text_of(branch.get("description"))
            told = "\n".join(filter(None, (outer, own))) if place == 0 else own or outer
            if told:
                branch["description"] = told
            if nullable:
                branch["nullable"] = True
        return alone(branches)

    # One node

    def _anything(self, schema: JsonObject) -> JsonObject:
        """Any value at all: Google wants a type, and a list would want its items' type."""
        self.lose("any type")
        told = self._description(schema)
        kinds: list[JsonObject] = [{"type": kind} for kind in ("STRING", "NUMBER", "BOOLEAN", "OBJECT")]
        return alone([{**one, "description": told} if told else one for one in kinds])

    def _typed(self, kind: str, schema: JsonObject, refs: tuple[str, ...], depth: int, *, nullable: bool) -> JsonObject:
        out: JsonObject = {"type": kind}
        enum = [value for value in list_of(schema.get("enum")) if value is not None]
        words = [value for value in enum if isinstance(value, str) and value]
        listed = kind == "STRING" and bool(words)
        unsaid = bool(enum) and (not listed or len(words) != len(enum))
        if unsaid:
            self.lose("enum")
        told = self._description(schema, kind, enum=enum if unsaid else [])
        if told:
            out["description"] = told
        if nullable:
            out["nullable"] = True
        if listed:
            out["enum"] = list(dict.fromkeys(words))
        if schema.get("format") in _FORMATS.get(kind, ()):
            out["format"] = schema["format"]
        out.update(self._limits(kind, schema))
        if kind == "OBJECT":
            out.update(self._fields(schema, refs, depth))
        elif kind == "ARRAY":
            out["items"] = self._items(schema, refs, depth)
        return out

    def _limits(self, kind: str, schema: JsonObject) -> JsonObject:
        limits = {key: schema[key] for key in sorted(LIMITS_OF[kind]) if is_limit(key, schema.get(key))}
        if kind == "INTEGER":
            if (above := number_of(schema.get("exclusiveMinimum"))) is not None:
                limits["minimum"] = max(math.floor(above) + 1, number_of(limits.get("minimum", -math.inf)) or 0)
            if (below := number_of(schema.get("exclusiveMaximum"))) is not None:
                limits["maximum"] = min(math.ceil(below) - 1, number_of(limits.get("maximum", math.inf)) or 0)
        return limits

    def _fields(self, schema: JsonObject, refs: tuple[str, ...], depth: int) -> JsonObject:
        free = schema.get("additionalProperties")
        if isinstance(free, dict) and free:
            self.lose("additionalProperties")
        properties = {}
        for name, given in object_of(schema.get("properties")).items():
            if (cleaned := self.node(given, refs, depth + 1)) is not None:
                properties[name] = cleaned
        if not properties:
            return {}  # an empty list of them is refused
        demanded = [name for name in list_of(schema.get("required")) if isinstance(name, str)]
        required = [name for name in dict.fromkeys(demanded) if name in properties]
        if len(required) < len(set(demanded)):
            self.lose("required")
        return {"properties": properties, **({"required": required} if required else {})}

    def _items(self, schema: JsonObject, refs: tuple[str, ...], depth: int) -> JsonObject:
        items = schema.get("items")
        places = list_of(schema.get("prefixItems")) or list_of(items)
        if not places:
            return self.node(items if isinstance(items, dict) else {}, refs, depth + 1) or {"type": "STRING"}
        self.lose("prefixItems")
        if isinstance(items, dict):
            places = [*places, items]
        found = [one for one in (self.node(place, refs, depth + 1) for place in places) if one is not None]
        return alone(joined(found)) if found else {"type": "STRING"}

    def _description(self, schema: JsonObject, kind: str = "", *, enum: list[object] | None = None) -> str:
        """Its own words, and what no keyword of Google's can say."""
        told = text_of(schema.get("description")) or text_of(schema.get("title"))
        notes = [f"one of: {', '.join(_as_json(value) for value in enum)}"] if enum else []
        for key in _SAID:
            value = schema.get(key)
            exact = kind == "INTEGER" and key.startswith("exclusive") and number_of(value) is not None
            if value is None or value is False or exact or (key == "format" and value in _FORMATS.get(kind, ())):
                continue
            self.lose(key)
            if len(written := _as_json(value)) <= _LONGEST_SAID:
                notes.append(f"{key}: {written}")
        if kind == "OBJECT" and isinstance(free := schema.get("additionalProperties"), dict) and free:
            about = text_of(free.get("description")) or text_of(free.get("type")) or "any"
            notes.append(f"more fields may be added, each of them: {about[:_LONGEST_SAID]}")
        note = f"({'; '.join(notes)[: 4 * _LONGEST_SAID]})" if notes else ""
        return " ".join(filter(None, (told, note)))


def _as_json(value: object) -> str:
    return dumps(value).decode()


def _unions_in(schema: JsonObject) -> list[str]:
    return [key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)]
