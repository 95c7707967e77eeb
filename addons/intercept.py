"""Which connections are ours: whose TLS is opened, who may use the proxy, what is answered before any reading.

Every host that is not on the list is tunnelled unopened.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from fnmatch import fnmatchcase

from mitmproxy import connection, http, tls
from mitmproxy.proxy.mode_specs import ReverseMode

from .control import hello


class Hosts:
    """The hosts of the configuration; `*.example.com` means every host below it."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.exact = frozenset(pattern.lower() for pattern in patterns if "*" not in pattern)
        self.wild = tuple(pattern.lower() for pattern in patterns if "*" in pattern)

    def __contains__(self, host: object) -> bool:
        if not isinstance(host, str):
            return False
        name = host.lower().rstrip(".")
        return name in self.exact or any(fnmatchcase(name, pattern) for pattern in self.wild)


def is_reverse(client: connection.Client) -> bool:
    """In reverse mode whoever started the proxy has named the host: it is ours whatever the list says."""
    return isinstance(client.proxy_mode, ReverseMode)


def opens(hello: tls.ClientHelloData, hosts: Hosts) -> bool:
    """Whether the TLS of this connection is opened: its name, or the address it was made to, is ours."""
    if is_reverse(hello.context.client):
        return True
    address = hello.context.server.address
    return hello.client_hello.sni in hosts or (address is not None and address[0] in hosts)


def is_ours(flow: http.HTTPFlow, hosts: Hosts) -> bool:
    return flow.request.method != "CONNECT" and (
        flow.request.host in hosts or flow.request.pretty_host in hosts or is_reverse(flow.client_conn)
    )


def asks_who(request: http.Request) -> bool:
    """Whether a program of ours wants to know who listens here."""
    return request.host == hello.HOST and request.scheme == "http" and request.path == hello.PATH


def is_websocket(request: http.Request) -> bool:
    return request.method == "GET" and request.headers.get("upgrade", "").lower() == "websocket"


def refuses_websocket(request: http.Request) -> bool:
    """Codex tries a WebSocket first; 426 sends it to HTTP at once (anything else costs it retries or the run)."""
    return is_websocket(request) and request.path.split("?", 1)[0].endswith("/responses")


def is_loopback(client: connection.Client) -> bool:
    return bool(client.peername) and _is_loopback(str(client.peername[0]))


def is_this_machine(host: str) -> bool:
    """A provider here is never asked through the proxy behind this one, which would look for it on its own machine."""
    return host.lower().rstrip(".") == "localhost" or _is_loopback(host.strip("[]"))


def _is_loopback(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name.split("%", 1)[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
