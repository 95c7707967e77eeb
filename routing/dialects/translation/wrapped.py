"""Seals of other dialects that a client kept for us: they go back to their maker alone, translated, and to nobody else."""

from __future__ import annotations

from msgspec.structs import replace

from ...jsonbytes import dumps
from ...values import Call
from ..fields import text_of
from .opaque import MARK
from .writing.gemini_parts import NO_SIGNATURE

MARKED = MARK.encode()
"""What bytes that hold one hold."""
_SEALED = frozenset(
    (
        "thinking",
        "redacted_thinking",
        "reasoning",
        "compaction",
        "reasoning.encrypted",
        "reasoning.text",
        "web_search_result_location",
    )
)
"""Blocks and items that are nothing without their seal."""
_FIELDS = ("signature", "data", "encrypted_content", "encrypted_index", "thoughtSignature", "thought_signature")
_BESIDE = ("thoughtSignature", "thought_signature", "extra_content")
"""Fields that stand beside something that is good without them."""

_GOOGLES_CALL = frozenset(("functionCall", "function_call"))
"""In a part of Google's, which takes no call without some signature."""


def unsealed(call: Call) -> Call:
    """The call without them."""
    body = _cleaned(call.body)
    assert isinstance(body, dict)
    return replace(call, body=body, changed=True)


def _cleaned(value: object) -> object:
    if isinstance(value, list):
        return [_cleaned(item) for item in value if not _is_sealed(item) and not _is_nothing_else(item)]
    if isinstance(value, dict):
        kept = {name: _cleaned(child) for name, child in value.items() if name not in _BESIDE or MARKED not in dumps(child)}
        if value.get("citations") and not kept.get("citations"):
            kept.pop("citations", None)
        return {**kept, "thoughtSignature": NO_SIGNATURE} if len(kept) < len(value) and kept.keys() & _GOOGLES_CALL else kept
    return value


def _is_sealed(item: object) -> bool:
    if isinstance(item, dict) and any(MARK in text_of(item.get(name)) for name in ("id", "tool_use_id")):
        return True  # what a tool of another provider's did
    if not isinstance(item, dict) or not (item.get("type") in _SEALED or item.get("thought") is True):
        return False
    return any(text_of(item.get(name)).startswith(MARK) for name in _FIELDS)


def _is_nothing_else(item: object) -> bool:
    """A message of nothing but such blocks: what is empty is refused."""
    if not isinstance(item, dict):
        return False
    parts = item.get("content", item.get("parts"))
    return isinstance(parts, list) and bool(parts) and all(_is_sealed(part) for part in parts)
