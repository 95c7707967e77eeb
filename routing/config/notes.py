"""What is wrong or odd in a configuration, gathered so that one look at the message mends the whole file.

1. No credential of the file or the environment stands in a message, wherever it was written by mistake.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from ..errors import ConfigError
from .source import Table, locate

Path = tuple[str | int, ...]

MAX_SHOWN = 30
_SHORTEST_SECRET = 6

_CREDENTIAL = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|ghp|gho|hf|nvapi)[-_][\w.-]{6,}"  # the prefixes that vendors use
    r"|\bAIza[\w-]{8,}|\beyJ[\w.-]{8,}"
    r"|(?<=//)[^/\s@]*@"
    r"|(?<=[?#]).+"
    r"|\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{28,}\b",
    re.S,
)


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    return tuple(difflib.get_close_matches(name[:100], sorted(known), n=3, cutoff=0.6))


class Notes:
    """Problems and warnings about one file."""

    def __init__(self, name: str, root: Table) -> None:
        self.name = name
        self.root = root
        self._secrets: set[str] = set()
        self._problems: dict[tuple[int, str], None] = {}
        self._warnings: dict[tuple[int, str], None] = {}
        self.found: list[tuple[Path, str]] = []
        """Where each problem stands, and what it is."""

    def hide(self, secret: object) -> None:
        """Never show this text, whatever message it gets into."""
        if isinstance(secret, str) and len(secret) >= _SHORTEST_SECRET and not secret.startswith("${"):
            self._secrets.add(secret)

    def refuse(self, path: Path, text: str) -> None:
        self.found.append((path, text))
        line, place = locate(self.root, path)
        self._problems[(line, f"{self._mask(place)[:200]}: {text}" if place else text)] = None

    def warn(self, path: Path, text: str) -> None:
        line, _ = locate(self.root, path)
        self._warnings[(line, text)] = None

    def where(self, path: Path) -> str:
        """File and line."""
        return f"{self.name}:{locate(self.root, path)[0]}"

    def again(self) -> Notes:
        """For another look at the same file."""
        other = Notes(self.name, self.root)
        other._secrets = self._secrets
        return other

    @property
    def refused(self) -> bool:
        return bool(self._problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._render(self._warnings))

    def error(self) -> ConfigError:
        """All problems, one per line, in the order of the file."""
        lines = self._render(self._problems)
        if len(lines) > MAX_SHOWN:
            lines = [*lines[:MAX_SHOWN], f"{self.name}: … and {len(lines) - MAX_SHOWN} more"]
        return ConfigError("\n".join(lines))

    def _render(self, found: Iterable[tuple[int, str]]) -> list[str]:
        return [f"{self.name}:{line}: {self._scrub(text)}" for line, text in sorted(found, key=lambda note: note[0])]

    def quote(self, text: str, limit: int = 80) -> str:
        """Text of the file as a message may show it."""
        shown = self._mask(text, limit)
        return f'"{shown[:limit]}…"' if len(shown) > limit else f'"{shown}"'

    def _mask(self, text: str, limit: int = 200) -> str:
        """Hidden before it is cut: a part of a credential is one too."""
        shown = self._scrub(text)[: limit * 4]
        return _CREDENTIAL.sub("***", "".join(char if char.isprintable() else "·" for char in shown))

    def _scrub(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text
