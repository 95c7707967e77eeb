"""What stays behind when the addon is unloaded while the proxy runs on.

mitmproxy loads a script anew when its file changes; until that succeeds everything would pass through untouched: tags,
credentials and all. So our hosts are refused meanwhile, every other host is tunnelled as before, and the calls that are
already under way come to their end.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from mitmproxy import ctx, http

from . import intercept
from .quick_hooks import Own

if TYPE_CHECKING:
    from .routecodex import RouteCodex

NAME = "routecodex-stand-in"
MESSAGE = b"RouteCodex is not loaded: its script has an error or is gone. See the proxy's log, then save the file again.\n"
_STILL_DONE = ("client_connected", "tls_clienthello", "next_layer", "server_connect", "responseheaders", "response", "error")
_POLL_S = 1.0


class StandIn(Own):
    name = NAME

    def __init__(self, left: RouteCodex, script: Path) -> None:
        self.left = left
        self.script = script
        for hook in _STILL_DONE:
            setattr(self, hook, getattr(left, hook))
        self._task = asyncio.get_running_loop().create_task(self._wait_for_script())

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Credentials come off here too: a refused flow is shown and saved like any other."""
        self.left.requestheaders(flow)
        relay = self.left.relay
        if relay.is_loaded(flow) or relay.later_round(flow) is not None:
            return
        if intercept.is_ours(flow, self.left.settings.hosts):
            flow.response = http.Response.make(503, MESSAGE, {"content-type": "text/plain", "x-should-retry": "false"})

    def done(self) -> None:
        self._task.cancel()

    async def _wait_for_script(self) -> None:
        """mitmproxy forgets a script whose file is gone, also if it comes back."""
        while True:
            await asyncio.sleep(_POLL_S)
            if self._is_forgotten() and self.script.is_file():
                ctx.options.update(scripts=[*ctx.options.scripts, str(self.script)])

    def _is_forgotten(self) -> bool:
        known = (Path(name.strip("'\" ")).expanduser() for name in ctx.options.scripts)
        return self.script.absolute() not in {path.absolute() for path in known}


def leave_behind(left: RouteCodex, script: Path) -> None:
    """A second add of the same name would end mitmproxy's watcher without a word: never do that."""
    lift()
    ctx.master.addons.add(StandIn(left, script))


def lift() -> None:
    standing = ctx.master.addons.get(NAME)
    if standing is not None:
        ctx.master.addons.remove(standing)
