"""A call that a person sends once more, to a target of theirs: what a flow shows becomes a flow of its own, with nobody who waits
for its answer but who looks at it.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from mitmproxy import http

from ..routing.dialects.endpoints import endpoint_of
from ..routing.errors import BadCall
from . import flows
from .exchange import Exchange
from .fail_closed import report
from .relay import Relay
from .rounds import new_flow


class ByHand:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._targets: WeakKeyDictionary[http.HTTPFlow, str] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, shown: http.HTTPFlow, target: str) -> http.HTTPFlow:
        """The new flow; BadCall where this one holds no whole call."""
        request = shown.request
        endpoint = endpoint_of(request.method, request.path)
        body = request.raw_content
        if endpoint is None or endpoint.action != "generate":
            raise BadCall("it is no call to a model")
        if not body or request.headers.get("content-length", str(len(body))) != str(len(body)):
            raise BadCall("its body was not kept whole")
        flow = new_flow(shown, flows.asked_again(request))
        flow.is_replay = None
        self._targets[flow] = target
        task = asyncio.get_running_loop().create_task(self._run(flow))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return flow

    def target(self, flow: http.HTTPFlow) -> str | None:
        """Where it is to go; None: no hand sent it."""
        return self._targets.get(flow)

    async def _run(self, flow: http.HTTPFlow) -> None:
        try:
            await Exchange(flow, self._relay, _Nobody(), _at_once).run()
        except Exception as error:
            report("a call by hand", error, "It was given up.")


class _Nobody:
    """The answer stays in the flow."""

    def head(self, response: http.Response) -> None: ...
    def data(self, chunk: bytes) -> None: ...
    def end(self) -> None: ...
    def broke(self, message: str) -> None: ...


async def _at_once() -> None:
    pass
