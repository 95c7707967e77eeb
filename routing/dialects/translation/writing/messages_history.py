"""The messages of a conversation as the API takes them.

1. User and assistant take turns, the user first; neighbours of one side are one message.
2. A call's result stands at the beginning of the message behind it. A result that is missing is said to be missing; one
   without its call, or in another place, is told as text.
3. A system message in the middle is a system message where the model listens to those (behind the user's, and not before
   another of the user's); anywhere else a `<system-reminder>` in the user's message, which Claude knows not to be typed.
4. What only a user may show (pictures of the assistant's, pictures of a failed result) stands in the user's message.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from ....values import JsonObject
from ...fields import arguments_of
from ..ids import digest, fitting
from ..neutral import (
    Block,
    Feature,
    LeftOut,
    Media,
    Message,
    Text,
    Thought,
    ToolResult,
    ToolUse,
)
from .messages_blocks import is_media, write_block, write_text, write_thought
from .messages_tools import Names

GO_ON = "continue"
"""What the user says where the conversation demands that somebody does."""
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 64
_MISSING = "(The result of this call is missing.)"
_NO_WORD = "(It failed and said nothing.)"
_THOUGHTS = ("thinking", "redacted_thinking")


class History(Struct):
    """What is written so far."""

    names: Names
    left: LeftOut
    maker: str
    messages: list[JsonObject] = field(default_factory=list)
    waiting: dict[str, deque[str]] = field(default_factory=dict)
    """Ids of the last message's calls that have no result yet, and the ids they were sent under."""
    ids: set[str] = field(default_factory=set)
    shown: list[JsonObject] = field(default_factory=list)
    """What the next user message has to show for the assistant."""


def instructions_of(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """The system messages at the beginning, and all others."""
    first = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    return messages[:first], messages[first:]


def write_instructions(messages: Iterable[Message], left: LeftOut) -> list[JsonObject]:
    blocks = [block for message in messages for block in message.blocks]
    return [wire for block in blocks for wire in _only_text(block, left)]


def write_history(messages: Iterable[Message], names: Names, left: LeftOut, *, maker: str, system: bool) -> list[JsonObject]:
    history = History(names, left, maker)
    for role, blocks in _in_turn(_that_say_something(messages, left), system=system):
        match role:
            case "assistant":
                _assistant(history, blocks)
            case "user":
                _user(history, blocks)
            case _:
                if content := [wire for block in blocks for wire in _only_text(block, left)]:
                    history.messages.append(_message("system", content))
    if history.waiting or history.shown:
        _user(history, [])
    if not history.messages or history.messages[0]["role"] != "user":
        history.messages.insert(0, _message("user", write_text(GO_ON)))
    return history.messages


# --- who speaks when --------------------------------------------------------------------------------------------------


def _that_say_something(messages: Iterable[Message], left: LeftOut) -> list[Message]:
    """Without messages of white space or thinking alone, which the API refuses."""
    found = []
    for message in messages:
        if any(block.text.strip() if isinstance(block, Text) else not isinstance(block, Thought) for block in message.blocks):
            found.append(message)
        elif any(isinstance(block, Thought) for block in message.blocks):
            left.add(Feature.THOUGHTS)
    return found


def _in_turn(messages: Sequence[Message], *, system: bool) -> list[tuple[str, list[Block]]]:
    """Roles with their blocks: neighbours joined, system messages where they may stand."""
    joined: list[tuple[str, list[Block]]] = []
    for message in messages:
        if joined and joined[-1][0] == message.role:
            joined[-1][1].extend(message.blocks)
        else:
            joined.append((message.role, list(message.blocks)))
    placed: list[tuple[str, list[Block]]] = []
    held: list[Block] = []
    for index, (role, blocks) in enumerate(joined):
        before = placed[-1][0] if placed else ""
        behind = joined[index + 1][0] if index + 1 < len(joined) else ""
        if role == "system":
            if system and before == "user" and behind != "user":
                placed.append((role, blocks))
                continue
            if before == "assistant" and behind == "assistant" and any(isinstance(block, ToolUse) for block in placed[-1][1]):
                held += _reminders(blocks)  # the results of these calls are still to come
                continue
            role, blocks = "user", _reminders(blocks)
        if role == "user":
            blocks, held = [*held, *blocks], []
        if role == before:
            placed[-1][1].extend(blocks)
        else:
            placed.append((role, blocks))
    if held:
        placed.append(("user", held))
    return placed


def _reminders(blocks: Iterable[Block]) -> list[Block]:
    return [
        Text(f"<system-reminder>\n{block.text}\n</system-reminder>") if isinstance(block, Text) else block for block in blocks
    ]


# --- messages ---------------------------------------------------------------------------------------------------------


def _message(role: str, content: list[JsonObject]) -> JsonObject:
    return {"role": role, "content": content}


def _assistant(history: History, blocks: Iterable[Block]) -> None:
    if history.waiting:  # a system message can stand between two of the assistant's
        _user(history, [])
    content: list[JsonObject] = []
    for block in blocks:
        match block:
            case Thought():
                if thought := write_thought(block, history.maker):
                    content.append(thought)
                else:
                    history.left.add(Feature.THOUGHTS)
            case ToolUse():
                content.append(_call(history, block))
            case Media():
                history.left.add(Feature.ASSISTANT_MEDIA)
                history.shown += [*write_text("This is what the assistant made:"), *write_block(block, history.left)]
            case Text():
                content += write_text(block.text)
            case ToolResult():
                content += write_text(_told(block))
    while content and content[-1]["type"] in _THOUGHTS:  # an answer cannot end in thinking
        content.pop()
        history.left.add(Feature.THOUGHTS, "at the end of an answer")
    if history.shown and not content:  # the message is kept: behind a system message only the assistant may speak
        content = write_text("(What the assistant made here is shown in the next message.)")
    if content:
        history.messages.append(_message("assistant", content))


def _call(history: History, call: ToolUse) -> JsonObject:
    if call.seal is not None:
        history.left.add(Feature.THOUGHTS, "seal of a call")
    name = history.names.of(call.name, call.namespace, custom=call.custom)
    id = fitting(call.id, _ID, _LONGEST_ID, prefix="toolu_")
    if id in history.ids:  # some providers count from the beginning in every answer
        id = f"{id[: _LONGEST_ID - 9]}_{digest(f'{id} {len(history.ids)}', 8)}"
    history.ids.add(id)
    history.waiting.setdefault(call.id, deque()).append(id)
    given: JsonObject = {"input": call.arguments} if call.custom else arguments_of(call.arguments)
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def _user(history: History, blocks: Sequence[Block]) -> None:
    results: list[JsonObject] = []
    others: list[JsonObject] = history.shown
    history.shown = []
    for block in blocks:
        match block:
            case ToolResult():
                if waiting := history.waiting.get(block.id):
                    result, beside = _result(block, waiting.popleft(), history.left)
                    results.append(result)
                    others += beside
                else:
                    others += write_text(_told(block))
                    others += [
                        wire for inner in block.blocks if isinstance(inner, Media) for wire in write_block(inner, history.left)
                    ]
            case Text() | Media():
                others += write_block(block, history.left)
            case ToolUse():
                others += write_text(f"{block.name} was used: {block.arguments}")
            case Thought():
                history.left.add(Feature.THOUGHTS)
    results += [{"type": "tool_result", "tool_use_id": id, "content": _MISSING} for ids in history.waiting.values() for id in ids]
    history.waiting = {}
    if content := [*results, *others]:
        last = history.messages[-1] if history.messages else None
        if last is not None and last["role"] == "user":
            last["content"] = [*_content(last), *content]
        else:
            history.messages.append(_message("user", content))


def _content(message: JsonObject) -> list[JsonObject]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _result(result: ToolResult, id: str, left: LeftOut) -> tuple[JsonObject, list[JsonObject]]:
    """The result, and what it cannot hold itself: a failed one holds text alone."""
    content = [wire for block in result.blocks for wire in write_block(block, left)]
    wire: JsonObject = {"type": "tool_result", "tool_use_id": id}
    beside: list[JsonObject] = []
    if result.error:
        wire["is_error"] = True
        if shown := [block for block in content if is_media(block)]:
            beside = [*write_text(f"This belongs to the failed call of {result.name or id}:"), *shown]
            content = [block for block in content if not is_media(block)] or write_text("(See below.)")
        content = content or write_text(_NO_WORD)
    alone = len(content) == 1 and content[0]["type"] == "text"
    wire["content"] = content[0]["text"] if alone else content or ""
    return wire, beside


def _told(result: ToolResult) -> str:
    said = "\n".join(block.text for block in result.blocks if isinstance(block, Text)).strip() or "nothing"
    how = "failed with" if result.error else "brought"
    return f"An earlier call of {result.name or 'a tool'} ({result.id}) {how}:\n{said}"


def _only_text(block: Block, left: LeftOut) -> list[JsonObject]:
    """A system message holds nothing else; what it showed becomes a note."""
    match block:
        case Text():
            return write_text(block.text)
        case Media():
            left.add(Feature.FILES, f"{block.kind} in a system message")
            return write_text(
                f"(Here stood a file that cannot be shown in this place: {block.name or block.media_type or block.kind}.)"
            )
        case _:
            return []
