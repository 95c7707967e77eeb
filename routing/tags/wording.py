"""Small pieces of the sentences that tags are answered with."""

from __future__ import annotations

import re

_LONGEST = 200
_STARS = re.compile(r"\*{2,}")


def shortened(text: str, longest: int = _LONGEST) -> str:
    """On one line, printable, without anything that could be read as a tag."""
    line = _STARS.sub("*", " ".join(text[: 4 * longest].split()))
    shown = "".join(char for char in line if char.isprintable())
    return shown if len(shown) <= longest else f"{shown[:longest]}…"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
