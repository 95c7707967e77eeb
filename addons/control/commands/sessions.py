"""The sessions that have something in force: `sessions`, `sessions show ID`, `sessions clear ID`, `sessions clear --all`.

The beginning of an id is enough. `clear` erases all that is stored of a session: its tags, reminders, hidden rounds.
"""

from __future__ import annotations

import argparse
import socket
import time
from pathlib import Path
from typing import Any

from .. import servers
from ..say import Failed, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("list", "show", "clear"), default="list")
    parser.add_argument("id", nargs="?", default="", help="the session's id, or how it begins")
    parser.add_argument("--all", action="store_true", help="with clear: every session")
    parser.add_argument("--server", default="", metavar="ID", help="one server's (default: all)")


def act(given: argparse.Namespace) -> int:
    if given.what == "list":
        return _list(given)
    if given.what == "show" and (given.all or not given.id):
        raise Failed("which session?", "routecodex sessions show ID; `routecodex sessions` names them", code=2)
    if given.what == "clear" and bool(given.id) == given.all:
        raise Failed("which session?", "routecodex sessions clear ID, or --all", code=2)
    return _show(given) if given.what == "show" else _clear(given)


def _places(given: argparse.Namespace) -> list[servers.Server]:
    found = [server for server in servers.known() if not given.server or server.id == given.server]
    if given.server and not found:
        raise Failed(f"there is no server {given.server}", "`routecodex sessions` names them", code=1)
    # Several servers may share one folder.
    return list({server.folder: server for server in found}.values())


def _ask(server: servers.Server, verb: str, id: str = "") -> servers.Said:
    """Of the server while it runs; of its files when it does not."""
    try:
        return server.exchange(verb, {"id": id}) if hasattr(socket, "AF_UNIX") else _of_files(server.folder, verb, id)
    except servers.Gone:
        return _of_files(server.folder, verb, id)


def _of_files(folder: Path, verb: str, id: str) -> dict[str, Any]:
    from ....routing.control import kept
    from ....routing.errors import RouteCodexError

    try:
        match verb:
            case "sessions":
                return {"sessions": [one.told for one in kept.sessions(folder)]}
            case "session":
                return kept.session(folder, id)
            case "clear session":
                return {"erased": kept.clear(folder, id)}
        return {"erased": kept.clear_all(folder)}
    except RouteCodexError as error:
        return {"error": error.message, "code": error.code}


def _list(given: argparse.Namespace) -> int:
    found = [{"server": server.id, **one} for server in _places(given) for one in _ask(server, "sessions").get("sessions", ())]
    if given.json:
        print_json({"sessions": found})
        return 0
    if not found:
        print("No session has anything in force: a tag such as <**!glm**> in a chat changes that.")
        return 0
    for one in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one["changed"]))
        print(f"{when}  {one['client'] or 'unknown tool':12}  {one['id'][:24]:24}  {one['begins']}")
        for line in one["inForce"]:
            print(f"    {line}")
    return 0


def _show(given: argparse.Namespace) -> int:
    said = _the_one(given, "session")
    if given.json:
        print_json(said)
        return 0
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["changed"]))
    rows = {"Session": said["id"], "Server": said["server"], "Tool": said["client"] or "unknown", "Changed": when}
    rows |= {"Begins": said["begins"], "Reminders": said["reminders"], "Hidden rounds": said["hiddenRounds"]}
    for name, value in rows.items():
        print(f"{name + ':':14} {value}")
    for line in said["inForce"] or ["Nothing is in force."]:
        print(line)
    for path in said["files"]:
        print(f"  {path}")
    return 0


def _clear(given: argparse.Namespace) -> int:
    if given.all:
        erased = [name for server in _places(given) for name in _checked(_ask(server, "clear sessions"))["erased"]]
    else:
        erased = _the_one(given, "clear session")["erased"]
    if given.json:
        print_json({"erased": erased})
    else:
        print(f"Erased: {len(erased)} {'file' if len(erased) == 1 else 'files'}." if erased else "There was nothing to erase.")
    return 0


def _the_one(given: argparse.Namespace, verb: str) -> servers.Said:
    """Of the server that knows it. Failed where none does, or more than one."""
    errors = []
    for server in _places(given):
        said = _ask(server, verb, given.id)
        if "error" not in said:
            return {"server": server.id, **said}
        errors.append(said)
    worst = next((said["error"] for said in errors if "begin with" in said["error"]), None)
    raise Failed(
        worst or f"nothing is stored of a session {given.id}", "`routecodex sessions` names those with something in force"
    )


def _checked(said: servers.Said) -> servers.Said:
    if "error" in said:
        raise Failed(str(said["error"]), "")
    return said
