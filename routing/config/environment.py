"""What surrounds the file: `${NAME}` and `${file:PATH}` in its texts, and a few settings that the original takes from the
environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from .notes import Notes
from .schema import MOST_ATTEMPTS, YEAR_MS
from .secrets import FILE, MARK, said_missing
from .source import Table


class Expanded(Struct, frozen=True):
    """A text with its variables filled in; `missing` names those that are unset or empty."""

    text: str
    missing: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    """Of these, the variables that are set, and hold nothing."""
    malformed: bool = False
    """Holds a `${` that is neither `${NAME}` nor `${file:PATH}`."""


def expand(text: str, env: Mapping[str, str], notes: Notes) -> Expanded:
    missing: list[str] = []

    def fill(match: re.Match[str]) -> str:
        value = env.get(match["name"], "").strip()
        if not value:
            missing.append(match["name"])
        notes.hide(value)
        return value

    malformed = "${" in MARK.sub("", text)
    filled, names = MARK.sub(fill, text), tuple(dict.fromkeys(missing))
    return Expanded(filled, names, tuple(name for name in names if name in env and not name.startswith(FILE)), malformed)


def unset(full: Expanded) -> str:
    """Why something is off, as a sentence goes on."""
    names = [name for name in full.missing if not name.startswith(FILE)]
    said = [
        f"{' and '.join(some)} {'are' if len(some) > 1 else 'is'} {what}"
        for what, some in (
            ("not set", [name for name in names if name not in full.empty]),
            ("empty", [name for name in names if name in full.empty]),
        )
        if some
    ]
    return " and ".join(said + [said_missing(name) for name in full.missing if name.startswith(FILE)])


def why_off(full: Expanded, where: str) -> str:
    """The same for whoever asked for what is off: where it is named, and what to do."""
    is_file = all(name.startswith(FILE) for name in full.missing)
    return f"{unset(full)} ({where}); " + ("write the key into it" if is_file else "write it into .env, or set it and restart")


_OFF = frozenset({"0", "false", "off", "no", "disable", "disabled"})
_NUMBERS = {
    "ROUTECODEX_MAX_PROVIDER_ATTEMPTS": (MOST_ATTEMPTS, ("retries", "maxAttempts")),
    "ROUTECODEX_CLOCK_NTP_TIMEOUT_MS": (YEAR_MS, ("virtualrouter", "clock", "ntp", "timeoutMs")),
    "ROUTECODEX_CLOCK_NTP_STALE_AFTER_MS": (YEAR_MS, ("virtualrouter", "clock", "ntp", "staleAfterMs")),
}
"""The most that each may be, and where it stands in the file."""


def override(root: Table, env: Mapping[str, str], notes: Notes) -> None:
    """Settings of the environment beat those of the file."""
    for name, (most, path) in _NUMBERS.items():
        text = env.get(name, "").strip()
        if re.fullmatch(r"[1-9][0-9]{0,10}", text) and int(text) <= most:
            _put(root, path, int(text))
        elif text:
            notes.warn((), f"{name} is not a whole number from 1 to {most}: ignored")
    servers = [server for server in re.split(r"[\s,]+", env.get("ROUTECODEX_CLOCK_NTP_SERVERS", "")) if server]
    if servers:
        _put(root, ("virtualrouter", "clock", "ntp", "servers"), servers)
    if env.get("ROUTECODEX_CLOCK_NTP", "").strip().lower() in _OFF:
        _put(root, ("virtualrouter", "clock", "ntp", "enabled"), False)


def _put(root: Table, path: tuple[str, ...], value: object) -> None:
    """Into the sections that are there: a clock that is off is not switched on by its settings."""
    node = root
    for step in path[:-1]:
        below = node.get(step)
        if below is None and step != "clock":
            below = Table(line=node.line)
            node.put(step, below, line=node.line)
        if not isinstance(below, Table):
            return
        node = below
    node[path[-1]] = value
