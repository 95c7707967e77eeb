"""A real Redis on a port of its own, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = shutil.which("redis-server")
IS_THERE = PROGRAM is not None and importlib.util.find_spec("redis") is not None
"""A server, and the client of the extra `redis`."""
_READY_S = 20.0


@dataclass
class RedisServer:
    folder: Path
    options: tuple[str, ...] = ()
    """Further lines of its configuration, as arguments."""
    tls: bool = False
    """The port is TLS's; the options name the certificates."""
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """On the port that it had before, if any."""
        assert PROGRAM is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        for _ in range(5):
            self.port = self.port or _free_port()
            ports = ("--port", "0", "--tls-port", str(self.port)) if self.tls else ("--port", str(self.port))
            command = [PROGRAM, *ports, "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "", *self.options]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if self._is_ready():
                return
            self.kill()
        raise AssertionError("redis-server does not start")

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _is_ready(self) -> bool:
        end = time.monotonic() + _READY_S
        while time.monotonic() < end and self.process is not None and self.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as link:
                if self.tls:
                    return True
                link.sendall(b"PING\r\n")
                if not link.recv(100).startswith(b"-LOADING"):
                    return True
            time.sleep(0.02)
        return False


@contextlib.contextmanager
def redis_server(folder: Path, *options: str, tls: bool = False) -> Iterator[RedisServer]:
    server = RedisServer(folder, options, tls)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
