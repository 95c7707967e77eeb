"""Takes credentials out of bytes that come in pieces: a provider that quotes the key it was sent may cut it anywhere.

1. From `SURE` matching characters on, what may become a credential is held back, for `HOLD_S` seconds at most.
2. A credential counts as one also where JSON has escaped some of its characters (`\\u002d`, `\\/`), or JSON within JSON has,
   which has twice as many backslashes and one more each time.
3. What is held too long leaves as it is while it is less than half of a credential, and as the mask from there on.
4. Nothing else is changed, and nothing else waits. Looking costs one search for each credential's beginning.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable
from math import inf

from msgspec import Struct

from .redact import MASK, SHORTEST

SURE = 8
HOLD_S = 0.2
_MASK = MASK.encode()
_BACKSLASHES = rb"\\{1,15}+"
_LONGEST = 15 + len(b"u0000")
_BEFORE = SURE * _LONGEST
"""So many bytes may hold a beginning that is not sure yet, each character escaped."""
_ESCAPE = re.compile(_BACKSLASHES + rb"(?:u00([2-7][0-9a-fA-F])|/)")
_BEGUN_ESCAPE = re.compile(_BACKSLASHES + rb"(u?0{0,2}[2-7]?)\Z")
_BACKSLASH = 0x5C


class _Secret(Struct, frozen=True):
    text: bytes
    head: bytes
    escaped: re.Pattern[bytes]
    """Its head, any character of it escaped."""


class _Match(Struct):
    """How much of a credential stands somewhere."""

    secret: _Secret
    start: int
    end: int
    count: int
    """Characters that match."""
    open: bool
    """The bytes end before it is known."""

    @property
    def whole(self) -> bool:
        return self.count == len(self.secret.text)

    @property
    def mostly(self) -> bool:
        return self.count * 2 >= len(self.secret.text)


class Mask:
    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret.encode("utf-8", "surrogatepass") for secret in secrets if len(secret) >= SHORTEST}
        self._secrets = tuple(_secret(text) for text in sorted(known, key=len, reverse=True))
        self._gone = b""
        """The end of what has left: a credential may have begun there."""
        self._held = b""
        self._open: _Match | None = None
        """What is held is the beginning of this; places count from the start of `_gone`."""
        self._since = inf
        self._swallows = False
        """The mask has left for what is open: what belongs to it does not leave any more."""

    def __bool__(self) -> bool:
        return bool(self._secrets)

    @property
    def idle(self) -> bool:
        """Nothing is held, and nothing of what was held may still come."""
        return not (self._held or self._swallows)

    @property
    def is_clean(self) -> bool:
        """Nor does anything hang on what has left."""
        return self.idle and b"\\" not in self._gone

    @property
    def due(self) -> float:
        """When `tick` is to be told the time; never, where nothing is held."""
        return self._since + HOLD_S

    def feed(self, data: bytes, now: float) -> bytes:
        """What may leave now."""
        if not self._secrets:
            return data
        sent, data = len(self._gone), b"".join((self._gone, self._held, data))
        out: list[bytes] = []
        at, since, clean = 0, self._since, 0
        if self._swallows and self._open is not None:
            found = _matching(data, self._open.secret, self._open.start)
            if found.open:
                self._keep(data, found.start, len(data), found)
                return b""
            self._swallows = False
            at = sent = clean = found.end
        self._held, self._open, self._since = b"", None, inf
        search = _Search(self._secrets, data)
        while (match := search.next(at)) is not None:
            if match.whole:
                out += [data[sent : _mask_at(data, sent, match.start)], _MASK]
                at = sent = clean = match.end
            elif match.open:
                hold = max(sent, match.start)
                out.append(data[sent:hold])
                self._since = now if since == inf else since
                self._keep(data, clean, hold, match)
                return b"".join(out)
            else:
                at = match.start + 1
        out.append(data[sent:])
        self._gone = data[max(clean, len(data) - _BEFORE) :]
        return b"".join(out)

    def tick(self, now: float) -> bytes:
        """Time has passed: what leaves because it waited too long."""
        return self._release() if now >= self.due else b""

    def end(self) -> bytes:
        """Nothing more comes."""
        return self._release() if self._held else b""

    def _release(self) -> bytes:
        assert self._open is not None
        sent, held = len(self._gone), self._held
        self._gone, self._held, self._since = self._gone + held, b"", inf
        self._swallows = self._open.mostly
        return self._gone[sent : _mask_at(self._gone, sent, self._open.start)] + _MASK if self._swallows else held

    def _keep(self, data: bytes, clean: int, hold: int, found: _Match) -> None:
        """From `hold` on nothing leaves yet; what stands before `clean` is masked already."""
        start = min(found.start, max(clean, hold - _BEFORE))
        self._gone, self._held = data[start:hold], data[hold:]
        found.start -= start
        self._open = found


NOTHING = Mask(())
"""For whoever was sent no credential: it holds nothing, and takes nothing out."""


def masked(text: str, secrets: Collection[str]) -> str:
    """What was said in one piece."""
    if "\\" not in text and not any(secret[:SURE] in text for secret in secrets):
        return text
    mask = Mask(secrets)
    return (mask.feed(text.encode("utf-8", "surrogatepass"), 0.0) + mask.end()).decode("utf-8", "replace") if mask else text


class _Search:
    """For the next place where a credential begins for sure. Each part of the bytes is looked at once."""

    def __init__(self, secrets: tuple[_Secret, ...], data: bytes) -> None:
        self._data = data
        self._secrets = secrets
        self._places = [-1] * len(secrets)
        """Of each one the next; the size of the bytes where there is none."""
        self._escaped = b"\\" in data and (b"\\u00" in data or b"\\/" in data) and self._is_near(_ESCAPE.sub(_unescaped, data))

    def next(self, at: int) -> _Match | None:
        data, size, first = self._data, len(self._data), len(self._data)
        for index, secret in enumerate(self._secrets):
            if self._places[index] < at:
                self._places[index] = self._place(secret, at)
            first = min(first, self._places[index])
        if first == size:
            return None
        here = (secret for secret, place in zip(self._secrets, self._places, strict=True) if place == first)
        return max((_matching(data, secret, first) for secret in here), key=lambda found: (found.whole, found.open, found.count))

    def _place(self, secret: _Secret, at: int) -> int:
        found = secret.escaped.search(self._data, at) if self._escaped else None
        place = found.start() if found is not None else self._data.find(secret.head, at)
        return place if place >= 0 else len(self._data)

    def _is_near(self, plain: bytes) -> bool:
        return any(secret.head in plain for secret in self._secrets)


@functools.lru_cache(maxsize=256)
def _secret(text: bytes) -> _Secret:
    head = text[:SURE]
    letters = (
        b"(?:%s|%s(?:u00(?i:%02x)%s))" % (re.escape(bytes((one,))), _BACKSLASHES, one, b"|/" if one == 0x2F else b"")
        for one in head
    )
    return _Secret(text, head, re.compile(b"".join(letters)))


def _mask_at(data: bytes, sent: int, start: int) -> int:
    """Where the mask of a match stands, not in the middle of an escape of which a part has left."""
    if start >= sent:
        return start
    for escape in _ESCAPE.finditer(data, max(start, sent - _LONGEST)):
        if escape.end() > sent:
            return escape.end() if escape.start() < sent else sent
    return sent


def _unescaped(found: re.Match[bytes]) -> bytes:
    return b"/" if found[1] is None else bytes((int(found[1], 16),))


def _matching(data: bytes, secret: _Secret, start: int) -> _Match:
    at, size = start, len(data)
    for count, letter in enumerate(secret.text):
        if at >= size:
            return _Match(secret, start, at, count, open=True)
        if data[at] == letter:
            at += 1
            continue
        if data[at] != _BACKSLASH:
            return _Match(secret, start, at, count, open=False)
        if (escape := _ESCAPE.match(data, at)) is not None:
            if _unescaped(escape)[0] != letter:
                return _Match(secret, start, at, count, open=False)
            at = escape.end()
        else:
            begun = _BEGUN_ESCAPE.match(data, at)
            return _Match(secret, start, at, count, open=begun is not None and (b"u%04x" % letter).startswith(begun[1]))
    return _Match(secret, start, at, len(secret.text), open=False)
