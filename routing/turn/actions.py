"""What a turn says is to be done, and whom it asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from ..dialects.answer.machine import Round
from ..dialects.said import Said
from ..dialects.translation.neutral import Tokens
from ..jsonbytes import as_utf8
from ..values import Headers, JsonObject, ProviderError
from .opening import Opening


class Head(Struct, frozen=True):
    status: int
    headers: tuple[tuple[str, str], ...]


class Refusal(Struct, frozen=True):
    """A whole error answer for the client."""

    head: Head
    body: bytes


class OpenHead(Struct, frozen=True):
    """Send this head now."""

    head: Head


class Forward(Struct, frozen=True):
    data: bytes


class Began(Struct, frozen=True):
    """The first content of a round's answer has just been sent."""


class Abandon(Struct, frozen=True):
    """Drop the round that is running."""


class Again(Struct, frozen=True):
    """Send another round, after a while."""

    after_s: float = 0.0


class Decide(Struct, frozen=True):
    """A round is complete: find out whether another follows, then call `proceed` or `conclude`."""

    said: Said


class GaveUp(Struct, frozen=True):
    """A later round failed for good before it showed anything: the answer ends as it stood; call `conclude`."""

    error: ProviderError


class Refuse(Struct, frozen=True):
    refusal: Refusal


class Finish(Struct, frozen=True):
    """The answer is complete once these have left as well."""

    end: Iterable[bytes] = ()


class Abort(Struct, frozen=True):
    """The answer has begun and cannot be completed: cut the connection."""


Action = OpenHead | Forward | Began | Abandon | Again | Decide | GaveUp | Refuse | Finish | Abort


class Failed(Struct, frozen=True):
    """What came back from a round that did not answer."""

    error: ProviderError
    head: Head | None = None
    body: bytes = b""
    translated: bool = False
    """It spoke another dialect than the client: its words are not for the client as they are."""

    @property
    def readable(self) -> bytes:
        """The body for who reads JSON; a page may be written in whatever its head says."""
        return as_utf8(self.body) if self.body.lstrip()[:1] in (b"{", b"[") else self.body


class Planner(Protocol):
    """Who knows about targets, keys and health."""

    @property
    def round(self) -> Round | None:
        """Who speaks in the running round, and how; None: as the client does."""

    @property
    def exact(self) -> bool:
        """The running round's reason is not ours to correct."""

    @property
    def notice(self) -> str:
        """What the person is told before the answer's first text; empty where there is nothing to tell."""

    def noticed(self) -> None:
        """It stands there now."""

    @property
    def secrets(self) -> Collection[str]:
        """What the running round's provider was sent, and nobody may be told."""

    @property
    def hides_count(self) -> bool:
        """It counts because we asked for that: its client is not told."""

    def opening(self) -> Opening:
        """The answer begins now; its id is the client's for it, whatever the provider's will be."""

    def head(self, status: int, headers: Headers) -> Head:
        """The client's head for a good answer."""

    def failure(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        """What a bad head and its body say."""

    def failed(self, failed: Failed, now: float) -> float | None:
        """Another round after so many seconds, or None: give up."""

    def refusal(self) -> Refusal:
        """What the client is told when everything failed."""

    def answered(self, id: str, now: float) -> None:
        """The round's content has begun; `id` is the answer's, where it tells one."""

    def cost(self, tokens: Tokens | None, *, answered: bool = True) -> None:
        """A round is over; None where its provider told no tokens. Not answered: it failed, and had begun to count."""

    def note_seals_of(self, items: Sequence[JsonObject]) -> None:
        """A whole answer, as a history holds it."""

    def unsay(self, left_out: str) -> None:
        """What of the answer the client's dialect cannot say."""


class Limits(Struct, frozen=True):
    first_byte_s: float = 120.0
    idle_s: float = 300.0
    early_head_s: float | None = 30.0
    """When a waiting client is sent a head and a keep-alive; None: never."""
    keep_alive_s: float = 15.0
    content_s: float = 600.0
    """How long a provider may send signs of life instead of an answer."""
