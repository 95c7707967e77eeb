"""Continue's `cn`: files stand in wrappers in front of the typed text, in the same part."""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature

CONTINUE = Client(
    name="continue",
    title="cn",
    tried="1.5.47",
    # How it is recognised
    introductions=("you are an agent in the continue cli",),
    # The kinds of its calls
    signatures=(
        Signature("last", "please provide a concise summary of our conversation so far", Kind.COMPACTION),
        Signature("last", "given the following... please reply with a title for the chat", Kind.TITLE),
        Signature("first", "given the following... please reply with a title for the chat", Kind.TITLE),
    ),
    # Which text a person typed
    wrappers=("context", "context_item", "file", "rule", "system-reminder"),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=300.0,
    # What brings it to the proxy
    programs=("cn",),
)
