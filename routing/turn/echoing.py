"""A turn with the built-in provider `echo`: its rounds need no network, so the whole answer is there at once."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ..dialects.finish import AS_USUAL, Endings
from ..dialects.translation import going_up
from ..values import Call
from .participants import Participants
from .replies import Reply


async def converse(participants: Participants, call: Call, answer: Callable[[Call], Reply], endings: Endings = AS_USUAL) -> Reply:
    """The answer to `call`, merged from as many rounds as those who take part ask for."""
    id = participants.life.turn.id
    told = participants.answer(going_up.asked(call, id, endings=endings.named(id[:8])))
    first = reply = answer(call)
    body, delay_s = b"", 0.0
    while reply.status == 200:
        delay_s += reply.delay_s
        told.begin_round()
        body += told.feed(reply.body)
        following = await participants.next(told.end_round(), able=True)
        if following is None:
            break
        reply = answer(following.call)
    if first.status != 200:
        return first
    body += b"".join(told.finish())
    await participants.settle(told.id)
    return replace(first, body=body, delay_s=delay_s)
