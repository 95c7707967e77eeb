"""An event stream that leaves as it came for as long as nothing in it has to change.

1. What opens an answer waits for its first content: a round that breaks off before it leaves nothing behind.
2. What ends an answer waits for the end of the turn, and everything behind it waits too, so that the order stays.
3. From the first event on that has to change (a call of ours, a later round), events are written one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Generic, Literal, TypeVar

from ...errors import BadAnswer
from ...values import Dialect, ProviderError
from .. import answers
from ..answer.repeated import LONG, Repeated
from ..failures import ERROR_KEY, without_empty_error
from ..fields import read_object
from ..finish import CUT_OFF
from ..said import Said
from ..sse import Event, Events
from .common import BOM, Form, id_of, too_long

HELD_BYTES = 1 << 20
"""So much may wait; a stream that opens or ends with more than this is written event by event."""

Kind = Literal["opens", "goes", "rests", "passes"]


@dataclass(slots=True)
class Heard:
    """One event, understood.

    `opens`: it may wait for the first content; `goes`: it must leave at once; `rests`: it waits for what comes next;
    `passes`: it may leave where nothing waits (comments, what is not known).
    """

    event: Event
    raw: bytes
    """The bytes as they came, or the first of them; the event's own end in a blank line."""
    kind: Kind = "passes"
    is_error: bool = False
    repeats: bool = False
    """It says again what has left: as long as it may be, it is kept."""
    rest: tuple[bytes, ...] = ()
    """What comes behind `raw`."""


H = TypeVar("H", bound=Heard)


class Untouched(ABC, Generic[H]):
    """The frame of a merger that reads one event stream after another."""

    dialect: ClassVar[Dialect]

    def __init__(self, form: Form) -> None:
        self._form = form
        self._own = form.own_tools
        self._reader = Events()
        self._pending: list[bytes] = []
        self._held: list[H] = []
        self._held_bytes = 0
        self._repeated = Repeated()
        """What this round tells more than once."""
        self._as_it_came = True
        self._started = False
        """Bytes of an answer have left."""
        self._visible = False
        """Content of this round has left."""
        self._told: ProviderError | None = None
        """What broke this round."""
        self._said: Said | None = None
        """What this round said, once it is over."""
        self._rounds: list[Said] = []
        """Those that count."""
        self._tail = b""
        """What a stream left behind its last whole event."""
        self._over = False
        self._failed = False

    # What each dialect does

    @abstractmethod
    def _begin(self) -> None:
        """A round begins; `_later` says whether one that counts stands before it."""

    @abstractmethod
    def _forget(self) -> None:
        """The round that is over left nothing behind: nothing of it counts."""

    @abstractmethod
    def _read(self, event: Event) -> H:
        """Understand an event; clears `_as_it_came` where it is something that the client must not see."""

    @abstractmethod
    def _show(self, heard: H) -> bytes:
        """What the client gets of an event, where it does not get the bytes."""

    @abstractmethod
    def _left(self, heard: H) -> None:
        """The event's bytes are leaving as they came."""

    @abstractmethod
    def _end(self) -> Said:
        """The round is over."""

    @abstractmethod
    def _closing(self) -> Iterable[bytes]:
        """The end of the answer, made as it is taken where it is long."""

    @abstractmethod
    def _error_event(self, status: int, message: str, code: str) -> bytes: ...

    def _swallowed(self, heard: H) -> bool:
        """Whether the client did not ask for this event."""
        return False

    # The rounds

    @property
    def _later(self) -> bool:
        return bool(self._rounds)

    @property
    def id(self) -> str:
        return id_of(self._rounds)

    def begin_round(self, *, exact: bool = False) -> None:
        if self._said is not None and self._said.complete:
            if self._as_it_came:
                self._pending.append(self._let_go())
            self._rounds.append(self._said)
        elif self._as_it_came and not self._visible:
            self._held, self._held_bytes = [], 0
            self._forget()
        self._reader, self._said, self._told, self._visible, self._tail = Events(), None, None, False, b""
        self._begin()

    def feed(self, chunk: bytes) -> bytes:
        out = self._take()
        if not chunk and self._rests_complete:
            out.append(self._let_go())
        try:
            events = self._reader.feed(chunk)
            events.reverse()
            while events:  # a long one is gone once it is understood
                event = events.pop()
                if ERROR_KEY in event.data:
                    event = without_empty_error(event)
                out.append(self._hear(event, event.raw))
        except BadAnswer as error:
            self._told = self._told or too_long(error)
        return b"".join(out)

    def end_round(self) -> Said:
        try:
            for event in self._reader.close():
                self._pending.append(self._hear_last(without_empty_error(event)))
        except BadAnswer as error:
            self._told = self._told or too_long(error)
        self._said, self._repeated = self._end(), Repeated()
        return self._said

    def finish(self) -> Iterable[bytes]:
        if self._over:
            return ()
        self._over = True
        out, complete = self._take(), self._said is not None and self._said.complete
        if self._said is not None and complete:
            self._rounds.append(self._said)
        if self._as_it_came and (complete or self._holds_error):
            return (*out, *self._leaving(), self._tail)
        if not complete and (self._visible or not self._rounds):
            return (*out, self._error_event(502, CUT_OFF, "UPSTREAM_ERROR"))
        return chain(out, self._closing())

    def fail(self, status: int, message: str, code: str) -> bytes:
        if self._failed:
            return b""
        self._failed = True
        if self._over:  # what `finish` gave never left
            return self._error_event(status, message, code)
        self._over = True
        out, told = self._take(), self._told
        if self._as_it_came and self._holds_error and told is not None and told.message == message:
            return b"".join((*out, self._raw()))  # the provider's own error says it best
        if self._as_it_came and self._started:
            out.append(self._let_go())
        return b"".join((*out, self._error_event(status, message, code)))

    def keep_alive(self) -> bytes:
        if self._over:
            return b""
        out = self._take()
        if self._rests_complete:
            out.append(self._let_go())  # nothing that the client may see waits while a tool runs or a clock is awaited
        return b"".join((*out, self._alive()))

    def _alive(self) -> bytes:
        return answers.KEEP_ALIVE[self.dialect]

    @property
    def _rests_complete(self) -> bool:
        """A round is over, and nothing of it had to change so far."""
        return self._as_it_came and self._said is not None and self._said.complete

    @property
    def _holds_error(self) -> bool:
        return any(heard.is_error for heard in self._held)

    # The events

    def _hear(self, event: Event, raw: bytes, *, last: bool = False) -> bytes:
        as_it_came = self._as_it_came
        if self._started and event.raw.startswith(BOM):
            event = event._replace(raw=event.raw.removeprefix(BOM))  # it may stand at the very start alone
        heard = self._read(event)
        heard.raw = raw
        if not self._as_it_came:
            return (self._let_go() if as_it_came else b"") + self._shown(heard)
        self._held.append(heard)
        if not heard.repeats:
            self._held_bytes += len(raw)
        elif len(raw) >= LONG:
            heard.event = event._replace(raw=b"", data=b"")  # it says nothing that the client is told anew
            heard.raw, *rest = self._repeated.cut(raw)
            heard.rest = tuple(rest)
        if last or not self._may_leave(heard):
            return self._let_go() if self._held_bytes > HELD_BYTES else b""
        self._started = True
        self._visible = self._visible or heard.kind == "goes"
        return self._raw()

    def _may_leave(self, heard: H) -> bool:
        return heard.kind == "goes" or (heard.kind != "rests" and self._started and len(self._held) == 1)

    def _hear_last(self, event: Event) -> bytes:
        """What the stream left without its blank line; what was cut off in the middle is nothing."""
        if event.data.strip() != b"[DONE]" and read_object(event.data) is None:
            self._tail = event.raw
            return b""
        return self._hear(event._replace(raw=event.raw + b"\n\n"), event.raw, last=True)

    def _raw(self) -> bytes:
        """What waits, as it came."""
        return b"".join(self._leaving())

    def _leaving(self) -> list[bytes]:
        held, self._held, self._held_bytes = self._held, [], 0
        for heard in held:
            self._left(heard)
        return [piece for heard in held if not self._swallowed(heard) for piece in (heard.raw, *heard.rest)]

    def _let_go(self) -> bytes:
        """From here on events are written one by one: what waits first."""
        self._as_it_came = False
        held, self._held, self._held_bytes = self._held, [], 0
        return b"".join(self._shown(heard) for heard in held)

    def _shown(self, heard: H) -> bytes:
        out = self._show(heard)
        if out:
            self._started = True
            self._visible = self._visible or heard.kind in ("goes", "rests")
        return out

    def _take(self) -> list[bytes]:
        out, self._pending = self._pending, []
        return out
