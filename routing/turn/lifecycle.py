"""Runs the plugins of one turn through its stages. The one place in `routing` that knows asyncio.

One task drives it: `start`, then for each round `before_request` (and `offer`), `begun`, `stream_data`, `after_request`; at last
`end` and `clean_up`. `abort` may be called from anywhere in the same thread.

1. `end` does nothing after an error, nor where `start` did not succeed; `clean_up` always runs, and runs once.
2. An abort raises nothing: what runs is cancelled, its result or error ignored, and the stage returns as if nobody had a wish.
3. No hook outlives its stage by more than its own deafness to being cancelled; a tool that has begun gets `GRACE_S` to finish.
4. Nothing of an error but its type, its file and its line is ever logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import Enum
from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import Any, TypeVar

from ..dialects.answer.machine import Answer
from ..dialects.said import Said
from ..errors import RouteCodexError
from ..values import Call, ToolCall
from .appended import Appendable, ToolResults
from .blame import blame, contained
from .gathering import Gathering, NextRound
from .listening import Listening
from .plugins import AfterRequest, CleanUp, Plugin, PluginFailed, TurnInfo
from .record import Record, record
from .request import Hints, Request
from .roster import Warn, roster_of
from .stepping import Done, begin
from .tools import Offer, ToolOutcome, cancelled, failed, offer, run_tool

LIMIT_S = 30.0
GRACE_S = 1.0

T = TypeVar("T")


class _Aborted(Exception):
    """The turn was aborted while a hook ran."""


class Progress(Enum):
    """How far a turn's plugins have come."""

    NEW = "new"
    """`start` did not succeed, or not yet."""
    STARTED = "started"
    ENDED = "ended"
    OVER = "over"
    """The clean-ups run, or have run."""


class Lifecycle:
    """One turn's. `warn` hears one line for everything that went wrong in a plugin."""

    def __init__(
        self, turn: TurnInfo, takers: Sequence[Plugin], *, limit_s: float = LIMIT_S, warn: Warn = lambda line: None
    ) -> None:
        self.turn = turn
        self.hints = Hints()
        """What plugins want of the routing; known once the first `before_request` is done."""
        self.error: Exception | None = None
        """Why the turn failed."""
        self._warn = warn
        self._limit_s = limit_s
        roster = roster_of(takers)
        self._hooked, self._tools, self._order = roster.hooked, roster.tools, roster.order
        self.at_once = roster.at_once
        """Every stage may be begun anywhere, without a task of its own."""
        self._progress = Progress.NEW
        self._clean_ups: list[tuple[Plugin, CleanUp]] = []
        self._gone: asyncio.Future[None] | None = None
        self._listening: Listening | None = None

    @property
    def over(self) -> bool:
        """Nothing follows but what `clean_up` began."""
        return self._progress is Progress.OVER

    # The stages

    async def start(self) -> None:
        with _Stage(self):
            for plugin in self._hooked["on_turn_start"]:
                await self._run(plugin, "on_turn_start", partial(self._begin, plugin))
            self._progress = Progress.STARTED

    async def before_request(self, call: Call, *, id: str = "") -> Call:
        """The call as the plugins want it sent. `call`: the client's, with all that was appended since; our tools come after."""
        if call.stream and (self._hooked["on_stream_data"] or self._hooked["on_after_request"]):
            self._listening = Listening(self.turn, self._hooked["on_stream_data"], self._fault)
        request = Request(call, id=id or self.turn.id, round=self.turn.rounds)
        with _Stage(self):
            for plugin in self._hooked["on_before_request"]:
                await self._run(plugin, "on_before_request", partial(_edit, plugin, self.turn, request))
            if not self.turn.rounds:
                self.hints, self.turn.stays = request.hints, tuple(request.stays)
            return request.call
        return call

    def offer(self, call: Call, *, able: bool = True) -> Offer:
        """The call with the takers' tools, once its target is known. `able`: the target takes tools of ours."""
        return offer(call, [tool for _, tool in self._tools.values()], kind=self.turn.kind, able=able)

    def listen(self, alone: Callable[[], Answer] | None) -> None:
        """A round has begun. `alone`: gives what makes the client's dialect of its bytes; None where they are it."""
        if self._listening is not None:
            self._listening.begin(alone)

    def stream_data(self, chunk: bytes) -> None:
        """Bytes of a provider's stream; not of an answer that is one JSON document."""
        if self._listening is not None and self.turn.status == "processing":
            self._listening.feed(chunk)

    def begun(self, rounds: int) -> None:
        """So many rounds' answers have begun to reach the client."""
        if rounds <= self.turn.begun or self.turn.status != "processing":
            return
        self.turn.begun = rounds
        for plugin in self._hooked["on_answer_begun"]:
            try:
                plugin.on_answer_begun(self.turn)
            except (Exception, SystemExit) as error:  # what has begun to leave goes on
                self._fault(plugin, "on_answer_begun", error)

    async def after_request(self, said: Said) -> NextRound | None:
        """For an answer that is complete: runs tools of ours, asks the plugins. For any other there is `fail`, or `end`."""
        if self.turn.status != "processing":
            return None
        if said.error is not None or not said.complete:
            raise ValueError("an answer that is not complete has no next round")
        if self._listening is not None:
            self._listening.close()
        self.turn.rounds += 1
        gathering = Gathering(self.turn, said, self._hooked["on_message_append"], self._fault)
        with _Stage(self):
            gathering.append(said)
            await self._gather(gathering)
            gathering.merge()
            following = gathering.next_round()
            if following is not None:
                self.turn.followed.append(following.suffix)
            return following
        gathering.open = False
        return None

    def abort(self) -> None:
        """The client has left. Whatever is over already stays as it was."""
        if self.turn.status == "processing":
            self.turn.status = "aborted"
            if self._gone is not None and not self._gone.done():
                self._gone.set_result(None)

    def fail(self, error: Exception) -> None:
        """The turn has failed for a reason of its own: `end` will do nothing, `clean_up` knows the reason."""
        if self.error is None and self.turn.status != "aborted":
            self.error = error
            self.turn.status = "error"

    async def end(self) -> None:
        """The turn is completed, or was aborted."""
        if self._progress is not Progress.STARTED or self.turn.status == "error":
            return
        self._progress = Progress.ENDED
        if self.turn.status == "processing":
            self.turn.status = "completed"
        try:
            for plugin in self._hooked["on_turn_end"]:
                await self._run(plugin, "on_turn_end", partial(plugin.on_turn_end, self.turn), to_the_end=True)
        except Exception as error:
            self.turn.status, self.error = "error", error
            raise

    async def clean_up(self) -> None:
        """Whatever happened. One error is raised as it is; several, or one beside the turn's own, as a group, that one first."""
        if self.over:
            return
        self._progress = Progress.OVER
        begun = begin(self._clean())
        # Also where the task that drives the turn is cancelled: the clean-ups come to their end.
        errors = begun.result if isinstance(begun, Done) else await asyncio.shield(asyncio.ensure_future(begun))
        if not errors:
            return
        if self.error is not None:
            raise ExceptionGroup("The turn failed, and so did its clean-up", [self.error, *errors])
        if len(errors) == 1:
            raise errors[0]
        raise ExceptionGroup("Clean-ups failed", errors)

    def record(self, *, shown: bool = False) -> Record:
        """What the turn said, without what tools want left out. `shown`: as a person may look at it, so that only what is to
        be removed is missing."""

        def named(*wishes: str) -> frozenset[str]:
            return frozenset(name for name, (_, tool) in self._tools.items() if tool.next_turn in wishes)

        return record(self.turn, named("remove")) if shown else record(self.turn, named("exclude", "remove"), named("results"))

    # All plugins at the same time

    async def _gather(self, gathering: Gathering) -> None:
        hooked = self._hooked["on_after_request"]
        if not gathering.said.own and len(hooked) == 1:  # nobody to be parallel to
            try:
                await self._after(hooked[0], gathering, [])
            finally:
                gathering.open = False
            if self.turn.aborted:
                raise _Aborted
            return
        tools = _Tools(self, gathering) if gathering.said.own else None
        works: list[asyncio.Task[None]] = []
        try:
            if tools is not None:
                works.append(asyncio.ensure_future(tools.finish()))
            for plugin in hooked:
                works.append(asyncio.ensure_future(self._after(plugin, gathering, works[:])))
            if works:
                await asyncio.wait(works, return_when=asyncio.FIRST_EXCEPTION)
            for work in works:
                if work.done():
                    work.result()
            if self.turn.aborted:
                raise _Aborted
        finally:
            gathering.open = False
            for work in works:
                work.cancel()
                work.add_done_callback(_retrieve)
            if tools is not None:
                tools.leave()

    async def _after(self, plugin: Plugin, gathering: Gathering, before: list[asyncio.Task[None]]) -> None:
        async def earlier() -> bool:
            if before:
                await asyncio.wait(before)
            return gathering.asks

        def take(messages: Sequence[Appendable], request: bool, priority: int, is_async: bool, suffix: str | None) -> None:
            gathering.take(
                plugin,
                self._order[id(plugin)],
                messages,
                request=request,
                priority=priority,
                is_async=is_async,
                suffix=suffix,
            )

        chunk = self._listening.last_choice_chunk if self._listening is not None else lambda: None
        after = AfterRequest(gathering.said, chunk, take, earlier)
        await self._run(plugin, "on_after_request", partial(plugin.on_after_request, self.turn, after))

    async def _call_tool(self, call: ToolCall) -> ToolOutcome:
        if self.turn.aborted:
            return cancelled(call)
        plugin, tool = self._tools.get(call.name, (None, None))
        limit_s = tool.limit_s if tool is not None else None

        def report(error: BaseException) -> None:
            if plugin is not None and not self.turn.aborted:
                self._warn(blame(plugin, f"the tool {call.name}", error).message)

        task = asyncio.ensure_future(run_tool(tool, self.turn, call, report))
        try:
            await asyncio.wait([task], timeout=limit_s)
        finally:
            task.cancel()
        if task.cancelled():
            return failed(call, "CancelledError")
        return task.result() if task.done() else failed(call, f"no result within {limit_s:g} seconds")

    # One hook

    async def _run(self, plugin: Plugin, hook: str, work: Callable[[], Coroutine[Any, Any, T]], *, to_the_end: bool = False) -> T:
        """Its result; the error that it is to blame for; `_Aborted`."""
        limit_s = self._limit_s if plugin.hook_limit_s is None else plugin.hook_limit_s
        if self.turn.aborted and not to_the_end:
            raise _Aborted
        if plugin.at_once:
            try:
                begun = begin(work())
            except (Exception, SystemExit) as raised:
                raise self._fault(plugin, hook, raised) from None
            if isinstance(begun, Done):
                return begun.result
            task = await self._race(lambda: begun, limit_s, to_the_end=to_the_end)
        else:
            task = await self._race(work, limit_s, to_the_end=to_the_end)
        if task.done() and not task.cancelled() and task.exception() is None:
            return task.result()
        if self.turn.aborted and not to_the_end:
            raise _Aborted
        if not task.done():
            error: BaseException = PluginFailed(plugin.name, hook, f"did not end within {limit_s:g} seconds")
            self._warn(error.args[0])
            raise error
        error = asyncio.CancelledError() if task.cancelled() else task.exception() or RuntimeError()
        raise self._fault(plugin, hook, error) from None

    async def _race(
        self, work: Callable[[], Awaitable[T]], limit_s: float | None, *, to_the_end: bool = False
    ) -> asyncio.Task[T]:
        """The task: done, or given up because its time is over or the turn is aborted."""
        if self.turn.aborted and not to_the_end:
            raise _Aborted
        task = asyncio.ensure_future(contained(work))
        task.add_done_callback(_retrieve)
        watched: list[asyncio.Future[T] | asyncio.Future[None]] = [task]
        if not to_the_end:
            self._gone = self._gone or asyncio.get_running_loop().create_future()
            watched.append(self._gone)
        try:
            await asyncio.wait(watched, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
        return task

    async def _begin(self, plugin: Plugin) -> None:
        """Nobody may be waiting any more when the clean-up comes; it counts all the same."""
        clean_up = await plugin.on_turn_start(self.turn)
        if clean_up is None:
            return
        if not callable(clean_up):
            raise TypeError("a clean-up is called")
        self._clean_ups.append((plugin, clean_up))
        if self.over:
            await self._clean()

    async def _clean(self) -> list[Exception]:
        errors: list[Exception] = []
        while self._clean_ups:
            plugin, clean_up = self._clean_ups.pop()
            try:
                await self._run(plugin, "a clean-up", partial(_called, clean_up), to_the_end=True)
            except Exception as error:
                errors.append(error)
        return errors

    # Errors

    def _fault(self, plugin: Plugin, hook: str, error: BaseException) -> Exception:
        if isinstance(error, PluginFailed):  # of a hook inside this one, and logged there
            return error
        if not self.turn.aborted or self._progress in (Progress.ENDED, Progress.OVER):
            self._warn(blame(plugin, hook, error).message)
        return error if isinstance(error, RouteCodexError) else blame(plugin, hook, error)


class _Stage:
    """Whatever is raised once the turn is aborted is a part of the abort."""

    __slots__ = ("_lifecycle",)

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        if self._lifecycle.turn.aborted:
            return True
        self._lifecycle.fail(error)
        return False


class _Tools:
    """The tools of ours that one answer calls, all at the same time."""

    def __init__(self, lifecycle: Lifecycle, gathering: Gathering) -> None:
        self._lifecycle = lifecycle
        self._gathering = gathering
        self._calls = gathering.said.own
        self._works = [asyncio.ensure_future(lifecycle._call_tool(call)) for call in self._calls]
        self._given = False

    async def finish(self) -> None:
        """Wait for all of them, and append what they answered."""
        await self._lifecycle._race(partial(asyncio.wait, self._works), None)
        if self._lifecycle.turn.aborted:
            raise _Aborted
        self._given = True
        owner, _ = self._lifecycle._tools.get(self._calls[0].name, (Plugin(), None))
        self._gathering.take(owner, -1, [ToolResults(self._outcomes())], request=True)

    def leave(self) -> None:
        """Nobody waits any more: what has begun may come to its end, soon."""
        if self._given:
            return
        self._lifecycle.turn.current_turn.append(ToolResults(self._outcomes()))
        for work in self._works:
            asyncio.get_running_loop().call_later(GRACE_S, work.cancel)

    def _outcomes(self) -> tuple[ToolOutcome, ...]:
        return tuple(
            work.result() if work.done() and not work.cancelled() else cancelled(call)
            for call, work in zip(self._calls, self._works, strict=True)
        )


async def _edit(plugin: Plugin, turn: TurnInfo, request: Request) -> None:
    await plugin.on_before_request(turn, request)
    request.settle()


async def _called(clean_up: CleanUp) -> None:
    result = clean_up()
    if isawaitable(result):
        await result


def _retrieve(task: asyncio.Task[T]) -> None:
    """An error that comes too late for anybody is no news."""
    if not task.cancelled():
        task.exception()
