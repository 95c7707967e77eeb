"""The other ways in: behind another proxy, as in many companies (`--mode upstream:`), and by an address instead of a name, which
is how `socks5`, `transparent` and `local` hear of most hosts. A tag steers, a key goes to its provider alone.

`regular` is what all other tests use; `reverse` has `tests/system/test_reverse.py`. `local` takes hold of other programs of the
machine, and is tried by hand (see `docs/security.md`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.answer import Answer, Route
from tests.rig.behaviour import Behaviour
from tests.rig.certificates import client_context
from tests.rig.client import Http1, call
from tests.rig.pipe import Pipe, connect, secure
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, Tool, text_of, write

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """Its redirect leads nowhere: what leaves it goes through the other one."""
    folder: Path = tmp_path_factory.mktemp("upstream")
    with (
        Mitmdump(upstream=provider, folder=folder / "theirs", options=["ignore_hosts=.*"]) as theirs,
        Mitmdump(script=SCRIPT, config=CONFIG, folder=folder / "ours", mode=f"upstream:{theirs.url}", flows=True) as ours,
    ):
        yield ours
        assert not ours.crash
        assert "RouteCodex failed" not in ours.log
        ours.stop()
        assert ours.flows_path is not None
        saved = ours.flows_path.read_bytes()
        assert b"sk-client-secret" not in saved
        assert b"six-key-" not in saved


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_every_way_of_a_call(provider: FakeProvider, proxy: Mitmdump, dialect: Dialect, stream: bool) -> None:
    tool = Tool(provider, proxy, dialect)
    ways = {"hello": 1, "<**six.m**> hello": 1, '<**six.m**> <**stopMessage:"go on",1**> hello': 2, "<**echo**> hello": 0}
    for text, rounds in ways.items():
        provider.forget()
        tool.history.clear()
        answer = tool.ask(text, stream=stream)
        assert (answer.status, answer.ended) == (200, "complete"), answer.text
        assert "hello" in text_of(dialect, answer.body, stream)
        assert len(provider.calls) == rounds
        for received in provider.calls:
            assert (b"six-key-" in received.raw, b"sk-client-secret" in received.raw) == (
                received.host == "six.example",
                received.host != "six.example",
            )


def test_another_key_and_another_path(provider: FakeProvider, proxy: Mitmdump) -> None:
    provider.forget()
    provider.enqueue(Behaviour(status=500, error="down"), Behaviour(before="close"))
    answer = Tool(provider, proxy).ask("<**six.m**> hello", stream=True)
    assert text_of(Dialect.MESSAGES, answer.body, True) == "m was asked: hello"
    assert len({received.header("x-api-key") for received in provider.calls}) == 3
    assert call("https://api.openai.com", "/v1/files", b"{}", proxy=proxy).status == 200
    assert call("https://github.com", "/", b"", method="GET", proxy=proxy, ca=provider.ca).status == 200


# ---- by an address ----

ADDRESS = "203.0.113.7"
"""What a name stands for, as far as the tool has looked it up itself."""


@dataclass(frozen=True)
class ByAddress(Route):
    mode: str = "regular"

    async def open(self, *protocols: str) -> Pipe:
        assert self.proxy is not None
        pipe = await connect("127.0.0.1", self.proxy.port)
        if self.mode == "socks5":
            await pipe.write(b"\x05\x01\x00")
            assert await pipe.read_exactly(2) == b"\x05\x00"
            await pipe.write(b"\x05\x01\x00\x01" + socket.inet_aton(ADDRESS) + self.port.to_bytes(2, "big"))
            assert (await pipe.read_exactly(10))[:2] == b"\x05\x00"
        elif self.secure:
            await pipe.write(f"CONNECT {ADDRESS}:443 HTTP/1.1\r\nHost: {ADDRESS}:443\r\n\r\n".encode())
            assert b" 200 " in await pipe.read_until(b"\r\n\r\n")
        if self.secure:
            await secure(pipe, client_context(self.proxy.ca_path, protocols=protocols), self.host)
        return pipe


@pytest.mark.parametrize("mode", ["regular", "socks5"])
def test_a_host_that_is_known_by_its_address(provider: FakeProvider, tmp_path: Path, mode: str) -> None:
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, mode=mode) as proxy:

        async def ask(text: str, dialect: Dialect, stream: bool) -> Answer:
            async with Http1(ByAddress(HOSTS[dialect], proxy, mode=mode)) as client:
                path, body = write(dialect, "m", [("user", text)], stream)
                return await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]])

        for dialect in (Dialect.MESSAGES, Dialect.GEMINI):
            for text, host in {
                "hello": HOSTS[dialect].removeprefix("https://"),
                '<**six.m**> <**stopMessage:"go on",1**> hello': "six.example",
                '<**stopMessage:"go on",1**> hello': HOSTS[dialect].removeprefix("https://"),
                "<**echo**> hello": "",
            }.items():
                provider.forget()
                answer = asyncio.run(ask(text, dialect, True))
                assert (answer.status, answer.ended) == (200, "complete"), (text, answer.text)
                assert "hello" in text_of(dialect, answer.body, True)
                assert {(received.host, received.sni) for received in provider.calls} == ({(host, host)} if host else set())
