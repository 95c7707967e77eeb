"""How long something takes, as people say it."""

from __future__ import annotations

import math


def duration(seconds: float) -> str:
    """In whole seconds, minutes or hours, rounded up."""
    for size, name in ((3600, "h"), (60, "min")):
        if seconds > 2 * size or (size == 60 and seconds >= size):
            return f"{math.ceil(seconds / size)} {name}"
    return f"{math.ceil(seconds)} s"
