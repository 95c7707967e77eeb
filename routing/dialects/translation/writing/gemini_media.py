"""Pictures, sound and files as parts for Google."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

from ....values import JsonObject
from ..neutral import Feature, LeftOut, Media

_PICTURES = frozenset(("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"))
_FILES = frozenset(("text/plain", "application/pdf"))
_TEXTUAL = re.compile(
    r"text/.*|application/(?:json|xml|yaml|x-yaml|toml|javascript|x-javascript|typescript|sql|x-sh|.*\+(?:json|xml))"
)
"""Files that are text whatever they are called: they are sent as plain text, which every model reads."""
_SPELLED = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}
_INSIDE_RESULTS = frozenset(("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"))
_GOOGLES_FILE = re.compile(r"(?:https://generativelanguage\.googleapis\.com/|gs://|files/)")
_ENDINGS = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
}
_LIKELY = {"image": "image/jpeg", "audio": "audio/mpeg", "video": "video/mp4", "file": "application/pdf"}
"""Of an address that tells no type: Vertex demands one."""


def media_parts(media: Media, left_out: LeftOut) -> list[JsonObject]:
    """The picture or file; a line in its place where Google cannot have it, so that the model knows of it."""
    if media.detail not in ("", "auto"):
        left_out.add(Feature.IMAGE_DETAIL, media.detail)
    media_type = _SPELLED.get(media.media_type.lower(), media.media_type.lower()).partition(";")[0]
    label: list[JsonObject] = [{"text": f"[file: {media.name}]"}] if media.name and media.kind == "file" else []
    if media.url or media.file_id:
        return _linked(media, media_type, label, left_out)
    data = media.data
    if media.text:
        media_type, data = "text/plain", b64encode(media.text.encode("utf-8", "replace")).decode()
    elif _TEXTUAL.fullmatch(media_type) and _is_text(data):
        media_type = "text/plain"
    known = media_type in _PICTURES | _FILES or media_type.startswith(("audio/", "video/"))
    if data and known:
        return [*label, {"inlineData": {"mimeType": media_type, "data": data}}]
    return _unsent(media, Feature.FILES, media_type or media.kind, left_out)


def _linked(media: Media, media_type: str, label: list[JsonObject], left_out: LeftOut) -> list[JsonObject]:
    address = media.url or media.file_id
    if media.file_id and not _GOOGLES_FILE.match(address):
        return _unsent(media, Feature.FILE_LINKS, "a file that another provider keeps", left_out)
    if media.url and not address.startswith(("https://", "http://", "gs://")):
        return _unsent(media, Feature.FILE_LINKS, address.partition(":")[0], left_out)
    ending = address.partition("?")[0].rpartition(".")[2].lower()
    given = media_type or _ENDINGS.get(ending) or _LIKELY[media.kind]
    return [*label, {"fileData": {"mimeType": given, "fileUri": address}}]


def _unsent(media: Media, feature: Feature, what: str, left_out: LeftOut) -> list[JsonObject]:
    left_out.add(feature, what)
    name = f" {media.name}" if media.name else ""
    return [{"text": f"[{media.kind}{name} ({what}): could not be passed on]"}]


def _is_text(data: str) -> bool:
    try:
        b64decode(data, validate=True).decode()
    except ValueError:
        return False
    return True


def is_for_results(part: JsonObject) -> bool:
    """A line in the place of what could not be sent as well: it becomes a label of the result."""
    blob = part.get("inlineData")
    return "text" in part or (isinstance(blob, dict) and blob.get("mimeType") in _INSIDE_RESULTS)
