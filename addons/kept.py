"""What stays of an answer that has left, for whoever looks at it later: its beginning and its end."""

from __future__ import annotations

HEAD_BYTES = 96 << 10
TAIL_BYTES = 32 << 10


class Kept:
    __slots__ = ("_head", "_size", "_tail")

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if room := HEAD_BYTES - len(self._head):
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail += chunk[-TAIL_BYTES:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    @property
    def is_whole(self) -> bool:
        return self._size <= HEAD_BYTES + TAIL_BYTES

    def take(self) -> bytes:
        """All of it where it was short, else the two with a comment between them; nothing is kept after that."""
        head, tail = self._head, bytes(self._tail[-TAIL_BYTES:])
        missing = self._size - len(head) - len(tail)
        kept = bytes(head) + (gap(missing) if missing else b"") + tail
        self._head, self._tail, self._size = bytearray(), bytearray(), 0
        return kept


def gap(missing: int) -> bytes:
    """What stands in a stream for the part of it that was not kept."""
    return b"\n\n: %d bytes were not kept here\n\n" % missing
