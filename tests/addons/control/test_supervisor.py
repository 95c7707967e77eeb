"""The supervisor's small decisions; `tests/system/test_run.py` sees it at work."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from routecodex.addons.control import background, leash, prefork, supervisor
from routecodex.addons.control.commands import start
from routecodex.addons.control.places import Places
from routecodex.addons.control.say import Failed
from tests.rig.door import until


def test_both_ends_of_the_leash_agree() -> None:
    assert (supervisor.LEASH, supervisor.CREDENTIALS) == (leash.VARIABLE, leash.CREDENTIALS)
    assert set(background._DIFFERS) == set(supervisor._HANDED)


@pytest.mark.parametrize(
    ("url", "credentials", "bare"),
    [
        ("http://host:1", "", "http://host:1"),
        ("http://u:p@host:1", "u:p", "http://host:1"),
        ("https://u:p%40%3Aq@host:1", "u:p@:q", "https://host:1"),
        ("http://u@host:1", "u:", "http://host:1"),
        ("", "", ""),
    ],
)
def test_credentials_are_taken_out(url: str, credentials: str, bare: str) -> None:
    assert supervisor._credentials(url) == credentials
    assert supervisor._without_credentials(url) == bare


def test_the_port_of_last_time(tmp_path: Path) -> None:
    file = tmp_path / "port"
    assert supervisor._last_port(file) == 0
    for text, port in (("8123", 8123), ("0", 0), ("99999", 0), ("x", 0)):
        file.write_text(text)
        assert supervisor._last_port(file) == port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert supervisor._free_port(port) not in (0, port)
    assert supervisor._free_port(port) == port


def test_who_comes_in_the_moment_of_an_end_is_promised_nothing() -> None:
    """A busy machine lets the supervisor see both at once: the last lease given back, and somebody new."""

    async def main(here: Places) -> bytes:
        here.make()
        one = supervisor.Supervisor(here)
        one._up.set()
        one._watch = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
        serving = asyncio.create_task(one.serve())
        await asyncio.to_thread(until, here.line.exists, "it does not listen")
        first, second = (socket.socket(socket.AF_UNIX) for _ in range(2))
        with first, second:
            first.connect(str(here.line))
            first.sendall(b'{"want": "lease"}\n')
            assert b'"tools": 1' in await asyncio.to_thread(first.recv, 4096)
            first.close()
            second.connect(str(here.line))
            second.sendall(b'{"want": "lease"}\n')
            await serving
            with contextlib.suppress(ConnectionResetError):
                return await asyncio.to_thread(second.recv, 4096)
            return b""

    with tempfile.TemporaryDirectory(prefix="rc-") as folder:  # a socket's path must be short
        assert asyncio.run(main(Places(Path(folder)))) == b""


@pytest.mark.parametrize("another", [False, True], ids=["gone", "another's"])
def test_who_cannot_be_asked_any_more_ends_with_its_last_tool(another: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_LOOK_S", 0.01)

    async def main(here: Places) -> None:
        here.make()
        one = supervisor.Supervisor(here)
        one._up.set()
        one._watch = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
        one.kept = True
        serving = asyncio.create_task(one.serve())
        await asyncio.to_thread(until, here.line.exists, "it does not listen")
        with socket.socket(socket.AF_UNIX) as tool:
            tool.connect(str(here.line))
            tool.sendall(b'{"want": "lease"}\n')
            assert b'"kept": true' in await asyncio.to_thread(tool.recv, 4096)
            here.line.rename(here.run / "aside")
            if another:
                here.line.touch()
            await asyncio.to_thread(until, lambda: not one.kept, "it goes on")
            assert not one.over.is_set(), "a tool is still there"
        await serving
        assert here.line.exists() == another, "another's is left alone"

    with tempfile.TemporaryDirectory(prefix="rc-") as folder:
        asyncio.run(main(Places(Path(folder))))


def test_a_port_is_held_until_the_proxy_has_left_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = tmp_path / "port"
    first = supervisor._hold(port)
    inherited = os.dup(first)
    os.close(first)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            os.close(inherited)

    monkeypatch.setattr(supervisor.time, "sleep", sleep)
    second = supervisor._hold(port)
    assert len(waits) == 3
    monkeypatch.setattr(supervisor, "_STOP_S", 0.0)
    os.close(supervisor._hold(port))  # one that does not end is not waited for for ever
    os.close(second)


def test_a_proxy_that_does_not_come_up_again_is_tried_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ready once: it is not given up, and never tried without a pause."""
    pauses: list[float] = []

    class Over(Exception):
        pass

    async def sleep(seconds: float) -> None:
        pauses.append(round(seconds, 2))
        if len(pauses) == 7:
            raise Over

    async def starts() -> supervisor.Proxy:
        reader = asyncio.StreamReader()
        reader.feed_eof()
        return supervisor.Proxy(SimpleNamespace(wait=lambda: 1), reader, SimpleNamespace(close=lambda: None))  # type: ignore[arg-type]

    async def main() -> None:
        one = supervisor.Supervisor(Places(tmp_path))
        one.served, one._start = True, starts  # type: ignore[method-assign]
        monkeypatch.setattr(supervisor.asyncio, "sleep", sleep)
        with pytest.raises(Over):
            await one._keep_alive()
        assert one.deaths == 7

    asyncio.run(main())
    assert pauses == [0.2, 0.6, 1.4, 3.0, 5.0, 5.0, 5.0]


def test_a_new_port_is_told_when_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever hears of it connects at once."""
    listening = [("127.0.0.1", 1)]

    class Options:
        mode: ClassVar = ["regular"]

        def update(self, mode: list[str]) -> None:
            self.mode = mode  # type: ignore[misc]
            asyncio.get_running_loop().call_soon(listening.append, ("127.0.0.1", 2))

    server = SimpleNamespace(listen_addrs=lambda: listening)
    ctx = SimpleNamespace(options=Options(), master=SimpleNamespace(addons=SimpleNamespace(get=lambda _: server)))
    monkeypatch.setattr(leash, "ctx", ctx)

    async def main() -> None:
        await leash.Leash._listen(["regular", "reverse:https://x.example@127.0.0.1:2"])
        assert (len(listening), len(ctx.options.mode)) == (2, 2)

    asyncio.run(main())


def test_what_a_proxy_said_of_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[10:00:00.000] RouteCodex: an old mistake\n")
    place = supervisor._size(log)
    with log.open("a") as file:
        file.write("[10:00:01.000] Loading script x\n[10:00:01.100] RouteCodex: f.yaml:2 is wrong\n")
        file.write("[10:00:01.200] Error logged during startup, exiting...\n")
    assert supervisor._words_since(log, place) == "RouteCodex: f.yaml:2 is wrong"
    assert supervisor._words_since(tmp_path / "gone", 0) == ""


def test_a_large_log_moves_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_LOG_BYTES", 10)
    log = tmp_path / "log"
    log.write_text("0123456789abc")
    supervisor._make_room(log)
    assert log.read_text() == ""
    assert (tmp_path / "log.1").read_text() == "3456789abc"


def test_workers_are_started_only_where_they_are_asked_for(tmp_path: Path) -> None:
    one = supervisor.Supervisor(Places(tmp_path))
    assert one._command()[2] == "-c"
    one.handed = {"workers": 3, "flows": "/there/flows"}
    command = one._command()
    assert command[2:5] == [str(supervisor.MAIN), "prefork", "3"]
    assert command[command.index("--save-stream-file") + 1] == "+/there/flows"
    assert prefork._listens(command) == [("127.0.0.1", one.port)]
    assert prefork._listens(["-p", "1", "--mode", "regular", "--mode", "reverse:https://x.example:8@127.0.0.1:2"]) == [
        ("", 1),
        ("127.0.0.1", 2),
    ]


@pytest.mark.parametrize("words", [["--workers", "0x"], ["--workers", "-1"], ["--workers", "65"], ["--workers", "2", "--web"]])
def test_workers_that_cannot_be(words: list[str]) -> None:
    """Said before anything is started."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    start.arguments(parser)
    with pytest.raises((Failed, argparse.ArgumentError)):
        start._look_at(parser.parse_args(words))


def test_a_system_that_cannot_fork_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "send_fds")
    parser = argparse.ArgumentParser()
    start.arguments(parser)
    with pytest.raises(Failed, match="needs a system that can fork"):
        start._look_at(parser.parse_args(["--workers", "2"]))
    start._look_at(parser.parse_args([]))
