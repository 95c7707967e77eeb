"""End the proxy. While tools run through it, it ends with the last of them; --now ends it at once."""

from __future__ import annotations

import argparse

from ..line import ask
from ..places import places
from ..say import print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--now", action="store_true", help="also while tools run through it: answers that have begun are lost")


def act(given: argparse.Namespace) -> int:
    said = ask(places(), {"want": "stop", "now": given.now})
    if given.json:
        print_json(
            {
                "running": bool(said and not said["ends"]),
                "stopped": bool(said and said["ends"]),
                "tools": said["tools"] if said else 0,
            }
        )
    elif said is None:
        print("The proxy does not run.")
    elif said["ends"]:
        print("The proxy ends.")
    else:
        tools = "1 tool runs" if said["tools"] == 1 else f"{said['tools']} tools run"
        print(f"{tools} through the proxy: it ends with the last (routecodex stop --now ends it at once).")
    return 0
