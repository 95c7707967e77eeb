"""Takes a provider's own credential out of what it says, where it is spread over several events: a text is looked at as a whole.

1. Bytes that hold it in one piece were masked before they came here (`routing/masking.py`). Here each block's text is looked
   at, and each text that another choice, a part of a call's arguments or a field nobody knows says over several units.
2. From `SURE` matching characters on the units that say it wait, and what comes behind them, for `HOLD_S` seconds at most.
3. A unit whose text changes is rewritten where it stands, as if its provider had said so: nobody behind this knows.
4. A credential that stands in no piece as a whole goes on in the next one: nearly every piece costs one look at its first
   character. What leaves unread is looked at by what stands around its texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator
from math import inf
from typing import Any, TypeAlias

from msgspec import Struct

from ...jsonbytes import dumps
from ...masking import SURE, Mask, masked
from ...redact import SHORTEST
from ...values import JsonObject
from ..fields import THOUGHTS
from ..sse import write_event
from .events import Aside, Block, Chunk, Closed, Done, Extra, Failed, Field, Piece

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


_Place: TypeAlias = Block | tuple[Hashable, ...]
"""Where a text grows: a block; or the names on the way to it, with what they say of which one it is."""
_WHICH = ("index", "output_index", "content_index", "item_id", "id", "type", "jsonPath")


class _Spot(Struct, eq=False):
    """A text in a unit's JSON that is no piece of a block."""

    place: _Place
    text: str
    holder: dict[str, Any]
    name: str


class _Waiting:
    """What may hold a part of a credential."""

    __slots__ = ("chunk", "masked", "said")

    def __init__(self, said: Piece | _Spot, chunk: Chunk, masked: str) -> None:
        self.said, self.chunk, self.masked = said, chunk, masked

    def rewrite(self, text: str) -> None:
        said, chunk = self.said, self.chunk
        if type(said) is _Spot:
            said.holder[said.name] = text
        elif type(said) is Piece:
            others = {id(event.native) for event in chunk.events if type(event) is Aside}
            _replace(chunk.native, said.text, text, others)
            _replace(said.native, said.text, text)
        said.text = text
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
        self._tails: dict[_Place, str] = {}
        """How the texts of others end, where they may go on as a credential."""
        self._masks: dict[_Place, Mask] = {}
        """Of texts in which one has begun."""
        self.last: _Place | None = None
        """Whose text came last."""
        self.busy = False
        """Something is held, or may have to be."""
        self._waiting: dict[_Place, list[_Waiting]] = {}
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
            if type(event) is Piece:
                if event.text:
                    self._mask(event.block, event, chunk, now)
            elif type(event) is Aside or type(event) is Extra or type(event) is Field:
                for spot in _spots(event, chunk):
                    self._mask(spot.place, spot, chunk, now)
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

    def _mask(self, place: _Place, said: Piece | _Spot, chunk: Chunk, now: float) -> None:
        text = said.text
        before = self._turn_to(place)
        self.newest = before + text
        mask = self._masks.get(place)
        if mask is None:
            if not self._holds(place, self.newest):
                return
            mask = self._masks[place] = Mask(self._secrets)
            mask.feed(_raw(before), now)
        shown = _text(mask.feed(_raw(text), now))
        self._waiting.setdefault(place, []).append(_Waiting(said, chunk, shown))
        if mask.due == inf:
            self._settle(place, "")
        if mask.is_clean:
            del self._masks[place]

    def _turn_to(self, place: _Place) -> str:
        """How its text ends, as far as a credential may have begun there."""
        tail = next((one for one in self._beginnings if self.newest.endswith(one)), "")
        if place == self.last:
            return tail
        if self.last is not None and tail:
            self._tails[self.last] = tail
        self.last = place
        return self._tails.pop(place, "")

    def _holds(self, place: _Place, text: str) -> bool:
        """Whether a credential begins in it for sure, or may behind an escape."""
        if len(text) >= self.sure:
            for head in self._heads:
                if head in text:
                    return True
        return _may_be_json(place) and "\\" in text and _ESCAPE.search(text) is not None

    def _settle(self, place: _Place, rest: str) -> None:
        """It is known what may be shown: where that is another text, it stands in the last of the units."""
        waiting = self._waiting.pop(place, [])
        whole = "".join([one.masked for one in waiting]) + rest
        if not waiting or whole == "".join([one.said.text for one in waiting]):
            return
        self.found = True
        for one in waiting[:-1]:
            one.rewrite("")
        waiting[-1].rewrite(whole)
        if type(place) is Block:
            for spot in _strings(place.native, ()):  # a history is made of it
                spot.holder[spot.name] = masked(spot.text, self._secrets)

    def may_escape(self, data: bytes) -> bool:
        """Whether it stands in a call whose text may hold an escaped character."""
        return b"\\" in data and self.last is not None and _may_be_json(self.last)

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


def _may_be_json(place: _Place) -> bool:
    return type(place) is not Block or place.kind == "call"


def _spots(event: Aside | Extra | Field, chunk: Chunk) -> Iterator[_Spot]:
    """The texts that it says."""
    native = event.native
    place = (event.block,) if type(event) is Extra else (event.name,) if type(event) is Field else ()
    if isinstance(native, str) and type(event) is Field:  # a field of a delta: of the only one, so it is found by its name
        yield from (spot for spot in _strings(chunk.native, ()) if spot.name == event.name and spot.text is native)
    elif native is chunk.native and isinstance(native, dict):  # a unit that nobody knows: what grows stands at its top
        yield from _strings({name: text for name, text in native.items() if isinstance(text, str)}, place, native)
    else:
        yield from _strings(native, place)


def _strings(value: object, place: tuple[Hashable, ...], holder: JsonObject | None = None) -> Iterator[_Spot]:
    """Those that are no names of anything, each with its way. `holder`: where they stand, if that is elsewhere."""
    todo = [(value, place)]
    while todo:
        value, place = todo.pop()
        if isinstance(value, dict):
            which = tuple([value[name] for name in _WHICH if isinstance(value.get(name), str | int)])
            for name, child in value.items():
                if isinstance(child, str):
                    if name not in _WHICH:
                        yield _Spot((*place, *which, name), child, value if holder is None else holder, name)
                elif isinstance(child, dict | list):
                    todo.append((child, (*place, *which, name)))
        elif isinstance(value, list):
            todo += [(child, place) for child in reversed(value) if isinstance(child, dict | list)]


def _replace(value: object, old: str, new: str, others: Collection[int] = ()) -> None:
    """In place, where it grows: what a piece carries is part of its unit's JSON. `others` are no part of what it says."""
    inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else ()
    for key, child in inner:
        if not isinstance(child, str):
            if id(child) not in others:
                _replace(child, old, new, others)
        elif child == old and key in _GROWING:
            value[key] = new  # type: ignore[index]


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
