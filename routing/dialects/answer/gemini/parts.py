"""The parts of Gemini's answers: where they stand, what they say, and what several rounds' come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....values import Dialect, JsonObject, media_kind
from ...fields import arguments_of, count_of, list_of, object_of, text_of
from ...finish import read_finish
from ...translation.ids import digest
from ...translation.neutral import Asked, Media, Seal, Tokens
from ...translation.opaque import wrap

CALLS = ("functionCall", "function_call")
EMPTY: JsonObject = {"text": ""}


def inner_of(document: JsonObject) -> JsonObject:
    """Code Assist puts the answer into `response`."""
    inner = document.get("response")
    return inner if isinstance(inner, dict) else document


def main_candidate(inner: JsonObject) -> JsonObject:
    """The candidate that goes on; any other is the first round's own."""
    candidates = [one for one in list_of(inner.get("candidates")) if isinstance(one, dict)]
    return next((one for one in candidates if one.get("index") in (0, None)), {})


def parts_of(candidate: JsonObject) -> list[JsonObject]:
    return [part for part in list_of(object_of(candidate.get("content")).get("parts")) if isinstance(part, dict)]


def call_in(part: JsonObject) -> JsonObject:
    return next((object_of(part[name]) for name in CALLS if name in part), {})


def says(part: JsonObject) -> bool:
    return any(value for name, value in part.items() if name != "thought")


def as_history(parts: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """The parts as one content of the history, without the empty ones."""
    kept = [part for part in parts if says(part)]
    return ({"role": "model", "parts": kept},) if kept else ()


def blocked(inner: JsonObject) -> str:
    """Why the prompt itself was refused."""
    word = text_of(object_of(inner.get("promptFeedback")).get("blockReason"))
    return word if not word or read_finish(word) else "SAFETY"


def summed_counts(counts: Sequence[JsonObject]) -> JsonObject:
    """`usageMetadata` of the whole answer."""
    if len(counts) < 2:
        return dict(counts[0]) if counts else {}
    # the details of the last round alone would not add up to the sum
    whole = {name: value for name, value in counts[-1].items() if name != "candidatesTokensDetails"}
    total = count_of(whole.get("promptTokenCount")) + count_of(whole.get("toolUsePromptTokenCount"))
    for name in ("candidatesTokenCount", "thoughtsTokenCount"):
        if any(name in one for one in counts):
            whole[name] = sum(count_of(one.get(name)) for one in counts)
            total += count_of(whole[name])
    return {**whole, "totalTokenCount": total}


def signature_of(part: JsonObject) -> str:
    return text_of(part.get("thoughtSignature", part.get("thought_signature")))


def shown_in(part: JsonObject) -> str | Media | None:
    """A picture, sound or file; or what Google's own tools did, in words."""
    blob = part.get("inlineData", part.get("inline_data"))
    if isinstance(blob, dict):
        media_type = text_of(blob.get("mimeType"))
        return Media(media_kind(media_type), media_type, text_of(blob.get("data")))
    if isinstance(file := part.get("fileData"), dict):
        media_type = text_of(file.get("mimeType"))
        return Media(media_kind(media_type), media_type, url=text_of(file.get("fileUri")))
    if isinstance(code := part.get("executableCode"), dict):
        language = text_of(code.get("language")).lower()
        name = "" if language == "language_unspecified" else language
        return f"\n```{name}\n{text_of(code.get('code'))}\n```\n"
    if isinstance(result := part.get("codeExecutionResult"), dict):
        outcome, output = text_of(result.get("outcome")), text_of(result.get("output"))
        failed = "" if outcome in ("", "OUTCOME_OK", "OUTCOME_UNSPECIFIED") else f"{outcome}\n"
        return f"\n```output\n{failed}{output}\n```\n"
    return None


def tokens_of(usage: JsonObject) -> Tokens:
    thoughts = count_of(usage.get("thoughtsTokenCount"))
    return Tokens(
        input=count_of(usage.get("promptTokenCount")) + count_of(usage.get("toolUsePromptTokenCount")),
        output=count_of(usage.get("candidatesTokenCount")) + thoughts,
        cached=count_of(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )


def identity_of(id: str, asked: Asked) -> JsonObject:
    return {"modelVersion": asked.model, "responseId": id or digest(asked.id, 24)}


def usage_of(tokens: Tokens) -> JsonObject:
    cached: JsonObject = {"cachedContentTokenCount": tokens.cached} if tokens.cached else {}
    thoughts: JsonObject = {"thoughtsTokenCount": tokens.reasoning} if tokens.reasoning else {}
    return {
        "promptTokenCount": tokens.input,
        **cached,
        "candidatesTokenCount": max(0, tokens.output - tokens.reasoning),
        **thoughts,
        "totalTokenCount": tokens.input + max(tokens.output, tokens.reasoning),
    }


def word_of(seal: Seal) -> str:
    own = text_of(seal.payload.get("thoughtSignature")) if seal.dialect is Dialect.GEMINI else ""
    return own or wrap(seal)


def media_part(media: Media) -> JsonObject:
    kind = {"mimeType": media.media_type} if media.media_type else {}
    if media.data:
        return {"inlineData": {**kind, "data": media.data}}
    return {"fileData": {**kind, "fileUri": media.url or media.file_id}}


def args_of(text: str) -> JsonObject:
    """Some providers write `null` for a tool without parameters."""
    return {} if text.strip() == "null" else arguments_of(text)
