"""`plugins: [empty_reply]`: an answer with neither text nor calls is asked for once more."""

from __future__ import annotations

from ..dialects.said import is_empty
from ..values import Kind
from .plugins import AfterRequest, Plugin, TurnInfo, UserText

ONCE_MORE = "Your answer was empty. Please answer."


class EmptyReply(Plugin):
    """Only the turn's first answer: what follows it was asked for by somebody who looks after it."""

    at_once = True

    def wants(self, turn: TurnInfo) -> bool:
        return turn.kind is Kind.MAIN and not turn.call.structured

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        if not turn.followed and is_empty(after.said, turn.dialect):
            turn.notes.append("the answer was empty and is asked for once more")
            after.append_and_request(UserText(ONCE_MORE))
