"""What ends a loop that its own count would not end soon: time, and a model that says the same over and over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from msgspec import Struct

from ..dialects.calls.same import canonical
from ..dialects.said import Said

_PIECE = 1 << 16
WARN_AT = 5
"""So many identical rounds in a row are worth a warning."""


class Loop(Struct, frozen=True):
    """The rounds of one turn so far."""

    began: float | None = None
    """When the first round had ended: from here on it is we who make the turn longer."""
    last: bytes = b""
    same: int = 0
    """How many rounds in a row said what the last one said."""

    def after(self, said: Said, now: float) -> Loop:
        heard = fingerprint(said)
        return Loop(now if self.began is None else self.began, heard, self.same + 1 if heard == self.last else 1)

    @property
    def warns(self) -> bool:
        """Once, when it begins to look like a loop."""
        return self.same == WARN_AT

    def ends(self, now: float, *, max_total_s: float, identical_rounds: int) -> str:
        """Why no further round may follow; empty where one may."""
        if self.began is not None and now - self.began > max_total_s:
            return f"{round(max_total_s)} s are over"
        return f"{self.same} identical rounds" if self.same >= identical_rounds else ""


def fingerprint(said: Said) -> bytes:
    """The same for rounds with the same trimmed text and the same calls, whatever their ids."""
    digest = hashlib.sha256()
    for piece in _trimmed(said.text):
        digest.update(piece.encode("utf-8", "surrogatepass"))
    for call in said.calls:
        digest.update(b"\0" + call.name.encode("utf-8", "surrogatepass") + b"\0" + canonical(call.arguments))
    return digest.digest()


def _trimmed(text: str) -> Iterator[str]:
    """Piece by piece, so that of a long text there is no second one."""
    start, end = 0, len(text)
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (text[place : min(place + _PIECE, end)] for place in range(start, end, _PIECE))
