"""Fields of foreign JSON, each read as the type it must have or as nothing; no function here raises."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import RouteCodexError
from ..jsonbytes import load_object, loads
from ..values import JsonObject

THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text")
"""Fields of plain reasoning in a Chat message, by host. One that fills two of them says the same in both."""


def read_json(raw: bytes) -> object:
    """The value, or None where `raw` is not JSON."""
    try:
        return loads(raw)
    except RouteCodexError:
        return None


read_object = load_object


def object_of(value: object) -> JsonObject:
    """The object; an empty one where it is anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def is_blank(text: str) -> bool:
    """Nothing, or nothing but white space; asked without a copy of the text."""
    return not text or text.isspace()


def count_of(value: object) -> int:
    """A number of tokens: never negative, never a boolean."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 <= value < 1e15 else 0


def arguments_of(text: str) -> JsonObject:
    """A tool's arguments as the object that some dialects want; text that is none is kept under one name, not lost."""
    if not text.strip():
        return {}
    value = read_json(text.encode("utf-8", "surrogatepass"))
    return value if isinstance(value, dict) else {"arguments": text}


def pieces_of(text: str) -> Iterator[str]:
    """Text in the pieces that a stream carries: short ones, but never more than about a hundred."""
    size = max(24, len(text) // 96 + 1)
    for start in range(0, len(text), size):
        yield text[start : start + size]
