"""File names made from ids that come from outside: readable where they can be, never two ids with one name.

1. A name holds only `A-Z a-z 0-9 _ . -`, never starts with a dot, is no device name of any system, and is at most 120 long.
2. An id that had to be changed, or that another id equals but for case, carries a hash of its exact characters.
   An id that merely looks as if it carried one gets its own.
"""

from __future__ import annotations

import functools
import hashlib
import re

_LONGEST = 120
_ENDING = ".json"
_HASH_DIGITS = 24

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_HASHED = re.compile(rf"\.h[0-9a-f]{{{_HASH_DIGITS}}}\Z")
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin", "conout"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)
_OURS = frozenset({"ntp-state"})
"""Names that files of our own have in the same folders."""


@functools.lru_cache(maxsize=4096)
def file_name(prefix: str, id: str) -> str:
    """`session-<id>.json`; without a prefix `<id>.json`."""
    start = f"{prefix}-" if prefix else ""
    room = _LONGEST - len(start) - len(_ENDING)
    if _is_plain(id) and len(id) <= room:
        return f"{start}{id}{_ENDING}"
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    readable = _UNSAFE.sub("_", id[:room])
    if not readable or readable[0] in ".-" or _is_taken(readable.lower()):
        readable = f"_{readable.lstrip('.-')}"
    return f"{start}{readable[: room - _HASH_DIGITS - 2]}.h{digest}{_ENDING}"


def _is_plain(id: str) -> bool:
    return _PLAIN.fullmatch(id) is not None and not _is_taken(id) and _HASHED.search(id) is None


def _is_taken(lower: str) -> bool:
    return lower in _OURS or lower.partition(".")[0] in _DEVICES
