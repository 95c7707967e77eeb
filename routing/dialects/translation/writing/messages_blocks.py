"""Single blocks in the words of Messages: text, pictures, documents, thinking.

What the API refuses becomes a short note in its place, so that the model knows that something stood there.
"""

from __future__ import annotations

import binascii
from base64 import b64decode

from ....values import Dialect, JsonObject
from ..neutral import Feature, LeftOut, Media, Seal, Text, Thought

_PICTURES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_MAGIC = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How pictures begin in base64. The API refuses a picture that is not of the kind that it is said to be."""
_PDF = "application/pdf"
_TEXTUAL = ("json", "xml", "yaml", "toml", "javascript", "typescript", "csv", "markdown", "x-sh", "sql", "x-python")
_FILE_ID = "file_"
"""Ids of files at Anthropic begin so; another's mean nothing there."""


def write_text(text: str) -> list[JsonObject]:
    """Nothing for a text of nothing but white space: the API refuses it."""
    return [{"type": "text", "text": text}] if text.strip() else []


def write_thought(thought: Thought, maker: str) -> JsonObject | None:
    """None for thinking that nobody signed, or somebody else."""
    seal = thought.seal
    if seal is None or not _own(seal, maker):
        return None
    if data := seal.payload.get("data"):
        return {"type": "redacted_thinking", "data": data}
    signature = seal.payload.get("signature")
    return {"type": "thinking", "thinking": thought.text, "signature": signature} if signature else None


def _own(seal: Seal, maker: str) -> bool:
    return seal.dialect is Dialect.MESSAGES and seal.maker in ("", maker)


def write_block(block: Text | Media, left: LeftOut) -> list[JsonObject]:
    if isinstance(block, Text):
        return write_text(block.text)
    match block.kind:
        case "image":
            return [_picture(block, left)]
        case "file":
            return [_document(block, left)]
        case "audio":
            left.add(Feature.AUDIO, block.media_type)
        case "video":
            left.add(Feature.VIDEO, block.media_type)
    return [_note(block, f"{block.kind} cannot be read here")]


def is_media(block: JsonObject) -> bool:
    return block.get("type") in ("image", "document")


def _picture(media: Media, left: LeftOut) -> JsonObject:
    media = _inline(media)
    if media.detail not in ("", "auto"):
        left.add(Feature.IMAGE_DETAIL, media.detail)
    source = _source_of_picture(media)
    if source is None:
        left.add(Feature.FILE_LINKS if media.file_id else Feature.IMAGE_LINKS if media.url else Feature.FILES, media.media_type)
        return _note(media, "it is of a kind, or at a place, that cannot be read here")
    return {"type": "image", "source": source}


def _source_of_picture(media: Media) -> JsonObject | None:
    if media.data:
        begins = (kind for magic, kind in _MAGIC.items() if media.data.startswith(magic))
        media_type = next(begins, media.media_type.lower().replace("image/jpg", "image/jpeg"))
        return {"type": "base64", "media_type": media_type, "data": media.data} if media_type in _PICTURES else None
    return _linked(media)


def _document(media: Media, left: LeftOut) -> JsonObject:
    media = _inline(media)
    if media.media_type.startswith("image/"):
        return _picture(media, left)
    source = _source_of_document(media)
    if source is None:
        left.add(Feature.FILE_LINKS if media.url or media.file_id else Feature.FILES, media.name or media.media_type)
        return _note(media, "it is of a kind, or at a place, that cannot be read here")
    named: JsonObject = {"title": media.name} if media.name else {}
    return {"type": "document", "source": source, **named}


def _source_of_document(media: Media) -> JsonObject | None:
    if media.text.strip():
        return {"type": "text", "media_type": "text/plain", "data": media.text}
    if media.data:
        if media.media_type == _PDF or media.data.startswith("JVBERi"):
            return {"type": "base64", "media_type": _PDF, "data": media.data}
        text = _decoded(media)
        return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None
    if media.url and media.media_type not in ("", _PDF) and not media.url.partition("?")[0].lower().endswith(".pdf"):
        return None
    return _linked(media)


def _linked(media: Media) -> JsonObject | None:
    if media.url.startswith(("https://", "http://")):
        return {"type": "url", "url": media.url}
    return {"type": "file", "file_id": media.file_id} if media.file_id.startswith(_FILE_ID) else None


def _decoded(media: Media) -> str:
    """The text of a file that is one; nothing for any other."""
    kind = media.media_type.partition(";")[0]
    if not kind.startswith("text/") and not kind.endswith(_TEXTUAL):
        return ""
    try:
        return b64decode(media.data + "=" * (-len(media.data) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


def _inline(media: Media) -> Media:
    """A `data:` address is no address but the thing itself."""
    if not media.url.startswith("data:"):
        return media
    head, _, data = media.url[5:].partition(",")
    media_type, *marks = head.split(";")
    if "base64" not in marks:
        return media
    return Media(media.kind, media_type=media_type or media.media_type, data=data, name=media.name, detail=media.detail)


def _note(media: Media, why: str) -> JsonObject:
    what = " ".join(filter(None, (media.kind, media.name, media.media_type)))
    return {"type": "text", "text": f"(Here stood {'an' if what[0] in 'aiu' else 'a'} {what}: {why}.)"}
