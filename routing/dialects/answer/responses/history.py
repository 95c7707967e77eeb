"""OpenAI Responses: what was said as output items, for the next call, and for what an answer tells again at its end."""

from __future__ import annotations

from ....values import Dialect, JsonObject
from ...fields import list_of, text_of
from ...translation.hearing.responses_items import WRITTEN
from ...translation.neutral import Seal
from ...translation.seals import wrap
from ...translation.telling.responses_items import message_item, text_part
from ...translation.telling.words import told_media
from ..events import Block
from ..said import Content, arguments_of
from .items import as_history


def history(content: Content) -> tuple[JsonObject, ...]:
    """Native items stay as they are, each with what belongs to it: reasoning before its call."""
    items: list[JsonObject] = []
    for block, growing in content.blocks.items():
        text = str(growing)
        if block.foreign:
            items += [] if content.broke_off_in(block) else _made(block, text)
        elif block.native is not None:
            items.append(item_of(block, text))
    stored = not any(field.name == "not stored" for field in content.fields)
    return as_history(items, stored=stored and not any(block.foreign for block in content.blocks))


def item_of(block: Block, text: str) -> JsonObject:
    """A native item as its provider ended it, or would have."""
    item = block.native or {}
    kind = text_of(item.get("type"))
    if kind == "message" and not list_of(item.get("content")):
        return {**item, "content": [text_part(text)] if text else []}
    key = WRITTEN.get(kind)
    named = {"name": block.name} if key and block.name and not item.get("name") else {}
    called = {"call_id": block.id} if key and block.id and not item.get("call_id") else {}
    return {**item, **named, **called, key: text} if key and text and not item.get(key) else {**item, **named, **called}


def seal_fields(seal: Seal | None) -> JsonObject:
    if seal is None:
        return {}
    if seal.dialect is not Dialect.RESPONSES:
        return {"encrypted_content": wrap(seal)}
    return {name: value for name in ("content", "encrypted_content") if (value := seal.payload.get(name))}


def _made(block: Block, text: str) -> list[JsonObject]:
    """What another dialect said."""
    if block.kind == "call":
        sealed: list[JsonObject] = [] if block.seal is None else [{"type": "reasoning", "summary": [], **seal_fields(block.seal)}]
        if block.as_custom and block.custom:
            return [*sealed, {"type": "custom_tool_call", "call_id": block.id, "name": block.name, "input": text}]
        written = arguments_of(block, text) or "{}"
        return [*sealed, {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": written}]
    if block.kind == "thought":
        summary = [{"type": "summary_text", "text": text}] if text else []
        return [{"type": "reasoning", "summary": summary, **seal_fields(block.seal)}] if summary or block.seal else []
    if block.kind == "media" and block.media is not None:
        text = told_media(block.media)
    return [message_item("", [text_part(text)], "completed")] if text and block.kind in ("text", "media") else []
