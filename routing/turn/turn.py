"""One client call being answered: it is told what happened and says what to do next. No network, no clock of its own.

1. Exactly one head and one end leave for the client, whatever happens.
2. Nothing of a round reaches the client before its first content: until then another round may take its place.
3. After the first content nothing is retried; an answer that breaks off ends in an error, never in an invented success.
4. Keep-alives and early heads do not commit: retries go on under them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from routing.dialects import answers
from routing.dialects.failures import read_failure
from routing.dialects.sse import ArrayItems, Events
from routing.errors import RouteCodexError
from routing.turn.terminal import LONGEST, TERMINAL
from routing.values import Endpoint, Headers, ProviderError, Usage

HELD_BYTES = 1 << 20
"""A stream that has said this much without content is content all the same."""
WHOLE_BYTES = 64 << 10
"""A whole JSON answer larger than this is no error envelope."""
ERROR_BYTES = 256 << 10
"""How much of a provider's error is read."""
EDGE_BYTES = 8 << 10
"""How much of an answer's start and end is kept for reading its usage."""


class State(Enum):
    ASKING = "asking"
    """A round is on its way; no head yet."""
    PEEKING = "peeking"
    """A good head; content has not begun."""
    FAILING = "failing"
    """A bad head; its body is being read."""
    WAITING = "waiting"
    """Between two rounds."""
    FLOWING = "flowing"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Head:
    status: int
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A whole error answer for the client."""

    head: Head
    body: bytes


@dataclass(frozen=True, slots=True)
class OpenHead:
    """Send this head now."""

    head: Head


@dataclass(frozen=True, slots=True)
class Forward:
    data: bytes


@dataclass(frozen=True, slots=True)
class Abandon:
    """Drop the round that is running."""


@dataclass(frozen=True, slots=True)
class Again:
    """Send another round, after a while."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Refuse:
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Finish:
    pass


@dataclass(frozen=True, slots=True)
class Abort:
    """The answer has begun and cannot be completed: cut the connection."""


Action = OpenHead | Forward | Abandon | Again | Refuse | Finish | Abort


@dataclass(frozen=True, slots=True)
class Failed:
    """What came back from a round that did not answer."""

    error: ProviderError
    head: Head | None = None
    body: bytes = b""


class Planner(Protocol):
    """Who knows about targets, keys and health."""

    def head(self, status: int, headers: Headers) -> Head:
        """The client's head for a good answer."""

    def failed(self, failed: Failed, now: float) -> float | None:
        """Another round after so many seconds, or None: give up."""

    def refusal(self) -> Refusal:
        """What the client is told when everything failed."""

    def answered(self, first: bytes, now: float) -> None:
        """The round's content has begun; `first` is its start."""


@dataclass(frozen=True, slots=True)
class Limits:
    first_byte_s: float = 120.0
    idle_s: float = 300.0
    early_head_s: float | None = 30.0
    """When a waiting client is sent a head and a keep-alive; None: never."""
    keep_alive_s: float = 15.0


@dataclass(slots=True)
class Turn:
    endpoint: Endpoint
    stream: bool
    planner: Planner
    limits: Limits
    started: float
    state: State = State.ASKING
    actions: list[Action] = field(default_factory=list)
    """What to do now; whoever carries the turn takes them all."""
    early: bool = False
    """The head has left before any content."""
    heard: float = 0.0
    _keep_alive_at: float = 0.0
    _head: Head | None = None
    _raw_headers: Headers = field(default_factory=dict)
    _held: bytearray = field(default_factory=bytearray)
    _first: bytes = b""
    _edge: bytearray = field(default_factory=bytearray)
    _terminal: bool = False
    _reader: Events | ArrayItems | None = None

    def __post_init__(self) -> None:
        self.heard = self.started
        early = self.limits.early_head_s
        self._keep_alive_at = self.started + early if early is not None and self.stream else float("inf")

    # What happened

    def begin(self, now: float) -> None:
        """Another round is on its way."""
        self.state, self.heard = State.ASKING, now
        self._held.clear()
        self._reader = None

    def head(self, status: int, headers: Headers, now: float) -> None:
        if self.state is not State.ASKING:
            return
        self.heard = now
        self._raw_headers = headers
        self.state = State.PEEKING if 200 <= status < 300 else State.FAILING
        self._head = self.planner.head(status, headers)

    def data(self, chunk: bytes, now: float) -> None:
        self.heard = now
        match self.state:
            case State.FLOWING:
                self._watch(chunk)
                self.actions.append(Forward(chunk))
            case State.PEEKING if self.stream:
                self._peek(chunk, now)
            case State.PEEKING:
                self._held += chunk
                if len(self._held) > WHOLE_BYTES:
                    self._commit(now)
            case State.FAILING if len(self._held) < ERROR_BYTES:
                self._held += chunk
            case _:
                pass

    def end(self, now: float) -> None:
        """The round has ended as its framing says it should."""
        match self.state:
            case State.FLOWING:
                self._complete()
            case State.PEEKING if self.stream:
                if TERMINAL[self.endpoint.dialect].search(self._held) is not None:
                    self._commit(now)
                    self._complete()
                else:
                    self._fail(Failed(ProviderError(502, "The provider's stream ended before it began.", network=True)), now)
            case State.PEEKING:
                error = answers.error_in(self.endpoint.dialect, bytes(self._held))
                if error is not None:
                    self._fail(Failed(error), now)
                else:
                    self._commit(now)
                    self._complete()
            case State.FAILING:
                self._fail_with_body(now)
            case State.ASKING:
                self._fail(Failed(ProviderError(502, "The provider closed the connection without an answer.", network=True)), now)
            case _:
                pass

    def broke(self, message: str, now: float) -> None:
        """The connection could not be made, or died."""
        match self.state:
            case State.FLOWING if self._terminal or not self.stream:
                self.actions.append(Finish() if self._terminal else Abort())
                self.state = State.OVER
            case State.FLOWING:
                self._end_in_error(f"The provider broke off in the middle of its answer: {message}")
            case State.FAILING:
                self._fail_with_body(now)
            case State.ASKING | State.PEEKING:
                self._fail(Failed(ProviderError(502, message, network=True)), now)
            case _:
                pass

    def gone(self) -> None:
        """The client has left: nothing more is done for it."""
        if self.state is not State.OVER:
            self.state = State.OVER
            self.actions[:] = [Abandon()]

    def tick(self, now: float) -> None:
        """Time has passed."""
        if self.state in (State.ASKING, State.PEEKING) and now >= self.heard + self.limits.first_byte_s:
            waited = round(now - self.heard)
            self._fail(Failed(ProviderError(504, f"The provider said nothing for {waited} seconds.", network=True)), now)
        elif self.state is State.FAILING and now >= self.heard + self.limits.first_byte_s:
            self._fail_with_body(now)
        elif self.state is State.FLOWING and now >= self.heard + self.limits.idle_s:
            self.actions.append(Abandon())
            if self.stream:
                self._end_in_error(f"The provider fell silent for {round(self.limits.idle_s)} seconds.")
            else:
                self.actions.append(Abort())
                self.state = State.OVER
        if self.state in (State.ASKING, State.PEEKING, State.FAILING, State.WAITING) and now >= self._keep_alive_at:
            self._keep_alive_at = now + self.limits.keep_alive_s
            self._open_early()
            self.actions.append(Forward(answers.KEEP_ALIVE[self.endpoint.dialect]))

    @property
    def deadline(self) -> float:
        """When `tick` is due at the latest."""
        if self.state is State.OVER:
            return float("inf")
        if self.state is State.FLOWING:
            return self.heard + self.limits.idle_s
        wait = float("inf") if self.state is State.WAITING else self.heard + self.limits.first_byte_s
        return min(wait, self._keep_alive_at)

    def usage(self) -> Usage | None:
        """What the answer cost, once it is complete."""
        return answers.read_usage(self.endpoint.dialect, self._first, bytes(self._edge)) if self._first else None

    # What follows from it

    def _peek(self, chunk: bytes, now: float) -> None:
        if self._reader is None:
            self._reader = answers.events_for(self.endpoint.json_array)
        self._held += chunk
        dialect = self.endpoint.dialect
        try:
            found = self._reader.feed(chunk)
        except RouteCodexError as error:
            self._fail(Failed(ProviderError(502, error.message, network=True)), now)
            return
        for event in found:
            if not event.data:
                continue
            if (error_event := answers.error_in(dialect, event.data)) is not None:
                self._fail(Failed(error_event), now)
                return
            if answers.is_content(dialect, event.data):
                self._commit(now)
                return
        if len(self._held) > HELD_BYTES:
            self._commit(now)

    def _commit(self, now: float) -> None:
        """The first content: from here on this round is the answer."""
        held = bytes(self._held)
        self._first = held[:EDGE_BYTES]
        self.planner.answered(self._first, now)
        self.state = State.FLOWING
        self._reader = None
        self._held.clear()
        if not self.early:
            assert self._head is not None
            self.actions.append(OpenHead(self._head))
        self._edge.clear()
        self._watch(held)
        self.actions.append(Forward(held))

    def _watch(self, chunk: bytes) -> None:
        """Remember whether the terminal event has passed, and the last bytes for their usage."""
        edge = self._edge
        edge += chunk
        if self.stream and not self._terminal:
            since = max(0, len(edge) - len(chunk) - LONGEST)
            self._terminal = TERMINAL[self.endpoint.dialect].search(edge, since) is not None
        if len(edge) > 2 * EDGE_BYTES:
            del edge[:-EDGE_BYTES]

    def _complete(self) -> None:
        if self.stream and not self._terminal:
            self._end_in_error("The provider's stream ended without its last event.")
            return
        self.actions.append(Finish())
        self.state = State.OVER

    def _fail_with_body(self, now: float) -> None:
        assert self._head is not None
        body = bytes(self._held)
        error = read_failure(self._head.status, self._raw_headers, body, now=now)
        self._fail(Failed(error, self._head, body), now)

    def _fail(self, failed: Failed, now: float) -> None:
        self.actions.append(Abandon())
        after = self.planner.failed(failed, now)
        if after is not None:
            self.state = State.WAITING
            self.actions.append(Again(after))
            return
        refusal = self.planner.refusal()
        if self.early:
            self._end_in_error(failed.error.message, failed.error.status)
        else:
            self.actions += [Refuse(refusal), Finish()]
            self.state = State.OVER

    def _open_early(self) -> None:
        if not self.early:
            self.early = True
            headers = answers.headers_for(True, self.endpoint.json_array)
            self.actions.append(OpenHead(Head(200, tuple(headers.items()))))

    def _end_in_error(self, message: str, status: int = 502) -> None:
        endpoint = self.endpoint
        error = answers.write_error_event(
            endpoint.dialect, status, message, "UPSTREAM_ERROR", json_array=endpoint.json_array, envelope=endpoint.envelope
        )
        self.actions += [Forward(error), Finish()]
        self.state = State.OVER


__all__ = [
    "Abandon",
    "Abort",
    "Action",
    "Again",
    "Failed",
    "Finish",
    "Forward",
    "Head",
    "Limits",
    "OpenHead",
    "Planner",
    "Refusal",
    "Refuse",
    "State",
    "Turn",
]
