"""One client call being answered: it is told what happened and says what to do next. No network, no clock of its own.

1. Exactly one head and one end leave for the client, whatever happens.
2. Nothing of a round reaches the client before its first content: until then another round may take its place.
3. After the first content nothing is retried; an answer that breaks off ends in an error, never in an invented success.
4. Keep-alives and early heads do not commit: retries go on under them, also where the answer had to begin for them.
5. Where somebody takes part, what ends the answer is held back until it is decided whether another round follows. A later
   round that fails before its first content ends the turn as the round before it ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..dialects.answer.machine import Answer, write_error
from ..dialects.finish import CUT_OFF
from ..dialects.said import Said
from ..dialects.sse import headers_for
from ..values import Endpoint, Headers, ProviderError, Usage
from .actions import (
    Abandon,
    Abort,
    Action,
    Again,
    Began,
    Decide,
    Failed,
    Finish,
    Forward,
    GaveUp,
    Head,
    Limits,
    OpenHead,
    Planner,
    Refusal,
    Refuse,
)
from .pulse import Pulse
from .state import Course, State

ERROR_BYTES = 256 << 10
"""How much of a provider's error is read."""
ERROR_S = 10.0
"""How long at most, from its head on: that it failed is known already."""


@dataclass(slots=True)
class Turn:
    endpoint: Endpoint
    stream: bool
    planner: Planner
    limits: Limits
    started: float
    answer: Answer
    """Reads what the rounds say, and writes it for the client. It is gone when the turn is over."""
    alone: bool = False
    """There is nobody to ask whether another round follows."""
    finish_reasons: tuple[str, str] = ("", "")
    """Why it ended: its provider's word, and the client's."""
    course: Course = field(default_factory=Course)
    """Where it stands."""
    actions: list[Action] = field(default_factory=list)
    """What to do now; whoever carries the turn takes them all."""
    opened: bool = False
    """The head has left."""
    rounds: int = 0
    """Rounds that have answered."""
    heard: float = 0.0
    spoke: bool = False
    """Bytes have come behind the head of the running round; it may be silent for less long from then on."""
    ended: bool = False
    """The answer came to its end, and leaves the client nothing to do but to show it."""
    failed: str = ""
    """Why it ended in an error that the client was told behind its beginning, or instead of it."""
    _quiet_since: float = 0.0
    """When the client was last sent something."""
    _head: Head | None = None
    """Of the round that is being heard."""
    _answering: Head | None = None
    """Of the last round that answered: what the client is sent."""
    _raw_headers: Headers = field(default_factory=dict)
    _held: bytearray = field(default_factory=bytearray)
    _begins: bool = False
    """The running round answers, and the client has nothing of it yet."""
    _usage: Usage | None = None
    """Of the last round that answered."""
    _pulse: Pulse = field(init=False)
    _headed: float = 0.0
    """When the head of the running round came."""
    _calls: bool = False
    """The last round calls tools of the client's."""
    _notice_due: bool = False
    """There is something to tell the person before the text that comes next."""

    def __post_init__(self) -> None:
        self.heard = self._quiet_since = self.started
        self._pulse = Pulse(self.endpoint, self.limits.content_s, stream=self.stream)

    @property
    def state(self) -> State:
        return self.course.state

    # What happened

    def begin(self, now: float) -> None:
        """Another round is on its way."""
        self.course.check("begin")
        self.course.go(State.ASKING)
        self.finish_reasons = ("", "")
        self.heard = now
        self._held.clear()

    def head(self, status: int, headers: Headers, now: float) -> None:
        if self.course.state is not State.ASKING:
            return
        self.heard = self._headed = now
        self.spoke = False
        self._raw_headers = headers
        self._head = self.planner.head(status, headers)
        good = 200 <= status < 300
        self.course.go(State.PEEKING if good else State.FAILING)
        if good:
            notice = self.planner.notice
            self._notice_due = bool(notice)
            spoken = self.planner.round
            self.answer.begin_round(
                spoken,
                exact=self.planner.exact,
                secrets=self.planner.secrets,
                notice=notice,
                hides_count=self.planner.hides_count,
            )
            self._pulse.speaks = Endpoint(spoken.spoken) if spoken is not None else self.endpoint
        self._pulse.begin(now)

    def data(self, chunk: bytes, now: float) -> None:
        self.heard = now
        self.spoke = True
        self._pulse.feed(chunk, now)
        match self.course.state:
            case State.FLOWING | State.PEEKING:
                self._hear(chunk, now)
            case State.FAILING if len(self._held) < ERROR_BYTES:
                self._held += chunk
            case _:
                pass

    def end(self, now: float) -> None:
        """The round has ended as its framing says it should."""
        match self.course.state:
            case State.FLOWING | State.PEEKING:
                self._round_over(CUT_OFF, now)
            case State.FAILING:
                self._fail_with_body(now)
            case State.ASKING:
                self._fail(Failed(ProviderError(502, "The provider closed the connection without an answer.", network=True)), now)
            case _:
                pass

    def broke(self, message: str, now: float) -> None:
        """The connection could not be made, or died."""
        match self.course.state:
            case State.FLOWING:
                self._round_over(f"The provider broke off in the middle of its answer: {message}", now)
            case State.PEEKING:
                self._round_over(message, now)
            case State.FAILING:
                self._fail_with_body(now)
            case State.ASKING:
                self._fail(Failed(ProviderError(502, message, network=True)), now)
            case _:
                pass

    def proceed(self) -> None:
        """Another round follows the one that is complete."""
        self.course.check("proceed")
        self.course.go(State.WAITING)
        self._release()
        self.actions.append(Again())

    def close(self) -> str:
        """No round follows: who the answer says it is. Its end stays here until `conclude`."""
        self.course.check("close")
        self.course.go(State.CLOSING)
        return self.answer.id

    def conclude(self) -> None:
        """The end of the answer leaves."""
        self.course.check("conclude")
        self.ended = not self._calls
        self._open()
        end = self.answer.finish()
        self.finish_reasons = (self.finish_reasons[0], self.answer.finish_reason)
        if self._notice_due:
            self._see_notice()
        self._over(Finish(end))

    def refuse(self, message: str, code: str, status: int = 500) -> None:
        """Whoever decides on the next round has failed: the client is told, whatever it has received so far."""
        self.course.check("refuse")
        self._release()
        self._end_in_error(message, status, code)

    def crowded(self) -> None:
        """The next round found no place beside all the others that are asked for again."""
        self.course.check("crowded")
        self._give_up(ProviderError(503, "Too many calls are being repeated at once."))

    def burst(self) -> None:
        """Something failed inside: nothing more is done or said here."""
        self.actions.clear()
        if not self.course.over:
            self.course.go(State.OVER)

    def gone(self) -> None:
        """The client has left: nothing more is done for it."""
        if not self.course.over:
            self.actions.clear()
            self._over(Abandon())

    def tick(self, now: float) -> None:
        """Time has passed."""
        if now >= self._round_ends:
            waited = round(now - self.heard)
            match self.course.state:
                case State.FAILING:
                    self._fail_with_body(now)
                case State.PEEKING if self.answer.content.complete:  # whoever waits for a document, or for a first word
                    self.actions.append(Abandon())
                    self._round_over("", now)
                case State.FLOWING:
                    self.actions.append(Abandon())
                    silent = f"it fell silent for {round(self.limits.idle_s)} seconds"
                    self.broke(silent if now >= self.heard + self.limits.idle_s else self._no_content, now)
                case _ if self.course.state is State.PEEKING and now >= self._pulse.ends:
                    self._fail(Failed(ProviderError(504, f"The provider gave no answer: {self._no_content}.", network=True)), now)
                case _:
                    self._fail(Failed(ProviderError(504, f"The provider said nothing for {waited} seconds.", network=True)), now)
        if now >= self.waits_until and (out := self.answer.tick(now)):
            self._commit_if_visible(now)
            self.actions.append(Forward(out))
            self._quiet_since = now
        if now >= self._silence_ends:
            self._break_silence(now)

    @property
    def deadline(self) -> float:
        """When `tick` is due at the latest."""
        return min(self._round_ends, self._silence_ends, self.waits_until)

    @property
    def waits_until(self) -> float:
        """When a text leaves that may have begun to repeat a key."""
        return self.answer.due if self.course.state is State.PEEKING or self.course.state is State.FLOWING else float("inf")

    @property
    def _round_ends(self) -> float:
        """When the running round is given up: it is silent, or says nothing but that it is there."""
        limits = self.limits
        match self.course.state:
            case State.ASKING:
                return self.heard + limits.first_byte_s
            case State.PEEKING:
                patience = min(limits.first_byte_s, limits.idle_s) if self.spoke else limits.first_byte_s
                return min(self.heard + patience, self._pulse.ends)
            case State.FAILING:
                return self._headed + min(limits.first_byte_s, ERROR_S)
            case State.FLOWING:
                return min(self.heard + limits.idle_s, self._pulse.ends)
        return float("inf")

    @property
    def _no_content(self) -> str:
        return f"it said nothing but that it is there for {round(self.limits.content_s)} seconds"

    def usage(self) -> Usage | None:
        """What the answer cost, once it is complete."""
        return self._usage

    # What follows from it

    def _hear(self, chunk: bytes, now: float) -> None:
        answer = self.answer
        out = answer.feed(chunk, now)
        if out is not chunk:  # what passes unread is content, and no error
            if self._notice_due:
                self._see_notice()
            if self.course.state is State.PEEKING:
                self._commit_if_visible(now)
                if self.course.state is State.PEEKING and (error := answer.error) is not None:
                    self._fail(Failed(error), now)
                    return
        if out:
            self.actions.append(Forward(out))
            self._quiet_since = now
            if self._begins:
                self._begins = False
                self.actions.append(Began())

    def _see_notice(self) -> None:
        if self.answer.notice_sent:
            self._notice_due = False
            self.planner.noticed()

    def _commit_if_visible(self, now: float) -> None:
        if self.course.state is State.PEEKING and self.answer.visible:
            self._commit(now)
            self._begins = not self.alone

    def _commit(self, now: float) -> None:
        """The first content: from here on this round is the answer, or goes on with it."""
        self.planner.answered(self.answer.round_id, now)
        self.course.go(State.FLOWING)
        self._pulse.begin(now)
        self.rounds += 1
        if self.answer.converted and self._head is not None:
            kept = (pair for pair in self._head.headers if pair[0].lower() != "content-type")
            form = headers_for(self.stream, self.endpoint.json_array)
            self._head = Head(self._head.status, (*kept, *form.items()))
        self._answering = self._head
        if self.stream:
            self._open()

    def _release(self) -> None:
        """What the last round held back and is no end: the answer does not end here."""
        if self.stream and self.opened and (held := self.answer.feed(b"")):
            self.actions.append(Forward(held))

    def _round_over(self, missing: str, now: float) -> None:
        """It says nothing more; `missing` is what to say where its end has not come."""
        answer = self.answer
        said = answer.end_round()
        is_whole = said.complete and said.error is None
        if self.course.state is State.PEEKING:
            if not (is_whole or answer.visible):
                self._fail(Failed(_error_of(said, missing)), now)
                return
            self._commit(now)
        own = answer.content
        self._usage = said.usage if own.tokens is not None else None
        word = own.ended.finish_reason if own.ended is not None else ""
        self.finish_reasons = (word, word)
        if not is_whole:
            told = _error_of(said, missing)
            self._end_in_error(told.message, told.status)
            return
        self.planner.cost(own.tokens)
        self.planner.note_seals_of(said.native)
        self._calls = len(said.calls) > len(said.own)
        self.course.go(State.DECIDING)
        if self.alone:
            self.conclude()
        else:
            self.actions.append(Decide(said))

    def _fail_with_body(self, now: float) -> None:
        assert self._head is not None
        body = bytes(self._held)
        error = self.planner.failure(self._head.status, self._raw_headers, body)
        self._fail(Failed(error, self._head, body), now)

    def _fail(self, failed: Failed, now: float) -> None:
        self.actions.append(Abandon())
        if self.course.state is State.PEEKING and (tokens := self.answer.content.tokens) is not None:
            self.planner.cost(tokens, answered=False)
        after = self.planner.failed(failed, now)
        if after is not None:
            self.course.go(State.WAITING)
            self.actions.append(Again(after))
        else:
            self._give_up(failed.error)

    def _give_up(self, error: ProviderError) -> None:
        if self.rounds:
            self.course.go(State.DECIDING)
            self.actions.append(GaveUp(error))
        else:
            self._refuse(self.planner.refusal())

    def _refuse(self, refusal: Refusal) -> None:
        if self.opened:
            told = self.planner.failure(refusal.head.status, {}, refusal.body)
            self._end_in_error(told.message or f"The provider answered {told.status}.", told.status)
        else:
            self.actions.append(Refuse(refusal))
            self._over(Finish())

    # What the client gets meanwhile, and at last

    def _open(self) -> None:
        if not self.opened:
            assert self._answering is not None
            self.opened = True
            self.actions.append(OpenHead(self._answering))

    @property
    def _silence_ends(self) -> float:
        """When the client must be sent something, so that it does not give up."""
        early = self.limits.early_head_s
        if early is None or self.course.state is State.CLOSING or self.course.over:
            return float("inf")
        if self.opened:
            quiet = self.answer.quiet and self.course.state is State.FLOWING  # the provider's own silence
            return float("inf") if quiet else self._quiet_since + self.limits.keep_alive_s
        if self.stream:
            return self.started + early
        # White space may stand before JSON; but a head that has left can no longer say that everything failed.
        return max(self.started + WHOLE_PATIENCE_S, self._quiet_since) if self.rounds else float("inf")

    def _break_silence(self, now: float) -> None:
        if not self.opened:
            self.opened = True
            headers = headers_for(self.stream, self.endpoint.json_array)
            self.actions.append(OpenHead(Head(200, tuple(headers.items()))))
            if self.stream and self.answer.opens:
                about = self.planner.opening()
                self.actions.append(Forward(self.answer.open(id=about.id, model=about.model, created=about.created)))
        self._quiet_since = now
        self.actions.append(Forward(self.answer.keep_alive() if self.stream else b"\n"))

    def _end_in_error(self, message: str, status: int = 502, code: str = "UPSTREAM_ERROR") -> None:
        endpoint, self.failed = self.endpoint, message
        if not self.stream:
            if self.opened:
                self._over(Abort())
                return
            body = write_error(endpoint.dialect, status, message, code)
            self.actions.append(Refuse(Refusal(Head(status, tuple(headers_for(False).items())), body)))
            self._over(Finish())
            return
        if error := self.answer.fail(status, message, code):
            self.actions.append(Forward(error))
        self._over(Finish())

    def _over(self, last: Action) -> None:
        if self.course.state is State.FLOWING:
            tokens = self.answer.content.tokens
            self._usage = self.answer.usage if tokens is not None else self._usage
            self.planner.cost(tokens)
        self.actions.append(last)
        self.course.go(State.OVER)
        self.planner.unsay(self.answer.left_out)
        del self.answer  # long texts do not wait for the garbage collector


def _error_of(said: Said, missing: str) -> ProviderError:
    return said.error or ProviderError(502, missing, network=True)


WHOLE_PATIENCE_S = 45.0
"""A client that waits for whole JSON hears something before its minute is over, once there is an answer to give."""
