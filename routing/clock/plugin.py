"""The clock as a plugin: the time with every call, reminders with the next call or within an open answer, and the tool.

1. A reminder is reserved before its request is sent and committed when that request's answer begins to reach the client. Whatever
   ends the turn before gives it up again: the next call brings it.
2. A commit is written in the background, and is on disk before the end of the answer leaves.
3. A reminder comes only where the model has the tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar, assert_never

from msgspec import Struct, field

from ..clients.kinds import starts_as_compaction
from ..config.values import Clock
from ..dialects.calls.ending import with_texts
from ..dialects.said import waits_for_client
from ..errors import StoreError
from ..jsonbytes import dumps
from ..tags.notice import Cause
from ..turn.plugins import STOP_FOLLOWUP, AfterRequest, CleanUp, Plugin, Request, ServerTool, TurnInfo, UserText
from ..turn.tools import takes_any
from ..values import Caller, JsonObject, Kind, ToolCall
from .hold import HOLD_TOTAL_S, Deliver, No, Wait, may_hold, next_step
from .moment import local_text
from .reminders import Reservation, reminder_text
from .tasks import Tasks
from .time_tag import tag_text, takes_tag, takes_texts
from .tool import ACTIONS, DESCRIPTION, NAME, SCHEMA, answer
from .watch import Watch, counted

T = TypeVar("T")

HOLD_SUFFIX = ":clock_hold_followup"

_SPARE_S = 15.0
"""What a hook may take beside the longest hold."""
_SLACK_S = 1.0
"""The two clocks by which a hold is measured may part a little while it lasts."""

Note = Callable[[TurnInfo, str], None]
"""A line for the log and the flow's comment."""
Log = Callable[[str], None]
"""A line for the log alone, from any thread."""


class _Lot(Struct):
    """Tasks that one round brings."""

    reservation: Reservation
    round: int
    writing: asyncio.Future[Tasks | StoreError] | None = None
    """The commit, once the round's answer has begun."""


class _TurnNotes(Struct):
    session: str | None
    lots: list[_Lot] = field(default_factory=list)
    reminds: bool = False
    """The model has the tool, as far as the call decides that, and its answer is not one to be gone on with as it stands."""
    answered_at: float | None = None
    """When the first answer was complete."""


class ClockPlugin(Plugin):
    at_once = True
    name = NAME

    def __init__(
        self,
        watch: Watch,
        settings: Clock,
        note: Note,
        log: Log = lambda line: None,
        *,
        derived_too: bool = False,
        threads: Executor | None = None,
    ) -> None:
        """`derived_too`: sessions that are only known by their beginning may have tasks as well. `threads`: for what waits for
        the disk; None: the loop's own."""
        self.hook_limit_s = settings.hold_max_ms / 1000 + _SPARE_S
        self.tools = (ServerTool(NAME, DESCRIPTION, SCHEMA, self._run_tool, strict=True),)
        self._watch = watch
        self._settings = settings
        self._note = note
        self._log = log
        self._derived_too = derived_too
        self._threads = threads
        self._turns: dict[str, _TurnNotes] = {}

    def wants(self, turn: TurnInfo) -> bool:
        return turn.kind is Kind.MAIN and not turn.call.structured and not starts_as_compaction(turn.call)

    async def on_turn_start(self, turn: TurnInfo) -> CleanUp:
        self._turns[turn.id] = _TurnNotes(self._session(turn.caller))

        async def over() -> None:
            await self._settle(turn)
            self._turns.pop(turn.id, None)

        return over

    async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
        """The reminder, then the time; in the turn's first round only."""
        if request.round:
            return
        call, mine = request.call, self._turns[turn.id]
        if not takes_texts(call):
            return
        mine.reminds = mine.session is not None and takes_any(call, self.tools, kind=turn.kind)
        texts: list[str] = []
        if (found := await self._reserve(turn, mine)) is not None:
            texts.append(reminder_text(found.tasks))
            request.stays.append(texts[-1])
        if takes_tag(call):
            texts.append(tag_text(self._watch.moments.moment()))
        if texts:
            request.call = with_texts(call, texts)

    def on_answer_begun(self, turn: TurnInfo) -> None:
        for lot in self._turns[turn.id].lots:
            if lot.round < turn.begun and lot.writing is None:
                # no task: this is called from within mitmproxy's layers, where none may begin
                lot.writing = asyncio.get_running_loop().run_in_executor(self._threads, self._watch.commit, lot.reservation)

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        """Hold the answer open for a task that is nearly due, if nobody else goes on, and no stopMessage has in this turn."""
        mine, began, settings = self._turns[turn.id], turn.monotonic(), self._settings
        mine.answered_at = began if mine.answered_at is None else mine.answered_at
        is_held = may_hold(
            after.said,
            stream=turn.stream,
            hold_non_streaming=settings.hold_non_streaming,
            waits_for_client=waits_for_client(after.said.native),
        )
        if mine.session is None or not mine.reminds or not is_held or STOP_FOLLOWUP in turn.followed:
            return
        if await after.earlier_plugins():
            return
        left_s = min(settings.hold_max_ms / 1000, mine.answered_at + HOLD_TOTAL_S - began)
        if await self._wait(turn, mine.session, began + left_s) and (found := await self._reserve(turn, mine)) is not None:
            after.append_and_request(UserText(reminder_text(found.tasks)), suffix=HOLD_SUFFIX)

    async def on_turn_end(self, turn: TurnInfo) -> None:
        await self._settle(turn)

    # What a person asks for

    def clear(self, caller: Caller) -> str:
        """Remove all tasks of the caller's session at once; a sentence about it. Waits for the disk."""
        session = self._session(caller)
        if session is None:
            return "The clock has no tasks here: this client names no session."
        count = self._watch.clear(session, self._settings.retention_ms)
        self._log(f"clock:clear: session {session}, {counted(count)} removed")
        return f"The clock's tasks are cleared: {count}."

    def status(self, caller: Caller) -> str:
        session = self._session(caller)
        if session is None:
            return "Clock: no reminders, because this client names no session."
        return f"Clock: {self._watch.told_here(session, self._settings.retention_ms)}."

    def _session(self, caller: Caller) -> str | None:
        return caller.session if self._derived_too or not caller.derived else None

    def _in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    # The tool

    async def _run_tool(self, turn: TurnInfo, arguments: JsonObject) -> str:
        session, settings = self._session(turn.caller), self._settings
        desk = self._watch.tool_desk(session, turn.id, turn.prompt, settings, lambda: turn.aborted)

        def run() -> tuple[JsonObject, str]:
            return answer(arguments, desk), self._watch.told(session, settings.retention_ms) if session else ""

        result, told = await self._in_thread(run)
        action = arguments.get("action")
        outcome = "ok" if result.get("ok") is True else "refused"
        whose = f"session {session}, {told}" if session else "no session"
        self._note(turn, f"clock {action if action in ACTIONS else 'call'}: {outcome}, {whose}")
        return _written(result)

    # Reminders

    async def _reserve(self, turn: TurnInfo, mine: _TurnNotes) -> Reservation | None:
        """What the round that comes next brings."""
        if mine.session is None or not mine.reminds:
            return None
        try:
            waiting = await self._waiting(mine.session)
            for task in self._watch.missed(mine.session, waiting, self._settings.retention_ms):
                due = local_text(task.due_at_ms)
                turn.tells.append(Cause(f"missed {task.task_id}", f"the reminder for {due} has expired: no call came in time"))
            found = await self._reserved(mine.session, turn.id) if waiting else None
        except StoreError as error:
            self._note(turn, f"clock: no reminders, {error.message}")
            return None
        if found is not None:
            mine.lots.append(_Lot(found, turn.rounds))
            ids = ", ".join(found.task_ids)
            self._note(turn, f"clock: request {turn.id}, session {mine.session}: {counted(len(found.tasks))} due, {ids}")
        return found

    async def _reserved(self, session: str, id: str) -> Reservation | None:
        reserve = partial(self._watch.reserve, session, id, self._settings)
        if not self._watch.reservations.claims.waits:
            return reserve()
        reserving = asyncio.ensure_future(self._in_thread(reserve))
        try:
            return await asyncio.shield(reserving)
        except asyncio.CancelledError:  # the client has left; what a thread reserves for it meanwhile, nobody else could deliver
            reserving.add_done_callback(self._give_up)
            raise

    def _give_up(self, reserving: asyncio.Future[Reservation | None]) -> None:
        if not reserving.cancelled() and reserving.exception() is None and (found := reserving.result()) is not None:
            self._watch.reservations.give_up(found)

    async def _waiting(self, session: str) -> Tasks:
        """In a thread, where there is much to read: no other call waits for a large file. StoreError."""
        at_hand = self._watch.store.at_hand(session)
        return await self._in_thread(partial(self._watch.store.waiting, session)) if at_hand is None else at_hand

    async def _settle(self, turn: TurnInfo) -> None:
        """What has begun is on disk; what has not is given up."""
        mine = self._turns.get(turn.id)
        while mine is not None and mine.lots:
            lot = mine.lots.pop()
            if lot.writing is None:
                self._watch.reservations.give_up(lot.reservation)
                self._note(turn, f"clock: {counted(len(lot.reservation.tasks))} not delivered; a later call brings them")
                continue
            done = await asyncio.shield(lot.writing)
            if isinstance(done, StoreError):
                self._note(turn, f"clock: delivered, which could not be written ({done.message})")
            else:
                turn.reminded += len(done)
                if others := len(lot.reservation.tasks) - len(done):
                    self._note(turn, f"clock: {counted(others)} of these came from another process, too, or were cleared")
                counts = ", ".join(f"{task.task_id} (delivery {task.delivery_count})" for task in done)
                self._note(turn, f"clock: request {turn.id}: {counted(len(done))} delivered{counts and f', {counts}'}")

    # Hold

    async def _earliest_due(self, session: str, request_id: str) -> int | None:
        """In a thread as well: what was delivered just now may be on its way to the disk."""
        look = partial(self._watch.earliest_due, session, request_id, self._settings.retention_ms)
        at_hand = self._watch.store.at_hand(session)
        if at_hand is None:
            return await self._in_thread(look)
        return look() if at_hand else None

    async def _wait(self, turn: TurnInfo, session: str, until: float) -> bool:
        """Until a task is due; False where none is, soon enough. The lifecycle ends this when the client leaves."""
        try:
            return await self._waited(turn, session, until)
        finally:
            turn.on_hold(False)

    async def _waited(self, turn: TurnInfo, session: str, until: float) -> bool:
        settings, waited = self._settings, False
        while True:
            try:
                earliest = await self._earliest_due(session, turn.id)
            except StoreError as error:
                self._note(turn, f"clock: not held, {error.message}")
                return False
            if earliest is None and not waited:
                return False
            left_s = until - turn.monotonic() + (_SLACK_S if waited else 0.0)
            match next_step(earliest, self._watch.moments.now_ms(), window_ms=settings.due_window_ms, left_s=left_s):
                case Deliver():
                    return True
                case No(reason):
                    if waited:
                        self._note(turn, f"clock: no longer held, {reason}")
                    return False
                case Wait(seconds):
                    if not waited:
                        self._note(turn, "clock: the answer is held for a task that is nearly due")
                        turn.on_hold(True)
                    waited = True
                    await asyncio.sleep(seconds)
                case never:
                    assert_never(never)


class ClockSwitchedOff(Plugin):
    """Answers a model that goes on calling the tool because it stands in its history."""

    name = NAME

    def __init__(self, watch: Watch) -> None:
        self.tools = (ServerTool(NAME, DESCRIPTION, SCHEMA, self._run_tool, offered=False),)
        self._watch = watch

    def wants(self, turn: TurnInfo) -> bool:
        if turn.kind is not Kind.MAIN or NAME in turn.call.tools:
            return False
        return any(type(part) is ToolCall and part.name == NAME for part in turn.call.parts)

    async def _run_tool(self, turn: TurnInfo, arguments: JsonObject) -> str:
        desk = self._watch.tool_desk(turn.caller.session, turn.id, turn.prompt, None)
        return _written(await asyncio.to_thread(answer, arguments, desk))


def _written(result: JsonObject) -> str:
    return dumps(result).decode("utf-8", "replace")
