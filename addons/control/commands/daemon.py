"""Look at and change what holds for all sessions of the running servers, under what each session says itself.

  routecodex daemon status routing
  routecodex daemon set routing --sticky glm.glm-4.7
  routecodex daemon set routing --disable openai.1,glm
  routecodex daemon set routing --enable glm --server 127.0.0.1_8080
  routecodex daemon set routing --clear

Targets are written as in tags, with or without their mark. In an interactive bash a ! needs single quotes: '!glm.glm-4.7'.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .. import servers
from ..say import Failed, print_json

NOT_RUNNING = 3


class Order(argparse.Action):
    """Options in the order they are typed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        given: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option: str | None = None,
    ) -> None:
        given.orders = [*(given.orders or []), [str(option).removeprefix("--"), values or ""]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", default="", metavar="status|set")
    parser.add_argument("which", nargs="?", default="routing", choices=("routing",), metavar="routing")
    parser.add_argument("--server", default="", metavar="ID", help="one server (default: all that run)")
    parser.set_defaults(orders=None)
    for name, hint in {
        "--sticky": "keep to this target: provider.model or provider.key.model",
        "--disable": "do not use these: provider, provider.N, provider.key, provider.model",
        "--enable": "use these again",
        "--allow": "use these providers only",
    }.items():
        parser.add_argument(name, metavar="TARGET", action=Order, help=hint)
    parser.add_argument("--clear", action=Order, nargs=0, help="take everything back that was set this way")


def act(given: argparse.Namespace) -> int:
    if given.what not in ("status", "set"):
        raise Failed("what is to be done?", "routecodex daemon status routing, or daemon set routing --sticky TARGET", code=2)
    if given.what == "status":
        if given.orders:
            raise Failed("`status` changes nothing", "routecodex daemon set routing …", code=2)
        return _status(given)
    if not given.orders:
        raise Failed("what is to be set?", "--sticky, --disable, --enable, --allow or --clear", code=2)
    found = servers.chosen(given.server)
    # A target that one of them does not know changes nothing at any of them.
    servers.at_all(found, "set routing", {"orders": given.orders, "try": True})
    said = servers.at_all(found, "set routing", {"orders": given.orders})
    if given.json:
        print_json({"servers": said})
        return 0
    for one in said:
        _show(one, [*one["changed"], *one["notes"]])
    return 0


def _status(given: argparse.Namespace) -> int:
    if not given.server and not servers.running():
        if given.json:
            print_json({"servers": []})
        else:
            print("No server runs.")
        return NOT_RUNNING
    said = servers.at_all(servers.chosen(given.server), "routing")
    if given.json:
        print_json({"servers": said})
        return 0
    for one in said:
        _show(one, [*(one["routing"]["lines"] or ["Nothing is set for all sessions: each one's own tags hold."]), *one["notes"]])
    return 0


def _show(said: servers.Said, lines: list[str]) -> None:
    print(f"{said['server']}:")
    for line in lines:
        print(f"  {line}")
