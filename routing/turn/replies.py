"""Answers of our own, in the client's dialect and form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from ..clients.identify import asks_again
from ..dialects.answer.machine import write_error
from ..dialects.answer.ours import told
from ..dialects.sse import headers_for
from ..dialects.translation import going_up
from ..errors import RouteCodexError
from ..redact import Redactor
from ..storage.contract import InThread
from ..values import Answer, Call, Dialect, Endpoint, JsonObject

JSON = ("content-type", "application/json")
FINAL = ("x-should-retry", "false")


class Reply(Struct, frozen=True):
    """An answer of our own."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    comment: str
    delay_s: float = 0.0
    before: Callable[[InThread], Awaitable[object]] | None = None
    """What must be kept before it leaves."""


class Replies(Struct, frozen=True):
    hide: Redactor
    wall: Callable[[], float]

    def answer(
        self, call: Call, answer: Answer, comment: str, *, id: str, keep: Callable[[JsonObject], None] = lambda item: None
    ) -> Reply:
        headers = tuple(headers_for(call.stream, call.endpoint.json_array).items())
        return Reply(200, headers, told(going_up.asked(call, id, created=int(self.wall()), keep=keep), answer), comment)

    def error(
        self,
        endpoint: Endpoint,
        status: int,
        message: str,
        code: str,
        details: Mapping[str, object],
        comment: str,
        passes_in_s: int | None = None,
    ) -> Reply:
        words = self.hide.text(message)
        body = write_error(endpoint.dialect, status, words, code, details, json_array=endpoint.json_array)
        last = FINAL if passes_in_s is None else ("retry-after", str(passes_in_s))
        return Reply(status, (JSON, last), body, self.hide.text(comment))

    def refuse(self, endpoint: Endpoint | None, error: RouteCodexError, client: str = "") -> Reply:
        """Our own no. What passes by itself is told as a 429 to those clients that ask again when they are told to; a 503 says
        that by itself, to all."""
        shape, passes_in_s, status = endpoint or Endpoint(Dialect.CHAT), error.passes_in_s, error.status
        if passes_in_s is not None and status != 503:
            passes_in_s, status = (passes_in_s, 429) if asks_again(client) else (None, status)
        comment = f"refused: {error.message}"
        return self.error(shape, status, error.message, error.code, error.details, comment, passes_in_s)
