"""Thinking that travels on the tool call behind it: Gemini CLI gives no thoughts back, but every call with its signature.

Without it, a model that must see its own thinking again to go on (Claude with a budget, DeepSeek) could not think between calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..fields import list_of, object_of, text_of
from .neutral import Block, Seal, Thought, ToolUse

_THOUGHTS, _FIRST = "thoughts", "first"


def carry(thoughts: Sequence[Thought], *, first: bool) -> Seal | None:
    """The seal of a call that holds them; they are of one maker. `first`: the answer began with them."""
    sealed = [thought for thought in thoughts if thought.seal is not None]
    if not sealed or sealed[0].seal is None:
        return None
    written = [{"text": thought.text, "payload": thought.seal.payload} for thought in sealed if thought.seal is not None]
    return Seal(sealed[0].seal.dialect, sealed[0].seal.maker, {_THOUGHTS: written, _FIRST: first})


def unloaded(blocks: Sequence[Block]) -> list[Block]:
    """One answer with such thoughts back in their places, and none of them twice where the client has kept them as well."""
    found = {place: thoughts for place, block in enumerate(blocks) if (thoughts := _held(block))}
    if not found:
        return list(blocks)
    seals = [thought.seal for thoughts in found.values() for thought in thoughts]
    last, told = max(found), list[Block]()
    for place, block in enumerate(blocks):
        if place in found:
            assert isinstance(block, ToolUse)
            assert block.seal is not None
            at = 0 if block.seal.payload.get(_FIRST) is True else len(told)
            told[at:at] = found[place]
            told.append(replace(block, seal=None))
        elif not (isinstance(block, Thought) and place < last and (block.seal is None or block.seal in seals)):
            told.append(block)
    return told


def _held(block: Block) -> list[Thought]:
    seal = block.seal if isinstance(block, ToolUse) else None
    if seal is None:
        return []
    given = [object_of(one) for one in list_of(seal.payload.get(_THOUGHTS))]
    return [Thought(text_of(one.get("text")), Seal(seal.dialect, seal.maker, object_of(one.get("payload")))) for one in given]
