"""What a command says: plain lines for people, one JSON object for programs; and how it says that something went wrong."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from ...routing.visible import visible

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Failed(Exception):
    """What is wrong, and what to do next."""

    def __init__(self, what: str, next_step: str = "", *, code: int = 1) -> None:
        super().__init__(what)
        self.what, self.next_step, self.code = what, next_step, code


def unless_full(error: OSError, next_step: str) -> str:
    """What to do next: rights and other folders help no full disk."""
    return "make room on that disk" if error.errno in _FULL else next_step


class Readable:
    """A stream for people: what comes from outside (a title, a name, a line of a log) does nothing to their terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(visible(text, keep="\n\t"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def fail(failed: Failed, *, as_json: bool) -> int:
    if as_json:
        print_json({"error": failed.what, "next": failed.next_step})
    else:
        note(failed.what + (f"\n  {failed.next_step}" if failed.next_step else ""))
    return failed.code


def print_json(said: Mapping[str, Any]) -> None:
    written = json.dumps(said, ensure_ascii=False)
    print(written if written.isprintable() else json.dumps(said))


def note(line: str) -> None:
    """On stderr: stdout belongs to what was asked for, and to the tool that runs."""
    print(f"routecodex: {line}", file=sys.stderr)
