"""Tags that stand where they cannot give orders: what a person may have meant, and nobody obeys.

Only what came after the model's last answer is looked at, so that a client that repeats its history says nothing again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ..clients.client import Client
from ..clients.shapes import NOTHING, Shape, shape_of
from ..clients.typed import Typed, is_cut
from ..clients.unknown import UNKNOWN
from ..values import Call, Dialect, Message, Text, ToolResult
from .scan import find_mark, find_tags

BEFORE = "in a message before your last one"
MOST = 8
"""So many of them are told."""
_LONGEST = 60
_BEGIN = "<**"
_MOST_OPENINGS = 1000


class Unheard(NamedTuple):
    tag: str
    """As it stands there, shortened."""
    place: str
    """Where, in words."""
    known: bool
    """The tool is known to put its own text there; otherwise a person may well have typed it."""


def unheard_tags(call: Call, client: Client) -> tuple[Unheard, ...]:
    """The first few of them."""
    shape = shape_of(client)
    found = (
        unheard
        for message in call.messages[answered_up_to(call, client) + 1 :]
        if message.role == "user" and any(isinstance(part, Text) and find_mark(part.text, _BEGIN) >= 0 for part in message.parts)
        for unheard in _in_message(message, shape, call.endpoint.dialect)
    )
    return tuple(islice(dict.fromkeys(islice(found, 10 * MOST)), MOST))


def tags_before(typed: Typed) -> tuple[Unheard, ...]:
    """Those of a message that was typed before the newest one, which alone gives orders."""
    found = (Unheard(_shortened(tag.body), BEFORE, False) for text in typed.texts for tag in find_tags(text.words, MOST))
    return tuple(islice(dict.fromkeys(found), MOST))


def sentences(unheard: Sequence[Unheard]) -> tuple[str, ...]:
    """For the person who asks what became of them."""
    return tuple(f"`{one.tag}` {one.place} gave no orders." for one in unheard)


def listed(unheard: Sequence[Unheard]) -> str:
    """In a few words, for a flow's comment."""
    return ", ".join(f"{one.tag} {one.place}" for one in unheard)


def answered_up_to(call: Call, client: Client) -> int:
    """The index of the model's last answer, or of the summary that stands for it; -1 where there is none."""
    answers = (one.index for one in reversed(call.messages) if one.role == "assistant" or is_cut(one, client))
    return next(answers, -1)


def _in_message(message: Message, shape: Shape, dialect: Dialect) -> Iterator[Unheard]:
    beside = dialect is Dialect.GEMINI and any(isinstance(part, ToolResult) for part in message.parts)
    for part, division, _ in shape.divided(message, dialect):
        at = 0
        for start, end in (*division.typed, (len(part.text), len(part.text))):
            for tag in find_tags(part.text[at:start], MOST):
                if beside:
                    place, known = "beside a function's response", True
                elif division is NOTHING and not shape.is_tools(part.text):
                    place, known = "in a part that the tool wrote", True
                else:
                    place, known = _place(part.text, at + tag.start, shape)
                yield Unheard(_shortened(tag.body), place, known)
            at = end


def _shortened(body: str) -> str:
    short = body if len(body) <= _LONGEST else f"{body[:_LONGEST]}…"
    return f"<**{short}**>"


_OPENING = re.compile(r"<([A-Za-z][\w.:-]{0,63})(?=[\s/>])")


def _place(text: str, at: int, shape: Shape) -> tuple[str, bool]:
    """The wrapper that it stands in, else the sentence behind which it does."""
    if shape.is_tools(text):
        return f'behind "{" ".join(text[:200].split())[:40]}"', True
    names = [found[1] for found in islice(_OPENING.finditer(text, 0, at), _MOST_OPENINGS) if found[1] not in shape.typed_in]
    closed = (name for name in reversed(dict.fromkeys(names)) if text.find(f"</{name}", at) >= 0)
    name = next(closed, None) or next((name for name in reversed(names) if name in shape.listed), None)
    if name is None:
        return "behind text of the tool's own", True
    return f"in `<{name}>`", name in shape.listed and shape.client.name != UNKNOWN.name
