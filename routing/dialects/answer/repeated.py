"""A long text that an answer tells again and again is kept once: Responses repeats all that was said in four closing events."""

from __future__ import annotations

import re

LONG = 16 << 10
"""Shorter ones are not worth looking for."""
_KNOWN = 8
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""Closed or not: what follows is never looked through twice."""


class Repeated:
    """The long texts of one round."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._written = b""
        """The last one as JSON."""

    def share(self, document: object) -> None:
        """Where the document, which is nobody else's yet, holds a text that is known, it holds that very one from now on.

        The texts of the last few stay known; for those that tell what an answer holds, and are kept anyway.
        """
        todo = [document]
        while todo:
            found = todo.pop()
            children = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
            for key, child in list(children):
                if isinstance(child, dict | list):
                    todo.append(child)
                elif isinstance(child, str) and len(child) >= LONG:
                    found[key] = self._texts.setdefault(child, child)  # type: ignore[index]
                    if len(self._texts) > _KNOWN:
                        del self._texts[next(iter(self._texts))]

    def cut(self, raw: bytes) -> tuple[bytes, ...]:
        """The same bytes in pieces, one of which others have as well."""
        if not self._texts:
            return (raw,)
        at = raw.find(self._written) if self._written else -1
        if at < 0:
            start, end = max((found.span() for found in _TEXT.finditer(raw)), key=lambda span: span[1] - span[0], default=(0, 0))
            if end - start < LONG:
                return (raw,)
            at, self._written = start, raw[start:end]
        return raw[:at], self._written, raw[at + len(self._written) :]
