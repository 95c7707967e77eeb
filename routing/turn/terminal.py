"""How each dialect's stream says that it is complete.

Inside JSON strings quotes and line breaks are escaped, so none of these can stand in a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from routing.values import Dialect

LONGEST = 96
"""A terminal event's telling part is shorter than this: enough to carry over a cut."""

TERMINAL: Mapping[Dialect, re.Pattern[bytes]] = {
    Dialect.MESSAGES: re.compile(rb'"type"\s{0,4}:\s{0,4}"message_stop"|data: ?\{\s{0,4}"type"\s{0,4}:\s{0,4}"error"'),
    Dialect.CHAT: re.compile(rb'data: ?\[DONE\]|"finish_reason"\s{0,4}:\s{0,4}"|data: ?\{\s{0,4}"error"\s{0,4}:'),
    Dialect.RESPONSES: re.compile(rb'"type"\s{0,4}:\s{0,4}"(?:response\.(?:completed|incomplete|failed|cancelled)|error)"'),
    Dialect.GEMINI: re.compile(
        rb'"(?:finishReason|blockReason)"\s{0,4}:\s{0,4}"|(?:data: ?|[\[,]\s{0,4})\{\s{0,4}"error"\s{0,4}:'
    ),
}
"""An error event is the end of its stream too."""
