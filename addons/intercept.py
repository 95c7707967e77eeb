"""What is ours: whose TLS is opened, who may use the proxy, what a request is before anything of its body is read.

Every host that is not on the list is tunnelled unopened.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mitmproxy import connection, http, tls
from mitmproxy.proxy.mode_specs import LocalMode, ProxyMode, ReverseMode, TransparentMode, UpstreamMode
from msgspec import Struct

from ..routing.clients.programs import base_url_line
from ..routing.dialects.endpoints import endpoint_of
from . import hello

if TYPE_CHECKING:
    from .relay import Relay
    from .rounds import Round

_LONGEST_NAME = 100


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


@functools.lru_cache(maxsize=4)
def _proxy_behind(mode: str) -> UpstreamMode | None:
    found = ProxyMode.parse(mode)
    return found if isinstance(found, UpstreamMode) else None


def proxy_behind(modes: Sequence[str]) -> UpstreamMode | None:
    """The company's, that everything goes through."""
    return next((found for mode in modes if (found := _proxy_behind(mode)) is not None), None)


def opens(hello: tls.ClientHelloData, hosts: Hosts) -> bool:
    """Whether the TLS of this connection is opened: its name, or the address it was made to, is ours; or it is made to this proxy
    itself, before anybody has said where to."""
    address = hello.context.server.address
    if is_reverse(hello.context.client) or address is None:
        return True
    return hello.client_hello.sni in hosts or address[0] in hosts


def is_ours(flow: http.HTTPFlow, hosts: Hosts) -> bool:
    return flow.request.method != "CONNECT" and (
        flow.request.host in hosts or flow.request.pretty_host in hosts or is_reverse(flow.client_conn)
    )


def name_host(request: http.Request, hosts: Hosts) -> None:
    """Where a connection was made to an address, as in `local`, `transparent` and often `socks5`, the host is who the request
    says it is for: providers serve names."""
    if request.host not in hosts and request.pretty_host in hosts:
        request.host = request.pretty_host


class Comes(Enum):
    """What a request is."""

    FROM_FILE = auto()
    """No client sent it: it is nobody's call."""
    HELLO = auto()
    """A program of ours asks who listens here."""
    AGAIN = auto()
    """A person repeats a flow of ours."""
    CALL = auto()
    """A model is asked: it is decided on."""
    PASSING = auto()
    """To one of our hosts, but no model is asked, or a web page asks: it goes where it was going, both ways as it comes."""
    FOREIGN = auto()
    """The same, to a host that is none of ours."""
    FOREIGN_AGAIN = auto()
    """A person repeats a flow that is none of ours."""


class Later(Struct, frozen=True):
    """A later round of a turn of ours."""

    round: Round


class TurnedAway(Struct, frozen=True):
    """Nobody who may not ask is answered."""

    why: str


def what_comes(flow: http.HTTPFlow, relay: Relay, hosts: Hosts) -> Comes | Later | TurnedAway:
    if relay.is_loaded(flow):
        return Comes.FROM_FILE
    if (later := relay.later_round(flow)) is not None:
        return Later(later)
    arrival = relay.arrival(flow)
    if (why := refusal(flow.request, arrival, flow.client_conn, hosts)) is not None:
        return TurnedAway(why)
    if asks_who(flow.request):
        return Comes.HELLO
    if not is_ours(flow, hosts):
        return Comes.FOREIGN_AGAIN if flow.is_replay else Comes.FOREIGN
    if flow.is_replay:
        return Comes.AGAIN
    return Comes.CALL if is_read(flow.request, arrival) else Comes.PASSING


def asks_who(request: http.Request) -> bool:
    """Whether a program of ours wants to know who listens here."""
    return request.host == hello.HOST and request.scheme == "http" and request.path == hello.PATH


def is_websocket(request: http.Request) -> bool:
    return request.method == "GET" and request.headers.get("upgrade", "").lower() == "websocket"


def refuses_websocket(request: http.Request) -> bool:
    """Codex tries a WebSocket first; 426 sends it to HTTP at once (anything else costs it retries or the run)."""
    return is_websocket(request) and request.path.split("?", 1)[0].endswith("/responses")


def is_this_machine(host: str) -> bool:
    """A provider here is never asked through the proxy behind this one, which would look for it on its own machine."""
    return host.lower().rstrip(".") == "localhost" or _is_loopback(host.strip("[]"))


class Arrival(Struct, frozen=True):
    """How a request came in."""

    direct: bool
    """To the proxy as to a web server: no tool that was told of a proxy asks like that, but every web page can."""
    host: str
    """Whom it asked for, as it said it."""


def refusal(request: http.Request, arrival: Arrival | None, client: connection.Client, hosts: Hosts) -> str | None:
    """Why a request is turned away unread. A page may reach this machine's ports, also under a name of its own (rebinding)."""
    if arrival is None:
        return None
    if arrival.direct:
        endpoint = endpoint_of(request.method, request.path)
        said = base_url_line(request.headers.get("user-agent", ""), endpoint.dialect if endpoint is not None else None)
        return _DIRECT.format(_own_url(client), said)
    if is_reverse(client) and not _is_for_us(arrival.host, client, hosts):
        return _STRANGE_NAME.format(_own_url(client), arrival.host[:_LONGEST_NAME])
    return None


_DIRECT = (
    "RouteCodex runs as a proxy here and does not answer as a web server. Set HTTPS_PROXY={} for the tool, and no base URL. "
    "For a tool that cannot use a proxy: {}"
)
_STRANGE_NAME = (
    "RouteCodex answers at {} and to configured hosts, not to {!r}. If that is a name of yours, add it to proxy.interceptHosts."
)


def _own_url(client: connection.Client) -> str:
    host, port = (client.sockname or ("127.0.0.1", 8080))[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_for_us(asked: str, client: connection.Client, hosts: Hosts) -> bool:
    name = _name_in(f"//{asked}")
    own = client.sockname[0] if client.sockname else ""
    return name in hosts or name == "localhost" or name.endswith(".localhost") or name == own or _is_loopback(name)


def _name_in(url: str) -> str:
    """The host of a URL; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _place_in(url: str) -> tuple[str, int | None]:
    """Another port is another site, also on this machine."""
    try:
        split = urlsplit(url)
        return (split.hostname or "").rstrip("."), split.port or {"http": 80, "https": 443}.get(split.scheme)
    except ValueError:
        return "", None


def is_a_pages(request: http.Request, arrival: Arrival | None) -> bool:
    """Whether a web page asks, and not one of the host itself. A browser says so, and lets no page say otherwise."""
    if request.headers.get("sec-fetch-site", "none").strip().lower() not in ("none", "same-origin"):
        return True
    origin = request.headers.get("origin")
    if origin is None:
        return False
    asked = arrival.host if arrival is not None else request.pretty_host
    return not origin.startswith(("http://", "https://")) or _place_in(origin) != _place_in(
        f"{origin.partition(':')[0]}://{asked}"
    )


def is_read(request: http.Request, arrival: Arrival | None) -> bool:
    """Whether this request to one of our hosts is one that is decided on; all others pass as they are."""
    asks = endpoint_of(request.method, request.path) is not None or refuses_websocket(request)
    return asks and not is_a_pages(request, arrival)


async def address_beside(listening: Iterable[tuple[str, int]], host: str, port: int) -> tuple[str, int] | None:
    """Where to connect to instead of a name that may mean this program itself; an OSError where it does."""
    own = [_address(name) for name, at in listening if at == port]
    if not own:
        return None
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for _, _, _, _, place in found:
        there = _address(place[0])
        if there is None or any(_is_same(there, one) for one in own):
            raise ConnectionRefusedError("RouteCodex does not call itself.")
    return str(found[0][4][0]), port


def _address(text: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None: no address, or all of them."""
    try:
        address = ipaddress.ip_address(str(text).split("%", 1)[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_same(there: ipaddress.IPv4Address | ipaddress.IPv6Address, listening: object) -> bool:
    if there == listening or there.is_unspecified:
        return True
    everywhere = listening is None or getattr(listening, "is_unspecified", False)
    return everywhere and (there.is_loopback or _is_own(str(there)))


def _is_own(address: str) -> bool:
    """Whether this machine has that address: nobody can listen at another one's."""
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def is_from_here(client: connection.Client) -> bool:
    """Whether a program of this machine has connected. Whose connections mitmproxy itself takes hold of (`local`, `transparent`)
    come from an address that the machine has besides, or that nobody has."""
    address = str(client.peername[0]) if client.peername else ""
    if _is_loopback(address) or isinstance(client.proxy_mode, LocalMode):
        return True
    return isinstance(client.proxy_mode, TransparentMode) and _is_own(address)


def _is_loopback(text: str) -> bool:
    address = _address(text)
    return address is not None and address.is_loopback
