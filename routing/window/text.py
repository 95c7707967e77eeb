"""Lines as a window shows them: wrapped here, since it does not wrap, and folded where they are many."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 88
"""Columns that a browser window of ordinary width shows."""
INDENT = "  "
EMPTY = " "
"""An empty line that is not collapsed."""
_KILO, _MEGA = 1000, 1_000_000
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), 11, 12, *range(14, 32), 127)}
"""Left as they are they would move a terminal's cursor, or colour what follows."""


def wrapped(text: str, *, indent: str = INDENT, most: int = 0) -> Iterator[str]:
    """The text in lines of the window's width; after `most` of them (0: no end) it is said how much follows."""
    width, given, at = WIDTH - len(indent), 0, 0
    while at <= len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        while True:
            if most and given >= most:
                if left := len(text) - at:
                    yield f"{indent}… {count(left, 'more character')}"
                return
            cut = _cut(text, at, stop, width)
            line = text[at:cut].rstrip().translate(_CONTROL)
            yield indent + line.expandtabs(4) if line else EMPTY
            given, at = given + 1, cut
            if at >= stop:
                break
            if text[at] == " ":
                at += 1
        at = stop + 1


def _cut(text: str, at: int, stop: int, width: int) -> int:
    """Where the line that begins here ends: behind a word, where one ends in its second half."""
    if stop - at <= width:
        return stop
    space = text.rfind(" ", at + width // 2, at + width + 1)
    return space if space > 0 else at + width


def count(number: int, of: str) -> str:
    return f"{number:,} {of}" if number == 1 else f"{number:,} {of}s"


def size(number: int) -> str:
    """Bytes, as people write them."""
    if number < _KILO:
        return count(number, "byte")
    return f"{number / _KILO:.1f} kB" if number < _MEGA else f"{number / _MEGA:.1f} MB"


def rule(title: str) -> str:
    """A line that begins a part."""
    return f"── {title} " + "─" * max(3, WIDTH - len(title) - 4)
