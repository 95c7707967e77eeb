"""Gemini's generateContent: what a document of its answers says.

1. Each part says itself, with its native form where that is more than plain text, so that a chunk can be written anew without it.
2. A text or thought goes on in the next plain part of its kind. A signature belongs to its own part alone.
3. A reason may stand in a chunk of its own, come again, or come with every chunk: none of them is known to be the last.
4. Counts stand in every chunk. They are kept, and looked at when somebody asks.
"""

from __future__ import annotations

from typing import Any

from ....jsonbytes import dumps
from ....values import Dialect, JsonObject
from ...failures import failure_inside, has_error
from ...fields import arguments_of, list_of, object_of, read_json, text_of
from ...finish import is_cut, said_reason
from ...translation.neutral import Media, Seal, Tokens
from ..events import (
    BROKEN,
    UNREADABLE,
    Aside,
    Block,
    Closed,
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
from .arguments import Arguments
from .parts import CALLS, blocked, call_in, inner_of, main_candidate, parts_of, says, shown_in, signature_of, tokens_of

SHOWN_BESIDE = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
"""Fields of a candidate that are content."""
_PLAIN = frozenset(("text", "thought"))
_PIECEMEAL = frozenset(("partialArgs", "willContinue"))


class Reader(AnyReader):
    dialect = Dialect.GEMINI
    ARRAYS = True
    LOUD = (b'Reason"', b'"error"')
    CALLS = (b'"functionCall"',)

    def __init__(self, maker: str = "", id: str = "") -> None:
        super().__init__(maker, id)
        self._usage: JsonObject | None = None
        """All counts so far, the newest of each."""
        self._last: Block | None = None
        """The text or thought that goes on."""
        self._call: Block | None = None
        """A call whose arguments come in parts."""
        self._arguments = Arguments()

    def read(self, document: JsonObject, name: str = "") -> list[Event]:
        last = self._last
        if last is not None and (text := self._plain_text(document, thought=last.kind == "thought")):
            return [Piece(last, text)]
        inner = inner_of(document)
        if has_error(document) or has_error(inner):
            return [Failed(failure_inside(inner) or failure_inside(document) or BROKEN)]
        return self._read(inner) or [Field("", document)]

    def _plain_text(self, document: JsonObject, *, thought: bool) -> str:
        """Nearly all of a stream: one candidate, and nothing in it but more of the open text or thought."""
        inner: Any = document.get("response", document)
        try:
            (candidate,) = inner["candidates"]
            (part,) = candidate["content"]["parts"]
            text, size = part["text"], len(candidate)
        except (LookupError, TypeError, ValueError):
            return ""
        if "error" in inner or "promptFeedback" in inner or (inner is not document and "error" in document):
            return ""
        if type(text) is not str or size > 2 or (size == 2 and candidate.get("index") != 0):
            return ""
        if len(part) != (2 if thought else 1) or (thought and part.get("thought") is not True):
            return ""
        if type(usage := inner.get("usageMetadata")) is dict:
            if self._usage is None:
                return ""
            self._usage.update(usage)
        return text

    def _read(self, inner: JsonObject) -> list[Event]:
        out: list[Event] = []
        first = self._usage is None
        if isinstance(usage := inner.get("usageMetadata"), dict):
            self._usage = self._usage or {}
            self._usage.update(usage)
        candidate = main_candidate(inner)
        for other in list_of(inner.get("candidates")):
            if isinstance(other, dict) and other is not candidate:
                out.append(Aside(other))
        for part in parts_of(candidate):
            self._read_part(part, out)
        for name in SHOWN_BESIDE:
            if candidate.get(name):
                self._read_beside(name, object_of(candidate[name]), out)
        word = said_reason(candidate.get("finishReason")) or blocked(inner)
        if word:
            self._end(out, half=is_cut(word))
        if self._usage is not None and (word or (first and usage) or (usage and not out)):
            out.append(self._counted(self._usage))
        if word:
            out.append(Ended(word, final=False))
        if not self._began and (out or inner.get("responseId")):
            tokens = tokens_of(self._usage) if self._usage else None
            out[:0] = self._told_who(inner.get("responseId"), inner.get("modelVersion"), tokens)
        return out

    def _read_beside(self, name: str, told: JsonObject, out: list[Event]) -> None:
        out.append(Field(name, told, says=True))

    def _counted(self, usage: JsonObject) -> Counted:
        return Counted(Tokens(), usage, read=tokens_of)

    def read_word(self, data: bytes) -> list[Event]:
        return [Done()] if data.strip() == b"[DONE]" else [Field("", None)]

    def read_whole(self, document: JsonObject) -> list[Event]:
        inner = inner_of(document)
        if has_error(document) or has_error(inner) or not ("candidates" in inner or blocked(inner)):
            failed = failure_inside(inner) or failure_inside(document)
            return [Failed(failed or UNREADABLE)]
        out = self._read(inner)
        self._end(out, half=False)
        return [*out, Done()]

    # --- parts ----------------------------------------------------------------------------------------------------------

    def _read_part(self, part: JsonObject, out: list[Event]) -> None:
        text, word = part.get("text"), signature_of(part)
        calls = not part.keys().isdisjoint(CALLS)
        if isinstance(text, str) and not (calls and call_in(part)):
            self._read_text(part, text, word, out)
        elif isinstance(text, str):  # some gateway writes every field of a part, those that say nothing among them
            if text:
                self._read_text({"text": text}, text, "", out)
            self._read_part({name: value for name, value in part.items() if name != "text"}, out)
        elif calls:
            if call_in(part) or self._call is not None:
                self._read_call(part, call_in(part), word, out)
        elif part:
            self._read_other(part, word, out)

    def _read_text(self, part: JsonObject, text: str, word: str, out: list[Event]) -> None:
        kind: Kind = "thought" if part.get("thought") is True else "text"
        plain = not part.keys() - _PLAIN
        if plain and not text:
            return
        last = self._last
        if last is None or (last.kind != kind and (text or not word)):
            last = self._open(Block(kind), out)
        out.append(Piece(last, text, None if plain else part))
        if word:
            self._sign(last, kind, word, out)

    def _sign(self, block: Block, kind: Kind, word: str, out: list[Event]) -> None:
        """The signature ends a thought; a text goes on."""
        if block.kind == "thought":
            block.seal = self._seal(word, "" if kind == "thought" else "part")
            self._last = None

    def _seal(self, word: str, place: str) -> Seal:
        return Seal(Dialect.GEMINI, self._maker, {**({"for": place} if place else {}), "thoughtSignature": word})

    def _open(self, block: Block, out: list[Event]) -> Block:
        self._end(out, half=False)
        self._last = block if block.kind in ("text", "thought") else None
        out.append(Opened(block))
        return block

    def _read_other(self, part: JsonObject, word: str, out: list[Event]) -> None:
        """A picture, or what Google's own tools did; a thought's pictures are only drafts."""
        block = Block("trace", part)
        block.hides = part.get("thought") is True
        if not block.hides and isinstance(shown := shown_in(part), Media):
            block.kind, block.media = "media", shown
        self._open(block, out)

    # --- calls ----------------------------------------------------------------------------------------------------------

    def _read_call(self, part: JsonObject, call: JsonObject, word: str, out: list[Event]) -> None:
        """A whole call, or a part of one: the parts behind its name have none, and the last one does not say that it goes on."""
        name = text_of(call.get("name"))
        block = self._call
        if name or block is None:
            block = self._open(Block("call", part, id=text_of(call.get("id")), name=name), out)
            self._call, self._arguments = block, Arguments()
        args = call.get("args")
        whole = arguments_of(args) if isinstance(args, str) else object_of(args)  # some gateway writes the text of the object
        self._arguments.add(whole, list_of(call.get("partialArgs")))
        if word:
            block.seal = self._seal(word, "call")
        if call.get("willContinue") is True:
            out.append(Extra(block, part))
        else:
            self._end_call(out, part)

    def _end_call(self, out: list[Event], part: JsonObject | None = None, *, half: bool = False) -> None:
        """`half`: the answer broke off in it."""
        block, self._call = self._call, None
        if block is None:
            return
        arguments = self._arguments.value
        text = dumps(arguments).decode()
        native = object_of(block.native)
        if part is not native:  # they came in parts; a history takes whole ones
            call = {name: value for name, value in call_in(native).items() if name not in _PIECEMEAL}
            signed = {"thoughtSignature": block.seal.payload["thoughtSignature"]} if block.seal is not None else {}
            beside = {name: value for name, value in native.items() if name not in CALLS}
            block.native = {**beside, "functionCall": {**call, "args": arguments}, **signed}
        out.append(Piece(block, text[:-1] if half else text, part))
        if not half:
            out.append(Closed(block))

    def _end(self, out: list[Event], *, half: bool) -> None:
        """Something else begins, or nothing more comes."""
        self._end_call(out, half=half)


def is_content(data: bytes) -> bool:
    value = read_json(data)
    documents = [inner_of(object_of(item)) for item in (value if isinstance(value, list) else [value])]
    return any(_carries(document) for document in documents)


def _carries(document: JsonObject) -> bool:
    if object_of(document.get("promptFeedback")).get("blockReason"):
        return True
    candidates = [object_of(candidate) for candidate in list_of(document.get("candidates"))]
    return any(candidate.get("finishReason") or any(map(says, parts_of(candidate))) for candidate in candidates)
