"""What a model said in one round, read from its answer whatever the dialect and the form."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.calls.replacing import view_of
from ..dialects.fields import is_blank
from ..values import Dialect, FinishReason, JsonObject, Media, Other, ProviderError, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Said:
    """One round's answer, or (a merger's `shown`) the whole answer as the client received it."""

    text: str
    """The visible text; its pieces joined as they came, without thinking."""
    calls: tuple[ToolCall, ...]
    """All tool calls in order, ours included; `arguments` is the model's JSON text."""
    own: tuple[ToolCall, ...]
    """Those of the calls whose tool is ours: the client never sees them."""
    finish: FinishReason
    usage: Usage
    id: str
    """The provider's id of this answer; empty where it tells none."""
    native: tuple[JsonObject, ...]
    """What stands for this answer in the dialect's own history: signed thinking, unknown blocks and our own calls included.

    Empty where the model said nothing that a history may hold.
    """
    complete: bool = True
    """False where the answer did not come to its own end: its terminal event is missing, or an error stands in its place."""
    error: ProviderError | None = None
    """The error event (or, in JSON, the error document) that ended the round."""


def is_empty(said: Said, dialect: Dialect) -> bool:
    """The model ended its turn without a word, a call, or anything else but thinking."""
    if not said.complete or said.error is not None or said.finish != "stop" or said.calls or said.own or not is_blank(said.text):
        return False
    views = (view_of(dialect, place, item) for place, item in enumerate(said.native))
    return not any(isinstance(part, Media | Other) for view in views for part in view.parts)


_ASKS_CLIENT = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
        "mcp_approval_request",
    }
)
"""Items of a Responses answer that are the client's to answer."""
_UNFINISHED = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Blocks of a Messages answer after which the provider or the client goes on, not the person (`pause_turn`)."""


def waits_for_client(native: tuple[JsonObject, ...]) -> bool:
    """What the model said asks for something before anybody speaks again, though it may be no call of a declared tool."""
    for item in native:
        content = item.get("content")
        last = content[-1] if isinstance(content, list) and content else None
        if item.get("type") in _ASKS_CLIENT or (isinstance(last, dict) and last.get("type") in _UNFINISHED):
            return True
    return False
