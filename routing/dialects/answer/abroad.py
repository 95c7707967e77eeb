"""One round of a provider that speaks another dialect, as bytes of the client's, for a turn that reads them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ...values import Dialect, ProviderError
from ..translation.neutral import Asked
from .echoes import Echoes
from .machine import Answer, Round


class Translation:
    """Both forms of a provider's answer are understood, whichever was asked for."""

    def __init__(self, spoken: Dialect, asked: Asked, *, compacts: bool = False, secrets: Collection[str] = ()) -> None:
        """`compacts`: the answer is a summary, told as a compaction's one item. `secrets`: what nobody may be told."""
        self._answer = Answer(replace(asked, tools={}))
        self._answer.begin_round(Round(spoken, asked.maker, asked.tools, compacts=compacts), secrets=secrets)

    def feed(self, chunk: bytes, now: float = 0.0) -> bytes:
        return self._answer.feed(chunk, now)

    @property
    def due(self) -> float:
        """When `tick` is to be told the time."""
        return self._answer.due

    def tick(self, now: float) -> bytes:
        """What leaves because it waited too long."""
        return self._answer.tick(now)

    def close(self) -> bytes:
        """The provider has no more to say. Where that is no end, its turn says so."""
        said = self._answer.end_round()
        return b"".join(self._answer.finish()) if said.complete or said.error else self._answer.feed(b"")

    @property
    def error(self) -> ProviderError | None:
        """What the provider said instead of an answer, or of the rest of it."""
        return self._answer.error

    @property
    def echoes(self) -> Echoes | None:
        return self._answer.echoes

    @property
    def left_out(self) -> str:
        """What of it the client is not told, or in another form only."""
        return self._answer.left_out
