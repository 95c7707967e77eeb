"""Words from outside as they may stand in a log or on a terminal: nothing in them moves a cursor, hides what stands there, turns
the direction of writing, or begins a line of its own."""

from __future__ import annotations

_JOINERS = "\u200c\u200d"
"""Some scripts and emoji need them."""


def visible(text: str, keep: str = "") -> str:
    """What is none of that (but for `keep`) is told by its number."""
    plain = text
    for letter in keep:
        plain = plain.replace(letter, "")
    if plain.isprintable():
        return text
    return text.translate({ord(letter): _number(letter) for letter in set(plain) if not _is_plain(letter)})


def first_words(text: str, most: int) -> str:
    """One line."""
    line = visible(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - 1] + "…"


def _is_plain(letter: str) -> bool:
    import unicodedata  # seldom needed, and some commands are run many times a minute

    return letter.isprintable() or letter in _JOINERS or unicodedata.category(letter) == "Zs"


def _number(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
