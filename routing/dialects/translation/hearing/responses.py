"""OpenAI Responses: a provider's answer as neutral events.

1. Items may grow side by side; they are told one after another, in the order in which they began.
2. What came in deltas is not told again; what never came in deltas is told from the `done` events, or from the last event of all.
3. A custom tool's free text is told as the arguments `{"input": "…"}`; whoever tells the client turns it back.
4. Items of tools that the provider ran itself are passed over, and so are annotations; a picture that it made is shown.
5. A call that is incomplete does not end.
6. A refusal is text; the answer then ends with `content_filter`, though its status is `completed`.
"""

from __future__ import annotations

from collections.abc import Callable

from ....values import Dialect, JsonObject, ProviderError
from ...failures import failure_inside, failure_of_page, has_error
from ...fields import list_of, object_of, read_object, text_of
from ...finish import is_cut, read_response_finish
from ..neutral import Broken, Event, Finished, Media, Seal, Started
from .blocks import Block, Blocks
from .responses_items import WRITTEN, Item, joined, tokens_of, written_text

_SEALED = ("id", "summary", "content", "encrypted_content")
_ADDED = "response.output_item.added"
_NOT_OVER = ("queued", "in_progress")


class Hearer:
    """One stream."""

    def __init__(self, maker: str, id: str) -> None:
        self._maker = maker
        self._id = id
        self._started = False
        self._over = False
        self._refused = False
        self._blocks = Blocks()
        self._items: dict[object, Item] = {}
        self._resting: list[Block] = []
        """What they say is done, but not they themselves: some hosts never say that. The next item ends them."""

    def hear(self, data: bytes, name: str = "") -> list[Event]:
        if self._over:
            return []
        document = read_object(data) if data else None
        if document is None:
            return []
        kind = document.get("type")
        kind = kind if isinstance(kind, str) else name
        hear = _HEARD.get(kind)
        out: list[Event] = []
        if hear is not None:
            hear(self, document, out)
            if not self._over:
                self._blocks.tell(out)
        elif has_error(document) and not kind.startswith("response."):
            self._break(document, out)
        return out

    def close(self) -> list[Event]:
        out: list[Event] = []
        if not self._over:
            self._over = True
            self._blocks.release(out)
        return out

    def hear_response(self, response: JsonObject) -> list[Event]:
        """A whole answer."""
        out: list[Event] = []
        self._end(response, out)
        return out

    # How the answer begins and ends

    def _lifecycle(self, document: JsonObject, out: list[Event]) -> None:
        self._start(object_of(document.get("response")), out)

    def _start(self, response: JsonObject, out: list[Event]) -> None:
        if not self._started:
            self._started = True
            out.append(Started(text_of(response.get("id")) or self._id, text_of(response.get("model"))))

    def _ended(self, document: JsonObject, out: list[Event]) -> None:
        response = object_of(document.get("response"))
        if not response.get("status"):
            response = {**response, "status": text_of(document.get("type")).rpartition(".")[2]}
        self._end(response, out)

    def _end(self, response: JsonObject, out: list[Event]) -> None:
        self._over = True
        self._start(response, out)
        seen = bool(self._items)
        for index, item in enumerate(list_of(response.get("output"))):
            known = self._items.get(index)
            if isinstance(item, dict) and (not seen if known is None else not known.done):
                self._item_done({"output_index": index, "item": item}, out)
        word = read_response_finish(response)
        if is_cut(word):
            self._blocks.cut(out)
        else:
            self._blocks.tell_all(out)
        if self._refused and word in ("", "completed"):
            word = "content_filter"
        out.append(Finished(word, tokens_of(object_of(response.get("usage")))))

    def _break(self, document: JsonObject, out: list[Event]) -> None:
        self._over = True
        self._blocks.release(out)
        broken = ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR")
        out.append(Broken(failure_inside(document) or broken))

    # The items

    def _item_of(self, document: JsonObject, kind: str, item: JsonObject, out: list[Event]) -> Item:
        """The item that an event belongs to. Some hosts never announce it, some never number it."""
        key = document.get("output_index")
        key = key if isinstance(key, int) else text_of(document.get("item_id")) or text_of(item.get("id"))
        known = self._items.get(key)
        if known is None or (known.done and document.get("type") == _ADDED):
            self._start({}, out)
            for block in self._resting:
                block.done = True
            self._resting.clear()
            known = self._items[key] = Item(kind)
            if known.block is not None:
                self._blocks.begin(known.block)
        if known.block is not None and known.kind in WRITTEN and item:
            known.block.id = known.block.id or text_of(item.get("call_id")) or text_of(item.get("id"))
            known.block.name = known.block.name or text_of(item.get("name"))
        return known

    def _added(self, document: JsonObject, out: list[Event]) -> None:
        item = object_of(document.get("item"))
        if kind := text_of(item.get("type")):
            self._item_of(document, kind, item, out)

    def _item_done(self, document: JsonObject, out: list[Event]) -> None:
        given = object_of(document.get("item"))
        item = self._item_of(document, text_of(given.get("type")), given, out)
        if item.done:
            return
        item.done = True
        if item.kind in WRITTEN:
            item.add_rest(written_text(given.get(WRITTEN[item.kind])))
        elif item.kind == "reasoning":
            self._end_reasoning(item, given)
        elif item.kind == "message":
            for index, part in enumerate(list_of(given.get("content"))):
                self._part(item, index, object_of(part))
        elif item.kind == "image_generation_call":
            self._show(given)
        if item.block is not None:
            item.block.done = item.kind not in WRITTEN or given.get("status") != "incomplete"

    def _end_reasoning(self, item: Item, given: JsonObject) -> None:
        texts = [text for name in ("summary", "content") if (text := joined(given.get(name)))]
        if item.parts:  # of the one or of the other
            texts = [text for text in texts if text.startswith("".join(item.parts[0]))][:1]
        item.add_rest("\n\n".join(texts))
        if item.block is not None and (given.get("encrypted_content") or given.get("content")):
            # an id alone is no seal: where nothing is stored, its provider looks for the item in vain and refuses the call
            payload = {name: given[name] for name in _SEALED if given.get(name)}
            item.block.seal = Seal(Dialect.RESPONSES, self._maker, {"summary": [], **payload})

    def _show(self, item: JsonObject) -> None:
        if data := text_of(item.get("result")):
            shown = self._blocks.begin(Block("media"))
            shown.media = Media("image", f"image/{text_of(item.get('output_format')) or 'png'}", data)
            shown.done = True

    # What items say

    def _text_delta(self, document: JsonObject, out: list[Event]) -> None:
        item = self._item_of(document, "message", {}, out)
        item.add(text_of(document.get("delta")), _place(document))

    def _refusal_delta(self, document: JsonObject, out: list[Event]) -> None:
        self._refused = True
        self._text_delta(document, out)

    def _text_done(self, document: JsonObject, out: list[Event]) -> None:
        kind = "refusal" if "refusal" in document else "output_text"
        self._part_done({**document, "part": {**document, "type": kind}}, out)

    def _part_done(self, document: JsonObject, out: list[Event]) -> None:
        part = object_of(document.get("part"))
        if part.get("type") in ("output_text", "refusal"):
            item = self._item_of(document, "message", {}, out)
            self._part(item, _place(document), part)
            self._rest(item)

    def _part(self, item: Item, index: int, part: JsonObject) -> None:
        self._refused = self._refused or part.get("type") == "refusal"
        item.add_rest(text_of(part.get("text")) or text_of(part.get("refusal")), index)

    def _rest(self, item: Item) -> None:
        if item.block is not None:
            self._resting.append(item.block)

    def _summary_delta(self, document: JsonObject, out: list[Event]) -> None:
        self._think(document, ("summary", document.get("summary_index")), out)

    def _reasoning_delta(self, document: JsonObject, out: list[Event]) -> None:
        self._think(document, ("content", document.get("content_index")), out)

    def _think(self, document: JsonObject, part: object, out: list[Event]) -> None:
        """Parts of reasoning have a blank line between them."""
        item, text = self._item_of(document, "reasoning", {}, out), text_of(document.get("delta"))
        if text:
            item.add(text if item.part in (None, part) else "\n\n" + text)
            item.part = part

    def _call_of(self, document: JsonObject, kind: str, out: list[Event]) -> Item:
        named = {"name": document["name"]} if document.get("name") else {}
        return self._item_of(document, kind, named, out)

    def _arguments_delta(self, document: JsonObject, out: list[Event]) -> None:
        self._call_of(document, "function_call", out).add(text_of(document.get("delta")))

    def _input_delta(self, document: JsonObject, out: list[Event]) -> None:
        self._call_of(document, "custom_tool_call", out).add(text_of(document.get("delta")))

    def _arguments_done(self, document: JsonObject, out: list[Event]) -> None:
        item = self._call_of(document, "function_call", out)
        item.add_rest(written_text(document.get("arguments")))
        self._rest(item)

    def _input_done(self, document: JsonObject, out: list[Event]) -> None:
        item = self._call_of(document, "custom_tool_call", out)
        item.add_rest(text_of(document.get("input")))
        self._rest(item)


_HEARD: dict[str, Callable[[Hearer, JsonObject, list[Event]], None]] = {
    "response.created": Hearer._lifecycle,
    "response.queued": Hearer._lifecycle,
    "response.in_progress": Hearer._lifecycle,
    _ADDED: Hearer._added,
    "response.output_item.done": Hearer._item_done,
    "response.content_part.done": Hearer._part_done,
    "response.output_text.delta": Hearer._text_delta,
    "response.output_text.done": Hearer._text_done,
    "response.refusal.delta": Hearer._refusal_delta,
    "response.refusal.done": Hearer._text_done,
    "response.reasoning_summary_text.delta": Hearer._summary_delta,
    "response.reasoning_text.delta": Hearer._reasoning_delta,
    "response.function_call_arguments.delta": Hearer._arguments_delta,
    "response.function_call_arguments.done": Hearer._arguments_done,
    "response.custom_tool_call_input.delta": Hearer._input_delta,
    "response.custom_tool_call_input.done": Hearer._input_done,
    "response.completed": Hearer._ended,
    "response.incomplete": Hearer._ended,
    "response.failed": Hearer._break,
    "response.cancelled": Hearer._break,
    "response.error": Hearer._break,
    "error": Hearer._break,
}


def hear_whole(body: bytes, maker: str, id: str) -> list[Event]:
    response = read_object(body)
    if response is None:
        page = failure_of_page(body)
        return [Broken(page)] if page is not None else []
    status = response.get("status")
    if (error := failure_inside(response)) is not None:
        return [Broken(error)]
    if status in ("failed", "cancelled"):
        return [Broken(ProviderError(502, f"The provider's answer has the status {status}", "UPSTREAM_ERROR"))]
    if status in _NOT_OVER:
        return [Broken(ProviderError(502, "The provider's answer is not over yet: it runs in the background", "BAD_ANSWER"))]
    return Hearer(maker, id).hear_response(response) if isinstance(response.get("output"), list) else []


def _place(document: JsonObject) -> int:
    place = document.get("content_index")
    return place if isinstance(place, int) else 0
