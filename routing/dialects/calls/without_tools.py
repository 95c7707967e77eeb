"""Messages without the calls of some tools and without their results, in each dialect's own form.

1. Nothing that is given is written to; a message that loses nothing stays the same object.
2. A message that would be left with nothing, or with nothing but thinking, is left out altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ...values import Dialect, JsonObject
from ..fields import list_of, object_of, text_of

Ids = set[str]
_THINKING = ("thinking", "redacted_thinking")


def without_tools(dialect: Dialect, items: Sequence[JsonObject], names: Collection[str]) -> tuple[JsonObject, ...]:
    """`names`: the tools that are left out."""
    if not names:
        return tuple(items)
    return tuple(_DIALECTS[dialect](items, names))


def _messages(items: Sequence[JsonObject], names: Collection[str]) -> list[JsonObject]:
    ids: Ids = set()

    def leaves(block: JsonObject) -> bool:
        if block.get("type") == "tool_use" and text_of(block.get("name")) in names:
            ids.add(text_of(block.get("id")))
            return True
        return block.get("type") == "tool_result" and text_of(block.get("tool_use_id")) in ids

    return _filtered(items, "content", leaves, lambda block: block.get("type") in _THINKING)


def _gemini(items: Sequence[JsonObject], names: Collection[str]) -> list[JsonObject]:
    def leaves(part: JsonObject) -> bool:
        return any(text_of(object_of(part.get(key)).get("name")) in names for key in ("functionCall", "functionResponse"))

    return _filtered(items, "parts", leaves, lambda part: part.get("thought") is True)


def _filtered(
    items: Sequence[JsonObject], key: str, leaves: Callable[[JsonObject], bool], is_thinking: Callable[[JsonObject], bool]
) -> list[JsonObject]:
    found: list[JsonObject] = []
    for item in items:
        parts = list_of(item.get(key))
        kept = [part for part in parts if not leaves(object_of(part))]
        if len(kept) == len(parts):
            found.append(item)
        elif not all(is_thinking(object_of(part)) for part in kept):
            found.append({**item, key: kept})
    return found


def _chat(items: Sequence[JsonObject], names: Collection[str]) -> list[JsonObject]:
    ids: Ids = set()
    found: list[JsonObject] = []
    for item in items:
        calls = list_of(item.get("tool_calls"))
        gone = [call for call in calls if _function_name(call) in names]
        ids.update(text_of(object_of(call).get("id")) for call in gone)
        if item.get("role") == "tool" and text_of(item.get("tool_call_id")) in ids:
            continue
        if gone:
            kept = [call for call in calls if call not in gone]
            item = {name: value for name, value in item.items() if name != "tool_calls"}
            if kept:
                item["tool_calls"] = kept
            elif not item.get("content"):
                continue
        found.append(item)
    return found


def _function_name(call: object) -> str:
    return text_of(object_of(object_of(call).get("function")).get("name"))


def _responses(items: Sequence[JsonObject], names: Collection[str]) -> list[JsonObject]:
    """Reasoning belongs to the item behind it: it stays only where one stays that follows from it."""
    ids: Ids = set()
    found: list[JsonObject] = []
    waiting: list[JsonObject] = []
    """Reasoning whose item has not come yet."""
    for item in items:
        kind = item.get("type")
        if kind == "function_call" and text_of(item.get("name")) in names:
            ids.add(text_of(item.get("call_id")))
        elif kind == "function_call_output" and text_of(item.get("call_id")) in ids:
            waiting.clear()
        elif kind == "reasoning":
            waiting.append(item)
        else:
            found += [*waiting, item]
            waiting.clear()
    return found + waiting if not ids else found


_DIALECTS: Mapping[Dialect, Callable[[Sequence[JsonObject], Collection[str]], list[JsonObject]]] = {
    Dialect.MESSAGES: _messages,
    Dialect.CHAT: _chat,
    Dialect.RESPONSES: _responses,
    Dialect.GEMINI: _gemini,
}
