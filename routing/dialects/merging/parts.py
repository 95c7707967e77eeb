"""Gemini's parts: growing in a stream, in a history, those of several rounds as one list; and the whole JSON answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...jsonbytes import dumps
from ...turn.said import Said
from ...values import Dialect, JsonObject, ProviderError, ToolCall
from ..answer.gemini.parts import (
    EMPTY,
    as_history,
    blocked,
    call_in,
    inner_of,
    main_candidate,
    parts_of,
    summed_counts,
)
from ..calls.grow_gemini import made_id
from ..fields import object_of, text_of
from ..finish import Endings, holds_calls
from .common import BLANK_LINE, Collected, GrowingText, told_calls, usage_in

_PLAIN = frozenset(("text", "thought"))
"""A text part with nothing else can be joined to its neighbour; a signature belongs to its own part alone."""


def is_text(part: JsonObject) -> bool:
    """Visible text."""
    return isinstance(part.get("text"), str) and part.get("thought") is not True


def _is_plain_text(part: JsonObject) -> bool:
    return is_text(part) and not part.keys() - _PLAIN


def is_own(part: JsonObject, own_tools: frozenset[str]) -> bool:
    return text_of(call_in(part).get("name")) in own_tools


class GrowingParts:
    """The parts of a stream; neighbouring pieces of one text become one part."""

    def __init__(self) -> None:
        self._parts: list[tuple[JsonObject, GrowingText | None]] = []

    def add(self, part: JsonObject) -> None:
        text = part.get("text")
        if not isinstance(text, str) or part.keys() - _PLAIN:
            self._parts.append((part, None))
            return
        if self._parts:
            last, grown = self._parts[-1]
            if grown is not None and last.get("thought") == part.get("thought"):
                grown.add(text)
                return
        self._parts.append((part, GrowingText(text)))

    def take(self) -> list[JsonObject]:
        """All of them; nothing stays here."""
        taken, self._parts = self._parts, []
        return [part if grown is None else {**part, "text": str(grown)} for part, grown in taken]


def said_of(
    parts: Sequence[JsonObject],
    *,
    word: object,
    usage: JsonObject,
    id: str,
    own_tools: frozenset[str],
    endings: Endings,
    ordinal: int,
    complete: bool = True,
    error: ProviderError | None = None,
) -> Said:
    """What a round said. `ordinal`: how many calls the turn's earlier rounds made."""
    calls = calls_in(parts, ordinal)
    return Said(
        text="".join(text_of(part.get("text")) for part in parts if is_text(part)),
        calls=calls,
        own=tuple(call for call in calls if call.name in own_tools),
        finish=endings.read(word, Dialect.GEMINI, calls=holds_calls(call.arguments for call in calls), error=error is not None),
        usage=usage_in(Dialect.GEMINI, usage),
        id=id,
        native=as_history(parts),
        complete=complete,
        error=error,
    )


def calls_in(parts: Iterable[JsonObject], ordinal: int | None = None) -> tuple[ToolCall, ...]:
    """The calls; one without an id gets one made of its name and number, or (no `ordinal`) its name, as in a history."""
    calls: list[ToolCall] = []
    for call in filter(None, map(call_in, parts)):
        name = text_of(call.get("name"))
        made = name if ordinal is None else made_id(name, ordinal + len(calls))
        calls.append(ToolCall(text_of(call.get("id")) or made, name, dumps(object_of(call.get("args"))).decode()))
    return tuple(calls)


def merged_parts(rounds: Iterable[Sequence[JsonObject]], own_tools: frozenset[str]) -> list[JsonObject]:
    """What the client holds of several rounds' parts."""
    shown: list[JsonObject] = []
    said = ""
    for number, parts in enumerate(rounds):
        # what stood beside a call of ours is one text now
        goes_on = number > 0 or any(is_own(part, own_tools) for part in parts)
        for part in shown_parts(parts, own_tools, later=number > 0, glue=bool(said) and number > 0):
            if goes_on and shown and _is_plain_text(part) and _is_plain_text(shown[-1]):
                shown[-1] = {**shown[-1], "text": text_of(shown[-1]["text"]) + text_of(part["text"])}
            else:
                shown.append(part)
            said = said or (text_of(part.get("text")) if is_text(part) else "")
    return shown


def shown_parts(parts: Sequence[JsonObject], own_tools: frozenset[str], *, later: bool, glue: bool) -> list[JsonObject]:
    """What the client sees of these: no call of ours, no later thinking; with `glue` a blank line before the first text."""
    shown: list[JsonObject] = []
    for part in parts:
        if is_own(part, own_tools) or (later and part.get("thought") is True):
            continue
        if glue and is_text(part) and part["text"]:
            part, glue = {**part, "text": BLANK_LINE + text_of(part["text"])}, False
        shown.append(part)
    return shown


def wrapped(document: JsonObject, inner: JsonObject, envelope: bool) -> JsonObject:
    return {**document, "response": inner} if envelope or isinstance(document.get("response"), dict) else inner


class Whole(Collected):
    """All rounds as one JSON answer."""

    dialect = Dialect.GEMINI

    def _read(self, document: JsonObject) -> Said:
        inner = inner_of(document)
        candidate = main_candidate(inner)
        return said_of(
            parts_of(candidate),
            word=text_of(candidate.get("finishReason")) or blocked(inner),
            usage=object_of(inner.get("usageMetadata")),
            id=text_of(inner.get("responseId")),
            own_tools=self.form.own_tools,
            endings=self.form.endings,
            ordinal=sum(len(said.calls) for said in self.said),
        )

    def _merged(self) -> JsonObject:
        document, last = self.documents[0], main_candidate(inner_of(self.documents[-1]))
        inner = inner_of(document)
        first = main_candidate(inner)
        content = {"role": "model", **object_of(first.get("content")), "parts": self._parts() or [EMPTY]}
        candidate = {"index": 0, **first, **last, "content": content, "finishReason": self._finish_word()}
        counts = summed_counts([object_of(inner_of(one).get("usageMetadata")) for one in self.documents])
        return wrapped(document, {**inner, "candidates": [candidate], "usageMetadata": counts}, self.form.envelope)

    def _parts(self) -> list[JsonObject]:
        return merged_parts([parts_of(main_candidate(inner_of(one))) for one in self.documents], self.form.own_tools)

    def _word(self) -> str:
        inner = inner_of(self.documents[-1]) if self.documents else {}
        return text_of(main_candidate(inner).get("finishReason")) or blocked(inner)

    def _finish_word(self) -> str:
        return self.form.endings.write(self._word(), self.dialect, calls=told_calls(self.said))
