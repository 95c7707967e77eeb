"""Who answers at a port."""

from __future__ import annotations

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
    ],
)
def test_somebody_else(answer: bytes) -> None:
    assert asked(answer) is None


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "socks5://127.0.0.1:1", "http://127.0.0.1:99999", "", "http://"])
def test_nobody(url: str) -> None:
    assert hello.ask(url) is None
