"""One log line for each decision, written a few times a second at most.

mitmproxy runs the hooks of all its addons for each record it logs: under load that costs more than the decision itself.
"""

from __future__ import annotations

import asyncio
import logging

logger = logging.getLogger("routecodex")

PAUSE_S = 0.1


class Journal:
    def __init__(self) -> None:
        self._lines: list[str] = []

    def note(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(PAUSE_S, self.write)

    def write(self) -> None:
        """Lines that came together leave as one record."""
        lines, self._lines = self._lines, []
        if lines:
            logger.info("%s", "\n".join(lines))
