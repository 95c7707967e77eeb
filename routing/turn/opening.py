"""An answer that begins while no provider has said anything: its client would not wait any longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dialects.answer.machine import Answer, answer_for
from ..values import Endpoint


@dataclass(frozen=True, slots=True)
class Opening:
    """Who the answer says it is."""

    id: str
    """The client's for it, whatever the provider's will be."""
    model: str
    created: int
    """The epoch in seconds."""


def begin_early(endpoint: Endpoint, answer: Answer | None, opening: Callable[[], Opening]) -> tuple[Answer | None, bytes]:
    """Who writes the answer from now on, and how it begins; nothing changes where keep-alives need no beginning."""
    opener = answer or answer_for(endpoint, stream=True)
    if not opener.opens:
        return answer, b""
    about = opening()
    return opener, opener.open(id=about.id, model=about.model, created=about.created)
