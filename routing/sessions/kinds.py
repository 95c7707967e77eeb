"""What a call is for: the conversation itself, or a side call that its client makes on its own.

1. What a client says itself decides: headers first, then metadata in the body. Only then the table of signatures.
2. A kind that a client names and we do not know is a side call: it obeys nothing.
3. Instructions that begin as those of a compaction make one, whatever else is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dialects.fields import list_of, object_of, text_of
from ..values import Call, Headers, JsonObject, Kind, Message, Text
from .ids import turn_metadata

Where: TypeAlias = Literal["system", "first", "last"]

_HEAD = 1000
"""A signature sits within so many characters of a text."""


@dataclass(frozen=True, slots=True)
class _Signature:
    """`phrase` within the head of the instructions, or at the beginning of the first or last user message."""

    client: str | None
    where: Where
    phrase: str
    kind: Kind

    def fits(self, client: str, heads: dict[Where, str]) -> bool:
        head = heads[self.where]
        return self.client in (None, client) and (self.phrase in head if self.where == "system" else head.startswith(self.phrase))


_SIGNATURES = (
    _Signature("claude-code", "system", "you are naming a coding session", Kind.TITLE),
    _Signature("claude-code", "system", "cc_is_subagent=true", Kind.SUBAGENT),
    _Signature("claude-code", "system", "you are an agent for claude code, anthropic's official cli", Kind.SUBAGENT),
    _Signature("claude-code", "last", "critical: respond with text only", Kind.COMPACTION),
    _Signature("codex", "last", "generate a concise, single-line task title", Kind.TITLE),
    _Signature("codex", "last", "you are performing a context checkpoint compaction", Kind.COMPACTION),
    _Signature("gemini-cli", "system", "you are a specialized task routing ai", Kind.ROUTER),
    _Signature("gemini-cli", "first", "summarize the user's primary intent or goal in this conversation", Kind.SUMMARY),
    _Signature(None, "system", "responsible for distilling chat history into a structured xml", Kind.COMPACTION),
    _Signature(None, "last", "generate a new <state_snapshot> based on the provided history", Kind.COMPACTION),
    _Signature("opencode", "system", "you are a title generator", Kind.TITLE),
    _Signature("opencode", "first", "generate a title for this conversation", Kind.TITLE),
    _Signature("opencode", "system", "you are a context summarization agent", Kind.COMPACTION),
    _Signature("qwen-code", "system", "you are now acting as the managed memory extraction subagent", Kind.MEMORY),
    _Signature(None, "first", "context checkpoint compaction", Kind.COMPACTION),
    _Signature(None, "first", "checkpoint compaction", Kind.COMPACTION),
    _Signature(None, "first", "handoff summary for another llm", Kind.COMPACTION),
)
"""How side calls begin, in lower case; made from recorded requests."""

COMPACTION_STARTS = tuple(signature.phrase for signature in _SIGNATURES[-3:])
"""How the instructions or the first text of a compaction begin, in lower case."""

_CLAUDE_CLASSES = {
    "main": Kind.MAIN,
    "subagent": Kind.SUBAGENT,
    "blocking-subagent": Kind.SUBAGENT,
    "workflow": Kind.SUBAGENT,
    "compaction": Kind.COMPACTION,
    "summary-extraction": Kind.SUMMARY,
}
_CODEX_REQUESTS = {"compaction": Kind.COMPACTION, "memory": Kind.MEMORY}
_CODEX_SOURCES = {
    "user": Kind.MAIN,
    "thread_title": Kind.TITLE,
    "subagent": Kind.SUBAGENT,
    "memory_consolidation": Kind.MEMORY,
}
_QWEN_AGENT_PROMPT = re.compile(r"[^#]+#+(?P<agent>[A-Za-z][\w-]*)#")
"""`<session>########<n>` is a prompt, `<session>#<agent>#<n>` what an agent of the client sends by itself."""


def kind_of(call: Call, headers: Headers, client: str) -> Kind:
    if _ends_with_compaction_trigger(call) or system_head(call).startswith(COMPACTION_STARTS):
        return Kind.COMPACTION
    declared = _declared_kind(call, headers)
    kind = (_signed_kind(call, client) or declared or Kind.MAIN) if declared in (None, Kind.SIDE) else declared
    return Kind.SIDE if kind is Kind.MAIN and call.endpoint.action == "count" else kind


def system_head(call: Call) -> str:
    """The beginning of the instructions in lower case, wherever they stand."""
    if call.system:
        return _head(call.system)
    first = call.messages[0] if call.messages else None
    return _text_head(first) if first is not None and first.role == "system" else ""


def _declared_kind(call: Call, headers: Headers) -> Kind | None:
    """What the client itself says; None where it says nothing."""
    for header in ("x-claude-code-request-class", "x-claude-1p-request-class"):
        if name := headers.get(header):
            return _CLAUDE_CLASSES.get(name.strip().lower(), Kind.SIDE)
    metadata = turn_metadata(call, headers)
    if "request_kind" in metadata or "thread_source" in metadata:
        return _codex_kind(metadata)
    agent_prompt = _QWEN_AGENT_PROMPT.match(text_of(object_of(call.body.get("metadata")).get("promptId"))[:400])
    if agent_prompt is not None:
        return Kind.MEMORY if "memory" in agent_prompt["agent"] else Kind.SUBAGENT
    return None


def _codex_kind(metadata: JsonObject) -> Kind:
    request = text_of(metadata.get("request_kind")) or "turn"
    if request != "turn":
        return _CODEX_REQUESTS.get(request, Kind.SIDE)
    if text_of(metadata.get("agent_name")) not in ("", "/root"):
        return Kind.SUBAGENT
    return _CODEX_SOURCES.get(text_of(metadata.get("thread_source")) or "user", Kind.SIDE)


def _signed_kind(call: Call, client: str) -> Kind | None:
    users = [message for message in call.messages if message.role == "user"]
    heads: dict[Where, str] = {
        "system": system_head(call),
        "first": _text_head(users[0]) if users else "",
        "last": _text_head(users[-1]) if users else "",
    }
    return next((signature.kind for signature in _SIGNATURES if signature.fits(client, heads)), None)


def _ends_with_compaction_trigger(call: Call) -> bool:
    items = list_of(call.body.get("input"))
    return bool(items) and object_of(items[-1]).get("type") == "compaction_trigger"


def _text_head(message: Message) -> str:
    return _head(next((part.text for part in message.parts if isinstance(part, Text) and part.text), ""))


def _head(text: str) -> str:
    return text[: 2 * _HEAD].lstrip()[:_HEAD].lower()
