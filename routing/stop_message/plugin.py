"""stopMessage as a plugin: says the person's text again after a plain stop, as often as the person asked for.

1. The count is on disk before the round is asked for. What cannot be counted is not sent.
2. A follow-up that comes back empty is asked for once more; empty again, or failed, it ends the stopMessage, and the answer
   before it stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from ..clients.kinds import starts_as_compaction
from ..config.values import StopSettings
from ..dialects.said import is_empty
from ..errors import StoreError
from ..sessions.state import SessionState, StopMessage
from ..sessions.store import States
from ..storage.contract import InThread, Lost
from ..turn.plugins import STOP_FOLLOWUP, AfterRequest, CleanUp, Plugin, TurnInfo, UserText
from ..values import Call, Kind
from .decide import (
    Continue,
    Info,
    No,
    claim,
    is_armed,
    should_continue,
    spent,
    text_to_send,
)
from .guards import Loop
from .work_state import Work, from_conversation

Probe = Callable[[Call], Awaitable[Work]]
Note = Callable[[TurnInfo, str], None]
"""A line for the log and the flow's comment."""


class _TurnNotes(Struct):
    """What is known of one turn."""

    stop: StopMessage | None
    """The stopMessage as it was last seen; None when nothing is left of it."""
    loop: Loop = field(default_factory=Loop)
    text: str = ""
    """What was said last in the person's name."""
    asked_after: int = 0
    """How many rounds had been answered when we asked for another one; 0: nothing is open."""
    is_again: bool = False
    """The open round was asked for a second time."""


class StopMessagePlugin(Plugin):
    same_hooks = True
    name = "stop_message"
    suffix = STOP_FOLLOWUP

    def __init__(
        self,
        store: States,
        settings: StopSettings,
        probe: Probe,
        note: Note,
        in_thread: InThread = asyncio.to_thread,
        *,
        refuses: bool = False,
    ) -> None:
        """`refuses`: where the store is gone, a turn of which nothing has left is refused; its client asks again."""
        self._store = store
        self._in_thread = in_thread
        self._settings = settings
        self._probe = probe
        self._note = note
        self._refuses = refuses
        self._turns: dict[str, _TurnNotes] = {}

    def wants(self, turn: TurnInfo) -> bool:
        """Only calls in which a person talks to the model, never one in which a history is being compacted."""
        return (
            self._settings.enabled
            and is_armed(turn.state.stop)
            and turn.kind is Kind.MAIN
            and not turn.call.structured
            and not starts_as_compaction(turn.call)
        )

    async def on_turn_start(self, turn: TurnInfo) -> CleanUp:
        self._turns[turn.id] = _TurnNotes(turn.state.stop)

        async def over() -> None:
            await self._settle(turn)
            self._turns.pop(turn.id, None)

        return over

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        mine = self._turns[turn.id]
        follows, mine.asked_after = mine.asked_after > 0, 0
        mine.loop = mine.loop.after(after.said, turn.monotonic())
        if mine.loop.warns:
            self._note(turn, f"warning: the model has said the same {mine.loop.same} times in a row")
        if follows and is_empty(after.said, turn.dialect):
            await self._empty(turn, mine, after)
            return
        mine.is_again = False
        answer = await self._decide(turn, mine, after)
        if isinstance(answer, No):
            if mine.stop is not None:
                self._note(turn, f"stopMessage does not go on: {answer.reason}")
        elif (text := await self._claim(turn, mine)) and not turn.aborted:
            self._ask(turn, mine, after, text)

    async def on_turn_end(self, turn: TurnInfo) -> None:
        await self._settle(turn)

    async def _decide(self, turn: TurnInfo, mine: _TurnNotes, after: AfterRequest) -> Continue | No:
        """The project is only asked about its work where everything else says yes."""
        answer = should_continue(after.said, mine.stop, self._info(turn, mine))
        if isinstance(answer, No):
            return answer
        if await after.earlier_plugins():
            return No("another plugin asks first")
        if turn.caller.user:  # the folder that a tool names is one of its own machine
            work = from_conversation(turn.call)
            work = Work.UNKNOWN if work is Work.IDLE else work
        else:
            work = await self._probe(turn.call)
        return should_continue(after.said, mine.stop, self._info(turn, mine, work))

    def _info(self, turn: TurnInfo, mine: _TurnNotes, work: Work = Work.UNKNOWN) -> Info:
        return Info(
            client_present=not turn.aborted,
            loop=mine.loop,
            now=turn.monotonic(),
            max_total_s=self._settings.max_total_s,
            identical_rounds=self._settings.identical_rounds,
            work=work,
        )

    async def _claim(self, turn: TurnInfo, mine: _TurnNotes) -> str:
        """The text to send, once it is counted; empty where nothing may be sent."""
        claimed: list[StopMessage] = []

        def change(state: SessionState) -> SessionState:
            claimed.clear()  # an earlier try came to nothing
            new, may_send = claim(state, round(turn.now() * 1000))
            if may_send and state.stop is not None:
                claimed.append(state.stop)
            mine.stop = new.stop
            return new

        try:
            await self._store.change(turn.session, change, self._in_thread)
        except StoreError as error:
            if self._refuses and isinstance(error, Lost) and not turn.begun:
                raise
            self._note(turn, f"stopMessage does not go on: it cannot be counted ({error.message})")
            return ""
        if not claimed:
            self._note(turn, "stopMessage does not go on: it was used up or cleared meanwhile")
            return ""
        self._note(turn, f"stopMessage {claimed[0].used + 1}/{claimed[0].max_repeats}")
        return text_to_send(claimed[0])

    def _ask(self, turn: TurnInfo, mine: _TurnNotes, after: AfterRequest, text: str) -> None:
        mine.text, mine.asked_after = text, turn.rounds
        after.append_and_request(UserText(text))

    async def _empty(self, turn: TurnInfo, mine: _TurnNotes, after: AfterRequest) -> None:
        if turn.aborted:
            return
        if mine.is_again:
            await self._give_up(turn, mine, "the follow-up came back empty twice")
            return
        mine.is_again = True
        self._note(turn, "the follow-up came back empty and is asked for once more")
        self._ask(turn, mine, after, mine.text)

    async def _settle(self, turn: TurnInfo) -> None:
        """A round that was asked for and never answered has failed, if its client has not left."""
        mine = self._turns.get(turn.id)
        if mine is not None and mine.asked_after and not turn.aborted:
            mine.asked_after = 0
            await self._give_up(turn, mine, "the follow-up failed")

    async def _give_up(self, turn: TurnInfo, mine: _TurnNotes, reason: str) -> None:
        """The stopMessage is over; one that was set meanwhile stays."""
        known, mine.stop = mine.stop, None
        self._note(turn, f"stopMessage is cleared: {reason}")

        def change(state: SessionState) -> SessionState:
            is_known = known is not None and state.stop is not None and state.stop.updated_at_ms == known.updated_at_ms
            return spent(state, round(turn.now() * 1000)) if is_known else state

        if known is not None:
            try:
                await self._store.change(turn.session, change, self._in_thread)
            except StoreError as error:
                self._note(turn, f"stopMessage could not be cleared ({error.message})")
