"""The C library's allocator, for a process through which long texts pass.

When a piece of memory of its own is given back, glibc takes pieces of that length from its one heap from then on, up to 32 MB:
after the first long answer the next ones leave holes there that never go back to the system.
"""

from __future__ import annotations

import ctypes
import os
import sys

OWN_PIECE_BYTES = 512 << 10
"""From here on a text has memory of its own. A usual large call is shorter: its pages are used again and again."""
SPARE_BYTES = 1 << 20
"""So much may lie unused at the heap's end."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
SET_BY_HAND = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def give_back() -> None:
    """What lies unused between pieces that are in use goes back to the system, too; nothing in C libraries that cannot."""
    if sys.platform.startswith("linux") and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def settle() -> bool:
    """Both stay as they are from now on. False where it is not so: in other C libraries, and where a person has set something."""
    if not sys.platform.startswith("linux") or any(name in os.environ for name in SET_BY_HAND):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, OWN_PIECE_BYTES) and mallopt(_TRIM_THRESHOLD, SPARE_BYTES))
