"""One round's request while plugins may still change it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..dialects.calls import growing, read_call
from ..dialects.calls.editing import unwrapped
from ..dialects.calls.replacing import history_of
from ..errors import RouteCodexError
from ..jsonbytes import dumps, loads
from ..values import Call, Dialect, JsonObject
from .appended import Appendable, write


class Hints(Struct, frozen=True):
    """What plugins want of the routing."""

    route: str | None = None
    disable_sticky: bool = False
    session: str | None = None


class Request:
    """Edit it by whichever way is nearest: append messages, set them all, change the JSON body, or put another call in place."""

    def __init__(self, call: Call, *, id: str, round: int) -> None:
        self.id = id
        self.round = round
        """0 in the turn's first round."""
        self.hints = Hints()
        self.stays: list[str] = []
        """Texts that were put at the very end of the history in the first round (`calls.ending`), and belong there: the client's
        later calls find them again, behind the same message."""
        self._call = call
        self._body: JsonObject | None = None
        self._before = b""

    @property
    def call(self) -> Call:
        """The call as it stands. Never write to it: it is shared with the other rounds; `body` may be written to."""
        self.settle()
        return self._call

    @call.setter
    def call(self, call: Call) -> None:
        if not isinstance(call, Call):
            raise TypeError(f"{type(call).__name__} is no call")
        self.settle()
        self._call = call

    @property
    def body(self) -> JsonObject:
        """The request's JSON, yours to change in place: what it holds when the hook ends is sent."""
        if self._body is None:
            self._before = dumps(self._call.body)
            body = loads(self._before)
            assert isinstance(body, dict)
            self._body = body
        return self._body

    def append(self, *messages: Appendable) -> None:
        """Put messages behind the history of this request alone; the conversation does not keep them."""
        self.call = growing.with_messages(self.call, write(self._call.endpoint.dialect, messages))

    def set_messages(self, messages: Sequence[Appendable]) -> None:
        """Replace the history of this request; every field of the messages given is kept."""
        endpoint = self._call.endpoint
        body = self.body
        inner = unwrapped(body, envelope=endpoint.envelope) if endpoint.dialect is Dialect.GEMINI else body
        inner.update(history_of(endpoint.dialect, list(write(endpoint.dialect, messages))))
        self.settle()

    def hint(self, *, route: str | None = None, disable_sticky: bool | None = None, session: str | None = None) -> None:
        """As the headers x-routecodex-route, -disable-sticky and -session; only before the first round, the last one holds."""
        if self.round:
            raise RuntimeError("routing hints come before the first round")
        old = self.hints
        sticky = old.disable_sticky if disable_sticky is None else disable_sticky
        self.hints = Hints(route or old.route, sticky, session or old.session)

    def settle(self) -> None:
        """Read an edited body anew. ValueError where it is no call any more."""
        body, self._body = self._body, None
        if body is None:
            return
        raw = dumps(body)
        if raw == self._before:
            return
        try:
            call = read_call(raw, self._call.endpoint)
        except RouteCodexError as error:
            raise ValueError(error.message) from None
        call.changed = True
        self._call = call
