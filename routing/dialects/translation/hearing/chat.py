"""OpenAI Chat Completions: a provider's answer as neutral events.

1. Hosts speak this dialect loosely: ids and names come late or again and again, calls share an index or have none, usage stands
   in several places, `[DONE]` or the finish reason is missing. What can be understood is.
2. Chat does not say when a call ends: it has ended when its arguments are whole and another block has begun, or at the end.
3. Text inside `<think>` tags stays text: only the host could tell it from a text that speaks of such tags.
4. A call that the answer broke off in does not end, whatever the reason; without a reason the answer itself is broken.
5. A refusal is text; the answer then ends with `content_filter`, where its host wrote a plain stop.
"""

from __future__ import annotations

from ....values import Dialect, JsonObject, ProviderError
from ...answers.chat import error_of
from ...failures import failure_of_page
from ...fields import list_of, object_of, read_object, text_of
from ...finish import CUT_OFF, is_cut, read_finish
from ...signed import signed_fields
from ..neutral import Broken, Event, Finished, Seal, Started, Tokens
from .blocks import Block, Blocks, picture
from .chat_fields import add_detail, tokens_of, written_text

_DONE = b"[DONE]"
_BODIES = {"function": "arguments", "custom": "input"}
"""The kinds of tool calls, and where what the model wrote for the tool stands in each."""
_THOUGHTS = ("reasoning_content", "reasoning")
"""Fields of plain reasoning. A host that fills both says the same in both."""
_OPAQUE = ("signature", "data")
"""Fields of `reasoning_details` that only their maker can read."""


class Hearer:
    """One stream."""

    def __init__(self, maker: str, id: str) -> None:
        self._maker = maker
        self._id = id
        self._started = False
        self._spoke = False
        self._plain = False
        """Reasoning came in a field of its own."""
        self._over = False
        self._word: str | None = None
        """The finish reason, once it has come."""
        self._stop = ""
        self._tokens: Tokens | None = None
        self._refused = False
        self._blocks = Blocks(settles=True)
        self._calls: dict[object, Block] = {}
        """The call that an index names at the moment."""
        self._signed: Block | None = None
        """The last signature of the whole message."""
        self._late: list[JsonObject] = []
        """Details of reasoning that came when no thought was open."""

    def hear(self, data: bytes, name: str = "") -> list[Event]:
        if self._over or not data:
            return []
        if data[:6] == _DONE or data.strip() == _DONE:
            return self._finish()
        document = read_object(data)
        if document is None:
            return []
        if (error := error_of(document, name)) is not None:
            return self._break(error)
        out: list[Event] = []
        self._read(document, out)
        return out

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._word is not None:
            return self._finish()
        out: list[Event] = []
        self._over = True
        self._blocks.release(out)
        return out

    def hear_document(self, document: JsonObject) -> list[Event]:
        """A whole answer."""
        out: list[Event] = []
        self._read(document, out)
        return out + self._finish()

    # The chunk

    def _read(self, document: JsonObject, out: list[Event]) -> None:
        choices = list_of(document.get("choices"))
        counts = object_of(document.get("usage")) or object_of(object_of(document.get("x_groq")).get("usage"))
        if counts:
            self._tokens = tokens_of(counts) or self._tokens
        if not self._started and (choices or document.get("id")):
            self._started = True
            out.append(Started(text_of(document.get("id")) or self._id, text_of(document.get("model")), self._tokens))
        for choice in choices:
            if isinstance(choice, dict) and _is_first(choice):
                self._read_choice(choice)
        if choices:
            self._blocks.tell(out)

    def _read_choice(self, choice: JsonObject) -> None:
        delta = object_of(choice.get("delta"))
        if not delta and not self._spoke:  # some hosts repeat the whole message at the end; a whole answer has nothing else
            delta = object_of(choice.get("message"))
        self._read_delta(delta)
        if counts := choice.get("usage"):
            self._tokens = tokens_of(object_of(counts)) or self._tokens
        if word := text_of(choice.get("finish_reason")):
            self._word = word
            stop = text_of(choice.get("stop_reason")) or text_of(choice.get("matched_stop"))
            self._stop = stop if read_finish(stop) is None else ""

    def _read_delta(self, delta: JsonObject) -> None:
        if signed := signed_fields(delta):
            self._sign(signed)
        for field in _THOUGHTS:
            if text := delta.get(field):
                self._plain = True
                self._think(text_of(text), field)
                break
        if details := delta.get("reasoning_details"):
            self._detail(list_of(details))
        if content := delta.get("content"):
            self._say(content)
        if refusal := text_of(delta.get("refusal")):
            self._refused = True
            self._grow("text", refusal)
        for image in list_of(delta.get("images")):
            self._show(object_of(image))
        if calls := delta.get("tool_calls"):
            for entry in list_of(calls):
                if isinstance(entry, dict):
                    self._call(entry)
        if (function := delta.get("function_call")) and isinstance(function, dict):
            self._call({"index": "function", "function": function})

    def _say(self, content: object) -> None:
        """Text, or (some hosts) a list of parts."""
        if isinstance(content, str):
            self._grow("text", content)
            return
        for item in list_of(content):
            part = object_of(item)
            if part.get("type") == "thinking":
                texts = [text_of(object_of(piece).get("text")) for piece in list_of(part.get("thinking"))]
                self._think(text_of(part.get("thinking")) or "".join(texts), "content")
            elif part.get("type") == "image_url":
                self._show(part)
            elif text := text_of(part.get("text")):
                self._grow("text", text)

    def _sign(self, signed: JsonObject) -> None:
        """A signature of all that a message says: a thought of nothing else."""
        seal = Seal(Dialect.CHAT, self._maker, {"for": "message", **signed})
        if self._signed is None or self._signed.seal != seal:
            self._signed = self._begin(Block("thought"))
            self._signed.seal, self._signed.done = seal, True

    # The blocks

    def _grow(self, kind: str, text: str) -> Block:
        last = self._blocks.last
        if last is None or last.kind != kind or last.done:
            last = self._begin(Block("text" if kind == "text" else "thought"))
        if text:
            last.pieces.append(text)
        return last

    def _begin(self, block: Block) -> Block:
        self._spoke = True
        return self._blocks.begin(block)

    def _show(self, part: JsonObject) -> None:
        if url := text_of(object_of(part.get("image_url")).get("url")):
            shown = Block("media")
            shown.media, shown.done = picture(url), True
            self._begin(shown)

    def _think(self, text: str, field: str) -> None:
        if text:
            thought = self._grow("thought", text)
            if not thought.field:
                thought.field = field
                self._seal(thought)

    def _detail(self, details: list[object]) -> None:
        """OpenRouter's way: entries that grow by their index, some of them sealed. Their text may stand in a plain field too."""
        entries = [entry for entry in details if isinstance(entry, dict)]
        last = self._blocks.last
        texts = "" if self._plain else "".join(text_of(entry.get("text")) or text_of(entry.get("summary")) for entry in entries)
        if last is not None and last.kind != "thought" and not texts:
            self._late += entries
            return
        thought = self._grow("thought", texts)
        self._with_details(thought, entries)

    def _with_details(self, thought: Block, entries: list[JsonObject]) -> None:
        for entry in entries:
            add_detail(thought.details, entry)
        self._seal(thought)

    def _seal(self, thought: Block) -> None:
        """What this provider needs to get the thought back: its field, and the details where they hold more than its text."""
        payload: JsonObject = {thought.field: True} if thought.field in _THOUGHTS else {}
        if thought.details and (not payload or any(entry.get(name) for entry in thought.details for name in _OPAQUE)):
            payload["reasoning_details"] = thought.details
        thought.seal = Seal(Dialect.CHAT, self._maker, payload) if payload else None

    def _call(self, entry: JsonObject) -> None:
        kind = next((kind for kind in _BODIES if isinstance(entry.get(kind), dict)), "function")
        body = object_of(entry.get(kind))
        id, name = text_of(entry.get("id")), text_of(body.get("name"))
        written = written_text(body.get(_BODIES[kind]))
        call = self._call_of(entry.get("index"), id, name, written)
        call.id = call.id or id
        call.name = call.name or name
        call.custom = call.custom or kind == "custom"
        if written:
            call.pieces.append(written)
        signed = signed_fields(entry)
        if inner := signed_fields(body):
            signed["function"] = inner
        if signed:
            call.seal = Seal(Dialect.CHAT, self._maker, {**(call.seal.payload if call.seal else {"for": "call"}), **signed})

    def _call_of(self, index: object, id: str, name: str, written: str) -> Block:
        """The call that an entry belongs to; some hosts give every call the same index, or none."""
        index = index if isinstance(index, int | str) else None
        known = self._calls.get(index)
        if known is not None and name and known.name:
            if id:
                is_other = bool(known.id) and id != known.id
            else:
                is_other = index is None or (bool(written) and (known.done or known.is_whole))
            known = None if is_other else known
        if known is None:
            known = self._calls[index] = self._begin(Block("call"))
        return known

    # The end

    def _finish(self) -> list[Event]:
        if self._word is None and self._blocks.breaks_off:
            return self._break(ProviderError(502, CUT_OFF, "UPSTREAM_ERROR", network=True))
        self._over = True
        out: list[Event] = []
        if self._late:
            self._with_details(self._begin(Block("thought")), self._late)
        word = self._word or ""
        if is_cut(word):
            self._blocks.cut(out)
        else:
            self._blocks.tell_all(out)
        if self._refused and read_finish(word) in ("stop", None):
            word = "content_filter"
        out.append(Finished(word, self._tokens, self._stop))
        return out

    def _break(self, error: ProviderError) -> list[Event]:
        self._over = True
        out: list[Event] = []
        self._blocks.release(out)
        out.append(Broken(error))
        return out


def hear_whole(body: bytes, maker: str, id: str) -> list[Event]:
    document = read_object(body)
    if document is None:
        page = failure_of_page(body)
        return [Broken(page)] if page is not None else []
    if (error := error_of(document)) is not None:
        return [Broken(error)]
    choice = next((one for one in list_of(document.get("choices")) if isinstance(one, dict) and _is_first(one)), {})
    message = choice.get("message")
    if not isinstance(message, dict):
        return []
    numbered = [{**object_of(entry), "index": place} for place, entry in enumerate(list_of(message.get("tool_calls")))]
    rest = {name: value for name, value in choice.items() if name != "delta"}  # Perplexity gives an empty one as well
    whole: JsonObject = {**rest, "message": {**message, "tool_calls": numbered}}
    return Hearer(maker, id).hear_document({**document, "choices": [whole]})


def _is_first(choice: JsonObject) -> bool:
    return choice.get("index") in (0, None)
