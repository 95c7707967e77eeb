"""Ids of ours that Responses clients ask us to follow: no provider knows them, so none is ever asked to.

1. An answer of our own carries the id of the answer before it: what the client asks next follows that one, also after a restart.
2. An answer that began before its provider had said anything is known to the provider by another id.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...values import Call

_FIELD = "previous_response_id"
_OWN = re.compile(r"resp_routecodex_[0-9a-f]{32}(?:\.(?P<before>.+))?", re.DOTALL)
_LONGEST = 512


def own_id(call_id: str, before: str | None) -> str:
    """The id of our answer to a call (named by a uuid) that follows the answer `before`."""
    plain = f"resp_routecodex_{call_id.replace('-', '')}"
    return f"{plain}.{before}" if before and len(before) <= _LONGEST else plain


def begun_id(call_id: str) -> str:
    """The id of an answer that begins with us and goes on with a provider's."""
    return f"resp_routecodex_begun_{call_id.replace('-', '')}"


def followed(call: Call) -> tuple[str, ...]:
    """The answers that a call goes on from, as far as somebody may know more of them: the one it names, and one behind ours."""
    found = _OWN.fullmatch(call.previous_id or "")
    return tuple(id for id in (call.previous_id, found and found["before"]) if id)


def pass_over_ours(call: Call, begun: Callable[[str], str | None] = lambda id: None) -> None:
    """A call that follows an answer of ours follows the one before it instead; one that we began, what its provider calls it.

    `begun` knows that. Where it does not (any more), the id stays: the provider says so, and nothing is lost in silence.
    """
    found = _OWN.fullmatch(call.previous_id or "")
    id = call.previous_id if found is None else found["before"]
    id = id and (begun(id) or id)
    if id == call.previous_id:
        return
    call.previous_id = id
    if id is None:
        del call.body[_FIELD]
    else:
        call.body[_FIELD] = id
    call.changed = True
