"""What several processes agree on, and the few things that they ask of whoever keeps it. `docs/state.md` says what lies where.

1. All of it is shelves. A shelf has a key and holds entries, each at a place of its own; the newest is last. What is changed as a
   whole (a session's state, its tasks) is the entry at the place "". What is empty is not there.
2. A process asks for what has changed since it looked last: `read` costs one round trip, and brings little.
3. An operation that failed with `Lost` may have been done all the same. What must not happen twice is not repeated after it:
   `change` and `claim` never are; a `put` says the same however often it is said.
4. Nothing here knows what an entry means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from ..errors import StoreError

T = TypeVar("T")

DAY_S = 86_400.0


class InThread(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Runs what waits for a disk."""


class Lost(StoreError):
    """The store did not answer: whether it did what it was asked is unknown."""

    status = 503
    code = "STORE_LOST"
    passes_in_s = 1


class Busy(StoreError):
    """Too many others change the same at the same time; nothing was changed."""

    status = 409
    code = "STORE_BUSY"


class Kind(StrEnum):
    """What a shelf holds. The word stands in its name wherever it is kept."""

    STATE = "state"
    """A session's state."""
    TASKS = "tasks"
    """A session's reminders."""
    HIDDEN = "hidden"
    """A session's hidden rounds; a place each."""
    MEMO = "memo"
    """What else is known of a session: what was seen, where a message's hops go, what lapsed, ended, was told."""
    SEALS = "seals"
    """Who made the signatures in a session's history."""
    ANSWER = "answer"
    """Responses API: whose answer an id is, where it lives, what its provider calls it."""
    SERVER = "server"
    """One shelf for all: how each key is doing, whose turn it is, how many calls are being repeated."""
    DAMAGED = "damaged"
    """What lay on a shelf and could not be read, before something else took its place."""


class Bounds(NamedTuple):
    ttl_s: float
    """Since it was used last; 0: as long as sessions are kept."""
    entries: int = 1
    """One: at the place "" alone."""
    bytes: int = 8 << 20


BOUNDS = {
    Kind.STATE: Bounds(0),
    Kind.TASKS: Bounds(0, bytes=64 << 20),
    Kind.HIDDEN: Bounds(0, entries=200),
    Kind.MEMO: Bounds(7 * DAY_S, entries=128),
    Kind.SEALS: Bounds(7 * DAY_S, entries=2_000),
    Kind.ANSWER: Bounds(30 * DAY_S, entries=4),
    Kind.SERVER: Bounds(DAY_S, entries=4_096),
    Kind.DAMAGED: Bounds(30 * DAY_S, bytes=64 << 20),
}


class Key(NamedTuple):
    kind: Kind
    id: str


Version: TypeAlias = tuple[str, int]
"""Which shelf of that name it is (one that was gone and came again is another), and how often it was changed."""
NEVER: Version = ("", 0)


class Found(NamedTuple):
    version: Version
    entries: tuple[tuple[str, bytes], ...]
    """Those that are newer than what was known, the newest last. Empty bytes: that place was cleared."""
    whole: bool
    """What was known before is void."""
    more: bool = False
    """There are newer ones still: to be asked for from this version on."""


Entries: TypeAlias = list[tuple[str, bytes]]


class Put(NamedTuple):
    key: Key
    place: str
    entry: bytes
    """Empty: the place is cleared."""


def aside(key: Key, raw: bytes) -> Put:
    return Put(Key(Kind.DAMAGED, f"{key.kind}:{key.id}"), "", raw)


Change: TypeAlias = Callable[[bytes], bytes]
"""From what is there (empty: nothing) to what is to be there. It may be asked again: it must change nothing but what it returns,
and what the last try said counts."""


class Store(Protocol):
    """Every operation raises `Lost` where nobody answers in time, within a quarter of a second."""

    retention_s: float
    """How long is kept what has no time of its own; 0: for ever."""

    @property
    def gone(self) -> str:
        """Why nobody is asked now, for people; empty while all is well."""

    async def read(self, wanted: Sequence[tuple[Key, Version]]) -> list[Found]:
        """What is newer than that version, of each: one round trip. Not more at once than may come in time."""

    async def change(self, key: Key, change: Change, known: tuple[Version, bytes] | None = None) -> tuple[Version, bytes]:
        """What is there now, after `change`, alone among all processes. `known`: what was read last, for a first try that reads
        nothing. Busy."""

    async def put(self, puts: Sequence[Put]) -> None:
        """All of them, in one round trip. What a shelf has no room for any more goes, the oldest first."""

    async def claim(self, names: Collection[str], owner: str, ttl_s: float) -> frozenset[str]:
        """Those that nobody else holds are the owner's from now on, for so long. Claimed again they are renewed."""

    async def release(self, names: Collection[str], owner: str) -> None: ...

    async def scan(self, kind: Kind) -> list[str]:
        """The ids of all shelves of that kind."""

    async def erase(self, keys: Collection[Key]) -> int:
        """How many were there."""

    async def expire(self) -> None:
        """Takes away what is past its time, where nobody else does."""

    async def close(self) -> None: ...


async def read_all(store: Store, keys: Sequence[Key]) -> list[Entries]:
    """All that lies on these shelves, in as many round trips as it takes."""
    found: list[Entries] = [[] for _ in keys]
    asked = [(place, NEVER) for place in range(len(keys))]
    while asked:
        answers = await store.read([(keys[place], version) for place, version in asked])
        for (place, _), one in zip(asked, answers, strict=True):
            found[place] = [*([] if one.whole else found[place]), *one.entries]
        asked = [(place, one.version) for (place, _), one in zip(asked, answers, strict=True) if one.more]
    return found
