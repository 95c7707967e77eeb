"""Add a provider to your configuration: its shipped example is taken out of its comment, and everything else stays as it is.

  routecodex provider add glm --key-file ~/.keys/glm

Your configuration is ~/.config/routecodex/mitm-config.yaml, made from the shipped one the first time. A running proxy reads it at
once. Without --key-file the key is taken from the example's variable, or from a file .env beside the configuration.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .. import places
from ..say import Failed, print_json
from ..writing import read_text, write

_SO = "routecodex provider add NAME --key-file FILE; there are examples for {}"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", default="", metavar="add")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="the example's name: glm, openai, anthropic, …")
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        action="append",
        default=[],
        help="a file that holds nothing but the key (again: further keys)",
    )
    parser.add_argument("--config", metavar="FILE", default="", help="another configuration than your own")


def act(given: argparse.Namespace) -> int:
    from ....routing.config import examples, read
    from ....routing.config.secrets import look_beside
    from ....routing.errors import EXAMPLES, ConfigError

    if given.what != "add" or not given.name:
        raise Failed("which provider is to be added?", _SO.format(", ".join(EXAMPLES)), code=2)
    source = places.config_file(given.config)
    target = places.own_config() if source == places.SHIPPED else source
    text, files = read_text(source), [_key_file(name) for name in given.key_file]
    try:
        before = read(text, name=source.name, env=look_beside(text, source.parent, os.environ).env)
        if given.name in before.registry.providers:
            raise Failed(f"{given.name} is in {source} already", "change it there; `routecodex check` reads it", code=1)
        new = examples.added(text, given.name, read_text(places.SHIPPED), files)
        beside = look_beside(new, target.parent, os.environ)
        after = read(new, name=target.name, env=beside.env)
    except examples.NoExample as error:
        raise Failed(str(error), f"write it into {target} by hand: `routecodex check` reads it", code=2) from None
    except ConfigError as error:
        raise Failed(f"{source} has mistakes:\n{error.message}", "mend them first: `routecodex check`") from None
    if (
        set(after.registry.providers) != {*before.registry.providers, given.name}
        or after.registry.routes != before.registry.routes
    ):
        raise Failed(
            f"{given.name} cannot be added to {source} without changing something else", "add it by hand; nothing was changed"
        )
    write(target, new)
    provider = after.registry.providers[given.name]
    ready = [key.alias for key in provider.keys if not key.off]
    off = [line for line in after.warnings if f" {given.name}." in line]
    odd = list(dict.fromkeys(beside.warnings))
    if files and not any(key.value for key in provider.keys):
        odd.append(f"{given.name} takes no key: --key-file was not used")
    if given.json:
        models = list(provider.models)
        print_json({"config": str(target), "provider": given.name, "models": models, "ready": ready, "warnings": [*off, *odd]})
        return 0
    print(f"{given.name} stands in {target}.")
    for line in (*off, *odd):
        print(f"  {line}")
    if any(key.off for key in provider.keys):
        print(f"  Put it into {target.parent / '.env'} (a line NAME=…, chmod 600), or give --key-file.")
    model = next(iter(provider.models), "MODEL")
    print(f"In a chat: <**{given.name}.{model}**> for one message, <**!{given.name}.{model}**> from then on.")
    print(f"`routecodex models {given.name}` asks it which models it offers.")
    return 0


def _key_file(name: str) -> str:
    """As it is to stand in the configuration; there, and with something in it."""
    path = Path(os.path.expanduser(name)).absolute()
    try:
        content = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not text"
        raise Failed(f"{path}: the key cannot be read: {why}", "a file that holds nothing but the key, chmod 600") from None
    if not content or any(char.isspace() for char in content):
        raise Failed(f"{path} does not hold a key and nothing else", "one line, the key alone")
    if any(char in str(path) for char in "{}\r\n"):
        raise Failed(f"{path}: such a name cannot stand in a configuration", "give the file a plainer name")
    return name if name.startswith("~/") else str(path)
