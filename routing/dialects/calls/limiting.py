"""A call asks for no more tokens than its target's model can write: clients know the models of one provider only."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ...values import Call, Dialect, JsonObject
from ..fields import object_of
from ..translation.neutral import Feature, LeftOut
from .editing import inner_body

_FIELDS: Mapping[Dialect, tuple[str, ...]] = {
    Dialect.MESSAGES: ("max_tokens",),
    Dialect.CHAT: ("max_tokens", "max_completion_tokens"),
    Dialect.RESPONSES: ("max_output_tokens",),
    Dialect.GEMINI: ("maxOutputTokens", "max_output_tokens"),
}
_CONFIGS = ("generationConfig", "generation_config")
"""Where Gemini's stands."""
_WRAPS = ("request", "generateContentRequest")
_LEAST_THINKING = 1024


def limited(call: Call, most: int, left: LeftOut) -> Call:
    """The call with its limits lowered to `most`; the same call where they are no higher."""
    dialect, inner = call.endpoint.dialect, inner_body(call)
    if dialect is not Dialect.GEMINI:
        lowered = _lowered(inner, dialect, most, left)
        return call if lowered is inner else replace(call, body=_thinking_less(lowered, most, left), changed=True)
    changed = {
        name: new for name in _CONFIGS if (new := _lowered(old := object_of(inner.get(name)), dialect, most, left)) is not old
    }
    if not changed:
        return call
    inner_now = {**inner, **changed}
    wrap = next((name for name in _WRAPS if call.body.get(name) is inner), None)
    return replace(call, body=inner_now if wrap is None else {**call.body, wrap: inner_now}, changed=True)


def _lowered(fields: JsonObject, dialect: Dialect, most: int, left: LeftOut) -> JsonObject:
    high = {name: value for name in _FIELDS[dialect] if _is_higher(value := fields.get(name), most)}
    for value in high.values():
        left.add(Feature.OTHER, f"a limit of {value} tokens: {most} is the model's")
    return {**fields, **dict.fromkeys(high, most)} if high else fields


def _thinking_less(body: JsonObject, most: int, left: LeftOut) -> JsonObject:
    """Messages: thinking is part of what is written, and must leave room for an answer."""
    thinking = object_of(body.get("thinking"))
    if not _is_higher(thinking.get("budget_tokens"), most - 1):
        return body
    left.add(Feature.BUDGET)
    if most * 3 // 4 < _LEAST_THINKING:
        return {name: value for name, value in body.items() if name != "thinking"}
    return {**body, "thinking": {**thinking, "budget_tokens": most * 3 // 4}}


def _is_higher(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > most
