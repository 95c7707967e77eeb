"""What the running server remembers of its calls; bounded, and gone with the process, unless others share it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct, field

from ..sessions.newest import Seen
from ..sessions.state import Sticky
from ..sessions.store import SessionKey
from ..tags.notice import Cause
from ..tags.told import Went
from ..turn.plan import Memory
from ..values import JsonObject, Target

_REMEMBERED = 10_000

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remembers the newest entries."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()
        self.changed: Callable[[K, V | None], None] | None = None
        """Hears what is new, where somebody else is to know it; None: it was dropped."""

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def newest(self) -> Iterator[K]:
        """The newest first."""
        return reversed(self._entries)

    def drop(self, key: K) -> None:
        if self._entries.pop(key, None) is not None and self.changed is not None:
            self.changed(key, None)

    def forget(self, key: K) -> None:
        """As somebody else did."""
        self._entries.pop(key, None)

    def put(self, key: K, value: V) -> None:
        if self.changed is not None and (key not in self._entries or self._entries[key] != value):
            self.changed(key, value)
        self.learn(key, value)

    def learn(self, key: K, value: V) -> None:
        """From somebody else."""
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)


class Said(Struct):
    """What a call brought that follows an answer, and what was answered: where both are known here alone."""

    follows: str | None = None
    brought: Sequence[JsonObject] = ()
    items: list[str] = field(default_factory=list)
    """The answer's, by name."""


class Held(Generic[V]):
    """The newest of what nobody else keeps, as far as there is room for it; by person and name."""

    def __init__(self, most_bytes: int = 16 << 20) -> None:
        self._room = most_bytes
        self._entries: OrderedDict[tuple[str, str], tuple[V, int]] = OrderedDict()

    def get(self, user: str, id: str) -> V | None:
        entry = self._entries.get((user, id))
        return None if entry is None else entry[0]

    def put(self, user: str, id: str, value: V, size: int) -> None:
        _, freed = self._entries.pop((user, id), (None, 0))
        self._entries[user, id] = value, size
        self._room += freed - size
        while self._room < 0:
            self._room += self._entries.popitem(last=False)[1][1]


class Learned(Memory):
    """Beside what the server learned of its keys."""

    pins: Recent[tuple[SessionKey, str], Target] = field(default_factory=Recent)
    """Where the hops of one user message go: the prompt cache lives at that key."""
    seen: Recent[SessionKey, Seen] = field(default_factory=Recent)
    """What each session's newest typed message was."""
    lapsed: Recent[SessionKey, Sticky | None] = field(default_factory=Recent)
    """Sticky targets that were cleared because they were used up: for `status`, until new tags are obeyed."""
    ended: Recent[tuple[SessionKey, str], bool] = field(default_factory=Recent)
    """The places of tagged messages whose turns were answered to the end: known here before it is on disk."""
    went: Recent[SessionKey, Went] = field(default_factory=Recent)
    """What became of each session's last call."""
    failures: Recent[SessionKey, Went] = field(default_factory=Recent)
    """Each session's last call that got no answer."""
    ignored: Recent[SessionKey, tuple[str, ...]] = field(default_factory=Recent)
    """Tags that were nothing of ours, until `status` has named them."""
    losses: Recent[SessionKey, str] = field(default_factory=Recent)
    """Why each conversation's cache was lost last."""
    answered: Recent[SessionKey, Target] = field(default_factory=Recent)
    """Where each conversation's last call went: for people who want to see it."""
    chains: Recent[str, tuple[SessionKey, Target | None]] = field(default_factory=Recent)
    """Responses API: whose answer an id is, and where it lives (None: it was ours, no provider knows it)."""
    items: Held[JsonObject] = field(default_factory=Held)
    """Responses API: what those whom the client calls itself did not say, by name; empty where a name stands for several."""
    said: Held[Said] = field(default_factory=Held)
    """Responses API: conversations that no provider keeps, by the names of their answers."""
    begun: Recent[str, str] = field(default_factory=Recent)
    """Responses API: what the provider calls an answer that began under an id of ours."""
    noticed: Recent[SessionKey, frozenset[str]] = field(default_factory=Recent)
    """What each session was told without having asked."""
    untold: Recent[SessionKey, tuple[Cause, ...]] = field(default_factory=Recent)
    """What still is to be."""

    @property
    def is_shared(self) -> bool:
        """Others serve the same people, and are told of it."""
        return self.pins.changed is not None
