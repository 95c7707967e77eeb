"""A client of HTTP/2 may reset its stream in the same breath as it asks; a busy proxy reads both together.

mitmproxy forgets a stream that is closed by the time it hears the end of its request, and the reset behind it with it: the call
would be sent, and paid for, though nobody waits for it.
"""

from __future__ import annotations

from mitmproxy import connection
from mitmproxy.proxy.layers.http import HttpLayer
from mitmproxy.proxy.layers.http._http2 import Http2Connection


def was_reset(http_layer: HttpLayer, client: connection.Client, stream_id: int) -> bool:
    """Whether the client's stream is closed already, though its request has only just ended."""
    writer = http_layer.connections.get(client)
    return isinstance(writer, Http2Connection) and writer.is_closed(stream_id)
