"""What a model said in one round, as plugins know it."""

from __future__ import annotations

from ..values import Dialect, JsonObject, Media, Other
from .answer.said import Said
from .calls.replacing import view_of
from .fields import is_blank

__all__ = ["Said", "is_empty", "waits_for_client"]


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
