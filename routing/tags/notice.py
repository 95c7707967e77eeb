"""The line that tells a person something without having been asked: how it is written, known, and taken out again.

Clients send it back with every later call, at the beginning of a text of the model's; no model sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..dialects.calls import edit_texts
from ..values import Call, Text
from .wording import shortened

_MARK = "[RouteCodex: "
_LONGEST = 600
_LINE = re.compile(r"\s*\[RouteCodex: [^\n]{1,1200}\]\s*\n\s*")


class Cause(NamedTuple):
    """Something that a person did not ask for."""

    id: str
    """The same for the same thing."""
    sentence: str


def line_of(causes: Iterable[Cause]) -> str:
    """What stands before the text; empty where there is nothing to tell."""
    said = "; ".join(shortened(cause.sentence, _LONGEST // 2) for cause in causes)
    return f"{_MARK}{shortened(said, _LONGEST)}]\n\n" if said else ""


def take_out(call: Call) -> None:
    """Out of what the model said in the history."""
    edits: dict[tuple[int, int], str] = {}
    for message in call.messages:
        if message.role != "assistant":
            continue
        for part in message.parts:
            if type(part) is Text and part.text.lstrip().startswith(_MARK) and (found := _LINE.match(part.text)) is not None:
                edits[message.index, part.slot] = part.text[found.end() :]
    if edits:
        edit_texts(call, edits)
