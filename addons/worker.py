"""What a worker knows of itself: one of several processes behind one port, each a whole mitmproxy with this addon.

1. Its parent (`control/prefork.py`) accepts connections and hands them over; what mitmproxy takes for listening is that.
2. What every one of them would do, and once is enough (time servers, sweeping, the control socket), the one that leads does.
3. Its log lines leave at once and whole: those of all workers stand in one file, in the order in which calls ended.

Without `--workers` there is none of this: `here` is None.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import mmap
import os
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mitmproxy import ctx

BEAT_S = 0.25
TAKEN, CLOSED, BEAT = b"+", b"-", b"."
"""What a worker says at its door."""
GIVEN = struct.Struct("!H")
"""What the parent says there, beside the connection: which port it came to."""

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Shared:
    """Counts that all workers see without asking anybody: a page of memory that the parent made before it forked."""

    def __init__(self) -> None:
        page = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
        self.orders = Count(page, 0)
        """How often the orders for all sessions were changed."""


class Count:
    def __init__(self, page: memoryview, place: int) -> None:
        self._page, self._place = page, place

    def now(self) -> int:
        found: int = self._page[self._place]
        return found

    def up(self) -> None:
        """By whoever holds the lock of what has changed."""
        self._page[self._place] += 1


class _Address:
    """What mitmproxy asks a listening socket."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port

    def getsockname(self) -> tuple[str, int]:
        return self._address


class Handed:
    """Stands where mitmproxy keeps an `asyncio.Server`."""

    def __init__(self, *addresses: _Address, close: Callable[[], object] = lambda: None) -> None:
        self.sockets = addresses
        self.close = close

    async def wait_closed(self) -> None:
        pass


class Worker:
    def __init__(self, number: int, count: int, door: socket.socket, shared: Shared, parent: int) -> None:
        self.number, self.count = number, count
        self.shared = shared
        self.parent = parent
        self.handlers: dict[int, tuple[Handler, int]] = {}
        """Who is called for a connection to a port."""
        self.at_beat: Callable[[], object] = lambda: None
        self._door = door
        self._unsaid = bytearray()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[tuple[int, socket.socket]] = []
        """Connections to a port that mitmproxy does not listen to yet."""
        self._running: set[asyncio.Task[None]] = set()

    @property
    def leads(self) -> bool:
        return self.number == 0

    # Connections

    async def start_server(self, handler: Handler, host: str | None = None, port: int = 0, **given: Any) -> Handed:
        """In the place of `asyncio.start_server`."""
        self.handlers[port] = handler, given.get("limit", 1 << 16)
        self._listen()
        early, self._early = self._early, []
        for came_to, link in early:
            self._take(came_to, link)
        return Handed(_Address(host or "0.0.0.0", port), close=lambda: self.handlers.pop(port, None))

    async def start_udp_server(self, host: str, port: int, handler: object) -> Handed:
        """In the place of `mitmproxy_rs.udp.start_udp_server`: HTTP/3 to a base address is not offered."""
        return Handed()

    def _listen(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._door.setblocking(False)
            self._loop.add_reader(self._door, self._open)
            self._beat()

    def _open(self) -> None:
        while True:
            try:
                said, files, _, _ = socket.recv_fds(self._door, GIVEN.size, 1)
            except BlockingIOError:
                return
            except OSError:
                said, files = b"", []
            if not said:
                assert self._loop is not None
                self._loop.remove_reader(self._door)  # the parent is gone: the leash ends us
                return
            self.say(TAKEN)  # before anything of it is read: until then it can still be another's
            if not files:
                self.say(CLOSED)  # this process has no room for another one
            for file in files:
                (port,) = GIVEN.unpack(said)
                self._take(port, socket.socket(fileno=file))

    def _take(self, port: int, link: socket.socket) -> None:
        if (found := self.handlers.get(port)) is None:
            self._early.append((port, link))
            return
        link.setblocking(False)
        task = asyncio.ensure_future(self._serve(link, *found))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, link: socket.socket, handler: Handler, limit: int) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await handler(reader, writer)
            finally:
                over.set()

        reader = asyncio.StreamReader(limit=limit, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, handle, loop=loop)
        try:
            await loop.connect_accepted_socket(lambda: protocol, link)
            await over.wait()
        except OSError:
            link.close()
        finally:
            self.say(CLOSED)

    # The parent

    def say(self, what: bytes) -> None:
        self._unsaid += what
        try:
            del self._unsaid[: self._door.send(self._unsaid)]
        except OSError:
            pass  # it is busy, and hears it with the next word; or it is gone

    def _beat(self) -> None:
        assert self._loop is not None
        self.say(BEAT)
        self.at_beat()
        self._loop.call_later(BEAT_S, self._beat)

    # The log

    def tell(self, line: str) -> None:
        """A line of its own, as mitmproxy writes one."""
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.localtime(now))
        with contextlib.suppress(OSError):
            os.write(1, f"[{stamp}.{int(now * 1000) % 1000:03}] {line}\n".encode(errors="backslashreplace"))


class Lines(io.TextIOBase):
    """Standard output that never writes less than a line, so that lines of several processes do not mix."""

    encoding = "utf-8"

    def __init__(self, file: int) -> None:
        self._file = file
        self._rest = ""

    def write(self, text: str) -> int:
        whole, newline, rest = (self._rest + text).rpartition("\n")
        self._rest = rest
        if newline:
            os.write(self._file, (whole + newline).encode(errors="backslashreplace"))
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file

    def isatty(self) -> bool:
        return False


def flush_saved() -> None:
    """mitmproxy saves a flow in one write, so that it is whole in the file that all append to; now and then it is to be there."""
    if (saved := getattr(ctx.master.addons.get("save"), "stream", None)) is not None:
        saved.fo.flush()


here: Worker | None = None
"""This process, where it is one of several."""


def leads() -> bool:
    """Whether this process does what one alone is to do."""
    return here is None or here.leads


def server_pid() -> int:
    """The process that a person knows."""
    return os.getpid() if here is None else here.parent
