"""The C library's allocator, for a process through which long texts pass.

When a piece of memory of its own is given back, glibc takes pieces of that length from its one heap from then on, up to 32 MB:
after the first long answer the next ones leave holes there that never go back to the system.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

OWN_PIECE_BYTES = 512 << 10
"""From here on a text has memory of its own. A usual large call is shorter: its pages are used again and again."""
READ_TIMES = 12
"""A parser asks for so many times what it reads, and touches little of it."""
SPARE_BYTES = 8 << 20
"""So much may lie unused at the heap's end: room to read a usual large call in."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
SET_BY_HAND = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


_mallopt: Any = None
"""Once both are settled."""


def give_back() -> None:
    """What lies unused between pieces that are in use goes back to the system, too; nothing in C libraries that cannot."""
    if sys.platform.startswith("linux") and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def settle() -> bool:
    """Both stay as they are from now on. False where it is not so: in other C libraries, and where a person has set something."""
    if not sys.platform.startswith("linux") or any(name in os.environ for name in SET_BY_HAND):
        return False
    global _mallopt
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not (mallopt(_MMAP_THRESHOLD, OWN_PIECE_BYTES) and mallopt(_TRIM_THRESHOLD, SPARE_BYTES)):
        return False
    _mallopt = mallopt
    return True


def reading(size: int, work: Callable[[], T]) -> T:
    """Runs what reads a text of so many bytes. Its parser's room is taken from the heap: memory of its own would be asked of the
    system anew for each call, page by page, which takes longer than to read it."""
    if _mallopt is None or not OWN_PIECE_BYTES < READ_TIMES * size < SPARE_BYTES:
        return work()
    _mallopt(_MMAP_THRESHOLD, SPARE_BYTES)
    try:
        return work()
    finally:
        _mallopt(_MMAP_THRESHOLD, OWN_PIECE_BYTES)
