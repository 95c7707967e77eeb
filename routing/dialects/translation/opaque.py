"""A seal in the words of another dialect: one opaque base64 word that tells whose it is.

1. The same seal always gives the same word, so that histories keep their bytes.
2. Any text that is no such word is None: it is somebody else's signature.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode

from ...jsonbytes import dumps
from ...values import Dialect
from ..fields import object_of, read_object, text_of
from .neutral import Seal

MARK = b64encode(b'{"routecodex":1,"seal')[:27].decode()
"""What every such word begins with, and nothing else does."""
_MOST_BYTES = 4 << 20


def wrap(seal: Seal) -> str:
    body = {"routecodex": 1, "seal": {"dialect": str(seal.dialect), "maker": seal.maker, "payload": seal.payload}}
    return b64encode(dumps(body)).decode()


def unwrap(word: str) -> Seal | None:
    if not word.startswith(MARK) or len(word) > _MOST_BYTES:
        return None
    try:
        raw = b64decode(word + "=" * (-len(word) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    seal = object_of((read_object(raw) or {}).get("seal"))
    dialect = text_of(seal.get("dialect"))
    if dialect not in list(Dialect):
        return None
    return Seal(Dialect(dialect), text_of(seal.get("maker")), object_of(seal.get("payload")))
