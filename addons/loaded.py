"""Flows that come from a file: mitmproxy runs all hooks for them too, and they may have the ids of flows that run."""

from __future__ import annotations

from mitmproxy import http

from .relay import Relay
from .rounds import Round


def is_loaded(relay: Relay, flow: http.HTTPFlow) -> bool:
    """Whether no connection brought it; one that somebody has just killed is not live either."""
    stream = relay.streams.get(flow.id)
    return not flow.live and (stream is None or stream.flow is not flow)


def later_round(relay: Relay, flow: http.HTTPFlow) -> Round | None:
    """The later round that this flow is."""
    later = relay.rounds.get(flow.id)
    return later if later is not None and later.flow is flow else None
