"""What the router looks at in a call.

1. Only the newest message decides what the call is about; older images and older words do not count.
2. A tool hop is a call whose newest message brings tool results and nothing that a person typed. Text that a tool wraps around
   its own remarks (`<system-reminder>…`) is not typed by a person.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ..values import Call, Caller, Kind, Media, Message, Part, Role, Text, ToolCall, ToolResult
from .tools import ALWAYS_DECLARED, ToolCategory, strongest

_HEAD = 200
TEXT_SAMPLE = 2000
"""Characters of the user's text that the classifier reads."""


class Features(Struct, frozen=True):
    """A call as the classifier sees it."""

    role: Role = "user"
    """Who speaks in the newest message; system items and a tool's own remarks do not count."""
    tool_hop: bool = False
    text: str = ""
    """The newest text that a person typed, its first 2000 characters."""
    media: frozenset[str] = frozenset()
    """Kinds of media in the newest message, if that is the user's."""
    tools: tuple[str, ...] = ()
    """Declared tools that say something about the call."""
    last_tool: ToolCategory | None = None
    """What the last assistant message with tool calls did."""
    tokens: int = 0
    structured: bool = False
    model: str = ""
    """The model that is asked for."""
    kind: Kind = Kind.MAIN
    agent: str = ""
    """A subagent's type, where its tool tells it."""
    plan: bool = False
    """The tool only plans, and changes nothing."""

    @property
    def from_user(self) -> bool:
        return self.role == "user" and not self.tool_hop

    @property
    def image(self) -> bool:
        return "image" in self.media


def read_features(
    call: Call, caller: Caller, tokens: int, typed_text: str | None = None, *, model: str = "", plan: bool = False
) -> Features:
    """`typed_text` is what a person typed in the newest message that has any, where the caller knows it better than we can.

    `model`: the one that is asked for, where that is not the client's own. `plan`: its tool only plans.
    """
    newest = _newest(call.messages)
    hop = newest is not None and _is_tool_hop(newest, typed_text)
    last_calls = next((calls for message in reversed(call.messages) if (calls := _calls(message))), [])
    media = frozenset(part.kind for part in newest.parts if isinstance(part, Media)) if newest else frozenset[str]()
    return Features(
        role="tool" if hop else newest.role if newest else "user",
        tool_hop=hop,
        text=(_newest_text(call.messages) if typed_text is None else typed_text)[:TEXT_SAMPLE],
        media=media if newest and newest.role == "user" and not hop else frozenset(),
        tools=tuple(name for name in call.tools if name not in ALWAYS_DECLARED),
        last_tool=strongest(last_calls),
        tokens=tokens,
        structured=call.structured,
        model=model or call.model,
        kind=caller.kind if call.endpoint.action == "generate" else Kind.MAIN,
        agent=caller.agent,
        plan=plan,
    )


def _newest(messages: list[Message]) -> Message | None:
    """The newest message that somebody or some tool really said."""
    fallback: Message | None = None
    for message in reversed(messages):
        if message.role == "system" or message.is_sealed:
            continue
        fallback = fallback or message
        if message.role != "user" or any(isinstance(part, Media | ToolResult) or _is_said(part) for part in message.parts):
            return message
    return fallback


def _is_tool_hop(message: Message, typed_text: str | None) -> bool:
    if message.role == "tool":
        return True
    if message.role != "user" or not any(isinstance(part, ToolResult) for part in message.parts):
        return False
    typed = _typed(message)
    if typed_text is None or not typed:
        return not typed
    # The caller's text may come from an older message: it must be found in this one to make it the person's.
    wanted = typed_text.strip()
    return not wanted or not (wanted in typed or typed in wanted)


def _calls(message: Message) -> list[ToolCall]:
    return [part for part in message.parts if isinstance(part, ToolCall)] if message.role == "assistant" else []


def _newest_text(messages: list[Message]) -> str:
    return next((typed for message in reversed(messages) if message.role == "user" and (typed := _typed(message))), "")


def _typed(message: Message) -> str:
    return "\n".join(part.text.strip() for part in message.parts if isinstance(part, Text) and _is_said(part))


def _is_said(part: Part) -> bool:
    """It is a text, and nothing that a tool put between its own marks. A long one is not copied to tell that."""
    if not isinstance(part, Text) or not part.text or part.text.isspace():
        return False
    return part.text[:_HEAD].lstrip()[:1] not in ("", "<") or not _wrapped(part.text.strip())


_OPENING = re.compile(r"<([A-Za-z][\w.-]{0,63})[\s>]")


def _wrapped(text: str) -> bool:
    """The whole text stands between a tool's own marks."""
    opening = _OPENING.match(text)
    return opening is not None and text.endswith(f"</{opening[1]}>")
