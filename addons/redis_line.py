"""An open connection to Redis: what is asked leaves at once, and what is answered comes in that order.

1. redis-py connects (addresses, TLS, names and passwords are its matter); then this takes the connection over. To ask the
   redis-py way takes three times as long, and a connection for each who asks at the same time.
2. Who asks waits until it is answered, until its time is over, or until the connection ends. Whichever of the last two comes ends
   the connection for all: what was asked over it has an unknown outcome, and on it answers to nobody would come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, TypeAlias, cast

import hiredis
from redis import exceptions
from redis.asyncio.connection import AbstractConnection

Word: TypeAlias = bytes | str | int

STOOD_STILL_S = 0.1


class Line(asyncio.Protocol):
    def __init__(self, connection: AbstractConnection) -> None:
        """`connection`: connected, and nobody else's from now on."""
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._before = cast(asyncio.StreamWriter, connection._writer)  # it would close what it opened once nobody had it any more
        connection._reader = connection._writer = None
        self._transport = cast(asyncio.Transport, self._before.transport)
        self._transport.set_protocol(self)
        self._read = hiredis.Reader(protocolError=exceptions.InvalidResponse, replyError=exceptions.ResponseError)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        """Who, and until when."""
        self._timer: asyncio.TimerHandle | None = None
        """One for all: most are answered long before it is due, and it is looked at again then."""
        self._forgiven = False

    def ask(self, words: tuple[Word, ...], due: float) -> asyncio.Future[Any]:
        """Its answer; a ResponseError where it is one, a TimeoutError, or a ConnectionError."""
        answer = self._loop.create_future()
        self._waiting.append((answer, due))
        self._transport.write(hiredis.pack_command(cast(Any, words)))
        if self._timer is None or due < self._timer.when():
            self._look_at(due)
        return answer

    def end(self, why: Exception) -> None:
        """For everybody who waits."""
        self.closed = True
        self._transport.abort()
        while self._waiting:
            answer, _ = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(why)
        if self._timer is not None:
            self._timer.cancel()

    def _look_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look, due)

    def _look(self, planned: float) -> None:
        """A loop that stood still itself hears first what came meanwhile."""
        self._timer, now = None, self._loop.time()
        if not self._waiting:
            return
        due = min(due for _, due in self._waiting)
        if due <= now and now - planned > STOOD_STILL_S and not self._forgiven:
            self._forgiven, due = True, now + STOOD_STILL_S
        elif due <= now:
            self.end(TimeoutError("no answer in time"))
            return
        else:
            self._forgiven = False
        self._look_at(due)

    # As asyncio calls it

    def data_received(self, data: bytes) -> None:
        try:
            self._read.feed(data)
            while (said := self._read.gets()) is not False:  # the oldest protocol has no such word
                self._hear(said)
        except exceptions.InvalidResponse as error:
            self.end(error)

    def _hear(self, said: Any) -> None:
        if not self._waiting:
            self.end(exceptions.ConnectionError("it says what nobody asked"))
            return
        answer, _ = self._waiting.popleft()
        if answer.done():
            return  # who asked has left
        if isinstance(said, Exception):
            answer.set_exception(said)
        else:
            answer.set_result(said)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(exceptions.ConnectionError(str(error or "Connection closed by server.")))
