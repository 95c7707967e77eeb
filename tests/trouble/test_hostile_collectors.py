"""A collector of telemetry that is dead or hostile: it costs no call anything, holds nobody up at the end, leads nowhere else,
fills no memory, and gets neither what people say nor keys."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from routecodex.addons import telemetry
from routecodex.addons.telemetry import Telemetry
from routecodex.routing.config.values import TelemetrySettings
from tests.rig.behaviour import Behaviour
from tests.rig.certificates import provider_authority
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply
from tests.routing.telemetry.calls import seen
from tests.system.tool import CONFIG, Tool

Talk = Callable[[socket.socket, "Collector"], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Collector:
    """It reads what comes, and does with the connection what it is told."""

    def __init__(self, talk: Talk, elsewhere: int = 0) -> None:
        self.talk, self.elsewhere = talk, elsewhere
        self.heard, self.asked, self.over = bytearray(), threading.Semaphore(0), threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                link, _ = self.listening.accept()
                threading.Thread(target=self._one, args=(link,), daemon=True).start()

    def _one(self, link: socket.socket) -> None:
        with suppress(OSError), link:
            while self.read(link):
                self.asked.release()
                self.talk(link, self)

    def read(self, link: socket.socket) -> bool:
        """One request."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            if not (more := link.recv(65536)):
                return False
            raw += more
        head, _, body = raw.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            body += link.recv(65536)
        self.heard += head + body
        return True

    def endless(self, link: socket.socket, piece: bytes, pause_s: float = 0) -> None:
        while not self.over.wait(pause_s) if pause_s else not self.over.is_set():
            link.sendall(piece)

    def close(self) -> None:
        self.over.set()
        self.listening.close()


def answers(raw: bytes) -> Talk:
    return lambda link, collector: link.sendall(raw)


def goes_on(head: bytes, piece: bytes, pause_s: float = 0) -> Talk:
    def talk(link: socket.socket, collector: Collector) -> None:
        link.sendall(head)
        collector.endless(link, piece, pause_s)

    return talk


def sends_elsewhere(status: int) -> Talk:
    def talk(link: socket.socket, collector: Collector) -> None:
        place = f"http://127.0.0.1:{collector.elsewhere}/"
        link.sendall(f"HTTP/1.1 {status} x\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())

    return talk


BOMB = gzip.compress(bytes(100 << 20))
HOSTILE: dict[str, Talk] = {
    **{f"a redirect, {status}": sends_elsewhere(status) for status in (301, 302, 303, 307, 308)},
    "a redirect to nothing": answers(b"HTTP/1.1 307 x\r\nLocation: http://[:::\r\nContent-Length: 0\r\n\r\n"),
    "an answer without end": goes_on(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
    "chunks without end": goes_on(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    "a drip": goes_on(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x", 0.02),
    "a head that drips": goes_on(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.02),
    "a head without end": goes_on(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536),
    "interim answers without end": goes_on(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50, 0.001),
    "silence": lambda link, collector: (collector.over.wait(60), None)[1],
    "it hangs up": lambda link, collector: link.close(),
    "no HTTP": answers(b"\x16\x03\x01 hello, who is there?\r\n\r\n"),
    "500": answers(b"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"),
    "429": answers(b"HTTP/1.1 429 x\r\nRetry-After: 99999999\r\nContent-Length: 0\r\n\r\n"),
    "an odd status": answers(b"HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n"),
    "a bomb": answers(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB),
    "a cookie": answers(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"),
}
TAKES = {"an answer without end", "chunks without end", "a bomb", "a cookie", "a drip"}


@contextmanager
def collecting(talk: Talk) -> Iterator[tuple[Collector, Collector]]:
    other = Collector(answers(OK))
    collector = Collector(talk, other.port)
    try:
        yield collector, other
    finally:
        collector.close()
        other.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_collector(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str) -> None:
    """It is asked again and again all the same, reads no further than a word, and is never waited for."""
    monkeypatch.setattr(telemetry, "LIMIT_S", 0.1)
    monkeypatch.setattr(telemetry, "_LONGEST_PAUSE_S", 0.05)
    with collecting(HOSTILE[name]) as (collector, other):
        url = collector.url.replace("://", "://user:p4ssw0rd@")
        settings = TelemetrySettings(otlp=url, headers={"x-key": "k3y"})
        told = Telemetry(settings, "here", every_s=0.01)
        told.note(seen())
        for _ in range(4):
            assert collector.asked.acquire(timeout=60), "it is given up"
        told.note(seen())
        assert told._thread is not None
        assert told._thread.is_alive()
        told.close(60)
        assert not told._thread.is_alive(), "it ends"
        assert other.heard == b"", "it is sent nowhere else"
        assert len(told._unsent) <= 2
        assert "p4ssw0rd" not in caplog.text
        assert b"a=b" not in collector.heard
        assert len(caplog.records) <= 1 or name in TAKES


def test_a_collector_whose_certificate_is_nobodys(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(telemetry, "_LONGEST_PAUSE_S", 0.05)
    context = provider_authority().server_context()
    listening = socket.create_server(("127.0.0.1", 0))
    failed, heard = threading.Semaphore(0), list[bytes]()

    def serve() -> None:
        with suppress(OSError):
            while True:
                link, _ = listening.accept()
                try:
                    with context.wrap_socket(link, server_side=True) as safe:
                        heard.append(safe.recv(65536))
                except (ssl.SSLError, OSError):
                    failed.release()

    threading.Thread(target=serve, daemon=True).start()
    settings = TelemetrySettings(otlp=f"https://127.0.0.1:{listening.getsockname()[1]}", headers={"x-key": "k3y"})
    told = Telemetry(settings, "here", every_s=0.01)
    told.note(seen())
    for _ in range(2):
        assert failed.acquire(timeout=60)
    told.close(60)
    listening.close()
    assert heard == []
    assert "ConnectError" in caplog.text


@pytest.mark.system
@pytest.mark.parametrize("name", ["an answer without end", "silence"])
def test_calls_beside_it(tmp_path: Path, name: str) -> None:
    """Nothing that a person said, and no credential, is sent there; no call is slower, and the proxy ends when it is told to."""
    with collecting(HOSTILE[name]) as (collector, other), FakeProvider() as provider:
        provider.always(Behaviour(reply=Reply("the ANSWER-CANARY")))
        config = f"telemetry: {{prometheus: true, otlp: '{collector.url}', headers: {{x-key: k3y}}}}\n{CONFIG}"
        with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path) as proxy:
            for number in range(3):
                tool = Tool(provider, proxy)
                assert tool.ask(f"<**six.m**> the QUESTION-CANARY {number}").status == 200
                assert tool.ask(f"and the QUESTION-CANARY {number}").status == 200
            assert collector.asked.acquire(timeout=60)
            before = proxy.rss_bytes
            for _ in range(30):
                assert Tool(provider, proxy).ask("still there?").status == 200
            assert proxy.rss_bytes - before < 32 << 20, "what it says fills no memory"
            assert "Traceback" not in proxy.log
            proxy.stop()  # on 3.11 Python itself tells of connections that are open then
            assert "RouteCodex failed" not in proxy.log
        sent = bytes(collector.heard + other.heard)
        assert b"k3y" in sent
        assert other.heard == b""
        for word in (b"CANARY", b"sk-client-secret", b"six-key-"):
            assert word not in sent
