"""The client's side of a turn, between the turn that writes it and the stream that sends it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mitmproxy import http
from mitmproxy.proxy.server import ConnectionHandler

if TYPE_CHECKING:
    from heard import FirstRound


@dataclass(eq=False, slots=True, weakref_slot=True)
class OpenAnswer:
    """The client's side of a turn: what waits to be written to it."""

    upstream: FirstRound
    """Hears what becomes of the first round, and that the client has left."""
    outbox: list[bytes] = field(default_factory=list)
    response: http.Response | None = None
    """The head that leaves with the first bytes; the first round's own where it is None."""
    head_now: bool = False
    """Send the head although there are no bytes yet."""
    abandoned: bool = False
    """Drop the first round's upstream; whatever it still says is ignored."""
    finished: bool = False
    aborted: bool = False
    """Cut the client off: the answer has begun and cannot be completed."""
    shown: bytearray = field(default_factory=bytearray)


async def drain_client(handler: ConnectionHandler) -> None:
    transport = handler.transports.get(handler.client)
    if transport is not None and transport.writer is not None:
        with contextlib.suppress(OSError):
            await transport.writer.drain()
