"""An answer that begins while no provider has said anything: its client would not wait any longer."""

from __future__ import annotations

from msgspec import Struct


class Opening(Struct, frozen=True):
    """Who the answer says it is."""

    id: str
    """The client's for it, whatever the provider's will be."""
    model: str
    created: int
    """The epoch in seconds."""
