"""One TCP connection as a buffer that can be awaited: used by the fake provider and by the clients.

1. Whatever arrives is read at once, so a peer that leaves is noticed while we are writing.
2. Every read ends: with data, or with `Gone` when the peer has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from typing import Any


class Gone(Exception):
    """The peer has left."""


class Pipe(asyncio.Protocol):
    def __init__(self, keep: bool = False) -> None:
        self.buffer = bytearray()
        self.received: bytearray | None = bytearray() if keep else None
        """Everything that ever arrived, decrypted, if it is to be kept."""
        self.opened_at = time.monotonic()
        self.gone_at: float | None = None
        """When the peer left (or we hung up)."""
        self.reset_by_peer = False
        self.transport: Any = None
        self._data: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.received is not None:
            self.received += data
        self._wake()

    def eof_received(self) -> None:
        self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        self.reset_by_peer = isinstance(exc, ConnectionError)
        self._leave()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._release(self._room)

    def _leave(self) -> None:
        if self.gone_at is None:
            self.gone_at = time.monotonic()
        self._wake()
        self._release(self._room)

    def _wake(self) -> None:
        self._release(self._data)

    @staticmethod
    def _release(future: asyncio.Future[None] | None) -> None:
        if future is not None and not future.done():
            future.set_result(None)

    @property
    def gone(self) -> bool:
        return self.gone_at is not None

    async def more(self) -> None:
        """Wait until something new has arrived; Gone if nothing will."""
        if self.gone:
            raise Gone
        size = len(self.buffer)
        while len(self.buffer) == size:
            if self.gone:
                raise Gone
            self._data = asyncio.get_running_loop().create_future()
            await self._data

    async def wait_gone(self) -> None:
        """Until the peer has left; what arrives meanwhile stays in the buffer."""
        while not self.gone:
            with contextlib.suppress(Gone):
                await self.more()

    async def read_until(self, separator: bytes) -> bytes:
        start = 0
        while (at := self.buffer.find(separator, start)) < 0:
            start = max(0, len(self.buffer) - len(separator) + 1)
            await self.more()
        return self.take(at + len(separator))

    async def read_exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            await self.more()
        return self.take(size)

    async def read_some(self, most: int = 1 << 20) -> bytes:
        """What is there, at least one byte."""
        if not self.buffer:
            await self.more()
        return self.take(min(most, len(self.buffer)))

    def take(self, size: int) -> bytes:
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    async def write(self, data: bytes) -> None:
        """Send; waits while the peer reads slowly. Gone if it has left."""
        if self.gone or self.transport.is_closing():
            raise Gone
        self.transport.write(data)
        while self._full and not self.gone:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        if self.gone:
            raise Gone

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """Hang up with a TCP RST."""
        if self.transport is None or self.transport.is_closing():
            return
        sock = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


async def connect(host: str, port: int) -> Pipe:
    _, pipe = await asyncio.get_running_loop().create_connection(Pipe, host, port)
    return pipe


async def secure(pipe: Pipe, context: ssl.SSLContext, server_name: str) -> None:
    """TLS from here on, as the client."""
    loop = asyncio.get_running_loop()
    pipe.transport = await loop.start_tls(pipe.transport, pipe, context, server_hostname=server_name, ssl_handshake_timeout=60)
