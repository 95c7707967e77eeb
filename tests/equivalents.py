"""Mistakes of `tests/mutants.py` that nobody can see, by what makes them so. Everything else that survives lacks a test.

A row names a file, a statement and what the mistake made of a piece of it, never a line: it goes with the code that it is about
(`tests/test_mutants.py` sees to that).
"""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = tuple[str, str, str]
"""File, the statement as Python writes it, the piece after."""

BY_PLACE = {
    "zip(strict)": "a guard for lengths that are the same already",
    "dataclass(slots)": "saves memory",
    "dataclass(frozen)": "a guard for who writes the code; mypy keeps it, too",
    "class(frozen)": "a guard for who writes the code, as mypy is; who asks for the hash of one that is not frozen fails",
    "dataclass(kw_only)": "a guard for who writes the code; mypy keeps it, too",
    "dataclass(eq)": "what is never compared",
    "field(init)": "what nobody gives",
    "field(repr)": "for who debugs",
    "field(compare)": "what is never compared",
    "Thread(daemon)": "matters where the process ends, which others do",
}
"""The value of a keyword, and why nobody sees it."""

BY_ROW: dict[str, tuple[Row, ...]] = {
    "a bound on what is read or kept at once: another of that size does as well": (
        ("addons/control/supervisor.py", "lines = file.read(1 << 20).decode(errors='replace').splitlines()", "21"),
        ("addons/shown_flows.py", "MOST_BYTES = 256 << 20", "257"),
        ("routing/codex/telling.py", "_ERROR_BYTES = 1 << 20", "2"),
        ("routing/codex/telling.py", "_ERROR_BYTES = 1 << 20", "21"),
    ),
    "a guard for an index: what it lets through is refused behind it": (
        ("routing/config/examples.py", "if _TITLE.match(line) is None or place + 1 >= len(lines)", "2"),
    ),
    "the beginning of an id that we make up: another one is as good": (
        ("routing/dialects/answer/chat/write.py", "self._named = 0", "1"),
    ),
}
