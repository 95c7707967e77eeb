"""The time that a model is told with every call: its text, and which calls take a text of ours at their very end.

1. Nothing stands behind an answer that is to be gone on with: the model would begin a new one.
2. On a tool hop with thinking the tag is left out. All four interfaces take a text of the user's for the beginning of a new
   exchange, and drop what was thought before it: the model would lose its thread, and the prompt cache would break there.
3. Where the client has put a text of its own beside the results, that has happened already, and the tag costs nothing more.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from ..dialects.calls.thinking import says, thinks
from ..values import Call, Message, Text, ToolResult
from .moment import Moment

_TAG = re.compile(r"\s*\[Time/Date\]: utc=`[^`]*` local=`[^`]*` tz=`[^`]*` nowMs=`[^`]*` ntpOffsetMs=`[^`]*`\s*\Z")


def tag_text(moment: Moment) -> str:
    return (
        f"[Time/Date]: utc=`{moment.utc}` local=`{moment.local}` tz=`{moment.timezone}` "
        f"nowMs=`{moment.now_ms}` ntpOffsetMs=`{moment.offset_ms}`"
    )


def takes_texts(call: Call) -> bool:
    """Whether something may stand behind the history: somebody else than the model had the last word."""
    last = _last(call)
    return last is not None and last.role in ("user", "tool")


def takes_tag(call: Call) -> bool:
    return takes_texts(call) and not (_is_hop(call) and thinks(call))


def without_tag(call: Call) -> Call:
    """The call as it reads without the tag; for who answers by what was typed."""
    if not call.messages:
        return call
    last = call.messages[-1]
    parts = [replace(part, text=_TAG.sub("", part.text)) if isinstance(part, Text) else part for part in last.parts]
    return replace(call, messages=[*call.messages[:-1], replace(last, parts=parts)])


# Whether the tag may stand there


def _last(call: Call) -> Message | None:
    return next((message for message in reversed(call.messages) if message.role != "system"), None)


def _is_hop(call: Call) -> bool:
    """The last word is a tool's, and no text of the user's stands beside it."""
    last = _last(call)
    return last is not None and any(isinstance(part, ToolResult) for part in last.parts) and not says(last)
