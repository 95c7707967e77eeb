"""How `docs/reliability.md` is written: a table of what is asked, and a section with what was seen for each mitmproxy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.sheet.rows import ROWS

HEAD = """# What holds in trouble, in figures

Written by `python -m tests.sheet`, which runs each row below in the long profile; `python -m tests.sheet R8 S14` runs some.
Where a count is less than what is asked, both are told. Rows marked *timed* say how busy the machine was: a busy one spoils them,
unless they run before everybody else, which the command sees to where the system allows it (root, on Linux).
What is counted runs with fewer rounds in every run of the suite. The last line is the one command: at most 45
minutes are asked.
"""
ALL = "all"
"""The name of the line that tells how long one run of every row took."""
_SECTION = re.compile(r"^## (mitmproxy .+)$", re.MULTILINE)
_LINE = re.compile(
    r"^\| (?P<name>[A-Z]\d*|all) \| (?P<seen>.*) \| (?P<holds>[^|]*) \| (?P<took>[^|]*) \| (?P<when>[^|]*) \|$", re.MULTILINE
)


@dataclass(frozen=True)
class Result:
    name: str
    seen: str
    holds: str
    took: str
    when: str


def read(text: str) -> dict[str, dict[str, Result]]:
    """What is written already, by mitmproxy and row."""
    _, *rest = _SECTION.split(text)
    return {
        title: {found["name"]: Result(**found.groupdict()) for found in _LINE.finditer(body)}
        for title, body in zip(rest[::2], rest[1::2], strict=True)
    }


def merge(text: str, title: str, results: Mapping[str, Result]) -> str:
    sections = read(text)
    sections[title] = sections.get(title, {}) | dict(results)
    return write(sections)


def write(sections: Mapping[str, Mapping[str, Result]]) -> str:
    asked = ["| Row | Asked | Shown by |", "|---|---|---|"]
    for row in ROWS:
        mark = " (*timed*)" if row.timed else ""
        asked.append(f"| {row.name} | {row.asked}{mark} | {', '.join(f'`{test}`' for test in row.tests)} |")
    parts = [HEAD, "\n".join(asked) + "\n"]
    for title in sorted(sections):
        lines = [f"## {title}", "", "| Row | Seen | Holds | Took | When |", "|---|---|---|---|---|"]
        for name in (*(row.name for row in ROWS), ALL):
            one = sections[title].get(name) or Result(name, "not run yet", "", "", "")
            lines.append(f"| {one.name} | {_cell(one.seen)} | {one.holds} | {one.took} | {one.when} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")
