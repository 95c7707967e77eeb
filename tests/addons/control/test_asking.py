"""Providers are asked the way that the tools' calls take: through a company's proxy where one is named."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator

import httpx
import pytest

from routecodex.addons.control import asking
from routecodex.addons.control.say import Failed
from routecodex.routing.config import read
from tests.routing.house import config_text


class Lines:
    """A server that says what it was asked first."""

    def __init__(self) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                line, *_ = iter(self.rfile.readline, b"\r\n")
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(line), line))

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.place = f"127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    yield lines
    lines.server.shutdown()
    lines.server.server_close()


@pytest.mark.parametrize("written", ["http://{}", "{}"], ids=["a URL", "a place"])
def test_through_the_companys_proxy_but_not_to_this_machine(lines: Lines, written: str) -> None:
    with asking.client({"HTTPS_PROXY": written.format(lines.place)}) as client:
        assert client.get("http://api.example/v1/models").text == "GET http://api.example/v1/models HTTP/1.1\r\n"
        assert client.get(f"http://{lines.place}/v1/models").text == "GET /v1/models HTTP/1.1\r\n"


def test_what_is_no_address_is_said() -> None:
    with pytest.raises(Failed, match="HTTPS_PROXY holds no address of a proxy"):
        asking.client({"HTTPS_PROXY": "http://127.0.0.1:port"})


def test_straight_where_none_is_named(lines: Lines) -> None:
    with asking.client({}) as client:
        assert client.get(f"http://{lines.place}/v1/models").text == "GET /v1/models HTTP/1.1\r\n"


@pytest.mark.parametrize("date", ["", "x", "Mon, 01 Jan 2020 00:00:00 +9999999999999999999999", "Mon, 01 Jan 99999 00:00:00 GMT"])
def test_a_date_that_is_none_says_nothing_of_the_clock(date: str) -> None:
    """Whoever answers writes what he likes."""
    provider = read(config_text(), name="a.yaml", env={}).registry.providers["glm"]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"date": date}, content=b'{"data":[{"id":"m"}]}')

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        assert asking.ask(client, provider, provider.keys[0]) == asking.Heard(("m",))
