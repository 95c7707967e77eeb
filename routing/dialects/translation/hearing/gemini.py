"""Gemini's generateContent: an answer as neutral events.

1. Seals: `{"thoughtSignature": …}`, with `"for": "call"` or `"for": "part"` where it stood on a call or on anything else that
   is no thought. The one of a text comes behind all of the text: providers sign its last piece, in the middle of it for us.
2. The end is the end of the stream: a reason may stand in a chunk of its own, come again, or come with every chunk.
3. Of several candidates the first is heard.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject, ProviderError
from ...failures import failure_inside, failure_of_page, has_error
from ...fields import count_of, list_of, object_of, read_json, text_of
from ...finish import is_cut, read_finish
from ..neutral import (
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Media,
    MediaShown,
    Seal,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    Tokens,
)
from .gemini_arguments import Arguments

_NO_ANSWER = ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR")


@dataclass(slots=True)
class Hearer:
    """One stream."""

    maker: str
    id: str
    _begun: bool = False
    _over: bool = False
    _thinking: bool = False
    """A thought is open."""
    _seal: Seal | None = None
    """Of the text before, until it is over."""
    _arguments: Arguments | None = None
    """Of a call that comes in parts."""
    _usage: JsonObject = field(default_factory=dict)
    _word: str = ""
    _blocked: str = ""
    """Why the prompt was refused."""

    def hear(self, data: bytes, name: str = "") -> list[Event]:
        if self._over or not data:
            return []
        value = read_json(data)
        if isinstance(value, dict):
            return self._chunk(value)
        return [event for item in list_of(value) if isinstance(item, dict) for event in self._chunk(item)]

    def close(self) -> list[Event]:
        word = self._word or self._blocked
        return self._finish(word) if word and not self._over else []

    def _chunk(self, document: JsonObject) -> list[Event]:
        if self._over:
            return []
        inner = document.get("response")
        if not isinstance(inner, dict):
            inner = document
        if has_error(document) or has_error(inner):
            self._over = True
            return [Broken(failure_inside(inner) or failure_inside(document) or _NO_ANSWER)]
        usage = inner.get("usageMetadata")
        if isinstance(usage, dict):
            self._usage.update(usage)
        if "promptFeedback" in inner:
            self._blocked = _blocked(inner) or self._blocked
        events: list[Event] = [] if self._begun else self._start(inner)
        candidate = _main_candidate(inner)
        for part in list_of(object_of(candidate.get("content")).get("parts")):
            if isinstance(part, dict):
                self._part(part, events)
        self._word = text_of(candidate.get("finishReason")) or self._word
        return events

    def _start(self, inner: JsonObject) -> list[Event]:
        self._begun = True
        tokens = tokens_of(self._usage) if self._usage else None
        return [Started(text_of(inner.get("responseId")) or self.id, text_of(inner.get("modelVersion")), tokens)]

    def _finish(self, word: str) -> list[Event]:
        events: list[Event] = [] if self._begun else self._start({})
        if is_cut(word):
            self._arguments = None  # the call that the answer broke off in does not end
        self._settle(events)
        self._over = True
        return [*events, Finished(word, tokens_of(self._usage) if self._usage else None)]

    # The parts

    def _part(self, part: JsonObject, events: list[Event]) -> None:
        text = part.get("text")
        if isinstance(text, str):
            word = text_of(part.get("thoughtSignature"))
            if part.get("thought") is True:
                self._thought(text, word, events)
            else:
                self._text(text, word, events)
        elif (call := part.get("functionCall", part.get("function_call"))) is not None:
            self._call(object_of(call), signature_of(part), events)
        else:
            self._other(part, signature_of(part), events)

    def _text(self, text: str, word: str, events: list[Event]) -> None:
        if text:
            if self._thinking or self._arguments is not None:
                self._settle(events)
            events.append(TextPiece(text))
        if word:
            self._sealed(word, events)

    def _thought(self, text: str, word: str, events: list[Event]) -> None:
        if not self._thinking:
            self._settle(events)
        if text:
            self._thinking = True
            events.append(ThoughtPiece(text))
        if word:
            self._thinking = False
            events.append(ThoughtEnded(self._sign(word)))

    def _call(self, call: JsonObject, word: str, events: list[Event]) -> None:
        """A whole call, or a part of one: the parts behind its name have none, and the last one does not say that it goes on."""
        name, partial = text_of(call.get("name")), list_of(call.get("partialArgs"))
        goes_on = call.get("willContinue") is True
        if name or self._arguments is None:
            if not name and not call:
                return
            self._settle(events)
            events.append(CallStarted(text_of(call.get("id")), name))
            self._arguments = Arguments()
        self._arguments.add(object_of(call.get("args")), partial)
        if word:
            self._arguments.seal = self._sign(word, "call")
        if not goes_on:
            self._end_call(events)

    def _end_call(self, events: list[Event]) -> None:
        arguments, self._arguments = self._arguments, None
        if arguments is not None:
            events += (CallPiece(dumps(arguments.value).decode()), CallEnded(arguments.seal))

    def _other(self, part: JsonObject, word: str, events: list[Event]) -> None:
        """A picture, or what Google's own tools did; a thought's pictures are only drafts."""
        shown = None if part.get("thought") is True else shown_in(part)
        if shown is not None:
            if self._thinking or self._arguments is not None or isinstance(shown, MediaShown):
                self._settle(events)
            events.append(shown)
        if word:
            self._sealed(word, events)

    def _sealed(self, word: str, events: list[Event]) -> None:
        """The seal of a part that is no thought; behind a thought, an empty part brings the thought's own."""
        seal = self._sign(word, "part")
        if self._thinking:
            self._thinking = False
            events.append(ThoughtEnded(seal))
            return
        if self._seal is not None:
            events.append(ThoughtEnded(self._seal))
        self._seal = seal

    def _settle(self, events: list[Event]) -> None:
        """What is open is over: something else begins."""
        self._end_call(events)
        if self._thinking:
            events.append(ThoughtEnded())
        if self._seal is not None:
            events.append(ThoughtEnded(self._seal))
        self._thinking, self._seal = False, None

    def _sign(self, word: str, place: str = "") -> Seal:
        payload: JsonObject = {"for": place} if place else {}
        return Seal(Dialect.GEMINI, self.maker, {**payload, "thoughtSignature": word})


def hear_whole(body: bytes, maker: str, id: str) -> list[Event]:
    """One object, or the array of a stream."""
    value = read_json(body)
    documents = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    if not documents:
        page = failure_of_page(body)
        return [Broken(page)] if page is not None else []
    hearer = Hearer(maker, id)
    events = [event for document in documents for event in hearer._chunk(document)]
    if any(isinstance(event, Broken) for event in events):
        return events
    if not any("candidates" in inner or _blocked(inner) for inner in map(_inner, documents)):
        failure = failure_inside(documents[0])
        return [Broken(failure)] if failure is not None else []
    return events + hearer._finish(hearer._word or hearer._blocked)


def _inner(document: JsonObject) -> JsonObject:
    """Code Assist puts the answer into `response`."""
    inner = document.get("response")
    return inner if isinstance(inner, dict) else document


def _main_candidate(inner: JsonObject) -> JsonObject:
    for candidate in list_of(inner.get("candidates")):
        if isinstance(candidate, dict) and candidate.get("index") in (0, None):
            return candidate
    return {}


def _blocked(inner: JsonObject) -> str:
    word = text_of(object_of(inner.get("promptFeedback")).get("blockReason"))
    return word if not word or read_finish(word) else "SAFETY"


def signature_of(part: JsonObject) -> str:
    return text_of(part.get("thoughtSignature", part.get("thought_signature")))


def shown_in(part: JsonObject) -> TextPiece | MediaShown | None:
    blob = part.get("inlineData", part.get("inline_data"))
    if isinstance(blob, dict):
        media_type = text_of(blob.get("mimeType"))
        return MediaShown(_media(media_type, data=text_of(blob.get("data"))))
    if isinstance(file := part.get("fileData"), dict):
        return MediaShown(_media(text_of(file.get("mimeType")), url=text_of(file.get("fileUri"))))
    if isinstance(code := part.get("executableCode"), dict):
        language = text_of(code.get("language")).lower()
        name = "" if language == "language_unspecified" else language
        return TextPiece(f"\n```{name}\n{text_of(code.get('code'))}\n```\n")
    if isinstance(result := part.get("codeExecutionResult"), dict):
        outcome, output = text_of(result.get("outcome")), text_of(result.get("output"))
        failed = "" if outcome in ("", "OUTCOME_OK", "OUTCOME_UNSPECIFIED") else f"{outcome}\n"
        return TextPiece(f"\n```output\n{failed}{output}\n```\n")
    return None


def _media(media_type: str, *, data: str = "", url: str = "") -> Media:
    match media_type.partition("/")[0]:
        case "image":
            return Media("image", media_type, data, url)
        case "audio":
            return Media("audio", media_type, data, url)
        case "video":
            return Media("video", media_type, data, url)
        case _:
            return Media("file", media_type, data, url)


def tokens_of(usage: JsonObject) -> Tokens:
    thoughts = count_of(usage.get("thoughtsTokenCount"))
    return Tokens(
        input=count_of(usage.get("promptTokenCount")) + count_of(usage.get("toolUsePromptTokenCount")),
        output=count_of(usage.get("candidatesTokenCount")) + thoughts,
        cached=count_of(usage.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )
