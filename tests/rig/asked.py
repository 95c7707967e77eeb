"""A call that is answered, and who answers it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from routecodex.routing.dialects.translation import neutral
from routecodex.routing.dialects.translation.neutral import ToolName


class Asked(neutral.Asked, frozen=True):
    """For a test that has one round: what `Round` says of it, too."""

    maker: str = ""
    """The provider's id."""
    tools: Mapping[str, ToolName] = field(default_factory=dict)
    """Tools whose name or kind was changed, by the name that was sent."""
