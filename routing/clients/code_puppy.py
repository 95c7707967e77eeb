"""Code Puppy: names itself to OpenAI and passes for Claude Code at Anthropic; it has each of its answers looked at beside."""

from __future__ import annotations

from ..values import Call, Headers, Kind
from .client import Client, Signature

_NAMES, _LOOKS = "you name coding-agent chat sessions", "decide whether the assistant is merely waiting for permission"

_SUBAGENTS = "\n## Sub-agent execution context"


def _declares(call: Call, headers: Headers) -> Kind | None:
    """What the main agent writes for another one looks like a person's message: its instructions tell."""
    told = _SUBAGENTS in call.system or any(_SUBAGENTS in one.text for one in call.messages if one.role == "system")
    return Kind.SUBAGENT if told else None


CODE_PUPPY = Client(
    name="code-puppy",
    title="Code Puppy",
    tried="0.0.946",
    # How it is recognised
    agents=("code-puppy/",),
    introductions=("the most loyal digital puppy", _NAMES, _LOOKS),
    passes_for=("claude-cli/",),
    # The kinds of its calls
    declares=_declares,
    signatures=(
        Signature("system", _NAMES, Kind.TITLE),
        Signature("system", _LOOKS, Kind.SIDE),
        Signature("system", "you are a context summarization assistant", Kind.COMPACTION),
    ),
    # Which text a person typed
    sentences=("summary of previous conversation:",),
    cuts=("summary of previous conversation:",),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("code-puppy", "pup"),
    trusts=("SSL_CERT_FILE",),
)
