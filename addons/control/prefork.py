"""The parent of several workers: it accepts every connection, hands it to the worker with the fewest, and replaces one that dies.

1. It imports everything once and then forks: a worker is there in a tenth of a second. Nothing here starts a thread or a loop.
2. It speaks with each worker as the supervisor speaks with a proxy (`leash.py`), and with the supervisor as a proxy does.
3. A connection is the parent's until a worker has taken it: what one that dies had not taken goes to another. Where nobody can
   take one, it waits with the system; it is never refused.
4. A worker that the system has stopped, or that says nothing for long, is ended like one that has died.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from .. import worker as worker_side
from ..worker import BEAT, CLOSED, GIVEN, TAKEN, Lines, Shared, Worker
from .places import ROOT
from .supervisor import LEASH

Said: TypeAlias = dict[str, Any]

MOST_GIVEN = 32
"""So many connections at most wait for one worker to take them."""
FROZEN_S = 0.1
"""Who is stopped by the system may go on within this; then it is replaced."""
SILENT_S = 20.0
"""A loop that stands still for so long does not come back."""
QUIET_S = 1.5
"""Who has not been heard for so long gets no new connection, as long as others are there."""
_READY_S = 45.0
_STOP_S = 8.0
_LONGEST_PAUSE_S = 5.0
_BACKLOG = 4096
_LATE_S = 1.0
_LONGEST_LINE = 1 << 22
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def is_possible() -> bool:
    return hasattr(os, "fork") and hasattr(socket, "send_fds") and hasattr(socket, "AF_UNIX")


class _IsWorker(BaseException):
    """Unwinds the parent's work in a child."""

    def __init__(self, number: int, line: socket.socket, door: socket.socket) -> None:
        super().__init__(number)
        self.number, self.line, self.door = number, line, door


class _Line:
    """One end of a leash: lines of JSON."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._heard = bytearray()

    def say(self, said: Said) -> None:
        with contextlib.suppress(OSError):
            self.link.sendall(json.dumps(said).encode() + b"\n")

    def hear(self) -> list[Said] | None:
        """None at its end. ValueError where it is no such lines."""
        try:
            chunk = self.link.recv(1 << 20)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            return None
        self._heard += chunk
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard = bytearray(rest)
        said = [json.loads(line) for line in lines]
        if len(rest) > _LONGEST_LINE or not all(isinstance(one, dict) for one in said):
            raise ValueError
        return said


class Child:
    """A worker, as its parent knows it."""

    def __init__(self, number: int, pid: int, line: socket.socket, door: socket.socket, now: float) -> None:
        self.number, self.pid = number, pid
        self.line, self.door = _Line(line), door
        self.ready: Said | None = None
        self.given: deque[tuple[int, socket.socket]] = deque()
        """What it has not taken yet."""
        self.open = 0
        """Connections that it has, and those on their way to it."""
        self.owes = 0
        """Answers to what it was told."""
        self.began = self.heard = now
        self.stopped: float | None = None
        """By the system, since when."""
        self.full = False
        """Until it says something."""
        self.ended = False

    @property
    def takes(self) -> bool:
        able = self.ready is not None and self.stopped is None and not (self.full or self.ended)
        return able and len(self.given) < MOST_GIVEN

    def load(self, now: float) -> tuple[bool, int]:
        return now - self.heard > QUIET_S, self.open


class Parent:
    def __init__(self, count: int, arguments: Sequence[str], supervisor: socket.socket | None) -> None:
        self.count = count
        self.arguments = list(arguments)
        self.shared = Shared()
        self.supervisor = _Line(supervisor) if supervisor is not None else None
        self.children: dict[int, Child] = {}
        """By the number of each."""
        self.ports: dict[socket.socket, int] = {}
        self.replaced = 0
        self.said_ready = False
        self.homeless: deque[tuple[int, socket.socket]] = deque()
        """Accepted, and given back by a worker that died."""
        self.due: dict[int, float] = {}
        """When a worker that is missing is to be started."""
        self._pauses: dict[int, float] = {}
        self._missed: dict[int, float] = {}
        """Since when."""
        self._telling = False
        self._accepts = False
        self._ending: float | None = None
        self._code = 0
        self._last = -1
        """Who was given a connection last."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = socket.socketpair()

    # From beginning to end

    def run(self) -> int:
        """The exit code. In a worker it raises `_IsWorker` instead."""
        self._hear_signals()
        try:
            for host, port in _listens(self.arguments):
                self._listen(host, port)
        except OSError as error:
            self._note(f"cannot listen: {error.strerror}")
            return 1
        if self.supervisor is not None:
            self._watch(self.supervisor.link, self._hear_supervisor)
        self.due[0] = 0.0
        while not (self._ending is not None and not self.children):
            now = time.monotonic()
            self._look_after(now)
            self._let_in(now)
            for key, _ in self._selector.select(self._patience(now)):
                key.data()
            self._forgive(now)
        return self._code

    def _look_after(self, now: float) -> None:
        for child in list(self.children.values()):
            frozen = child.stopped is not None and now - child.stopped >= FROZEN_S
            silent = now - child.heard >= (SILENT_S if child.ready is not None else _READY_S)
            if self._ending is not None:
                frozen, silent = frozen or now >= self._ending, False
            if (frozen or silent) and not child.ended:
                child.ended = True
                if silent:
                    self._note(f"worker {child.number + 1} ({child.pid}) says nothing any more")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
        if self._ending is None:
            for number in [number for number, due in self.due.items() if now >= due]:
                del self.due[number]
                self._fork(number, now)

    def _patience(self, now: float) -> float:
        ends = [child.stopped + FROZEN_S for child in self.children.values() if child.stopped is not None and not child.ended]
        ends += [*self.due.values()] if self._ending is None else [self._ending]
        return max(0.0, min([1.0, *(end - now for end in ends)]))

    def _forgive(self, before: float) -> None:
        """Who stood still itself, or slept with the machine, blames nobody for silence."""
        now = time.monotonic()
        if now - before > 1.0 + _LATE_S:
            for child in self.children.values():
                child.heard = now

    def _end(self) -> None:
        if self._ending is None:
            self._ending = time.monotonic() + _STOP_S
            self._pause()
            for listener in self.ports:
                listener.close()
            for child in self.children.values():
                self._unwatch(child.line.link)
                child.line.link.close()  # it ends by that

    # Connections

    def _listen(self, host: str, port: int) -> None:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        self.ports[listener] = port
        if self._accepts:
            self._watch(listener, partial(self._accept, listener))

    def _let_in(self, now: float) -> None:
        """As long as somebody can take them."""
        while self.homeless and (child := self._least(now)) is not None:
            self._give(child, *self.homeless.popleft())
        able = self._ending is None and not self.homeless and self._least(now) is not None
        if able and not self._accepts:
            self._accepts = True
            for listener in self.ports:
                self._watch(listener, partial(self._accept, listener))
        elif not able:
            self._pause()

    def _pause(self) -> None:
        if self._accepts:
            self._accepts = False
            for listener in self.ports:
                self._unwatch(listener)

    def _accept(self, listener: socket.socket) -> None:
        now = time.monotonic()
        while (child := self._least(now)) is not None:
            try:
                link, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_FILES:
                    self._pause()  # until something has closed; the next look opens it again
                return
            self._give(child, self.ports[listener], link)

    def _least(self, now: float) -> Child | None:
        """Who has the fewest; of those that are level, each in turn."""
        able = [child for child in self.children.values() if child.takes]
        if not able:
            return None
        return min(able, key=lambda child: (*child.load(now), (child.number - self._last - 1) % self.count))

    def _give(self, child: Child, port: int, link: socket.socket) -> None:
        try:
            socket.send_fds(child.door, [GIVEN.pack(port)], [link.fileno()])
        except OSError:  # it has no room, or is dying
            child.full = True
            self.homeless.append((port, link))
            return
        child.given.append((port, link))
        child.open += 1
        self._last = child.number

    def _hear_door(self, child: Child) -> bool:
        """False where there is nothing more to hear."""
        try:
            said = child.door.recv(1 << 16)
        except BlockingIOError:
            return False
        except OSError:
            said = b""
        if not said:
            self._unwatch(child.door)
            return False
        taken, closed = said.count(TAKEN), said.count(CLOSED)
        if taken > len(child.given) or closed > child.open or said.count(BEAT) + taken + closed < len(said):
            self._speaks_nonsense(child)
            while child.given:  # it may have read of them what nobody else would see again: their callers hear at once
                child.given.popleft()[1].close()
            return False
        child.heard, child.full = time.monotonic(), False
        for _ in range(taken):
            child.given.popleft()[1].close()
        child.open -= closed
        return True

    def _speaks_nonsense(self, child: Child) -> None:
        """Something in it writes where only the house does: it ends, and not everybody with it."""
        self._unwatch(child.line.link)
        self._unwatch(child.door)
        if not child.ended:
            child.ended = True
            self._note(f"worker {child.number + 1} ({child.pid}) speaks nonsense to its parent")
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    # Workers

    def _fork(self, number: int, now: float) -> None:
        line, its_line = socket.socketpair()
        door, its_door = socket.socketpair()
        _read_config(self.arguments)
        _look_through_key(self.arguments)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            line.close()
            door.close()
            self._leave_to_parent()
            raise _IsWorker(number, its_line, its_door)
        its_line.close()
        its_door.close()
        for link in (line, door):
            link.setblocking(False)
        child = self.children[number] = Child(number, pid, line, door, now)
        self._watch(line, lambda: self._hear_line(child))
        self._watch(door, lambda: self._hear_door(child))

    def _leave_to_parent(self) -> None:
        """In a worker: what is its parent's, and other workers'."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        links = [self._woken, self._wakes, *self.ports, *(link for _, link in self.homeless)]
        for child in self.children.values():
            links += [child.line.link, child.door, *(link for _, link in child.given)]
        if self.supervisor is not None:
            links.append(self.supervisor.link)
        for link in links:
            link.close()

    def _hear_line(self, child: Child) -> None:
        try:
            said = child.line.hear()
        except (ValueError, RecursionError):
            self._speaks_nonsense(child)
            return
        if said is None:
            self._unwatch(child.line.link)
            return
        for one in said:
            child.heard = time.monotonic()
            if child.ready is None:
                child.ready = one
                self._is_ready(child)
            else:
                child.owes -= 1
        self._answer_supervisor()

    def _is_ready(self, child: Child) -> None:
        self._pauses.pop(child.number, None)
        if (since := self._missed.pop(child.number, None)) is not None:
            self._note(f"worker {child.number + 1} is back as {child.pid}, after {time.monotonic() - since:.2f} s")
        if len(self.children) + len(self.due) < self.count:  # the first one found everything in order
            self.due |= {number: 0.0 for number in range(self.count) if number not in self.children}
        if not self.said_ready and sum(child.ready is not None for child in self.children.values()) == self.count:
            self.said_ready = True
            self._note(f"{self.count} workers serve")
            if self.supervisor is not None:
                self.supervisor.say({**(child.ready or {}), "workers": self.count})

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | getattr(os, "WCONTINUED", 0))
            except ChildProcessError:
                return
            if not pid:
                return
            child = next((child for child in self.children.values() if child.pid == pid), None)
            if child is None:
                continue
            if os.WIFSTOPPED(status):
                child.stopped = time.monotonic()
                self._note(f"worker {child.number + 1} ({pid}) was stopped")
            elif hasattr(os, "WIFCONTINUED") and os.WIFCONTINUED(status):
                child.stopped, child.heard = None, time.monotonic()
            else:
                self._bury(child, os.waitstatus_to_exitcode(status))

    def _bury(self, child: Child, code: int) -> None:
        child.ended = True
        while self._hear_door(child):
            pass  # what it had still said
        self._unwatch(child.line.link)
        self._unwatch(child.door)
        child.line.link.close()
        child.door.close()
        del self.children[child.number]
        self.homeless.extend(child.given)
        if self._ending is not None:
            self._answer_supervisor()
            return
        lost = child.open - len(child.given)
        if child.ready is None and not self.said_ready and not child.number:
            self._code = code or 1  # it has said why
            self._end()
            return
        self.replaced += 1
        self._missed.setdefault(child.number, time.monotonic() if child.stopped is None else child.stopped)
        pause = 0.0
        if child.ready is None:
            pause = self._pauses[child.number] = min(_LONGEST_PAUSE_S, self._pauses.get(child.number, 0.0) * 2 + 0.2)
        self.due[child.number] = time.monotonic() + pause
        had = f" with {lost} connection{'' if lost == 1 else 's'}" if lost else ""
        self._note(f"worker {child.number + 1} ({child.pid}) ended with {code}{had}; another one takes its place")
        self._answer_supervisor()

    # The supervisor

    def _hear_supervisor(self) -> None:
        assert self.supervisor is not None
        said = self.supervisor.hear()
        if said is None:
            self._unwatch(self.supervisor.link)
            self._end()
            return
        for one in said:
            self._obey(one)

    def _obey(self, said: Said) -> None:
        """Each worker is told, and so is each that comes later."""
        os.environ.update(said.get("variables") or {})
        for mode in said.get("modes") or []:
            if mode not in self.arguments:
                self.arguments += ["--mode", mode]
                with contextlib.suppress(OSError):  # taken meanwhile: whoever asks for it is refused, as by one process
                    self._listen(*_listens(["--mode", mode])[0])
        self._telling = True
        if "variables" in said or "modes" in said:
            for child in self.children.values():
                child.owes += 1
                child.line.say(said)
        self._answer_supervisor()

    def _answer_supervisor(self) -> None:
        """Once all have heard."""
        if self._telling and not any(child.owes > 0 for child in self.children.values()):
            self._telling = False
            if self.supervisor is not None:
                workers = [{"pid": child.pid, "connections": child.open} for _, child in sorted(self.children.items())]
                self.supervisor.say({"heard": True, "workers": workers, "replaced": self.replaced})

    # Small things

    def _watch(self, link: socket.socket, hear: Callable[[], object]) -> None:
        self._selector.register(link, selectors.EVENT_READ, hear)

    def _unwatch(self, link: socket.socket) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(link)

    def _hear_signals(self) -> None:
        for link in (self._woken, self._wakes):
            link.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, _heard)
        self._watch(self._woken, self._hear_signal)

    def _hear_signal(self) -> None:
        if signal.SIGTERM in self._woken.recv(4096):
            self._end()
        self._reap()

    def _note(self, line: str) -> None:
        print(f"[{time.strftime('%H:%M:%S')}] routecodex: {line}", flush=True)


def _heard(*_: object) -> None:
    pass  # the loop reads which it was


def _listens(arguments: Sequence[str]) -> list[tuple[str, int]]:
    """Where mitmproxy would listen, by its own arguments."""
    host, port, modes = "", 8080, []
    for name, value in pairwise(arguments):
        match name:
            case "--listen-host":
                host = value
            case "--listen-port" | "-p":
                port = int(value)
            case "--mode" | "-m":
                modes.append(value)
    found = []
    for mode in modes or ["regular"]:
        _, at, place = mode.rpartition("@")
        own_host, _, own_port = place.rpartition(":") if at else ("", "", "")
        found.append((own_host or host, int(own_port) if own_port.isdigit() else port))
    return found


def _import_everything() -> None:
    """But for commands, and what starts something when it is imported. What is made at the first use is used once."""
    import mitmproxy.options
    import mitmproxy.tools.dump
    import mitmproxy.tools.main

    house = __name__.partition(".")[0]
    for room in ("routing", "addons"):
        package = importlib.import_module(f"{house}.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".commands." not in found.name and not found.name.endswith((".__main__", "addons.routecodex")):
                with contextlib.suppress(ImportError):  # an extra that is not there
                    importlib.import_module(found.name)
    mitmproxy.options.Options()


def _make_token() -> None:
    """The page's: whoever has it open, or asks it for numbers, goes on when the worker that serves it has died."""
    from ..window import alone

    alone.token()


def _look_through_key(arguments: Sequence[str]) -> None:
    """The authority's key is checked here, once for all workers: that alone takes half as long as everything else of a start."""
    from mitmproxy import certs

    given = "confdir="
    confdir = next((value.removeprefix(given) for value in arguments if value.startswith(given)), "~/.mitmproxy")
    if not hasattr(certs.load_pem_private_key, "cache_info"):
        certs.load_pem_private_key = cache(certs.load_pem_private_key)
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        certs.load_pem_private_key((Path(confdir).expanduser() / "mitmproxy-ca.pem").read_bytes(), None)


def _read_config(arguments: Sequence[str]) -> None:
    """The configuration is read here, once for all workers: they find it as it was. What is wrong with it they say themselves."""
    from ...routing import config
    from ...routing.errors import ConfigError

    given = "routecodex_config="
    chosen = next((value.removeprefix(given) for value in arguments if value.startswith(given)), "")
    with contextlib.suppress(ConfigError, OSError, RuntimeError):
        config.load(config.find(chosen, os.environ, Path.home(), ROOT), os.environ)


def main(words: Sequence[str]) -> int:
    """`prefork COUNT ARGUMENT…`: the arguments are mitmdump's."""
    count, arguments = int(words[0]), list(words[1:])
    given = os.environ.pop(LEASH, "")
    supervisor = socket.socket(fileno=int(given)) if given else None
    if supervisor is not None:
        supervisor.setblocking(False)
        os.set_inheritable(supervisor.fileno(), False)
    _import_everything()
    _make_token()
    gc.collect()
    gc.freeze()
    parent = Parent(count, arguments, supervisor)
    try:
        return parent.run()
    except _IsWorker as found:
        worker = Worker(found.number, count, found.door, parent.shared, os.getppid())
        line, arguments = found.line, parent.arguments
    return _become(worker, line, arguments)


def _become(worker: Worker, line: socket.socket, arguments: Sequence[str]) -> NoReturn:
    import asyncio

    from mitmproxy.proxy import mode_servers
    from mitmproxy.tools.main import mitmdump

    worker_side.here = worker
    worker.at_beat = worker_side.flush_saved
    os.environ[LEASH] = str(line.detach())
    sys.stdout = sys.stderr = Lines(1)
    asyncio.start_server = worker.start_server  # type: ignore[assignment]
    mode_servers.mitmproxy_rs.udp.start_udp_server = worker.start_udp_server  # type: ignore[assignment]
    sys.argv = ["mitmdump", *arguments]
    mitmdump()
    sys.exit(0)
