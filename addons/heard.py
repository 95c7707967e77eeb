"""Whom a turn hears: the client's own flow, or a later round's. Only the current one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mitmproxy import http

if TYPE_CHECKING:
    from .rounds import Round
    from .turns import CarriedTurn


class Heard:
    """A round, and the turn that hears it."""

    def __init__(self, carried: CarriedTurn) -> None:
        self.carried: CarriedTurn | None = carried
        """None when the turn is over: nobody hears any more, and nothing keeps the turn in memory."""

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

    def gone(self) -> None:
        if self.carried is not None:
            self.carried.gone()


class LaterRound(Heard):
    """A round of its own flow."""

    round: Round | None = None

    async def drained(self) -> None:
        if self.carried is not None:
            await self.carried.drained()
