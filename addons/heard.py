"""Whom a turn hears: the client's own flow, or a later round's. Only the current one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mitmproxy import http

from ..routing.values import Headers
from .kept import Kept

if TYPE_CHECKING:
    from .rounds import Round
    from .turns import CarriedTurn


class Heard:
    """A round, and the turn that hears it."""

    def __init__(self, carried: CarriedTurn) -> None:
        self.carried: CarriedTurn | None = carried
        """None when the turn is over: nobody hears any more, and nothing keeps the turn in memory."""
        self.kept: Kept | None = None
        """What its provider says, for whoever looks at it later: no credential stands in it. None where nobody can."""

    def head(self, response: http.Response) -> None:
        if self.carried is not None:
            self.carried.hear_head(self, response)

    def data(self, chunk: bytes) -> None:
        if self.carried is not None:
            self.carried.hear_data(self, chunk)

    def end(self) -> None:
        if self.carried is not None:
            self.carried.hear_end(self)

    def broke(self, message: str) -> None:
        if self.carried is not None:
            self.carried.hear_broke(self, message)


class FirstRound(Heard):
    """The client's own flow, heard by the turn until it is abandoned."""

    is_first: ClassVar[bool] = True
    began: tuple[int, Headers] = (0, {})
    """Its provider's own head, where what follows it is kept."""

    def gone(self) -> None:
        if self.carried is not None:
            self.carried.gone()

    def abandon(self) -> None:
        if self.carried is not None:
            self.carried.answer.abandoned = True
            self.carried.relay.stop_waiting(self.carried.flow)

    def followed(self) -> None:
        """Another round is heard from now on; this one goes on hearing whether the client leaves."""

    @property
    def shown(self) -> http.Response | None:
        """The response that mitmproxy has for the client's flow already."""
        return self.carried.flow.response if self.carried is not None else None


class LaterRound(Heard):
    """A round of its own flow."""

    is_first: ClassVar[bool] = False
    round: Round | None = None
    shown: http.Response | None = None

    def abandon(self) -> None:
        if self.round is not None:
            self.round.cancel()

    def followed(self) -> None:
        self.carried = None

    def words(self) -> bytes | None:
        kept, self.kept = self.kept, None
        return kept.take() if kept is not None else None

    async def drained(self) -> None:
        if self.carried is not None:
            await self.carried.drained()
