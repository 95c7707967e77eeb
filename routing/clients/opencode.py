"""opencode: files, folders and resources are parts beside the person's own; `opencode run` quotes its arguments."""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature
from .ids import header

OPENCODE = Client(
    name="opencode",
    title="opencode",
    tried="1.18.33",
    # How it is recognised
    agents=("opencode/",),
    # Its ids
    session=(header("x-session-id"), header("x-session-affinity")),
    # The kinds of its calls
    signatures=(
        Signature("system", "you are a title generator", Kind.TITLE),
        Signature("first", "generate a title for this conversation", Kind.TITLE),
        Signature("system", "you are a context summarization agent", Kind.COMPACTION),
    ),
    # Which text a person typed
    wrappers=("system-reminder",),
    repeats=("conversation",),
    retold=("[User]: ", ("[Assistant", "[Tool result", *(f"Called the {tool} tool with" for tool in ("Read", "List")))),
    sentences=(
        "the following tool was executed by the user",
        "summarize the task tool output above and continue with your task",
        "continue if you have next steps, or stop and ask for clarification",
        "what did we do so far?",
        "read tool failed to read ",
        "failed to read mcp resource ",
        "use the above message and context to generate a prompt and call the task tool with subagent:",
    ),
    with_next_part=("called the read tool with the following input:", "called the list tool with the following input:"),
    with_all_behind=("reading mcp resource:",),
    quotes_arguments=True,
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=300.0,
    honours_retry_after=True,
    # What brings it to the proxy
    programs=("opencode",),
    trusts=("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"),
)
