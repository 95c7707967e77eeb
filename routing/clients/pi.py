"""pi: files that the person named stand in front of the typed text, in the same part."""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature

PI = Client(
    name="pi",
    title="pi",
    tried="0.73.1",
    # How it is recognised
    introductions=("operating inside pi, a coding agent harness",),
    # The kinds of its calls
    signatures=(
        Signature("system", "you are a context summarization assistant", Kind.COMPACTION),
        Signature("last", "the messages above are a conversation to summarize", Kind.COMPACTION),
        Signature("last", "the messages above are new conversation messages to incorporate", Kind.COMPACTION),
    ),
    # Which text a person typed
    wrappers=("file", "skill"),
    printed=r"Ran `[\s\S]{1,2000}?`\n(?:```\n|\(no output\))",
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=300.0,
    # What brings it to the proxy
    programs=("pi",),
)
