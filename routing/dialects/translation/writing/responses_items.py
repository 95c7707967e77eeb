"""The messages of a conversation as items of OpenAI Responses' input.

1. Every call has its output and every output its call: one that is missing is said to be missing, one that is alone is told by
   the user. Ids are unique; some providers count from the beginning in every answer.
2. An answer does not end in reasoning: the API refuses reasoning whose item is not there.
3. A system message in the middle is a developer message in its place.
4. What the assistant said has an id made from its place and text: the official types want one, and the same one every time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field

from ....values import Dialect, JsonObject
from ..ids import digest, fitting
from ..neutral import Block, Feature, LeftOut, Media, Message, Seal, Text, Thought, ToolResult, ToolUse
from .responses_parts import told, write_output, write_part, write_parts, write_text
from .responses_tools import Names

_ID = re.compile(r"[a-zA-Z0-9_.:-]+")
_LONGEST_ID = 64
_MISSING = "(The result of this call is missing.)"
_SEALED = ("id", "summary", "content", "encrypted_content")
_COMPACTED = ("compaction", "compaction_summary", "context_compaction")


class History(Struct):
    """What is written so far."""

    names: Names
    left: LeftOut
    maker: str
    items: list[JsonObject] = field(default_factory=list)
    waiting: dict[str, list[JsonObject]] = field(default_factory=dict)
    """Outputs that calls wait for, by the client's id of the call; they lack what the tool answered."""
    ids: set[str] = field(default_factory=set)
    answering: bool = False
    """The user has spoken since the last call."""


def write_items(messages: Iterable[Message], names: Names, left: LeftOut, *, maker: str) -> list[JsonObject]:
    history = History(names, left, maker)
    for message in messages:
        match message.role:
            case "assistant":
                _assistant(history, message.blocks)
            case "user":
                _user(history, message.blocks)
            case "system":
                _message(history, "developer", write_parts(message.blocks, left))
    _fill_missing(history)
    return history.items


def _message(history: History, role: str, content: list[JsonObject]) -> None:
    if content:
        history.items.append({"type": "message", "role": role, "content": content})


# --- the assistant ----------------------------------------------------------------------------------------------------


def _assistant(history: History, blocks: Iterable[Block]) -> None:
    if history.answering:
        _fill_missing(history)
    said: list[JsonObject] = []
    for block in blocks:
        match block:
            case Thought():
                _thought(history, block, said)
            case ToolUse():
                said.append(_call(history, block))
            case Text() if block.text.strip():
                _said_text(history, block.text, said)
            case Media():
                history.left.add(Feature.ASSISTANT_MEDIA, block.name)
            case ToolResult():
                _said_text(history, _flat(told(block, history.left)), said)
    while said and said[-1]["type"] == "reasoning":
        said.pop()
        history.left.add(Feature.THOUGHTS, "at the end of an answer")
    history.items += said


def _said_text(history: History, text: str, said: list[JsonObject]) -> None:
    """Texts in a row are parts of one message."""
    part: JsonObject = {"type": "output_text", "text": text, "annotations": []}
    last = said[-1] if said else None
    if last is not None and isinstance(content := last.get("content"), list) and last["type"] == "message":
        content.append(part)
        return
    place = len(history.items) + len(said)
    id = f"msg_{digest(f'{place} {text}', 24)}"
    said.append({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part]})


def _flat(parts: Iterable[JsonObject]) -> str:
    return "\n".join(str(part["text"]) for part in parts if part["type"] == "input_text")


def _thought(history: History, thought: Thought, said: list[JsonObject]) -> None:
    item = _sealed(thought.seal, history.maker) if thought.seal else None
    if item is None:
        history.left.add(Feature.THOUGHTS)
    else:
        said.append(item)


def _sealed(seal: Seal, maker: str) -> JsonObject | None:
    """The item whose seal this is; None where another made it, or where it holds nothing that its maker could read."""
    if seal.dialect is not Dialect.RESPONSES or seal.maker not in ("", maker):
        return None
    payload = {name: seal.payload[name] for name in _SEALED if seal.payload.get(name)}
    if seal.payload.get("type") in _COMPACTED:
        return {"type": seal.payload["type"], **payload}
    if not payload.get("encrypted_content") and not payload.get("content"):
        return None  # an id alone: nothing is stored, so its provider would look for it in vain
    return {"type": "reasoning", "summary": [], **payload}


def _call(history: History, call: ToolUse) -> JsonObject:
    if call.seal is not None:
        history.left.add(Feature.THOUGHTS, "seal of a call")
    id = fitting(call.id or "call", _ID, _LONGEST_ID)
    if id in history.ids:
        id = f"{id[: _LONGEST_ID - 9]}_{digest(f'{id} {len(history.ids)}', 8)}"
    history.ids.add(id)
    kind = "custom_tool_call" if call.custom else "function_call"
    history.waiting.setdefault(call.id, []).append({"type": f"{kind}_output", "call_id": id})
    history.answering = False
    name = history.names.of(call.name, call.namespace, custom=call.custom)
    written = {"input": call.arguments} if call.custom else {"arguments": call.arguments.strip() or "{}"}
    return {"type": kind, "call_id": id, "name": name, **written}


# --- the user ---------------------------------------------------------------------------------------------------------


def _user(history: History, blocks: Iterable[Block]) -> None:
    content: list[JsonObject] = []
    for block in blocks:
        match block:
            case ToolResult() if waiting := history.waiting.get(block.id):
                _message(history, "user", content)
                content = []
                history.items.append({**waiting.pop(0), "output": write_output(block, history.left)})
            case ToolResult():
                content += told(block, history.left)
            case ToolUse():
                content += write_text(f"{block.name} was used: {block.arguments}")
            case Thought():
                history.left.add(Feature.THOUGHTS)
            case _:
                content += write_part(block, history.left)
    _message(history, "user", content)
    history.answering = True


def _fill_missing(history: History) -> None:
    history.items += [{**output, "output": _MISSING} for outputs in history.waiting.values() for output in outputs]
    history.waiting.clear()
