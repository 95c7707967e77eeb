"""Later rounds: each is a new mitmproxy flow of its own, visible in mitmweb, run through all hooks.

mitmproxy gives such flows neither a time limit nor a way to stop them; the turn that asked for a round has both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

from mitmproxy import connection, ctx, http
from mitmproxy import flow as mitmflow
from mitmproxy.addons import clientplayback
from mitmproxy.addons.clientplayback import ReplayHandler
from mitmproxy.options import Options
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode

from . import intercept
from .relay import Relay, Wire


class Listener(Protocol):
    """Who hears what becomes of a round."""

    def head(self, response: http.Response) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def broke(self, message: str) -> None: ...

    def show(self, response: http.Response) -> None:
        """What was heard, in the round's own flow: for mitmweb; nobody else reads it."""

    async def drained(self) -> None:
        """The provider is read on once this is over."""


class _Nobody:
    """Hears a round that is over."""

    def head(self, response: http.Response) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def broke(self, message: str) -> None: ...
    def show(self, response: http.Response) -> None: ...
    async def drained(self) -> None: ...


class Round(ReplayHandler):
    """One request to a provider, sent as a flow of its own."""

    def __init__(
        self,
        flow: http.HTTPFlow,
        wire: Wire,
        listener: Listener,
        relay: Relay,
    ) -> None:
        super().__init__(flow, ctx.options)
        if (behind := intercept.proxy_behind(ctx.options.mode)) is not None:
            self.layer.context.client.proxy_mode = behind  # what a tool asked for by its address goes that way, too
        if intercept.is_this_machine(flow.request.host):
            context = self.layer.context
            context.server.via = flow.server_conn.via = None
            client = self.layer.connections[context.client]
            self.layer = HttpLayer(context, HTTPMode.transparent)
            self.layer.connections[context.client] = client
        relay.adopt(self.layer)
        self.wire = wire
        self.listener = listener
        self.cancelled = False

    def let_go(self) -> None:
        """It is over. mitmproxy's handlers refer to themselves, and stay until somebody looks for garbage: not with the flow."""
        self.cancelled = True
        self.listener = _Nobody()
        mock = self.layer.connections.get(self.layer.context.client)
        for holder in (self, mock):
            vars(holder).pop("flow", None)

    def hear(self, response: http.Response) -> Callable[[bytes], list[bytes]]:
        """The head has come; the filter for what follows."""
        self.listener.head(response)

        def listen(chunk: bytes) -> list[bytes]:
            if chunk:
                self.listener.data(chunk)
            return []  # never b"": mitmproxy would write that as the last chunk

        return listen

    def end(self, response: http.Response | None) -> None:
        self.listener.end()
        if response is not None:
            self.listener.show(response)

    def broke(self, message: str) -> None:
        self.listener.broke(message)
        if self.flow.response is not None:
            self.listener.show(self.flow.response)

    def cancel(self) -> None:
        """Stop at once: nothing more is sent, nothing more is heard."""
        if self.cancelled:
            return
        self.cancelled = True
        if self.flow.response is not None:
            self.listener.show(self.flow.response)
        for transport in list(self.transports.values()):
            if transport.handler is not None:
                transport.handler.cancel("the turn is over")
        self.done.set()

    async def handle_hook(self, hook: commands.StartHook) -> None:
        await super().handle_hook(hook)
        if self.cancelled:
            (data,) = hook.args()
            forbid(data)

    async def hook_task(self, hook: commands.StartHook) -> None:
        """What came while the hook for the head took its time is heard when that is over: it must not wait for what is next."""
        await super().hook_task(hook)
        if hook.name == "responseheaders":
            await self.listener.drained()

    async def drain_writers(self) -> None:
        """The client's pace is this round's pace."""
        await super().drain_writers()
        await self.listener.drained()


class Repeated(ReplayHandler):
    """What a person repeats in mitmweb."""

    def __init__(self, relay: Relay, flow: http.HTTPFlow, options: Options) -> None:
        super().__init__(flow, options)
        relay.adopt(self.layer)


def adopt_replays(relay: Relay) -> None:
    """Credentials join on the wire there too."""
    clientplayback.ReplayHandler = functools.partial(Repeated, relay)  # type: ignore[misc,assignment,unused-ignore]


def forbid(data: Any) -> None:
    """A round cancelled while a hook ran must not go on to send."""
    if isinstance(data, mitmflow.Flow):
        if data.killable and getattr(data, "response", None) is None:  # a kill would hide why it failed
            data.kill()
    elif isinstance(getattr(data, "server", None), connection.Server):
        data.server.error = "the turn is over"


def new_flow(parent: http.HTTPFlow, request: http.Request) -> http.HTTPFlow:
    """A flow for a later round of the turn that `parent` began."""
    flow = http.HTTPFlow(parent.client_conn.copy(), connection.Server(address=(request.host, request.port)))
    flow.request = request
    flow.is_replay = "request"
    return flow
