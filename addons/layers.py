"""Looks around in mitmproxy's layers and flows, and at what they want sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mitmproxy import http
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.layers.http import RequestData, ResponseData, SendHttp

if TYPE_CHECKING:
    from relay import TurnStream


def layers_below(found: layer.Layer | None) -> Iterator[layer.Layer]:
    while found is not None:
        yield found
        found = found.__dict__.get("child_layer")


def waits_for_connection(stream: TurnStream) -> bool:
    parent = stream.relay_layer
    return any(
        parent.command_sources.get(command) is stream
        for waiting in parent.waiting_for_establishment.values()
        for command in waiting
    )


def place_of(flow: http.HTTPFlow) -> tuple[str, str, int]:
    return flow.request.scheme, flow.request.host, flow.request.port


def in_pieces(command: commands.Command, size: int) -> Iterator[commands.Command]:
    """A long body piece by piece: a TLS connection keeps room for the longest that it was ever given."""
    if not isinstance(command, SendHttp) or not isinstance(command.event, RequestData | ResponseData):
        yield command
        return
    event = command.event
    for at in range(0, max(len(event.data), 1), size):
        yield SendHttp(type(event)(event.stream_id, event.data[at : at + size]), command.connection)
