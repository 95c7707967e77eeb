"""OpenAI Chat Completions: chunks as the client's bytes.

1. A chunk of this dialect that still says what it said, in the answer's own name, leaves as it came.
2. One that was changed keeps its own frame: only what its events say is put in anew.
3. Anything else is written, one delta for each event: a role chunk, deltas, one chunk with the finish reason, the usage chunk
   if it was asked for, and `[DONE]`.
4. Thoughts of others are `reasoning_content`; what seals them is an entry of `reasoning_details`, as OpenRouter has them; what
   seals a call is its `extra_content`, as Google has it. A seal of another dialect is one opaque word there.
5. A custom tool's call is written when it is whole: only then is its text known. So is any call for a client that reads each
   delta as whole calls; such clients look for what it has cost in the last chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...fields import list_of, object_of
from ...sse import write_event
from ...translation.ids import digest
from ...translation.neutral import Asked, Feature, Tokens
from ..beside import name_media, name_tool
from ..counts import summed_counts
from ..events import (
    Aside,
    Began,
    Block,
    Chunk,
    Cited,
    Closed,
    Counted,
    Done,
    Ended,
    Event,
    Extra,
    Failed,
    Field,
    Opened,
    Piece,
)
from ..openai_errors import error_told
from ..said import Content, arguments_of
from ..written import AnyWriter, Document
from .history import annotation, call_of, details_of, field_of, grown, message, sealed_call, shown_media
from .read import MARKED, SOURCES, Reader

_HEAD = ("id", "created", "model")
"""What every chunk repeats."""
_SAID = ("index", "delta", "message", "finish_reason", "usage")
"""Fields of a choice that are told from events."""
_PREFIX = "chatcmpl-"
_DONE = b"data: [DONE]\n\n"


class _Writer(AnyWriter):
    """What a stream's and a document's writer share."""

    dialect = Dialect.CHAT
    ALIVE = b": keepalive\n\n"

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._named = 0
        self._given: set[str] = set()
        """Ids of calls."""

    def name(self, block: Block, answer: str = "") -> None:
        """What the client knows a call by, whoever made it."""
        if block.field == "function_call":
            return  # the old kind has no ids
        known = self._tools.get(block.name)
        if known is not None:
            block.name, block.as_custom = known.name, known.custom
        if not block.id or block.id in self._given:  # some hosts give calls of one answer the same
            block.id = "call_" + digest(f"{self._asked.id}{answer}:{self._named}", 24)
        self._given.add(block.id)
        self._named += 1
        block.named = True

    def id_of(self, id: str) -> str:
        return _answer_id(id, self._asked)

    def _name_lost(self, block: Block) -> None:
        if not block.foreign:
            return
        if block.kind == "trace":
            name_tool(self.left_out, block.name, block.native)
        elif block.media is not None and "images" not in shown_media(block.media):
            name_media(self.left_out, block.media)

    def _usage(self, counted: Counted | None) -> JsonObject:
        if counted is None:
            return _written_usage(Tokens(input=self._asked.estimate()))  # a provider that counted nothing leaves us our own count
        if counted.rounds:
            return summed_counts(counted.rounds, "prompt_tokens", "completion_tokens")
        native = counted.native
        return native if native is not None and "prompt_tokens" in native else _written_usage(counted.tokens)


class Writer(_Writer):
    """One stream."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._head: JsonObject = {}
        self._before = self._behind = b""
        """What stands around a delta of ours."""
        self._role = False
        """It was told."""
        self._next = 0
        """The client's next index of a tool call."""
        self._lists: dict[str, int] = {}
        """How many entries of a list in the delta were told."""
        self._counted: Counted | None = None
        self._texts: dict[Block, list[str]] = {}
        """What was written of thoughts, and what waits of calls of custom tools."""
        self._written: set[Block] = set()
        """Calls that have arguments."""
        self._details = 0
        self._beside: JsonObject = {}
        """What a document says beside its choices: it stands in the last chunk."""

    @property
    def steady(self) -> bool:
        return not self.altered

    def write(self, chunk: Chunk) -> bytes:
        document = chunk.native
        if chunk.dialect is not Dialect.CHAT or chunk.form == "document" or (document is None and not chunk.raw):
            if chunk.dialect is not Dialect.CHAT or document is None:
                return b"".join([self.made(event) for event in chunk.events])
            self._beside = _beside_choices(document)
            told = [object_of(choice) for choice in list_of(document.get("choices"))]
            if len(told) > 1:
                self.left_out.add(Feature.CANDIDATES)
            if any(choice.get("logprobs") for choice in told):
                self.left_out.add(Feature.LOGPROBS)
            return b"".join([self._field(event) if type(event) is Field else self.made(event) for event in chunk.events])
        if document is None:
            return chunk.raw
        if not chunk.raw:
            return self._patched(chunk, document)
        choices = document.get("choices")
        if not choices:
            if document.get("usage") and not self._passes_usage:
                return b""
            self._head = self._head or (_head_of(document) if document.get("id") else {})
            return chunk.raw
        if self.altered and not self._is_in_step(document, chunk.events):
            return self._patched(chunk, document)
        if not self._head:
            self._head = _head_of(document)
        self._role = True
        if not (len(chunk.events) == 1 and type(piece := chunk.events[0]) is Piece and piece.block.kind == "text"):
            self._take_places(chunk.events)
        return chunk.raw

    @property
    def _passes_usage(self) -> bool:
        return self._asked.include_usage or self._asked.passes_usage

    # --- chunks of this dialect ------------------------------------------------------------------------------------------

    def _is_in_step(self, document: JsonObject, events: Sequence[Event]) -> bool:
        """Nothing in it contradicts what the client was told before."""
        if not self._role:
            return False
        for event in events:
            if type(event) is Piece and event.block.kind == "call" and isinstance(event.native, dict):
                if event.native.get("index") != self._place(event.block):
                    return False
            elif (type(event) is Field and event.name == "role") or type(event) is Counted:
                return False
        head, get = self._head, document.get
        return get("id") == head.get("id") and get("created") == head.get("created") and get("model") == head.get("model")

    def _take_places(self, events: Sequence[Event]) -> None:
        """What leaves as it came counts as well."""
        for event in events:
            if type(event) is Piece and event.block.kind == "call" and event.block.place < 0:
                index = event.native.get("index") if isinstance(event.native, dict) else None
                event.block.place = index if isinstance(index, int) else self._next
                self._next = max(self._next, event.block.place + 1)

    def _place(self, block: Block) -> int:
        if block.place < 0:
            block.place, self._next = self._next, self._next + 1
        return block.place

    def _patched(self, chunk: Chunk, document: JsonObject) -> bytes:
        """The chunk's own frame around what is left of it, or was put into it."""
        delta: JsonObject = {}
        asides: list[object] = []
        ended: Ended | None = None
        counted: Counted | None = None
        for event in chunk.events:
            match event:
                case Piece():
                    self._put(delta, event)
                case Field(name=name):
                    if name and not (name == "role" and self._role and self.altered):
                        delta[name] = event.native
                case Extra():
                    delta |= event.native
                case Opened(block=block) if block.kind == "media":
                    delta.setdefault(block.field, []).append(block.native)  # type: ignore[attr-defined]
                case Aside():
                    asides.append(event.native)
                case Ended():
                    ended = event
                case Counted():
                    counted = event
                case _:
                    pass
        self._head = self._head or _head_of(document)
        if not document.get("choices"):
            told = counted is not None and self._passes_usage
            return write_event(dumps({**document, **self._head, "usage": self._usage(counted)}), chunk.name) if told else b""
        if not (ended or asides or any(value for name, value in delta.items() if name != "role")):
            return b""
        if not self._role:
            delta = {"role": "assistant", **delta}
        self._role = True
        first = next((one for one in list_of(document.get("choices")) if isinstance(one, dict) and not one.get("index")), {})
        choice = {name: value for name, value in first.items() if name not in ("message", "delta", "finish_reason", "usage")}
        if ended is not None and not delta and "logprobs" in choice and first.get("delta"):
            choice["logprobs"] = None
        choice |= {"delta": delta, "finish_reason": ended.finish_reason if ended is not None else None}
        whole = {**document, **self._head, "choices": [choice, *asides]}
        counts = self._usage(counted) if counted is not None and ended is not None else None
        places = [new for new, old in ((choice, first), (whole, document)) if old.get("usage")]
        for place in places:
            place["usage"] = counts
        out = write_event(dumps(whole), chunk.name)
        if counts is None or places or not self._asked.include_usage:
            return out
        head: JsonObject = {"object": "chat.completion.chunk", **self._head}
        return out + write_event(dumps({**head, "choices": [], "usage": counts}))

    def _put(self, delta: JsonObject, piece: Piece) -> None:
        block, native = piece.block, piece.native
        if block.kind == "call" and isinstance(native, dict):
            if block.field:
                delta[block.field] = native["function"]
            else:
                delta.setdefault("tool_calls", []).append({**native, "index": self._place(block)})  # type: ignore[attr-defined]
        elif isinstance(native, dict) and ("reasoning_details" in native or block.field == MARKED):
            delta |= native
        elif isinstance(native, dict):
            grown = {**native, "text": piece.text} if block.kind == "text" else native
            delta.setdefault("content", []).append(grown)  # type: ignore[attr-defined]
        else:
            field = block.field or "content"
            delta[field] = str(delta.get(field, "")) + piece.text

    # --- what was said elsewhere ----------------------------------------------------------------------------------------

    def made(self, event: Event) -> bytes:
        if type(event) is Piece:
            block, text = event.block, event.text
            if block.kind == "text":
                return self._delta({"refusal" if block.field == "refusal" else "content": text}) if text else b""
            if block.field == MARKED and isinstance(event.native, dict) and not block.foreign:
                return self._delta(event.native)
            return self._call_piece(block, text) if block.kind == "call" else self._thought_piece(block, text)
        match event:
            case Began():
                return self._begin(event.id)
            case Opened(block=block):
                return self._open(block)
            case Closed(block=block):
                return self._close(block)
            case Cited():
                return self._cite(event)
            case Counted():
                self._counted = event
                return b""
            case Ended():
                return self._end(event)
            case Done():
                return _DONE
            case Failed(error=error):
                return write_event(dumps({"error": error_told(error.status, error.message, error.code)}))
            case _:
                return b""

    def _field(self, field: Field) -> bytes:
        """What a document of this dialect says of its message, and no block holds."""
        return self._delta({field.name: field.native}) if field.says and field.name else b""

    def _begin(self, id: str) -> bytes:
        if self._before:
            return b""
        asked = self._asked
        self._head = self._head or {"id": self.id_of(id), "created": asked.created, "model": asked.model}
        head = {"id": self._head.get("id"), "object": "chat.completion.chunk"}
        head |= {"created": self._head.get("created"), "model": self._head.get("model")}
        self._before = b"data: " + dumps(head)[:-1] + b',"choices":[{"index":0,"delta":'
        usage = b',"usage":null' if asked.include_usage and not asked.whole_calls else b""
        self._behind = b',"logprobs":null,"finish_reason":null}]' + usage + b"}\n\n"
        if self._role:
            return b""
        self._role = True
        return self._delta({"role": "assistant", "content": ""})

    def _delta(self, delta: JsonObject) -> bytes:
        begun = b"" if self._before else self._begin("")
        return begun + self._before + dumps(delta) + self._behind

    def _thought_piece(self, block: Block, text: str) -> bytes:
        """Two thoughts in one field have a blank line between them."""
        field = field_of(block) if block.kind == "thought" and text else ""
        if not field:
            return b""
        glue = "\n\n" if block.foreign and self._texts and block not in self._texts else ""
        self._texts.setdefault(block, []).append(text)
        return self._delta({field: glue + text})

    def _open(self, block: Block) -> bytes:
        self._name_lost(block)
        if block.kind == "media" and block.media is not None:
            shown = shown_media(block.media)
            return self._delta(
                {name: self._listed(name, told) if isinstance(told, list) else told for name, told in shown.items()}
            )
        if block.kind != "call" or not block.name:
            return b""
        self._place(block)
        if block.as_custom or self._asked.whole_calls:
            return b""
        return self._entry(block, {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": ""}})

    def _cite(self, cited: Cited) -> bytes:
        told = annotation(cited)
        if told is None:
            self.left_out.add(Feature.CITATIONS, cited.citation.title)
            return b""
        return self._delta({"annotations": self._listed("annotations", [told])})

    def _listed(self, name: str, entries: list[JsonObject]) -> list[JsonObject]:
        """The SDK's helper puts a list together by its entries' index, and fails where one has none."""
        first = self._lists.get(name, 0)
        self._lists[name] = first + len(entries)
        return [{**entry, "index": place} for place, entry in enumerate(entries, first)]

    def _entry(self, block: Block, entry: JsonObject) -> bytes:
        return self._delta({"tool_calls": [{"index": self._place(block), **entry}]})

    def _call_piece(self, block: Block, text: str) -> bytes:
        if block.as_custom or block.custom or self._asked.whole_calls:
            self._texts.setdefault(block, []).append(text)
            return b""
        if not (text and block.name):
            return b""
        self._written.add(block)
        return self._entry(block, {"function": {"arguments": text}})

    def _close(self, block: Block) -> bytes:
        if block.kind == "thought":
            entries = details_of(block, "".join(self._texts.get(block, ())), self._details)
            self._details += len(entries)
            return self._delta({"reasoning_details": entries}) if entries else b""
        if block.kind != "call" or not block.name:
            return b""
        if block.as_custom:
            return self._entry(block, call_of(block, "".join(self._texts.pop(block, ()))))
        if self._asked.whole_calls:
            text = "".join(self._texts.pop(block, ()))
            function = {"name": block.name, "arguments": (arguments_of(block, text) if block.custom else text) or "{}"}
            return self._entry(block, {"id": block.id, "type": "function", "function": function, **sealed_call(block.seal)})
        if block.custom:
            self._written.add(block)
            written = self._entry(block, {"function": {"arguments": arguments_of(block, "".join(self._texts.pop(block, ())))}})
            return written + self._seal_call(block)
        return self._seal_call(block)

    def _seal_call(self, block: Block) -> bytes:
        sealed = sealed_call(block.seal)
        if block in self._written and not sealed:
            return b""
        return self._entry(block, {"function": {"arguments": "" if block in self._written else "{}"}, **sealed})

    def _end(self, event: Ended) -> bytes:
        begun = b"" if self._before else self._begin("")
        reason = b'"finish_reason":' + dumps(event.finish_reason)
        out = begun + self._before + b"{}" + self._behind.replace(b'"finish_reason":null', reason, 1)
        if self._beside:
            out = out.removesuffix(b"}\n\n") + b"," + dumps(self._beside)[1:] + b"\n\n"
        if self._asked.whole_calls:
            return out.removesuffix(b"}\n\n") + b',"usage":' + dumps(self._usage(self._counted)) + b"}\n\n"
        if not self._asked.include_usage:
            return out
        counts = self._before[: self._before.rindex(b',"choices":[')] + b',"choices":[],"usage":'
        return out + counts + dumps(self._usage(self._counted)) + b"}\n\n"


class Whole(Document, _Writer):
    """One JSON document."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._frame: JsonObject = {}
        """The first round's own document, but for what was said."""
        self._choice: JsonObject = {"index": 0, "logprobs": None}
        """What a stream says beside its deltas: log probabilities, the stop that matched, results of a filter."""

    def made(self, event: Event) -> bytes:
        return b"" if type(event) is Field else super().made(event)  # another dialect's

    def _frame_in(self, document: JsonObject, *, is_whole: bool) -> None:
        self._content.as_document = self._content.as_document or not is_whole
        if self._frame:
            late = {name: value for name, value in _head_of(document).items() if not self._frame.get(name)}
            self._frame |= late | _beside_choices(document)
        else:
            self._frame = document if is_whole else {**document, "object": "chat.completion", "choices": []}
        for choice in () if is_whole else list_of(document.get("choices")):
            if isinstance(choice, dict) and not choice.get("index"):
                beside = {name: value for name, value in choice.items() if name not in _SAID}
                self._choice = object_of(grown(self._choice, beside))

    def _lose(self, event: Event) -> None:
        if type(event) is Opened:
            self._name_lost(event.block)

    def _put_together(self) -> JsonObject:
        content, asked, given = self._content, self._asked, self._frame
        frame = {name: value for name, value in given.items() if name not in ("usage", "choices")}
        if not given:
            id = self.id_of(content.began.id if content.began is not None else "")
            frame = {"id": id, "object": "chat.completion", "created": asked.created, "model": asked.model}
        choices = [choice for choice in list_of(given.get("choices")) if isinstance(choice, dict)]
        first = next((choice for choice in choices if not choice.get("index")), self._choice)
        empty: JsonObject = {"refusal": None, "annotations": []}
        if given:
            empty = {name: value for name, value in object_of(first.get("message")).items() if value is None or value == []}
        choice = {name: value for name, value in first.items() if name != "delta"}
        cited = [cited for of in content.cited.values() for cited in of]
        annotations = [told for one in cited if (told := annotation(one)) is not None]
        for one in cited if len(annotations) < len(cited) else ():
            self.left_out.add(Feature.CITATIONS, one.citation.title if not one.citation.url else "")
        told = message(content)
        for call in map(object_of, list_of(told.get("tool_calls"))):
            function = object_of(call.get("function"))
            if function.get("arguments") == "":  # of a stream; the SDKs read a document's as JSON
                function["arguments"] = "{}"
        if annotations:
            told["annotations"] = [*list_of(told.get("annotations")), *annotations]
        if content.ended is not None:
            word = content.ended.finish_reason
        else:
            word = asked.endings.write("", Dialect.CHAT, calls=content.holds_calls)
        choice |= {"message": {**empty, **told}, "finish_reason": word}
        others = [one for one in choices if one is not first] if choices else _others(content.asides)
        counts = content.counted is not None or "usage" in given or not choices
        usage = {"usage": self._usage(content.counted)} if counts else {}
        return {**frame, "choices": [choice, *others], **usage}


def _head_of(document: JsonObject) -> JsonObject:
    return {name: document[name] for name in _HEAD if name in document}


def _beside_choices(document: JsonObject) -> JsonObject:
    return {name: document[name] for name in SOURCES if document.get(name)}


def _others(asides: Iterable[JsonObject]) -> list[JsonObject]:
    """Other choices of a stream, each put together."""
    found: dict[int, tuple[Reader, Content]] = {}
    for choice in asides:
        index = choice.get("index")
        reader, content = found.setdefault(index if isinstance(index, int) else -1, (Reader(), Content()))
        content.add(reader.read({"choices": [{**choice, "index": 0}]}))
    ends = {index: content.ended and content.ended.finish_reason for index, (_, content) in found.items()}
    return [
        {"index": index, "message": message(content), "logprobs": None, "finish_reason": ends[index]}
        for index, (_, content) in found.items()
    ]


def _answer_id(id: str, asked: Asked) -> str:
    return id if id.startswith(_PREFIX) else _PREFIX + digest(asked.id, 24)


def _written_usage(tokens: Tokens) -> JsonObject:
    prompt: JsonObject = {"cached_tokens": tokens.cached}
    if tokens.written:
        prompt["cache_write_tokens"] = tokens.written
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }
