"""The servers of one person, asked at their control sockets. Standard library only: a status line asks many times a minute."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from .say import Failed
from .sockets import socket_path, user_folder

Said: TypeAlias = dict[str, Any]
LIMIT_S = 15.0


class Gone(Exception):
    """Nobody answers at the socket: its server has ended."""


class Server:
    def __init__(self, id: str, folder: Path) -> None:
        self.id, self.folder = id, folder

    @property
    def socket(self) -> Path:
        return socket_path(self.folder, self.id)

    def ask(self, verb: str, given: Mapping[str, object] | None = None, limit_s: float = LIMIT_S) -> Said:
        """Raises Failed where the server says no, Gone where there is none."""
        said = self.exchange(verb, given, limit_s)
        if "error" in said:
            raise Failed(f"{self.id}: {said['error']}", "nothing was changed")
        return said

    def exchange(self, verb: str, given: Mapping[str, object] | None = None, limit_s: float = LIMIT_S) -> Said:
        heard = bytearray()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(limit_s)
                link.connect(str(self.socket))
                link.sendall(json.dumps({"verb": verb, **(given or {})}).encode() + b"\n")
                while chunk := link.recv(65_536):
                    heard += chunk
        except TimeoutError:
            raise Failed(f"the server {self.id} does not answer", "its log may say why") from None
        except OSError:
            raise Gone from None
        try:
            said: Said = json.loads(heard)
        except ValueError:
            raise Gone from None
        return said


def needs_sockets() -> None:
    if not hasattr(socket, "AF_UNIX"):
        raise Failed(
            "this system has no Unix sockets for Python: a running server cannot be reached", "use tags in the chat instead"
        )


def known() -> list[Server]:
    """Every server that has a folder, whether it runs or not."""
    named = os.environ.get("ROUTECODEX_SESSION_DIR")
    if named:
        folder = Path(named)
        ids = {path.stem for path in _paths(folder, "*.sock")} | {path.name[8:-5] for path in _paths(folder, "routing-*.json")}
        return [Server(id, folder) for id in sorted(ids)]
    return [Server(folder.name, folder) for folder in _paths(user_folder() / "sessions", "*") if folder.is_dir()]


def running() -> list[tuple[Server, Said]]:
    """Those that answer, with what they say of themselves."""
    needs_sockets()
    found = []
    for server in known():
        try:
            found.append((server, server.ask("status")))
        except Gone:
            continue
    return found


def chosen(id: str) -> list[Server]:
    """The one that is named, else all that run. Failed where there is none."""
    here = [server for server, _ in running()]
    if id and id not in [server.id for server in here]:
        names = ", ".join(server.id for server in here) or "none"
        raise Failed(
            f"no server {id} runs (running: {names})", "`routecodex daemon status routing` names them; nothing was changed"
        )
    found = [server for server in here if not id or server.id == id]
    if not found:
        raise Failed("no server runs", "`routecodex start`, or mitmdump -s addons/routecodex.py; nothing was changed")
    return found


def at_all(servers: Sequence[Server], verb: str, given: Mapping[str, object] | None = None) -> list[Said]:
    try:
        return [server.ask(verb, given) for server in servers]
    except Gone:
        raise Failed("a server ended just now", "ask again") from None


def _paths(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []
