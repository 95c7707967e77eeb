"""OpenAI Responses: one output item of a provider's answer as it is heard, and the tokens that it counts."""

from __future__ import annotations

from ....jsonbytes import dumps
from ....values import JsonObject
from ...fields import count_of, list_of, object_of, text_of
from ..neutral import Tokens
from .blocks import Block

WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of calls, and where what the model wrote for the tool stands in each."""
_MOST_PIECES = 4096
"""Pieces are kept as one text beyond this."""


class Item:
    """One output item as it is heard."""

    __slots__ = ("block", "done", "kind", "part", "parts")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.block: Block | None = _block_for(kind)
        """None for items that say nothing to the client."""
        self.parts: dict[int, list[str]] = {}
        """What was heard of each part of a message; a call is one part, 0."""
        self.part: object = None
        """The part of its reasoning that was heard last."""
        self.done = False

    def add(self, text: str, part: int = 0) -> None:
        if text and self.block is not None:
            heard = self.parts.setdefault(part, [])
            heard.append(text)
            if len(heard) > _MOST_PIECES:
                heard[:] = ["".join(heard)]
            self.block.pieces.append(text)

    def add_rest(self, whole: str, part: int = 0) -> None:
        """The whole, once more: what of it has not been heard. (Where it differs from what was heard, the first holds.)"""
        heard = "".join(self.parts.get(part, ()))
        if whole.startswith(heard):
            self.add(whole[len(heard) :], part)


def _block_for(kind: str) -> Block | None:
    if kind in WRITTEN:
        call = Block("call")
        call.custom = kind == "custom_tool_call"
        return call
    return Block("text") if kind == "message" else Block("thought") if kind == "reasoning" else None


def joined(parts: object) -> str:
    return "\n\n".join(text for part in list_of(parts) if (text := text_of(object_of(part).get("text"))))


def written_text(arguments: object) -> str:
    """Arguments as text; some hosts give the object itself."""
    return arguments if isinstance(arguments, str) else dumps(arguments).decode() if arguments else ""


def tokens_of(counts: JsonObject) -> Tokens | None:
    """None where nothing is counted."""
    if "input_tokens" not in counts and "output_tokens" not in counts:
        return None
    put_in, put_out = object_of(counts.get("input_tokens_details")), object_of(counts.get("output_tokens_details"))
    input, output = count_of(counts.get("input_tokens")), count_of(counts.get("output_tokens"))
    cached, written = min(input, count_of(put_in.get("cached_tokens"))), count_of(put_in.get("cache_write_tokens"))
    return Tokens(
        input=input,
        output=output,
        cached=cached,
        written=0 if written == cached else min(input - cached, written),
        reasoning=min(output, count_of(put_out.get("reasoning_tokens"))),
    )
