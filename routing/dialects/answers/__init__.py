"""What stands in an answer's place, or keeps it open, in each dialect: one table, four modules with the same functions.

1. Every function here takes the dialect first and does the same thing in each of the four.
2. What a dialect has no use for (`json_array`, `envelope`, `sequence`) it ignores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...values import Dialect, JsonObject, ProviderError
from ..sse import ArrayItems, Events
from . import chat, gemini, messages, responses


class _Module(Protocol):
    KEEP_ALIVE: bytes

    def write_error(
        self, status: int, message: str, code: str, details: Mapping[str, object] | None = None, *, json_array: bool = False
    ) -> bytes: ...

    def write_error_event(
        self,
        status: int,
        message: str,
        code: str,
        *,
        id: str = "",
        model: str = "",
        created: int = 0,
        sequence: int = 0,
        json_array: bool = False,
        envelope: bool = False,
    ) -> bytes: ...

    def write_keep_alive(self, *, id: str, model: str, created: int, sequence: int = 0, json_array: bool = False) -> bytes: ...

    def error_of(self, document: JsonObject) -> ProviderError | None: ...

    def is_content(self, data: bytes) -> bool: ...


_MODULES: Mapping[Dialect, _Module] = {
    Dialect.MESSAGES: messages,
    Dialect.CHAT: chat,
    Dialect.RESPONSES: responses,
    Dialect.GEMINI: gemini,
}

KEEP_ALIVE: Mapping[Dialect, bytes] = {dialect: module.KEEP_ALIVE for dialect, module in _MODULES.items()}
"""Bytes that keep a connection open at any moment between two events."""


def write_error(
    dialect: Dialect,
    status: int,
    message: str,
    code: str,
    details: Mapping[str, object] | None = None,
    *,
    json_array: bool = False,
) -> bytes:
    """The body of an error answer. `json_array` where the client asked for a stream that is an array."""
    return _MODULES[dialect].write_error(status, message, code, details, json_array=json_array)


def write_error_event(
    dialect: Dialect,
    status: int,
    message: str,
    code: str,
    *,
    id: str = "",
    model: str = "",
    created: int = 0,
    sequence: int = 0,
    json_array: bool = False,
    envelope: bool = False,
) -> bytes:
    """The error that ends a stream which has begun. `id` and `sequence` matter to Responses alone."""
    return _MODULES[dialect].write_error_event(
        status,
        message,
        code,
        id=id,
        model=model,
        created=created,
        sequence=sequence,
        json_array=json_array,
        envelope=envelope,
    )


def write_keep_alive(
    dialect: Dialect, *, id: str, model: str, created: int, sequence: int = 0, json_array: bool = False
) -> bytes:
    """What resets every client's idle timer once the stream has begun; `KEEP_ALIVE` does not reset Codex's."""
    return _MODULES[dialect].write_keep_alive(id=id, model=model, created=created, sequence=sequence, json_array=json_array)


def error_of(dialect: Dialect, document: JsonObject) -> ProviderError | None:
    """The error that the first event, or the whole body of a 200, is instead of an answer."""
    return _MODULES[dialect].error_of(document)


def is_content(dialect: Dialect, data: bytes) -> bool:
    """Whether this event's data carries or starts the answer: from here on nothing can be taken back."""
    return _MODULES[dialect].is_content(data)


def headers_for(stream: bool, json_array: bool = False) -> dict[str, str]:
    """The headers that say what the body is."""
    if stream and not json_array:
        return {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    return {"content-type": "application/json"}


def events_for(json_array: bool = False) -> Events | ArrayItems:
    """A reader for a provider's stream."""
    return ArrayItems() if json_array else Events()


__all__ = [
    "KEEP_ALIVE",
    "error_of",
    "events_for",
    "headers_for",
    "is_content",
    "write_error",
    "write_error_event",
    "write_keep_alive",
]
