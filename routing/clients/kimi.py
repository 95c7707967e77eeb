"""kimi-code: reminders follow the person's message in messages of their own."""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature
from .ids import cache_key

KIMI = Client(
    name="kimi-code",
    title="kimi",
    tried="2.1.0",
    # How it is recognised
    agents=("kimi",),
    # Its ids
    session=(cache_key(r"session_[\w-]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),),  # kimi-cli's has no word before it
    # The kinds of its calls
    signatures=(
        Signature("last", "you are about to run out of context. create a handoff summary", Kind.COMPACTION),
        Signature("system", "you are a helpful assistant that compacts conversation context", Kind.COMPACTION),  # kimi-cli 1.51
    ),
    # Which text a person typed
    wrappers=("system-reminder", "notification", "task-notification"),
    # How it repeats the history
    history="as it was; reminders move to the end",
    # What it bears
    waits_s=300.0,
    # What brings it to the proxy
    programs=("kimi",),
)
