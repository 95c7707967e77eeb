"""`functools.lru_cache` for names that come from outside: a long one is worked out each time and never kept.

A cache of so many entries bounds nothing by itself: a field's name may be as long as the call that it stands in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

A = TypeVar("A", str, bytes)
P = ParamSpec("P")
R = TypeVar("R")

LONGEST = 256


def of_short(most: int) -> Callable[[Callable[Concatenate[A, P], R]], Callable[Concatenate[A, P], R]]:
    def made(work: Callable[Concatenate[A, P], R]) -> Callable[Concatenate[A, P], R]:
        kept = functools.lru_cache(most)(work)

        def asked(name: A, /, *more: P.args, **named: P.kwargs) -> R:
            return kept(name, *more, **named) if len(name) <= LONGEST else work(name, *more, **named)  # type: ignore[arg-type]

        functools.update_wrapper(asked, work)
        return asked

    return made
