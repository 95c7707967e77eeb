"""OpenAI Chat, a provider's call: pictures, sound, videos and files as content parts.

What the host does not take leaves a line in its place, so that the model knows that something was there.
"""

from __future__ import annotations

from ....values import JsonObject
from ..neutral import Feature, LeftOut, Media, Text
from .chat_hosts import Host

_DETAILS = ("auto", "low", "high")
_FORMATS = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav"}
_PDF = "application/pdf"
_WORDS = {"image": "picture", "audio": "recording", "video": "video", "file": "file"}
_OWN_FILE = "file-"
"""How the ids of OpenAI's files begin."""


def text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def write_part(block: Text | Media, host: Host, left: LeftOut) -> JsonObject:
    if isinstance(block, Text):
        return text_part(block.text)
    if block.text:
        return text_part(f"File {block.name}:\n{block.text}" if block.name else block.text)
    written = _WRITERS[block.kind](block, host, left)
    return written or text_part(missing(block))


def missing(media: Media) -> str:
    """What stands in place of something that cannot be passed on."""
    what = " ".join(word for word in (_WORDS[media.kind], media.name or media.url[:200]) if word)
    return f"[Here stood a {what}, which could not be passed on]"


def _image(media: Media, host: Host, left: LeftOut) -> JsonObject | None:
    if not host.images:
        left.add(Feature.OTHER, "pictures")
        return None
    if not (url := _address(media, "image/png")):
        left.add(Feature.FILE_LINKS, "a picture by its id")
        return None
    image: JsonObject = {"url": url}
    if media.detail in _DETAILS:
        image["detail"] = media.detail
    elif media.detail:
        left.add(Feature.IMAGE_DETAIL, media.detail)
    return {"type": "image_url", "image_url": image}


def _audio(media: Media, host: Host, left: LeftOut) -> JsonObject | None:
    form = _FORMATS.get(media.media_type)
    if not media.data or form is None:
        left.add(Feature.AUDIO, media.media_type)
        return None
    return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}


def _video(media: Media, host: Host, left: LeftOut) -> JsonObject | None:
    url = _address(media, "video/mp4")
    if not host.videos or not url:
        left.add(Feature.VIDEO)
        return None
    return {"type": "video_url", "video_url": {"url": url}}


def _file(media: Media, host: Host, left: LeftOut) -> JsonObject | None:
    if media.media_type.startswith("image/") and media.data:
        return _image(media, host, left)
    if not host.files:
        left.add(Feature.FILES, media.name or media.media_type)
        return None
    url = _address(media, _PDF)
    if host.files == "document" and url:
        named: JsonObject = {"document_name": media.name} if media.name else {}
        return {"type": "document_url", "document_url": url, **named}
    if media.data or (media.url and host.file_links):
        name = media.name or ("file.pdf" if media.media_type in ("", _PDF) else "file")
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    if media.file_id.startswith(_OWN_FILE) and host.file_ids:
        return {"type": "file", "file": {"file_id": media.file_id}}
    left.add(Feature.FILE_LINKS, media.name or media.url or media.file_id)
    return None


_WRITERS = {"image": _image, "audio": _audio, "video": _video, "file": _file}


def _address(media: Media, usual: str) -> str:
    if media.data:
        return f"data:{media.media_type or usual};base64,{media.data}"
    return media.url
