"""Anthropic Messages: several rounds in one answer.

1. The text block that was opened last stays open behind its text: its stop is held, and a later text goes on in it.
2. A block keeps its place where nothing before it was withheld; its events then leave as the bytes they came in.
3. Of a later round neither message_start nor thinking is shown; its other blocks get the next indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...errors import BadAnswer
from ...jsonbytes import dumps
from ...turn.said import Said
from ...values import Dialect, JsonObject, ProviderError
from .. import answers
from ..failures import ERROR_KEY, failure_inside, has_error, without_empty_error
from ..fields import object_of, read_object, text_of
from ..finish import CUT_OFF, sends_message_stop
from ..sse import Event, write_event
from .blocks import HIDDEN, Block, Round, Whole, calls_of_all, calls_told, is_own, said_of
from .common import BLANK_LINE, BOM, Form, id_of, is_cut_off, too_long

__all__ = ["Merging", "Whole"]

_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation")
"""Counts that a stream tells at its start; where its end does not repeat them, the last round's are added there."""
_HELD_BYTES = 64 * 1024
"""Pings and comments behind a held event; what is more leaves at once."""


class Merging:
    """One stream of all rounds."""

    def __init__(self, form: Form) -> None:
        self._own = form.own_tools
        self._endings = form.endings
        self._kept: list[Round] = []
        self._round = Round()
        self._begun = False
        """Content has left."""
        self._opening = bytearray()
        """The first round's message_start waits for content: until then another round may take its place."""
        self._next = 0
        """The client's next index."""
        self._open: set[int] = set()
        """The client's blocks that no stop was sent for."""
        self._text: int | None = None
        """The text block that a later text may go on in: nothing stands behind it."""
        self._stop: bytes = b""
        """Its stop, held back."""
        self._behind = bytearray()
        """Pings and comments that came behind that stop."""
        self._goes_on = False
        """The next text goes on in the open block instead of beginning its own."""
        self._glue = False
        """The next text needs a blank line before it."""
        self._spoke = False
        self._withheld = False
        """The client was not shown all of a first round."""
        self._grown = False
        """A later round has shown something."""
        self._pending: list[bytes] = []

    @property
    def _later(self) -> bool:
        return bool(self._kept)

    # The rounds

    def begin_round(self) -> None:
        self._round = Round()
        if not self._later and not self._begun:
            self._opening.clear()
        if self._later:
            self._goes_on, self._glue = True, self._spoke

    def feed(self, chunk: bytes) -> bytes:
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
        blocks = [(block.block, block.arguments) for block in round_.order]
        round_.calls = calls_told(blocks, self._own)
        round_.order.clear()
        round_.blocks.clear()
        said = said_of(
            blocks,
            word=round_.word,
            usage=round_.usage,
            id=text_of(round_.message.get("id")),
            own_tools=self._own,
            endings=self._endings,
            complete=bool(round_.stop) and round_.error is None,
            error=round_.error,
        )
        round_.said = said
        if said.complete:
            self._kept.append(round_)
        return said

    def finish(self) -> Iterable[bytes]:
        if self._breaks_off:
            return (self.fail(502, CUT_OFF, "UPSTREAM_ERROR"),)
        if self._is_as_it_came:
            only = self._kept[0]
            end = only.end if self._stops(only.word) else only.end[: only.end.rfind(only.stop.strip())]
            return (b"".join((*self._pending, self._opening, self._stop, self._behind, end)),)
        last, word = self._kept[-1], self._last_word()
        stop = (last.stop or _event({"type": "message_stop"})) if self._stops(word) else b""
        closed = self._closed(all_=True)
        return (b"".join((*self._pending, self._opening, closed, _event(self._last_delta(last, word)), stop)),)

    def fail(self, status: int, message: str, code: str) -> bytes:
        out, self._pending = b"".join(self._pending), []
        told = self._round.error
        if told is not None and told.message == message and self._round.end and not self._later and not self._withheld:
            return b"".join((out, self._opening, self._stop, self._behind, self._round.end))
        return out + answers.write_error_event(Dialect.MESSAGES, status, message, code)

    def keep_alive(self) -> bytes:
        out, self._pending = b"".join(self._pending), []
        return out + answers.KEEP_ALIVE[Dialect.MESSAGES]

    @property
    def id(self) -> str:
        return id_of(self._said)

    # What the rounds come to

    @property
    def _said(self) -> list[Said]:
        return [round_.said for round_ in self._kept if round_.said is not None]

    @property
    def _breaks_off(self) -> bool:
        """There is no good end: the last round has shown something, and was not complete."""
        complete = self._round.said is not None and self._round.said.complete
        return not complete and (self._round.visible or not self._kept)

    @property
    def _is_as_it_came(self) -> bool:
        return len(self._kept) == 1 and not self._grown and not self._withheld

    def _stops(self, word: object) -> bool:
        return sends_message_stop(word, self._endings.message_stop)

    def _last_word(self) -> str:
        return self._endings.write(
            self._kept[-1].word, Dialect.MESSAGES, calls=calls_of_all(round_.calls for round_ in self._kept)
        )

    def _last_delta(self, last: Round, word: str) -> JsonObject:
        """The last round's own message_delta, with the reason and the counts of the whole answer."""
        said = self._said
        delta = object_of(last.ending.get("delta"))
        usage = object_of(last.ending.get("usage"))
        if len(self._kept) > 1:
            first = object_of(last.message.get("usage"))
            usage = {**{name: first[name] for name in _INPUT if name in first}, **usage}
            usage["output_tokens"] = sum(one.usage.output for one in said)
        rest = {"stop_sequence": None, **delta, "stop_reason": word}
        return {"type": "message_delta", **last.ending, "delta": rest, "usage": usage or {"output_tokens": 0}}

    # The events

    def _hear(self, event: Event) -> bytes:
        document = read_object(event.data) if event.data else None
        if document is None:
            return self._other(event)
        kind = text_of(document.get("type"))
        hear = _HEARD.get(kind)
        if hear is None and has_error(document):
            hear = Merging._error
        if hear is None:
            return self._other(event)
        again = self._resumed() if kind in _CONTENT and self._round.end and not self._round.stop else b""
        return self._opened(again + hear(self, event, document))

    def _opened(self, out: bytes) -> bytes:
        self._round.visible = self._round.visible or bool(out)
        if not out or self._begun:
            return out
        self._begun, opening = True, bytes(self._opening)
        self._opening.clear()
        return opening + out

    def _hear_last(self, event: Event) -> None:
        """What the stream left without its blank line."""
        if is_cut_off(event):
            return
        document = read_object(event.data) if event.data else None
        if self._round.end or (document is not None and document.get("type") in _ENDING):
            self._hear(event)
            if self._round.stop == event.raw:
                self._round.stop += b"\n\n"
        elif document is not None:
            self._pending.append(self._hear(event._replace(raw=event.raw + b"\n\n")))

    def _message_start(self, event: Event, document: JsonObject) -> bytes:
        if self._round.message:
            return b"" if self._later else self._other(event)
        self._round.message = object_of(document.get("message")) or {"id": ""}
        if not self._begun and not self._later:
            self._opening += event.raw
        return b""

    def _block_start(self, event: Event, document: JsonObject) -> bytes:
        round_, index = self._round, _index(document)
        if round_.stop:
            return self._other(event)
        block = Block(object_of(document.get("content_block")))
        round_.blocks[index] = block
        round_.order.append(block)
        if is_own(block.start, self._own):
            round_.places[index] = None
            self._goes_on = self._withheld = True
            return b""
        if self._later and block.kind in HIDDEN:
            round_.places[index] = None
            return b""
        self._grown = self._later
        if block.kind == "text" and self._text is not None and self._goes_on:
            return self._go_on(index, block)
        return self._begin_block(event, document, block)

    def _go_on(self, index: int, block: Block) -> bytes:
        """A text that belongs into the block that is open."""
        place = self._text
        assert place is not None
        self._round.places[index] = place
        out, self._stop, self._behind = bytes(self._behind), b"", bytearray()
        return out + self._text_delta(place, text_of(block.start.get("text")))

    def _begin_block(self, event: Event, document: JsonObject, block: Block) -> bytes:
        out = self._closed(all_=self._later)
        index = _index(document)
        place = self._next if self._later or self._withheld else index
        self._next = max(self._next, place + 1)
        self._round.places[index] = place
        self._open.add(place)
        self._goes_on = self._later
        if block.kind != "text":
            return out + _moved(event, document, place)
        self._text = place
        text = text_of(block.start.get("text"))
        if not (text and self._glue):
            self._spoke = self._spoke or bool(text)
            return out + _moved(event, document, place)
        empty = {**document, "content_block": {**block.start, "text": ""}}
        return out + _written(event, empty, place) + self._text_delta(place, text)

    def _block_delta(self, event: Event, document: JsonObject) -> bytes:
        round_, index = self._round, _index(document)
        if round_.stop:
            return self._other(event)
        delta = object_of(document.get("delta"))
        out = b""
        if index not in round_.places:
            out = self._implied_start(index, delta)
        round_.blocks[index].add(delta)
        place = round_.places[index]
        if place is None:
            return b""
        if delta.get("type") == "text_delta" and delta.get("text"):
            out += self._blank_line(place)
        return out + _moved(event, document, place)

    def _implied_start(self, index: int, delta: JsonObject) -> bytes:
        """A block that some provider forgot to start: in a first round the client gets what the provider sent."""
        kind = text_of(delta.get("type")).removesuffix("_delta")
        start: JsonObject = {"type": kind, "text": ""} if kind == "text" else {"type": kind}
        document: JsonObject = {"type": "content_block_start", "index": index, "content_block": start}
        written = self._block_start(Event("content_block_start", b"", _event(document)), document)
        return written if self._later else b""

    def _block_stop(self, event: Event, document: JsonObject) -> bytes:
        round_, index = self._round, _index(document)
        if round_.end or index not in round_.places:
            return self._other(event)
        place = round_.places[index]
        if place is None:
            return b""
        if place == self._text:
            self._stop = _moved(event, document, place)
            return b""
        self._open.discard(place)
        return _moved(event, document, place)

    def _message_delta(self, event: Event, document: JsonObject) -> bytes:
        ending = self._round.ending
        for name in ("delta", "usage"):
            early = object_of(ending.get(name))
            late = object_of(document.get(name)).items()
            document = {
                **document,
                name: {**early, **{key: value for key, value in late if value is not None or key not in early}},
            }
        self._round.ending = {**ending, **document}
        self._round.end += event.raw
        return b""

    def _message_stop(self, event: Event, document: JsonObject) -> bytes:
        self._round.stop = self._round.stop or event.raw
        self._round.end += event.raw
        return b""

    def _error(self, event: Event, document: JsonObject) -> bytes:
        told = failure_inside(document) or ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR")
        self._round.error = self._round.error or told
        self._round.end += event.raw
        return b""

    def _other(self, event: Event) -> bytes:
        """Pings, comments, and what is not known: in its place in a first round, at once in a later one."""
        if self._round.end:
            return self._held(self._round.end, event.raw)
        if self._stop and not self._later:
            return self._held(self._behind, event.raw)
        return event.raw.removeprefix(BOM) if self._begun else self._held(self._opening, event.raw)

    def _held(self, where: bytearray, raw: bytes) -> bytes:
        if len(where) + len(raw) > _HELD_BYTES:
            return raw if not self._later else b""
        where += raw
        return b""

    def _resumed(self) -> bytes:
        """What seemed to be the end was not: some providers tell a reason and go on."""
        closed = self._closed(all_=False) if self._stop else b""
        end = bytes(self._round.end)
        self._round.end.clear()
        return closed if self._later else closed + end

    # What is written

    def _closed(self, *, all_: bool) -> bytes:
        """The stop of the text block that was held open; with `all_` of every block that is still open."""
        out = [self._stop, bytes(self._behind)]
        if self._stop and self._text is not None:
            self._open.discard(self._text)
        self._text, self._stop, self._behind = None, b"", bytearray()
        if all_:
            out += [_event({"type": "content_block_stop", "index": place}) for place in sorted(self._open)]
            self._open.clear()
        return b"".join(out)

    def _text_delta(self, place: int, text: str) -> bytes:
        if not text:
            return b""
        delta = {"type": "text_delta", "text": text}
        return self._blank_line(place) + _event({"type": "content_block_delta", "index": place, "delta": delta})

    def _blank_line(self, place: int) -> bytes:
        glue, self._glue, self._spoke = self._glue, False, True
        delta = {"type": "text_delta", "text": BLANK_LINE}
        return _event({"type": "content_block_delta", "index": place, "delta": delta}) if glue else b""


_HEARD: dict[str, Callable[[Merging, Event, JsonObject], bytes]] = {
    "message_start": Merging._message_start,
    "content_block_start": Merging._block_start,
    "content_block_delta": Merging._block_delta,
    "content_block_stop": Merging._block_stop,
    "message_delta": Merging._message_delta,
    "message_stop": Merging._message_stop,
    "error": Merging._error,
}
_CONTENT = frozenset(("content_block_start", "content_block_delta"))
_ENDING = frozenset(("message_delta", "message_stop", "error"))


def _index(document: JsonObject) -> int:
    index = document.get("index")
    return index if isinstance(index, int) else 0


def _moved(event: Event, document: JsonObject, place: int) -> bytes:
    """The event at the client's index: the bytes it came in where that is the provider's own."""
    return event.raw if document.get("index") == place else _written(event, document, place)


def _written(event: Event, document: JsonObject, place: int) -> bytes:
    return write_event(dumps({**document, "index": place}), event.name)


def _event(document: JsonObject) -> bytes:
    return write_event(dumps(document), text_of(document.get("type")))
