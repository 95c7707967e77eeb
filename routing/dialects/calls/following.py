"""Ids of answers that we gave ourselves to Responses clients: no provider knows them, so none is ever asked to follow one.

Such an id carries the id of the answer before it: what the client asks next follows that one, also after a restart.
"""

from __future__ import annotations

import re

from routing.values import Call

_FIELD = "previous_response_id"
_OWN = re.compile(r"resp_routecodex_[0-9a-f]{32}(?:\.(?P<before>.+))?", re.DOTALL)
_LONGEST = 512


def own_id(call_id: str, before: str | None) -> str:
    """The id of our answer to a call (named by a uuid) that follows the answer `before`."""
    plain = f"resp_routecodex_{call_id.replace('-', '')}"
    return f"{plain}.{before}" if before and len(before) <= _LONGEST else plain


def pass_over_ours(call: Call) -> None:
    """A call that follows an answer of ours follows the one before it instead."""
    found = _OWN.fullmatch(call.previous_id or "")
    if found is None:
        return
    call.previous_id = found["before"]
    if call.previous_id is None:
        del call.body[_FIELD]
    else:
        call.body[_FIELD] = call.previous_id
    call.changed = True
