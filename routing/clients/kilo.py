"""Kilo: opencode's fork; what it tells of where it runs stands in a part of its own behind the person's."""

from __future__ import annotations

from msgspec.structs import replace

from ..values import Call, Headers, Kind
from .client import Signature
from .opencode import OPENCODE

_BESIDE = "title-"


def _session(call: Call, headers: Headers) -> object:
    """A title is asked for under the session's name, and more."""
    return headers.get("x-session-id", "").removeprefix(_BESIDE)


KILO = replace(
    OPENCODE,
    name="kilo",
    title="Kilo",
    tried="7.7.7",
    # How it is recognised
    agents=("kilo/",),
    # Its ids
    session=(_session,),
    # The kinds of its calls
    signatures=(*OPENCODE.signatures, Signature("last", "here is the conversation so far:\n\n<conversation>", Kind.COMPACTION)),
    # Which text a person typed
    wrappers=(*OPENCODE.wrappers, "environment_details"),
    # What brings it to the proxy
    programs=("kilo", "kilocode"),
)
