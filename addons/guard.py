"""What stays behind when the addon is unloaded while the proxy runs on.

mitmproxy loads a script anew when its file changes; until that succeeds everything would pass through untouched: tags,
credentials and all. So our hosts are refused meanwhile, and every other host is tunnelled as before.
"""

from __future__ import annotations

import intercept
from mitmproxy import ctx, http, tls

NAME = "routecodex-guard"
MESSAGE = b"RouteCodex is not loaded: its script has an error or is gone. See the proxy's log, then save the file again.\n"


class Guard:
    name = NAME

    def __init__(self, hosts: intercept.Hosts) -> None:
        self.hosts = hosts

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        if not intercept.opens(data, self.hosts):
            data.ignore_connection = True

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if intercept.is_ours(flow, self.hosts):
            message = (
                b"RouteCodex is not loaded: its script has an error or is gone. See the proxy's log, then save the file again.\n"
            )
            flow.response = http.Response.make(503, message, {"content-type": "text/plain", "x-should-retry": "false"})


def leave_behind(hosts: intercept.Hosts) -> None:
    """A second add of the same name would end mitmproxy's watcher without a word: never do that."""
    lift()
    ctx.master.addons.add(Guard(hosts))


def lift() -> None:
    standing = ctx.master.addons.get(NAME)
    if standing is not None:
        ctx.master.addons.remove(standing)
