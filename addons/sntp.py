"""Asks time servers how far this machine's clock is off, beside everything else: no call ever waits for it, or fails by it.

1. Each server is asked in a thread of its own. Looking up a name can hang for longer than anybody would wait for it, so these
   are not the threads that calls use, and none of them keeps the program from ending.
2. Which answer is believed is decided in `routing.clock.offset`; how one server is asked stands in `time_server`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Protocol, TypeAlias

from ..routing.clock import offset
from ..routing.clock.moment import Moments, steady_seconds
from ..routing.clock.offset import Agreed, NtpState, Refusal, Verdict
from ..routing.config import Ntp
from ..routing.dialects.fields import read_object
from ..routing.errors import StoreError
from ..routing.values import JsonObject
from .disk_threads import in_thread

logger = logging.getLogger("routecodex")

Ask: TypeAlias = Callable[[str, float], Verdict]
"""A server's name and the seconds to wait for its answer. Blocks."""


def _ask(server: str, timeout_s: float) -> Verdict:
    from .time_server import ask_server  # in that server's thread, behind the start

    return ask_server(server, timeout_s)


_LOOKUP_S = 5.0
_LOOK_S = 5.0
"""A jump of the clock is seen so soon."""


class StateFile(Protocol):
    """Where the state outlives a restart (`ClockStore`)."""

    def ntp_state(self) -> bytes | None: ...
    def save_ntp_state(self, raw: bytes) -> None: ...


class Sntp:
    """What this machine's clock is off by: measured at the start, again when that is old, and when the clock has jumped.

    `moments` is told, and corrects its time by it. `wall` and `steady` are the clocks that it uses as well.
    """

    def __init__(
        self,
        moments: Moments,
        *,
        ask: Ask | None = None,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_seconds,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        asks: bool = True,
    ) -> None:
        """`asks`: else another process does, and what it wrote down is read."""
        self._moments = moments
        self._asks = asks
        self._ask_server: Ask = ask or _ask
        self._wall = wall
        self._steady = steady
        self._sleep = sleep
        self._jitter = jitter
        self._settings = Ntp(enabled=False)
        self._file: StateFile | None = None
        self._state = NtpState()
        self._saved = b""
        self._told: JsonObject = {}
        """By the process that asks, where that is another one."""
        self._logged: dict[str, str] = {}
        self._sent_away: set[str] = set()
        """Servers that do not want to be asked; they are not, until the configuration changes."""
        self._asked: dict[str, Future[Verdict]] = {}
        self._task: asyncio.Task[None] | None = None

    def use(self, settings: Ntp | None, file: StateFile) -> None:
        """From now on by these settings (None: no clock at all), with the state of that file. Needs a running loop."""
        settings = settings or Ntp(enabled=False)
        if settings == self._settings and file is self._file and (self._task is not None or not settings.enabled):
            return
        self.close()
        self._settings = settings
        self._sent_away.clear()
        if file is not self._file:
            self._file, self._state, self._saved = file, NtpState(), b""
        if settings.enabled and not self._state.updated_at_ms:
            self._state = offset.from_bytes(file.ntp_state() or b"", self._now_ms())
            self._correct(self._state.offset_ms)
        self._state = self._state.doubted()
        if settings.enabled:
            work = self._run(settings, file) if self._asks else self._follow(file)
            self._task = asyncio.get_running_loop().create_task(work)
        else:
            self._correct(0)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def offset_ms(self) -> int:
        """True time minus this machine's, as it is in force."""
        return self._moments.offset_ms

    def ntp(self) -> JsonObject:
        """The state as a model is told."""
        settings = self._settings
        if self._told and settings.enabled:
            return {name: value for name, value in self._told.items() if name != "version"} | {"offsetMs": self.offset_ms()}
        status = self._state.status(self._now_ms(), settings.stale_after_ms) if settings.enabled else "disabled"
        return offset.report(self._state, status, self.offset_ms())

    def _correct(self, offset_ms: int) -> None:
        """Not measured just now: it is no reason to believe a clock that has jumped."""
        if offset_ms != self._moments.offset_ms:
            self._moments.correct(offset_ms)

    def _now_ms(self) -> int:
        return int(self._wall() * 1000)

    # When

    async def _run(self, settings: Ntp, file: StateFile) -> None:
        failures = 0
        while True:
            jumps = self._moments.jumps
            failures = 0 if await self._sync(settings, jumps) else failures + 1
            await self._save(file)
            await self._rest(offset.pause_s(settings.stale_after_ms, failures, self._jitter()), jumps)

    async def _rest(self, pause_s: float, jumps: int) -> None:
        """Ends early when the clock jumps: what was measured does not hold any longer."""
        began = self._steady()
        while True:
            if self._moments.jumps != jumps:
                jumps = self._moments.jumps
                self._state = self._state.doubted()
                pause_s = min(pause_s, offset.SOONEST_S)
            left = began + pause_s - self._steady()
            if left <= 0:
                return
            await self._sleep(min(left, _LOOK_S))

    async def _follow(self, file: StateFile) -> None:
        """What the process that asks wrote down; a measure of its is one of ours, as long as the clock has not jumped since."""
        while True:
            jumps, raw = self._moments.jumps, await in_thread(file.ntp_state) or b""
            if raw != self._saved:
                before, self._state = self._state, offset.from_bytes(raw, self._now_ms())
                self._saved, self._told = raw, read_object(raw) or {}
                if self._told.get("status") == "synced" and self._state.updated_at_ms != before.updated_at_ms:
                    self._moments.correct(self._state.offset_ms, jumps=jumps)
                else:
                    self._correct(self._state.offset_ms)
            await self._sleep(_LOOK_S)

    # One round of questions

    async def _sync(self, settings: Ntp, jumps: int) -> bool:
        """Whether the offset is known now. Whatever goes wrong, it says so and nothing else."""
        try:
            outcome = await self._measure(settings)
        except Exception as error:  # a fault of ours must not end the measuring for good
            outcome = f"failed inside: {type(error).__name__}"
        if isinstance(outcome, Agreed) and not self._moments.correct(outcome.offset_ms, jumps=jumps):
            outcome = str(Refusal.JUMPED)
        if isinstance(outcome, Agreed):
            self._state = self._state.measured(outcome, self._now_ms())
            self._log("sync", f"time servers agree ({len(outcome.servers)}): this clock is {outcome.offset_ms} ms behind")
        else:
            self._state = self._state.failed(outcome)
            self._log("sync", f"{outcome}; the clock goes on as it is")
        return isinstance(outcome, Agreed)

    async def _measure(self, settings: Ntp) -> Agreed | str:
        servers = dict.fromkeys(settings.servers)
        answers = await asyncio.gather(*(self._ask(server, settings.timeout_ms / 1000) for server in servers))
        verdicts = dict(zip(servers, answers, strict=True))
        self._sent_away.update(server for server, verdict in verdicts.items() if verdict is Refusal.SENT_AWAY)
        return offset.agree(verdicts)

    async def _ask(self, server: str, timeout_s: float) -> Verdict:
        if server in self._sent_away:
            return Refusal.SENT_AWAY
        earlier = self._asked.get(server)
        if earlier is not None and not earlier.done():  # its name is still being looked up
            return Refusal.UNKNOWN_NAME
        answer: Future[Verdict] = Future()
        answer.set_running_or_notify_cancel()
        threading.Thread(target=self._answer, args=(answer, server, timeout_s), name=f"ntp {server}", daemon=True).start()
        self._asked[server] = answer
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), _LOOKUP_S + 2 * timeout_s)
        except TimeoutError:
            return Refusal.UNKNOWN_NAME

    def _answer(self, answer: Future[Verdict], server: str, timeout_s: float) -> None:
        try:
            answer.set_result(self._ask_server(server, timeout_s))
        except Exception as error:
            answer.set_exception(error)

    # What outlives it

    async def _save(self, file: StateFile) -> None:
        raw = offset.to_bytes(self.ntp())
        if raw == self._saved:
            return
        try:
            await in_thread(file.save_ntp_state, raw)
        except StoreError as error:
            self._log("file", error.message)
        else:
            self._saved = raw

    def _log(self, about: str, line: str) -> None:
        """Once, until there is something else to say about it."""
        if self._logged.get(about) != line:
            self._logged[about] = line
            logger.info("NTP: %s", line)
