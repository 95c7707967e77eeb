"""OpenAI Responses: several rounds in one answer.

1. One response id, and numbers without a gap: sequence numbers, output indexes, content indexes.
2. The message that was opened last stays open: what closes it is held, and a later text goes on in it. Closed, it is written anew
   with its whole text, and so is the response object at the end.
3. A later round's reasoning, and what else tells how an answer came about, is kept for the history and not shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO

from ...jsonbytes import dump_pieces, dumps
from ...values import Dialect, JsonObject
from .. import answers
from ..answer.repeated import LONG
from ..answer.responses.items import ended, merged_items, said_of
from ..answers.responses import write_opening
from ..fields import count_of, list_of, read_object, text_of
from ..said import Said
from ..sse import Event, write_event, write_event_pieces
from .common import BLANK_LINE, Collected, Form
from .responses_reading import Reading
from .responses_round import Round, Step
from .untouched import Untouched

_OURS = ("id", "created_at")
"""What an answer that we began keeps to its end; the model that answered is the provider's to tell."""

_TELLS_AGAIN = (".done", ".completed", ".incomplete")
"""How the types of events end that repeat what has been said."""


class Merging(Untouched[Step]):
    """One stream of all rounds."""

    dialect = Dialect.RESPONSES

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self._kept: list[Round] = []
        """The rounds that count."""
        self._reading = Reading(self._own)
        self._named = True
        """Events carry their name outside the JSON as well."""
        self._number: int | None = None
        """The next sequence number; None: the provider gives none."""
        self._opened: JsonObject = {}
        """Who the answer is, where it was begun by us."""

    def open(self, *, id: str, model: str, created: int) -> bytes:
        """The answer begins before any provider has begun one: whose stream it becomes goes on in it as a later round would."""
        self._opened = {"id": id, "created_at": created, "model": model}
        self._as_it_came, self._started, self._number = False, True, 1
        return write_opening(id=id, model=model, created=created)

    # The rounds

    def _forget(self) -> None:
        self._reading, self._number = Reading(self._own), None

    def _begin(self) -> None:
        spoke = any(said.text for said in self._rounds)
        round_ = Round(BLANK_LINE if spoke else "", opens=not self._started and not self._later)
        self._reading.begin(round_, later=self._later)

    def _end(self) -> Said:
        round_, told = self._reading.round, self._reading.end()
        if told and self._as_it_came and self._held:
            self._held[-1].told = [*self._held[-1].told, *told]
        elif told and not self._as_it_came:
            self._pending.append(self._written(told))
        said = said_of(
            round_.items,
            round_.response,
            id=text_of(round_.response.get("id")),
            own_tools=self._own,
            endings=self._form.endings,
            complete=round_.ending is not None and self._told is None,
            error=self._told,
        )
        if said.complete:
            self._kept.append(round_)
        return said

    @property
    def id(self) -> str:
        return text_of(self._opened["id"]) if self._opened else super().id

    # The events

    def _read(self, event: Event) -> Step:
        reading = self._reading
        document = read_object(event.data) if event.data else None
        if document is None:
            bare = not event.data or not self._later
            return Step(event, event.raw, "rests" if reading.is_over else "passes", bare=bare)
        event = event._replace(data=b"")
        if len(event.raw) >= LONG and text_of(document.get("type")).endswith(_TELLS_AGAIN):
            self._repeated.share(document)
        step = Step(event, event.raw, "rests", document=document)
        if reading.is_over or self._told is not None:
            return step
        self._named = bool(event.name)
        number = document.get("sequence_number")
        if self._number is None and not self._started and isinstance(number, int):
            self._number = number
        step.kind, step.told = reading.hear(document, event.name)
        step.is_error, step.repeats = reading.error is not None, step.kind == "rests"
        self._told = reading.error
        self._as_it_came = self._as_it_came and not reading.withheld
        return step

    def _left(self, heard: Step) -> None:
        if heard.document is None:
            return
        number = heard.document.get("sequence_number")
        if isinstance(number, int):
            self._number = number + 1
        self._reading.left(heard.document)

    def _show(self, heard: Step) -> bytes:
        return heard.event.raw if heard.bare else self._written(heard.told, heard)

    def _written(self, documents: Sequence[JsonObject], heard: Step | None = None) -> bytes:
        out = BytesIO()
        for document in documents:
            is_same = heard is not None and document is heard.document
            # what is none of the interface's own events has no number
            numbered = document if is_same and "sequence_number" not in document else self._numbered(document)
            if heard is not None and numbered == heard.document:
                out.write(heard.event.raw)
            else:
                out.write(write_event(dumps(numbered), text_of(numbered.get("type")) if self._named else ""))
        return out.getvalue()

    def _numbered(self, document: JsonObject) -> JsonObject:
        if self._number is None:
            return {name: value for name, value in document.items() if name != "sequence_number"}
        number, self._number = self._number, self._number + 1
        return document if document.get("sequence_number") == number else {**document, "sequence_number": number}

    def _closing(self) -> Iterator[bytes]:
        """The whole text stands in several events: it is written as it is taken, and never as a whole."""
        documents = self._reading.closed()
        items = [item for _, item in sorted(self._reading.items.items())]
        responses = [round_.response for round_ in self._kept]
        first = {**(self._reading.first or responses[0]), **{name: self._opened[name] for name in _OURS if name in self._opened}}
        response = ended(responses, first, items)
        documents.append({**(self._kept[-1].ending or {}), "response": response})
        for document in documents:
            name = text_of(document.get("type")) if self._named else ""
            yield from write_event_pieces(dump_pieces(self._numbered(document), dumps), name)

    def _error_event(self, status: int, message: str, code: str) -> bytes:
        id, model, created = self._about
        sequence = self._number or 0
        return answers.write_error_event(
            self.dialect, status, message, code, id=id, model=model, created=created, sequence=sequence
        )

    def _alive(self) -> bytes:
        """Codex resets its timer for events alone; before the first of them nothing but a comment is allowed."""
        id, model, created = self._about
        if not self._started or not id:
            return answers.KEEP_ALIVE[self.dialect]
        out = self._let_go() if self._as_it_came else b""
        sequence = self._number or 0
        if self._number is not None:
            self._number += 1
        return out + answers.write_keep_alive(self.dialect, id=id, model=model, created=created, sequence=sequence)

    @property
    def _about(self) -> tuple[str, str, int]:
        first = self._opened or self._reading.first
        return text_of(first.get("id")), text_of(first.get("model")), count_of(first.get("created_at"))


class Whole(Collected):
    """All rounds as one JSON answer."""

    dialect = Dialect.RESPONSES

    def _read(self, document: JsonObject) -> Said:
        return said_of(
            _output(document),
            document,
            id=text_of(document.get("id")),
            own_tools=self.form.own_tools,
            endings=self.form.endings,
        )

    def _merged(self) -> JsonObject:
        return ended(self.documents, self.documents[0], self._items)

    @property
    def _items(self) -> list[JsonObject]:
        return merged_items([_output(document) for document in self.documents], self.form.own_tools)


def _output(response: JsonObject) -> list[JsonObject]:
    return [item for item in list_of(response.get("output")) if isinstance(item, dict)]
