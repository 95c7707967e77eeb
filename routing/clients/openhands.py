"""OpenHands: to OpenAI it names the conversation; a file that begins one stands in the person's place."""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature
from .ids import cache_key

_CONDENSES = "you are maintaining a context-aware state summary for an interactive agent"

OPENHANDS = Client(
    name="openhands",
    title="OpenHands",
    tried="1.16.0",
    # How it is recognised
    introductions=("you are openhands agent",),
    # Its ids
    session=(cache_key(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),),
    # The kinds of its calls
    signatures=(Signature("first", _CONDENSES, Kind.COMPACTION),),
    # Which text a person typed
    sentences=(
        "starting this session with file context.",
        "your last response did not include a function call or a message.",
        "[stop hook feedback] ",
    ),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=300.0,
    # What brings it to the proxy
    programs=("openhands",),
    trusts=("SSL_CERT_FILE",),
)
