"""Who is there? A proxy of ours answers this address itself; any other proxy has nowhere to send it.

Whoever asks goes through the proxy as any client does, so a proxy on another port, or one that a person started by hand, is
recognised the same way.
"""

from __future__ import annotations

import base64
import json
import socket
import time
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

HOST = "routecodex.invalid"
"""No such name exists anywhere: the domain is reserved for that."""
PATH = "/hello"
_LIMIT_S = 3.0
_LARGEST = 1 << 20


class Hello(Struct, frozen=True):
    """What a proxy of ours says of itself."""

    server: str
    pid: int
    certificate: str
    """Its authority, as PEM."""
    hosts: tuple[str, ...]
    """Whose calls it reads."""
    config: str


def ask(url: str, limit_s: float = _LIMIT_S) -> Hello | None:
    """None where nobody answers within that time, or somebody else does."""
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        return None
    if parts.scheme != "http" or not host:
        return None
    question = f"GET http://{HOST}{PATH} HTTP/1.1\r\nHost: {HOST}\r\n{who(url)}Connection: close\r\n\r\n"
    end = time.monotonic() + limit_s
    try:
        with socket.create_connection((host, port), limit_s) as line:
            line.sendall(question.encode())
            heard = bytearray()
            while len(heard) < _LARGEST and (chunk := _heard(line, end)):
                heard += chunk
    except OSError:
        return None
    return _read(bytes(heard))


def _heard(line: socket.socket, end: float) -> bytes:
    """Whoever says a byte now and then is left, too."""
    if (left := end - time.monotonic()) <= 0:
        raise TimeoutError
    line.settimeout(left)
    return line.recv(65_536)


def who(url: str) -> str:
    """The header by which a person says who they are, where the proxy's address holds that."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if not parts.username:
        return ""
    said = base64.b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode())
    return f"Proxy-Authorization: Basic {said.decode()}\r\n"


def _read(heard: bytes) -> Hello | None:
    head, _, body = heard.partition(b"\r\n\r\n")
    if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.0 200")):
        return None
    try:
        said: Any = json.loads(body)
        if said["name"] != "RouteCodex":
            return None
        return Hello(
            str(said["server"]), int(said["pid"]), str(said["certificate"]), tuple(map(str, said["hosts"])), str(said["config"])
        )
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
        return None
