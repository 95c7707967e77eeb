"""A session id for clients that name none, made from what stays the same over a conversation.

1. The id tells nothing about the credential: it is one way, and never made of the credential alone.
2. Known tools give side calls other instructions than the conversation, and change them on the way: only their
   first typed text and working directory count. What other programs send is told apart by its instructions too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..clients.identify import NAMES, client_of, workdir_of
from ..clients.kinds import system_head
from ..clients.typed import Typed, typed_messages
from ..values import Call, Caller

_PREFIX = "derived-"
_DIGITS = 40
_SYSTEM_START = 200


def derive_session(call: Call, caller: Caller, credential: str, typed: Sequence[Typed] | None = None) -> str | None:
    """The same id on every later call of the same conversation; None where the call does not hold its beginning.

    `typed`: the call's typed messages, where somebody has read them already.
    """
    if call.previous_id is not None:
        return None
    typed = typed_messages(call, client_of(caller)) if typed is None else typed
    first = next((message.words for message in typed if message.words), None)
    if first is None:
        return None
    about = workdir_of(call) or "" if caller.client in NAMES else system_head(call)[:_SYSTEM_START]
    return _PREFIX + _digest(credential, caller.client, about, first)


def _digest(*pieces: str) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        raw = piece.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()[:_DIGITS]
