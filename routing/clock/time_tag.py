"""The time that a model is told with every call: its text, and which calls take a text of ours at their very end.

1. Nothing stands behind an answer that is to be gone on with: the model would begin a new one.
2. On a tool hop with thinking the tag is left out. All four interfaces take a text of the user's for the beginning of a new
   exchange, and drop what was thought before it: the model would lose its thread, and the prompt cache would break there.
3. Where the client has put a text of its own beside the results, that has happened already, and the tag costs nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..dialects.calls import inner_body
from ..dialects.calls.editing import object_in, objects_in
from ..dialects.calls.replacing import raw_items
from ..values import Call, Dialect, JsonObject, Message, Text, Thinking, ToolResult
from .moment import Moment

_TAG = re.compile(r"\s*\[Time/Date\]: utc=`[^`]*` local=`[^`]*` tz=`[^`]*` nowMs=`[^`]*` ntpOffsetMs=`[^`]*`\s*\Z")
_OFF = (None, False, "none", "disabled")


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
    return takes_texts(call) and not (_is_hop(call) and _thinks(call))


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
    return last is not None and any(isinstance(part, ToolResult) for part in last.parts) and not _says(last)


def _says(message: Message) -> bool:
    return any(isinstance(part, Text) and part.text.strip() for part in message.parts)


def _thinks(call: Call) -> bool:
    """Thinking is asked for, or the model has thought since the user spoke."""
    if _ASKS[call.endpoint.dialect](inner_body(call)):
        return True
    items = raw_items(call)
    for message in reversed(call.messages):
        if message.role == "user" and _says(message):
            return False
        if any(isinstance(part, Thinking) for part in message.parts) or _is_signed(items[message.index]):
            return True
    return False


def _is_signed(item: JsonObject) -> bool:
    """Gemini puts the seal of its thoughts on calls."""
    return any("thoughtSignature" in part or "thought_signature" in part for part in objects_in(item, "parts"))


def _asks_messages(body: JsonObject) -> bool:
    return object_in(body, "thinking").get("type") not in _OFF


def _asks_chat(body: JsonObject) -> bool:
    """There are as many ways to say it as there are providers."""
    template, reasoning = object_in(body, "chat_template_kwargs"), body.get("reasoning")
    asked = [body.get("reasoning_effort"), object_in(body, "thinking").get("type"), body.get("enable_thinking")]
    asked += [template.get("enable_thinking"), template.get("thinking")]
    if isinstance(reasoning, dict) and reasoning.get("enabled") is not False:
        asked.append(reasoning.get("effort", True))
    return any(value not in _OFF for value in asked)


def _asks_responses(body: JsonObject) -> bool:
    """Where the provider keeps the history, nobody here can see whether there are thoughts in it."""
    if isinstance(body.get("reasoning"), dict):
        return object_in(body, "reasoning").get("effort") != "none"
    return body.get("previous_response_id") is not None or body.get("conversation") is not None


def _asks_gemini(body: JsonObject) -> bool:
    config = object_in(body, "generationConfig", "generation_config")
    thinking = object_in(config, "thinkingConfig", "thinking_config")
    return bool(thinking) and thinking.get("thinkingBudget", thinking.get("thinking_budget")) != 0


_ASKS: Mapping[Dialect, Callable[[JsonObject], bool]] = {
    Dialect.MESSAGES: _asks_messages,
    Dialect.CHAT: _asks_chat,
    Dialect.RESPONSES: _asks_responses,
    Dialect.GEMINI: _asks_gemini,
}
