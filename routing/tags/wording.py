"""Small pieces of the sentences that tags are answered with."""

from __future__ import annotations

import math
import re

_LONGEST = 200
_STARS = re.compile(r"\*{2,}")


def shortened(text: str, longest: int = _LONGEST) -> str:
    """On one line, printable, without anything that could be read as a tag."""
    line = _STARS.sub("*", " ".join(text[: 4 * longest].split()))
    shown = "".join(char for char in line if char.isprintable())
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def duration(seconds: float) -> str:
    """In whole seconds, minutes or hours, rounded up."""
    for size, name in ((3600, "h"), (60, "min")):
        if seconds > 2 * size or (size == 60 and seconds >= size):
            return f"{math.ceil(seconds / size)} {name}"
    return f"{math.ceil(seconds)} s"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
