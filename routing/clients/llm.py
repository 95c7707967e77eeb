"""llm: a library's user agent and no instructions of its own, so its calls are read as any program's."""

from __future__ import annotations

from .client import ANTHROPIC, OPENAI, Client

LLM = Client(
    name="llm",
    title="llm",
    tried="0.36",
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("llm",),
    trusts=("SSL_CERT_FILE",),
    bases={**ANTHROPIC, **OPENAI},
)
