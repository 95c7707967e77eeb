"""What has been said: a round so far (`Content`: blocks in their order, as they grow), and what it comes to (`Said`).

1. A long text is kept once, and never copied to be made longer.
2. Nothing here knows a dialect: a history is written by `<dialect>/history.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ...jsonbytes import dumps
from ...values import FinishReason, JsonObject, ProviderError, ToolCall, Usage
from ..finish import holds_calls, is_cut, is_whole_call
from ..translation.neutral import Tokens
from .events import (
    Aside,
    Began,
    Block,
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

_WORTH_ADDING = 16 << 10
"""So much of a growing text is worth being added to it."""


class Said(Struct, frozen=True):
    """One round's answer, or (a merger's `shown`) the whole answer as the client received it."""

    text: str
    """The visible text; its pieces joined as they came, without thinking."""
    calls: tuple[ToolCall, ...]
    """All tool calls in order, ours included; `arguments` is the model's JSON text."""
    own: tuple[ToolCall, ...]
    """Those of the calls whose tool is ours: the client never sees them."""
    finish: FinishReason
    usage: Usage
    id: str
    """The provider's id of this answer; empty where it tells none."""
    native: tuple[JsonObject, ...]
    """What stands for this answer in the dialect's own history: signed thinking, unknown blocks and our own calls included.

    Empty where the model said nothing that a history may hold.
    """
    complete: bool = True
    """False where the answer did not come to its own end: its terminal event is missing, or an error stands in its place."""
    error: ProviderError | None = None
    """The error event (or, in JSON, the error document) that ended the round."""


class GrowingText:
    """Text that arrives in many small pieces, kept as small as it is.

    What is new waits as bytes until it is worth being added: then a long text is made longer where it stands, so that there is
    never a second copy of it.
    """

    __slots__ = ("_new", "_text", "_worth")

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._new = bytearray()
        self._worth = _WORTH_ADDING + len(text) // 16

    def add(self, piece: str) -> None:
        try:
            self._new += piece.encode()
        except UnicodeEncodeError:  # half of a pair, which JSON may hold
            self._new += piece.encode("utf-8", "surrogatepass")
        if len(self._new) >= self._worth:
            self._add_new()

    def _add_new(self) -> None:
        text, self._text = self._text, ""  # nobody else holds it now, and it may grow in place
        text += self._new.decode("utf-8", "surrogatepass")
        self._text = text
        self._worth = _WORTH_ADDING + len(text) // 16
        self._new.clear()

    def same(self, text: str) -> None:
        """Where this is what it says, it is kept once: `text` is held by others as well."""
        if len(text) >= _WORTH_ADDING and str(self) == text:
            self._text = text

    def __str__(self) -> str:
        if self._new:
            self._add_new()
        return self._text


class Content:
    """One round's, or that of a whole answer."""

    def __init__(self, *, apart: bool = False) -> None:
        self.blocks: dict[Block, GrowingText] = {}
        self.texts: list[Block] = []
        """Those of them that are text."""
        self.extras: dict[Block, list[JsonObject]] = {}
        self.cited: dict[Block, list[Cited]] = {}
        self.fields: list[Field] = []
        self.asides: list[JsonObject] = []
        self._over: set[Block] = set()
        """Those whose provider said so."""
        self.apart: dict[Block, list[tuple[int, int, object]]] | None = {} if apart else None
        """What of texts their dialect keeps apart from its neighbours (Gemini's signed parts, those of a Responses message):
        from where to where in the text, and as it came."""
        self.began: Began | None = None
        self.counted: Counted | None = None
        self.ended: Ended | None = None
        self.done = False
        self.error: ProviderError | None = None
        self.as_document = False
        """It came in pieces, and is told as a whole document: that one says nothing of a call that it broke off in."""

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            kind = type(event)
            if kind is Piece:
                if self.apart is not None:
                    self._keep_apart(event)  # type: ignore[arg-type]
                self.text_of(event.block).add(event.text)  # type: ignore[attr-defined]
            elif kind is Opened:
                self.text_of(event.block)  # type: ignore[attr-defined]
            elif kind is Counted:
                self.counted = event  # type: ignore[assignment]
            else:
                self._add_other(event)

    def _add_other(self, event: Event) -> None:
        match event:
            case Extra():
                self.text_of(event.block)
                self.extras.setdefault(event.block, []).append(event.native)
            case Cited():
                self.cited.setdefault(event.block, []).append(event)
            case Closed():
                self._over.add(event.block)
            case Began():
                self.began = self.began or event
            case Field():
                self.fields.append(event)
            case Aside():
                self.asides.append(event.native)
            case Ended():
                self.ended = event
            case Done():
                self.done = True
            case Failed():
                self.error = self.error or event.error
            case _:
                pass

    def _keep_apart(self, piece: Piece) -> None:
        block, native = piece.block, piece.native
        if self.apart is None or native is None or block.foreign or block.kind not in ("text", "thought"):
            return
        known = self.apart.setdefault(block, [])
        if known and known[-1][2] is native:
            start, end, _ = known.pop()
        else:
            start = end = len(str(self.text_of(block)))
        known.append((start, end + len(piece.text), native))

    def pieces_of(self, block: Block) -> Iterator[tuple[str, object]]:
        """Its text, cut where something of it stands apart, and as that came."""
        text, place = str(self.blocks[block]), 0
        for start, end, native in (self.apart or {}).get(block, ()):
            if place < start:
                yield text[place:start], None
            yield text[start:end], native
            place = end
        if place < len(text):
            yield text[place:], None

    def text_of(self, block: Block) -> GrowingText:
        text = self.blocks.get(block)
        if text is None:
            text = self.blocks[block] = GrowingText()
            block.text = block.text or text
            if block.kind == "text":
                self.texts.append(block)
        return text

    def is_over(self, block: Block) -> bool:
        """Its provider said so."""
        return block in self._over

    @property
    def text(self) -> str:
        """The visible text, a refusal among it."""
        return "".join([str(text) for block, text in self.blocks.items() if block.kind == "text"])

    @property
    def refused(self) -> bool:
        return any(block.refusal for block in self.blocks) or any(field.name == "refused" for field in self.fields)

    @property
    def calls(self) -> list[tuple[Block, ToolCall]]:
        """Of tools that the client or we run. Some hosts put one of nobody's beside a text: nobody can run it."""
        return [
            (block, ToolCall(block.id, block.name, arguments_of(block, str(text))))
            for block, text in self.blocks.items()
            if block.kind == "call" and block.name
        ]

    @property
    def holds_calls(self) -> bool | None:
        """Whether there are calls for whoever asked to run, all of them whole; None where that cannot be said."""
        return holds_calls([call.arguments for _, call in self.calls], served=self.holds_traces)

    @property
    def holds_traces(self) -> bool:
        """Of calls that the provider ran itself, or that never said whose they are."""
        return any(block.kind == "trace" or (block.kind == "call" and not block.name) for block in self.blocks)

    @property
    def complete(self) -> bool:
        """An answer has ended when its reason has come; a stream that only stops must not stop in the middle of a call."""
        if self.error is not None or self.ended is not None:
            return self.error is None
        said = self.began is not None or self.blocks  # a bare last word answers nothing
        return self.done and bool(said) and not any(self._is_half(block) for block in self.blocks)

    def settle(self) -> None:
        """Nothing more comes: which calls the answer broke off in, or was cut off in, so that nobody may run them."""
        breaks, last = not self.complete, next(reversed(self.blocks), None)
        cut = self.ended is not None and is_cut(self.ended.finish_reason)
        for block, text in self.blocks.items():
            begun = block.kind == "call" and not (block in self._over or str(text))  # its tool may have no parameters, or not
            block.half = (breaks or cut) and (self._is_half(block) or (begun and (breaks or block is last)))

    def leaves_out(self, block: Block) -> bool:
        """Of what came in this very dialect and form nothing is."""
        return block.is_nobodys and (block.foreign or self.as_document)

    def _is_half(self, block: Block) -> bool:
        """Free text says nothing about its end: what is behind it does."""
        if block.kind != "call":
            return False
        return block is next(reversed(self.blocks)) if block.custom else not is_whole_call(str(self.blocks[block]))

    @property
    def tokens(self) -> Tokens | None:
        return self.counted.tokens if self.counted is not None else self.began.tokens if self.began is not None else None

    @property
    def usage(self) -> Usage:
        tokens = self.tokens
        return Usage(tokens.input, tokens.output) if tokens is not None else Usage()


def arguments_of(block: Block, text: str) -> str:
    """A call's arguments as JSON text; free text for a custom tool is the argument of a function with one string."""
    return dumps({"input": text}).decode() if block.custom else text


def keep_nothing(text: str) -> None:
    """Of a text that nobody asks for."""
