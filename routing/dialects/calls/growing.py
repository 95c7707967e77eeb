"""A call that grows: messages behind its history, a tool beside its own. One table, four modules with the same functions.

1. The call given is never written to; the new one shares everything that did not change.
2. Roles stay in an order that the dialect takes; nothing empty is ever written.
3. The same call with the same additions gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...values import Call, Dialect, JsonObject, ToolCall
from . import grow_chat, grow_gemini, grow_messages, grow_responses


class _Growing(Protocol):
    """What each of the four modules offers, in this order."""

    def write_user(self, text: str) -> JsonObject: ...
    def write_results(self, results: Sequence[tuple[ToolCall, str, bool]]) -> tuple[JsonObject, ...]: ...
    def with_messages(self, call: Call, items: Sequence[JsonObject]) -> Call: ...
    def with_tool(self, call: Call, name: str, description: str, schema: JsonObject, *, strict: bool) -> Call: ...


_DIALECTS: Mapping[Dialect, _Growing] = {
    Dialect.MESSAGES: grow_messages,
    Dialect.CHAT: grow_chat,
    Dialect.RESPONSES: grow_responses,
    Dialect.GEMINI: grow_gemini,
}


def write_user(dialect: Dialect, text: str) -> JsonObject:
    """A message of the user, as it stands in the dialect's history."""
    return _DIALECTS[dialect].write_user(text)


def write_results(dialect: Dialect, results: Sequence[tuple[ToolCall, str, bool]]) -> tuple[JsonObject, ...]:
    """What tools answered, in the order of their calls: (call, text, whether it is an error)."""
    return _DIALECTS[dialect].write_results(results)


def with_messages(call: Call, items: Sequence[JsonObject]) -> Call:
    """A new call whose history goes on with these (`Said.native`, `write_results`, `write_user`)."""
    return _DIALECTS[call.endpoint.dialect].with_messages(call, items)


def with_tool(call: Call, name: str, description: str, schema: JsonObject, *, strict: bool) -> Call:
    """A new call that offers one more tool, behind the client's own. `strict` where the dialect knows it."""
    return _DIALECTS[call.endpoint.dialect].with_tool(call, name, description, schema, strict=strict)
