"""Events in a word each, and what a reader makes of documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routecodex.routing.dialects.answer.events import Closed, Counted, Ended, Event, Extra, Failed, Field, Opened, Piece
from routecodex.routing.dialects.answer.said import Content
from routecodex.routing.dialects.answer.stream import AnyReader


def words(events: Iterable[Event]) -> list[str]:
    return [word(event) for event in events]


def word(event: Event) -> str:
    match event:
        case Piece(block=block, text=text):
            return f"{block.kind}:{text}"
        case Opened(block=block) | Closed(block=block) | Extra(block=block):
            return f"{type(event).__name__} {block.kind}"
        case Ended(finish_reason=reason):
            return f"Ended {reason}"
        case Counted(tokens=tokens):
            return f"Counted {tokens.input} {tokens.output}"
        case Field(name=name):
            return f"Field {name}"
        case Failed(error=error):
            return f"Failed {error.status}"
        case _:
            return type(event).__name__


def read(reader: AnyReader, *documents: dict[str, Any]) -> list[str]:
    return [word for document in documents for word in words(reader.read(document))]


def content_of(reader: AnyReader, *documents: dict[str, Any]) -> Content:
    content = Content()
    for document in documents:
        content.add(reader.read(document))
    return content
