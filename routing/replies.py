"""Answers of our own, in the client's dialect and form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .dialects import answers
from .errors import RouteCodexError
from .redact import Redactor
from .values import Answer, Call, Dialect, Endpoint

JSON = ("content-type", "application/json")
FINAL = ("x-should-retry", "false")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of our own."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    comment: str
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Replies:
    hide: Redactor
    wall: Callable[[], float]

    def answer(self, call: Call, answer: Answer, comment: str, *, id: str) -> Reply:
        endpoint = call.endpoint
        created = int(self.wall())
        headers = tuple(answers.headers_for(call.stream, endpoint.json_array).items())
        if not call.stream:
            body = answers.write_answer(
                endpoint.dialect, answer, id=id, model=call.model, created=created, envelope=endpoint.envelope
            )
            return Reply(200, headers, body, comment)
        pieces = answers.write_stream(
            endpoint.dialect,
            answer,
            id=id,
            model=call.model,
            created=created,
            include_usage=_wants_usage(call),
            json_array=endpoint.json_array,
            envelope=endpoint.envelope,
        )
        return Reply(200, headers, b"".join(pieces), comment)

    def error(
        self, endpoint: Endpoint, status: int, message: str, code: str, details: Mapping[str, object], comment: str
    ) -> Reply:
        told = self.hide.text(message)
        body = answers.write_error(endpoint.dialect, status, told, code, details, json_array=endpoint.json_array)
        return Reply(status, (JSON, FINAL), body, self.hide.text(comment))

    def resting(self, endpoint: Endpoint, message: str, error: RouteCodexError, *, again_in_s: int | None) -> Reply:
        """`again_in_s`: the client is asked to come again by itself then."""
        status = 400 if again_in_s is None else 429
        reply = self.error(endpoint, status, message, error.code, error.details, f"refused: {message}")
        return reply if again_in_s is None else replace(reply, headers=(JSON, ("retry-after", str(again_in_s))))

    def refuse(self, endpoint: Endpoint | None, error: RouteCodexError) -> Reply:
        """Our own no."""
        shape = endpoint or Endpoint(Dialect.CHAT)
        return self.error(shape, error.status, error.message, error.code, error.details, f"refused: {error.message}")


def _wants_usage(call: Call) -> bool:
    options = call.body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
