"""The sessions that have something in force: `sessions`, `sessions show ID`, `sessions clear ID`, `sessions clear --all`.

The beginning of an id is enough. `clear` erases all that is stored of a session: its tags, reminders, hidden rounds.
`sessions export FILE` and `sessions import FILE` bring conversations from files to Redis (`--store`), or back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from .. import servers
from ..places import config_file
from ..say import Failed, print_json, unless_full

if TYPE_CHECKING:
    from ....routing.storage.contract import Store

_KEPT_S = 30 * 86_400.0
"""Until a proxy that uses what was imported says otherwise."""
_ASK_FIRST = "`routecodex start`, then once more"
_NOT_THERE = "NO_SESSION"
"""What a server says that knows of no such session, or of several."""
_LONGEST_LINE = 256 << 20
_LARGEST_IMPORT = 1 << 30


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("list", "show", "clear", "export", "import"), default="list")
    parser.add_argument(
        "id", nargs="?", default="", help="the session's id, or how it begins; of export and import a file (-: here)"
    )
    parser.add_argument("--store", default="", metavar="URL", help="with export and import: a Redis instead of files")
    parser.add_argument("--all", action="store_true", help="with clear: every session")
    parser.add_argument("--server", default="", metavar="ID", help="one server's (default: all)")


def act(given: argparse.Namespace) -> int:
    if given.what == "list":
        return _list(given)
    if given.what in ("export", "import"):
        return _move(given)
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
        said = server.exchange(verb, {"id": id}) if hasattr(socket, "AF_UNIX") else _of_files(server.folder, verb, id)
    except servers.Gone:
        said = _of_files(server.folder, verb, id)
    if "error" in said and said.get("code") != _NOT_THERE:  # that nothing is there is not known
        raise Failed(f"{server.id}: {said['error']}", "`routecodex doctor` looks for the cause")
    return said


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
    found = [{"server": server.id, **one} for server in _places(given) for one in _ask(server, "sessions")["sessions"]]
    if not found:
        _look_elsewhere()
    if given.json:
        print_json({"sessions": found})
        return 0
    if not found:
        print("No session has anything in force: a tag such as <**!glm**> in a chat changes that.")
        return 0
    for one in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one["changed"])) if one["changed"] else " " * 16
        print(f"{when}  {one['client'] or 'unknown tool':12}  {one['id'][:24]:24}  {one['begins']}")
        for line in one["inForce"]:
            print(f"    {line}")
    return 0


def _show(given: argparse.Namespace) -> int:
    said = _the_one(given, "session")
    if given.json:
        print_json(said)
        return 0
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["changed"])) if said["changed"] else "unknown"
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
        erased = [name for server in _places(given) for name in _ask(server, "clear sessions")["erased"]]
    else:
        erased = _the_one(given, "clear session")["erased"]
    if not erased:
        _look_elsewhere()
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
    if (worst := next((said["error"] for said in errors if "begin with" in said["error"]), None)) is None:
        _look_elsewhere()
    raise Failed(
        worst or f"nothing is stored of a session {given.id}", "`routecodex sessions` names those with something in force"
    )


def _look_elsewhere() -> None:
    """Files know nothing of what lies in a Redis: only a proxy that runs can be asked for that."""
    if not (hasattr(socket, "AF_UNIX") and servers.running()) and _lie_in_redis():
        raise Failed("sessions lie in the Redis that sessions.store names, and no proxy runs that could be asked", _ASK_FIRST)


def _lie_in_redis() -> bool:
    from ....routing.config import load
    from ....routing.errors import ConfigError

    with contextlib.suppress(ConfigError):
        return load(config_file(), os.environ).store != "files"
    return False


def _move(given: argparse.Namespace) -> int:
    from ....routing.errors import RouteCodexError

    if not given.id:
        raise Failed("which file?", f"routecodex sessions {given.what} FILE; - is the terminal", code=2)
    try:
        count = asyncio.run(_exported(given) if given.what == "export" else _imported(given))
    except RouteCodexError as error:
        raise Failed(error.message, "what was read or written before stays") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        done = "written" if given.what == "export" else "read"
        what = f"{error.filename or given.id} cannot be {done}: {error.strerror or error}"
        raise Failed(what, unless_full(error, "is its path right? what was read or written before stays")) from None
    except ImportError:
        raise Failed("Redis needs its client for Python", "pip install 'routecodex[redis]'") from None
    print(f"{given.what.capitalize()}ed: {count} {'entry' if count == 1 else 'entries'}.", file=sys.stderr)
    if not given.store and _lie_in_redis():
        print("Those are files; sessions.store names a Redis: --store with its URL means what lies there.", file=sys.stderr)
    return 0


async def _exported(given: argparse.Namespace) -> int:
    from ....routing.control import moving

    count = 0
    with contextlib.ExitStack() as stack:
        out = sys.stdout if given.id == "-" else stack.enter_context(_file(given.id, os.O_WRONLY | os.O_CREAT, "w"))
        if given.store:
            async with _opened(given.store) as store:
                async for put in moving.of_store(store):
                    out.write(moving.to_line(put))
                    count += 1
            return count
        for server in _places(given):
            for put in moving.of_files(server.folder):
                out.write(moving.to_line(put))
                count += 1
    return count


async def _imported(given: argparse.Namespace) -> int:
    from ....routing.control import moving

    with contextlib.ExitStack() as stack:
        lines = sys.stdin if given.id == "-" else stack.enter_context(_file(given.id, os.O_RDONLY, "r"))
        puts = moving.read_lines(_bounded(lines))
    if given.store:
        async with _opened(given.store) as store:
            return await moving.into_store(store, puts)
    places = _places(given)
    if len(places) != 1:
        raise Failed("into which server's files?", "--server ID; `routecodex status` names them", code=2)
    return moving.into_files(places[0].folder, puts)


def _file(path: str, how: int, mode: Literal["r", "w"]) -> TextIO:
    """A file and nothing else: a device has no end, a pipe may have no beginning. One that people's words go into is its owner's
    alone, also where it was there before, and nobody has put a link in its place."""
    if mode == "w":
        how |= getattr(os, "O_NOFOLLOW", 0)
    file = os.open(path, how | getattr(os, "O_NONBLOCK", 0), 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Failed(f"{path} is no file", "- reads from a pipe, or writes to one")
    if mode == "w":
        if hasattr(os, "fchmod"):
            os.fchmod(file, 0o600)
        os.ftruncate(file, 0)
    return open(file, mode, encoding="utf-8")


def _bounded(lines: TextIO) -> Iterator[str]:
    """Line by line, as far as that is text, and no longer than an entry may be."""
    read, number = 0, 0
    try:
        while line := lines.readline(_LONGEST_LINE):
            read, number = read + len(line), number + 1
            if read > _LARGEST_IMPORT or (len(line) == _LONGEST_LINE and not line.endswith("\n")):
                raise Failed(f"line {number} is longer than any of an export, or the file is; nothing was imported")
            yield line
    except UnicodeDecodeError:
        raise Failed(f"what follows line {number} is no text; nothing was imported") from None


@contextlib.asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Store]:
    """Nobody waits behind it: it may take its time."""
    from ....routing.config.hosts import check_store
    from ...redis_store import RedisStore, check

    try:
        check_store(url)
        check(url)
    except ValueError as error:
        raise Failed(f"--store: {error}", code=2) from None
    store = RedisStore(f"{url}{'&' if '?' in url else '?'}wait=30", retention_s=_KEPT_S)
    try:
        yield store
    finally:
        await store.close()
