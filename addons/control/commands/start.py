"""Start the proxy in the background, and keep it until `routecodex stop`, whoever comes and goes."""

from __future__ import annotations

import argparse
import os
import socket

from .. import surroundings
from ..background import options, ready
from ..places import places
from ..say import Failed
from .status import show

_MOST_WORKERS = 64


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="N processes behind the one port: more calls at once")
    parser.add_argument("-w", dest="flows", metavar="FILE", default="", help="keep every flow in this file, behind what it holds")


def act(given: argparse.Namespace) -> int:
    _look_at(given)
    proxy, known = surroundings.upstream(places(), os.environ)
    if known is not None and known.server != "user":
        raise Failed(
            f"this terminal goes through RouteCodex at {surroundings.without_password(proxy)} already",
            "unset HTTPS_PROXY to start another one",
        )
    line, said, _ = ready("keep", given, proxy if known is None else "")
    line.close()
    return show(said, as_json=given.json)


def _look_at(given: argparse.Namespace) -> None:
    """What does not go together is said before anything starts."""
    if given.workers and not 1 <= given.workers <= _MOST_WORKERS:
        raise Failed(f"--workers {given.workers}: 1 to {_MOST_WORKERS}", "as many as the machine has processors, at most", code=2)
    if given.workers and given.web:
        raise Failed(
            "--workers and --web do not go together: mitmweb shows the calls of one process",
            "keep the flows of all with -w FILE, and look at them with mitmweb -r FILE",
            code=2,
        )
    if given.workers and not (hasattr(os, "fork") and hasattr(socket, "send_fds")):
        raise Failed(
            "--workers needs a system that can fork and hand sockets on (Linux, macOS)",
            "start it without: one process serves many tools",
        )
    given.flows = os.path.abspath(given.flows) if given.flows else ""
