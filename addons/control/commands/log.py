"""What the proxy in the background says: one line per answered call. -f: and goes on saying."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

from ..places import places
from ..say import Failed, print_json

_POLL_S = 0.2
_TWICE = re.compile(r"^\[\d\d:\d\d:\d\d\.\d{3}\] (?=\d\d:\d\d:\d\d )")
"""mitmproxy's time before a line that says its own."""
_TAIL_BYTES = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="wait for more, until Ctrl-C")
    parser.add_argument("-n", "--lines", type=int, default=200, metavar="N", help="so many of the last lines (200)")


def act(given: argparse.Namespace) -> int:
    path = places().log
    if not path.is_file():
        raise Failed("there is no log yet", "`routecodex run claude` starts a proxy that writes one")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()[-given.lines :] if given.lines > 0 else []
        if given.json and not given.follow:
            print_json({"log": str(path), "lines": lines})
            return 0
        for line in lines:
            _say(line, as_json=given.json)
        sys.stdout.flush()
        if given.follow:
            _follow(path, file.seek(0, os.SEEK_END), as_json=given.json)
    return 0


def _follow(path: Path, place: int, *, as_json: bool) -> None:
    """By its name: the log of a proxy that starts anew may begin again."""
    rest = b""
    while True:
        try:
            with path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < place:
                    place, rest = 0, b""
                file.seek(place)
                heard = file.read()
        except FileNotFoundError:
            heard, place, rest = b"", 0, b""
        place += len(heard)
        *whole, rest = (rest + heard).split(b"\n")
        for line in whole:
            _say(line.decode(errors="replace"), as_json=as_json)
        sys.stdout.flush()
        time.sleep(_POLL_S)


def _say(line: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"line": line})
    else:
        print(_TWICE.sub("", line))
