"""One round of a provider that speaks another dialect, as bytes of the client's."""

from __future__ import annotations

from collections.abc import Collection

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.values import Dialect, ProviderError
from tests.rig.asked import Asked


class Translation:
    """Both forms of a provider's answer are understood, whichever was asked for."""

    def __init__(self, spoken: Dialect, asked: Asked, *, compacts: bool = False, secrets: Collection[str] = ()) -> None:
        self._answer = Answer(asked)
        self._answer.begin_round(Round(spoken, asked.maker, asked.tools, compacts=compacts), secrets=secrets)

    def feed(self, chunk: bytes, now: float = 0.0) -> bytes:
        return self._answer.feed(chunk, now)

    def close(self) -> bytes:
        said = self._answer.end_round()
        return b"".join(self._answer.finish()) if said.complete or said.error else self._answer.feed(b"")

    @property
    def error(self) -> ProviderError | None:
        return self._answer.error

    @property
    def left_out(self) -> str:
        return self._answer.left_out
