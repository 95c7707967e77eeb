"""Ask providers which models they offer, and say which of them are declared: `models`, `models glm`.

Exit code 1 where a provider that was named cannot be asked.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..say import Failed, print_json

_SHOWN = 40


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", nargs="?", default="", help="only this one")
    parser.add_argument("--config", metavar="FILE", default="", help="another configuration than the one in force")


def act(given: argparse.Namespace) -> int:
    from ....routing.control.offers import Offer
    from ....routing.errors import nearest
    from ....routing.router.registry import ECHO, ORIGIN
    from ..asking import ask, client
    from ..reading import config

    path, read = config(given.config)
    own = {name: provider for name, provider in read.registry.providers.items() if name not in (ORIGIN, ECHO)}
    if given.provider and given.provider not in own:
        near = ", ".join(nearest(given.provider, own)) or "none is configured"
        raise Failed(f"there is no provider {given.provider} in {path} (nearest: {near})", "`routecodex provider add` adds one")
    said: list[dict[str, Any]] = []
    with client() as asking:
        for provider in own.values():
            if given.provider and provider.id != given.provider:
                continue
            ready = [key for key in provider.keys if not key.off]
            entry: dict[str, Any] = {"provider": provider.id, "declared": list(provider.models)}
            if provider.auth == "client":
                entry |= {"problem": "it is asked with the tool's own credential", "next": "ask it in the tool"}
            elif not ready or not provider.enabled:
                entry |= {"problem": "no key is ready", "next": "`routecodex check` says which variable or file is missing"}
            else:
                heard = ask(asking, provider, ready[0])
                offer = Offer(tuple(provider.models), heard.models)
                entry |= {"problem": heard.problem, "next": heard.next_step}
                if not heard.problem:
                    entry |= {
                        "offered": list(heard.models),
                        "notOffered": list(offer.missing),
                        "notDeclared": list(offer.further),
                    }
            said.append(entry)
    if given.json:
        print_json({"config": str(path), "providers": said})
    elif not said:
        print("No provider of your own: `routecodex provider add glm --key-file FILE` adds one.")
    else:
        for entry in said:
            _show(entry)
    return 1 if given.provider and any(entry["problem"] for entry in said) else 0


def _show(entry: dict[str, Any]) -> None:
    if entry["problem"]:
        print(f"{entry['provider']}: {entry['problem']}\n  {entry['next']}")
        for name in entry["declared"]:
            print(f"  declared      <**{entry['provider']}.{name}**>")
        return
    print(f"{entry['provider']}:")
    for name in entry["declared"]:
        known = "not offered  " if name in entry["notOffered"] else "declared     "
        print(f"  {known} <**{entry['provider']}.{name}**>")
    for name in entry["notDeclared"][:_SHOWN]:
        print(f"  not declared  {name}")
    if len(entry["notDeclared"]) > _SHOWN:
        print(f"  … and {len(entry['notDeclared']) - _SHOWN} more (--json names all)")
