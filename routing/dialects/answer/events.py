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

from msgspec import Struct

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


class Block(Struct, eq=False):
    """One text, thought, call, picture or trace of one round."""

    # the reader's
    kind: Kind
    native: JsonObject | None = None
    """As its dialect began it; of what grows only the beginning. None where it has no frame of its own."""
    id: str = ""
    name: str = ""
    """Of a call; the client's, once `named`."""
    field: str = ""
    """Where it stands, in a dialect that has several places for the same."""
    custom: bool = False
    """A call whose pieces are free text."""
    refusal: bool = False
    """A text that refuses."""
    seal: Seal | None = None
    media: Media | None = None
    trace: Trace | None = None
    """What a tool of the provider's did, for clients of other dialects."""
    ends_itself: bool = False
    """Its dialect says when it is over; if not, it is over where another begins, or with the answer."""
    theirs: bool = False
    """A call of a tool that is none of ours, whatever its name: it stands in a namespace, or is the dialect's own."""
    hides: bool = False
    """Cannot stand inside a text that goes on, as no thought can: of a later round it is kept for the history alone."""
    # the content's
    text: GrowingText | None = None
    """What it has said so far. None: nobody keeps it."""
    # the join's
    hidden: bool = False
    """The client does not see it."""
    into: Block | None = None
    """The earlier text in which the client sees it go on."""
    onward: list[Block] = []
    """Later texts that the client sees go on in this one."""
    glue: str = ""
    """What of ours stands before its text."""
    closed: bool = False
    """The writer was told that it is over."""
    half: bool = False
    """A call that the answer was cut off in."""
    # the writer's
    place: int = -1
    """Its index in the client's answer."""
    named: bool = False
    """Its id and name are the client's."""
    as_custom: bool = False
    """A call of a tool that the client knows as one of free text."""
    foreign: bool = False
    """Its native form is another dialect's than the client's."""

    def __post_init__(self) -> None:
        self.hides = self.hides or self.kind == "thought"

    @property
    def is_nobodys(self) -> bool:
        """A call that nobody may run: half of one, or one that never said whose it is."""
        return self.half or (self.kind == "call" and not self.name)

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


class Event(Struct, eq=False):
    rank: ClassVar[Rank] = Rank.PASSES


class Began(Event):
    """The answer says who it is."""

    rank = Rank.OPENS
    id: str
    model: str
    tokens: Tokens | None = None


class Opened(Event):
    rank = Rank.SAYS
    block: Block


class Piece(Event):
    """More of a block's text, thought or arguments."""

    rank = Rank.SAYS
    block: Block
    text: str
    native: object = None


class Extra(Event):
    """What is said of a block and has no neutral name: a citation, a signature, details of a thought."""

    rank = Rank.SAYS
    block: Block
    native: JsonObject


class Cited(Event):
    """A source of a block's text, for clients of other dialects."""

    rank = Rank.SAYS
    block: Block
    citation: Citation
    before: int = 0
    """How much text of the answer stands before the block's, once the join has said so."""


class Lost(Event):
    """Only its own dialect can say this: for clients of others it is named."""

    feature: Feature
    what: str = ""


class Closed(Event):
    rank = Rank.RESTS
    block: Block


class Closing(Event):
    """The wire tells once more what was said, because it is about to close. Whoever writes `Closed` makes it anew."""

    rank = Rank.RESTS
    block: Block
    native: JsonObject


class Field(Event):
    """A field of the answer outside its blocks.

    Without `native` it is what the reader noted: `refused` (a part of a text is a refusal), `not stored`."""

    name: str
    native: object
    says: bool = False
    """It is content."""
    thought: bool = False
    """Of the kind that later rounds do not show."""


class Aside(Event):
    """Another choice or candidate than the first: passes in the first round, and is never gone on with."""

    native: JsonObject


class Counted(Event):
    """What it has cost so far."""

    counts: Tokens
    native: JsonObject | None = None
    rounds: tuple[JsonObject, ...] = ()
    """Each one's own counts, where they are those of several."""
    read: Callable[[JsonObject], Tokens] | None = None
    """Where every unit counts, the reader tells it once and keeps `native` as it grows: tokens are made of it when asked."""

    @property
    def tokens(self) -> Tokens:
        return self.counts if self.read is None or self.native is None else self.read(self.native)


class Ended(Event):
    """The reason has come, as its own dialect calls it, and the stop sequence that was met."""

    rank = Rank.ENDS
    finish_reason: str
    stop: str = ""
    final: bool = True
    """Some hosts give one with every unit, so that it was none where content follows."""


class Done(Event):
    """The stream's own last unit. Nothing is read behind it."""

    rank = Rank.ENDS


class Failed(Event):
    """The provider said that it failed. Nothing is read behind it."""

    rank = Rank.ENDS
    error: ProviderError


def is_content(event: Event) -> bool:
    """From here on nothing can be taken back: the answer has begun, or it ends."""
    return event.rank is Rank.SAYS or type(event) is Ended or (type(event) is Field and event.says)


class Chunk(Struct, eq=False):
    """One unit of the wire. Made by a `Source`, or (without `raw` and `native`) by the join."""

    raw: bytes
    """As it came; empty where it no longer says what the events say, or never did."""
    native: JsonObject | None
    """Its JSON; None where it is none (a comment, a bare word, something of ours)."""
    events: Sequence[Event]
    dialect: Dialect
    name: str = ""
    """Of the event in the stream, where it has one."""
    form: Form = "event"
    rest: tuple[bytes, ...] = ()
    """What of it stands behind `raw`: what tells a long text again is cut, so that the text's bytes are kept once."""
    shown: bool = False
    """The join has taken out of it what the client does not see."""

    @property
    def rests(self) -> bool:
        """It ends something."""
        return bool(self.events) and self.events[-1].rank >= Rank.RESTS

    def changed(self, events: Sequence[Event]) -> Chunk:
        """The same unit, saying something else."""
        return Chunk(b"", self.native, events, self.dialect, self.name, self.form)
