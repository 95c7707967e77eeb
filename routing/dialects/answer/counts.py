"""OpenAI's token counts: what they come to, and those of several rounds as one answer's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ...values import JsonObject
from ..fields import count_of, object_of
from ..translation.neutral import Tokens


def as_tokens(input: int, output: int, *, cached: int, written: int, reasoning: int) -> Tokens:
    """No part is more than its whole. OpenRouter tells Google's reads from a cache as writes once more: those are none."""
    cached = min(input, cached)
    written = 0 if written == cached else min(input - cached, written)
    return Tokens(input=input, output=output, cached=cached, written=written, reasoning=min(output, reasoning))


def summed_counts(rounds: Sequence[JsonObject], input: str, output: str) -> JsonObject:
    """The last round's counts, with the output of all. `input` and `output` are the dialect's names (`prompt_tokens`, …)."""
    told = [counts for counts in rounds if counts]
    if len(told) < 2:
        return told[0] if told else {}
    last = told[-1]
    sums: JsonObject = {output: sum(count_of(counts.get(output)) for counts in told)}
    details = [object_of(counts.get(f"{output}_details")) for counts in told]
    if any(details):
        names = dict.fromkeys(chain.from_iterable(details))
        sums[f"{output}_details"] = {name: sum(count_of(counts.get(name)) for counts in details) for name in names}
    if "total_tokens" in last:
        sums["total_tokens"] = count_of(last.get(input)) + count_of(sums[output])
    return {**last, **sums}
