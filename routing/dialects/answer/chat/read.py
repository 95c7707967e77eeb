"""OpenAI Chat Completions: what a document of its answers says.

1. Hosts speak this dialect loosely: ids and names come late or again and again, calls share an index or have none, usage stands
   in several places. What can be understood is.
2. Each entry of `tool_calls` is one `Piece`, so that a chunk can be written anew without one of them.
3. Chat does not say when a block ends: one has ended where another begins, or with the answer.
4. Text inside `<think>` tags stays text: only the host could tell it from a text that speaks of such tags.
"""

from __future__ import annotations

from ....values import Dialect, JsonObject, ProviderError
from ...failures import failure_inside, has_error
from ...fields import THOUGHTS, list_of, object_of, read_json, read_object, text_of
from ...finish import read_finish, said_reason
from ...signed import signed_fields
from ...translation.neutral import Seal
from ..events import (
    BROKEN,
    UNREADABLE,
    Aside,
    Block,
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
from .fields import add_detail, picture, tokens_of

BODIES = {"function": "arguments", "custom": "input"}
"""The kinds of tool calls, and where what the model wrote for the tool stands in each."""
_THINKING = ("reasoning", "thinking")
"""How the names of fields and parts begin that hold thinking: of a later round only the history holds it."""
_ORDER = ("content", "refusal", "images", "tool_calls", "function_call")
"""What stands behind thoughts, whichever is written first."""
_CALLS = ("tool_calls", "function_call")
_OPAQUE = ("signature", "data")
"""Fields of `reasoning_details` that only their maker can read."""
SOURCES = ("citations", "search_results", "web_search")
"""Where hosts that search the web list what they found, beside the choices."""
_DONE = b"[DONE]"
MARKED = "marked"
"""The field of thoughts that Google's OpenAI-compatible address puts into the text, in `<thought>` tags, and marks as such."""
MARK, MARK_END = "<thought>", "</thought>"


def is_thinking(name: object) -> bool:
    return isinstance(name, str) and name.startswith(_THINKING)


class Reader(AnyReader):
    dialect = Dialect.CHAT
    LOUD = (b'_reason":"', b'_reason": "', b'"error"')
    CALLS = (b'"tool_calls"', b'"function_call"')

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._spoke = False
        self._last: Block | None = None
        """The block that a further delta goes on in."""
        self._thought: Block | None = None
        self._plain = self._detailed = False
        """Reasoning came in a field of its own, or its text in details alone."""
        self._details: dict[Block, list[JsonObject]] = {}
        self._signed: Seal | None = None
        """The last signature of the whole message."""
        self._calls: dict[object, Block] = {}
        """The call that an index names at the moment."""
        self._by_id: dict[str, Block] = {}
        self._arguments: dict[Block, list[str]] = {}

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        if (piece := self._plain_text(document)) is not None:
            return [piece]
        if (error := error_of(document, name)) is not None:
            return [Failed(error)]
        return self._read(document)

    def _plain_text(self, document: JsonObject) -> Piece | None:
        """Nearly all of a stream: one choice, and nothing in its delta but more of the open text."""
        last = self._last
        if last is None or last.kind != "text" or last.field or document.get("usage") or "error" in document:
            return None
        choices = document.get("choices")
        if type(choices) is not list or len(choices) != 1 or type(choice := choices[0]) is not dict:
            return None
        if choice.get("index") or choice.get("finish_reason") or "error" in choice:
            return None
        delta = choice.get("delta")
        if type(delta) is dict and len(delta) == 1 and type(text := delta.get("content")) is str and text:
            return Piece(last, text)
        return None

    def _read(self, document: JsonObject) -> list[Event]:
        out: list[Event] = []
        choices = list_of(document.get("choices"))
        counts = object_of(document.get("usage"))
        if not counts and "x_groq" in document:
            counts = object_of(object_of(document["x_groq"]).get("usage"))
        if not self._began and (choices or document.get("id")):
            out += self._told_who(document.get("id"), document.get("model"), tokens_of(counts) if counts else None)
        ended: Ended | None = None
        for choice in choices:
            if not isinstance(choice, dict):
                continue
            if choice.get("index") not in (0, None):
                out.append(Aside(choice))
                continue
            self._read_delta(object_of(choice.get("delta")) or self._untold(object_of(choice.get("message"))), out)
            if "usage" in choice:
                counts = object_of(choice["usage"]) or counts
            if word := said_reason(choice.get("finish_reason")):
                stop = text_of(choice.get("stop_reason")) or text_of(choice.get("matched_stop"))
                ended = Ended(word, stop if read_finish(stop) is None else "")
        if counts and (tokens := tokens_of(counts)) is not None:
            out.append(Counted(tokens, counts))
        if ended is not None:
            out.append(ended)
        return out or [Field("", document)]

    def read_word(self, data: bytes) -> list[Event]:
        return [Done()] if data.strip() == _DONE else [Field("", None)]

    def read_whole(self, document: JsonObject) -> list[Event]:
        choices = [one for one in list_of(document.get("choices")) if isinstance(one, dict)]
        first = next((one for one in choices if one.get("index") in (0, None)), {})
        said = isinstance(first.get("message"), dict) or bool(text_of(first.get("finish_reason")))
        if (error := error_of(document)) is not None or not said:
            return [Failed(error or UNREADABLE)]
        parted = _parted(first, choices)
        numbered = [
            _as_whole(_with_calls(choice, parted)) if choice is first else {**choice, "index": choice.get("index") or -1}
            for choice in choices
            if choice is not parted
        ]
        return [*self._read({**document, "choices": numbered}), Done()]

    # --- the message ----------------------------------------------------------------------------------------------------

    def _untold(self, message: JsonObject) -> JsonObject:
        """Some hosts repeat the message at the end, and some tell its calls there alone; a whole answer has nothing else."""
        if not self._spoke:
            return message
        return {} if self._calls else {name: calls for name, calls in _numbered(message).items() if name in _CALLS}

    def _read_delta(self, delta: JsonObject, out: list[Event]) -> None:
        thought = next((name for name in THOUGHTS if delta.get(name) and not self._detailed), "")
        self._plain = self._plain or bool(thought)
        marked = "extra_content" in delta and object_of(object_of(delta["extra_content"]).get("google")).get("thought") is True
        for name, value in sorted(delta.items(), key=_in_order):
            match name:
                case "content" if value and marked and isinstance(value, str):
                    thought_text, mark, text = value.partition(MARK_END)
                    native = {"content": thought_text + mark, "extra_content": delta["extra_content"]}
                    self._grow_thought(thought_text.removeprefix(MARK), MARKED, out, native)
                    if text:
                        self._grow("text", "", text, out)
                case "extra_content" if marked:
                    out.append(Field(name, value, says=True, thought=True))
                case "content" if value:
                    self._read_content(value, out)
                case _ if name == thought:
                    self._grow_thought(text_of(value), name, out)
                case "reasoning_details" if value:
                    self._read_details(list_of(value), out)
                case "refusal" if value and isinstance(value, str):
                    self._grow("text", "refusal", value, out).refusal = True
                case "tool_calls" if value:
                    for entry in [value] if isinstance(value, dict) else list_of(value):
                        if isinstance(entry, dict):
                            self._read_call(entry, out)
                case "function_call" if isinstance(value, dict):
                    self._read_call({"index": "function", "function": value}, out)
                case "images" if value:
                    for image in list_of(value):
                        self._show(object_of(image), "images", out)
                case _:
                    says = bool(value) and name != "role"
                    out.append(Field(name, value, says=says, thought=is_thinking(name)))
        if signed := signed_fields(delta):
            self._sign(signed, out)

    def _sign(self, signed: JsonObject, out: list[Event]) -> None:
        """A signature of all that a message says is a thought of nothing else."""
        seal = Seal(Dialect.CHAT, self._maker, {"for": "message", **signed})
        if self._signed != seal:
            self._signed = seal
            block = self._begin(Block("thought", field="signed"), out)
            block.seal = seal

    def _read_content(self, content: object, out: list[Event]) -> None:
        """Text, or (some hosts) a list of parts."""
        if isinstance(content, str):
            if self._last is not None and self._last.field == MARKED:
                content = content.removeprefix(MARK_END)
            self._grow("text", "", content, out)
            return
        for item in list_of(content):
            part = object_of(item)
            if part.get("type") == "thinking":
                texts = [text_of(object_of(piece).get("text")) for piece in list_of(part.get("thinking"))]
                self._grow_thought(text_of(part.get("thinking")) or "".join(texts), "content", out, part)
            elif part.get("type") == "reasoning":
                self._read_summary(part, out)
            elif part.get("type") == "image_url":
                self._show(part, "content", out)
            elif part:
                text = self._grow("text", "", text_of(part.get("text")), out, part)
                text.native = {**object_of(text.native), **{name: value for name, value in part.items() if name != "text"}}

    def _read_summary(self, part: JsonObject, out: list[Event]) -> None:
        """Databricks' way: a thought as a part of the content, whose seal comes with the last piece."""
        entries = [object_of(entry) for entry in list_of(part.get("summary"))]
        thought = self._grow("thought", "content", "".join([text_of(entry.get("text")) for entry in entries]), out, part)
        seal = next((word for entry in entries if (word := text_of(entry.get("signature")))), "")
        thought.native = {"signature": seal or object_of(thought.native).get("signature", "")}

    def _begin(self, block: Block, out: list[Event]) -> Block:
        self._last, self._spoke = block, True
        out.append(Opened(block))
        return block

    def _grow(self, kind: Kind, field: str, text: str, out: list[Event], native: object = None) -> Block:
        last = self._last
        if last is None or last.kind != kind or last.field == "signed" or (kind == "text" and last.field != field):
            last = self._begin(Block(kind, field=field), out)
        out.append(Piece(last, text, native))
        return last

    def _show(self, part: JsonObject, field: str, out: list[Event]) -> None:
        block = Block("media", part, field=field)
        if url := text_of(object_of(part.get("image_url")).get("url")):
            block.media = picture(url)
        self._begin(block, out)

    def _grow_thought(self, text: str, field: str, out: list[Event], native: object = None) -> None:
        if text:
            self._thought = thought = self._grow("thought", field, text, out, native)
            thought.field = thought.field or field
            self._seal(thought)

    def _read_details(self, details: list[object], out: list[Event]) -> None:
        """OpenRouter's way: entries that grow by their index, some of them sealed. Their text may stand in a plain field too."""
        entries = [entry for entry in details if isinstance(entry, dict)]
        text = "" if self._plain else "".join(text_of(entry.get("text")) or text_of(entry.get("summary")) for entry in entries)
        last, thought = self._last, self._thought
        if thought is None or (text and last is not thought):
            thought = self._thought = self._begin(Block("thought"), out)
            if not text and last is not None:
                self._last = last  # it says nothing that a text could end at
        native: JsonObject = {"reasoning_details": entries}
        out.append(Piece(thought, text, native) if text else Extra(thought, native))
        self._detailed = self._detailed or bool(text)
        known = self._details.setdefault(thought, [])
        for entry in entries:
            add_detail(known, entry)
        thought.native = {"reasoning_details": known}
        self._seal(thought)

    def _seal(self, thought: Block) -> None:
        """What this provider needs to get the thought back: its field, and the details where they hold more than its text."""
        payload: JsonObject = {thought.field: True} if thought.field in THOUGHTS else {}
        details = self._details.get(thought)
        if details and (not payload or any(entry.get(name) for entry in details for name in _OPAQUE)):
            payload["reasoning_details"] = details
        thought.seal = Seal(Dialect.CHAT, self._maker, payload) if payload else None

    # --- calls ----------------------------------------------------------------------------------------------------------

    def _read_call(self, entry: JsonObject, out: list[Event]) -> None:
        kind = next((kind for kind in BODIES if isinstance(entry.get(kind), dict)), "function")
        body = object_of(entry.get(kind))
        id, name, written = text_of(entry.get("id")), text_of(body.get("name")), written_text(body.get(BODIES[kind]))
        call = self._call_of(entry.get("index"), id, name, written, out)
        call.id, call.name, call.custom = call.id or id, call.name or name, call.custom or kind == "custom"
        self._by_id.setdefault(call.id, call)
        self._arguments[call].append(written)
        signed = signed_fields(entry)
        if inner := signed_fields(body):
            signed["function"] = inner
        if signed:
            call.seal = Seal(Dialect.CHAT, self._maker, {**(call.seal.payload if call.seal else {"for": "call"}), **signed})
        call.native = _with_entry(object_of(call.native), entry, kind)
        out.append(Piece(call, written, entry))

    def _call_of(self, index: object, id: str, name: str, written: str, out: list[Event]) -> Block:
        """The call that an entry belongs to; some hosts give every call the same index, or none."""
        index = index if isinstance(index, int | str) else None
        known = self._calls.get(index)
        if known is not None and id and id != known.id and not name:
            known = self._by_id.get(id, known)  # calls side by side that share an index, or have none
        if known is not None and name and known.name:
            unsaid = index is None or (bool(written or name != known.name) and self._is_whole(known))
            known = None if (known.id and id != known.id if id else unsaid) else known
        if known is None:
            known = Block("call", {}, field="function_call" if index == "function" else "")
            self._calls[index], self._arguments[known] = known, []
            self._begin(known, out)
        return known

    def _is_whole(self, call: Block) -> bool:
        return isinstance(read_json("".join(self._arguments[call]).encode("utf-8", "surrogatepass")), dict)


def _in_order(field: tuple[str, object]) -> int:
    return _ORDER.index(field[0]) if field[0] in _ORDER else -1


def _with_entry(known: JsonObject, entry: JsonObject, kind: str) -> JsonObject:
    """All but what the model wrote. Names and ids come once, some providers repeat them."""
    body = object_of(known.get(kind))
    told = {n: v for n, v in object_of(entry.get(kind)).items() if n != BODIES[kind] and v is not None and not body.get(n)}
    beside = {n: v for n, v in entry.items() if v is not None and n != "index" and n not in BODIES and not known.get(n)}
    return {**known, **beside, kind: {**body, **told}}


def _parted(first: JsonObject, choices: list[JsonObject]) -> JsonObject | None:
    """Copilot parts what was said at once: the first choice names calls as its reason, and the next one holds them."""
    if first.get("finish_reason") != "tool_calls" or object_of(first.get("message")).get("tool_calls"):
        return None
    return next((one for one in choices if object_of(one.get("message")).get("tool_calls")), None)


def _with_calls(first: JsonObject, parted: JsonObject | None) -> JsonObject:
    if parted is None:
        return first
    return {**first, "message": {**object_of(first.get("message")), "tool_calls": object_of(parted["message"])["tool_calls"]}}


def _as_whole(choice: JsonObject) -> JsonObject:
    rest = {name: value for name, value in choice.items() if name != "delta"}  # Perplexity gives an empty one as well
    return {**rest, "message": _numbered(object_of(choice.get("message")))}


def _numbered(message: JsonObject) -> JsonObject:
    """A whole message's calls have no indexes."""
    calls = [{**object_of(entry), "index": place} for place, entry in enumerate(list_of(message.get("tool_calls")))]
    return {**message, "tool_calls": calls} if calls else message


def error_of(document: JsonObject, name: str = "") -> ProviderError | None:
    """Also an error inside the first choice (OpenRouter), in `x_groq`, or in an event of that name."""
    if "x_groq" in document and has_error(groq := object_of(document["x_groq"])):
        return failure_inside(groq)
    choices = document.get("choices")
    if isinstance(choices, list) and choices and not has_error(document):
        first = choices[0]
        return failure_inside(first) if isinstance(first, dict) and has_error(first) else None
    if (error := failure_inside(document)) is not None:
        return error
    return BROKEN if name == "error" else None


def is_content(data: bytes) -> bool:
    if data.strip() == _DONE:
        return True
    document = read_object(data)
    choices = list_of(document.get("choices")) if document else []
    return any(_carries(object_of(choice)) for choice in choices)


def _carries(choice: JsonObject) -> bool:
    if choice.get("finish_reason") or choice.get("message") or choice.get("text"):
        return True
    delta = object_of(choice.get("delta"))
    return any(value for name, value in delta.items() if name != "role")
