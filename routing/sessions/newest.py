"""What a person typed last, where a tool has put it into one message with what got no answer before.

Claude Code does that after an error or an interruption: the texts typed before stand in front of the new one, in the same
message. They were obeyed, or refused, when they came; only what is new gives orders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..clients.typed import Typed

_SAMPLE = 8 << 10


class Seen(Struct, frozen=True):
    """A session's newest typed message as it was seen last."""

    ordinal: int
    words: tuple[int, ...]
    """A fingerprint of each of its typed texts: thousands of sessions are remembered, and a text may be long."""
    old: int = 0
    """How many of these were there before."""


def newest_of(typed: Sequence[Typed], seen: Seen | None) -> tuple[Typed | None, Seen | None]:
    """The newest typed message without the texts that were seen before it grew; and what to remember of it."""
    if not typed:
        return None, seen
    newest = typed[-1]
    words = [newest.words] if len(newest.texts) == 1 else [text.words for text in newest.texts]
    now = Seen(newest.ordinal, tuple(map(_fingerprint, words)))
    if seen is not None and seen.ordinal == now.ordinal and now.words[: len(seen.words)] == seen.words:
        has_grown = len(now.words) > len(seen.words)
        now = replace(now, old=len(seen.words) if has_grown else seen.old)
    return (replace(newest, texts=newest.texts[now.old :]) if now.old else newest), now


def _fingerprint(words: str) -> int:
    """The same in every process. Of long words the beginning and the end."""
    if len(words) > 2 * _SAMPLE:
        words = f"{words[:_SAMPLE]}{len(words)}{words[-_SAMPLE:]}"
    return int.from_bytes(hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=6).digest())
