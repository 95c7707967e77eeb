"""The new answer side in the old one's clothes, so that the same tests ask both."""

from __future__ import annotations

from dataclasses import replace

from routecodex.routing.dialects.answer.machine import SPOKEN, Answer, Round
from routecodex.routing.dialects.translation import coming_down
from routecodex.routing.dialects.translation.neutral import Asked
from routecodex.routing.values import Dialect, ProviderError


class Translation:
    """One round in another dialect than the client's."""

    def __new__(cls, spoken: Dialect, asked: Asked) -> Translation:
        known = spoken is not asked.endpoint.dialect and {spoken, asked.endpoint.dialect} <= SPOKEN
        return object.__new__(cls) if known else coming_down.Translation(spoken, asked)  # type: ignore[return-value]

    def __init__(self, spoken: Dialect, asked: Asked) -> None:
        self._answer = Answer(replace(asked, tools={}))
        self._answer.begin_round(Round(spoken, asked.maker, asked.tools))

    def feed(self, chunk: bytes) -> bytes:
        return self._answer.feed(chunk)

    def close(self) -> bytes:
        """The old one left it to others to say that an answer broke off."""
        said = self._answer.end_round()
        return b"".join(self._answer.finish()) if said.complete or said.error else self._answer.feed(b"")

    @property
    def error(self) -> ProviderError | None:
        return self._answer.error
