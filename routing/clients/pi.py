"""pi: files that the person named stand in front of the typed text, in the same part."""

from __future__ import annotations

from .client import Client

PI = Client(
    name="pi",
    title="pi",
    tried="0.73.1",
    # How it is recognised
    introductions=("operating inside pi, a coding agent harness",),
    # Which text a person typed
    wrappers=("file", "skill"),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=300.0,
    # What brings it to the proxy
    command="pi",
)
