"""Anthropic Messages: what was said as content blocks, for the next call, and for a client that wants JSON."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import arguments_of as object_in
from ...fields import is_blank, list_of, text_of
from ...translation.neutral import Media
from ...translation.telling.messages_blocks import as_object, is_redacted, placeholder, sealed_block, word_of
from ..events import Block
from ..said import Content, arguments_of

_GROWN = {"text": "text", "thought": "thinking"}
"""Kind of block → the field that holds what its pieces add up to."""


def history(content: Content) -> tuple[JsonObject, ...]:
    """One message; a history takes no empty one, and no text of nothing but white space."""
    kept = [block for block in blocks(content) if block.get("type") != "text" or not is_blank(text_of(block.get("text")))]
    return ({"role": "assistant", "content": kept},) if kept else ()


def blocks(content: Content) -> list[JsonObject]:
    out: list[JsonObject] = []
    seals: list[JsonObject] = []
    """They stand behind a text: a seal at the very end is left out, since `claude -p` prints the last block if that is a text."""
    for block, growing in content.blocks.items():
        text = str(growing)
        if content.leaves_out(block):
            continue
        if block.native is not None and not block.foreign:
            out.append(_native(block, text, content.extras.get(block, [])))
            continue
        if block.kind == "thought" and not text and block.seal is not None and out and out[-1]["type"] == "text":
            seals.append(sealed_block(block.seal))
            continue
        if block.kind == "media" and block.media is not None:
            _add_media(out, block.media)
        elif made := _made(block, text):
            out += [*seals, *made]
            seals = []
    return out


def _native(block: Block, text: str, extras: list[JsonObject]) -> JsonObject:
    whole = dict(block.native or {})
    grown = _GROWN.get(block.kind, "input")
    if grown == "input":
        if text or block.kind == "call":
            whole["input"] = object_in(text)
    elif text or grown in whole:
        whole[grown] = text
    for extra in extras:
        for name, value in extra.items():
            if name == "citation":
                whole["citations"] = [*list_of(whole.get("citations")), value]
            elif name != "type":
                whole[name] = value
    return whole


def _made(block: Block, text: str) -> list[JsonObject]:
    """A block of another dialect's."""
    seal = block.seal
    if block.kind == "text":
        return [{"type": "text", "text": text}] if text else []
    if block.kind == "call":
        call: JsonObject = {"type": "tool_use", "id": block.id, "name": block.name}
        given = {**call, "input": object_in(as_object(arguments_of(block, text)))}
        return [sealed_block(seal), given] if seal is not None else [given]
    if block.kind != "thought":
        return []
    if seal is not None and not is_redacted(seal):
        return [{"type": "thinking", "thinking": text, "signature": word_of(seal)}]
    told: list[JsonObject] = [{"type": "thinking", "thinking": text, "signature": ""}] if text else []
    return [*told, sealed_block(seal)] if seal is not None else told


def _add_media(out: list[JsonObject], media: Media) -> None:
    """What these blocks cannot hold, told in the text that is there."""
    if out and out[-1]["type"] == "text":
        out[-1] = {**out[-1], "text": text_of(out[-1]["text"]) + placeholder(media, alone=False)}
    else:
        out.append({"type": "text", "text": placeholder(media, alone=True)})
