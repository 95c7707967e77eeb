"""An answer whose rounds all speak the client's own dialect."""

from __future__ import annotations

from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.finish import AS_USUAL, Endings
from routecodex.routing.dialects.translation.neutral import Asked
from routecodex.routing.values import Endpoint


def answer_for(
    endpoint: Endpoint,
    *,
    stream: bool,
    own_tools: frozenset[str] = frozenset(),
    include_usage: bool = False,
    endings: Endings = AS_USUAL,
    quiet: bool = False,
) -> Answer:
    """`include_usage`: a Chat client asked for the usage of its stream; `quiet`: nobody takes part."""
    asked = Asked(endpoint, stream, "", "", 0, "", include_usage=include_usage, passes_usage=quiet, endings=endings)
    return Answer(asked, own=own_tools, quiet=quiet)
