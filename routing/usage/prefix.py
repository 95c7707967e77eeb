"""A call as its provider's cache sees it: blocks in the order in which they are read, and where two calls part.

A cache holds the beginning of a call up to the first byte that differs, so what comes first decides: tools, then instructions,
then the conversation; and a few settings that change how all of it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ..dialects.calls.replacing import LIST_KEYS
from ..jsonbytes import dumps
from ..values import Dialect, JsonObject

Kind: TypeAlias = Literal["setting", "tool", "instructions", "message"]
How: TypeAlias = Literal["changed", "inserted", "removed", "moved"]

_SETTINGS = ("model", "tool_choice", "toolConfig", "thinking", "reasoning", "reasoning_effort", "output_config", "output_format")
_INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
_FIRST: dict[Dialect, tuple[Literal["tools", "instructions"], ...]] = {
    Dialect.MESSAGES: ("tools", "instructions"),
    Dialect.CHAT: ("tools", "instructions"),
    Dialect.RESPONSES: ("instructions", "tools"),
    Dialect.GEMINI: ("instructions", "tools"),
}
_MARK = "cache_control"
_ALSO = ("speed", "context_management", "mcp_servers", "response_format", "text", "prompt_cache_key", "cachedContent")
_ALSO_OF_GEMINI = ("thinkingConfig", "responseSchema", "responseMimeType")
_ONLY_ROLE = frozenset({"role", "type", _MARK})


class Block(Struct, frozen=True):
    kind: Kind
    place: str
    """As a person would look for it: `tool Read`, `message 3, part 2`."""
    role: str
    about: str
    """What it is: `text`, `tool_result`, …"""
    digest: bytes
    size: int
    message: int = -1
    """The number of its message, from 0."""
    mark: str = ""
    """How long what stands up to here is to be cached, where its tool said so."""

    @property
    def key(self) -> tuple[str, str, bytes]:
        return self.kind, self.role, self.digest


class _Part(NamedTuple):
    """A block before it is looked at."""

    kind: Kind
    place: str
    role: str
    about: str
    value: object
    message: int = -1


class Break(Struct, frozen=True):
    """Where the later of two calls no longer goes on from the earlier."""

    how: How
    block: Block
    """Of the earlier call where something changed or went, of the later where something came in."""
    kept: int
    """So many bytes before it are the same."""
    lost: int
    """So many bytes of the earlier call stand behind it."""
    at: int = 0
    """Which block that is, of both."""
    of_kind: bool = True
    """Something of its kind stands before it and is the same: a conversation goes on up to here."""


def blocks_of(body: bytes, dialect: Dialect) -> list[Block]:
    """None of a body that cannot be read."""
    told = _read(body, dialect)
    blocks = list(map(_block, _parts(told, dialect)))
    if blocks and (mark := _mark(told)):
        blocks[-1] = replace(blocks[-1], mark=mark)
    return blocks


def _read(body: bytes, dialect: Dialect) -> JsonObject:
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(told, dict) and isinstance(inner := told.get("request"), dict) and dialect is Dialect.GEMINI:
        told = {**inner, "model": told.get("model")}
    return told if isinstance(told, dict) else {}


def parting(before: list[Block], after: list[Block]) -> Break | None:
    """Where they part; None where the later one holds all of the earlier."""
    at = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old.key != new.key), None)
    if at is None:
        if len(after) >= len(before):
            return None
        at = len(after)
        return Break("removed", before[at], *_sizes(before, at), at)
    old, new = before[at], after[at]
    of_kind = at > 0 and before[at - 1].kind == old.kind
    comes = old.key in {block.key for block in after[at:]}
    was = new.key in {block.key for block in before[at:]}
    how: How
    if comes and was:  # messages may say the same twice
        how = "moved" if old.kind == "tool" else "changed"
    elif comes:
        how = "inserted"
    else:  # where the kinds differ, one list ended earlier than the other
        how = "removed" if was or old.kind != new.kind else "changed"
    return Break(how, new if how == "inserted" else old, *_sizes(before, at), at, of_kind)


def _sizes(before: list[Block], at: int) -> tuple[int, int]:
    return sum(block.size for block in before[:at]), sum(block.size for block in before[at:])


def text_at(body: bytes, dialect: Dialect, at: int) -> str:
    """What that block says: its text where it has one, else as JSON."""
    part = next(islice(_parts(_read(body, dialect), dialect), at, None), None)
    value = part.value if part is not None else ""
    while isinstance(value, dict | list):
        inside = value.get("text") or value.get("content") if isinstance(value, dict) else value[-1] if value else None
        if not isinstance(inside, str | dict | list):
            break
        value = inside
    return value if isinstance(value, str) else dumps(_unmarked(value)).decode("utf-8", "replace")


def settings_of(body: bytes, dialect: Dialect) -> dict[str, bytes]:
    """What else of a call decides where a provider looks for it, whatever the conversation says."""
    told = _read(body, dialect)
    found = {name: told[name] for name in _ALSO if told.get(name) is not None}
    if isinstance(inner := told.get("generationConfig"), dict):
        found |= {name: inner[name] for name in _ALSO_OF_GEMINI if inner.get(name) is not None}
    return {name: dumps(value) for name, value in found.items()}


def _parts(told: JsonObject, dialect: Dialect) -> Iterator[_Part]:
    for name in _SETTINGS:
        if (value := told.get(name)) is not None:
            yield _Part("setting", name, "", name, value)
    for part in _FIRST[dialect]:
        yield from _tools(told) if part == "tools" else _instructions(told)
    items = told.get(LIST_KEYS[dialect])
    for number, item in enumerate(items if isinstance(items, list) else [items] if isinstance(items, str) else []):
        yield from _message(number, item)


def _tools(told: JsonObject) -> Iterator[_Part]:
    tools = told.get("tools")
    for number, tool in enumerate(tools if isinstance(tools, list) else []):
        yield _Part("tool", f"tool {_name(tool) or number + 1}", "", "tool", tool)


def _name(tool: object) -> str:
    if not isinstance(tool, dict):
        return ""
    inside = tool.get("function")
    name = tool.get("name") or (inside.get("name") if isinstance(inside, dict) else None) or tool.get("type")
    return name if isinstance(name, str) else ""


def _instructions(told: JsonObject) -> Iterator[_Part]:
    for name in _INSTRUCTIONS:
        value = told.get(name)
        if isinstance(value, dict) and isinstance(value.get("parts"), list):
            value = value["parts"]
        if isinstance(value, list):
            for number, part in enumerate(value):
                yield _Part("instructions", f"instructions, part {number + 1}", "system", "text", part)
        elif value is not None:
            yield _Part("instructions", "instructions", "system", "text", _as_part(value))


def _message(number: int, item: object) -> Iterator[_Part]:
    place = f"message {number + 1}"
    if not isinstance(item, dict):
        yield _Part("message", place, "", "text", item, number)
        return
    role = str(item.get("role") or item.get("type") or "")
    for key in ("content", "parts"):
        inside = item.get(key)
        inside = [_as_part(inside)] if isinstance(inside, str) else inside
        if not isinstance(inside, list) or not inside:
            continue
        rest = {name: value for name, value in item.items() if name not in (key, _MARK)}
        bare = set(rest) <= _ONLY_ROLE
        for at, part in enumerate(inside):
            where = place if len(inside) == 1 else f"{place}, part {at + 1}"
            yield _Part("message", where, role, _about(part), part if at or bare else [rest, part], number)
        return
    yield _Part("message", place, role, str(item.get("type") or "text"), item, number)


def _as_part(value: object) -> object:
    """A text by itself and one in a part are the same to a provider; tools write now this, now that."""
    return {"type": "text", "text": value} if isinstance(value, str) else value


def _about(part: object) -> str:
    if not isinstance(part, dict):
        return "text"
    kind = part.get("type")
    return kind if isinstance(kind, str) else next((key for key in part if key != "thoughtSignature"), "text")


def _block(part: _Part) -> Block:
    text = dumps(_unmarked(part.value))
    digest = blake2b(text, digest_size=12).digest()
    return Block(part.kind, part.place, part.role, part.about, digest, len(text), part.message, _mark(part.value))


def _mark(value: object) -> str:
    """How long it is to be cached up to here; empty where nothing is said of it."""
    held = value[-1] if isinstance(value, list) and value else value
    mark = held.get(_MARK) if isinstance(held, dict) else None
    return str(mark.get("ttl") or "5m") if isinstance(mark, dict) else ""


def _unmarked(value: object) -> object:
    """Marks say how far to cache, and move with every call."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    return {name: one for name, one in value.items() if name != _MARK} if isinstance(value, dict) else value
