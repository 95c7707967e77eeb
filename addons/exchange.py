"""A request that no connection brought: put into mitmproxy as a flow of its own, through all hooks, its answer heard here.

For the hooks, and for a turn that writes the answer, this is a client like any other: it has a pace, and it can leave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from mitmproxy import ctx, http
from mitmproxy import flow as mitmflow
from mitmproxy.addons.clientplayback import MockServer, ReplayHandler
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import ReceiveHttp, ResponseData, ResponseEndOfMessage, ResponseHeaders
from mitmproxy.proxy.layers.http._events import RequestProtocolError, ResponseProtocolError
from mitmproxy.proxy.server import ConnectionIO

from .codes import CANCEL
from .relay import Commands, Relay
from .rounds import forbid


class Listener(Protocol):
    """Who asked."""

    def head(self, response: http.Response) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def broke(self, message: str) -> None: ...


class Exchange(ReplayHandler):
    """One request and its answer. `leave` ends both at once."""

    def __init__(self, flow: http.HTTPFlow, relay: Relay, listener: Listener, drained: Callable[[], Awaitable[None]]) -> None:
        super().__init__(flow, ctx.options)
        relay.adopt(self.layer)
        self.layer.connections[self.client] = Asker(flow, self.layer.context.fork(), listener, self.done.set)
        pace: Any = _Pace(drained)
        self.transports[self.client] = ConnectionIO(writer=pace)
        self.left = False

    async def run(self) -> None:
        """Until the answer is complete, or nobody waits for it any more."""
        connections = ctx.master.addons.get("proxyserver").connections  # type: ignore[no-untyped-call,unused-ignore]
        connections[self.flow.client_conn.id] = self  # where streams are found that have something to write
        try:
            await self.server_event(events.Start())
            await self.done.wait()
        finally:
            connections.pop(self.flow.client_conn.id, None)
            for transport in self.transports.values():
                # A second cancel would interrupt mitmproxy's own closing: the socket would stay open.
                if transport.handler is not None and not transport.handler.cancelling():
                    transport.handler.cancel("the exchange is over")

    async def leave(self) -> None:
        """As when a client hangs up."""
        if not (self.left or self.done.is_set()):
            self.left = True
            await self.server_event(events.ConnectionClosed(self.client))
            self.done.set()

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Other than for a replay, connections stay until the answer has been written."""
        (data,) = hook.args()
        await ctx.master.addons.handle_lifecycle(hook)
        if isinstance(data, mitmflow.Flow):
            await data.wait_for_resume()  # type: ignore[no-untyped-call,unused-ignore]
        if self.left:
            forbid(data)


class Asker(MockServer):
    """The client's side."""

    def __init__(self, flow: http.HTTPFlow, context: Context, listener: Listener, over: Callable[[], None]) -> None:
        super().__init__(flow, context)
        self.listener = listener
        self.over = over

    def _handle_event(self, event: events.Event) -> Commands:
        match event:
            case ResponseHeaders():
                self.listener.head(event.response)
            case ResponseData():
                self.listener.data(event.data)
            case ResponseEndOfMessage():
                self.listener.end()
                self.over()
            case ResponseProtocolError():
                self.listener.broke(event.message)
                self.over()
            case events.ConnectionClosed():
                yield ReceiveHttp(RequestProtocolError(1, "the client left", CANCEL))
            case _:
                yield from super()._handle_event(event)


class _Pace:
    """Stands where mitmproxy waits for a client to take what it was sent."""

    def __init__(self, drained: Callable[[], Awaitable[None]]) -> None:
        self._drained = drained

    async def drain(self) -> None:
        await self._drained()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """It has no socket of its own: who leaves is told to the exchange."""
        return default
