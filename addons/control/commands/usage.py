"""What calls cost: `usage`, `usage monthly`, `usage session`, … The verbs and the names in JSON are those of `ccusage`."""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import sqlite3
import sys
from typing import Any

from .. import places, reading
from ..say import Failed, print_json

_COLUMNS = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens", "totalTokens", "totalCost")
_HEADS = ("input", "output", "cache written", "cache read", "total", "cost")
_DAY_MS = 86_400_000


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = ("daily", "weekly", "monthly", "session", "key", "model", "provider", "client", "user")
    parser.add_argument("by", nargs="?", choices=verbs, default="daily")
    parser.add_argument("--by", dest="by_option", choices=verbs, help="the same")
    parser.add_argument("--since", default="", metavar="DATE", help="from this day on: 2026-01-31 or 20260131")
    parser.add_argument("--until", default="", metavar="DATE", help="up to and with this day")
    parser.add_argument("--csv", action="store_true")


def act(given: argparse.Namespace) -> int:
    from ....routing.usage.report import of_file

    if given.json and given.csv:
        raise Failed("--json and --csv: which of the two?", "routecodex usage --json, or usage --csv", code=2)
    since, until = _start(given.since, "--since"), _start(given.until, "--until")
    path = places.usage()
    by = given.by_option or given.by
    try:
        told = of_file(path, by, since_ms=since or 0, until_ms=until + _DAY_MS if until is not None else 1 << 62)
    except (OSError, sqlite3.Error) as error:
        raise Failed(f"{path} cannot be read: {error}", "is its disk there, and is it yours?", code=1) from None
    groups = told["sessions" if by == "session" else by]
    if given.json:
        print_json(told)
    elif given.csv:
        _print_csv(groups)
    elif not groups and (given.since or given.until):
        print("Nothing was used in that time.")
    elif not groups:
        print(_why_nothing())
    else:
        _print_table(by, groups, told["totals"])
    return 0


def _why_nothing() -> str:
    with contextlib.suppress(Failed):  # a file that cannot be read hides nothing that was used
        if not reading.config()[1].usage.enabled:
            return "Nothing is written down: usage.enabled is false in the configuration."
    return "Nothing was used yet: rounds that a provider answers are written down here."


def _start(text: str, option: str) -> int | None:
    """A day's beginning, in milliseconds."""
    if not text:
        return None
    for form in ("%Y-%m-%d", "%Y%m%d"):
        try:
            return int(datetime.datetime.strptime(text, form).astimezone().timestamp() * 1000)
        except ValueError:
            continue
    raise Failed(f"{option} {text}: that is no day", "write it as 2026-01-31", code=2)


def _print_csv(groups: list[dict[str, Any]]) -> None:
    if groups:
        names = [name for name, value in groups[0].items() if not isinstance(value, list)]
        writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(groups)


def _print_table(by: str, groups: list[dict[str, Any]], totals: dict[str, Any]) -> None:
    from ....routing.usage.prices import made_on

    first = [str(next(iter(group.values()))) or "(none)" for group in groups]
    rows = [(name, *map(_cell, map(group.get, _COLUMNS))) for name, group in zip(first, groups, strict=True)]
    rows.append(("in all", *map(_cell, map(totals.get, _COLUMNS))))
    head = (by, *_HEADS)
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows):
        print("  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]))
    if unknown := totals.get("unknownRequests"):
        print(f"{unknown} of {totals['requests']} requests: their provider told no tokens.")
    if unpriced := totals.get("unpricedRequests"):
        print(f"{unpriced} of {totals['requests']} requests: no price is known for them (see `usage.prices`).")
    print(f"Prices are of {made_on()}, in US dollars, without what a contract says.")


def _cell(value: object) -> str:
    from ....routing.usage.prices import money

    if isinstance(value, float):
        return money(value, 4 if value < 1 else 2)
    return f"{value:,}" if isinstance(value, int) else "unknown"
