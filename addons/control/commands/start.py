"""Start the proxy in the background, and keep it until `routecodex stop`, whoever comes and goes."""

from __future__ import annotations

import argparse
import os

from .. import surroundings
from ..background import options, ready
from ..places import places
from ..say import Failed
from .status import show


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)


def act(given: argparse.Namespace) -> int:
    proxy, known = surroundings.upstream(places(), os.environ)
    if known is not None and known.server != "user":
        raise Failed(
            f"this terminal goes through RouteCodex at {surroundings.without_password(proxy)} already",
            "unset HTTPS_PROXY to start another one",
        )
    line, said, _ = ready("keep", given, proxy if known is None else "")
    line.close()
    return show(said, as_json=given.json)
