"""Takes a provider's own credential out of what it says, where it is spread over several events: a text is looked at as a whole.

1. Bytes that hold it in one piece were masked before they came here (`routing/masking.py`). Here each block's text is looked at.
2. From `SURE` matching characters on the units that say it wait, and what comes behind them, for `HOLD_S` seconds at most.
3. A unit whose text changes is rewritten where it stands, as if its provider had said so: nobody behind this knows.
4. A credential that stands in no piece as a whole goes on in the next one: nearly every piece costs one look at its first
   character. What leaves unread is looked at by what stands around its texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf

from ...jsonbytes import dumps
from ...masking import SURE, Mask
from ...redact import SHORTEST
from ..fields import THOUGHTS
from ..sse import write_event
from .events import Block, Chunk, Closed, Done, Failed, Piece

_QUOTE = b'"'
_ESCAPE = re.compile(r"\\(?:/|u0|u?\Z)")
"""In arguments, which are JSON within JSON: one that may stand for a character of a credential, or may become that."""
_RAW_ESCAPE = re.compile(_ESCAPE.pattern.encode())
_SHORTEST_ESCAPE = len("\\u002d")
_GROWING = frozenset(
    (
        *("content", "text", "thinking", "partial_json", "delta", "arguments", "input", "refusal"),
        *THOUGHTS,
        *("summary", "transcript"),
    )
)
"""Fields that hold what a piece says, in all dialects."""


class _Waiting:
    """A piece that may hold a part of a credential."""

    __slots__ = ("chunk", "masked", "piece")

    def __init__(self, piece: Piece, chunk: Chunk, masked: str) -> None:
        self.piece, self.chunk, self.masked = piece, chunk, masked

    def rewrite(self, text: str) -> None:
        piece, chunk = self.piece, self.chunk
        _replace(chunk.native, piece.text, text)
        _replace(piece.native, piece.text, text)
        piece.text = text
        if chunk.raw:
            chunk.raw, chunk.rest = _written(chunk), ()


class Echoes:
    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secret for secret in secrets if len(secret) >= SHORTEST)
        heads = [secret[:SURE] for secret in self._secrets]
        self._heads = tuple(heads)
        self.sure = min(map(len, heads), default=SURE)
        """So short a text holds none."""
        self.short = min(self.sure, _SHORTEST_ESCAPE)
        """Nor a letter that is escaped."""
        begun = {head[:size] for head in heads for size in range(1, len(head))}
        self._beginnings = tuple(sorted(begun, key=len, reverse=True))
        self.nexts = frozenset(letter for head in heads for letter in head[1:])
        """What a text begins with that goes on in the middle of a beginning."""
        self.raw_nexts = frozenset(_raw("".join(self.nexts)))
        self.newest = ""
        """The text that came last, of whoever came last; with what stands before it, where that may be a part of a beginning."""
        self._tails: dict[Block, str] = {}
        """How the texts of others end, where they may go on as a credential."""
        self._masks: dict[Block, Mask] = {}
        """Of texts in which one has begun."""
        self.last: Block | None = None
        """Whose text came last."""
        self.busy = False
        """Something is held, or may have to be."""
        self._waiting: dict[Block, list[_Waiting]] = {}
        self._held: list[Chunk] = []
        """Units that wait, and those behind them."""
        self.found = False
        """A text was changed."""

    # --- what is read ---------------------------------------------------------------------------------------------------

    def lets(self, piece: Piece) -> bool:
        """More of the text that was looked at last, in which nothing of a credential can begin or go on."""
        text = piece.text
        return (
            piece.block is self.last
            and len(text) < self.sure
            and text[:1] not in self.nexts
            and not self.busy
            and not ("\\" in text and piece.block.kind == "call")
        )

    def look(self, chunk: Chunk, now: float) -> list[Chunk]:
        """What may go on now: nearly always this very unit, as it came."""
        before: list[Chunk] = []
        for event in chunk.events if chunk.form != "document" else ():
            if type(event) is Piece and event.text:
                self._mask(event, chunk, now)
            elif type(event) is Closed and (mask := self._masks.pop(event.block, None)) is not None:
                self._settle(event.block, _text(mask.end()))
            elif self._held and (type(event) is Done or type(event) is Failed):  # behind a reason a text may go on
                before += self.rest()
        self.busy = bool(self._masks)
        if self._waiting:
            self._held.append(chunk)
            return before
        held, self._held = self._held, []
        return [*before, *held, chunk]

    def rest(self) -> list[Chunk]:
        """All that is held: nothing more of it comes."""
        for block, mask in self._masks.items():
            self._settle(block, _text(mask.end()))
        self._masks.clear()
        self.busy = False
        held, self._held = self._held, []
        return held

    def _mask(self, piece: Piece, chunk: Chunk, now: float) -> None:
        block, text = piece.block, piece.text
        before = self._turn_to(block)
        self.newest = before + text
        mask = self._masks.get(block)
        if mask is None:
            if not self._holds(block, self.newest):
                return
            mask = self._masks[block] = Mask(self._secrets)
            mask.feed(_raw(before), now)
        masked = _text(mask.feed(_raw(text), now))
        self._waiting.setdefault(block, []).append(_Waiting(piece, chunk, masked))
        if mask.due == inf:
            self._settle(block, "")
        if mask.is_clean:
            del self._masks[block]

    def _turn_to(self, block: Block) -> str:
        """How its text ends, as far as a credential may have begun there."""
        tail = next((one for one in self._beginnings if self.newest.endswith(one)), "")
        if block is self.last:
            return tail
        if self.last is not None and tail:
            self._tails[self.last] = tail
        self.last = block
        return self._tails.pop(block, "")

    def _holds(self, block: Block, text: str) -> bool:
        """Whether a credential begins in it for sure, or may behind an escape."""
        if len(text) >= self.sure:
            for head in self._heads:
                if head in text:
                    return True
        return block.kind == "call" and "\\" in text and _ESCAPE.search(text) is not None

    def _settle(self, block: Block, rest: str) -> None:
        """It is known what may be shown: where that is another text, it stands in the last of the units."""
        waiting = self._waiting.pop(block, [])
        whole = "".join([one.masked for one in waiting]) + rest
        if not waiting or whole == "".join([one.piece.text for one in waiting]):
            return
        self.found = True
        for one in waiting[:-1]:
            one.rewrite("")
        waiting[-1].rewrite(whole)

    def may_escape(self, data: bytes) -> bool:
        """Whether it stands in a call whose text may hold an escaped character."""
        return b"\\" in data and self.last is not None and self.last.kind == "call"

    # --- what leaves unread ---------------------------------------------------------------------------------------------

    def pass_unread(self, texts: bytes) -> bool:
        """Whether more of the text that came last, as JSON has it, may leave unread."""
        if self.last is None or self.busy or (b"\\" in texts and _RAW_ESCAPE.search(texts) is not None):
            return False
        whole = self._turn_to(self.last) + texts.decode("utf-8", "surrogatepass")
        if self._holds(self.last, whole):
            return False
        self.newest = whole
        return True

    # --- the time -------------------------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """When `tick` is to be told the time."""
        return min([mask.due for mask in self._masks.values()]) if self._masks else inf

    def tick(self, now: float) -> list[Chunk]:
        """What goes on because it waited too long."""
        for block, mask in self._masks.items():
            if now >= mask.due:
                self._settle(block, _text(mask.tick(now)))
        if self._waiting:
            return []
        held, self._held = self._held, []
        return held


def texts_behind(marker: bytes, data: bytes) -> bytes | None:
    """The texts that stand behind this in events of any number, each with nothing else in it; None where that is not sure."""
    parts = data.split(marker)
    if len(parts) - 1 != data.count(b"data:"):
        return None
    texts = b"\0".join([part[: part.find(_QUOTE)] for part in parts])  # what stands before the first is no text
    return None if b"\\\0" in texts or texts.endswith(b"\\") else texts.partition(b"\0")[2].replace(b"\0", b"")


def _written(chunk: Chunk) -> bytes:
    raw, data = chunk.raw, dumps(chunk.native)
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b",", b"{"):  # an item of an array
        return raw[: raw.index(b"{")] + data + raw[raw.rindex(b"}") + 1 :]
    return data if chunk.form == "document" else write_event(data, chunk.name)


def _replace(value: object, old: str, new: str) -> None:
    """In place, where it grows: what a piece carries is part of its unit's JSON."""
    inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else ()
    for key, child in inner:
        if not isinstance(child, str):
            _replace(child, old, new)
        elif child == old and key in _GROWING:
            value[key] = new  # type: ignore[index]


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
