"""Whom a turn hears: the client's own flow, or a later round's. Only the current one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mitmproxy import http

from ..routing.dialects.answer.echoes import Echoes
from ..routing.dialects.answer.kept import without_echoes
from ..routing.turn.actions import Head, Refusal
from ..routing.turn.plan import Plan
from ..routing.values import Headers
from . import flows
from .kept import Kept
from .sealing import mask_echoes
from .window import legs

if TYPE_CHECKING:
    from .rounds import Round
    from .turns import CarriedTurn


class Body:
    """What a round's provider says, unpacked, for whoever looks at it later: no credential that it was sent stands in it."""

    def __init__(self, plan: Plan) -> None:
        self.kept = Kept()
        self.echoes: Echoes | None = None
        self.secrets = plan.secrets
        self._spoken, self._hide = plan.spoken, plan.hide.known

    def take(self) -> bytes:
        whole, said = self.kept.is_whole, self.kept.take()
        if self.echoes is not None and self.echoes.found:
            # where a part of it is missing, another may hold the half of a credential
            said = without_echoes(said, self._spoken, self.secrets) if whole else b""
        return self._hide(said)


class CarriedRound:
    """A round, and the turn that hears it."""

    def __init__(self, carried: CarriedTurn) -> None:
        self.carried: CarriedTurn | None = carried
        """None when the turn is over: nobody hears any more, and nothing keeps the turn in memory."""
        self.body: Body | None = None
        """None where nobody can look at them."""

    def head(self, response: http.Response) -> None:
        if self.carried is not None:
            self.carried.hear_head(self, response)

    def headed(self, plan: Plan, status: int, headers: Headers) -> None:
        """Its provider answers with this head."""

    def take_body(self, plan: Plan) -> http.Response | None:
        """What its provider said, once, where its flow shows something else."""
        return None

    def keep(self, said: bytes) -> None:
        if self.body is not None:
            self.body.kept.add(said)

    def watch(self, echoes: Echoes | None) -> None:
        """Who looks whether a credential is repeated over several events."""
        if self.body is not None:
            self.body.echoes = echoes

    def data(self, chunk: bytes) -> None:
        if self.carried is not None:
            self.carried.hear_data(self, chunk)

    def end(self) -> None:
        if self.carried is not None:
            self.carried.hear_end(self)

    def broke(self, message: str) -> None:
        if self.carried is not None:
            self.carried.hear_broke(self, message)


class FirstRound(CarriedRound):
    """The client's own flow, heard by the turn until it is abandoned."""

    is_first: ClassVar[bool] = True
    began: tuple[int, Headers] = (0, {})
    """Its provider's own head, where what follows it is kept."""

    def headed(self, plan: Plan, status: int, headers: Headers) -> None:
        if legs.are_seen():
            self.body, self.began = Body(plan), (status, headers)

    def take_body(self, plan: Plan) -> http.Response | None:
        body, self.body = self.body, None
        if body is None:
            return None
        status, back = self.began
        kind = [("content-type", back["content-type"])] if "content-type" in back else []
        pairs = (*(pair for pair in plan.head(status, back).headers if pair[0].lower() != "content-type"), *kind)
        return flows.whole_response(Refusal(Head(status, pairs), body.take()))

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
    def response(self) -> http.Response | None:
        """The response that mitmproxy has for the client's flow already."""
        return self.carried.flow.response if self.carried is not None else None


class LaterRound(CarriedRound):
    """A round of its own flow."""

    is_first: ClassVar[bool] = False
    round: Round | None = None
    """What carries it; None when that is over."""
    response: http.Response | None = None

    def __init__(self, carried: CarriedTurn, flow: http.HTTPFlow) -> None:
        super().__init__(carried)
        self.flow = flow
        self.body = Body(carried.plan)

    def over(self) -> None:
        if self.round is not None:
            self.round.let_go()
        self.round = None

    def show(self, response: http.Response) -> None:
        body, self.body = self.body, None
        if body is not None:
            response.data.content = body.take()
            mask_echoes(response, body.secrets)

    def abandon(self) -> None:
        if self.round is not None:
            self.round.cancel()

    def followed(self) -> None:
        self.carried = None

    async def drained(self) -> None:
        if self.carried is not None:
            await self.carried.drained()
