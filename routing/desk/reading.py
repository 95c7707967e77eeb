"""A call as it was read: what it is, who sent it, and which tags in it may give orders."""

from __future__ import annotations

import functools

from msgspec import Struct, field

from ..clients.client import Client
from ..clients.typed import Typed
from ..dialects.estimate import estimate_tokens
from ..sessions.store import SessionKey
from ..tags.grammar import Tag
from ..tags.once import Place, mark_of
from ..tags.scan import strip
from ..tags.unheard import Unheard
from ..turn.upstream import Received
from ..values import Call, Caller
from .learned import Said


class Reading(Struct, frozen=True, dict=True):
    """A call, and who sent it."""

    received: Received
    call: Call
    caller: Caller
    client: Client
    """What is known of the tool."""
    typed: tuple[Typed, ...]
    newest: Typed | None
    """What a person typed last, without what stood in the same message before."""
    key: SessionKey
    """Whose state is in force."""
    obeys: bool
    """Tags may give orders in this call."""
    tags: tuple[Tag, ...] = ()
    """Of the newest typed message, where they may give orders."""
    place: Place | None = None
    """Where that message stands; None where it has no tags."""
    alone: bool = False
    """It is nothing but tags, and nobody has answered it yet: we do."""
    opens: bool = False
    """A conversation begins that only its beginning tells from others: what an earlier one left does not hold for it."""
    unheard: tuple[Unheard, ...] = ()
    """Tags of the newest message that stand where they give no orders."""
    said: Said = field(default_factory=Said)

    @functools.cached_property
    def tokens(self) -> int:
        """Our own count of the call, as it stands when that is asked first."""
        return estimate_tokens(self.call)

    @property
    def tagged(self) -> bool:
        return self.place is not None

    @property
    def title(self) -> str:
        """How what was typed begins, in one line and without tags."""
        return " ".join(strip(self.words[:400]).split())[:60]

    @property
    def words(self) -> str:
        """What a person typed last, tags and all."""
        return self.newest.words if self.newest is not None and self.obeys else ""

    @functools.cached_property
    def mark(self) -> str:
        """Tells the newest typed message from all others of its session."""
        newest = self.newest
        return mark_of(newest.ordinal, newest.words, self.caller.prompt) if newest else ""
