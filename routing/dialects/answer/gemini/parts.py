"""The parts of Gemini's answers: where they stand, and what several rounds' come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....values import JsonObject
from ...fields import count_of, list_of, object_of, text_of
from ...finish import read_finish

CALLS = ("functionCall", "function_call")
EMPTY: JsonObject = {"text": ""}


def inner_of(document: JsonObject) -> JsonObject:
    """Code Assist puts the answer into `response`."""
    inner = document.get("response")
    return inner if isinstance(inner, dict) else document


def main_candidate(inner: JsonObject) -> JsonObject:
    """The candidate that goes on; any other is the first round's own."""
    candidates = [one for one in list_of(inner.get("candidates")) if isinstance(one, dict)]
    return next((one for one in candidates if one.get("index") in (0, None)), {})


def parts_of(candidate: JsonObject) -> list[JsonObject]:
    return [part for part in list_of(object_of(candidate.get("content")).get("parts")) if isinstance(part, dict)]


def call_in(part: JsonObject) -> JsonObject:
    return next((object_of(part[name]) for name in CALLS if name in part), {})


def says(part: JsonObject) -> bool:
    return any(value for name, value in part.items() if name != "thought")


def as_history(parts: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """The parts as one content of the history, without the empty ones."""
    kept = [part for part in parts if says(part)]
    return ({"role": "model", "parts": kept},) if kept else ()


def blocked(inner: JsonObject) -> str:
    """Why the prompt itself was refused."""
    word = text_of(object_of(inner.get("promptFeedback")).get("blockReason"))
    return word if not word or read_finish(word) else "SAFETY"


def summed_counts(counts: Sequence[JsonObject]) -> JsonObject:
    """`usageMetadata` of the whole answer."""
    if len(counts) < 2:
        return dict(counts[0]) if counts else {}
    # the details of the last round alone would not add up to the sum
    whole = {name: value for name, value in counts[-1].items() if name != "candidatesTokensDetails"}
    total = count_of(whole.get("promptTokenCount")) + count_of(whole.get("toolUsePromptTokenCount"))
    for name in ("candidatesTokenCount", "thoughtsTokenCount"):
        if any(name in one for one in counts):
            whole[name] = sum(count_of(one.get(name)) for one in counts)
            total += count_of(whole[name])
    return {**whole, "totalTokenCount": total}
