"""The tags of a message that a person typed.

1. A tag in code says nothing; it is only taken out.
2. No more than `MOST_TAGS` of a message are read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice, takewhile

from ..clients.typed import Typed, TypedText
from ..values import Text
from .grammar import Tag, Unknown, parse
from .scan import code_spans, find_tags, strip

MOST_TAGS = 16
"""Nobody types more."""
_MOST_LOOKED_AT = 1000
_QUOTES = " \t\r\n\"'“”‘’「」«»"
"""What a tool may wrap around a prompt."""


def tags_of(typed: Typed) -> tuple[Tag, ...]:
    """What the tags of a message say, but for those in code."""
    bodies = list(islice((body for text in typed.texts for body in _bodies(text)), MOST_TAGS + 1))
    tags = [tag for body in bodies[:MOST_TAGS] for tag in parse(body)]
    if len(bodies) > MOST_TAGS:
        tags.append(Unknown(bodies[-1], f"Only the first {MOST_TAGS} tags of a message are obeyed."))
    return tuple(tags)


def _bodies(text: TypedText) -> Iterator[str]:
    # code is looked for in the person's words alone: what a tool put between them opens and closes nothing
    words = text.pieces
    found: list[tuple[int, str]] = []
    before = 0
    for piece in words:
        found += [(before + tag.start, tag.body) for tag in find_tags(piece, _MOST_LOOKED_AT)]
        before += len(piece)
    if not found:
        return
    code = code_spans("".join(words))
    starts = [start for start, _ in code]
    for at, body in found:
        place = bisect_right(starts, at) - 1
        if place < 0 or at >= code[place][1]:
            yield body


def only_tags(typed: Typed) -> bool:
    """The message is nothing but tags, whatever tools wrote beside them; quotes around them count for nothing."""
    return bool(typed.texts) and len(tags_at_end(typed)) == len(typed.texts)


def tags_at_end(typed: Typed) -> tuple[TypedText, ...]:
    """The last texts of the message, as far as they are nothing but tags."""
    if not all(isinstance(part, Text) for part in typed.message.parts):
        return ()
    told = tuple(takewhile(_is_bare_without_tags, reversed(typed.texts)))[::-1]
    return told if any(next(_bodies(text), None) is not None for text in told) else ()


def _is_bare_without_tags(text: TypedText) -> bool:
    return bool(text.commands) and all(is_bare(strip(piece)) for piece in text.pieces)


def is_bare(text: str) -> bool:
    """Nothing is left that somebody wants to say."""
    return not text.strip(_QUOTES)
