"""The line to the supervisor: one question, one answer, each a line of JSON; it stays open where the answer is a lease.

1. Nobody there: a supervisor is started, by one of all who want one at the same time.
2. One that is just ending closes the line without a word: then it is asked anew, or its follower is.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from ...routing.storage.lock import FileLock, Taken
from .places import MAIN, Places
from .say import Failed

Said: TypeAlias = dict[str, Any]

LIMIT_S = 120.0
"""A machine that starts ten proxies' worth of tools at once is slow; nobody waits longer."""
_POLL_S = 0.02
STOPPED = b'{"error": "the proxy was stopped", "next": "`routecodex run` starts it again"}\n'
"""Said to whoever holds the proxy open, or waits for it, where it ends all the same."""


class Line:
    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def ask(self, question: Mapping[str, Any]) -> Said | None:
        """None: whoever was there left without a word."""
        try:
            self._link.sendall(json.dumps(question).encode() + b"\n")
            heard = bytearray()
            while not heard.endswith(b"\n"):
                if not (chunk := self._link.recv(65_536)):
                    return None
                heard += chunk
        except TimeoutError:
            raise Failed("the proxy in the background does not answer", "`routecodex log` may say why") from None
        except OSError:
            return None
        said: Said = json.loads(heard)
        return said

    def wait_for_end(self) -> bool:
        """Until the supervisor is gone. Whether somebody stopped it: nothing else is said on this line any more."""
        self._link.settimeout(None)
        heard = b""
        try:
            while chunk := self._link.recv(4096):
                heard += chunk
        except OSError:
            pass
        return STOPPED in heard

    def close(self) -> None:
        """Wakes whoever waits for the end, too."""
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._link.close()


def connect(places: Places) -> Line | None:
    if not hasattr(socket, "AF_UNIX"):
        raise Failed("the proxy in the background needs a system with Unix sockets", "start `mitmdump` by hand: see the README")
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(LIMIT_S)
    try:
        link.connect(str(places.line))
    except OSError:
        link.close()
        return None
    return Line(link)


def ask(places: Places, question: Mapping[str, Any]) -> Said | None:
    """Of the supervisor that is there; None where there is none."""
    line = connect(places)
    if line is None:
        return None
    try:
        return line.ask(question)
    finally:
        line.close()


def reach(places: Places, question: Mapping[str, Any]) -> tuple[Line, Said]:
    """Of the supervisor that is there, or of a new one."""
    places.make()
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        line = connect(places) or _start(places, end)
        said = line.ask(question)
        if said is None:
            line.close()
            time.sleep(_POLL_S)
            continue
        if problem := said.get("error"):
            line.close()
            raise Failed(str(problem), str(said.get("next", "")))
        return line, said
    raise Failed("the proxy in the background does not start", f"{places.log} may say why")


def _start(places: Places, end: float) -> Line:
    try:
        with FileLock(places.starting, end - time.monotonic()):
            if (line := connect(places)) is not None:
                return line
            process = _spawn(places)
            while time.monotonic() < end:
                if (line := connect(places)) is not None:
                    return line
                if process.poll() == 0:  # somebody who only looked was there first, and left it without a use
                    process = _spawn(places)
                elif process.returncode is not None:
                    break
                time.sleep(_POLL_S)
    except Taken:
        pass
    raise Failed("the proxy in the background does not start", f"{places.log} may say why")


def _spawn(places: Places) -> subprocess.Popen[bytes]:
    """Of no terminal, and not in the folder where a person happens to be."""
    log = os.open(places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", str(MAIN), "supervise"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=places.run,
            env={**os.environ, "ROUTECODEX_USER_DIR": str(places.user)},
            start_new_session=True,
        )
    finally:
        os.close(log)
