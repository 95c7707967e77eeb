"""The words that tags are made of, and what looks like one of them.

1. These words are no names of providers: a configuration that uses one so is refused.
2. A near miss is one slip away (a letter too many, missing, wrong, or two swapped), two from seven letters on.
"""

from __future__ import annotations

STOP_MESSAGE = "stopMessage"
WORDS = ("clear", "status", "help", "models", "why", "usage")
"""Whole tags."""
NOT_BUILT = ("wait", "until", "budget", "resume")
"""Of features that are not there yet."""
RESERVED = frozenset({*WORDS, *NOT_BUILT, "clock", STOP_MESSAGE.lower()})
"""In lower case."""
_SHORTEST = 4
_LONG = 7

INVISIBLE = (
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
)
"""Spaces of other widths, and what shows nothing at all: keyboards for right-to-left scripts and copied text bring them along."""

_TWINS = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "“”„‟「」『』«»〝〞"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛"), "'"),
    **dict.fromkeys(map(ord, INVISIBLE), " "),
    ord("、"): ",",
    ord("。"): ".",
    ord("﹟"): "#",
    ord("﹫"): "@",
}


def folded(text: str) -> str:
    """Full-width letters, digits and marks as their ASCII twins, quotes as plain ones; every character stays one."""
    return text if text.isascii() else text.translate(_TWINS)


def near(word: str, known: str) -> bool:
    """Whether a word is the known one in another case, or a slip away from it."""
    word, known = word.lower(), known.lower()
    most = 2 if len(known) >= _LONG else 1
    return word == known or (len(word) >= _SHORTEST - 1 and abs(len(word) - len(known)) <= most and _slips(word, known) <= most)


def nearest_word(word: str) -> str | None:
    """The word of ours that is meant, if one can be."""
    return next((known for known in (*WORDS, *NOT_BUILT, "clock", STOP_MESSAGE) if near(word, known)), None)


def _slips(a: str, b: str) -> int:
    """How many slips of the hand lie between two words."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, other in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]
