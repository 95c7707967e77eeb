"""Claude Code's status line: where the last call really went, and what is in force. In ~/.claude/settings.json:

  {"statusLine": {"type": "command", "command": "routecodex statusline"}}

Claude Code hands its session on stdin; one line comes back. Whatever goes wrong, the line says it and the exit code is 0.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
from typing import Any

from .. import servers
from ..say import Failed, print_json

LIMIT_S = 0.5
_LONGEST = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    pass


def act(given: argparse.Namespace) -> int:
    session = _session()
    said = _ask(session)
    if given.json:
        print_json(said or {"running": False})
    else:
        print(line(said))
    return 0


def _session() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    try:
        told: Any = json.loads(sys.stdin.read(_LONGEST))
        return str(told["session_id"])
    except (ValueError, TypeError, KeyError):
        return ""


def _ask(session: str) -> servers.Said | None:
    """Of the server that knows the session, else of any that runs."""
    found = None
    for server in servers.known() if hasattr(socket, "AF_UNIX") else ():
        try:
            said = server.ask("line", {"session": session}, LIMIT_S)
        except (servers.Gone, Failed):
            continue
        if said["known"]:
            return said
        found = found or said
    return found


def line(said: servers.Said | None) -> str:
    if said is None:
        return "RouteCodex: not running"
    key = f"[{said['key']}]" if said["key"] and said["provider"] not in ("origin", "echo") else ""
    model = f".{said['model']}" if said["model"] else ""
    where = f"{said['provider']}{key}{model}" if said["provider"] else "no call yet"
    force = [text.rstrip(".") for text in said["session"]]
    force += [f"all: {text.rstrip('.')}" for text in said["all"]]
    return " · ".join((where, *force))
