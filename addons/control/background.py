"""What commands share: a question to the proxy in the background, started for it where it must be."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any

from .. import hello
from ..hello import Hello
from . import surroundings
from .line import LIMIT_S, Line, Said, reach
from .places import Places, config_file, places
from .say import Failed, note

_DIFFERS = {
    "config": "--config",
    "upstream": "proxy behind it (HTTPS_PROXY)",
    "authorities": "set of your company's certificates (SSL_CERT_FILE)",
    "web": "--web",
    "verbose": "--verbose",
    "workers": "--workers",
    "flows": "-w",
}
_AGAIN_S = 0.1


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="", help="the configuration (see the README for what else holds)")
    parser.add_argument("--web", action="store_true", help="mitmweb instead of mitmdump: look at each call in a browser")
    parser.add_argument("-v", "--verbose", action="store_true", help="connections in the log, too")


def question(want: str, given: argparse.Namespace, here: Places, upstream: str, bases: Sequence[str] = ()) -> dict[str, Any]:
    config = config_file(given.config)
    named = bool(given.config or os.environ.get("ROUTECODEX_CONFIG"))
    return {
        "want": want,
        "config": str(config) if named else "",
        "upstream": upstream,
        "authorities": surroundings.authorities(here, os.environ),
        "web": given.web,
        "verbose": given.verbose,
        "workers": getattr(given, "workers", 0),
        "flows": getattr(given, "flows", ""),
        "bases": list(bases),
        "variables": surroundings.variables(config, os.environ),
    }


def ready(want: str, given: argparse.Namespace, upstream: str, bases: Sequence[str] = ()) -> tuple[Line, Said, Hello]:
    """A proxy that has answered. What differs from what was wanted is said."""
    here = places()
    line, said = reach(here, question(want, given, here, upstream, bases))
    end = time.monotonic() + LIMIT_S
    while (known := hello.ask(f"http://127.0.0.1:{said['port']}", LIMIT_S)) is None and time.monotonic() < end:
        time.sleep(_AGAIN_S)  # it died just now, and comes back
    if known is None:
        line.close()
        raise Failed(f"the proxy on port {said['port']} does not answer", "`routecodex log` may say why")
    for name in said["other"]:
        note(f"{name} has another value in this terminal than the proxy knows: its own holds (`routecodex stop`, then again)")
    for name in said["differs"]:
        note(f"the proxy runs already, and was started with another {_DIFFERS[name]}: `routecodex stop` first, if that matters")
    return line, said, known


def url(said: Said) -> str:
    return f"http://127.0.0.1:{said['port']}"
