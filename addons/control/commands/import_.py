"""Make your configuration from a RouteCodex config.json: providers, keys, routes, in the spelling that is used here.

What is not used here is named. Your configuration is not overwritten without --force.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .. import places
from ..say import Failed, print_json
from ..writing import read_text, write


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="", help="the config.json")
    parser.add_argument("--out", metavar="FILE", default="", help="write there (default: ~/.config/routecodex/mitm-config.yaml)")
    parser.add_argument("--force", action="store_true", help="also over what is there")


def act(given: argparse.Namespace) -> int:
    from ....routing.config import load
    from ....routing.config.rewrite import rewritten
    from ....routing.control.routes import route_lines
    from ....routing.errors import ConfigError

    if not given.file:
        raise Failed("which file?", "routecodex import ~/.routecodex/config.json", code=2)
    source = Path(given.file).expanduser()
    target = Path(given.out).expanduser().absolute() if given.out else places.own_config()
    text = read_text(source)
    if target.exists() and not given.force:
        raise Failed(f"{target} is there already", "--force writes over it, --out FILE elsewhere; nothing was changed")
    try:
        config = load(source, os.environ)
        new = rewritten(text, source.name)
    except ConfigError as error:
        raise Failed(f"{source} cannot be imported:\n{error.message}", "mend it there; nothing was changed") from None
    write(target, new)
    again = load(target, os.environ)
    if (again.registry.providers, again.registry.routes) != (config.registry.providers, config.registry.routes):
        target.unlink()
        raise Failed(f"{source} does not come out as it was", "please report it; nothing was kept")
    if given.json:
        names = [name for name in again.registry.providers if name not in ("origin", "echo")]
        print_json({"config": str(target), "providers": names, "warnings": list(config.warnings)})
        return 0
    print(f"{target} is written (its owner's alone: it may hold keys).")
    for line in config.warnings:
        print(f"  {line}")
    print("Where calls go:")
    for line in route_lines(again.registry):
        print(f"  {line}")
    return 0
