"""OpenAI Responses: chunks as the client's bytes.

1. A chunk of this dialect leaves as it came as long as the answer is its round's own. Once it no longer is, events are written
   one by one, each in its native frame, with the answer's own numbers: sequence numbers, output indexes, content indexes, ids.
2. A message stays open as long as text may go on in it. What closes it is made anew, with its whole text, and so is the response
   object at the end.
3. What others said: items one after another. Texts in a row are parts of one message, since some clients show nobody but the last
   message. A thought is a reasoning item with one summary; a seal of another dialect is one opaque word in it, and what seals a
   call stands in a reasoning item before it. For that a call's first piece waits for its second.
4. Calls of custom tools and of OpenAI's own are told when they are whole: only then is it known what they say.
5. No text is kept here: blocks have them, and what tells one again writes it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ....jsonbytes import dump_pieces, dumps
from ....values import Dialect, JsonObject
from ...fields import arguments_of as object_in
from ...fields import count_of, list_of, object_of, text_of
from ...finish import Finish, read_finish, read_response_finish
from ...sse import write_event, write_event_pieces
from ...translation.neutral import Asked, Feature, Seal, ToolName
from ...translation.opaque import MARK
from ...translation.reading.responses_tools import BUILT_IN
from ..beside import name_media, name_tool
from ..counts import summed_counts
from ..events import (
    Began,
    Block,
    Chunk,
    Cited,
    Closed,
    Closing,
    Counted,
    Ended,
    Event,
    Extra,
    Failed,
    Field,
    Opened,
    Piece,
)
from ..join import BLANK_LINE
from ..openai_errors import error_told
from ..said import GrowingText, arguments_of
from ..words import free_text, told_media
from ..written import AnyWriter, Document
from .history import item_of, seal_fields, served
from .items import TEXT, WRITTEN, continued_item, moved_annotation, text_in
from .made import (
    Names,
    built_in,
    ended,
    message_item,
    picture_item,
    response_head,
    text_part,
)
from .read import ADDED, ITEM_DONE, KEYS, PART_ADDED, PART_DONE, Part

_SHOWN_CODES = frozenset(
    ("context_length_exceeded", "insufficient_quota", "usage_not_included", "invalid_prompt", "cyber_policy")
)
"""Codes that Codex knows and does not answer with retries."""
_FIRST = ("id", "created_at", "model", "previous_response_id")
"""What the whole answer has from the first round; the rest is the last one's."""
_TEXT_DELTA = "response.output_text.delta"
_DELTA_FIELDS = 7
"""So many of one has OpenAI itself: a vendor's own are kept."""
_OURS = ("id", "created_at")
"""What an answer that we began keeps to its end; the model that answered is the provider's to tell."""
_NUMBER = b'"sequence_number":'
_FIRST_ACTION: dict[str, JsonObject] = {"local_shell": {"type": "exec", "env": {}}}
"""What a built-in tool's call must have, whether the model wrote it or not."""


class _Shown(Struct, eq=False):
    """One part of a message, as the client has it."""

    kind: str
    native: JsonObject
    block: Block
    """Under whom it began."""
    own: Part | None
    """The provider's own part, where it is of this dialect."""
    start: int = 0
    """Where it stands in what the client sees of its block's text."""
    length: int = 0
    sources: list[tuple[Part, int]] = []
    """Whose text it is, and where each begins."""
    annotations: int = 0
    cited: list[object] = []
    """Those of other dialects."""

    def add(self, text: str, part: Part | None) -> None:
        if part is not None and not any(part is known for known, _ in self.sources[-1:]):
            glued = text.startswith(BLANK_LINE) and bool(self.length or part.block is self.block)
            is_first = part.block is self.block and not (self.length or self.start)
            lead = len(self.block.glue) if is_first else len(BLANK_LINE) * glued
            self.sources.append((part, self.length + lead))
        self.length += len(text)

    @property
    def whole(self) -> JsonObject:
        """With what its provider said of it at its end; what points into a text still does."""
        key = KEYS.get(self.kind)
        if key is None:
            return self.own.native if self.own is not None else self.native
        done = dict(self.sources[0][0].native if self.sources else self.native)
        annotations: list[object] = []
        probabilities: list[object] = []
        for part, start in self.sources:
            own = list_of(part.native.get("annotations")) if part.done else part.annotations
            annotations += [moved_annotation(one, start) for one in own] if start else own
            probabilities += list_of(part.native.get("logprobs"))
        done[key] = self.block.text_between(self.start, self.length)
        annotations += self.cited
        if self.kind == "output_text" and (annotations or "annotations" in done):
            done["annotations"] = annotations
        if "logprobs" in done or probabilities:
            done["logprobs"] = probabilities
        return done


class _Item(Struct, eq=False):
    """One output item, as the client has it."""

    block: Block
    index: int
    id: str
    native: JsonObject
    parts: list[JsonObject] = []
    """Those that are done."""
    part: _Shown | None = None
    ended: tuple[Block, int] | None = None
    """Whose text its parts end with, and where in it."""
    last: Block | None = None
    """Whose text came last."""
    done: bool = False

    def start(self, block: Block) -> int:
        """Where in the block's text its next part begins."""
        return self.ended[1] if self.ended is not None and self.ended[0] is block else 0

    def named(self, item: JsonObject) -> JsonObject:
        return {**item, "id": self.id} if "id" in item else item

    def moved(self, document: JsonObject) -> JsonObject:
        named = {"item_id": self.id} if "item_id" in document else {}
        return {**document, "output_index": self.index, **named}


class _Call(Struct):
    """Another dialect's call on its way."""

    kind: str
    """What its item is, or which of OpenAI's own tools it calls."""
    pieces: list[str] = []
    live: bool = False


class _Writer(AnyWriter):
    """What a stream's and a document's writer share: the answer as a list of events, each a document."""

    dialect = Dialect.RESPONSES
    ALIVE = b": keepalive\n\n"
    """Before `response.created`; after it `write_keep_alive`, which also resets Codex's idle timer."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._names = Names(asked)
        self._own = built_in(asked)
        declared = [tool for tool in map(object_of, list_of(asked.response.get("tools"))) if tool.get("type") == "custom"]
        self._custom = frozenset(text_of(tool.get("name")) for tool in declared)
        self._number: int | None = None
        """The next sequence number; None: the provider gives none."""
        self._begun = self._ours = False
        """The client was told who the answer is; it was we who said so."""
        self._first: JsonObject = {}
        """The response object that it was told."""
        self._last: JsonObject = {}
        """The running round's own, where it came as a document."""
        self._items: dict[Block, _Item] = {}
        self._output: dict[int, JsonObject] = {}
        """Items that are done, by the client's index."""
        self._count = 0
        self._ids: dict[str, int] = {}
        self._message: _Item | None = None
        """Others' texts: the message in which a further one stands. It is open."""
        self._shown: _Shown | None = None
        """What nearly all events say more of."""
        self._calls: dict[Block, _Call] = {}
        self._spaces: dict[Block, str] = {}
        self._late: list[Seal] = []
        """They came behind a text, which may go on."""
        self._counted: Counted | None = None

    def begin_round(self, tools: Mapping[str, ToolName]) -> None:
        super().begin_round(tools)
        self._last = {}

    def name(self, block: Block, answer: str = "") -> None:
        """What the client knows a call by, whoever made it."""
        known = self._tools.get(block.name, ToolName(block.name))
        block.as_custom = known.custom or (block.custom and known.name in self._custom)
        block.name, block.id, block.named = known.name, self._names.call(block.id), True
        if known.namespace:
            self._spaces[block] = known.namespace

    def id_of(self, id: str) -> str:
        return self._names.response(id)

    # --- what leaves as it came -----------------------------------------------------------------------------------------

    def _take(self, events: Iterable[Event], document: JsonObject) -> None:
        """It counts as well."""
        for event in events:
            match event:
                case Piece(block=block, native=part) if type(part) is Part:
                    item = self._items.get(block) or self._add(block, block.native or {}, document.get("output_index"))
                    if item.part is None or item.part.own is not part:
                        self._end_part(item)
                        item.part = self._shown = _Shown(part.kind, part.native, block, part, item.start(block))
                        item.part.sources.append((part, 0))
                    item.part.length += len(event.text)
                case Opened(block=block):
                    if block.kind != "media" and block not in self._items:
                        self._add(block, block.native or {}, document.get("output_index"))
                case Closing(block=block) if document.get("type") == PART_DONE and block in self._items:
                    self._end_part(self._items[block])
                case Extra(block=block) if "annotation" in document and block in self._items:
                    if (shown := self._items[block].part) is not None:
                        shown.annotations += 1
                case Closed(block=block) if block in self._items:
                    item = self._items[block]
                    self._end_part(item)
                    item.done, self._output[item.index] = True, block.native or {}
                    self._asked.keep(self._output[item.index])
                case Began():
                    self._begun, self._first = True, self._first or object_of(document.get("response"))
                case _:
                    pass

    def _end_part(self, item: _Item) -> None:
        part, item.part, self._shown = item.part, None, None
        if part is not None:
            item.parts.append(part.whole)
            item.ended = part.block, part.start + part.length

    def _add(self, block: Block, native: JsonObject, index: object = None) -> _Item:
        place = index if isinstance(index, int) and not self.altered else self._count
        self._count = max(self._count, place + 1)
        id = text_of(native.get("id"))
        if block.native is None or block.foreign:
            id = self._names.item(id, place)
        # ids of items differ within an answer, also where a provider gives every answer the same ones
        free = id
        while free in self._ids:
            self._ids[id] += 1
            free = f"{id}_{self._ids[id]}"
        if id:
            self._ids[free] = 1
        block.place = place
        item = self._items[block] = _Item(block, place, free, native)
        return item

    # --- events of this dialect -----------------------------------------------------------------------------------------

    def _framed(self, events: Iterable[Event], document: JsonObject, kind: str) -> Iterator[JsonObject]:
        """What a unit says, in the client's numbers; `kind`: of the unit."""
        moved: set[Block] = set()
        for event in events:
            match event:
                case Piece(block=block) if block.kind == "text":
                    yield from self._write_text(event, document)
                case Opened(block=block) if block.kind != "media":
                    yield from self._write_added(block, document if kind == ADDED else {})
                case Closed(block=block) if block.kind != "media" and block in self._items:
                    yield from self._write_done(self._items[block], document if kind == ITEM_DONE else {})
                case Extra(block=block) if block in self._items and block.kind == "text":
                    yield self._annotated(self._items[block], event.native)
                case Piece(block=block) | Extra(block=block) | Closing(block=block) if (
                    block in self._items and block.kind != "text"
                ):
                    if kind not in (ADDED, ITEM_DONE) and "response" not in document and block not in moved:
                        moved.add(block)
                        yield self._items[block].moved(document)
                case Began():
                    first = object_of(document.get("response"))
                    if not self._begun:
                        self._begun, self._first = True, first
                        if kind.endswith(("created", "queued", "in_progress")):
                            yield document
                    elif self._ours:
                        self._first = {**first, **{name: self._first[name] for name in _OURS}}
                case Field() if not event.name and event.native is document:
                    if not (self._ours and "response" in document):
                        yield document
                case Counted():
                    self._counted = event
                case Ended(finish_reason=word):
                    yield from self._end(word, document)
                case _:
                    pass

    def _write_added(self, block: Block, document: JsonObject) -> Iterator[JsonObject]:
        yield from self._leave_message()
        native = block.native or {}
        told = native
        if not document and block.kind == "text":
            told = {**native, "content": []}
        item = self._add(block, native, document.get("output_index"))
        yield {"type": ADDED, **document, "output_index": item.index, "item": item.named(told)}

    def _write_text(self, event: Piece, document: JsonObject) -> Iterator[JsonObject]:
        block, text = event.block, event.text
        part = event.native if type(event.native) is Part else None
        item = self._items.get(block)
        if item is None:
            if block.native is not None and not block.foreign:
                yield from self._write_added(block, {})
            elif not text:
                return
            elif self._message is not None:
                self._items[block] = self._message
            else:
                yield from self._between()
                self._message = item = self._add(block, message_item("msg", [], "in_progress"))
                yield {"type": ADDED, "output_index": item.index, "item": item.named(item.native)}
            item = self._items[block]
        kind = part.kind if part is not None else "output_text"
        shown, own = item.part, part if part is not None and part.block is block else None
        if shown is None or shown.kind != kind or shown.block is not block or (own is not None and shown.own is not own):
            if not text and part is None:
                return
            yield from self._close_part(item)
            native = part.native if part is not None else text_part("")
            if key := KEYS.get(kind):
                native = {**native, key: "", **({"annotations": []} if "annotations" in native else {})}
                native |= {"logprobs": []} if "logprobs" in native else {}
            item.part = shown = _Shown(kind, native, block, own, item.start(block))
            frame = document if document.get("type") == PART_ADDED else {}
            yield self._placed({"type": PART_ADDED, **frame, "part": native}, item)
        self._shown = shown
        item.last = part.block if part is not None else block
        if part is not None and own is None and not shown.length:
            said, text = text, text.removeprefix(BLANK_LINE)  # nothing stands before it in this part
            shown.start += len(said) - len(text)
        if not text:
            return
        shown.add(text, part)
        name = f"response.{kind}.delta"
        frame = document if document.get("type") == name else {"type": name, "item_id": "", "output_index": 0, "content_index": 0}
        delta = {**self._placed(frame, item), "delta": text}
        if frame is not document and kind == "output_text":
            delta["logprobs"] = []
        yield delta

    def _placed(self, document: JsonObject, item: _Item) -> JsonObject:
        return {**document, "item_id": item.id, "output_index": item.index, "content_index": len(item.parts)}

    def _annotated(self, item: _Item, document: JsonObject) -> JsonObject:
        shown = item.part
        if "annotation" not in document or shown is None:
            return item.moved(document)
        start = shown.sources[-1][1] if shown.sources else 0
        told = {**self._placed(document, item), "annotation": moved_annotation(document["annotation"], start)}
        if "annotation_index" in document:
            told["annotation_index"] = shown.annotations
        shown.annotations += 1
        return told

    def _cite(self, cited: Cited) -> Iterator[JsonObject]:
        item, citation = self._items.get(cited.block), cited.citation
        shown = item.part if item is not None else None
        if item is None or shown is None or shown.kind != TEXT or shown.block is not cited.block or not citation.url:
            self.left_out.add(Feature.CITATIONS, citation.title)
            return
        place = {"start_index": citation.start - shown.start, "end_index": citation.end - shown.start}
        told = {"type": "url_citation", **place, "title": citation.title, "url": citation.url}
        at = self._placed({"type": "response.output_text.annotation.added"}, item)
        yield {**at, "annotation_index": shown.annotations, "annotation": told}
        shown.annotations += 1
        shown.cited.append(told)

    def _close_part(self, item: _Item) -> Iterator[JsonObject]:
        if item.part is None:
            return
        at = self._placed({}, item)
        self._end_part(item)
        part = item.parts[-1]
        kind = text_of(part.get("type"))
        if key := KEYS.get(kind):
            probabilities = {"logprobs": list_of(part.get("logprobs"))} if kind == "output_text" else {}
            yield {"type": f"response.{kind}.done", **at, key: part[key], **probabilities}
        yield {"type": PART_DONE, **at, "part": part}

    def _write_done(self, item: _Item, document: JsonObject) -> Iterator[JsonObject]:
        if item.done:
            return
        item.done, block = True, item.block
        if block.kind == "text":
            yield from self._close_part(item)
            native = block.native if block.native is not None and not block.foreign else item.native
            if item.last is not None and item.last is not block and not item.last.foreign:
                native = continued_item(native, item.last.native or {})
            status = text_of(native.get("status"))
            told = {**native, "content": item.parts, "status": "completed" if status in ("", "in_progress") else status}
        else:
            told = item_of(block, str(block.text or ""))
        yield {"type": ITEM_DONE, **document, "output_index": item.index, "item": self._kept(item, told)}

    # --- what was said elsewhere ----------------------------------------------------------------------------------------

    def _made(self, event: Event) -> Iterator[JsonObject]:
        match event:
            case Piece(block=block):
                if block.kind == "text":
                    yield from self._begin()
                    yield from self._write_text(event, {})
                elif block.foreign and event.text:
                    yield from (self._write_thought if block.kind == "thought" else self._write_call)(block, event.text)
            case Opened(block=block):
                yield from self._begin()
                if block.foreign and block.kind == "call":
                    yield from self._between()
                    custom, own = block.as_custom, block.name in self._own
                    self._calls[block] = _Call("custom_tool_call" if custom else block.name if own else "function_call")
                elif block.foreign and block.kind == "media":
                    yield from self._write_media(block)
                elif block.kind == "text" and not block.foreign:
                    yield from self._write_added(block, {})
            case Closed(block=block):
                yield from self._begin()
                yield from self._close(block)
            case Cited():
                yield from self._cite(event)
            case Began():
                yield from self._begin(event.id)
            case Counted():
                self._counted = event
            case Ended(finish_reason=word):
                yield from self._begin()
                yield from self._end(word, {"response": self._last})
            case _:
                pass

    def _begin(self, id: str = "") -> Iterator[JsonObject]:
        if not self._begun:
            self._begun = True
            asked = self._asked
            self._first = self._first or response_head(self.id_of(id), asked.model, asked.created, told=asked.response)
            yield {"type": "response.created", "response": self._first}
            yield {"type": "response.in_progress", "response": self._first}

    def _between(self) -> Iterator[JsonObject]:
        """Whatever is open ends here."""
        yield from self._leave_message()
        late, self._late = self._late, []
        for seal in late:
            yield from self._write_seal(seal)

    def _leave_message(self) -> Iterator[JsonObject]:
        message, self._message = self._message, None
        if message is not None:
            yield from self._write_done(message, {})

    def _close(self, block: Block) -> Iterator[JsonObject]:
        item = self._items.get(block)
        if block.kind == "text":
            if item is not None and (item is self._message or item.block.foreign):
                yield from self._close_part(item)
            elif item is not None:
                yield from self._write_done(item, {})
        elif block.kind == "trace" and block.foreign:
            yield from self._write_trace(block)
        elif not block.foreign:
            yield from self._write_whole(block) if item is None and block.native is not None else ()
            if block in self._items:
                yield from self._write_done(self._items[block], {})
        elif block.kind == "thought":
            yield from self._close_thought(block)
        elif block.kind == "call" and not block.half:  # the end says of such a one that it is incomplete
            yield from self._close_call(block)

    def _write_whole(self, block: Block) -> Iterator[JsonObject]:
        """An item of a document of this dialect."""
        yield from self._leave_message()
        native = block.native or {}
        kind = text_of(native.get("type"))
        item = self._add(block, native)
        key = WRITTEN.get(kind, "summary" if kind == "reasoning" else "")
        empty: JsonObject = {key: [] if key == "summary" else ""} if key else {}
        yield {"type": ADDED, "output_index": item.index, "item": item.named({**native, "status": "in_progress", **empty})}
        at: JsonObject = {"item_id": item.id, "output_index": item.index}
        if kind in WRITTEN:
            written = text_of(native.get(key))
            yield {"type": f"response.{kind}_{key}.delta", **at, "delta": written}
            yield {"type": f"response.{kind}_{key}.done", **at, key: written}
        for place, part in enumerate(list_of(native.get("summary")) if key == "summary" else ()):
            text = text_of(object_of(part).get("text"))
            yield from self._write_summary({**at, "summary_index": place}, part, text)

    def _write_summary(self, at: JsonObject, part: object, text: str) -> Iterator[JsonObject]:
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**object_of(part), "text": ""}}
        yield {"type": "response.reasoning_summary_text.delta", **at, "delta": text}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": text}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}

    def _write_thought(self, block: Block, text: str) -> Iterator[JsonObject]:
        item = self._items.get(block)
        if item is None:
            yield from self._begin()
            yield from self._between()
            item = self._add(block, {"id": "rs", "type": "reasoning", "summary": []})
            yield {"type": ADDED, "output_index": item.index, "item": item.named({**item.native, **self._state("in_progress")})}
            part = {"type": "summary_text", "text": ""}
            yield {"type": "response.reasoning_summary_part.added", **self._about(item), "part": part}
        yield {"type": "response.reasoning_summary_text.delta", **self._about(item), "delta": text}

    def _about(self, item: _Item) -> dict[str, Any]:
        return {"item_id": item.id, "output_index": item.index, "summary_index": 0}

    def _close_thought(self, block: Block) -> Iterator[JsonObject]:
        item = self._items.get(block)
        if item is None:
            if block.seal is not None and self._message is not None:
                self._late.append(block.seal)
            elif block.seal is not None:
                yield from self._begin()
                yield from self._between()
                yield from self._write_seal(block.seal)
            return
        text = str(block.text or "")
        part = {"type": "summary_text", "text": text}
        yield {"type": "response.reasoning_summary_text.done", **self._about(item), "text": text}
        yield {"type": "response.reasoning_summary_part.done", **self._about(item), "part": part}
        yield self._ended(item, {**item.native, **self._state("completed"), "summary": [part], **seal_fields(block.seal)})

    def _state(self, status: str) -> JsonObject:
        """Of a thought: what was made for some hosts misses it where it is not told."""
        return {"status": status} if self._asked.whole_calls else {}

    def _ended(self, item: _Item, told: JsonObject) -> JsonObject:
        item.done = True
        return {"type": ITEM_DONE, "output_index": item.index, "item": self._kept(item, told)}

    def _kept(self, item: _Item, told: JsonObject) -> JsonObject:
        whole = self._output[item.index] = item.named(told)
        self._asked.keep(whole)
        return whole

    def _write_seal(self, seal: Seal) -> Iterator[JsonObject]:
        """A reasoning item of nothing but its seal."""
        item = self._add(Block("thought"), {"id": "rs", "type": "reasoning", "summary": []})
        told = {**item.named(item.native), **self._state("completed"), **seal_fields(seal)}
        yield {
            "type": ADDED,
            "output_index": item.index,
            "item": {**told, **self._state("in_progress"), "encrypted_content": None},
        }
        yield self._ended(item, told)

    def _write_media(self, block: Block) -> Iterator[JsonObject]:
        media = block.media
        if media is None:
            return
        if media.kind != "image" or not media.data:
            name_media(self.left_out, media)
            placeholder = Block("text")
            placeholder.foreign, placeholder.text = True, GrowingText(told_media(media))
            yield from self._write_text(Piece(placeholder, str(placeholder.text)), {})
            return
        yield from self._between()
        item = self._add(block, picture_item("ig", media))
        told = item.named({**item.native, "status": "in_progress", "result": None})
        yield {"type": ADDED, "output_index": item.index, "item": told}
        yield self._ended(item, item.native)

    def _write_trace(self, block: Block) -> Iterator[JsonObject]:
        told = served(block)
        if told is None:
            name_tool(self.left_out, block.name, block.native)
            return
        yield from self._between()
        prefix = {"web_search_call": "ws", "code_interpreter_call": "ci"}.get(text_of(told["type"]), "mcp")
        item = self._add(block, {**told, "id": f"{prefix}_{MARK}"})
        yield {"type": ADDED, "output_index": item.index, "item": item.named({**item.native, "status": "in_progress"})}
        yield self._ended(item, item.native)

    # Calls of others

    def _write_call(self, block: Block, text: str) -> Iterator[JsonObject]:
        call = self._calls.get(block)
        if call is None:
            return
        call.pieces.append(text)
        if call.live:
            yield self._call_delta(block, text)
        elif call.kind == "function_call" and len(call.pieces) > 1 and not block.custom and block.seal is None:
            yield self._begin_call(block, call)
            yield self._call_delta(block, "".join(call.pieces))

    def _begin_call(self, block: Block, call: _Call) -> JsonObject:
        call.live = True
        prefix = {"function_call": "fc", "custom_tool_call": "ctc"}.get(call.kind, "sh")
        item = self._add(block, {"id": prefix})
        return {"type": ADDED, "output_index": item.index, "item": self._call_item(block, call, "in_progress", opening=True)}

    def _call_delta(self, block: Block, text: str) -> JsonObject:
        item, kind = self._items[block], self._calls[block].kind
        return {"type": f"response.{kind}_{WRITTEN[kind]}.delta", "item_id": item.id, "output_index": item.index, "delta": text}

    def _call_item(self, block: Block, call: _Call, status: str, *, opening: bool = False) -> JsonObject:
        item, written = self._items[block], self._arguments(block, call)
        named = {"namespace": self._spaces[block]} if block in self._spaces else {}
        if call.kind in BUILT_IN:
            own = BUILT_IN[call.kind]
            action = {**_FIRST_ACTION.get(call.kind, {}), **object_in(written)}
            return {"id": item.id, "type": own.item, "status": status, "call_id": block.id, own.field: action}
        head: JsonObject = {"id": item.id, "type": call.kind, "status": status, "call_id": block.id}
        return {**head, "name": block.name, **named, WRITTEN[call.kind]: "" if opening else written}

    def _arguments(self, block: Block, call: _Call) -> str:
        text = "".join(call.pieces)
        if call.kind == "custom_tool_call":
            return text if block.custom else free_text(text)
        return arguments_of(block, text) or "{}"

    def _close_call(self, block: Block) -> Iterator[JsonObject]:
        call = self._calls.get(block)
        if call is None:
            return
        if not call.live:
            yield from self._write_seal(block.seal) if block.seal is not None else ()
            yield self._begin_call(block, call)
            if call.kind in WRITTEN:
                yield self._call_delta(block, self._arguments(block, call))
        del self._calls[block]
        item, written = self._items[block], self._arguments(block, call)
        if field := WRITTEN.get(call.kind):
            about: JsonObject = {"item_id": item.id, "output_index": item.index}
            name = {"name": block.name} if call.kind == "function_call" else {}
            yield {"type": f"response.{call.kind}_{field}.done", **about, **name, field: written}
        yield self._ended(item, self._call_item(block, call, "completed"))

    # --- the end --------------------------------------------------------------------------------------------------------

    def _end(self, word: str, document: JsonObject) -> Iterator[JsonObject]:
        yield from self._between()
        for block, call in list(self._calls.items()):
            if call.live:  # the answer broke off in it
                yield self._ended(self._items[block], self._call_item(block, call, "incomplete"))
        response = self._response(word, object_of(document.get("response")))
        # an `error` beside the response makes the official SDKs raise, as for any failed answer
        error = {"error": response["error"]} if response.get("status") == "failed" and response.get("error") else {}
        kind = text_of(response.get("status"))
        if read_response_finish(object_of(document.get("response"))) == word:
            kind = text_of(document.get("type")).rpartition(".")[2] or kind
        yield {**document, "type": f"response.{kind}", "response": response, **error}

    def _response(self, word: str, last: JsonObject) -> JsonObject:
        """The response object of the whole answer: the last round's, with what the first round's tells about who it is."""
        output = [item for _, item in sorted(self._output.items())]
        counted, finish = self._counted, Finish(read_finish(word) or "stop", word, "")
        made = ended(self._first, output, finish, counted.tokens if counted is not None else None, self._asked)
        if not last:
            whole = made
        else:
            whole = {**last, **{name: self._first[name] for name in _FIRST if name in self._first}, "output": output}
            if read_response_finish(last) != word and (last.get("status") or word != "completed"):
                whole |= {name: made.get(name) for name in ("status", "incomplete_details", "error")}
            if "output_text" in last:
                whole["output_text"] = text_in(output)
        if counted is not None and counted.rounds:
            whole["usage"] = summed_counts(counted.rounds, "input_tokens", "output_tokens")
        elif counted is not None and last:
            whole["usage"] = made["usage"] if counted.native is None else counted.native
        return whole

    @property
    def _about_answer(self) -> dict[str, Any]:
        first, asked = self._first, self._asked
        id, model = text_of(first.get("id")) or self.id_of(""), text_of(first.get("model")) or asked.model
        return {"id": id, "model": model, "created": count_of(first.get("created_at")) or asked.created}


class Writer(_Writer):
    """One stream."""

    opens = True

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._told = False
        """Something has left."""
        self._named = True
        """Events carry their name outside the JSON as well."""
        self._unread = b""
        """The last bytes that left without being read: they hold the last number."""
        self._plain: _Shown | None = None
        self._before = self._behind = b""
        """What stands around a delta of that part, and its number."""

    def open(self, *, id: str, model: str, created: int) -> bytes:
        self._begun = self._ours = self._told = True
        self._first = response_head(id, model, created, told=self._asked.response)
        self._number = 1
        return _lifecycle("response.created", 0, response_head(id, model, created))

    def keep_alive(self) -> bytes:
        """Codex resets its timer for events alone; before the first of them nothing but a comment is allowed."""
        if not (self._told and self._first.get("id")):
            return self.ALIVE
        return write_keep_alive(**self._about_answer, sequence=self._next_number() or 0)

    def write(self, chunk: Chunk) -> bytes:
        document = chunk.native
        if chunk.form == "document" or chunk.dialect is not Dialect.RESPONSES or (document is None and not chunk.raw):
            return b"".join([self.made(event) for event in self._without_head(chunk)])
        if not self.altered and chunk.raw:
            return self._pass(chunk)
        if document is None or (not chunk.events and "sequence_number" not in document):
            return chunk.raw  # none of the interface's own
        if (more := self._more(chunk.events, document)) is not None:
            return more if type(more) is bytes else write_event(dumps(more), chunk.name)
        return b"".join(self._in_pieces(self._in_frame(chunk, document), chunk))

    def _more(self, events: Sequence[Event], document: JsonObject) -> JsonObject | bytes | None:
        """Nearly all of a later round: more of the text that is open."""
        shown, number = self._shown, self._number
        if len(events) != 1 or type(event := events[0]) is not Piece or shown is None or number is None:
            return None
        if event.block is not shown.block or not shown.length or not event.text or document.get("type") != _TEXT_DELTA:
            return None
        if not shown.sources or shown.sources[-1][0] is not event.native or "sequence_number" not in document or self._unread:
            return None
        if document.get("logprobs") == [] and len(document) == _DELTA_FIELDS:
            if self._plain is not shown:
                self._prepare(event.block)
            if self._plain is shown:
                return self._delta(shown, event.text, event.native)
        shown.add(event.text, event.native)
        self._number = number + 1
        told = self._placed(document, self._items[event.block])
        told["sequence_number"], told["delta"] = number, event.text
        return told

    def pieces(self, chunk: Chunk) -> Iterator[bytes]:
        is_own = chunk.form != "document" and chunk.dialect is Dialect.RESPONSES
        document = chunk.native if is_own else None
        if is_own and chunk.raw and (document is None or not chunk.events or not self.altered):
            yield from super().pieces(chunk)
        elif document is not None:
            yield from self._in_pieces(self._in_frame(chunk, document), chunk)
        else:
            self._number = self._number if self._told else 0
            for event in self._without_head(chunk):
                if type(event) is Failed:
                    yield self.made(event)
                else:
                    yield from self._in_pieces(self._made(event))

    def made(self, event: Event) -> bytes:
        shown = self._plain
        if type(event) is Piece and shown is not None and shown is self._shown and event.block is shown.block and event.text:
            return self._delta(shown, event.text, None)
        if type(event) is Failed:
            error, number = event.error, self._next_number() or 0
            return write_error_event(error.status, error.message, error.code, **self._about_answer, sequence=number)
        self._number = self._number if self._told else 0
        out = b"".join(self._in_pieces(self._made(event)))
        if type(event) is Piece and event.block.kind == "text":
            self._prepare(event.block)
        return out

    def _delta(self, shown: _Shown, text: str, part: Part | None) -> bytes:
        shown.add(text, part)
        number = self._number or 0
        self._number = number + 1
        return b"".join((self._before, b"%d" % number, self._behind, dumps(text), b',"logprobs":[]}\n\n'))

    def _prepare(self, block: Block) -> None:
        """Deltas are nearly all of a stream, so they are not built anew each time."""
        item, shown = self._items.get(block), self._shown
        if item is None or shown is None or shown.kind != "output_text" or self._number is None or not self._named:
            self._plain = None
        elif shown is not self._plain and shown.block is block:
            kind = _TEXT_DELTA.encode()
            self._before = b'event: %s\ndata: {"type":"%s",%s' % (kind, kind, _NUMBER)
            self._behind = b"," + dumps(self._placed({}, item))[1:-1] + b',"delta":'
            self._plain = shown

    def _pass(self, chunk: Chunk) -> bytes:
        """As it came: it counts as well."""
        document, events = chunk.native, chunk.events
        if document is None:
            self._unread = chunk.raw if not events and _NUMBER in chunk.raw else self._unread
            return chunk.raw
        number = document.get("sequence_number")
        if isinstance(number, int):
            self._number, self._unread = number + 1, b""
        self._told, shown = True, self._shown
        if len(events) == 1 and type(piece := events[0]) is Piece and shown is not None and piece.native is shown.own:
            shown.length += len(piece.text)
        elif events:
            self._named = bool(chunk.name)
            self._take(events, document)
        return chunk.raw

    def _in_frame(self, chunk: Chunk, document: JsonObject) -> Iterable[JsonObject]:
        if not chunk.events:
            return (document,)
        if not self._told:
            number = document.get("sequence_number")
            self._number = number if isinstance(number, int) else None
            self._named = bool(chunk.name)
        self._plain = None
        return self._framed(chunk.events, document, text_of(document.get("type")) or chunk.name)

    def _without_head(self, chunk: Chunk) -> Iterable[Event]:
        """Of a document of this dialect the client is told its own response object."""
        if chunk.form == "document" and chunk.dialect is Dialect.RESPONSES and chunk.native is not None:
            self._last = chunk.native
            self._first = self._first or {**chunk.native, "status": "in_progress", "output": [], "usage": None}
        return chunk.events

    def _in_pieces(self, documents: Iterable[JsonObject], chunk: Chunk | None = None) -> Iterator[bytes]:
        """Numbered; as the chunk came, where that is what it says."""
        for document in documents:
            numbered = self._numbered(document)
            if chunk is not None and chunk.raw and not chunk.rest and numbered == chunk.native:
                yield chunk.raw
            else:
                yield from write_event_pieces(dump_pieces(numbered, dumps), text_of(numbered.get("type")) if self._named else "")

    def _numbered(self, document: JsonObject) -> JsonObject:
        self._told = True
        number = self._next_number()
        if number is None:
            return {name: value for name, value in document.items() if name != "sequence_number"}
        if "sequence_number" in document:
            return document if document["sequence_number"] == number else {**document, "sequence_number": number}
        return {"type": document.get("type"), "sequence_number": number, **document}

    def _next_number(self) -> int | None:
        if self._unread:
            digits = self._unread[self._unread.rindex(_NUMBER) + len(_NUMBER) :].partition(b",")[0].partition(b"}")[0].strip()
            self._number, self._unread = int(digits) + 1 if digits.isdigit() else self._number, b""
        number = self._number
        if number is not None:
            self._number = number + 1
        return number


class Whole(Document, _Writer):
    """One JSON document: what a stream would end with."""

    apart = True

    def made(self, event: Event) -> bytes:
        self._last = {} if type(event) is Ended else self._last
        return super().made(event)

    def _frame_in(self, document: JsonObject, *, is_whole: bool) -> None:
        response = document if is_whole else object_of(document.get("response"))
        self._first, self._last = self._first or response, response or self._last
        if is_whole:
            for item in filter(None, map(object_of, list_of(response.get("output")))):
                self._asked.keep(item)

    def _put_together(self) -> JsonObject:
        content, word = self._content, "completed"
        _run(self._begin(content.began.id if content.began is not None else ""))
        for block in content.blocks:
            if content.leaves_out(block):
                continue  # the answer broke off in it, or it is nobody's: nobody may run it
            pieces = [Piece(block, text, part) for text, part in content.pieces_of(block)]
            told: list[Event] = [Opened(block), *pieces, *content.cited.get(block, ()), Closed(block)]
            for event in told:
                _run(self._made(event))
        _run(self._between())
        self._counted = content.counted
        return self._response(content.ended.finish_reason if content.ended is not None else word, self._last)


def _run(documents: Iterable[JsonObject]) -> None:
    """Of a document only what its items come to is told."""
    for _ in documents:
        pass


def write_error_event(
    status: int, message: str, code: str, *, id: str = "", model: str = "", created: int = 0, sequence: int = 0
) -> bytes:
    """`response.failed`, which Codex shows; `error` beside it makes the official SDKs raise instead of ending quietly."""
    failed = response_head(id, model, created, "failed")
    failed["error"] = {"code": _failed_code(status, code), "message": message}
    return _lifecycle("response.failed", sequence, failed, error=error_told(status, message, code))


def write_keep_alive(*, id: str, model: str, created: int, sequence: int = 0) -> bytes:
    """A repeated `response.in_progress`; `id` must be the one that `response.created` told."""
    return _lifecycle("response.in_progress", sequence, response_head(id, model, created))


def _lifecycle(kind: str, number: int, response: JsonObject, **beside: object) -> bytes:
    return write_event(dumps({"type": kind, "sequence_number": number, "response": response, **beside}), kind)


def _failed_code(status: int, code: str) -> str:
    """A code that Codex knows: it repeats the whole call after any other, also where that cannot help."""
    if code in _SHOWN_CODES:
        return code
    return "rate_limit_exceeded" if status == 429 else "server_error" if status >= 500 else "invalid_prompt"
