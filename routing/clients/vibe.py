"""Mistral Vibe: says in each call what it is for; files that the person named stand behind their words, in the same text.

After a compaction what the person typed stands between two texts of its own, as it was.
"""

from __future__ import annotations

from ..dialects.fields import object_of, text_of
from ..values import Call, Headers, Kind
from .client import Client, Signature
from .ids import at

_KINDS = {"smart_approve": Kind.SIDE, "title_generation": Kind.TITLE, "worktree_title": Kind.TITLE}
"""What answers nobody's prompt. Calls with a tool's result and compactions go by one name."""


def _declares(call: Call, headers: Headers) -> Kind | None:
    said = object_of(call.body.get("metadata"))
    return _KINDS.get(text_of(said.get("call_type"))) if said.get("call_source") == "vibe_code" else None


def _asks_beside(call: Call) -> Kind | None:
    """A picture that it has described: its conversations always have tools."""
    return None if call.tools else Kind.SIDE


VIBE = Client(
    name="vibe",
    title="Mistral Vibe",
    tried="3.0.2",
    # How it is recognised
    introductions=(
        "you help users get complex tasks done. act directly and proactively",
        "you name coding-agent sessions so the user can find one",
    ),
    # Its ids
    session=(at("metadata", "session_id"),),
    # The kinds of its calls
    declares=_declares,
    beside=_asks_beside,
    signatures=(
        Signature(
            "last",
            "critical: respond with text only. do not call any tools. any tool call will be rejected.\n\n"
            "you are performing a context checkpoint compaction",
            Kind.COMPACTION,
        ),
    ),
    # Which text a person typed
    wrappers=("loop_instructions", "skill_content", "teleported_prompt", "previous_user_messages", "compaction_summary"),
    sentences=(
        "manual `!` command result from the user. use this as context only.",
        "you are continuing a trajectory after a context compaction.",
        "</previous_user_messages>",
    ),
    behind=("\n\nResource: file://",),
    cuts=("</previous_user_messages>",),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=720.0,
    whole_calls=True,
    # What brings it to the proxy
    programs=("vibe",),
    trusts=("SSL_CERT_FILE",),
)
