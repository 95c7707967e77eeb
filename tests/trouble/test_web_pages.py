"""F1: a web page can reach this machine's ports. It spends no key, whatever it sends and under whatever name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from routecodex.routing.values import Dialect
from tests.rig.certificates import client_context
from tests.rig.client import Answer, Http1, Http2, Route, call
from tests.rig.pipe import connect, secure
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.websocket import UPGRADE
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, text_of, write

pytestmark = pytest.mark.system

SPENDING = CONFIG.replace("default: [origin]", "default: [six.m]").replace("proxy:\n", "proxy:\n  codexWebSocket: serve\n", 1)
LOCAL = """
    local:
      protocol: openai-chat
      baseURL: http://localhost:11434/v1
      auth: {type: none}
      models: {llama: {}}
"""
SPENDING = SPENDING.replace("  providers:\n", f"  providers:{LOCAL}", 1)
"""Every call that is read is paid for with a key of ours; a provider on localhost, as in the shipped example."""
CALL = json.dumps(write(Dialect.CHAT, "m", [("user", '<**stopMessage:"go on",9**> hello')], False)[1]).encode()
PATH = "/v1/chat/completions"


@dataclass
class Net:
    proxy: Mitmdump
    provider: FakeProvider

    def spent(self) -> list[str]:
        return [received.key or "" for received in self.provider.requests if "six-key" in (received.key or "")]


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


def started(provider: FakeProvider, factory: pytest.TempPathFactory, **how: object) -> Iterator[Net]:
    folder = factory.mktemp("pages")
    with Mitmdump(script=SCRIPT, config=SPENDING, upstream=provider, folder=folder, flows=True, args=["-v"], **how) as proxy:  # type: ignore[arg-type]
        yield Net(proxy, provider)
        assert not proxy.crash
        assert "RouteCodex failed" not in proxy.log
        proxy.stop()
        assert proxy.flows_path is not None
        assert b"page-secret" not in proxy.flows_path.read_bytes() + proxy.log.encode()


@pytest.fixture(scope="module")
def regular(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    yield from started(provider, tmp_path_factory, options=["routecodex_http2=true"])


@pytest.fixture(scope="module")
def reverse(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    yield from started(provider, tmp_path_factory, mode="reverse:https://api.openai.com")


@pytest.fixture(scope="module")
def web(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    yield from started(provider, tmp_path_factory, web=True)


@pytest.fixture(autouse=True)
def fresh(provider: FakeProvider) -> None:
    provider.forget()


def raw(net: Net, host: str, *, method: str = "POST", path: str = PATH, body: bytes = CALL, headers: str = "") -> Answer:
    """As a browser sends it to a web server; `{port}` is the proxy's."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host.format(port=net.proxy.port)}", "Cookie: a=page-secret", headers.strip()]
    lines += [f"Content-Length: {len(body)}"] if body else []
    head = "\r\n".join(line for line in lines if line) + "\r\n\r\n"

    async def sent() -> Answer:
        async with Http1(Route(net.proxy.url)) as client:
            await client.write_raw(head.encode() + body)
            return await client.read_answer(method, within=90)

    return asyncio.run(sent())


# ---- straight to the port ----

NAMES = [
    "localhost:{port}",
    "127.0.0.1:{port}",
    "rebound.example:{port}",
    "localhost:11434",
    "api.openai.com",
    "six.example",
    "[::1]:{port}",
]
SHAPES = {
    "no-cors": "Content-Type: text/plain;charset=UTF-8\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site",
    "a form": "Content-Type: application/x-www-form-urlencoded\r\nOrigin: null",
    "an older browser": "Content-Type: text/plain",
    "same origin": "Origin: http://rebound.example:{port}\r\nSec-Fetch-Site: same-origin",
    "a tool without a proxy": "Content-Type: application/json\r\nAuthorization: Bearer page-secret",
}


def assert_told(answer: Answer, net: Net) -> None:
    assert (answer.status, answer.ended) == (400, "complete")
    assert answer.header("x-should-retry") == "false"
    assert answer.header("access-control-allow-origin") is None
    message = answer.json["error"]["message"]
    assert f"HTTPS_PROXY={net.proxy.url}" in message
    assert "--mode reverse:" in message


@pytest.mark.parametrize("host", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_comes_straight_to_the_port_is_told_how_to_come(regular: Net, host: str, shape: str) -> None:
    assert_told(raw(regular, host, headers=SHAPES[shape]), regular)
    assert regular.provider.connections == []


@pytest.mark.parametrize("dialect", list(Dialect))
def test_in_every_dialect(regular: Net, dialect: Dialect) -> None:
    path, body = write(dialect, "m", [("user", "<**echo**> hello")], True)
    assert_told(raw(regular, "localhost:{port}", path=path, body=json.dumps(body).encode()), regular)
    assert regular.provider.connections == []


@pytest.mark.parametrize("method", ["GET", "OPTIONS", "PUT", "DELETE"])
@pytest.mark.parametrize("path", [PATH, "/", "/image.png", "/v1/responses"])
def test_by_every_method(regular: Net, method: str, path: str) -> None:
    """An image, a preflight, a page to look at."""
    assert_told(raw(regular, "localhost:{port}", method=method, path=path, body=b""), regular)
    assert regular.provider.connections == []


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime"])
def test_no_websocket(regular: Net, path: str) -> None:
    headers = "\r\n".join(f"{name}: {value}" for name, value in UPGRADE)
    assert_told(raw(regular, "localhost:{port}", method="GET", path=path, body=b"", headers=headers), regular)
    assert regular.provider.connections == []


@pytest.mark.parametrize("version", ["http/1.1", "h2"])
def test_nor_over_tls_to_the_proxy_itself(regular: Net, version: str) -> None:
    """Whose authority a browser may trust."""
    route = Route(f"https://localhost:{regular.proxy.port}", ca=regular.proxy.ca_path)

    async def sent() -> Answer:
        async with (Http1 if version == "http/1.1" else Http2)(route) as client:
            return await client.send("POST", PATH, body=CALL, within=90)

    assert_told(asyncio.run(sent()), regular)
    assert regular.provider.connections == []


# ---- through the proxy, as a browser does that uses it ----

PAGES = {
    "cross-site": {"Sec-Fetch-Site": "cross-site"},
    "another part of the site": {"Sec-Fetch-Site": "same-site"},
    "a page elsewhere": {"Origin": "https://evil.example"},
    "a name that begins alike": {"Origin": "https://api.openai.com.evil.example"},
    "a sandbox": {"Origin": "null"},
    "an extension": {"Origin": "chrome-extension://abcdef"},
    "both": {"Origin": "https://api.openai.com", "Sec-Fetch-Site": "cross-site"},
    "twice": {"Sec-Fetch-Site": "none, cross-site"},
}
TOOLS = {
    "nothing": {},
    "fetch of Node": {"Sec-Fetch-Mode": "cors"},
    "typed in": {"Sec-Fetch-Site": "none"},
    "its own page": {"Origin": "https://api.openai.com", "Sec-Fetch-Site": "same-origin"},
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("url", [HOSTS[Dialect.CHAT], "http://localhost:11434", "http://api.openai.com"])
def test_a_pages_own_call_passes_as_it_is(regular: Net, name: str, url: str) -> None:
    headers = [*PAGES[name].items(), ("x-kept", "as it is")]
    if "localhost" in url:
        url = regular.provider.url  # where the rig lets through
    answer = call(url, PATH, CALL, proxy=regular.proxy, headers=headers)
    assert answer.status == 200
    (received,) = regular.provider.requests
    assert received.body == CALL
    assert received.header("x-kept") == "as it is"
    assert regular.spent() == []


@pytest.mark.parametrize("name", TOOLS)
def test_a_tools_call_is_read(regular: Net, name: str) -> None:
    path, body = write(Dialect.CHAT, "m", [("user", "hello")], False)
    headers = [*TOOLS[name].items(), CREDENTIALS[Dialect.CHAT]]
    answer = call(HOSTS[Dialect.CHAT], path, body, proxy=regular.proxy, headers=headers)
    assert text_of(Dialect.CHAT, answer.body, False) == "m was asked: hello"
    assert len(regular.spent()) == 1


def test_a_pages_websocket_is_not_served(regular: Net) -> None:
    headers = [*UPGRADE, ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")]
    answer = call(HOSTS[Dialect.CHAT], "/v1/responses", b"", method="GET", proxy=regular.proxy, headers=headers)
    assert answer.status == 200, "the host's own answer"
    assert regular.provider.requests[0].header("upgrade") == "websocket"
    assert regular.spent() == []


# ---- where a base URL leads to ----


@pytest.mark.parametrize(
    "host",
    [
        "localhost:{port}",
        "127.0.0.1:{port}",
        "127.0.0.5",
        "LOCALHOST",
        "tool.localhost",
        "[::1]:80",
        "api.openai.com",
        "six.example:8080",
    ],
)
def test_who_may_be_meant_in_reverse_mode(reverse: Net, host: str) -> None:
    answer = raw(reverse, host, headers="Content-Type: application/json\r\nAuthorization: Bearer page-secret")
    assert answer.status == 200
    assert reverse.spent()


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example:{port}",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "evil.example",
        "",
        "0",
        "2130706433",
        "localhost@evil.example",
        "[",
        "a b",
    ],
)
def test_who_may_not(reverse: Net, host: str) -> None:
    answer = raw(reverse, host, headers="Content-Type: application/json")
    assert answer.status == 400
    assert reverse.provider.connections == []
    if answer.header("x-should-retry"):
        assert "proxy.interceptHosts" in answer.json["error"]["message"]


@pytest.mark.parametrize("name", [name for name in PAGES if name != "both"])
def test_a_pages_call_spends_nothing_there_either(reverse: Net, name: str) -> None:
    headers = "\r\n".join(f"{key}: {value}" for key, value in PAGES[name].items())
    assert raw(reverse, "localhost:{port}", headers=headers).status == 200
    (received,) = reverse.provider.requests
    assert received.body == CALL
    assert reverse.spent() == []


# ---- to ourselves ----

SELVES = ["127.0.0.1", "localhost", "LOCALHOST.", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433", "127.1", "[::]"]


@pytest.mark.parametrize("host", SELVES)
@pytest.mark.parametrize("which", ["proxy", "mitmweb"])
@pytest.mark.parametrize("how", ["plain", "CONNECT"])
def test_nobody_is_sent_to_ourselves(web: Net, host: str, which: str, how: str) -> None:
    port = web.proxy.port if which == "proxy" else web.proxy.web_port
    place = f"{host}:{port}"

    async def asked() -> bytes:
        pipe = await connect("127.0.0.1", web.proxy.port)
        if how == "CONNECT":
            await pipe.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            head = await pipe.read_until(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n")[0]:
                return head
        target = "/" if how == "CONNECT" else f"http://{place}/"
        await pipe.write(f"GET {target} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(20):
            await pipe.wait_gone()
        return bytes(pipe.buffer)

    known = web.proxy.log.count("client connect")
    answer = asyncio.run(asked())
    assert answer.startswith((b"HTTP/1.1 502", b"HTTP/1.1 400", b"HTTP/1.1 504")), answer[:300]
    for ours in (b"mitmweb", b"HTTPS_PROXY", b"_xsrf", b"<script"):
        assert ours not in answer
    assert web.proxy.log.count("client connect") == known + 1


def test_other_servers_of_this_machine_are_reached(web: Net) -> None:
    assert call(f"http://localhost:{web.provider.plain_port}", "/v1/files", b"x", proxy=web.proxy).status == 200


def test_tls_to_ourselves(web: Net) -> None:
    """Nothing is opened for it."""

    async def asked() -> bool:
        pipe = await connect("127.0.0.1", web.proxy.port)
        await pipe.write(f"CONNECT localhost:{web.proxy.port} HTTP/1.1\r\n\r\n".encode())
        await pipe.read_until(b"\r\n\r\n")
        try:
            async with asyncio.timeout(20):
                await secure(pipe, client_context(web.proxy.ca_path, protocols=("http/1.1",)), "localhost")
                await pipe.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await pipe.wait_gone()
        except ConnectionError:
            return True
        return b"502" in bytes(pipe.buffer)[:20] or not pipe.buffer

    assert asyncio.run(asked())
