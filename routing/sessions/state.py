"""What a session remembers, and its JSON form.

The names on disk are the published ones (camelCase). An empty state is no state: its file is removed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from ..values import Named


class Sticky(Named, frozen=True):
    """The session keeps to this target: without a key all of them take turns."""


class StopMessage(Struct, frozen=True):
    """`<**stopMessage:"…",N**>`: carry on N times. Times are epoch milliseconds."""

    text: str
    max_repeats: int
    used: int = 0
    updated_at_ms: int = 0
    last_used_at_ms: int | None = None


Standing: TypeAlias = Literal["open", "ended", "refused"]


class Obeyed(NamedTuple):
    """A message whose tags were looked at once."""

    place: str
    """A digest of its words and of everything typed before it."""
    text: str
    """A digest of its words alone."""
    standing: Standing
    """`ended`: its turn was answered to the end. `refused`: nothing of it was obeyed."""


class SessionState(Struct, frozen=True):
    """Sets keep the order they were given in; the pairs are (provider, key alias) and (provider, model)."""

    sticky: Sticky | None = None
    allowed: tuple[str, ...] = ()
    disabled_providers: tuple[str, ...] = ()
    disabled_keys: tuple[tuple[str, str], ...] = ()
    disabled_models: tuple[tuple[str, str], ...] = ()
    enabled: tuple[tuple[str, str, str], ...] = ()
    """What the session enabled although it is disabled for all sessions: provider, key, model (empty: every one)."""
    stop: StopMessage | None = None
    stop_cleared_at_ms: int | None = None
    """When a stopMessage was used up or cleared (kept for `status`, never arms anything)."""
    stop_last_used_at_ms: int | None = None
    obeyed: tuple[Obeyed, ...] = ()
    """The newest messages whose tags were looked at, oldest first; none where obeying it again would change nothing."""
    obeyed_before: str | None = None
    """The one that an earlier version obeyed last, by that version's fingerprint."""

    client: str = ""
    """Which tool gave the orders; only for people."""
    begins: str = ""
    """How the conversation begins; only for people."""

    def __eq__(self, other: object) -> bool:
        """Without what is for people alone."""
        return isinstance(other, SessionState) and astuple(self)[:-2] == astuple(other)[:-2]

    __hash__ = None  # type: ignore[assignment]

    @property
    def idle(self) -> bool:
        """Nothing is in force."""
        return (
            self.sticky is None
            and not self.allowed
            and not self.disabled_providers
            and not self.disabled_keys
            and not self.disabled_models
            and not self.enabled
            and self.stop is None
        )

    @property
    def empty(self) -> bool:
        """Nothing is in force and no message must be kept from acting again: the timestamps alone need no file."""
        return self.idle and not self.obeyed and self.obeyed_before is None

    def with_(self, **changes: object) -> SessionState:
        return replace(self, **changes)


EMPTY = SessionState()

__all__ = ["EMPTY", "Obeyed", "SessionState", "Standing", "Sticky", "StopMessage"]
