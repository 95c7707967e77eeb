"""What an answer says, the same in every dialect; and the bytes that say it.

1. A `Chunk` is one unit of the wire: an event of a stream, an item of an array, a whole document. It is the unit that holds
   bytes, since one unit often says several things.
2. Whoever changes what a chunk says makes a new one (`changed`): that one has no bytes, but its JSON stays as the frame, so
   that fields nobody here knows (log probabilities, a vendor's own) are kept.
3. All events of one text, thought, call or picture share its `Block`. So pieces may come interleaved, and names, ids and
   seals late.
4. Events carry the piece of native JSON that said them where a writer of the same dialect would lose something without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from ...jsonbytes import Joined, joined
from ...values import Dialect, JsonObject, ProviderError
from ..translation.neutral import Feature, Media, Seal, Tokens
from .beside import Citation, Trace

if TYPE_CHECKING:
    from .said import GrowingText

Kind: TypeAlias = Literal["text", "thought", "call", "media", "trace"]
"""`trace`: how the answer came about (tools that the provider ran, their results), and what nobody knows."""
BROKEN = ProviderError(502, "The provider's stream ended with an error", "UPSTREAM_ERROR")
UNREADABLE = ProviderError(502, "The provider's answer cannot be read.", "BAD_ANSWER", network=True)
Form: TypeAlias = Literal["event", "ragged", "behind", "document"]
"""`ragged`: the last event of a stream, without the blank line that ends it; `behind`: a bare word behind the end."""


class Rank(IntEnum):
    """What an event means for what may leave: the join decides by nothing else."""

    PASSES = 0
    OPENS = 1
    """Waits for the first content."""
    SAYS = 2
    """Content: leaves at once, and whatever waits leaves before it."""
    RESTS = 3
    """Waits for what comes next: an end of a text, in which a later text may go on."""
    ENDS = 4
    """Waits until it is known whether another round follows."""


class Block:
    """One text, thought, call, picture or trace of one round."""

    __slots__ = (
        "as_custom",
        "closed",
        "custom",
        "ends_itself",
        "field",
        "foreign",
        "glue",
        "half",
        "hidden",
        "hides",
        "id",
        "into",
        "kind",
        "media",
        "name",
        "named",
        "native",
        "onward",
        "place",
        "refusal",
        "seal",
        "text",
        "theirs",
        "trace",
    )

    def __init__(
        self,
        kind: Kind,
        native: JsonObject | None = None,
        *,
        id: str = "",
        name: str = "",
        field: str = "",
        ends_itself: bool = False,
    ) -> None:
        # the reader's
        self.kind = kind
        self.native = native
        """As its dialect began it; of what grows only the beginning. None where it has no frame of its own."""
        self.id, self.name = id, name
        """Of a call; the client's, once `named`."""
        self.field = field
        """Where it stands, in a dialect that has several places for the same."""
        self.custom = False
        """A call whose pieces are free text."""
        self.refusal = False
        """A text that refuses."""
        self.seal: Seal | None = None
        self.media: Media | None = None
        self.trace: Trace | None = None
        """What a tool of the provider's did, for clients of other dialects."""
        self.ends_itself = ends_itself
        """Its dialect says when it is over; if not, it is over where another begins, or with the answer."""
        self.theirs = False
        """A call of a tool that is none of ours, whatever its name: it stands in a namespace, or is the dialect's own."""
        self.hides = kind == "thought"
        """Cannot stand inside a text that goes on: of a later round it is kept for the history alone."""
        # the content's
        self.text: GrowingText | None = None
        """What it has said so far. None: nobody keeps it."""
        # the join's
        self.hidden = False
        """The client does not see it."""
        self.into: Block | None = None
        """The earlier text in which the client sees it go on."""
        self.onward: list[Block] = []
        """Later texts that the client sees go on in this one."""
        self.glue = ""
        """What of ours stands before its text."""
        self.closed = False
        """The writer was told that it is over."""
        self.half = False
        """A call that the answer was cut off in: it is over, and nobody may run it."""
        # the writer's
        self.place = -1
        """Its index in the client's answer."""
        self.named = False
        """Its id and name are the client's."""
        self.as_custom = False
        """A call of a tool that the client knows as one of free text."""
        self.foreign = False
        """Its native form is another dialect's than the client's."""

    def text_between(self, start: int, length: int) -> str | Joined:
        """So much of what the client sees of its text, those that go on in it among it."""
        parts: list[str] = []
        for one in (self, *self.onward):
            for text in (one.glue, str(one.text) if one.text is not None else ""):
                if part := text[max(start, 0) : max(start + length, 0)]:
                    parts.append(part)
                start -= len(text)
        return joined(parts)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name or self.id or self.field}>".replace(" >", ">")


class Event:
    __slots__ = ()
    rank: ClassVar[Rank] = Rank.PASSES


class Began(Event):
    """The answer says who it is."""

    __slots__ = ("id", "model", "tokens")
    rank = Rank.OPENS

    def __init__(self, id: str, model: str, tokens: Tokens | None = None) -> None:
        self.id, self.model, self.tokens = id, model, tokens


class Opened(Event):
    __slots__ = ("block",)
    rank = Rank.SAYS

    def __init__(self, block: Block) -> None:
        self.block = block


class Piece(Event):
    """More of a block's text, thought or arguments."""

    __slots__ = ("block", "native", "text")
    rank = Rank.SAYS

    def __init__(self, block: Block, text: str, native: object = None) -> None:
        self.block, self.text, self.native = block, text, native


class Extra(Event):
    """What is said of a block and has no neutral name: a citation, a signature, details of a thought."""

    __slots__ = ("block", "native")
    rank = Rank.SAYS

    def __init__(self, block: Block, native: JsonObject) -> None:
        self.block, self.native = block, native


class Cited(Event):
    """A source of a block's text, for clients of other dialects. `before`: how much text of the answer stands before the
    block's, once the join has said so."""

    __slots__ = ("before", "block", "citation")
    rank = Rank.SAYS

    def __init__(self, block: Block, citation: Citation, before: int = 0) -> None:
        self.block, self.citation, self.before = block, citation, before


class Lost(Event):
    """Only its own dialect can say this: for clients of others it is named."""

    __slots__ = ("feature", "what")

    def __init__(self, feature: Feature, what: str = "") -> None:
        self.feature, self.what = feature, what


class Closed(Event):
    __slots__ = ("block",)
    rank = Rank.RESTS

    def __init__(self, block: Block) -> None:
        self.block = block


class Closing(Event):
    """The wire tells once more what was said, because it is about to close. Whoever writes `Closed` makes it anew."""

    __slots__ = ("block", "native")
    rank = Rank.RESTS

    def __init__(self, block: Block, native: JsonObject) -> None:
        self.block, self.native = block, native


class Field(Event):
    """A field of the answer outside its blocks. `says`: it is content; `thought`: of the kind that later rounds do not show.

    Without `native` it is what the reader noted: `refused` (a part of a text is a refusal), `not stored`."""

    __slots__ = ("name", "native", "says", "thought")

    def __init__(self, name: str, native: object, *, says: bool = False, thought: bool = False) -> None:
        self.name, self.native, self.says, self.thought = name, native, says, thought


class Aside(Event):
    """Another choice or candidate than the first: passes in the first round, and is never gone on with."""

    __slots__ = ("native",)

    def __init__(self, native: JsonObject) -> None:
        self.native = native


class Counted(Event):
    """What it has cost so far. `rounds`: each one's own counts, where they are those of several.

    Where every unit counts, the reader tells it once and keeps `native` as it grows: `read` makes tokens of it when asked.
    """

    __slots__ = ("_read", "_tokens", "native", "rounds")

    def __init__(
        self,
        tokens: Tokens,
        native: JsonObject | None = None,
        rounds: tuple[JsonObject, ...] = (),
        *,
        read: Callable[[JsonObject], Tokens] | None = None,
    ) -> None:
        self._tokens, self._read, self.native, self.rounds = tokens, read, native, rounds

    @property
    def tokens(self) -> Tokens:
        return self._tokens if self._read is None or self.native is None else self._read(self.native)


class Ended(Event):
    """The reason has come, as its own dialect calls it, and the stop sequence that was met.

    Not `final`: some hosts give one with every unit, so that it was none where content follows.
    """

    __slots__ = ("final", "finish_reason", "stop")
    rank = Rank.ENDS

    def __init__(self, finish_reason: str, stop: str = "", *, final: bool = True) -> None:
        self.finish_reason, self.stop, self.final = finish_reason, stop, final


class Done(Event):
    """The stream's own last unit. Nothing is read behind it."""

    __slots__ = ()
    rank = Rank.ENDS


class Failed(Event):
    """The provider said that it failed. Nothing is read behind it."""

    __slots__ = ("error",)
    rank = Rank.ENDS

    def __init__(self, error: ProviderError) -> None:
        self.error = error


def is_content(event: Event) -> bool:
    """From here on nothing can be taken back: the answer has begun, or it ends."""
    return event.rank is Rank.SAYS or type(event) is Ended or (type(event) is Field and event.says)


class Chunk:
    """One unit of the wire. Made by a `Source`, or (without `raw` and `native`) by the join."""

    __slots__ = ("dialect", "events", "form", "name", "native", "raw", "rest", "shown")

    def __init__(
        self,
        raw: bytes,
        native: JsonObject | None,
        events: Sequence[Event],
        dialect: Dialect,
        name: str = "",
        form: Form = "event",
    ) -> None:
        self.raw = raw
        """As it came; empty where it no longer says what the events say, or never did."""
        self.rest: tuple[bytes, ...] = ()
        """What of it stands behind `raw`: what tells a long text again is cut, so that the text's bytes are kept once."""
        self.native = native
        """Its JSON; None where it is none (a comment, a bare word, something of ours)."""
        self.events = events
        self.dialect = dialect
        self.name = name
        """Of the event in the stream, where it has one."""
        self.form = form
        self.shown = False
        """The join has taken out of it what the client does not see."""

    @property
    def rests(self) -> bool:
        """It ends something."""
        return bool(self.events) and self.events[-1].rank >= Rank.RESTS

    def changed(self, events: Sequence[Event]) -> Chunk:
        """The same unit, saying something else."""
        return Chunk(b"", self.native, events, self.dialect, self.name, self.form)
