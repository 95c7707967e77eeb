"""Whether there is work left in the project's own list of it (beads, `bd`).

1. Only a list that was read and is empty says that nothing is left. In doubt there may be work, and the conversation goes on.
2. What `bd` itself says now counts before what the conversation shows of it.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from ..dialects.fields import arguments_of, read_json
from ..values import Call, ToolCall, ToolResult

IN_PROGRESS = ("bd", "--no-db", "list", "--status", "in_progress", "--json")
READY = ("bd", "--no-db", "ready", "--json")


class Work(StrEnum):
    ACTIVE = "active"
    IDLE = "idle"
    UNKNOWN = "unknown"


class Mode(StrEnum):
    """What is asked: `bd` itself, the conversation, or one after the other."""

    AUTO = "auto"
    RUNTIME = "runtime"
    HEURISTIC = "heuristic"


def count_listed(output: bytes) -> int | None:
    """How many issues a list of `bd … --json` holds; None where it is no such list."""
    if not output.strip():
        return None
    value = read_json(output)
    if isinstance(value, dict):
        value = next((value[name] for name in ("issues", "items", "data") if name in value), "")
    elif value is None and output.strip() == b"null":
        return 0
    return len(value) if isinstance(value, list) else None


def from_lists(in_progress: int | None, ready: int | None) -> Work:
    """What both lists say; None is a list that could not be had."""
    if in_progress or ready:
        return Work.ACTIVE
    return Work.IDLE if in_progress == 0 and ready == 0 else Work.UNKNOWN


class _Shown(Struct, frozen=True):
    """A `bd` command that the model ran, and what came back."""

    verb: str
    command: str
    output: str


_BD = re.compile(r"(?:^|[\s;&|\"'(])bd\s+(?:-[\w-]+\s+)*(list|ready|show|update|create|close)\b")
_ACTIVE = re.compile(
    r"\bstatus\b[\"'*]{0,3}\s{0,4}[:=]\s{0,4}[\"'*]{0,3}(?:in[_ -]progress|open)\b|\[(?:in_progress|open)\]", re.I
)
_NOTHING = re.compile(r"\A\s*(?:\[\s*\]|null|no (?:open |ready )?(?:issues|work)\b.{0,80})\s*\Z", re.I | re.S)
_LONGEST = 200_000
_MOST = 50
"""So many commands back are looked at."""


def from_conversation(call: Call) -> Work:
    """What the newest `bd` commands in the history show. Idle only where both lists were shown empty and nothing came after."""
    empty: set[str] = set()
    for shown in islice(_shown(call), _MOST):
        if _ACTIVE.search(shown.output[:_LONGEST]) or shown.verb in ("create", "update"):
            return Work.ACTIVE
        if shown.verb == "ready" or (shown.verb == "list" and "in_progress" in shown.command):
            if _NOTHING.match(shown.output):
                empty.add(shown.verb)
            elif count_listed(shown.output.encode("utf-8", "surrogatepass")):
                return Work.ACTIVE
        if len(empty) == 2:
            return Work.IDLE
    return Work.UNKNOWN


def _shown(call: Call) -> Iterator[_Shown]:
    """Newest first."""
    outputs: defaultdict[str, deque[str]] = defaultdict(deque)  # a Gemini call without an id has its tool's name, like others
    for message in reversed(call.messages):
        for part in reversed(message.parts):
            if isinstance(part, ToolResult):
                outputs[part.id].append(part.text)
            elif isinstance(part, ToolCall) and outputs[part.id]:
                output = outputs[part.id].popleft()
                if "bd" in part.arguments and (found := _BD.search(command := _command(part))):
                    yield _Shown(found[1], command, output)


def _command(call: ToolCall) -> str:
    values = arguments_of(call.arguments).values()
    flat = (word for value in values for word in (value if isinstance(value, list) else [value]))
    return " ".join(word for word in flat if isinstance(word, str))
