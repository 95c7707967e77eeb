"""Who made which signature or piece of encrypted thinking: only its maker can read it, so nobody else is sent it.

What is known here is kept in memory; a seal of an unknown maker counts as somebody else's.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence

from ..values import JsonObject
from .translation.opaque import MARK, unwrap

_FIELDS = ("signature", "encrypted_content", "thoughtSignature", "thought_signature", "reasoning_opaque", "data")
_SHORTEST = 8
_SEAL = re.compile(rf'"(?:{"|".join(_FIELDS)})"\s{{0,4}}:\s{{0,4}}"([^"\\]{{{_SHORTEST},}}(?:\\.[^"\\]*)*)"'.encode())
_MOST = 50_000


class Seals:
    def __init__(self) -> None:
        self._makers: OrderedDict[bytes, str] = OrderedDict()
        self.collects: list[bytes] | None = None
        """The digests of what is new, where somebody else is to know it."""

    def note(self, maker: str, answer: bytes) -> None:
        """What this provider said, or a part of it that cuts nothing in two."""
        for found in _SEAL.finditer(answer):
            self._remember(maker, found[1].replace(b"\\/", b"/").replace(b"\\u003d", b"=").replace(b"\\u002b", b"+"))

    def note_items(self, maker: str, items: Sequence[JsonObject]) -> None:
        """The same of a whole answer, as a history holds it: a long one is not written out for it."""
        todo: list[object] = list(items)
        while todo:
            found = todo.pop()
            if isinstance(found, list):
                todo.extend(found)
            elif isinstance(found, dict):
                for name, value in found.items():
                    if isinstance(value, dict | list):
                        todo.append(value)
                    elif isinstance(value, str) and name in _FIELDS and len(value) >= _SHORTEST:
                        self._remember(maker, value.encode("utf-8", "surrogatepass"))

    def _remember(self, maker: str, seal: bytes) -> None:
        digest = _digest(seal)
        if self.collects is not None and self._makers.get(digest) != maker:
            self.collects.append(digest)
        self.learn(digest, maker)

    def learn(self, digest: bytes, maker: str) -> None:
        """From somebody else."""
        self._makers.pop(digest, None)
        self._makers[digest] = maker
        while len(self._makers) > _MOST:
            self._makers.popitem(last=False)

    def maker_of(self, seal: str) -> str:
        """Empty where nobody is known to have made it."""
        if seal.startswith(MARK) and (wrapped := unwrap(seal)) is not None:
            return wrapped.maker
        return self._makers.get(_digest(seal.encode("utf-8", "surrogatepass")), "")

    def made_by(self, maker: str, *ids: str) -> Collection[str]:
        """The seals of this provider, and these ids of its own. Wrapped ones say themselves whose they are."""
        return _Made(self._makers, maker, ids)


class _Made(Collection[str]):
    """Asked, never listed: seals are known by their digests alone."""

    def __init__(self, makers: OrderedDict[bytes, str], maker: str, ids: tuple[str, ...]) -> None:
        self._makers, self._maker, self._ids = makers, maker, ids

    def __contains__(self, seal: object) -> bool:
        if not isinstance(seal, str):
            return False
        if seal.startswith(MARK):
            wrapped = unwrap(seal)
            return wrapped is not None and wrapped.maker == self._maker
        return seal in self._ids or self._makers.get(_digest(seal.encode("utf-8", "surrogatepass"))) == self._maker

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _digest(seal: bytes) -> bytes:
    return hashlib.blake2b(seal, digest_size=12).digest()
