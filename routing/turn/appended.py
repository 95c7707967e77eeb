"""What a turn adds to a conversation, whatever the dialect; and how the call's own dialect writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from ..dialects.calls import growing
from ..dialects.said import Said
from ..values import Dialect, JsonObject
from .tools import ToolOutcome


class UserText(Struct, frozen=True):
    """A message as if the person had typed it."""

    text: str


class ToolResults(Struct, frozen=True):
    """What tools of ours answered; always placed directly behind the answer that called them."""

    outcomes: tuple[ToolOutcome, ...]


Appendable: TypeAlias = UserText | ToolResults | JsonObject
"""A JSON object is a message as the call's own dialect writes it (`turn.dialect`)."""
Appended: TypeAlias = Said | Appendable
"""`Said` is an answer of the model."""


def write(dialect: Dialect, messages: Iterable[Appended]) -> tuple[JsonObject, ...]:
    """In the dialect's own form, in order; TypeError for what is no message."""
    return tuple(item for message in messages for item in _written(dialect, message))


def _written(dialect: Dialect, message: Appended) -> tuple[JsonObject, ...]:
    match message:
        case Said():
            return message.native
        case UserText(text):
            return (growing.write_user(dialect, text),)
        case ToolResults(outcomes):
            results = [(outcome.call, outcome.text, outcome.status != "success") for outcome in outcomes]
            return growing.write_results(dialect, results) if results else ()
        case dict():
            return (message,)
    raise TypeError(f"{type(message).__name__} is no message")
