"""Which connections are ours, which paths are refused at once, and who may come at all: the questions themselves, as tables."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.connection import Client
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import tflow

from routecodex.addons import hello, intercept
from routecodex.addons.intercept import Comes, Later, TurnedAway
from routecodex.addons.relay import Relay

HOSTS = intercept.Hosts(["api.anthropic.com", "*.example.com", "127.0.0.1", "::1"])


def peer(address: Any, mode: str = "regular") -> Client:
    return Client(peername=address, sockname=("127.0.0.1", 8080), timestamp_start=0, proxy_mode=ProxyMode.parse(mode))


@pytest.mark.parametrize(
    "host, ours",
    [
        ("api.anthropic.com", True),
        ("API.ANTHROPIC.COM", True),
        ("api.anthropic.com.", True),
        ("a.example.com", True),
        ("a.b.example.com", True),
        ("example.com", False),
        ("aexample.com", False),
        ("anthropic.com", False),
        ("api.anthropic.com.evil.org", False),
        ("api.anthropic.com\x00.evil.org", False),
        ("*.example.com", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("", False),
        (None, False),
        (443, False),
        (b"api.anthropic.com", False),
    ],
)
def test_hosts(host: object, ours: bool) -> None:
    assert (host in HOSTS) is ours


@pytest.mark.parametrize(
    "address, loopback",
    [
        (("127.0.0.1", 5), True),
        (("127.0.0.2", 5), True),
        (("127.255.255.254", 5), True),
        (("::1", 5, 0, 0), True),
        (("::1%lo", 5, 0, 0), True),
        (("::ffff:127.0.0.1", 5, 0, 0), True),
        (("::ffff:10.0.0.1", 5, 0, 0), False),
        (("10.0.0.1", 5), False),
        (("192.168.1.2", 5), False),
        (("169.254.1.1", 5), False),
        (("0.0.0.0", 5), False),
        (("::", 5, 0, 0), False),
        (("fe80::1%eth0", 5, 0, 0), False),
        (("8.8.8.8", 5), False),
        (("localhost", 5), False),
        (("", 5), False),
        ((), False),
        (None, False),
    ],
)
def test_s8_who_is_on_this_machine(address: Any, loopback: bool) -> None:
    assert intercept.is_from_here(peer(address)) is loopback


@pytest.mark.parametrize(
    "address, mode, here",
    [
        ("169.254.0.1", "local:claude", True),  # mitmproxy's own interface
        ("8.8.8.8", "local", True),
        ("8.8.8.8", "transparent", False),
        ("10.0.0.1", "wireguard", False),
        ("8.8.8.8", "socks5", False),
    ],
)
def test_whose_connections_mitmproxy_takes_hold_of(address: str, mode: str, here: bool) -> None:
    assert intercept.is_from_here(peer((address, 5), mode)) is here


@pytest.mark.parametrize("address, own", [("127.0.0.1", True), ("203.0.113.9", False), ("2001:db8::9", False), ("nobody", False)])
def test_which_addresses_this_machine_has(address: str, own: bool) -> None:
    assert intercept._is_own(address) is own


def test_what_this_machine_redirects_comes_from_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intercept, "_is_own", lambda address: address == "192.168.1.2")
    assert intercept.is_from_here(peer(("192.168.1.2", 5), "transparent"))
    assert not intercept.is_from_here(peer(("192.168.1.2", 5), "regular"))
    assert not intercept.is_from_here(peer(("192.168.1.3", 5), "transparent"))


@pytest.mark.parametrize(
    "host, said, named",
    [
        ("203.0.113.7", "api.anthropic.com", "api.anthropic.com"),
        ("2001:db8::7", "api.anthropic.com:443", "api.anthropic.com"),
        ("203.0.113.7", "elsewhere.org", "203.0.113.7"),
        ("api.openai.com", "api.anthropic.com", "api.openai.com"),
        ("203.0.113.7", None, "203.0.113.7"),
    ],
)
def test_a_host_that_is_known_by_its_address_gets_its_name(host: str, said: str | None, named: str) -> None:
    request = http.Request.make("POST", "https://placeholder/v1/messages", b"")
    request.data.host = host
    assert "host" not in request.headers
    if said is not None:
        request.headers["host"] = said
    intercept.name_host(request, intercept.Hosts(["api.anthropic.com", "api.openai.com"]))
    assert request.host == named


@pytest.mark.parametrize(
    "sni, address, mode, opened",
    [
        ("api.anthropic.com", ("api.anthropic.com", 443), "regular", True),
        ("api.anthropic.com", ("203.0.113.1", 443), "regular", True),
        (None, ("api.anthropic.com", 443), "regular", True),
        ("other.org", ("api.anthropic.com", 443), "regular", True),
        ("other.org", ("other.org", 443), "regular", False),
        (None, ("203.0.113.1", 443), "regular", False),
        (None, None, "regular", True),
        ("other.org", ("other.org", 443), "reverse:https://other.org", True),
    ],
)
def test_what_is_opened(sni: str | None, address: tuple[str, int] | None, mode: str, opened: bool) -> None:
    context = SimpleNamespace(client=peer(("127.0.0.1", 1), mode), server=SimpleNamespace(address=address))
    hello = SimpleNamespace(context=context, client_hello=SimpleNamespace(sni=sni))
    assert intercept.opens(hello, HOSTS) is opened  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "method, host, header, mode, ours",
    [
        ("POST", "api.anthropic.com", "api.anthropic.com", "regular", True),
        ("GET", "api.anthropic.com", "other.org", "regular", True),
        ("POST", "203.0.113.1", "api.anthropic.com", "regular", True),
        ("POST", "other.org", "other.org", "regular", False),
        ("CONNECT", "api.anthropic.com", "api.anthropic.com", "regular", False),
        ("POST", "other.org", "other.org", "reverse:https://other.org", True),
    ],
)
def test_which_flows_are_ours(method: str, host: str, header: str, mode: str, ours: bool) -> None:
    flow = tflow.tflow()
    flow.client_conn = peer(("127.0.0.1", 1), mode)
    flow.request = http.Request.make(
        method,
        f"https://{host}/v1/messages",
    )
    flow.request.headers["host"] = header
    assert intercept.is_ours(flow, HOSTS) is ours


@pytest.mark.parametrize(
    "method, path, upgrade, refused",
    [
        ("GET", "/v1/responses", "websocket", True),
        ("GET", "/v1/responses", "WebSocket", True),
        ("GET", "/backend-api/codex/responses?a=/x", "websocket", True),
        ("GET", "/v1/responses", "", False),
        ("GET", "/v1/responses", "h2c", False),
        ("POST", "/v1/responses", "websocket", False),
        ("GET", "/v1/realtime?to=/responses", "websocket", False),
        ("GET", "/v1/responses/resp_1", "websocket", False),
    ],
)
def test_which_websockets_are_refused(method: str, path: str, upgrade: str, refused: bool) -> None:
    request = http.Request.make(method, f"https://api.openai.com{path}", headers={"upgrade": upgrade} if upgrade else {})
    assert intercept.refuses_websocket(request) is refused


@pytest.mark.parametrize(
    "headers, asked, pages",
    [
        ({}, "api.openai.com", False),
        ({"sec-fetch-mode": "cors"}, "api.openai.com", False),
        ({"sec-fetch-site": "none"}, "api.openai.com", False),
        ({"sec-fetch-site": "same-origin", "origin": "https://api.openai.com"}, "api.openai.com", False),
        ({"sec-fetch-site": "Cross-Site"}, "api.openai.com", True),
        ({"sec-fetch-site": "same-site"}, "api.openai.com", True),
        ({"sec-fetch-site": "news"}, "api.openai.com", True),
        ({"origin": "https://API.openai.com:443"}, "api.openai.com", False),
        ({"origin": "http://localhost:8080"}, "localhost:8080", False),
        ({"origin": "http://[::1]:8080"}, "[::1]:8080", False),
        ({"origin": "http://localhost:3000"}, "localhost:8080", True),
        ({"origin": "http://localhost"}, "localhost:8080", True),
        ({"origin": "https://api.openai.com:8443"}, "api.openai.com", True),
        ({"origin": "https://api.openai.com"}, "api.openai.com:443", False),
        ({"origin": "http://localhost:x"}, "localhost:8080", True),
        ({"origin": "https://openai.com"}, "api.openai.com", True),
        ({"origin": "null"}, "api.openai.com", True),
        ({"origin": ""}, "api.openai.com", True),
        ({"origin": "vscode-webview://api.openai.com"}, "api.openai.com", True),
        ({"origin": "http://["}, "api.openai.com", True),
    ],
)
def test_what_a_page_sends(headers: dict[str, str], asked: str, pages: bool) -> None:
    request = http.Request.make("POST", "https://api.openai.com/v1/responses", headers=headers)
    assert intercept.is_a_pages(request, intercept.Arrival(False, asked)) is pages


def test_without_an_arrival_the_request_says_whom_it_asked() -> None:
    request = http.Request.make("POST", "https://api.openai.com/v1/responses", headers={"origin": "https://api.openai.com"})
    assert not intercept.is_a_pages(request, None)


OWN = [("127.0.0.1", 8080), ("127.0.0.1", 8081)]
ANYWHERE = [("0.0.0.0", 8080), ("::", 8080)]


@pytest.mark.parametrize(
    "listening, host, port, itself",
    [
        (OWN, "127.0.0.1", 8080, True),
        (OWN, "127.0.0.1", 8081, True),
        (OWN, "localhost", 8080, True),
        (OWN, "0.0.0.0", 8080, True),
        (OWN, "::", 8081, True),
        (OWN, "::ffff:127.0.0.1", 8080, True),
        (OWN, "127.0.0.1", 8082, False),
        (OWN, "127.0.0.2", 8080, False),
        (OWN, "203.0.113.1", 8080, False),
        (ANYWHERE, "127.0.0.2", 8080, True),
        (ANYWHERE, "::1", 8080, True),
        (ANYWHERE, "203.0.113.1", 8080, False),
        ([("", 8080)], "127.0.0.9", 8080, True),
        ([("localhost", 8080)], "127.0.0.1", 8080, True),
        ([], "127.0.0.1", 8080, False),
    ],
)
def test_who_would_call_itself(listening: list[tuple[str, int]], host: str, port: int, itself: bool) -> None:
    if itself:
        with pytest.raises(ConnectionRefusedError):
            asyncio.run(intercept.address_beside(listening, host, port))
    else:
        assert asyncio.run(intercept.address_beside(listening, host, port)) in (None, (host, port))


# --- what a request is ----------------------------------------------------------------------------------------------------

MESSAGES = "https://api.anthropic.com/v1/messages"


@pytest.mark.parametrize(
    "method, url, headers, how, comes",
    [
        ("POST", MESSAGES, {}, "", Comes.CALL),
        ("POST", MESSAGES, {"origin": "https://evil.example"}, "", Comes.PASSING),
        ("GET", "https://api.anthropic.com/api/hello", {}, "", Comes.PASSING),
        ("POST", "https://other.org/v1/messages", {}, "", Comes.FOREIGN),
        ("POST", "https://other.org/v1/messages", {}, "replay", Comes.FOREIGN_AGAIN),
        ("POST", MESSAGES, {}, "replay", Comes.AGAIN),
        ("GET", "https://api.anthropic.com/api/hello", {}, "replay", Comes.AGAIN),
        ("POST", MESSAGES, {}, "file", Comes.FROM_FILE),
        ("GET", "http://routecodex.local/", {}, "direct", TurnedAway),
        ("POST", MESSAGES, {}, "round", Later),
        ("GET", f"http://{hello.HOST}{hello.PATH}", {}, "", Comes.HELLO),
        ("CONNECT", "https://api.anthropic.com:443", {}, "", Comes.FOREIGN),
    ],
)
def test_what_comes(method: str, url: str, headers: dict[str, str], how: str, comes: object) -> None:
    """One value, in the order in which it is decided: what no client sent, what nobody may ask, what is ours."""
    flow = tflow.tflow()
    flow.request = http.Request.make(method, url, headers={"host": http.Request.make(method, url).host, **headers})
    flow.live = how not in ("file", "replay", "round")
    flow.is_replay = "request" if how in ("replay", "round") else None
    asking = Relay(0)
    stream = Stream()
    stream.flow, stream.arrival = flow, intercept.Arrival(how == "direct", flow.request.host)
    if how != "file":
        asking.streams[flow.id] = stream  # type: ignore[assignment]
    if how == "round":
        asking.rounds[flow.id] = SimpleNamespace(flow=flow)  # type: ignore[assignment]
    found = intercept.what_comes(flow, asking, HOSTS)
    assert found is comes or type(found) is comes


class Stream:
    """Stands for a stream: something that can be referred to weakly."""

    flow: http.HTTPFlow
    arrival: intercept.Arrival
