"""OpenAI Chat Completions: what was said as one message, for the next call, and for a client that wants JSON."""

from __future__ import annotations

from ....values import Dialect, JsonObject
from ...fields import THOUGHTS, list_of, object_of, text_of
from ...signed import signed_fields
from ...translation.neutral import Media, Seal
from ...translation.opaque import wrap
from ..events import Block, Cited
from ..said import Content, arguments_of
from ..words import free_text, told_media
from .read import BODIES, MARK, MARK_END, MARKED, is_thinking

_KNOWN = frozenset(("", "role", "content", "refusal", "tool_calls", "function_call", "reasoning_details", "images"))
"""Fields that are told from blocks; what else is said of them is empty."""
_SPOKEN = ("data", "transcript")
"""Of sound: they come in pieces."""


def history(content: Content) -> tuple[JsonObject, ...]:
    return as_history(message(content))


def as_history(message: JsonObject) -> tuple[JsonObject, ...]:
    """The message as a history takes it; none where it holds nothing but thinking and white space."""
    kept = {name: value for name, value in message.items() if value not in (None, [])}
    if not any(_says_something(value) and name != "role" and not is_thinking(name) for name, value in kept.items()):
        return ()
    if isinstance(audio := kept.get("audio"), dict):
        kept["audio"] = {"id": audio.get("id")}
    content = message.get("content")
    return ({**kept, "role": "assistant", "content": content if isinstance(content, str | list) else None},)


def _says_something(value: object) -> bool:
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def message(content: Content) -> JsonObject:
    """The message as a whole answer has it."""
    parts: list[JsonObject] = []
    told: dict[str, object] = {}
    details: list[object] = []
    images: list[object] = []
    calls: list[JsonObject] = []
    for block, growing in content.blocks.items():
        text = str(growing)
        match block.kind:
            case "text" if block.refusal:
                told["refusal"] = text_of(told.get("refusal")) + text
            case "text":
                parts.append({"type": "text", **({} if block.foreign else object_of(block.native)), "text": text})
            case "thought" if block.field == MARKED and not block.foreign:
                parts.append({"type": "text", "text": f"{MARK}{text}{MARK_END}"})
            case "thought" if block.field == "content" and block.native is not None and not block.foreign:
                summary = {"type": "summary_text", "text": text, **object_of(block.native)}
                parts.append({"type": "reasoning", "summary": [summary]})
            case "thought" if block.field == "content":
                parts.append({"type": "thinking", "thinking": [{"type": "text", "text": text}]})
            case "thought":
                if text and (field := field_of(block)):
                    told[field] = text_of(told.get(field)) + ("\n\n" if told.get(field) and block.foreign else "") + text
                details += details_of(block, text, len(details))
            case "call" if content.leaves_out(block):
                pass
            case "call" if block.field == "function_call":
                told["function_call"] = _function(block, text)
            case "call":
                calls.append(call_of(block, text))
            case "media" if block.native is not None and not block.foreign:
                (parts if block.field == "content" else images).append(block.native)
            case "media" if block.media is not None:
                shown = shown_media(block.media)
                images += list_of(shown.get("images"))
                if isinstance(placeholder := shown.get("content"), str):
                    parts.append({"type": "text", "text": placeholder})
            case _:
                pass
    whole: JsonObject = {"role": "assistant", "content": _content(parts)}
    for given in content.fields:
        if given.name not in told and given.name not in _KNOWN and given.native is not None:
            _add_field(whole, given.name, given.native)
    lists = {"reasoning_details": details, "images": images, "tool_calls": calls}
    return whole | told | {name: entries for name, entries in lists.items() if entries}


def _content(parts: list[JsonObject]) -> object:
    """One text, where it is nothing but texts that say no more than that."""
    if all(part["type"] == "text" and part.keys() == {"type", "text"} for part in parts):
        return "".join([text_of(part["text"]) for part in parts]) or None
    return [part for part in parts if part["type"] != "text" or part["text"]]


def _add_field(whole: JsonObject, name: str, value: object) -> None:
    """Fields that nobody here knows grow as most of them do."""
    old = whole.get(name)
    if isinstance(value, str):
        whole[name] = text_of(old) + value
    elif isinstance(value, list):
        whole[name] = [*list_of(old), *value]
    elif isinstance(value, dict):
        known = object_of(old)
        spoken = {part: text_of(known.get(part)) + text_of(value[part]) for part in _SPOKEN if part in value}
        whole[name] = {**known, **value, **(spoken if name == "audio" else {})}
    else:
        whole[name] = value


def grown(old: object, new: object) -> object:
    """What a choice says beside its delta, so far: lists go on, of all else the newest counts."""
    if isinstance(new, dict):
        known = object_of(old)
        return {**known, **{name: grown(known.get(name), value) for name, value in new.items()}}
    if isinstance(new, list):
        return [*list_of(old), *new]
    return old if new is None else new


def field_of(block: Block) -> str:
    """Where a thought's text stands; nowhere, where its details hold it."""
    if block.field in THOUGHTS:
        return block.field
    return "reasoning_content" if block.foreign or block.field not in ("", MARKED) else ""


def details_of(block: Block, text: str, number: int) -> list[JsonObject]:
    """The entries beside a thought. A seal holds for its own text alone, so that it is repeated beside it; entries are numbered,
    since clients put lists without numbers together only once."""
    if not block.foreign:
        return [entry for entry in list_of(object_of(block.native).get("reasoning_details")) if isinstance(entry, dict)]
    seal = block.seal
    if seal is None:
        return []
    if seal.dialect is Dialect.CHAT:
        entries = [entry for entry in list_of(seal.payload.get("reasoning_details")) if isinstance(entry, dict)]
    elif text:
        entries = [{"type": "reasoning.text", "text": text, "signature": wrap(seal)}]
    else:
        entries = [{"type": "reasoning.encrypted", "data": wrap(seal)}]
    return [{**entry, "index": number + place} for place, entry in enumerate(entries)]


def call_of(block: Block, text: str) -> JsonObject:
    if not block.foreign:
        native, kind = object_of(block.native), "custom" if block.custom else "function"
        body = {"name": block.name, **object_of(native.get(kind)), BODIES[kind]: text}
        return {"type": kind, **native, "id": block.id, kind: body}
    kind, arguments = "custom" if block.as_custom else "function", arguments_of(block, text)
    written = free_text(arguments) if block.as_custom else arguments or "{}"
    return {"id": block.id, "type": kind, kind: {"name": block.name, BODIES[kind]: written}, **sealed_call(block.seal)}


def _function(block: Block, text: str) -> JsonObject:
    return {**object_of(object_of(block.native).get("function")), "name": block.name, "arguments": text}


def sealed_call(seal: Seal | None) -> JsonObject:
    """What stands beside a call that somebody sealed."""
    if seal is None:
        return {}
    if seal.dialect is Dialect.CHAT:
        return signed_fields(seal.payload)
    return {"extra_content": {"google": {"thought_signature": wrap(seal)}}}


def annotation(cited: Cited) -> JsonObject | None:
    """A source that has an address; its place is one in the whole text."""
    citation, before = cited.citation, cited.before
    if not citation.url:
        return None
    place = {"start_index": before + citation.start, "end_index": before + citation.end}
    return {"type": "url_citation", "url_citation": {**place, "title": citation.title, "url": citation.url}}


def shown_media(media: Media) -> JsonObject:
    """Pictures as OpenRouter and its clients have them; the message has no place for anything else."""
    if media.kind != "image" or not (media.data or media.url):
        return {"content": told_media(media)}
    url = media.url or f"data:{media.media_type or 'image/png'};base64,{media.data}"
    return {"images": [{"index": 0, "type": "image_url", "image_url": {"url": url}}]}
