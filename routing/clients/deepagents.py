"""Deep Agents Code: in its terminal, files that the person named stand behind their words, in the same text."""

from __future__ import annotations

from ..values import Kind
from .client import Client, Signature

_NAMES = "name this coding conversation with a concise noun or action phrase"

DEEPAGENTS = Client(
    name="deepagents-code",
    title="Deep Agents Code",
    tried="0.1.88",
    # How it is recognised
    introductions=("# deep agents code (dcode)", _NAMES),
    # The kinds of its calls
    signatures=(Signature("system", _NAMES, Kind.TITLE),),
    # Which text a person typed
    wrappers=("user_shell_command",),
    sentences=("[system] ",),
    behind=("\n\n## Referenced Files\n",),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("dcode",),
    trusts=("SSL_CERT_FILE",),
)
