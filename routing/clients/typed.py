"""Which text a person typed: where tags may give orders, and where they are taken out.

1. Orders come only from what the client's shapes mark as typed. In doubt text gives no orders.
2. What gives no orders is not changed either, but for what repeats a person's words: files pass byte for byte.
3. Linear in the length of the text, whatever it holds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from ..values import Call, Dialect, Message, Text
from .client import Client
from .shapes import ESCAPED, Shape, Span, shape_of
from .unknown import UNKNOWN

NONE: frozenset[Span] = frozenset()


class TypedText(NamedTuple):
    """A text part, and the spans of it in which tags may give orders.

    No spans: the text of a command that the person called, but somebody wrote before.
    """

    part: Text
    commands: tuple[Span, ...]
    quoted: frozenset[Span] = NONE
    """Those of them in which the tool escaped the person's quotes."""

    @property
    def pieces(self) -> tuple[str, ...]:
        """Each span as the person typed it."""
        text = self.part.text
        if not self.quoted:
            return tuple(text[start:end] for start, end in self.commands)
        return tuple(_as_typed(text[span[0] : span[1]], span in self.quoted) for span in self.commands)

    @property
    def words(self) -> str:
        """What the person typed, without what tools put around it."""
        return (" " if self.quoted else "").join(self.pieces).strip()


class Typed(Struct, frozen=True, dict=True):
    """A user message that holds text a person typed; `ordinal` counts such messages from 0."""

    message: Message
    texts: tuple[TypedText, ...]
    ordinal: int

    @functools.cached_property
    def words(self) -> str:
        return "\n".join(words for text in self.texts if (words := text.words))


class Editable(NamedTuple):
    """A text part of a user's message, and the spans of it from which tags are taken out."""

    message: Message
    part: Text
    spans: tuple[Span, ...]
    quoted: frozenset[Span] = NONE

    def edited(self, change: Callable[[str], str]) -> str:
        """The text with each span changed as a person typed it; the same object where nothing changes."""
        text = self.part.text
        pieces: list[str] = []
        at = 0
        is_changed = False
        for start, end in self.spans:
            raw = text[start:end]
            is_escaped = (start, end) in self.quoted
            old = _as_typed(raw, is_escaped)
            new = change(old)
            is_changed |= new is not old
            pieces += (text[at:start], raw if new is old else _as_sent(new, is_escaped))
            at = end
        return "".join((*pieces, text[at:])) if is_changed else text


def typed_messages(call: Call, client: Client = UNKNOWN) -> list[Typed]:
    """The user messages that hold typed text, oldest first."""
    shape, dialect = shape_of(client), call.endpoint.dialect
    found: list[Typed] = []
    for message in call.messages:
        if message.role != "user" or Text not in map(type, message.parts):
            continue
        if texts := _plain_text(message, shape) or tuple(_typed_texts(message, shape, dialect)):
            found.append(Typed(message, texts, len(found)))
    return found


def editable_texts(call: Call, client: Client = UNKNOWN) -> list[Editable]:
    """Every text part of the user's messages, with the spans from which tags are taken out."""
    shape, dialect = shape_of(client), call.endpoint.dialect
    found: list[Editable] = []
    for message in call.messages:
        if message.role != "user" or Text not in map(type, message.parts):
            continue
        if plain := _plain_text(message, shape):
            found.append(Editable(message, *plain[0]))
        else:
            divided = shape.divided(message, dialect)
            found += [Editable(message, part, division.editable, division.escaped) for part, division, _ in divided]
    return found


def is_cut(message: Message, client: Client) -> bool:
    """What it says stands for answers that a compaction took out of the history."""
    if message.role != "user":
        return message.is_sealed
    if not client.cuts:
        return False
    return any(isinstance(part, Text) and part.text[:100].lower().startswith(client.cuts) for part in message.parts)


def _plain_text(message: Message, shape: Shape) -> tuple[TypedText, ...]:
    """The common case at once: one text in which no tool can have put anything. Empty where a closer look is needed."""
    if len(message.parts) != 1 or message.hint or not isinstance(part := message.parts[0], Text):
        return ()
    text = part.text
    if not text or not shape.is_plain(text) or text.isspace():
        return ()
    return (TypedText(part, ((0, len(text)),)),)


def _typed_texts(message: Message, shape: Shape, dialect: Dialect) -> Iterator[TypedText]:
    for part, division, is_commands in shape.divided(message, dialect):
        if division.typed:
            yield TypedText(part, () if is_commands else division.typed, NONE if is_commands else division.escaped)


def _as_typed(text: str, is_escaped: bool) -> str:
    return text.replace(ESCAPED, '"') if is_escaped else text


def _as_sent(text: str, is_escaped: bool) -> str:
    return text.replace('"', ESCAPED) if is_escaped else text
