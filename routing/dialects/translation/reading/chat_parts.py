"""OpenAI Chat, a client's call: the parts of a message's content."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from .. import opaque
from ..neutral import Feature, Media, Text, Thought

Notes = dict[tuple[Feature, str], None]
"""What has no place in a conversation, in the order it was met."""
Part = Text | Media | Thought

_AUDIO = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_PDF = "application/pdf"
_ENDINGS = {
    "pdf": _PDF,
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "json": "application/json",
    "html": "text/html",
    "xml": "text/xml",
}
"""Type of a file that is told by its name alone."""


def read_content(content: str | list[object], notes: Notes) -> tuple[Part, ...]:
    """Empty texts are left out: no dialect needs them, some refuse them."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(part for raw in content for part in _read_part(raw, notes))


def is_cached(raw: JsonObject) -> bool:
    """Anthropic's mark, which several hosts take, or OpenAI's own."""
    return bool(raw.get("cache_control") or raw.get("prompt_cache_breakpoint"))


def _read_part(raw: object, notes: Notes) -> Iterator[Part]:
    if isinstance(raw, str):
        if raw:
            yield Text(raw)
        return
    part = object_of(raw)
    kind = text_of(part.get("type"))
    if (media := _MEDIA.get(kind)) is not None:
        read = media(part)
        yield from (replace(one, cached=is_cached(part)) for one in read)
        if not read:
            notes[Feature.OTHER, f"an empty {kind} part"] = None
    elif kind == "thinking":
        yield from _thinking(part)
    elif text := text_of(part.get("text")) or text_of(part.get("refusal")):
        yield Text(text, is_cached(part))
    elif kind not in ("text", "refusal"):
        notes[Feature.OTHER, f"content part {kind or 'without a type'}"] = None


def _thinking(part: JsonObject) -> Iterator[Thought]:
    """Mistral's way: thinking is a part that holds text parts."""
    told = part.get("thinking")
    text = told if isinstance(told, str) else "".join(text_of(object_of(one).get("text")) for one in list_of(told))
    signature = text_of(part.get("signature"))
    if text or signature:
        yield Thought(text, opaque.unwrap(signature))


def _image(part: JsonObject) -> Iterable[Media]:
    image = part.get("image_url")
    url = image if isinstance(image, str) else text_of(object_of(image).get("url"))
    detail = text_of(object_of(image).get("detail")) or text_of(part.get("detail"))
    return _linked(Media("image", detail=detail), url)


def _video(part: JsonObject) -> Iterable[Media]:
    video = part.get("video_url", part.get("video"))
    return _linked(Media("video"), video if isinstance(video, str) else text_of(object_of(video).get("url")))


def _audio(part: JsonObject) -> Iterable[Media]:
    """Some hosts take an address or a `data:` URL where OpenAI has bare base64."""
    audio = object_of(part.get("input_audio"))
    form, data = text_of(audio.get("format")), text_of(audio.get("data"))
    named = _AUDIO.get(form, f"audio/{form}" if form else "")
    if data.startswith(("data:", "http:", "https:")):
        return [replace(one, media_type=named or one.media_type) for one in _linked(Media("audio"), data)]
    return [Media("audio", named, data=data)] if data else []


def _file(part: JsonObject) -> Iterable[Media]:
    file = object_of(part.get("file"))
    name = text_of(file.get("filename"))
    if id := text_of(file.get("file_id")):
        return [Media("file", file_id=id, name=name)]
    data = text_of(file.get("file_data"))
    if data.startswith(("data:", "http:", "https:")):
        return [_as_text(one) for one in _linked(Media("file", name=name), data)]
    guessed = _ENDINGS.get(name.rpartition(".")[2].lower(), _PDF)
    return [_as_text(Media("file", guessed, data=data, name=name))] if data else []


_MEDIA: dict[str, Callable[[JsonObject], Iterable[Media]]] = {
    "image_url": _image,
    "input_audio": _audio,
    "video_url": _video,
    "video": _video,
    "file": _file,
}


def _linked(media: Media, url: str) -> list[Media]:
    if not url.startswith("data:"):
        return [replace(media, url=url)] if url else []
    head, _, body = url[5:].partition(",")
    media_type, *settings = [word.strip() for word in head.split(";")]
    data = body if "base64" in settings else b64encode(unquote_to_bytes(body)).decode()
    return [replace(media, media_type=media_type.lower(), data=data)] if data else []


def _as_text(media: Media) -> Media:
    """A plain-text file as the text it is, so that every dialect can show it."""
    if not media.media_type.startswith("text/"):
        return media
    try:
        return replace(media, text=b64decode(media.data, validate=True).decode(), data="")
    except (binascii.Error, ValueError):
        return media
