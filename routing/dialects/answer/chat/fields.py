"""OpenAI Chat Completions: what hosts write into their answers each in a way of its own."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import count_of, object_of, text_of
from ...translation.neutral import Media, Tokens
from ..counts import as_tokens

_GROWING = ("text", "summary", "signature", "data")
_CACHED = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
"""Where hosts count what they read from a cache, if not in the details."""
_WRITTEN = "cache_creation_input_tokens"
"""Anthropic's name, which others use beside OpenAI's."""


def picture(url: str) -> Media:
    """A picture by its address, or by its bytes where the address holds them."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Media("image", head[5:-7].partition(";")[0] or "image/png", data)
    return Media("image", url=url)


def add_detail(known: list[JsonObject], entry: JsonObject) -> None:
    last = known[-1] if known else {}
    grows = "index" in entry and all(last.get(name) == entry.get(name) for name in ("type", "index")) and "data" not in last
    if not grows:
        known.append(entry)
        return
    told = {name: value for name, value in entry.items() if value is not None}
    grown = {name: text_of(last.get(name)) + text_of(told[name]) for name in _GROWING if name in told}
    known[-1] = {**last, **told, **grown}


def tokens_of(counts: JsonObject) -> Tokens | None:
    """None where nothing is counted."""
    if "prompt_tokens" not in counts and "completion_tokens" not in counts:
        return None
    prompt, completion = object_of(counts.get("prompt_tokens_details")), object_of(counts.get("completion_tokens_details"))
    input, output = count_of(counts.get("prompt_tokens")), count_of(counts.get("completion_tokens"))
    reasoning = count_of(completion.get("reasoning_tokens")) or count_of(counts.get("reasoning_tokens"))
    if reasoning and count_of(counts.get("total_tokens")) == input + output + reasoning:
        output += reasoning  # xAI counts it beside the rest
    told = (prompt.get("cached_tokens"), *map(counts.get, _CACHED))
    cached = next(filter(None, map(count_of, filter(None, told))), 0)
    stored = (prompt.get("cache_write_tokens"), prompt.get(_WRITTEN), counts.get(_WRITTEN))
    written = next(filter(None, map(count_of, filter(None, stored))), 0)
    return as_tokens(input, output, cached=cached, written=written, reasoning=reasoning)
