"""Read the configuration as the proxy would: every mistake with its line, then what is odd, then where calls go.

Exit code 1 where there is a mistake: the proxy would not use this file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..places import config_file
from ..say import print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="", help="another file than the one in force")
    parser.add_argument("--config", metavar="FILE", default="", help="the same")


def act(given: argparse.Namespace) -> int:
    from ....routing.config import load
    from ....routing.control.routes import provider_lines, route_lines, route_table
    from ....routing.errors import ConfigError

    path = config_file(given.file or given.config)
    try:
        config = load(path, os.environ)
        mistakes = [line for plugin in config.plugins for line in _plugin(Path(plugin))]
    except ConfigError as error:
        return _wrong(path, error.message.splitlines(), as_json=given.json)
    if mistakes:
        return _wrong(path, mistakes, as_json=given.json)
    if given.json:
        routes = route_table(config.registry)
        print_json({"config": str(path), "mistakes": [], "warnings": list(config.warnings), "routes": routes})
        return 0
    print(f"{path}: no mistakes")
    for title, lines in {
        "To know": config.warnings,
        "Providers": provider_lines(config.registry)
        or ["none of your own: `routecodex provider add glm --key-file FILE` adds one"],
        "Where calls go": route_lines(config.registry),
    }.items():
        if lines:
            print(f"\n{title}:")
            for line in lines:
                print(f"  {line}")
    return 0


def _wrong(path: Path, mistakes: list[str], *, as_json: bool) -> int:
    if as_json:
        print_json({"config": str(path), "mistakes": mistakes, "warnings": []})
        return 1
    print(f"{path}: {'1 mistake' if len(mistakes) == 1 else f'{len(mistakes)} mistakes'}")
    for line in mistakes:
        print(f"  {line}")
    print("A running proxy keeps what it has until they are mended; one that starts with this file ends.")
    return 1


def _plugin(path: Path) -> list[str]:
    """Read, not run."""
    try:
        compile(path.read_bytes(), str(path), "exec")
    except OSError as error:
        return [f"{path}: the plugin cannot be read: {error.strerror}"]
    except (SyntaxError, ValueError) as error:
        return [f"{path}:{getattr(error, 'lineno', None) or 1}: the plugin is no Python: {getattr(error, 'msg', error)}"]
    return []
