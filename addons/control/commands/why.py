"""Where a session's last call went, and why, what it cost, and why its cache was lost: `why`, `why ID`."""

from __future__ import annotations

import argparse

from .. import servers
from ..say import Failed, print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", help="the session's id, or how it begins (default: the last call of all)")
    parser.add_argument("--server", default="", metavar="ID", help="one server's (default: the first that knows it)")


def act(given: argparse.Namespace) -> int:
    worst = ""
    for server in servers.chosen(given.server):
        try:
            said = server.exchange("why", {"id": given.id})
        except servers.Gone:
            continue
        if "error" in said:
            worst = worst or str(said["error"])
            continue
        if given.json:
            print_json({"server": server.id, **said})
        else:
            print(f"Session {said['session']}")
            for line in said["lines"]:
                print(line)
        return 0
    raise Failed(worst or "its server ended just now", "a server remembers its calls while it runs")
