"""Whom a turn hears: the client's own flow, or a later round's. Only the current one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mitmproxy import http

from ..routing.dialects.answer.echoes import Echoes
from ..routing.dialects.answer.kept import without_echoes
from .kept import Kept
from .sealing import mask_echoes

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

    def keep(self, said: bytes) -> None:
        """What was said, unpacked, without the provider's own credentials."""

    def watch(self, echoes: Echoes | None) -> None:
        """Who looks whether a credential is repeated over several events."""

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

    def __init__(self, carried: CarriedTurn) -> None:
        super().__init__(carried)
        plan = carried.plan
        self._spoken, self._secrets = plan.spoken, plan.secrets
        self._hide = plan.hide.known
        self._kept = Kept()
        self._echoes: Echoes | None = None

    def keep(self, said: bytes) -> None:
        self._kept.add(said)

    def watch(self, echoes: Echoes | None) -> None:
        self._echoes = echoes

    def show(self, response: http.Response) -> None:
        response.data.content = self._hide(self._take())
        mask_echoes(response, self._secrets)

    def _take(self) -> bytes:
        whole, said = self._kept.is_whole, self._kept.take()
        if self._echoes is not None and self._echoes.found:
            # where a part of it is missing, another may hold the half of a credential
            said = without_echoes(said, self._spoken, self._secrets) if whole else b""
        return said

    def abandon(self) -> None:
        if self.round is not None:
            self.round.cancel()

    def followed(self) -> None:
        self.carried = None

    async def drained(self) -> None:
        if self.carried is not None:
            await self.carried.drained()
