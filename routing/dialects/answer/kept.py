"""What is kept of a round for whoever looks at it later, where its provider has repeated a credential over several events."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import BadAnswer
from ...values import Dialect
from .echoes import Echoes
from .events import Chunk
from .machine import reader_of
from .stream import Source


def without_echoes(raw: bytes, spoken: Dialect, secrets: Iterable[str]) -> bytes:
    """The same round, as it was heard. Nothing where it cannot be read."""
    source, echoes = Source(reader_of(spoken)), Echoes(secrets)
    out: list[Chunk] = []
    try:
        for chunk in (*source.feed(raw), *source.close()):
            out += echoes.look(chunk, 0.0)
    except BadAnswer:
        return b""
    return b"".join([piece for chunk in (*out, *echoes.rest()) for piece in (chunk.raw, *chunk.rest)])
