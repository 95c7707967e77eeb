"""What a worker writes and listens to; `tests/system/test_workers.py` sees several at work."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from pathlib import Path

import pytest

from routecodex.addons import worker
from routecodex.addons.worker import CLOSED, GIVEN, TAKEN, Lines, Shared, Worker


def test_lines_leave_whole(tmp_path: Path) -> None:
    """Each in one write: what another process writes stands before or behind it."""
    file = os.open(tmp_path / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    one, other = Lines(file), Lines(file)
    print("first\nand", file=one, end="")
    print("second ünï \udc80", file=other)
    print(" last", file=one)
    os.close(file)
    assert (tmp_path / "log").read_text() == "first\nsecond ünï \\udc80\nand last\n"


def test_a_line_of_the_log_is_as_mitmproxys(capfd: pytest.CaptureFixture[str]) -> None:
    here, there = socket.socketpair()
    with here, there:
        Worker(0, 1, here, Shared(), 1).tell("a call")
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\.\d{3}\] a call\n", capfd.readouterr().out)


def test_a_process_of_its_own_leads() -> None:
    assert worker.here is None
    assert worker.leads()
    assert worker.server_pid() == os.getpid()


def test_a_connection_is_taken_before_it_is_read(tmp_path: Path) -> None:
    """One to a port that nobody listens to yet waits; one that cannot be had is over."""

    async def main() -> bytes:
        door, parent = socket.socketpair()
        one = Worker(1, 2, door, Shared(), 1)
        assert not one.leads
        heard: list[bytes] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read())
            writer.close()

        async def first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            raise AssertionError("nobody came to this port")

        listening = await one.start_server(first, "127.0.0.1", 1)
        assert [address.getsockname() for address in listening.sockets] == [("127.0.0.1", 1)]
        mine, its = socket.socketpair()
        socket.send_fds(parent, [GIVEN.pack(2)], [its.fileno()])
        its.close()
        mine.send(b"hello")
        mine.close()
        said = b""
        while TAKEN not in said:
            said += await asyncio.to_thread(parent.recv, 100)
        assert heard == []
        parent.send(GIVEN.pack(2))  # the system had no room for what came with it
        await one.start_server(handle, "127.0.0.1", 2)
        while said.count(CLOSED) < 2:
            said += await asyncio.to_thread(parent.recv, 100)
        assert heard == [b"hello"]
        parent.close()
        await asyncio.sleep(0)
        door.close()
        return said

    assert asyncio.run(main()).count(TAKEN) == 2
