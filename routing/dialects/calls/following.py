"""What a Responses call goes on from by its name alone: an answer, a conversation, an item that a provider keeps; and ids of
ours among them: no provider knows those, so none is ever asked to follow one.

1. An answer of our own carries the id of the answer before it: what the client asks next follows that one, also after a restart.
2. An answer that began before its provider had said anything is known to the provider by another id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from ...values import Call, Dialect, JsonObject
from ..fields import list_of
from .editing import loose_text, objects_in

_FIELD = "previous_response_id"
_OWN = re.compile(r"resp_routecodex_[0-9a-f]{32}(?:\.(?P<before>.+))?", re.DOTALL)
_LONGEST = 512
_MADE = re.compile(r"[a-z]+_(?:resp_routecodex_\w+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_\d+(?:_\d+)?")
"""The name of an item that was made here."""


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


def leans_on_others(call: Call, own: Collection[str | None] = ()) -> bool:
    """Whether a part of its history is kept by whoever made it, and by nobody else. `own`: ids of those who are asked now.

    Thinking that is only named is no part that anybody would miss.
    """
    if call.endpoint.dialect is not Dialect.RESPONSES:
        return False
    if (call.previous_id is not None and call.previous_id not in own) or call.body.get("conversation"):
        return True
    named = (loose_text(item, "id") for item in objects_in(call.body, "input") if _is_reference(item))
    return any(not id.startswith("rs_") for id in named)


def _is_reference(item: JsonObject) -> bool:
    return item.get("type") == "item_reference" or (not item.get("type") and "role" not in item and "id" in item)


def may_be_named(call: Call) -> bool:
    """The client may go on from the answer by its name alone, or its items'."""
    return call.endpoint.dialect is Dialect.RESPONSES and call.body.get("store") is not False


def named_items(call: Call) -> Iterator[tuple[int, str]]:
    """Items that are only named: where in the history, and by which name."""
    if call.endpoint.dialect is Dialect.RESPONSES:
        for index, item in enumerate(list_of(call.body.get("input"))):
            if isinstance(item, dict) and _is_reference(item):
                yield index, loose_text(item, "id")


def was_made_here(id: str) -> bool:
    return _MADE.fullmatch(id) is not None


def pass_over_ours(call: Call, begun: Callable[[str], str | None] = lambda id: None) -> None:
    """A call that follows an answer of ours follows the one before it instead; one that we began, what its provider calls it.

    `begun` knows that. Where it does not (any more), the id stays: the provider says so, and nothing is lost in silence.
    """
    found = _OWN.fullmatch(call.previous_id or "")
    id = call.previous_id if found is None else found["before"]
    id = id and (begun(id) or id)
    if id != call.previous_id:
        follow(call, id)


def follow(call: Call, id: str | None) -> None:
    call.previous_id = id
    if id is None:
        del call.body[_FIELD]
    else:
        call.body[_FIELD] = id
    call.changed = True
