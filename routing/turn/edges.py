"""The first and last bytes of an answer: what it cost stands there."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..dialects import answers
from ..values import Dialect, Usage

BYTES = 8 << 10
"""So much of either."""


@dataclass(slots=True)
class Edges:
    first: bytes = b""
    _last: bytearray = field(default_factory=bytearray)

    def begin(self, first: bytes) -> None:
        """A round answers, and this is its start."""
        self.first = first[:BYTES]
        self._last.clear()

    def keep(self, chunk: bytes) -> None:
        self._last += chunk
        if len(self._last) > 2 * BYTES:
            del self._last[:-BYTES]

    def usage(self, dialect: Dialect) -> Usage | None:
        """None before an answer, or where it tells nothing."""
        return answers.read_usage(dialect, self.first, bytes(self._last)) if self.first else None
