"""Gemini CLI: files that the person named follow in parts between two frames; the router asks before each message."""

from __future__ import annotations

import re

from ..values import Call, Kind, Text
from .client import GEMINI, Client, Signature
from .ids import at

EDITOR = ("here is the user's editor context as", "here is a summary of changes in the user's editor context")
"""What an editor shows, in a message of its own, here and in the fork."""
SHELL = "i ran the following shell command:\n```sh\n"
"""What came of a command that the person ran, in their name; here and in the fork, which does not even close its fences."""
FRAME = ("--- Content from referenced files ---", "--- End of content ---")
COMPACTIONS = (
    Signature("system", "responsible for distilling chat history into a structured xml", Kind.COMPACTION),
    Signature("last", "generate a new <state_snapshot> based on the provided history", Kind.COMPACTION),
    Signature("last", "first, reason in your scratchpad. then, generate the <state_snapshot>", Kind.COMPACTION),
)
_BEGINS = re.compile(r"\s*<(session_context|system-reminder)>")
"""A conversation, here and in the fork."""
_PROVIDERS = frozenset(("googleSearch", "google_search", "urlContext", "url_context"))
_FORM = ("respond_in_schema",)
"""The fork's way of asking for JSON."""


def asks_beside(call: Call) -> Kind | None:
    """A page that it fetched, what a tool said, a search: one text in the person's name, with none of its functions, and not the
    beginning of a conversation. Who wrote that page or that output typed nothing."""
    if call.tools == _FORM:
        return Kind.SIDE
    if not _PROVIDERS.issuperset(call.tools):
        return None
    texts = (part.text for message in call.messages if message.role == "user" for part in message.parts if isinstance(part, Text))
    return None if _BEGINS.match(next(texts, "")) else Kind.SIDE


GEMINI_CLI = Client(
    name="gemini-cli",
    title="Gemini CLI",
    tried="0.61.0",
    # How it is recognised
    agents=("geminicli",),
    # Its ids
    session=(at("request", "session_id"),),
    prompt=(at("user_prompt_id"),),
    # The kinds of its calls
    beside=asks_beside,
    signatures=(
        Signature("system", "you are a specialized task routing ai", Kind.ROUTER),
        Signature("first", "summarize the user's primary intent or goal in this conversation", Kind.SUMMARY),
        *COMPACTIONS,
    ),
    # Which text a person typed
    wrappers=("session_context", "hook_context", "untrusted_context", "state_snapshot", "system-reminder", "available_skills"),
    sentences=(
        "this is the gemini cli. we are setting up the context for our chat",
        "summarize the following tool output to be a maximum of",
        "follow the user's instructions below using the provided webpage content",
        SHELL,
        *EDITOR,
    ),
    behind=(f"\n{FRAME[0]}",),
    frame=FRAME,
    # How it repeats the history
    history="as it was; a resumed session may hold each function's response twice",
    # What it bears
    waits_s=60.0,
    # What brings it to the proxy
    programs=("gemini",),
    bases=GEMINI,
    loses="wants its way of signing in chosen in its settings",
    avoid=("GOOGLE_GENAI_USE_VERTEXAI",),
)
