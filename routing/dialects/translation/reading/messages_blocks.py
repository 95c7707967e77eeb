"""The content blocks of a Messages call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ....values import Dialect, JsonObject
from ...calls.editing import json_text, result_of
from ...fields import list_of, object_of, text_of
from .. import opaque
from ..neutral import Block, Feature, Media, Seal, Text, Thought, ToolResult, ToolUse
from .messages_served import SERVED, Served, read_served, served_in

Met: TypeAlias = list[tuple[Feature, str]]
"""What has no place in a `Conversation`."""

_UNSAID = frozenset(("fallback", "tool_addition", "tool_removal"))
"""Marks of the API's own; changes of tools are read with the tools."""


def read_blocks(content: Sequence[object], names: dict[str, str], met: Met) -> list[Block]:
    """`names` of tools by the ids of their calls: filled by calls, asked by results."""
    blocks: list[Block] = []
    call_seal: Seal | None = None
    served: Served | None = None
    for part in content:
        if not isinstance(part, dict):
            if isinstance(part, str) and part:
                blocks.append(Text(part))
            continue
        kind = part.get("type")
        if kind in ("thinking", "redacted_thinking"):
            thought = _thought(part)
            if thought.seal is not None and thought.seal.payload.get("for") == "call":
                call_seal = thought.seal
                thought = Thought(thought.text)
            if thought.text or thought.seal:
                blocks.append(thought)
        elif kind == "tool_use":
            blocks.append(_call(part, call_seal, names))
            call_seal = None
        elif kind == "tool_result":
            blocks.append(_result(part, names, met))
        elif isinstance(kind, str) and kind in SERVED:
            served = served or served_in(content)
            blocks += read_served(part, served)
            met.append((Feature.SERVER_RESULTS, kind.removesuffix("_tool_result")))
        else:
            blocks += _plain(part, met)
    return blocks


def _thought(part: JsonObject) -> Thought:
    field = "signature" if part.get("type") == "thinking" else "data"
    word = text_of(part.get(field))
    seal = opaque.unwrap(word) or Seal(Dialect.MESSAGES, "", {field: word}) if word else None
    return Thought(text_of(part.get("thinking")), seal)


def _call(part: JsonObject, seal: Seal | None, names: dict[str, str]) -> ToolUse:
    id, name = text_of(part.get("id")), text_of(part.get("name"))
    names[id] = name
    return ToolUse(id, name, json_text(part.get("input") or {}), seal=seal, cached=_marked(part))


def _result(part: JsonObject, names: dict[str, str], met: Met) -> ToolResult:
    id, content = text_of(part.get("tool_use_id")), result_of(part.get("content"))
    if isinstance(content, str):
        blocks: list[Text | Media] = [Text(content)] if content else []
    else:
        blocks = [block for inner in content for block in _plain(_part_of(inner), met)]
    error = part.get("is_error") is True
    return ToolResult(id, tuple(blocks), error=error, name=names.get(id, ""), cached=_marked(part))


def _part_of(inner: object) -> JsonObject:
    return {"type": "text", "text": inner} if isinstance(inner, str) else object_of(inner)


def _plain(part: JsonObject, met: Met) -> list[Text | Media]:
    """Text, pictures and files: what may stand in a message and in a tool's result."""
    kind = text_of(part.get("type"))
    if read := _PLAIN.get(kind):
        return read(part, met)
    if isinstance(part.get("text"), str):
        return _text(part, met)
    if kind not in _UNSAID:
        met.append((Feature.OTHER, f"{kind or 'unnamed'} block"))
    return []


def _text(part: JsonObject, met: Met) -> list[Text | Media]:
    if list_of(part.get("citations")):
        met.append((Feature.CITATIONS, ""))
    text = text_of(part.get("text"))
    return [Text(text, _marked(part))] if text else []


def _image(part: JsonObject, met: Met) -> list[Text | Media]:
    source, cached = object_of(part.get("source")), _marked(part)
    match source.get("type"):
        case "base64":
            media_type = text_of(source.get("media_type"))
            return [Media("image", media_type=media_type, data=text_of(source.get("data")), cached=cached)]
        case "url":
            return [Media("image", url=text_of(source.get("url")), cached=cached)]
        case "file":
            return [Media("image", file_id=text_of(source.get("file_id")), cached=cached)]
    met.append((Feature.FILES, "picture of an unknown source"))
    return []


def _document(part: JsonObject, met: Met) -> list[Text | Media]:
    source, name = object_of(part.get("source")), text_of(part.get("title"))
    if object_of(part.get("citations")).get("enabled") is True:
        met.append((Feature.CITATIONS, ""))
    about = text_of(part.get("context"))
    blocks: list[Text | Media] = [Text(f"About the document {name or 'that follows'}: {about}")] if about else []
    found = _file(source, name, _marked(part), met)
    if not found:
        met.append((Feature.FILES, "document of an unknown source"))
    return [*blocks, *found]


def _file(source: JsonObject, name: str, cached: bool, met: Met) -> list[Text | Media]:
    match source.get("type"):
        case "base64":
            media_type = text_of(source.get("media_type")) or "application/pdf"
            return [Media("file", media_type=media_type, data=text_of(source.get("data")), name=name, cached=cached)]
        case "text":
            return [_text_file(text_of(source.get("data")), text_of(source.get("media_type")), name, cached)]
        case "url":
            return [Media("file", media_type="application/pdf", url=text_of(source.get("url")), name=name, cached=cached)]
        case "file":
            return [Media("file", file_id=text_of(source.get("file_id")), name=name, cached=cached)]
        case "content":
            content = source.get("content")
            if isinstance(content, str):
                return [_text_file(content, "", name, cached)]
            inner = [block for piece in list_of(content) for block in _plain(object_of(piece), met)]
            return [Text(f"{name}:"), *inner] if name and inner else inner
    return []


def _text_file(text: str, media_type: str, name: str, cached: bool) -> Media:
    return Media("file", media_type=media_type or "text/plain", text=text, name=name, cached=cached)


def _search_result(part: JsonObject, met: Met) -> list[Text | Media]:
    """A result that the client itself found, for the model to cite."""
    if object_of(part.get("citations")).get("enabled") is True:
        met.append((Feature.CITATIONS, ""))
    texts = [text_of(object_of(piece).get("text")) for piece in list_of(part.get("content"))]
    lines = (text_of(part.get("title")), text_of(part.get("source")), *texts)
    return [Text("\n".join(line for line in lines if line), _marked(part))]


def _tool_reference(part: JsonObject, met: Met) -> list[Text | Media]:
    return [Text(f"Tool found: {text_of(part.get('tool_name'))}")]


def _uploaded(part: JsonObject, met: Met) -> list[Text | Media]:
    return [Media("file", file_id=text_of(part.get("file_id")), cached=_marked(part))]


def _summary(part: JsonObject, met: Met) -> list[Text | Media]:
    """What stands for the messages before it, which the API itself folded."""
    if part.get("encrypted_content") or part.get("signature"):
        met.append((Feature.CONTEXT_MANAGEMENT, "seal of a summary"))
    text = text_of(part.get("content"))
    return [Text(text, _marked(part))] if text else []


_PLAIN: dict[str, Callable[[JsonObject, Met], list[Text | Media]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "tool_reference": _tool_reference,
    "container_upload": _uploaded,
    "compaction": _summary,
}


def _marked(part: JsonObject) -> bool:
    return bool(part.get("cache_control"))
