"""Carries a turn: tells it what its rounds and its client do, and does what it says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from mitmproxy import http

from ..routing import codings
from ..routing.dialects.said import Said
from ..routing.errors import RouteCodexError
from ..routing.masking import NOTHING
from ..routing.turn import actions as turns
from ..routing.turn.participants import Participants
from ..routing.turn.plan import Plan, describe
from ..routing.turn.state import State
from ..routing.turn.stepping import Done, begin
from ..routing.turn.turn import Turn
from ..routing.window import record
from . import fail_closed, flows
from .alarm import Alarm
from .carried_rounds import CarriedRound, FirstRound, LaterRound
from .disk_threads import if_possible
from .fail_closed import contained
from .journal import CallLine, Journal
from .open_answer import OpenAnswer, in_bites
from .relay import Relay
from .rounds import Round, new_flow
from .sealing import Sealed, mask_echoes
from .window import legs


class CarriedTurn:
    """One open answer and the rounds behind it. Only the current round is heard."""

    def __init__(
        self,
        relay: Relay,
        flow: http.HTTPFlow,
        turn: Turn,
        plan: Plan,
        sealed: Sealed,
        journal: Journal,
        line: CallLine,
        participants: Participants | None = None,
        unsaid: Callable[[], Awaitable[object] | None] = lambda: None,
    ) -> None:
        """`unsaid`: what the answer's end waits for, so that other processes know of it, or a file that is written."""
        self.relay = relay
        self.flow = flow
        self.turn = turn
        self.plan = plan
        self.sealed = sealed
        self.journal, self.line = journal, line
        self._unsaid = unsaid
        self.participants = participants
        """Those who may want another round; None where nobody does."""
        self.round_name = "retry"
        self.left = False
        """The client has gone."""
        self.current: FirstRound | LaterRound = FirstRound(self)
        self.decode: codings.Decode | None = None
        self.mask = NOTHING  # takes the round's own credentials out of what it says
        self.noted = 0
        """Of what rounds cost, so many stand in their flows."""
        self.http2 = flow.request.is_http2
        self.tasks: set[asyncio.Task[None]] = set()
        self.alarm = Alarm()
        self.failed = ""
        self.stepping = False
        """Something is done from within the layer of the client's own stream, which flushes when it is told the end."""
        self.answer = OpenAnswer(self.current, turn.course)
        self._end_counts = False
        """Well, with its client there."""
        self.held = False
        """The answer was kept open for what was nearly due."""
        if participants is not None:
            participants.life.turn.on_hold = self._hold

    def start(self) -> None:
        """From here on it hears the client's own flow, and writes what the client gets."""
        self.relay.open(self.flow, self.answer)
        self._see_round("first")
        self._arm()

    def _see_round(self, name: str) -> None:
        if (seen := self.line.seen) is not None:
            plan = self.plan
            seen.begins(name, plan.target, plan.place_asked, plan.spoken, time.monotonic())

    def _see_content(self) -> None:
        """The first of it goes to the client."""
        if (seen := self.line.seen) is not None and not seen.first:
            seen.first = time.monotonic()

    def _see_failure(self) -> None:
        if (seen := self.line.seen) is not None and self.plan.last is not None:
            seen.failed(self.plan.last, time.monotonic())

    @property
    def closed(self) -> bool:
        """Nobody tells it anything any more."""
        return self.answer.upstream.carried is None

    # What happened to a round, and to the client

    @contained
    def hear_head(self, source: CarriedRound, response: http.Response) -> None:
        if source is not self.current:
            return
        self.mask = self.plan.mask()
        mask_echoes(response, self.plan.secrets)
        headers = flows.read_headers(response)
        self.decode = flows.stream_decoder(headers.get("content-encoding", ""))
        if self.decode is not None:
            del response.headers["content-encoding"]  # what is kept of it is unpacked
        source.headed(self.plan, response.status_code, headers)
        self.turn.head(response.status_code, headers, time.monotonic())
        if self.turn.state is State.PEEKING:
            source.watch(self.turn.answer.echoes)
            if self.participants is not None:
                self.participants.listen(self.turn.answer)
        self._carry_out()
        if not self.closed:
            self._arm()

    @contained
    def hear_data(self, source: CarriedRound, chunk: bytes) -> None:
        if source is not self.current:
            return
        if self.flow.error is not None:
            self._killed()
            return
        if self.decode is not None:
            try:
                chunk = codings.whole(self.decode(chunk), flows.PIECE_BYTES)
            except (codings.Damaged, codings.TooMuch):
                self.hear_broke(source, "The answer is not packed as its content-encoding says.")
                return
        if chunk := self.mask.feed(self.plan.without_quotes(chunk), time.monotonic()):
            self._hear_bytes(source, chunk)
        if min(self.mask.due, self.turn.waits_until) < float("inf"):
            self._arm()

    @contained
    def hear_end(self, source: CarriedRound) -> None:
        if source is not self.current:
            return
        self._hear_held(source)
        if source is self.current:
            self.turn.end(time.monotonic())
            self._carry_out()

    def _hear_held(self, source: CarriedRound) -> None:
        """It began like a credential, and does not go on."""
        if chunk := self.mask.end():
            self._hear_bytes(source, chunk)

    def _hear_bytes(self, source: CarriedRound, chunk: bytes) -> None:
        """What a provider says."""
        source.keep(chunk)
        if source is self.current:
            if self.participants is not None and self.turn.stream:
                self.participants.life.stream_data(chunk)
            first = not self.turn.spoke
            self.turn.data(chunk, time.monotonic())
            self._carry_out()
            if first and not self.closed:
                self._arm()

    @contained
    def hear_broke(self, source: CarriedRound, message: str) -> None:
        if source is self.current:
            self._hear_held(source)
            self.turn.broke(message, time.monotonic())
            self._carry_out()

    @contained
    def gone(self) -> None:
        """mitmproxy says so more than once; what follows the turn's end then goes on."""
        if self.closed:
            return
        self.left = True
        if self.participants is not None:
            self.participants.life.abort()
        for task in self.tasks:
            task.cancel()
        self.turn.gone()
        self._carry_out()

    def _killed(self) -> None:
        """A person ended the flow in mitmweb: mitmproxy itself would let a running stream go on."""
        self.gone()
        self.turn.course.cut()

    def burst(self) -> None:
        """Something failed inside: the client gets an end, the provider is left, nothing more is tried."""
        if self.closed:
            return
        self.turn.burst()
        if self.answer.head_now:
            self.turn.course.cut()
        else:
            self.answer.outbox.clear()
            self.answer.response = http.Response.make(502, fail_closed.BODY, fail_closed.HEADERS)
            self.turn.course.end()
        self.failed = "failed inside"
        self.current.abandon()
        self._later(self.relay.poke(self.flow))
        try:
            self._close()
        except Exception as error:
            fail_closed.report("burst", error, "Its turn is over all the same.")

    # What the turn wants done

    def _carry_out(self) -> None:
        actions = self.turn.actions
        if not actions:
            return
        work: Coroutine[Any, Any, None] | None = None
        end: Iterable[bytes] | None = None
        for action in actions:
            match action:
                case turns.Forward(data):
                    self.plan.note_seals(data)
                    self.answer.outbox.append(data)
                case turns.OpenHead(head):
                    self.answer.response = self._open(head)
                    self.answer.head_now = True
                    self._arm()  # silence inside an answer may be allowed for less long than the wait for it
                case turns.Began():
                    self._see_content()
                    if self.participants is not None:
                        self.participants.begun()
                case turns.Abandon():
                    self.current.abandon()
                case turns.Again(after_s):
                    self._show_failure()
                    self._see_failure()
                    self._show_body()
                    self._note_round()
                    self._later(self._run_round(after_s))
                case turns.Decide(said):
                    self._note_round()  # before its flow is over, and written
                    if said.own:
                        self._later(self._decide(said))  # tools begin tasks
                    else:
                        work = self._decide(said)
                case turns.GaveUp(error):
                    self._show_failure()
                    self.plan.note(f"{self.plan.received.id[:8]}: the later round failed ({describe(error)}), the answer stands")
                    work = self._conclude()
                case turns.Refuse(refusal):
                    self._show_failure(last=True)
                    self.failed = f"status {refusal.head.status}"
                    self.answer.response = flows.whole_response(refusal)
                case turns.Finish(said_last):
                    if not self.failed:
                        self._see_content()
                    end = said_last
                case turns.Abort():
                    self.turn.course.cut()
        actions.clear()
        if work is not None:
            self._do(work)
        try:
            if self.turn.course.over:
                self._close()
        finally:
            if end is not None:
                self._finish(end)

    def _finish(self, end: Iterable[bytes]) -> None:
        """Not before other processes know what the client's next call needs, and a file that is written what became of this."""
        if (unsaid := self._unsaid()) is None:
            self.answer.ending = in_bites(end)
            self.turn.course.end()
            self._keep_end()
        else:
            self._later(self._finish_behind(unsaid, end))

    async def _finish_behind(self, unsaid: Awaitable[object], end: Iterable[bytes]) -> None:
        try:
            await unsaid
        finally:
            is_heard = self._is_heard()
            self.answer.ending = in_bites(end)
            self.turn.course.end()
            await self.relay.poke(self.flow)
        if is_heard:
            self._keep_end()
        else:
            self.plan.end_unheard()

    def _keep_end(self) -> None:
        """Behind the end itself: of a process that dies in between, the client has no answer, and repeats what must not act."""
        if self._end_counts and self.plan.keep_end is not None:
            self._later(if_possible(self.plan.keep_end, self.plan.note))

    def _is_heard(self) -> bool:
        """Whether there is still a client to be told the end, where somebody has to know that."""
        return self.plan.keep_end is None or not self.relay.has_left(self.flow)

    def _open(self, head: turns.Head) -> http.Response:
        shown = self.current.response
        if shown is not None and shown.status_code == head.status:
            return flows.reopen_response(shown, head, http2=self.http2)
        return flows.open_response(head, http2=self.http2)

    def _show_failure(self, *, last: bool = False) -> None:
        """An attempt failed: what came of it is shown by itself, unless the client is told just that (`last`)."""
        failed, current = self.plan.last, self.current
        if failed is None:
            return
        if (later := self._later_flow) is not None:
            legs.fail(later, describe(failed.error), later=True)
        elif current.is_first and not last and legs.are_seen():
            legs.failed(self.flow, current.take_body(self.plan), describe(failed.error), self.flow.comment)

    def _show_body(self) -> None:
        """What a provider of another dialect said first: the client's own flow shows what the client got."""
        translated = self.plan.translated
        if translated is not None and (response := self.current.take_body(self.plan)) is not None:
            word = self.turn.finish_reasons[0]
            ended = record.of_cost(self.plan.paid(), (word, word))
            legs.said(self.flow, response, self.flow.comment, {"spoken": str(translated.dialect), **ended})

    def _hold(self, held: bool) -> None:
        if held or self.held:
            self.held = True
            legs.hold(self.flow, self._comment, held=held)

    def _note_round(self) -> None:
        """What a later round cost, and how it ended, in its own flow."""
        since, self.noted = self.noted, len(self.plan.costs)
        if (later := self._later_flow) is not None and legs.are_seen():
            word = self.turn.finish_reasons[0]
            flows.add_to_record(later, record.of_cost(self.plan.paid(since=since) if since < self.noted else None, (word, word)))

    # When a round is complete

    async def _decide(self, said: Said) -> None:
        """Ask who takes part whether another round follows. For a client that has left nothing is done, nor is a tool run."""
        assert self.participants is not None
        if self.relay.has_left(self.flow):
            self.gone()
            return
        try:
            following = await self.participants.next(said, able=self.plan.provider.server_tools)
            if following is None:
                await self._conclude()
                return
        except Exception as error:
            await self._fail(error)
            return
        if self.closed:
            return
        self.round_name = f"round {self.turn.rounds + 1}{following.suffix}"
        self.plan.go_on(following.call, self.plan.attempts.again())
        self.turn.proceed()
        self._carry_out()

    async def _conclude(self) -> None:
        """What the client's next call needs is on disk before the end of this answer leaves."""
        assert self.participants is not None
        if self.closed:
            return
        if self.relay.has_left(self.flow):  # before what the answer brought counts as brought
            self.gone()
            return
        try:
            await self.participants.settle(self.turn.close())
        except Exception as error:
            await self._fail(error)
            return
        if self.closed:
            return
        self.turn.conclude()
        self._carry_out()
        await self._flush()

    async def _flush(self) -> None:
        """What is written now leaves: by itself where the client's own stream is just telling us something."""
        if not self.stepping:
            await self.relay.poke(self.flow)

    async def _fail(self, error: Exception) -> None:
        """A plugin failed: its own turn ends in an error, no other is touched."""
        told = error if isinstance(error, RouteCodexError) else RouteCodexError(f"RouteCodex failed: {type(error).__name__}")
        self.plan.note(f"{self.plan.received.id[:8]}: {told.message}")
        if self.closed:
            return
        self.turn.refuse(told.message, told.code, max(told.status, 500))
        self._carry_out()
        await self._flush()

    async def _leave(self) -> None:
        assert self.participants is not None
        await self.participants.leave(aborted=self.left, error=self.failed)

    # Another round

    async def _run_round(self, after_s: float) -> None:
        if after_s > 0:
            await asyncio.sleep(after_s)
        if self.turn.state is not State.WAITING:
            return
        if place_s := self.plan.place(time.monotonic()):
            self._later(self._run_round(place_s))
            return
        if place_s is None:
            self.turn.crowded()
            self._carry_out()
            await self.relay.poke(self.flow)
            return
        try:
            request, wire = flows.new_request(self.plan.request(), self.sealed)
        except RouteCodexError as error:
            self.turn.begin(time.monotonic())
            self.turn.broke(error.message, time.monotonic())
            self._carry_out()
            await self.relay.poke(self.flow)
            return
        flow = new_flow(self.flow, request)
        call_id = self.plan.received.id
        marker = flows.Marker.RETRY if self.round_name.startswith("retry") else flows.Marker.ROUND
        told = record.of_round(self.plan, self.round_name, parent=self.flow.id)
        flows.mark(flow, f"{self._comment} · {self.round_name} of {call_id[:8]}", marker, told)
        self.journal.detail(lambda: f"{self.round_name} -> {self.plan.comment}")
        self.decode, self.mask = None, NOTHING
        later = LaterRound(self, flow)
        later.round = round_ = Round(flow, wire, later, self.relay)
        self.current.followed()
        self.current = later
        self._see_round(self.round_name)
        self.relay.rounds[flow.id] = round_
        self.turn.begin(time.monotonic())
        self._arm()
        try:
            await round_.replay()
        finally:
            self.relay.rounds.pop(flow.id, None)
            later.over()
            if self.turn.state in (State.ASKING, State.PEEKING, State.FAILING, State.FLOWING):
                self.hear_broke(later, "the round ended without a word")
            await self.relay.poke(self.flow)

    @property
    def _comment(self) -> str:
        """The decision, and what plugins want people to read."""
        notes = self.participants.life.turn.notes if self.participants is not None else []
        return " · ".join([self.plan.long_comment, *notes[-1:]])

    async def drained(self) -> None:
        """The client has taken what it was sent: its pace is the round's."""
        await self.relay.poke(self.flow)

    # Time

    def _arm(self) -> None:
        self.alarm.set(min(self.turn.deadline, self.mask.due), self._tick)

    @contained
    def _tick(self) -> None:
        if self.closed:
            return
        now = time.monotonic()
        if now >= min(self.turn.deadline, self.mask.due):
            if chunk := self.mask.tick(now):
                self._hear_bytes(self.current, chunk)
            self.turn.tick(now)
            self._carry_out()
            self._later(self.relay.poke(self.flow))
        if not self.closed:
            self._arm()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """At once as far as it waits for nothing, where that is ours to say; else a little later."""
        if self.participants is None or not self.participants.life.at_once or not self.current.is_first:
            self._later(work)
            return
        was, self.stepping = self.stepping, True
        try:
            begun = begin(work)
        finally:
            self.stepping = was
        if not isinstance(begun, Done):
            self._later(begun)

    def _later(self, work: object) -> None:
        """Tasks are begun from the loop, never from inside a layer."""
        asyncio.get_running_loop().call_soon(self._start, work)

    def _start(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            fail_closed.report("a round", error, "The turn was ended.")
            self.burst()

    def _close(self) -> None:
        if not self.closed:
            self._show_body()
            self.answer.upstream.carried = self.current.carried = None
            if self.participants is not None:
                self.participants.life.turn.on_hold = _nobody
                rounds = "1 round" if self.turn.rounds == 1 else f"{self.turn.rounds} rounds"
                self.flow.comment = f"{self._comment} · {rounds} of {self.plan.received.id[:8]}"
            elif self.plan.unsaid or self.plan.tried:
                self.flow.comment = self._comment
            self.alarm.stop()
            failed = self.failed or self.turn.failed
            paid = self.plan.paid() if legs.are_seen() else None
            ended = record.of_end(self.plan, rounds=self.turn.rounds, paid=paid, words=self.turn.finish_reasons)
            flows.add_to_record(self.flow, ended)
            self._note_round()
            if paid is not None:
                self.plan.on_lost = partial(legs.lost, self.flow)
            if failed:
                legs.fail(self.flow, failed)
                if (later := self._later_flow) is not None and later.marked != flows.Marker.FAILED:
                    legs.fail(later, failed, later=True)
            self._end_counts = self.turn.ended and self._is_heard()
            self.plan.over(ended=self._end_counts)
            if self.participants is not None:
                self._do(self._leave())
            asyncio.get_running_loop().call_soon(self._learn)

    @property
    def _later_flow(self) -> http.HTTPFlow | None:
        """That of the later round which is heard."""
        current = self.current
        return current.flow if isinstance(current, LaterRound) else None

    def _learn(self) -> None:
        """Once the client has its answer."""
        if (seen := self.line.seen) is not None:
            self._see_failure()
            seen.answered([(cost.target, cost.tokens) for cost in self.plan.costs if cost.answered])
            seen.reminders = self.participants.life.turn.reminded if self.participants is not None else 0
        usage = self.turn.usage()
        if usage is not None and self.plan.settled:
            self.plan.used(usage)
        told = [cost.tokens for cost in self.plan.costs if cost.tokens is not None]
        tokens = (sum(one.input for one in told), sum(one.output for one in told)) if told else None
        now, rounds = time.monotonic(), self.turn.rounds
        self.journal.answered(self.line, self.plan.comment, self._status, now, tokens=tokens, rounds=rounds)

    @property
    def _status(self) -> str:
        """What the client got."""
        status = str(self.answer.response.status_code) if self.answer.response is not None else ""
        how = "the tool left" if self.left else "cut" if self.turn.state is State.CUT else ""
        return ", ".join(part for part in (status, how) if part) or "no answer"


def _nobody(held: bool) -> None:
    pass
