"""A client that takes what comes when it wants to."""

from __future__ import annotations

import socket
import time

from tests.rig.proxy import Mitmdump
from tests.system.speaker import Speaker
from tests.system.tool import HOSTS

SLOW_BYTES_PER_S = 100_000
WORD = "lorem "
"""What is counted."""


class SlowReader:
    """A client that takes what comes when it wants to, with a small window."""

    def __init__(self, proxy: Mitmdump, speaker: Speaker) -> None:
        host = HOSTS[speaker.dialect].removeprefix("https://")
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        plain.settimeout(60)
        plain.connect(("127.0.0.1", proxy.port))
        plain.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        assert b" 200 " in plain.recv(4096)
        self.socket = proxy.tls("http/1.1").wrap_socket(plain, server_hostname=host)
        body = speaker.body
        lines = [("Host", host), *speaker.sent_headers, ("Content-Length", str(len(body)))]
        head = f"POST {speaker.path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
        self.socket.sendall(head.encode() + body)
        self.taken = 0
        self.words = 0
        self.tail = b""

    def take(self, most: int) -> bool:
        """Whether there may be more."""
        data = self.socket.recv(most)
        self.taken += len(data)
        # a word that was cut by the border of a chunk is not counted
        self.words += data.count(WORD.encode())
        self.tail = (self.tail + data)[-5000:]
        return bool(data) and not self.tail.endswith(b"\r\n0\r\n\r\n")

    def take_slowly(self, seconds: float) -> None:
        began, taken = time.monotonic(), self.taken
        while time.monotonic() - began < seconds:
            self.take(4096)
            time.sleep(max(0.0, (self.taken - taken) / SLOW_BYTES_PER_S - (time.monotonic() - began)))

    def take_until(self, sign: bytes) -> None:
        """Until this has just been read."""
        while sign not in self.tail:
            assert self.take(4096), f"it never said {sign!r}"

    def close(self) -> None:
        self.socket.close()
