"""The first and last bytes of an answer: what it cost stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..dialects import answers
from ..values import Dialect, Usage

BYTES = 8 << 10
"""So much of either."""


_CALLS = re.compile(
    rb'"type"\s{0,4}:\s{0,4}"(?:tool_use|function_call|custom_tool_call|(?:local_)?shell_call|apply_patch_call|computer_call)"|"(?:tool_calls|function_call|functionCall)"\s{0,4}:\s{0,4}[\[{]'
    rb'|"(?:stop|finish)_reason"\s{0,4}:\s{0,4}"(?:tool_use|tool_calls|function_call)"'
)
"""Inside a text its quotes would be escaped."""


@dataclass(slots=True)
class Edges:
    first: bytes = b""
    _last: bytearray = field(default_factory=bytearray)

    def begin(self, first: bytes) -> None:
        """A round answers, and this is its start."""
        self.first = first[:BYTES]
        self._last.clear()

    def keep(self, chunk: bytes) -> None:
        self._last += chunk
        if len(self._last) > 2 * BYTES:
            del self._last[:-BYTES]

    @property
    def hold_calls(self) -> bool:
        """The client is to call a tool, as far as the edges show."""
        return _CALLS.search(self._last) is not None or _CALLS.search(self.first) is not None

    def usage(self, dialect: Dialect) -> Usage | None:
        """None before an answer, or where it tells nothing."""
        return answers.read_usage(dialect, self.first, bytes(self._last)) if self.first else None
