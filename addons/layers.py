"""Looks around in mitmproxy's layers and connections, and at what they want sent; lifts limits that would be in our way."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mitmproxy import connection, ctx, http
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.layers.http import HttpLayer, RequestData, ResponseData, SendHttp
from mitmproxy.proxy.layers.http._http2 import Http2Connection

if TYPE_CHECKING:
    from .relay import TurnStream

Place = tuple[str, str, int]
"""Scheme, host and port."""

CONNECTIONS_PER_HOST = 1000
PIECE_BYTES = 64 << 10
LONG_BODY = 512 << 10
"""A body that is no longer leaves at once: passing each piece through all layers costs time."""


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


def lift_connection_limit(client: connection.Client) -> None:
    """mitmproxy lets one client connection use five connections to a host: an HTTP/2 client would wait for its own calls."""
    handler = ctx.master.addons.get("proxyserver").connections.get(client.id)
    if handler is not None:
        handler.max_conns = collections.defaultdict(lambda: asyncio.Semaphore(CONNECTIONS_PER_HOST))


def place_of(request: http.Request) -> Place:
    return request.scheme, request.host, request.port


def in_pieces(command: commands.Command, longest: int = LONG_BODY) -> Iterable[commands.Command]:
    """What is longer leaves piece by piece: a TLS connection keeps room for the longest that it was ever given."""
    event = command.event if isinstance(command, SendHttp) else None
    if not isinstance(command, SendHttp) or not isinstance(event, RequestData | ResponseData) or len(event.data) <= longest:
        return (command,)
    data, places = event.data, range(0, len(event.data), PIECE_BYTES)
    return (SendHttp(type(event)(event.stream_id, data[at : at + PIECE_BYTES]), command.connection) for at in places)


def was_reset(http_layer: HttpLayer, client: connection.Client, stream_id: int) -> bool:
    """Whether the client's stream is closed already, though its request has only just ended.

    A client of HTTP/2 may reset its stream in the same breath as it asks; a busy proxy reads both together. mitmproxy forgets a
    stream that is closed by the time it hears the end of its request, and the reset behind it with it: the call would be sent
    though nobody waits for it, and paid for.
    """
    writer = http_layer.connections.get(client)
    return isinstance(writer, Http2Connection) and writer.is_closed(stream_id)
