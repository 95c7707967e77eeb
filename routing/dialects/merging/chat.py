"""OpenAI Chat Completions: several rounds in one answer.

1. One id, creation time and model for all chunks, the first round's; the role is told once.
2. What ends a round (the finish reason, the usage chunk, `[DONE]`) is held; a chunk that has content as well is split.
3. Choices beyond the first pass as they are, and only the first round has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...jsonbytes import dumps
from ...turn.said import Said
from ...values import Dialect, JsonObject
from .. import answers
from ..answers.chat import error_of
from ..fields import list_of, object_of, read_object, text_of
from ..sse import Event, write_event
from .chat_message import (
    GrowingCall,
    GrowingMessage,
    as_parts,
    is_thinking,
    merged_message,
    said_of,
    shown_parts,
    with_glue,
)
from .common import BLANK_LINE, Collected, Form, told_calls
from .counts import summed_counts
from .untouched import Heard, Kind, Untouched

_DONE = b"[DONE]"
_HEAD = ("id", "created", "model")


@dataclass(slots=True)
class _Chunk(Heard):
    document: JsonObject | None = None
    calls: list[GrowingCall] = field(default_factory=list)
    """Of the entries in the first choice's delta, in their order."""


@dataclass(slots=True)
class _Round:
    """One provider's stream as it is read."""

    growing: GrowingMessage
    head: JsonObject = field(default_factory=dict)
    word: str = ""
    """Its finish reason."""
    usage: JsonObject = field(default_factory=dict)
    ending: _Chunk | None = None
    """The chunk that has its finish reason."""
    counts: JsonObject | None = None
    """Its usage chunk."""
    done: bytes = b""
    glue: bool = False
    """Its first text needs a blank line before it."""


class Merging(Untouched[_Chunk]):
    """One stream of all rounds."""

    dialect = Dialect.CHAT

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self._kept: list[_Round] = []
        """The rounds that count."""
        self._round = _Round(GrowingMessage(self._own))
        self._head: JsonObject = {}
        """What every chunk repeats."""
        self._role_told = False
        self._next = 0
        """The client's next index of a tool call."""

    # The rounds

    def _begin(self) -> None:
        spoke = any(said.text for said in self._rounds)
        self._round = _Round(GrowingMessage(self._own), glue=spoke)

    def _forget(self) -> None:
        self._next = 0

    def _end(self) -> Said:
        round_ = self._round
        for call in round_.growing.calls:
            if call.own is None:
                self._pending.append(self._show_nameless(call))
        said = said_of(
            round_.growing.message,
            word=round_.word,
            usage=round_.usage,
            id=text_of(round_.head.get("id")),
            own_tools=self._own,
            endings=self._form.endings,
            complete=bool(round_.word or (round_.done and not round_.growing.breaks_off)) and self._told is None,
            error=self._told,
        )
        if said.complete:
            self._kept.append(round_)
        return said

    # Reading

    def _read(self, event: Event) -> _Chunk:
        round_ = self._round
        if event.data.strip() == _DONE:
            round_.done = event.raw
            return _Chunk(event, event.raw, "rests")
        document = read_object(event.data) if event.data else None
        if document is None:
            return _Chunk(event, event.raw, "rests" if self._is_ending else "passes")
        if (error := error_of(document, event.name)) is not None:
            self._told = self._told or error
            return _Chunk(event, event.raw, "rests", is_error=True)
        chunk = _Chunk(event, event.raw, document=document)
        round_.head = round_.head if round_.head.get("id") else _head_of(document)
        round_.usage = object_of(document.get("usage")) or round_.usage
        if not document.get("choices") and document.get("usage"):
            round_.counts = document
        for choice in _choices(document):
            if _index(choice) == 0:
                self._read_choice(choice, chunk)
        chunk.kind = self._kind_of(chunk)
        return chunk

    def _read_choice(self, choice: JsonObject, chunk: _Chunk) -> None:
        round_ = self._round
        chunk.calls += round_.growing.add(object_of(choice.get("delta")))
        round_.usage = object_of(choice.get("usage")) or round_.usage
        if word := text_of(choice.get("finish_reason")):
            round_.word, round_.ending = word, chunk
        if any(call.own for call in chunk.calls):
            self._as_it_came = False

    @property
    def _is_ending(self) -> bool:
        return bool(self._round.word or self._round.done or self._told)

    def _kind_of(self, chunk: _Chunk) -> Kind:
        if self._is_ending or any(call.own is None for call in self._round.growing.calls):
            return "rests"
        if self._visible or answers.is_content(self.dialect, chunk.event.data):
            return "goes"
        return "opens"

    def _swallowed(self, heard: _Chunk) -> bool:
        document = heard.document
        is_counts = document is not None and not document.get("choices") and bool(document.get("usage"))
        return is_counts and not self._form.include_usage

    def _left(self, heard: _Chunk) -> None:
        if heard.document is not None and heard.document.get("choices"):
            self._head = self._head or _head_of(heard.document)
            self._role_told = True
        for call in heard.calls:
            self._give_place(call)

    # Showing

    def _show(self, heard: _Chunk) -> bytes:
        document, event = heard.document, heard.event
        if document is None:
            is_known = bool(event.data) and (heard.is_error or event.data.strip() == _DONE)
            return b"" if is_known or (self._later and event.data) else event.raw
        if not document.get("choices"):
            return b"" if self._later or document.get("usage") else event.raw
        shown = [new for choice in _choices(document) if (new := self._show_choice(choice, heard)) is not None]
        if not shown:
            return b""
        self._head = self._head or _head_of(document)
        self._role_told = True
        new = {**document, **self._head, "choices": shown}
        if new == document:
            return event.raw
        if new.get("usage"):
            new["usage"] = None  # told once, at the end
        return write_event(dumps(new), event.name)

    def _show_choice(self, choice: JsonObject, heard: _Chunk) -> JsonObject | None:
        if _index(choice) != 0:
            return None if self._later else choice
        delta = object_of(choice.get("delta"))
        shown = self._show_delta(delta, heard)
        says = any(value or (name == "role" and not self._role_told) for name, value in shown.items())
        if shown == delta and not choice.get("finish_reason"):
            return choice if says or not self._later else None
        if not says:
            return None
        rest = {name: value for name, value in choice.items() if name not in ("message", "usage")}
        return {**rest, "delta": shown, "finish_reason": None}

    def _show_delta(self, delta: JsonObject, heard: _Chunk) -> JsonObject:
        shown: JsonObject = {}
        entries = iter(heard.calls)
        for name, value in delta.items():
            if name == "tool_calls":
                if calls := self._show_entries(list_of(value), entries):
                    shown[name] = calls
            elif name == "function_call" and value is not None:
                if not next(entries).own:
                    self._next = max(self._next, 1)
                    shown[name] = value
            elif name == "content" and value:
                shown[name] = self._show_content(value)
            elif not (self._role_told and name == "role") and not (self._later and is_thinking(name)):
                shown[name] = value
        return shown

    def _show_content(self, content: object) -> object:
        if not self._later:
            return content
        if isinstance(content, str):
            glue, self._round.glue = self._round.glue, False
            return BLANK_LINE + content if glue else content
        parts = shown_parts(as_parts(content))
        if not self._round.glue:
            return parts
        glued = with_glue(parts)
        self._round.glue = len(glued) == len(parts)
        return glued

    def _show_entries(self, entries: list[object], calls: Iterator[GrowingCall]) -> list[object]:
        shown: list[object] = []
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            call = next(calls)
            if call.own:
                continue
            if call.own is None:
                call.waiting.append(entry)
                continue
            place = self._give_place(call)
            shown += [{**waiting, "index": place} for waiting in [*call.waiting, entry]]
            call.waiting.clear()
        return shown

    def _give_place(self, call: GrowingCall) -> int:
        if call.place < 0:
            call.place, self._next = self._next, self._next + 1
        return call.place

    def _show_nameless(self, call: GrowingCall) -> bytes:
        """A call whose name never came is nobody's; the client has to see it."""
        call.own = False
        if not call.waiting:
            return b""
        place = self._give_place(call)
        return self._written({"tool_calls": [{**waiting, "index": place} for waiting in call.waiting]}, None)

    def _know_head(self, round_: _Round) -> None:
        """Where no chunk has told the client yet who answers."""
        self._head = self._head or round_.head or {"id": "", "created": 0, "model": ""}

    def _written(self, delta: JsonObject, finish: str | None) -> bytes:
        self._know_head(self._round)
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return write_event(dumps({"object": "chat.completion.chunk", **self._head, "choices": [choice]}))

    # The end

    def _closing(self) -> Iterable[bytes]:
        last = self._kept[-1]
        usage = summed_counts([round_.usage for round_ in self._kept], "prompt_tokens", "completion_tokens")
        word = self._form.endings.write(last.word, self.dialect, calls=told_calls(self._rounds))
        counts = next((round_.counts for round_ in reversed(self._kept) if round_.counts is not None), None)
        counts = counts if self._form.include_usage else None
        self._know_head(self._kept[0])
        out = self._last_chunk(last, word, usage if counts is None else None)
        if counts is not None:
            out += write_event(dumps({**counts, **self._head, "usage": usage}))
        return (out, next((round_.done for round_ in reversed(self._kept) if round_.done), b""))

    def _last_chunk(self, last: _Round, word: str, usage: JsonObject | None) -> bytes:
        """The chunk that ended the last round. `usage`: None where a chunk of its own tells it."""
        document = last.ending.document if last.ending is not None else None
        if last.ending is None or document is None:
            return self._written({}, word)
        choice = next(choice for choice in _choices(document) if _index(choice) == 0)
        bare = {"logprobs": None} if choice.get("delta") and "logprobs" in choice else {}
        new = {name: value for name, value in choice.items() if name != "message"}
        new |= {**bare, "delta": {}, "finish_reason": word}
        if choice.get("usage"):
            new["usage"] = usage
        whole = {**document, **self._head, "choices": [new]}
        if document.get("usage"):
            whole["usage"] = usage
        return last.ending.event.raw if whole == document else write_event(dumps(whole), last.ending.event.name)

    def _error_event(self, status: int, message: str, code: str) -> bytes:
        return answers.write_error_event(self.dialect, status, message, code)


def _choices(document: JsonObject) -> list[JsonObject]:
    return [choice for choice in list_of(document.get("choices")) if isinstance(choice, dict)]


def _index(choice: JsonObject) -> object:
    return choice.get("index") or 0


def _head_of(document: JsonObject) -> JsonObject:
    return {name: document[name] for name in _HEAD if name in document}


class Whole(Collected):
    """All rounds as one JSON answer."""

    dialect = Dialect.CHAT

    def _read(self, document: JsonObject) -> Said:
        choice = _first_choice(document)
        return said_of(
            object_of(choice.get("message")),
            word=choice.get("finish_reason"),
            usage=object_of(document.get("usage")),
            id=text_of(document.get("id")),
            own_tools=self.form.own_tools,
            endings=self.form.endings,
        )

    def _merged(self) -> JsonObject:
        first, last = self.documents[0], self.documents[-1]
        word = self.form.endings.write(self._word, self.dialect, calls=told_calls(self.said))
        counts = [object_of(document.get("usage")) for document in self.documents]
        usage = summed_counts(counts, "prompt_tokens", "completion_tokens")
        choice = _first_choice(first)
        merged = {**choice, "message": self._message, "finish_reason": word}
        choices = [merged if given is choice else given for given in _choices(first)]
        whole = {**first, "choices": choices}
        return {**whole, "usage": usage} if usage or "usage" in last else whole

    @property
    def _message(self) -> JsonObject:
        messages = [object_of(_first_choice(document).get("message")) for document in self.documents]
        return merged_message(messages, self.form.own_tools)

    @property
    def _word(self) -> object:
        return _first_choice(self.documents[-1]).get("finish_reason") if self.documents else None


def _first_choice(document: JsonObject) -> JsonObject:
    return next((choice for choice in _choices(document) if _index(choice) == 0), {})
