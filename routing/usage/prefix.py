"""A call as its provider's cache sees it: blocks in the order in which they are read, and where two calls part.

A cache holds the beginning of a call up to the first byte that differs, so what comes first decides: tools, then instructions,
then the conversation; and a few settings that change how all of it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeAlias

import orjson

from ..dialects.calls.replacing import LIST_KEYS
from ..jsonbytes import dumps
from ..values import Dialect, JsonObject

Kind: TypeAlias = Literal["setting", "tool", "instructions", "message"]
How: TypeAlias = Literal["changed", "inserted", "removed"]

_SETTINGS = ("model", "tool_choice", "toolConfig", "thinking", "reasoning", "reasoning_effort", "output_config", "output_format")
_INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
_FIRST: dict[Dialect, tuple[Literal["tools", "instructions"], ...]] = {
    Dialect.MESSAGES: ("tools", "instructions"),
    Dialect.CHAT: ("tools", "instructions"),
    Dialect.RESPONSES: ("instructions", "tools"),
    Dialect.GEMINI: ("instructions", "tools"),
}
_MARK = "cache_control"


@dataclass(frozen=True, slots=True)
class Block:
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


@dataclass(frozen=True, slots=True)
class Break:
    """Where the later of two calls no longer goes on from the earlier."""

    how: How
    block: Block
    """Of the earlier call where something changed or went, of the later where something came in."""
    kept: int
    """So many bytes before it are the same."""
    lost: int
    """So many bytes of the earlier call stand behind it."""
    of_kind: bool = True
    """Something of its kind stands before it and is the same: a conversation goes on up to here."""


def blocks_of(body: bytes, dialect: Dialect) -> list[Block]:
    """None of a body that cannot be read."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    if isinstance(told, dict) and isinstance(inner := told.get("request"), dict) and dialect is Dialect.GEMINI:
        told = {**inner, "model": told.get("model")}
    return list(_blocks(told, dialect)) if isinstance(told, dict) else []


def parting(before: list[Block], after: list[Block]) -> Break | None:
    """Where they part; None where the later one holds all of the earlier."""
    for at, (old, new) in enumerate(zip(before, after, strict=False)):
        if _same(old, new):
            continue
        of_kind = at > 0 and before[at - 1].kind == old.kind
        kept, lost = sum(block.size for block in before[:at]), sum(block.size for block in before[at:])
        rest_before, rest_after = before[at + 1 :], after[at + 1 :]
        if rest_before and _same(rest_before[0], new):
            return Break("removed", old, kept, lost, of_kind)
        if rest_after and _same(old, rest_after[0]):
            return Break("inserted", new, kept, lost, of_kind)
        if old.kind != new.kind:  # one list ended earlier than the other
            came = any(_same(old, later) for later in rest_after)
            return Break("inserted", new, kept, lost, of_kind) if came else Break("removed", old, kept, lost, of_kind)
        return Break("changed", old, kept, lost, of_kind)
    if len(after) < len(before):
        rest = before[len(after) :]
        return Break("removed", rest[0], sum(block.size for block in after), sum(block.size for block in rest))
    return None


def _same(one: Block, other: Block) -> bool:
    return (one.kind, one.digest) == (other.kind, other.digest)


def _blocks(told: JsonObject, dialect: Dialect) -> Iterator[Block]:
    for name in _SETTINGS:
        if (value := told.get(name)) is not None:
            yield _block("setting", name, "", name, value)
    for part in _FIRST[dialect]:
        yield from _tools(told) if part == "tools" else _instructions(told)
    items = told.get(LIST_KEYS[dialect])
    for number, item in enumerate(items if isinstance(items, list) else [items] if isinstance(items, str) else []):
        yield from _message(number, item)


def _tools(told: JsonObject) -> Iterator[Block]:
    tools = told.get("tools")
    for number, tool in enumerate(tools if isinstance(tools, list) else []):
        yield _block("tool", f"tool {_name(tool) or number + 1}", "", "tool", tool)


def _name(tool: object) -> str:
    if not isinstance(tool, dict):
        return ""
    inside = tool.get("function")
    name = tool.get("name") or (inside.get("name") if isinstance(inside, dict) else None) or tool.get("type")
    return name if isinstance(name, str) else ""


def _instructions(told: JsonObject) -> Iterator[Block]:
    for name in _INSTRUCTIONS:
        value = told.get(name)
        if isinstance(value, dict) and isinstance(value.get("parts"), list):
            value = value["parts"]
        if isinstance(value, list):
            for number, part in enumerate(value):
                yield _block("instructions", f"instructions, part {number + 1}", "system", "text", part)
        elif value is not None:
            yield _block("instructions", "instructions", "system", "text", value)


def _message(number: int, item: object) -> Iterator[Block]:
    place = f"message {number + 1}"
    if not isinstance(item, dict):
        yield _block("message", place, "", "text", item, number)
        return
    role = str(item.get("role") or item.get("type") or "")
    for key in ("content", "parts"):
        inside = item.get(key)
        if not isinstance(inside, list) or not inside:
            continue
        rest = {name: value for name, value in item.items() if name not in (key, _MARK)}
        for at, part in enumerate(inside):
            where = place if len(inside) == 1 else f"{place}, part {at + 1}"
            yield _block("message", where, role, _about(part), [rest, part] if at == 0 else part, number)
        return
    yield _block("message", place, role, str(item.get("type") or "text"), item, number)


def _about(part: object) -> str:
    if not isinstance(part, dict):
        return "text"
    kind = part.get("type")
    return kind if isinstance(kind, str) else next((key for key in part if key != "thoughtSignature"), "text")


def _block(kind: Kind, place: str, role: str, about: str, value: object, message: int = -1) -> Block:
    text = dumps(_unmarked(value))
    return Block(kind, place, role, about, blake2b(text, digest_size=12).digest(), len(text), message)


def _unmarked(value: object) -> object:
    """Marks say how far to cache, and move with every call."""
    if isinstance(value, list):
        return [_unmarked(one) for one in value]
    return {name: one for name, one in value.items() if name != _MARK} if isinstance(value, dict) else value
