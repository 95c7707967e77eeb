"""OpenAI Responses' output items: what they say, and as a history holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....errors import RouteCodexError
from ....jsonbytes import Joined, joined
from ....values import Dialect, JsonObject, Message
from ...calls.replacing import view_of
from ...fields import is_blank, list_of, text_of

HIDDEN = frozenset(
    (
        "reasoning",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
        "mcp_list_tools",
        "tool_search_call",
    )
)
"""Items that tell how the model came to its answer. They cannot stand inside a text that goes on: of a later round only the
history holds them."""
WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of calls, and where what the model wrote for the tool stands in each: events that tell it are called after both."""
TEXT = "output_text"

_WITHOUT_ID = frozenset(("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"))
"""Items that a provider takes without an id. With one, and nothing stored, it looks for the item in vain and refuses the call."""


def parts_of(item: JsonObject) -> list[JsonObject]:
    """The parts of a message; nothing else has any."""
    if item.get("type") != "message":
        return []
    return [part for part in list_of(item.get("content")) if isinstance(part, dict)]


def text_in(items: Iterable[JsonObject]) -> str | Joined:
    texts = [part.get("text") for item in items for part in parts_of(item) if part.get("type") == TEXT]
    return joined([one for text in texts for one in (text.parts if isinstance(text, Joined) else (text_of(text),))])


def _view(item: JsonObject) -> Message | None:
    """The item as a history is read; None for one that no history may hold."""
    try:
        return view_of(Dialect.RESPONSES, 0, item)
    except RouteCodexError:
        return None


def as_history(items: Sequence[JsonObject], *, stored: bool) -> tuple[JsonObject, ...]:
    """The items as input.

    Where the provider stores nothing, they go without the ids that it would look for, and reasoning that is nothing but an id
    stays away. Encrypted reasoning travels in any case; `for_target` takes it off for others.
    """
    kept = [{name: value for name, value in item.items() if value is not None} for item in items if _says_something(item)]
    if stored:
        return tuple(kept)
    return tuple(
        {name: value for name, value in item.items() if name != "id"} if item.get("type") in _WITHOUT_ID else item
        for item in kept
        if item.get("type") != "reasoning" or item.get("encrypted_content") or item.get("content")
    )


def _says_something(item: JsonObject) -> bool:
    """An empty message is refused as input, and so may be one of nothing but white space."""
    if _view(item) is None:
        return False
    return item.get("type") != "message" or any(
        part.get("type") != TEXT or not is_blank(text_of(part.get("text"))) for part in parts_of(item)
    )


def continued_item(message: JsonObject, more: JsonObject) -> JsonObject:
    """A message's own fields; how it ended and which phase it belongs to are what its last piece says."""
    return {**message, **{name: more[name] for name in ("status", "phase") if more.get(name) is not None}}


def moved_annotation(annotation: object, by: int) -> object:
    if not isinstance(annotation, dict):
        return annotation
    places = {name: annotation.get(name) for name in ("start_index", "end_index")}
    return {**annotation, **{name: place + by for name, place in places.items() if isinstance(place, int)}}
