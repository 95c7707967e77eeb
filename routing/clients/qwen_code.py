"""qwen-code: a fork of Gemini CLI that speaks Chat Completions; its agents are named in the prompt's id."""

from __future__ import annotations

import re

from ..dialects.fields import object_of, text_of
from ..values import Call, Headers, Kind, Text
from .client import OPENAI, Client, Signature
from .gemini_cli import COMPACTIONS, EDITOR, FRAME, SHELL, asks_beside
from .ids import at, cache_key

_AGENT_PROMPT = re.compile(r"[^#]+#+(?P<agent>[A-Za-z][\w-]*)#")
"""`<session>########<n>` is a prompt, `<session>#<agent>#<n>` what an agent of the client sends by itself."""


def _declares(call: Call, headers: Headers) -> Kind | None:
    found = _AGENT_PROMPT.match(text_of(object_of(call.body.get("metadata")).get("promptId"))[:400])
    if found is None:
        return None
    return Kind.MEMORY if "memory" in found["agent"] else Kind.SUBAGENT


_SIDE_QUESTION = "<system-reminder>\nThis is a side question from the user."


def _beside(call: Call) -> Kind | None:
    """`/btw` asks within the conversation, with all its tools; before the first message in one with what begins it."""
    last = next((message for message in reversed(call.messages) if message.role == "user"), None)
    if last is not None and any(isinstance(part, Text) and part.text.startswith(_SIDE_QUESTION) for part in last.parts):
        return Kind.SIDE
    return asks_beside(call)


QWEN_CODE = Client(
    name="qwen-code",
    title="qwen-code",
    tried="0.24.4",
    # How it is recognised
    agents=("qwencode",),
    # Its ids
    session=(at("metadata", "sessionId"), cache_key(r"qwen-code:[\w-]+", "qwen-code:")),
    prompt=(at("metadata", "promptId"),),
    # The kinds of its calls
    declares=_declares,
    beside=_beside,
    signatures=(
        Signature("system", "you are now acting as the managed memory extraction subagent", Kind.MEMORY),
        Signature("system", "you are the component that summarizes a conversation when its context window", Kind.COMPACTION),
        Signature("last", "you are the component that summarizes a conversation when its context window", Kind.COMPACTION),
        Signature("last", "please analyze the conversation history above and generate a comprehensive project", Kind.SUMMARY),
        Signature("system", "you generate session recaps for a programming assistant cli", Kind.SUMMARY),
        Signature("last", "[suggestion mode: suggest what the user might naturally type next", Kind.SIDE),
        Signature("last", "first, reason in your <analysis> block. then, produce the <state_snapshot> xml", Kind.COMPACTION),
        *COMPACTIONS,
    ),
    # Which text a person typed
    wrappers=(
        *("system-reminder", "qwen:user-prompt-submit-context", "task-notification", "hook_context", "state_snapshot"),
        *("available_skills", "untrusted_context", "session_context", "cross-session-message"),
    ),
    sentences=(
        "the user requested the following:",
        "[suggestion mode:",
        "stop hook feedback:",
        "this is the qwen code. we are setting up the context for our chat",
        SHELL,
        *EDITOR,
    ),
    behind=(f"\n{FRAME[0]}",),
    frame=FRAME,
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=60.0,
    # What brings it to the proxy
    programs=("qwen",),
    bases=OPENAI,
)
