"""A call as it came in, before anything that is remembered was asked: what it is, who sent it, and whose it may be."""

from __future__ import annotations

from msgspec import Struct

from ..clients.client import Client
from ..clients.typed import Typed
from ..sessions.store import SessionKey
from ..turn.upstream import Received
from ..values import Call, Caller


class Met(Struct, frozen=True):
    received: Received
    call: Call
    caller: Caller
    client: Client
    typed: tuple[Typed, ...]
    key: SessionKey | None
    """Whose state is in force, as far as the call alone tells; None where only what it follows can."""
    is_named: bool
    """The client says so itself: what the call follows says nothing else."""
    follows: tuple[str, ...]
    """Responses API: the answers that it goes on from."""

    @property
    def session(self) -> str | None:
        """Whose reminders it may bring."""
        return self.caller.session
