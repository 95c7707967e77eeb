"""Takes credentials out of what is shown, logged or passed on in an error."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
SHORTEST = 6
"""A shorter secret would mask ordinary words."""

_SHAPES = re.compile(
    rb"(?:sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|ya29\.[A-Za-z0-9._-]{20,}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,})"
)
"""What the common providers' credentials look like."""


class Redactor:
    """Knows the configured secrets by heart and the usual shapes by sight."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True)
        pattern = b"|".join(re.escape(secret.encode("utf-8", "surrogatepass")) for secret in known)
        self._known = re.compile(pattern) if pattern else None

    def known(self, text: bytes) -> bytes:
        """Only the configured secrets: what else looks like one may be the answer's own text."""
        return self._known.sub(MASK.encode(), text) if self._known is not None else text

    def bytes(self, text: bytes) -> bytes:
        return _SHAPES.sub(MASK.encode(), self.known(text))

    def text(self, text: str) -> str:
        return self.bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
