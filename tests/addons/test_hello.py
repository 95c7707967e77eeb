"""Who answers at a port."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from routecodex.addons import hello

OURS = {"name": "RouteCodex", "server": "user", "pid": 7, "certificate": "PEM", "hosts": ["a"], "config": "/c"}


def asked(answer: bytes) -> hello.Hello | None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            link, _ = listening.accept()
            with link:
                link.recv(4096)
                link.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        found = hello.ask(f"http://127.0.0.1:{listening.getsockname()[1]}", 30)
        thread.join(30)
        return found


def told(said: object) -> bytes:
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + json.dumps(said).encode()


def test_one_of_ours() -> None:
    assert asked(told(OURS)) == hello.Hello("user", 7, "PEM", ("a",), "/c")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense",
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n" + json.dumps(OURS).encode(),
        told({**OURS, "name": "another"}),
        told([]),
        told({"name": "RouteCodex"}),
        b"HTTP/1.1 200 OK\r\n\r\n<html>",
        told({**OURS, "pid": float("inf")}),
        told({**OURS, "pid": float("nan")}),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000,
        b'HTTP/1.1 200 OK\r\n\r\n{"name":"RouteCodex","pid":' + b"9" * 5000 + b"}",
    ],
)
def test_somebody_else(answer: bytes) -> None:
    assert asked(answer) is None


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "socks5://127.0.0.1:1", "http://127.0.0.1:99999", "", "http://"])
def test_nobody(url: str) -> None:
    assert hello.ask(url) is None


def test_somebody_who_never_comes_to_an_end() -> None:
    """One who says a byte now and then kept `run` and `doctor` waiting for days."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            link, _ = listening.accept()
            with link, contextlib.suppress(OSError):
                link.recv(4096)
                link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while not over.wait(0.05):
                    link.sendall(b" ")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        asking = threading.Thread(target=hello.ask, args=(f"http://127.0.0.1:{listening.getsockname()[1]}", 0.5), daemon=True)
        asking.start()
        asking.join(30)
        assert not asking.is_alive()
        over.set()
        thread.join(30)
