"""Gemini generateContent: several rounds in one answer, as events or as one JSON array, with Code Assist's envelope or without.

1. The chunk that ends a round is held. Where another round follows, its content leaves without the reason.
2. The last chunk has a reason and a part, be it an empty text: Gemini CLI takes less for a broken stream.
3. Chunks of a later round carry the first one's id and model; its thoughts are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import BadAnswer
from ...jsonbytes import dumps
from ...turn.said import Said
from ...values import Dialect, JsonObject, ProviderError
from .. import answers
from ..answer.gemini.parts import EMPTY, blocked, inner_of, main_candidate, parts_of, says, summed_counts
from ..failures import ERROR_KEY, failure_inside, has_error, without_empty_error
from ..fields import object_of, read_object, text_of
from ..finish import CUT_OFF
from ..sse import ArrayItems, Event, Events, write_event
from .common import Form, id_of, is_cut_off, told_calls, too_long
from .parts import GrowingParts, Whole, is_text, said_of, shown_parts, wrapped

__all__ = ["Merging", "Whole"]

_IDENTITY = ("responseId", "modelVersion")
_FINISH = ("finishReason", "finishMessage")
_METADATA = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
"""What is worth a chunk of its own."""
_HELD_BYTES = 1 << 20
"""What is held behind the chunk that ends a round; what is more and says nothing is left out."""


class _Held(NamedTuple):
    event: Event
    document: JsonObject | None


@dataclass(slots=True)
class _Round:
    """One provider's stream as it is read."""

    reader: Events | ArrayItems
    later: bool
    parts: GrowingParts = field(default_factory=GrowingParts)
    held: list[_Held] = field(default_factory=list)
    """From the chunk that ends it on."""
    held_bytes: int = 0
    released: bool = False
    """What it held has left, but for the reason."""
    id: str = ""
    usage: JsonObject = field(default_factory=dict)
    word: str = ""
    """Why it ended."""
    error: ProviderError | None = None
    visible: bool = False
    """The client was shown something of it."""
    said: Said | None = None

    def read(self, inner: JsonObject, candidate: JsonObject) -> bool:
        """Remember what a chunk says. True where it ends the round."""
        self.id = self.id or text_of(inner.get("responseId"))
        self.usage = {**self.usage, **object_of(inner.get("usageMetadata"))}
        for part in parts_of(candidate):
            self.parts.add(part)
        word = text_of(candidate.get("finishReason")) or blocked(inner)
        self.word = word or self.word
        return bool(word)

    def hold(self, event: Event, document: JsonObject | None = None) -> None:
        if not self.held or self.held_bytes + len(event.raw) <= _HELD_BYTES:
            self.held.append(_Held(event, document))
            self.held_bytes += len(event.raw)


class Merging:
    """One stream of all rounds."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._kept: list[_Round] = []
        self._round = self._new_round()
        self._identity: JsonObject | None = None
        """The first chunk's id and model."""
        self._begun = False
        """A chunk has left: an array is open."""
        self._split = False
        """A held chunk has left without its reason."""
        self._glue = False
        """The next text needs a blank line before it."""
        self._spoke = False
        self._grown = False
        """A later round has shown something."""
        self._pending: list[bytes] = []

    def _new_round(self) -> _Round:
        return _Round(answers.events_for(self._form.json_array), bool(self._kept))

    # The rounds

    def begin_round(self, *, exact: bool = False) -> None:
        self._release()
        if not self._begun and not self._kept:
            self._identity = None
        self._round = self._new_round()
        self._glue = self._round.later and self._spoke

    def feed(self, chunk: bytes) -> bytes:
        if not chunk and self._round.said is not None:
            self._release()
        out, self._pending = self._pending, []
        try:
            for event in self._round.reader.feed(chunk):
                out.append(self._hear(without_empty_error(event) if ERROR_KEY in event.data else event))
        except BadAnswer as error:
            self._round.error = self._round.error or too_long(error)
        return b"".join(out)

    def end_round(self) -> Said:
        round_ = self._round
        try:
            for event in round_.reader.close():
                self._hear_last(without_empty_error(event))
        except BadAnswer as error:
            round_.error = round_.error or too_long(error)
        round_.said = said_of(
            round_.parts.take(),
            word=round_.word,
            usage=round_.usage,
            id=round_.id,
            own_tools=self._form.own_tools,
            endings=self._form.endings,
            ordinal=sum(len(said.calls) for said in self._said),
            complete=bool(round_.word) and round_.error is None,
            error=round_.error,
        )
        if round_.said.complete:
            self._kept.append(round_)
        return round_.said

    def finish(self) -> Iterable[bytes]:
        complete = self._round.said is not None and self._round.said.complete
        if not complete and (self._round.visible or not self._kept):
            return (self.fail(502, CUT_OFF, "UPSTREAM_ERROR"),)
        if self._is_as_it_came:
            return (b"".join((*self._pending, *(held.event.raw for held in self._kept[0].held), self._array_end())),)
        begun = self._begun
        last = self._item(self._last_chunk(self._kept[-1]))
        self._begun = begun  # what is given here may never leave: then `fail` is the end
        return (b"".join((*self._pending, last, b"]" if self._form.json_array else b"")),)

    def fail(self, status: int, message: str, code: str) -> bytes:
        out, self._pending = b"".join(self._pending), []
        round_, array = self._round, self._form.json_array
        told = round_.error.message if round_.error is not None else None
        as_it_came = round_.said is not None and not (round_.said.own or round_.later or self._split or array)
        if told == message and as_it_came:
            return out + b"".join(held.event.raw for held in round_.held)
        if array and not self._begun:
            return out + answers.write_error(Dialect.GEMINI, status, message, code, json_array=True)
        return out + answers.write_error_event(
            Dialect.GEMINI, status, message, code, json_array=array, envelope=self._form.envelope
        )

    def keep_alive(self) -> bytes:
        self._release()
        out, self._pending = b"".join(self._pending), []
        return out + answers.KEEP_ALIVE[Dialect.GEMINI]

    @property
    def id(self) -> str:
        return id_of(self._said)

    # What the rounds come to

    @property
    def _said(self) -> list[Said]:
        return [round_.said for round_ in self._kept if round_.said is not None]

    @property
    def _is_as_it_came(self) -> bool:
        return len(self._said) == 1 and not (self._said[0].own or self._grown or self._split)

    def _array_end(self) -> bytes:
        """Where the provider forgot it."""
        ended = any(held.document is None and b"]" in held.event.raw for held in self._kept[0].held)
        return b"]" if self._form.json_array and not ended else b""

    def _release(self) -> None:
        """What is held leaves, without the reason."""
        round_ = self._round
        if round_.released or round_.error is not None:
            return
        for held in round_.held:
            if held.document is not None:
                round_.released = self._split = True
                self._pending.append(self._rewritten(held.document))

    def _last_chunk(self, last: _Round) -> bytes:
        """The chunk that ended the last round, with the reason and the counts of the whole answer."""
        document = next((held.document for held in last.held if held.document is not None), {})
        inner, counts = inner_of(document), [round_.usage for round_ in self._kept]
        candidate = main_candidate(inner)
        parts = [] if last.released else self._shown(parts_of(candidate), later=last.later)
        word = self._form.endings.write(last.word, Dialect.GEMINI, calls=told_calls(self._said))
        content = {"role": "model", **object_of(candidate.get("content")), "parts": parts or [EMPTY]}
        candidate = {"index": 0, **candidate, "content": content, "finishReason": word}
        if last.released:
            candidate = {name: value for name, value in candidate.items() if name not in _METADATA}
        inner = {**inner, "candidates": [candidate], "usageMetadata": summed_counts(counts)}
        return dumps(wrapped(document, self._as_first(inner), self._form.envelope))

    # The chunks

    def _hear(self, event: Event) -> bytes:
        document = read_object(event.data) if event.data else None
        if document is None:
            return self._other(event)
        round_, inner = self._round, inner_of(document)
        if has_error(document) or has_error(inner):
            return self._error(event, document)
        if self._identity is None:
            self._identity = {name: inner[name] for name in _IDENTITY if name in inner}
        candidate = main_candidate(inner)
        ends = round_.read(inner, candidate)
        out = b""
        if round_.held and any(map(says, parts_of(candidate))):
            # some providers give a reason with every chunk
            out = b"" if round_.released else b"".join(self._show(*held) for held in round_.held)
            round_.held.clear()
            round_.held_bytes, round_.released = 0, False
        if ends or round_.held:
            round_.hold(event, document)
            return out
        return out + self._show(event, document)

    def _hear_last(self, event: Event) -> None:
        """What the stream left without its blank line."""
        document = read_object(event.data) if event.data else None
        if is_cut_off(event) or (document is None and not self._round.held):
            return
        whole = event if self._form.json_array else event._replace(raw=event.raw + b"\n\n")
        out = self._hear(whole)
        if out:
            self._pending.append(out)
        elif self._round.held and self._round.held[-1].event is whole:
            self._round.held[-1] = self._round.held[-1]._replace(event=event)

    def _error(self, event: Event, document: JsonObject) -> bytes:
        told = failure_inside(inner_of(document)) or failure_inside(document)
        self._round.error = self._round.error or told or ProviderError(502, "The provider's stream ended with an error")
        self._round.hold(event)
        return b""

    def _other(self, event: Event) -> bytes:
        """White space, comments, the end of an array, and what is not JSON."""
        if self._round.held or (self._form.json_array and not event.data):
            self._round.hold(event)
            return b""
        return event.raw if not self._round.later or event.raw.isspace() else b""

    def _show(self, event: Event, document: JsonObject | None) -> bytes:
        """The chunk for the client: the bytes it came in where nothing in it changes."""
        if document is None:
            return event.raw if not self._round.later else b""
        parts = parts_of(main_candidate(inner_of(document)))
        if not self._round.later and len(self._shown(parts, later=False)) == len(parts):
            return self._as_it_came(event)
        return self._rewritten(document)

    def _rewritten(self, document: JsonObject) -> bytes:
        """The chunk without what the client does not see, and without a reason."""
        later, inner = self._round.later, inner_of(document)
        candidate = main_candidate(inner)
        shown = self._shown(parts_of(candidate), later=later)
        if not any(map(says, shown)) and not any(candidate.get(name) for name in _METADATA):
            return b""
        self._grown = self._grown or later
        content = {**object_of(candidate.get("content")), "parts": shown or [EMPTY]}
        rest = {name: value for name, value in candidate.items() if name not in _FINISH}
        inner = {**inner, "candidates": [{**rest, "content": content}]}
        return self._item(dumps(wrapped(document, self._as_first(inner) if later else inner, self._form.envelope)))

    def _shown(self, parts: list[JsonObject], *, later: bool) -> list[JsonObject]:
        shown = shown_parts(parts, self._form.own_tools, later=later, glue=later and self._glue)
        if any(is_text(part) and part["text"] for part in shown):
            self._glue, self._spoke = False, True
        return shown

    def _as_first(self, inner: JsonObject) -> JsonObject:
        return {**{name: value for name, value in inner.items() if name not in _IDENTITY}, **(self._identity or {})}

    def _as_it_came(self, event: Event) -> bytes:
        opens = b"[" in event.raw[: len(event.raw) - len(event.data)]
        if self._form.json_array and opens == self._begun:
            return self._item(event.data)
        self._begun = self._round.visible = True
        return event.raw

    def _item(self, data: bytes) -> bytes:
        between, self._begun = b",\r\n" if self._begun else b"[", True
        self._round.visible = True
        return between + data if self._form.json_array else write_event(data)
