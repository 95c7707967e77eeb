"""GitHub Copilot CLI: says in a header what a call is for; the time stands before each text, names of files behind it.

Its runtime's own texts are wrapped, but for the one that keeps its autopilot going. After a compaction one text holds all that
the person had typed.
"""

from __future__ import annotations

from ..values import Call, Headers, Kind
from .client import Client, Signature
from .ids import cache_key

_KINDS = {
    **dict.fromkeys(("user", "agent", "panel", "inline", "edits", "notebook", "terminal"), Kind.MAIN),
    "subagent": Kind.SUBAGENT,
    "compaction": Kind.COMPACTION,
}
"""What a conversation's calls say; the editor's own names among them. All others are made beside it."""


def _declares(call: Call, headers: Headers) -> Kind | None:
    """Its calls with a tool's result say nothing."""
    said = headers.get("x-interaction-type", "").strip().lower()
    return _KINDS.get(said.removeprefix("conversation-"), Kind.SIDE) if said else None


COPILOT = Client(
    name="copilot",
    title="GitHub Copilot CLI",
    tried="1.0.102",
    # How it is recognised
    introductions=(
        "you are the github copilot cli",
        "as a sub-agent, complete your parent's task yourself",
        "you are an exploration agent. answer the question as fast as possible",
        "you are a command execution agent that runs development commands",
        "you are a code review agent with an extremely high bar for feedback",
    ),
    # Its ids
    session=(cache_key(r"[0-9a-f]{32}"),),
    # The kinds of its calls
    declares=_declares,
    signatures=(
        Signature("last", "please create a detailed summary of the conversation so far. the history is being", Kind.COMPACTION),
    ),
    # Which text a person typed
    wrappers=(
        *("current_datetime", "mode_changed_notice", "tagged_files", "user_shell_command_output", "system_notification"),
        *("system_reminder", "todo_status", "file_changes", "user_progress_updates", "context_window_reminder"),
    ),
    repeats=("skill-context",),
    retold=("ARGUMENTS: ", ("</skill-context>",)),
    typed_in=("user_message",),
    sentences=("you have not yet marked the task as complete using the task_complete tool",),
    retellings=("the conversation history has been summarized to free up context",),
    cuts=("the conversation history has been summarized to free up context",),
    before=r"\s*<current_datetime>[^<>\n]{1,64}</current_datetime>\s*",
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=600.0,
    honours_retry_after=True,
    # What brings it to the proxy
    programs=("copilot",),
    trusts=("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"),
)
