"""OpenAI Responses, a client's call: the parts of messages and of tools' answers."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from .... import jsonbytes
from ....values import JsonObject, MediaKind
from ...fields import count_of, list_of, object_of, text_of
from ..neutral import Feature, Media, Text
from .responses_tools import Notes

_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "summary_text": "text", "refusal": "refusal"}
"""Types of text parts, and the field that holds the text."""
_LINKS: dict[str, tuple[MediaKind, str]] = {"input_image": ("image", "image_url"), "input_video": ("video", "video_url")}
_TYPES = {
    "pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "html": "text/html",
    "json": "application/json", "xml": "application/xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip
"""By a file's ending, where its data does not say."""
_MAGIC = (("JVBERi", "application/pdf"), ("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("UEsDB", "application/zip"))
"""How the base64 of some files begins."""


def parts_of(content: object, notes: Notes) -> tuple[Text | Media, ...]:
    """The parts of a message or of a tool's answer; text of no length is none."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, dict):
        return (Text(json_text(content)),)
    return tuple(_parts(list_of(content), notes))


def _parts(content: Iterable[object], notes: Notes) -> Iterable[Text | Media]:
    for raw in content:
        if isinstance(raw, str):
            if raw:
                yield Text(raw)
            continue
        part = object_of(raw)
        kind = text_of(part.get("type"))
        if kind in _TEXTS:
            if list_of(part.get("annotations")):
                notes[Feature.CITATIONS, ""] = None
            if text := text_of(part.get(_TEXTS[kind])):
                yield Text(text, cached=_is_marked(part))
        elif (media := _media(kind, part)) is not None:
            yield media
        elif kind == "encrypted_content":
            notes[Feature.OTHER, "sealed parts, which only their maker can read"] = None
        else:
            notes[Feature.OTHER, f"part {kind}" if kind else "part of no type"] = None


def _media(kind: str, part: JsonObject) -> Media | None:
    if kind in _LINKS:
        what, field = _LINKS[kind]
        link = part.get(field)
        # some clients write Chat's form here
        url = text_of(link) or text_of(object_of(link).get("url"))
        return media_of(
            what, url=url, file_id=text_of(part.get("file_id")), detail=text_of(part.get("detail")), cached=_is_marked(part)
        )
    if kind == "input_file":
        return media_of(
            "file",
            data=text_of(part.get("file_data")),
            url=text_of(part.get("file_url")),
            file_id=text_of(part.get("file_id")),
            name=text_of(part.get("filename")),
            detail=text_of(part.get("detail")),
            cached=_is_marked(part),
        )
    if kind == "input_audio":
        sound = object_of(part.get("input_audio")) or part
        form = text_of(sound.get("format")) or "wav"
        return media_of("audio", data=text_of(sound.get("data")), media_type=f"audio/{form}", cached=_is_marked(part))
    return None


def media_of(
    kind: MediaKind,
    *,
    data: str = "",
    url: str = "",
    file_id: str = "",
    media_type: str = "",
    name: str = "",
    detail: str = "",
    cached: bool = False,
) -> Media | None:
    """With exactly one source; None where there is none."""
    if data.startswith("data:"):
        data, url = "", data
    if url.startswith("data:"):
        found, data = _data_url(url)
        media_type, url = found or media_type, ""
    if data:
        media_type = media_type or _guessed(name, data)
        return Media(kind, media_type, data=data, name=name, detail=detail, cached=cached)
    if url:
        return Media(kind, media_type, url=url, name=name, detail=detail, cached=cached)
    if file_id:
        return Media(kind, media_type, file_id=file_id, name=name, detail=detail, cached=cached)
    return None


def _data_url(url: str) -> tuple[str, str]:
    """The type and the base64 of a `data:` address."""
    head, _, data = url[5:].partition(",")
    media_type, *rest = (word.strip() for word in head.split(";"))
    if "base64" in rest:
        return media_type, data
    return media_type, b64encode(unquote_to_bytes(data)).decode()


def _guessed(name: str, data: str) -> str:
    ending = name.rpartition(".")[2].lower()
    return _TYPES.get(ending) or next((kind for start, kind in _MAGIC if data.startswith(start)), "")


def _is_marked(part: JsonObject) -> bool:
    return bool(part.get("prompt_cache_breakpoint"))


def shell_output(output: object, notes: Notes) -> tuple[Text | Media, ...]:
    """What commands wrote, as a person would read it in a terminal."""
    if not isinstance(output, list):
        return parts_of(output, notes)
    texts = []
    for entry in map(object_of, output):
        texts += [text for name in ("stdout", "stderr") if (text := text_of(entry.get(name)))]
        outcome = object_of(entry.get("outcome"))
        if outcome.get("type") == "timeout":
            texts.append("(timed out)")
        elif code := count_of(outcome.get("exit_code")):
            texts.append(f"(exit code {code})")
    return (Text("\n".join(texts)),) if texts else ()


def screenshot(output: object, notes: Notes) -> tuple[Text | Media, ...]:
    shown = object_of(output)
    media = media_of("image", url=text_of(shown.get("image_url")), file_id=text_of(shown.get("file_id")))
    return (media,) if media else parts_of(output, notes)


def picture(result: object, form: object) -> Media | None:
    """A picture that the model's own tool made."""
    data, form = text_of(result), text_of(form) or "png"
    return media_of("image", data=data, media_type=f"image/{form}") if _is_base64(data) else None


def _is_base64(data: str) -> bool:
    try:
        return bool(b64decode(data[:1024], validate=len(data) <= 1024))
    except (binascii.Error, ValueError):
        return False


def json_text(value: object) -> str:
    return jsonbytes.dumps(value).decode()
