"""Keeps one proxy for one person: starts it when somebody comes, brings it back when it dies, ends it with the last.

1. A lease is an open connection: a tool that is killed gives its lease back by that alone.
2. The port of last time is taken again where it is free: a tool that outlived its proxy finds it there.
3. The proxy holds the other end of a line to us and ends when that does: it is never orphaned.
4. Where its socket is gone, or is another's, nobody can end it any more: it ends with the last tool, whoever wanted it kept.
5. Standard library only, but for the lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from ...routing.storage.lock import FileLock, Taken
from .line import STOPPED
from .places import MAIN, SCRIPT, SERVER_ID, Places, places

Said: TypeAlias = dict[str, Any]

_READY_S = 100.0
_LONGEST_PAUSE_S = 5.0
_STOP_S = 10.0
_AGAIN_S = 0.02
_LOG_BYTES = 16 << 20
_STREAM_LIMIT = 1 << 22
_QUESTION_S = 10.0
_LOOK_S = 5.0
_HANDED = ("config", "upstream", "authorities", "web", "verbose", "workers", "flows")
"""What the first who comes decides for all: how the proxy is started."""
LEASH, CREDENTIALS = "ROUTECODEX_LEASH", "ROUTECODEX_UPSTREAM_AUTH"


class Proxy:
    """One process of mitmproxy, and the line to it."""

    def __init__(self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.process = process
        self.reader, self.writer = reader, writer
        self.talking = asyncio.Lock()
        self.ready: Said = {}

    async def tell(self, said: Mapping[str, Any]) -> Said:
        """What it answers; nothing where it has ended."""
        async with self.talking:
            self.writer.write(json.dumps(said).encode() + b"\n")
            answer: Said = json.loads(await self.reader.readline() or b"{}")
            return answer

    async def end(self) -> None:
        self.writer.close()
        try:
            await asyncio.wait_for(asyncio.to_thread(self.process.wait), _STOP_S)
        except TimeoutError:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


class Supervisor:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.handed: Said = {}
        self.told: dict[str, str] = {}
        """Variables that came later than our own."""
        self.bases: dict[str, int] = {}
        """For tools that cannot use a proxy: the port that stands for an address."""
        self.leases: set[asyncio.StreamWriter] = set()
        self.kept = False
        self.port = _last_port(places.port)
        self.held: int | None = None
        """See `_hold`."""
        self.proxy: Proxy | None = None
        self.problem: Said | None = None
        self.served = False
        """It was ready once: what ends it now is an accident."""
        self.deaths = 0
        self.over = asyncio.Event()
        self._up = asyncio.Event()
        """The proxy is ready, or there is a problem."""
        self._watch: asyncio.Task[None] | None = None
        self._log_at = 0
        """Where in the log the proxy's own words begin."""
        self._asked = 0
        self._talks: set[asyncio.Task[None]] = set()

    # The line

    async def serve(self) -> None:
        self.places.line.unlink(missing_ok=True)  # the lock is ours: whoever bound it is dead
        server = await asyncio.start_unix_server(self._welcome, str(self.places.line), limit=_STREAM_LIMIT)
        self.places.line.chmod(0o600)
        ours = _file(self.places.line)
        looking = asyncio.create_task(self._look_for(ours))
        try:
            await self.over.wait()
        finally:
            looking.cancel()
            server.close()
            if _file(self.places.line) == ours:
                self.places.line.unlink(missing_ok=True)
            if self._watch is not None:
                self._watch.cancel()
                await asyncio.gather(self._watch, return_exceptions=True)
            if self.proxy is not None:
                await self.proxy.end()
            for task in self._talks:
                task.cancel()

    async def _look_for(self, ours: tuple[int, int] | None) -> None:
        """Whoever erases our folder (`rm -rf ~/.routecodex`) leaves us without a name."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if _file(self.places.line) != ours:
                self.kept = False
                self._end_if_unused()
                return

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self._asked += 1
        try:
            async with asyncio.timeout(_QUESTION_S):  # who says nothing does not keep a proxy that nobody uses
                line = await reader.readline()
            if line:
                question = json.loads(line)
                if not isinstance(question, dict):
                    raise ValueError
                answer = await self._answer(question, writer)
                writer.write(json.dumps(answer).encode() + b"\n")
                self._asked -= 1
                try:
                    await writer.drain()
                    await reader.read()  # until whoever asked leaves
                finally:
                    self._asked += 1
        except (OSError, ValueError, RecursionError, asyncio.CancelledError):
            pass  # asyncio would log the last as a fault
        finally:
            self._asked -= 1
            self._talks.discard(task)
            self.leases.discard(writer)
            writer.close()
            self._end_if_unused()

    async def _answer(self, question: Said, writer: asyncio.StreamWriter) -> Said:
        want = question.get("want")
        if want == "stop":
            return await self._stop(now=bool(question.get("now")))
        if want in ("lease", "keep"):
            if self.problem is not None or self.over.is_set():
                raise ConnectionAbortedError  # this one ends: who comes now begins anew, and is not promised what goes
            if self._watch is None:
                self.handed = {name: question.get(name) for name in _HANDED}
                self._watch = asyncio.create_task(self._keep_alive())
            if want == "lease":
                self.leases.add(writer)
            await self._up.wait()
            if self.problem is not None:
                return self.problem
            if want == "keep":
                self.kept = True
            other = await self._learn(question.get("variables") or {})
            await self._listen_for(question.get("bases") or [])
            differs = [name for name in _HANDED if question.get(name) and question[name] != self.handed[name]]
            return {**await self._status(), "other": other, "differs": differs}
        return await self._status()

    async def _status(self) -> Said:
        proxy = self.proxy
        workers: Said = {}
        if self.handed.get("workers") and proxy is not None and proxy.ready:
            with contextlib.suppress(OSError, ValueError):
                workers = await proxy.tell({"workers": True})
        return {
            "running": proxy is not None and bool(proxy.ready),
            "port": self.port,
            "pid": proxy.process.pid if proxy is not None else None,
            "supervisor": os.getpid(),
            "web": proxy.ready.get("web", "") if proxy is not None else "",
            "config": proxy.ready.get("config", "") if proxy is not None else "",
            "server": SERVER_ID,
            "log": str(self.places.log),
            "certificate": str(self.places.certificate),
            "upstream": _without_credentials(self.handed.get("upstream") or ""),
            "tools": len(self.leases),
            "kept": self.kept,
            "bases": self.bases,
            "deaths": self.deaths,
            "workers": workers.get("workers", []),
            "replaced": workers.get("replaced", 0),
        }

    async def _stop(self, *, now: bool) -> Said:
        self.kept = False
        said = {**await self._status(), "ends": now or not self.leases}
        if now:
            for lease in self.leases:
                lease.write(STOPPED)
            self.over.set()
        return said

    def _end_if_unused(self) -> None:
        if not self.kept and not self.leases and not self._asked:
            self.over.set()

    async def _learn(self, variables: dict[str, str]) -> list[str]:
        """New ones are told to the proxy; of those that it knows otherwise the names are given back: the first ones hold."""
        known = {**os.environ, **self.told}
        new = {name: value for name, value in variables.items() if not known.get(name)}
        if new and self.proxy is not None:
            self.told |= new
            try:
                await self.proxy.tell({"variables": new})
            except OSError:
                pass  # it has just died: its follower is started with them
        return [name for name, value in variables.items() if name not in new and known[name] != value]

    async def _listen_for(self, addresses: list[str]) -> None:
        """A port of its own for each address, which it keeps as long as we are there."""
        if new := [address for address in addresses if address not in self.bases]:
            self.bases |= {address: _free_port(0) for address in new}
            if self.proxy is not None:
                try:
                    await self.proxy.tell({"modes": self._modes})
                except OSError:
                    pass  # it has just died: its follower is started with them

    @property
    def _modes(self) -> list[str]:
        return [f"reverse:{address}@127.0.0.1:{port}" for address, port in self.bases.items()]

    # The proxy

    async def _keep_alive(self) -> None:
        """It runs until nobody wants it; what ended it is said in its log."""
        pause = 0.0
        while True:
            proxy = self.proxy = await self._start()
            ended = "ended with {} before it was ready"
            try:
                line = await asyncio.wait_for(proxy.reader.readline(), _READY_S)
            except TimeoutError:
                line, ended = b"", f"was not ready within {_READY_S:.0f} seconds"
                proxy.process.kill()
            if line:
                pause = 0.0
                proxy.ready = json.loads(line)
                self.served = True
                self._up.set()
            code = await asyncio.to_thread(proxy.process.wait)
            proxy.writer.close()
            self.deaths += 1
            if not line and not self.served:
                self._complain(ended.format(code))
                return
            self._up.clear()
            self._note(f"the proxy ended with {code}: answers that had begun are lost; it comes back on port {self.port}")
            if not line:
                pause = min(_LONGEST_PAUSE_S, pause * 2 + 0.2)
                await asyncio.sleep(pause)

    async def _start(self) -> Proxy:
        self.port = _free_port(self.port)
        self.places.port.write_text(str(self.port))
        self._log_at = _size(self.places.log)
        ours, its = socket.socketpair()
        environment = {**os.environ, **self.told, LEASH: str(its.fileno()), "PYTHONUNBUFFERED": "1"}
        upstream = self.handed.get("upstream") or ""
        if credentials := _credentials(upstream):
            environment[CREDENTIALS] = credentials
        with its:
            process = self._spawn(environment, its.fileno())
        reader, writer = await asyncio.open_connection(sock=ours, limit=_STREAM_LIMIT)
        return Proxy(process, reader, writer)

    def _spawn(self, environment: Mapping[str, str], leash: int) -> subprocess.Popen[bytes]:
        nothing, here = subprocess.DEVNULL, self.places.run
        kept = [leash] if self.held is None else [leash, self.held]
        return subprocess.Popen(self._command(), stdin=nothing, pass_fds=kept, cwd=here, env=environment)

    def _command(self) -> list[str]:
        web, upstream = bool(self.handed.get("web")), self.handed.get("upstream")
        tool = "mitmweb" if web else "mitmdump"
        options = {
            "confdir": str(self.places.authority),
            "routecodex_server": SERVER_ID,
            "routecodex_config": self.handed.get("config") or "",
            "flow_detail": "0",
        }
        if web:
            options |= {"web_open_browser": "false", "web_host": "127.0.0.1", "web_port": str(_free_port(0))}
        if authorities := self.handed.get("authorities"):
            options["ssl_verify_upstream_trusted_ca"] = authorities
        command = [sys.executable, "-P", "-c", f"from mitmproxy.tools.main import {tool}; {tool}()"]
        if workers := self.handed.get("workers"):
            command = [sys.executable, "-P", str(MAIN), "prefork", str(workers)]
        command += ["--listen-host", "127.0.0.1", "--listen-port", str(self.port)]
        command += ["--mode", f"upstream:{_without_credentials(upstream)}" if upstream else "regular"]
        for mode in self._modes:
            command += ["--mode", mode]
        command += ["--verbose"] if self.handed.get("verbose") else []
        command += ["--save-stream-file", f"+{flows}"] if (flows := self.handed.get("flows")) else []
        for name, value in options.items():
            command += ["--set", f"{name}={value}"]
        return [*command, "-s", str(SCRIPT)]

    def _complain(self, ended: str) -> None:
        """It did not come up for the first who asked: they hear why, and the next one may try again."""
        said = _words_since(self.places.log, self._log_at)
        self.problem = {"error": f"the proxy {ended}" + (f": {said}" if said else "")}
        self.problem["next"] = f"the whole log: {self.places.log}"
        self._up.set()

    def _note(self, line: str) -> None:
        print(f"[{time.strftime('%H:%M:%S')}] routecodex: {line}", flush=True)


def main() -> int:
    """Of no terminal: a hang-up or Ctrl-C there is not meant for it."""
    os.umask(0o077)
    for name in ("SIGHUP", "SIGINT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    here = places()
    here.make()
    try:
        with FileLock(here.lock, _STOP_S + _READY_S):
            _make_room(here.log)
            asyncio.run(_serve(here))
    except Taken:
        print("another supervisor does not end", flush=True)
        return 1
    return 0


async def _serve(here: Places) -> None:
    supervisor = Supervisor(here)
    supervisor.held = await asyncio.to_thread(_hold, here.port)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.over.set)
    await supervisor.serve()


def _make_room(log: Path) -> None:
    """We append to the file that we were started with; what is in it moves aside."""
    try:
        if log.stat().st_size > _LOG_BYTES:
            log.with_name(f"{log.name}.1").write_bytes(log.read_bytes()[-_LOG_BYTES:])
            os.truncate(log, 0)
    except OSError:
        pass


def _last_port(file: Path) -> int:
    try:
        port = int(file.read_text())
    except (OSError, ValueError):
        return 0
    return port if 0 < port < 65_536 else 0


def _hold(file: Path) -> int:
    """A lock that the proxy inherits. Who follows a supervisor that was killed waits here until that one's proxy has ended, too:
    tools know its port, and find the next one there."""
    import fcntl  # where there are Unix sockets

    held, end = os.open(file, os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + _STOP_S
    while time.monotonic() < end:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(_AGAIN_S)
    return held


def _free_port(wanted: int) -> int:
    """The wanted one, else any. A connection that is still being closed does not make a port taken."""
    for port in filter(None, (wanted,)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _size(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0


_USUAL = ("Loading script", "proxy listening at", "Error logged during startup", "Web server listening", "The supervisor is gone")
_MOST_LINES = 12


def _words_since(log: Path, place: int) -> str:
    """What the proxy said of its own end."""
    try:
        with log.open("rb") as file:
            file.seek(place)
            lines = file.read(1 << 20).decode(errors="replace").splitlines()
    except OSError:
        return ""
    telling = [line for line in lines if line.strip() and not any(usual in line for usual in _USUAL)]
    return "\n".join(re.sub(r"^\[[\d:.]+\]\s*", "", line) for line in telling[-_MOST_LINES:])


def _file(path: Path) -> tuple[int, int] | None:
    """Which file lies there; None where there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _credentials(url: str) -> str:
    """As the proxy wants them: without the escapes of a URL."""
    name, colon, password = urlsplit(url).netloc.rpartition("@")[0].partition(":")
    return f"{unquote(name)}:{unquote(password)}" if name or colon else ""


def _without_credentials(url: str) -> str:
    if not url:
        return ""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
