"""An answer that begins while no provider has said anything: its client would not wait any longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..dialects.merging import Merger, opener_for
from ..values import Endpoint


@dataclass(frozen=True, slots=True)
class Opening:
    """Who the answer says it is."""

    id: str
    """The client's for it, whatever the provider's will be."""
    model: str
    created: int
    """The epoch in seconds."""


def begin_early(endpoint: Endpoint, merger: Merger | None, opening: Callable[[], Opening]) -> tuple[Merger | None, bytes]:
    """Who writes the answer from now on, and how it begins; nothing changes where keep-alives need no beginning."""
    opener = opener_for(endpoint.dialect, merger)
    if opener is None:
        return merger, b""
    about = opening()
    return opener, opener.open(id=about.id, model=about.model, created=about.created)
