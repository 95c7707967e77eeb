"""Print the exports that bring tools to the proxy by hand: eval "$(routecodex env)".

The proxy is started and kept until `routecodex stop`. Only exports stand on stdout.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import PurePath

from .. import surroundings
from ..background import options, ready, url
from ..places import places
from ..say import Failed, note, print_json

SHELLS = {
    "sh": lambda name, value: f"export {name}={shlex.quote(value)}",
    "bash": lambda name, value: f"export {name}={shlex.quote(value)}",
    "zsh": lambda name, value: f"export {name}={shlex.quote(value)}",
    "fish": lambda name, value: f"set -gx {name} {_fish(value)}",
    "powershell": lambda name, value: f"$env:{name} = {_powershell(value)}",
    "nu": lambda name, value: f"$env.{name} = {_nu(value)}",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--shell", choices=SHELLS, help="how exports are written (default: as $SHELL writes them)")
    parser.add_argument("tool", nargs="?", default="", help="only what this tool needs")


def act(given: argparse.Namespace) -> int:
    from ....routing.clients.programs import client_of_program
    from ....routing.clients.unknown import UNKNOWN

    proxy, known = surroundings.upstream(places(), os.environ)
    if known is None:
        line, said, known = ready("keep", given, proxy)
        line.close()
        proxy = url(said)
    client = client_of_program(given.tool) if given.tool else UNKNOWN
    found = surroundings.way(client, proxy, known, places(), os.environ)
    for told in found.said:
        note(told)
    if given.json:
        print_json({"variables": found.set, "notes": found.said})
        return 0
    write = SHELLS[given.shell or _usual()]
    for name, value in found.set.items():
        print(write(name, value))
    if sys.stdout.isatty():
        note('eval "$(routecodex env)" sets them in your shell; the proxy stays until `routecodex stop`')
    return 0


def _usual() -> str:
    name = PurePath(os.environ.get("SHELL", "")).name
    return name if name in SHELLS else "sh"


def _fish(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _powershell(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _nu(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    if "`" in value:
        raise Failed("a value cannot be written for nu", "use --json", code=1)
    return f"`{value}`"
