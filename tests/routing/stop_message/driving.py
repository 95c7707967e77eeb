"""A turn without network: a lifecycle, a model that says what it is told to, and what was sent to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from routecodex.routing.dialects.calls import for_target, growing
from routecodex.routing.dialects.said import Said
from routecodex.routing.sessions.state import StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.plugins import Plugin, TurnInfo
from routecodex.routing.turn.record import Record
from routecodex.routing.turn.roster import takers
from routecodex.routing.values import Call, Caller, Kind, ProviderError, Usage
from tests.routing.turn.hidden_talk import Item, Talk

SESSION = SessionKey("session", "s")
FAILS = ProviderError(500, "no", "broken")
"""A round that is never answered."""


@dataclass
class Turned:
    """What became of one turn."""

    suffixes: list[str] = field(default_factory=list)
    """Of the rounds behind the first."""
    bodies: list[Item] = field(default_factory=list)
    answered: int = 0
    status: str = ""
    """In the clean-ups."""
    took_part: bool = True
    record: Record | None = None


def arm(store: FileStore, text: str = "go on", most: int = 3, *, session: SessionKey = SESSION, at: int = 5) -> None:
    stop = StopMessage(text, most, updated_at_ms=at)
    store.update(session, lambda state: state.with_(stop=stop, obeyed_before="0:x"))


def said(talk: Talk, text: str, **more: Any) -> Said:
    native = tuple(talk.answer(text)) if text else ()
    return Said(text, (), (), "stop", Usage(1, 1), f"id-{text}", native, **more)


@dataclass
class Stage:
    """Where turns are played."""

    store: FileStore
    talk: Talk
    plugins: Sequence[Plugin]
    kind: Kind = Kind.MAIN
    now: float = 1000.0
    session: SessionKey = SESSION
    leaves: Callable[[Turned], bool] = lambda turned: False
    """Whether the client leaves now (asked before each round and behind it)."""

    def play(self, replies: Sequence[Said | ProviderError], call: Call | None = None, id: str = "turn") -> Turned:
        return asyncio.run(self.played(replies, call, id))

    async def played(self, replies: Sequence[Said | ProviderError], call: Call | None = None, id: str = "turn") -> Turned:
        call = call or self.talk.call(self.talk.user("do it"))
        caller = Caller("test", self.kind, self.session.id)
        turn = TurnInfo(id, call, caller, self.session, self.store.load(self.session), lambda: self.now, lambda: self.now)
        turned = Turned()
        taking = takers(self.plugins, turn)
        turned.took_part = bool(taking)
        life = Lifecycle(turn, taking)
        await life.start()
        try:
            await self._rounds(life, call, list(replies), turned)
            await life.end()
            turned.record = life.record()
        finally:
            turned.status = turn.status
            await life.clean_up()
        return turned

    async def _rounds(self, life: Lifecycle, call: Call, replies: list[Said | ProviderError], turned: Turned) -> None:
        while True:
            sent = await life.before_request(call)
            turned.bodies.append(json.loads(for_target(sent, "", foreign=False)))
            if self.leaves(turned):
                life.abort()
                return
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            if isinstance(reply, ProviderError):
                if turned.answered == 0:
                    life.fail(RuntimeError("the first round failed"))
                return
            turned.answered += 1
            if self.leaves(turned):
                life.abort()
            following = await life.after_request(reply)
            if following is None:
                return
            turned.suffixes.append(following.suffix)
            call = growing.with_messages(call, following.items)
