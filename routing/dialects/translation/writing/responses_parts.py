"""Texts, pictures and files as OpenAI Responses takes them from the user's side.

What cannot be shown is said to have been there: a message never quietly lacks a part.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....values import JsonObject
from ..neutral import Block, Feature, LeftOut, Media, Text, ToolResult

_DETAILS = ("auto", "low", "high", "original")
_UNKNOWN_KINDS: dict[str, Feature] = {"audio": Feature.AUDIO, "video": Feature.VIDEO}
_NAMES = {
    "application/pdf": "document.pdf",
    "text/plain": "document.txt",
    "text/markdown": "document.md",
    "text/csv": "table.csv",
}
"""Of files without a name: the API tells the kind of a file from it."""
_FILE_ID = "file-"
"""What ids of OpenAI's own files begin with; any other belongs to another provider."""


def write_text(text: str) -> list[JsonObject]:
    return [{"type": "input_text", "text": text}] if text.strip() else []


def write_parts(blocks: Iterable[Block], left: LeftOut) -> list[JsonObject]:
    return [part for block in blocks for part in write_part(block, left)]


def write_part(block: Block, left: LeftOut) -> list[JsonObject]:
    match block:
        case Text():
            return write_text(block.text)
        case Media(text=text) if text:
            return write_text(f"{block.name}:\n{text}" if block.name else text)
        case Media(kind="image" | "file"):
            return [_image(block, left) if block.kind == "image" else _file(block)] if _can_be_sent(block) else _gone(block, left)
        case Media():
            return _gone(block, left)
    return []


def write_output(result: ToolResult, left: LeftOut) -> str | list[JsonObject]:
    """What a tool answered: plain text where it is nothing else. The dialect has no mark for a failure: the text says so."""
    failed = [Text("The call failed:")] if result.error else []
    parts = write_parts([*failed, *result.blocks], left)
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def told(result: ToolResult, left: LeftOut) -> list[JsonObject]:
    """A result whose call is not there: the API takes none, so the user tells of it."""
    how = "failed with" if result.error else "brought"
    head = f"An earlier call of {result.name or 'a tool'} ({result.id}) {how}:"
    return write_text(head) + (write_parts(result.blocks, left) or write_text("nothing"))


def _can_be_sent(media: Media) -> bool:
    return bool(media.data) or media.url.startswith(("https://", "http://")) or media.file_id.startswith(_FILE_ID)


def _gone(media: Media, left: LeftOut) -> list[JsonObject]:
    link = Feature.IMAGE_LINKS if media.kind == "image" and media.url else Feature.FILE_LINKS
    feature = _UNKNOWN_KINDS.get(media.kind, link)
    left.add(feature, media.name or media.url or media.file_id)
    called = f" ({media.name or media.url})" if media.name or media.url else ""
    return write_text(f"[Here stood a {media.kind}{called} that cannot be shown to this model.]")


def _image(image: Media, left: LeftOut) -> JsonObject:
    if image.detail and image.detail not in _DETAILS:
        left.add(Feature.IMAGE_DETAIL, image.detail)
    written: JsonObject = {"type": "input_image", "detail": image.detail if image.detail in _DETAILS else "auto"}
    if image.file_id:
        return {**written, "file_id": image.file_id}
    return {**written, "image_url": _data_url(image, "image/png") if image.data else image.url}


def _file(file: Media) -> JsonObject:
    written: JsonObject = {"type": "input_file"}
    if file.file_id:
        return {**written, "file_id": file.file_id}
    if file.url:
        return {**written, "file_url": file.url}
    name = file.name or _NAMES.get(file.media_type, "document")
    return {**written, "filename": name, "file_data": _data_url(file, "application/octet-stream")}


def _data_url(media: Media, kind: str) -> str:
    return f"data:{media.media_type or kind};base64,{media.data}"
