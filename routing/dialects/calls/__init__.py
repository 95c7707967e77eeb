"""A client's call in any of the four dialects: read it, edit it, write it for a target of the same dialect.

1. Bytes from outside give a `Call` or a `BadCall`.
2. A call that nobody changed, for the host and the model the client asked, is its own bytes.
3. Every edit is deterministic: the same call with the same edits gives the same bytes.
4. `call.messages[i].index == i`, before and after every edit; edits keep the views true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from ...errors import BadCall
from ...jsonbytes import dumps
from ...short_cache import LONGEST
from ...values import Call, Dialect, Endpoint, JsonObject
from ..translation.neutral import LeftOut
from . import chat, gemini, messages, responses
from .editing import Exchange, inner_body

__all__ = ["Exchange", "bare", "drop_exchanges", "edit_texts", "for_target", "inner_body", "read_call"]


class _Calls(Protocol):
    """What each of the four modules offers, in this order."""

    def read_call(self, raw: bytes, endpoint: Endpoint) -> Call: ...
    def edit_texts(self, call: Call, edits: Mapping[tuple[int, int], str]) -> None: ...
    def drop_exchanges(self, call: Call, exchanges: Iterable[Exchange]) -> bool: ...
    def bare(self, call: Call, model: str, own: Collection[str], left: LeftOut) -> JsonObject: ...
    def at_home(self, call: Call, model: str) -> bytes: ...


_DIALECTS: Mapping[Dialect, _Calls] = {
    Dialect.MESSAGES: messages,
    Dialect.CHAT: chat,
    Dialect.RESPONSES: responses,
    Dialect.GEMINI: gemini,
}


def read_call(raw: bytes, endpoint: Endpoint) -> Call:
    """The call that these bytes are; BadCall where they are none."""
    call = _DIALECTS[endpoint.dialect].read_call(raw, endpoint)
    if len(call.model) > LONGEST or not call.model.isprintable():
        raise BadCall(f"`model` holds {len(call.model):,} characters, or some that cannot be seen: no model has such a name")
    return call


def edit_texts(call: Call, edits: Mapping[tuple[int, int], str]) -> None:
    """Give text parts, named by (message index, slot), a new text.

    An empty one takes the part out; its cache mark moves to a neighbour. A message that would be left with nothing says
    `editing.PLACEHOLDER`. Slots of a message that lost parts are counted anew; what names no text part is passed over.
    """
    _DIALECTS[call.endpoint.dialect].edit_texts(call, edits)


def drop_exchanges(call: Call, exchanges: Iterable[Exchange]) -> bool:
    """Take questions that were nothing but tags, and our answers to them, out of the history.

    What else stood in a question goes to the front of the next user message, system items between the two directly behind
    that message. One that no user message follows stays. False, and nothing done, where all stay.
    """
    return _DIALECTS[call.endpoint.dialect].drop_exchanges(call, exchanges)


def for_target(call: Call, model: str, *, foreign: bool, own: Collection[str] = (), left: LeftOut | None = None) -> bytes:
    """The body for a target that speaks the call's dialect. An empty model means the client's own.

    `foreign`: the target is not the host the client called, so identity fields, billing lines, credentials of third parties,
    and signatures and encrypted thinking stay behind, but for those in `own`: the ones that this target itself is known to have
    made. What stays behind is named in `left`.
    """
    return dumps(bare(call, model, own, left or LeftOut())) if foreign else _DIALECTS[call.endpoint.dialect].at_home(call, model)


def bare(call: Call, model: str, own: Collection[str], left: LeftOut) -> JsonObject:
    """The same for a foreign target, not written yet. It shares what did not change with the call: never write to it."""
    return _DIALECTS[call.endpoint.dialect].bare(call, model, own, left)
