"""Python's collector of garbage, for a process that makes thousands of short-lived objects in each call beside a hundred thousand
that stay."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

YOUNG_OBJECTS = 2000
"""What Python waits for from 3.13 on before it looks for garbage: reading one large call makes more than 700."""
_settled = False


def settle() -> None:
    """Once in a process. What was loaded at the start stays; looking through it again took 40 ms, every thousand calls.

    Python itself could say that it was done, but goes through all that stays to count it.
    """
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
        young, *older = gc.get_threshold()
        gc.set_threshold(max(young, YOUNG_OBJECTS), *older)


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """While a million objects are made of which most are gone soon: looking through all of them stops everybody, for 80 ms at a
    time. What else becomes garbage meanwhile waits; next to nothing of a call does."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
