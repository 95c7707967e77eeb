"""Start a tool through the proxy: `routecodex run claude`. What stands behind the tool's name is the tool's own.

The proxy is started if it does not run, and ends with the last tool that was started this way (unless `routecodex start` keeps
it). The exit code is the tool's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType

from ....routing.clients.client import Client
from ... import hello
from .. import surroundings
from ..background import options, question, ready, url
from ..line import Line, reach
from ..places import places
from ..say import Failed, note

_PASSED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
_TYPED = ("SIGINT", "SIGQUIT", "SIGWINCH")


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--base-url", action="store_true", help="by the tool's base URL, for one that cannot use a proxy")
    parser.add_argument("tool", nargs=argparse.REMAINDER, help="the tool and its own arguments")


def act(given: argparse.Namespace) -> int:
    from ....routing.clients.programs import client_of_program, nearest_programs

    words: list[str] = given.tool[1:] if given.tool[:1] == ["--"] else given.tool
    if not words:
        raise Failed("which tool?", "for instance: routecodex run claude", code=2)
    program = shutil.which(words[0])
    if program is None:
        near = next((one for one in nearest_programs(words[0]) if shutil.which(one)), "")
        hint = f"did you mean `routecodex run {near}`?" if near else "install it, or give its whole path"
        raise Failed(f"{words[0]} is not installed, or not on the PATH", hint, code=127)
    client = client_of_program(words[0])
    proxy, known = surroundings.upstream(places(), os.environ)
    if given.base_url:
        return _by_base_url(given, client, program, words, proxy if known is None else "")
    if known is not None:
        note(f"the proxy at {surroundings.without_password(proxy)} is RouteCodex already: {words[0]} goes through that one")
        return _with(client, program, words, proxy, known)
    line, said, known = ready("lease", given, proxy)
    if said["web"]:
        note(f"look at each call: {said['web']}")
    lease = Lease(line, question("lease", given, places(), proxy))
    try:
        return _with(client, program, words, url(said), known)
    finally:
        lease.close()


def _by_base_url(given: argparse.Namespace, client: Client, program: str, words: list[str], proxy: str) -> int:
    """The tool asks us in the place of its provider. What it does only with its provider's own address, it does not do."""
    if not client.bases:
        raise Failed(f"{words[0]} takes no address from its environment", f"routecodex run {words[0]}", code=2)
    bases = [address for address, _ in client.bases.values()]
    line, said, _ = ready("lease", given, proxy, bases)
    found = surroundings.Way()
    for name, (address, path) in client.bases.items():
        here = f"http://127.0.0.1:{said['bases'][address]}{path}"
        if name.startswith("-"):
            words = [words[0], *name.format(here).split(), *words[1:]]
        else:
            found.set[name] = here
    if client.loses:
        found.said.append(
            f"behind another address {client.title} {client.loses}; with `routecodex run {client.programs[0]}` that is not so"
        )
    lease = Lease(line, question("lease", given, places(), proxy, bases))
    try:
        return _start(found, client, program, words)
    finally:
        lease.close()


class Lease:
    """As long as it is open the proxy runs. A supervisor that dies takes the proxy along: then another one is asked for; one that
    somebody stopped stays so."""

    def __init__(self, line: Line, asked: dict[str, object]) -> None:
        self._line, self._asked = line, asked
        self._closed = threading.Event()
        threading.Thread(target=self._renew, daemon=True).start()

    def _renew(self) -> None:
        while True:
            stopped = self._line.wait_for_end()
            if stopped or self._closed.is_set():
                return
            try:
                self._line, _ = reach(places(), self._asked)
            except Failed as failed:
                note(f"the proxy is gone and does not come back: {failed.what}")
                return
            if self._closed.is_set():
                self._line.close()
                return

    def close(self) -> None:
        self._closed.set()
        self._line.close()


def _with(client: Client, program: str, words: list[str], proxy: str, known: hello.Hello) -> int:
    return _start(surroundings.way(client, proxy, known, places(), os.environ), client, program, words)


def _start(found: surroundings.Way, client: Client, program: str, words: list[str]) -> int:
    from ....routing.clients.programs import arguments as begun

    for line in found.said:
        note(line)
    command = [words[0], *begun(client, words[1:])]
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []
    """What came while the tool began: it may have said something already."""

    def hand_on(number: int, _: FrameType | None) -> None:
        if child is None:
            early.append(number)
        elif child.poll() is None:
            child.send_signal(number)

    _pass_signals(hand_on)
    waking = _wakes()
    try:
        child = subprocess.Popen(command, executable=program, env=surroundings.environment(found))
    except OSError as error:
        raise Failed(f"{program} cannot be started: {error.strerror}", code=126) from None
    for number in early:
        hand_on(number, None)
    code = _end_of(child, waking)
    return code if code >= 0 else 128 - code


def _wakes() -> socket.socket | None:
    """Readable when a signal has come, or the tool has ended.

    The system hands a signal to any thread, but only the first one acts on it, and a wait for a process would not wake up.
    """
    if not hasattr(signal, "SIGCHLD"):
        return None
    waking, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _leave)
    return waking


def _end_of(child: subprocess.Popen[bytes], waking: socket.socket | None) -> int:
    while waking is not None and child.poll() is None:
        waking.recv(4096)
    return child.wait()


def _pass_signals(hand_on: Callable[[int, FrameType | None], None]) -> None:
    """Signals are the tool's. What a terminal sends reaches it by itself where it stands in the same one."""
    typed = _leave if _in_the_foreground() else hand_on
    for names, handler in ((_PASSED, hand_on), (_TYPED, typed)):
        for name in names:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), handler)


def _leave(_: int, __: FrameType | None) -> None:
    pass  # never SIG_IGN: the tool would inherit that


def _in_the_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError, AttributeError):
        return False
