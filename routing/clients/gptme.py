"""gptme: files stand behind the person's words in the same text, in fences of four; what else it says stands in `<system>`.

For Anthropic messages that follow each other become one text: what was refused, its note about that, and what was typed then.
"""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature

_NAMES = "generate concise conversation titles."

GPTME = Client(
    name="gptme",
    title="gptme",
    tried="0.35.1",
    # How it is recognised
    introductions=("you are gptme", _NAMES),
    # The kinds of its calls
    signatures=(
        Signature("system", _NAMES, Kind.TITLE),
        Signature("last", "context budget has been reached", Kind.COMPACTION),
        Signature("last", "the messages above are an older part of a long conversation", Kind.COMPACTION),
    ),
    # Which text a person typed
    wrappers=("system",),
    joins=True,
    attached=((r"^````[^\s`][^\n`]*$", r"^````$"),),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("gptme",),
    trusts=("SSL_CERT_FILE",),
    trusts_also=("REQUESTS_CA_BUNDLE",),
)
