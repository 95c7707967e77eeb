"""Ids of tool calls and names of tools within what a dialect takes: always the same one for the same one."""

from __future__ import annotations

import hashlib
import re

from ...short_cache import of_short

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def fitting(name: str, allowed: re.Pattern[str], most: int, *, prefix: str = "") -> str:
    """The name as it is where it fits (`allowed` must match all of it); else what can stay of it, and a digest of all of it."""
    if 0 < len(name) <= most and allowed.fullmatch(name):
        return name
    tail = digest(name, 8)
    kept = "".join(letter for letter in name if allowed.fullmatch(letter))[: most - len(tail) - len(prefix) - 1]
    return f"{prefix}{kept}_{tail}" if allowed.fullmatch("_") else digest(name, most)


@of_short(256)
def digest(name: str, length: int) -> str:
    """Letters and digits alone, as many as asked for (at most 24)."""
    number = int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=20).digest(), "big")
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)
