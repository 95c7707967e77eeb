"""Signatures as Chat hosts, gateways and clients spell them, nearly all Gemini's: on a call, on its function, on a whole message
or delta."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..values import JsonObject
from .fields import object_of

_WORDS = ("thought_signature", "thoughtSignature", "thought_signatures", "reasoning_opaque")
FIELDS = ("extra_content", "provider_specific_fields", *_WORDS)
"""Fields that hold one. `extra_content` is Google's own place for it, and for nothing that another host knows."""
_ALL = frozenset(FIELDS)
_DEEPEST = 4


def words_in(holder: JsonObject) -> list[str]:
    """The signatures that stand beside what this object says."""
    return [word for name in FIELDS for word in _found(name, holder.get(name), _DEEPEST)]


def _found(name: str, value: object, deepest: int) -> Iterator[str]:
    if isinstance(value, str):
        if value and name in _WORDS:
            yield value
    elif isinstance(value, list) and name in _WORDS:
        yield from (word for word in value if isinstance(word, str) and word)
    elif isinstance(value, dict) and deepest:
        for inner, part in value.items():
            yield from _found(inner, part, deepest - 1)


def signed_fields(holder: JsonObject) -> JsonObject:
    """The fields to give back as they came; none where they hold no signature."""
    if _ALL.isdisjoint(holder):  # nearly every piece of an answer
        return {}
    return {name: holder[name] for name in FIELDS if holder.get(name) and words_in({name: holder[name]})}


def without_foreign(holder: JsonObject, own: Collection[str]) -> JsonObject:
    """Without signatures that the target did not make, and without what only their maker knows beside them."""
    kept = {name: value for name, value in holder.items() if name not in FIELDS or _may_stay(name, value, own)}
    return kept if len(kept) < len(holder) else holder


def _may_stay(name: str, value: object, own: Collection[str]) -> bool:
    words = words_in({name: value})
    return all(word in own for word in words) if words else name == "provider_specific_fields"


def call_words(call: JsonObject) -> list[str]:
    """Of a tool call, wherever it stands."""
    return words_in(call) or words_in(object_of(call.get("function")))
