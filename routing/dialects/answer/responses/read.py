"""OpenAI Responses: what a document of its answers says.

1. A block is one output item. The parts of a message are told apart by the `Part` that each of its pieces carries.
2. What came in deltas is not told again; what never came in deltas is told from the `done` events, or from the last event of all.
   (Where the two differ, the first holds.)
3. Items of tools that the provider runs itself, and what nobody knows, are traces. A picture stands beside its trace, for
   clients of other dialects.
4. A message whose parts are done is over where another item begins, since some hosts never end it; until then items may grow
   side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject, ProviderError
from ...failures import failure_inside, has_error
from ...fields import count_of, list_of, object_of, read_object, text_of
from ...finish import read_response_finish
from ...translation.neutral import Media, Seal, Tokens
from ...translation.reading.responses_tools import BUILT_IN
from ..counts import as_tokens
from ..events import (
    BROKEN,
    UNREADABLE,
    Block,
    Closed,
    Closing,
    Counted,
    Done,
    Ended,
    Event,
    Extra,
    Failed,
    Field,
    Kind,
    Opened,
    Piece,
)
from ..stream import AnyReader
from ..words import written_text
from .items import HIDDEN, WRITTEN

KEYS = {"output_text": "text", "refusal": "refusal"}
"""The kinds of parts that grow, and in which field."""
ADDED, ITEM_DONE = "response.output_item.added", "response.output_item.done"
PART_ADDED, PART_DONE = "response.content_part.added", "response.content_part.done"
_TEXT_DELTA = "response.output_text.delta"
_KINDS: dict[str, Kind] = {"message": "text", "reasoning": "thought", **dict.fromkeys(WRITTEN, "call")}
_BUILT_IN = {own.item: (name, own.field) for name, own in BUILT_IN.items()}
"""OpenAI's own tools that the client runs: their name in a history, and the field of what is to be done."""
_CALLS = frozenset((*WRITTEN, *_BUILT_IN))
_PLAIN_NAMESPACES = (None, "", "functions")
_SEALED = ("id", "summary", "content", "encrypted_content")
NOT_OVER = ("queued", "in_progress", "requires_action")
_NOT_YET = frozenset(
    ("response.created", "response.in_progress", "response.queued", "response.metadata", "response.failed", "response.error")
)


class Part(Struct, eq=False):
    """One part of a message: what each of its pieces carries."""

    block: Block
    native: JsonObject
    """As it was announced; once it is done, as it is."""
    heard: int = 0
    """So many characters of its text."""
    annotations: list[object] = []
    done: bool = False

    @property
    def kind(self) -> str:
        return text_of(self.native.get("type"))


class Reader(AnyReader):
    dialect = Dialect.RESPONSES
    LOUD = (b'"response":', b'"error"')
    CALLS = (b"output_item",)

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._blocks: dict[object, Block] = {}
        """Items, by the provider's index or id."""
        self._aside: dict[str, Block] = {}
        """By their ids: items that are not over, and whose place another took."""
        self._parts: dict[Block, dict[object, Part]] = {}
        self._unfinished: dict[Block, dict[object, Part]] = {}
        """Those of them whose end has not come."""
        self._heard: dict[Block, int] = {}
        """How much of a call's arguments, or of reasoning."""
        self._thinks: dict[Block, tuple[str, object]] = {}
        """The part of its reasoning that was heard last."""
        self._counts_on: set[Block] = set()
        """Reasoning whose last part did not say that it is over: a host that counts every delta goes on in it."""
        self._closed: set[Block] = set()
        self._last: Part | None = None
        """What nearly all events say more of, and where it stands."""
        self._last_at: tuple[object, object] = (None, None)

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        kind = document.get("type") or name
        if kind == _TEXT_DELTA and (last := self._last) is not None:
            item, part = self._last_at
            text = document.get("delta")
            if document.get("output_index") == item and document.get("content_index") == part and type(text) is str:
                last.heard += len(text)
                return [Piece(last.block, text, last)]
        read = _READ.get(kind) if isinstance(kind, str) else None
        if read is not None:
            return read(self, document)
        if not isinstance(kind, str) or not kind.startswith("response."):
            if has_error(document):
                return self._read_error(document)
            return [] if self._known(document) is None else self._read_other(document)
        return self._read_other(document)

    def read_whole(self, response: JsonObject) -> list[Event]:
        status = response.get("status")
        if (error := error_of(response)) is not None:
            return [Failed(error)]
        if status in ("failed", "cancelled"):
            return [Failed(ProviderError(502, f"The provider's answer has the status {status}", "UPSTREAM_ERROR"))]
        if not isinstance(response.get("output"), list):
            return [Failed(UNREADABLE)]
        return self._end(response, "completed")

    # --- the answer -----------------------------------------------------------------------------------------------------

    def _read_lifecycle(self, document: JsonObject) -> list[Event]:
        return self._begin(object_of(document.get("response"))) or [Field("", document)]

    def _begin(self, response: JsonObject) -> list[Event]:
        told = self._told_who(response.get("id"), response.get("model"))
        return [*told, *_stored(response)] if told else []

    def _read_end(self, document: JsonObject) -> list[Event]:
        return self._end(object_of(document.get("response")), text_of(document.get("type")).rpartition(".")[2])

    def _end(self, response: JsonObject, status: str) -> list[Event]:
        out = self._begin(response) or _stored(response)
        items = {index: item for index, item in enumerate(list_of(response.get("output"))) if isinstance(item, dict)}
        unheard = self._unheard(items)
        for index, item in items.items():
            if index in unheard:
                self._blocks.pop(index, None)
            elif self._blocks.get(index) in self._closed or not self._stands_at(index, item):
                continue
            out += self._read_item_done({"output_index": index, "item": item})
        if (tokens := tokens_of(counts := object_of(response.get("usage")))) is not None:
            out.append(Counted(tokens, counts))
        word = read_response_finish(response if response.get("status") else {**response, "status": status or "completed"})
        # one in the background, or that waits for its client, has not come to its end: nothing may be said behind it yet
        return [*out, Ended("failed" if word in NOT_OVER else word), Done()]

    def _unheard(self, items: Mapping[int, JsonObject]) -> set[int]:
        """Items that the last event alone tells. Where others were heard, and may have been numbered in another way, those are
        calls, if there are more of them than were heard, and messages, if none was."""
        if not self._heard:
            return set(items)
        heard = [block for block in self._heard if block.kind == "call"]
        ids = {block.id for block in heard}
        calls = [at for at, item in items.items() if text_of(item.get("type")) in _CALLS]
        new = [at for at in calls if not (self._stands_at(at, items[at]) or text_of(items[at].get("call_id")) in ids)]
        unheard = set(new[len(new) - min(len(new), max(0, len(calls) - len(heard))) :])
        if not any(block.kind == "text" for block in self._heard):
            unheard |= {at for at, item in items.items() if item.get("type") == "message"}
        return unheard

    def _stands_at(self, index: int, item: JsonObject) -> bool:
        """Or one of its type."""
        block = self._blocks.get(index)
        return block is not None and object_of(block.native).get("type") == item.get("type")

    def _read_error(self, document: JsonObject) -> list[Event]:
        return [Failed(failure_inside(document) or BROKEN)]

    def _read_other(self, document: JsonObject) -> list[Event]:
        block = self._known(document)
        return [Extra(block, document)] if block is not None else [Field("", document)]

    # --- items ----------------------------------------------------------------------------------------------------------

    def _known(self, document: JsonObject) -> Block | None:
        return self._blocks.get(_key(document, {})) if "output_index" in document or "item_id" in document else None

    def _block(self, document: JsonObject, kind: str, item: JsonObject, out: list[Event]) -> Block:
        """The item that an event belongs to. Some hosts never announce it, some never number it."""
        key, id = _key(document, item), text_of(document.get("item_id")) or text_of(item.get("id"))
        block = self._aside.get(id) or self._blocks.get(key)
        if block is not None and self._is_another(block, document, item):
            if block not in self._closed and (own := text_of(object_of(block.native).get("id"))):
                self._aside[own] = block
            block = None
        if block is None:
            self._aside.pop(id, None)
            told = bool(item)
            if not told:
                item = {"id": document.get("item_id"), "type": kind, "status": "in_progress"}
                item |= {"role": "assistant", "content": []} if kind == "message" else {}
            block = self._blocks[key] = Block("call" if kind in _BUILT_IN else _KINDS.get(kind, "trace"), item, ends_itself=True)
            block.custom, block.hides = kind == "custom_tool_call", kind in HIDDEN
            self._heard[block] = 0
            if told:
                self._name(block, item)
                self._blocks[id or key] = block  # what follows may tell its id alone
            out.append(Opened(block))
        elif block.kind == "call":
            self._name(block, item)
        return block

    def _is_another(self, block: Block, document: JsonObject, item: JsonObject) -> bool:
        """Some hosts give all their items one place."""
        over, added = block in self._closed, document.get("type") == ADDED
        if over and added:
            return True
        if not (added or (over and document.get("type") == ITEM_DONE)):
            return False
        known = object_of(block.native)
        name = next((one for one in ("call_id", "id") if text_of(known.get(one)) and text_of(item.get(one))), "")
        differs = bool(name) and known[name] != item[name] and (over or block.kind == "call")
        return differs or known.get("type") != item.get("type")

    def _name(self, block: Block, item: JsonObject) -> None:
        kind = text_of(item.get("type"))
        if block.kind == "call":
            block.id = block.id or text_of(item.get("call_id")) or text_of(item.get("id"))
            block.name = block.name or text_of(item.get("name")) or _BUILT_IN.get(kind, ("", ""))[0]
            block.theirs = block.theirs or item.get("namespace") not in _PLAIN_NAMESPACES or kind in _BUILT_IN

    def _read_added(self, document: JsonObject) -> list[Event]:
        item = object_of(document.get("item"))
        out: list[Event] = []
        if kind := text_of(item.get("type")):
            self._last = None
            self._block(document, kind, item, out)
        return out or [Field("", document)]

    def _read_item_done(self, document: JsonObject) -> list[Event]:
        item, out = object_of(document.get("item")), list[Event]()
        kind = text_of(item.get("type"))
        block = self._block(document, kind, {**item, "content": []} if kind == "message" else item, out)
        if block in self._closed:
            return [Closing(block, document)]
        self._closed.add(block)
        if self._last is not None and self._last.block is block:
            self._last = None
        if block.kind == "text":
            parts = list_of(item.get("content"))
            among = {at: part for at, part in self._parts.get(block, {}).items() if at not in range(len(parts))}
            for index, given in enumerate(parts):
                if isinstance(given, dict):
                    self._same_part(block, index, given, among)
                    self._end_part(block, index, given, out)
        elif kind in WRITTEN:
            self._rest(block, written_text(item.get(WRITTEN[kind])), out)
        elif kind in _BUILT_IN:
            self._rest(block, dumps(item.get(_BUILT_IN[kind][1]) or {}).decode(), out)
        elif block.kind == "thought":
            self._end_thought(block, item, out)
        block.native = item
        self._look_back(block, item)
        out.append(Closed(block))
        if kind == "image_generation_call" and (data := text_of(item.get("result"))):
            shown = Block("media", ends_itself=True)
            shown.media = Media("image", f"image/{text_of(item.get('output_format')) or 'png'}", data)
            out += [Opened(shown), Closed(shown)]
        return out

    def _look_back(self, block: Block, item: JsonObject) -> None:
        """An item is over."""

    def _rest(self, block: Block, whole: str, out: list[Event]) -> None:
        if len(whole) > (heard := self._heard[block]):
            self._heard[block] = len(whole)
            out.append(Piece(block, whole[heard:]))

    def _end_thought(self, block: Block, item: JsonObject, out: list[Event]) -> None:
        if self._heard[block]:
            self._rest(block, joined(item.get(self._thinks[block][0])), out)
        else:
            self._rest(block, "\n\n".join([text for name in ("summary", "content") if (text := joined(item.get(name)))]), out)
        if item.get("encrypted_content") or item.get("content"):
            # an id alone is no seal: where nothing is stored, its provider looks for the item in vain and refuses the call
            payload = {name: item[name] for name in _SEALED if item.get(name)}
            block.seal = Seal(Dialect.RESPONSES, self._maker, {"summary": [], **payload})

    # --- what items say -------------------------------------------------------------------------------------------------

    def _part(self, document: JsonObject, kind: str, out: list[Event]) -> Part | None:
        """None: the item is no message."""
        block = self._block(document, "message", {}, out)
        if block.kind != "text":
            return None
        empty: JsonObject = {"text": "", "annotations": []} if kind == "output_text" else {KEYS.get(kind, kind): ""}
        return self._part_at(block, _number(document), {"type": kind, **empty}, out)

    def _part_at(self, block: Block, index: object, announced: JsonObject, out: list[Event]) -> Part:
        parts = self._parts.setdefault(block, {})
        part = parts.get(index)
        if part is None:
            part = parts[index] = self._unfinished.setdefault(block, {})[index] = Part(block, announced)
            if part.kind == "refusal":  # of its part alone: texts before and behind it are none
                out.append(Field("refused", None))
            block.ends_itself = True
        return part

    def _read_part_added(self, document: JsonObject) -> list[Event]:
        given, out = object_of(document.get("part")), list[Event]()
        block = self._block(document, "message", {}, out)
        if block.kind != "text":
            self._counts_on.discard(block)
            return [*out, Extra(block, document)]
        key = KEYS.get(text_of(given.get("type")), "")
        part = self._part_at(block, _number(document), {**given, key: ""} if key else given, out)
        text = text_of(given.get(key))[part.heard :]
        part.heard += len(text)
        self._remember(part, document)
        return [*out, Piece(block, text, part)]

    def _remember(self, part: Part, document: JsonObject) -> None:
        self._last, self._last_at = part, (document.get("output_index"), document.get("content_index"))

    def _read_text(self, document: JsonObject) -> list[Event]:
        out: list[Event] = []
        kind = text_of(document.get("type")).removeprefix("response.").removesuffix(".delta") or "output_text"
        part, text = self._part(document, kind, out), text_of(document.get("delta"))
        if part is None:
            return [*out, *self._read_other(document)]
        part.heard += len(text)
        if kind == "output_text":
            self._remember(part, document)
        return [*out, Piece(part.block, text, part)]

    def _read_text_done(self, document: JsonObject) -> list[Event]:
        kind = "refusal" if "refusal" in document else "output_text"
        out: list[Event] = []
        block = self._block(document, "message", {}, out)
        self._same_part(block, _number(document), {**document, "type": kind}, self._unfinished.get(block, {}))
        part = self._part(document, kind, out)
        if part is None:
            return [*out, *self._read_other(document)]
        self._rest_of(part, text_of(document.get(KEYS[kind])), out)
        part.block.ends_itself = False
        return [*out, Closing(part.block, document)]

    def _read_part_done(self, document: JsonObject) -> list[Event]:
        given, out = object_of(document.get("part")), list[Event]()
        block = self._block(document, "message", {}, out)
        if block.kind != "text":
            self._counts_on.discard(block)
            return [*out, *self._read_other(document)]
        self._same_part(block, _number(document), given, self._unfinished.get(block, {}))
        self._end_part(block, _number(document), given, out)
        block.ends_itself = False
        return [*out, Closing(block, document)]

    def _same_part(self, block: Block, index: object, given: JsonObject, among: Mapping[object, Part]) -> None:
        """Some hosts count parts in one way in the deltas, and in another at the end: it is the one that says the same."""
        parts, kind = self._parts.get(block, {}), text_of(given.get("type"))
        size = len(text_of(given.get(KEYS.get(kind, ""))))
        if size and index not in parts:
            same = next((at for at, part in among.items() if (part.kind, part.heard) == (kind, size)), None)
            if same is not None:
                parts[index] = among[same]
                self._unfinished[block].pop(same, None)

    def _end_part(self, block: Block, index: object, given: JsonObject, out: list[Event]) -> None:
        key = KEYS.get(text_of(given.get("type")), "")
        known = index in self._parts.get(block, {})
        part = self._part_at(block, index, {**given, key: ""} if key else given, out)
        before = len(out)
        self._rest_of(part, text_of(given.get(key)), out)
        if not known and len(out) == before:
            out.append(Piece(block, "", part))
        self._unfinished[block].pop(index, None)
        part.native, part.done = given, True

    def _rest_of(self, part: Part, whole: str, out: list[Event]) -> None:
        if len(whole) > part.heard:
            out.append(Piece(part.block, whole[part.heard :], part))
            part.heard = len(whole)
        elif part.block.text is not None:
            part.block.text.same(whole)

    def _read_annotation(self, document: JsonObject) -> list[Event]:
        out: list[Event] = []
        part = self._part(document, "output_text", out)
        if part is None:
            return [*out, *self._read_other(document)]
        part.annotations.append(document.get("annotation"))
        return [*out, *self._annotation(part, document)]

    def _annotation(self, part: Part, document: JsonObject) -> list[Event]:
        return [Extra(part.block, document)]

    def _read_summary(self, document: JsonObject) -> list[Event]:
        return self._think(document, ("summary", document.get("summary_index")))

    def _read_reasoning(self, document: JsonObject) -> list[Event]:
        return self._think(document, ("content", document.get("content_index")))

    def _think(self, document: JsonObject, place: tuple[str, object]) -> list[Event]:
        """Parts of reasoning have a blank line between them."""
        out: list[Event] = []
        block, text = self._block(document, "reasoning", {}, out), text_of(document.get("delta"))
        if block.kind != "thought" or not text:
            return [*out, Extra(block, document)]
        before = self._thinks.get(block, place)
        self._thinks[block] = place
        text = text if before == place or (block in self._counts_on and before[0] == place[0]) else "\n\n" + text
        if place[0] == "content":
            self._counts_on.add(block)
        self._heard[block] += len(text)
        return [*out, Piece(block, text)]

    def _read_reasoning_done(self, document: JsonObject) -> list[Event]:
        if (block := self._known(document)) is not None:
            self._counts_on.discard(block)
        return self._read_other(document)

    def _read_arguments(self, document: JsonObject) -> list[Event]:
        out: list[Event] = []
        block = self._call(document, out)
        if block.kind != "call":
            return [*out, Extra(block, document)]
        text = text_of(document.get("delta"))
        self._heard[block] += len(text)
        return [*out, Piece(block, text)]

    def _read_arguments_done(self, document: JsonObject) -> list[Event]:
        out: list[Event] = []
        block = self._call(document, out)
        if block.kind != "call":
            return [*out, Extra(block, document)]
        self._rest(block, written_text(document.get("input" if block.custom else "arguments")), out)
        block.ends_itself = False
        return [*out, Closing(block, document)]

    def _call(self, document: JsonObject, out: list[Event]) -> Block:
        kind = "custom_tool_call" if "custom" in text_of(document.get("type")) else "function_call"
        block = self._block(document, kind, {}, out)
        self._name(block, {"name": document.get("name")})
        return block


_READ: dict[str, Callable[[Reader, JsonObject], list[Event]]] = {
    **dict.fromkeys(("response.created", "response.queued", "response.in_progress"), Reader._read_lifecycle),
    ADDED: Reader._read_added,
    ITEM_DONE: Reader._read_item_done,
    PART_ADDED: Reader._read_part_added,
    PART_DONE: Reader._read_part_done,
    _TEXT_DELTA: Reader._read_text,
    "response.refusal.delta": Reader._read_text,
    "response.output_text.done": Reader._read_text_done,
    "response.refusal.done": Reader._read_text_done,
    "response.output_text.annotation.added": Reader._read_annotation,
    "response.reasoning_summary_text.delta": Reader._read_summary,
    "response.reasoning_text.delta": Reader._read_reasoning,
    "response.reasoning_text.done": Reader._read_reasoning_done,
    "response.function_call_arguments.delta": Reader._read_arguments,
    "response.custom_tool_call_input.delta": Reader._read_arguments,
    "response.function_call_arguments.done": Reader._read_arguments_done,
    "response.custom_tool_call_input.done": Reader._read_arguments_done,
    "response.completed": Reader._read_end,
    "response.incomplete": Reader._read_end,
    **dict.fromkeys(("response.failed", "response.cancelled", "response.error", "error"), Reader._read_error),
}


def _key(document: JsonObject, item: JsonObject) -> object:
    key = document.get("output_index")
    return key if isinstance(key, int) else text_of(document.get("item_id")) or text_of(item.get("id"))


def _number(document: JsonObject) -> int:
    return count_of(document.get("content_index"))


def _stored(response: JsonObject) -> list[Event]:
    """Where nothing is stored, a history names no ids."""
    return [Field("not stored", None)] if response.get("store") is False else []


def joined(parts: object) -> str:
    return "\n\n".join(text for part in list_of(parts) if (text := text_of(object_of(part).get("text"))))


def tokens_of(counts: JsonObject) -> Tokens | None:
    """None where nothing is counted."""
    if "input_tokens" not in counts and "output_tokens" not in counts:
        return None
    put_in, put_out = object_of(counts.get("input_tokens_details")), object_of(counts.get("output_tokens_details"))
    input, output = count_of(counts.get("input_tokens")), count_of(counts.get("output_tokens"))
    cached, written = count_of(put_in.get("cached_tokens")), count_of(put_in.get("cache_write_tokens"))
    return as_tokens(input, output, cached=cached, written=written, reasoning=count_of(put_out.get("reasoning_tokens")))


def error_of(document: JsonObject) -> ProviderError | None:
    if document.get("object") == "response" and document.get("status") in ("completed", "incomplete", "in_progress", "queued"):
        return None
    return failure_inside(document)


def is_content(data: bytes) -> bool:
    document = read_object(data)
    if document is None:
        return False
    if document.get("object") == "response":
        return True
    kind = text_of(document.get("type"))
    is_empty = kind.endswith(".delta") and not document.get("delta")  # a sign of life
    return kind.startswith("response.") and kind not in _NOT_YET and not is_empty
