"""A turn with the clock and without a network: what each round sends, what lies in the store, what is told."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routecodex.routing.clock.moment import Moments
from routecodex.routing.clock.plugin import ClockPlugin
from routecodex.routing.clock.reminders import Reservations
from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.clock.watch import Watch
from routecodex.routing.config.values import Clock
from routecodex.routing.dialects.calls import for_target
from routecodex.routing.dialects.said import Said
from routecodex.routing.sessions.state import EMPTY
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.storage.contract import InThread
from routecodex.routing.storage.disk import Disk
from routecodex.routing.turn.hidden import Hidden
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.participants import Participants
from routecodex.routing.turn.plugins import Plugin, TurnInfo
from routecodex.routing.turn.roster import takers
from routecodex.routing.values import Call, Caller, Dialect, JsonObject, Kind, ToolCall, Usage
from tests.rig.leaping import Leaping
from tests.routing.turn.acting import tcall
from tests.routing.turn.hidden_talk import TALKS

TALK = {talk.dialect: talk for talk in TALKS}
SESSION = "s1"
FAILS = "fails"
"""A round that is never answered."""
LEAVES = "leaves"
"""The client goes before the round's first content."""
Reply = Said | str


def said(text: str, *, dialect: Dialect = Dialect.MESSAGES, finish: str = "stop", own: Sequence[ToolCall] = ()) -> Said:
    tools = tuple((call.id, call.name, json.loads(call.arguments)) for call in own)
    native = tuple(TALK[dialect].answer(text, *tools))
    return Said(text, tuple(own), tuple(own), finish, Usage(1, 1), f"id-{text}", native)  # type: ignore[arg-type]


def calls_clock(action: str, **fields: Any) -> ToolCall:
    return ToolCall("c1", "clock", json.dumps({"action": action, "items": [], "taskId": "", **fields}))


class Past:
    """What stays hidden from the client; nobody asks for it here."""

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        hidden()


async def at_once(work: Callable[[], None]) -> None:
    work()


@dataclass
class Played:
    bodies: list[JsonObject] = field(default_factory=list)
    suffixes: list[str] = field(default_factory=list)
    status: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def sent(self) -> list[str]:
        return [json.dumps(body, ensure_ascii=False) for body in self.bodies]


@dataclass
class House:
    folder: Path
    settings: Clock = field(default_factory=Clock)
    disk: Disk | None = None
    derived_too: bool = False
    others: Sequence[Plugin] = ()
    """Before the clock…"""
    later: Sequence[Plugin] = ()
    """… and behind it."""
    lines: list[str] = field(default_factory=list)
    reservations: Reservations = field(default_factory=Reservations)
    wall: float = field(default_factory=time.time)
    """At the start; it goes on as `clock` does."""
    clock: Leaping = field(default_factory=Leaping)

    def __post_init__(self) -> None:
        numbers = itertools.count(1)
        started = self.clock.now
        self.store = ClockStore(self.folder, self.disk)
        self.moments = Moments(lambda: self.wall + self.clock.now - started, self.clock, timezone="Etc/UTC")
        self.watch = Watch(
            self.store, self.moments, self.reservations, lambda: f"new-{next(numbers)}", lambda: {"status": "disabled"}
        )
        self.plugin = ClockPlugin(self.watch, self.settings, self._tell, self.lines.append, derived_too=self.derived_too)
        self.told: dict[str, list[str]] = {}
        self.lives: list[Lifecycle] = []

    def _tell(self, turn: TurnInfo, line: str) -> None:
        self.told.setdefault(turn.id, []).append(line)

    def task(self, text: str, in_s: float, *, session: str = SESSION, **more: Any) -> Task:
        """One that is there already."""
        now = self.moments.now_ms()
        task = Task(f"id-{text}", session, now + round(in_s * 1000), now, now, text, **more)
        self.store.update(session, lambda tasks: [*tasks, task])
        return task

    @property
    def delivered(self) -> dict[str, int]:
        return {task.task: task.delivery_count for task in self.store.load(SESSION) if task.delivered_at_ms is not None}

    def play(self, *replies: Reply, **how: Any) -> Played:
        return self.clock.run(self.played(*replies, **how))

    async def played(
        self,
        *replies: Reply,
        call: Call | None = None,
        id: str = "turn-1",
        session: str | None = SESSION,
        derived: bool = False,
        kind: Kind = Kind.MAIN,
        begun: Callable[[], Awaitable[None]] | None = None,
        able: bool = True,
    ) -> Played:
        """`begun` is awaited when the first round's first content has gone to the client."""
        call = call or tcall()
        key = SessionKey("session", session or "chain")
        turn = TurnInfo(id, call, Caller("test", kind, session, derived=derived), key, EMPTY, time.time, self.clock, prompt="p")
        played = Played()
        self.lives.append(Lifecycle(turn, takers([*self.others, self.plugin, *self.later], turn)))
        participants = Participants(self.lives[-1], call, Past(), key, at_once)
        try:
            await self._rounds(participants, list(replies), played, begun, able=able)
        except Exception as error:
            await participants.leave(aborted=False, error=type(error).__name__)
            raise
        finally:
            played.status = turn.status
            played.notes = turn.notes
        await participants.leave(aborted=turn.aborted, error="it failed" if played.status == "error" else "")
        return played

    async def _rounds(
        self,
        participants: Participants,
        replies: list[Reply],
        played: Played,
        begun: Callable[[], Awaitable[None]] | None,
        *,
        able: bool,
    ) -> None:
        life = participants.life
        call = participants.offer(await participants.begin(), able=able)
        while True:
            played.bodies.append(json.loads(for_target(call, "", foreign=False)))
            reply = replies.pop(0)
            if reply == LEAVES:
                life.abort()
                return
            if isinstance(reply, str):
                if life.turn.rounds:
                    break
                life.fail(RuntimeError("no answer"))
                return
            if life.turn.stream:
                participants.begun()
                if begun is not None and not life.turn.rounds:
                    await begun()
            following = await participants.next(reply, able=able)
            if following is None:
                if life.turn.aborted:
                    return
                break
            played.suffixes.append(following.suffix)
            call = following.call
        await participants.settle("msg-1")
