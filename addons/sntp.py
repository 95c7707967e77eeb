"""Asks time servers how far this machine's clock is off, beside everything else: no call ever waits for it, or fails by it.

1. Each server is asked in a thread of its own. Looking up a name can hang for longer than anybody would wait for, so these are
   not the threads that calls use, and none of them keeps the program from ending.
2. Which answer is believed is decided in `routing.clock.offset`. Here every packet is read until one is believed or time is
   up: a forged one that comes first keeps the true one from nothing.
3. ntplib writes and reads the packets. Its own client looks at neither the port nor the question that an answer belongs to,
   and reads timestamps as floats, which drops the bits that only a true answer can hold.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import random
import secrets
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import ntplib

from routing.clock.moment import Moments, steady_seconds
from routing.clock.offset import (
    FILE,
    SOONEST_S,
    VERSION,
    Agreed,
    Answer,
    Asked,
    NtpState,
    Peer,
    Refusal,
    Sample,
    Status,
    Verdict,
    agree,
    from_bytes,
    judge,
    pause_s,
    report,
    to_bytes,
)
from routing.config import Ntp
from routing.errors import StoreError
from routing.sessions.disk import Disk, Folder, NotRegular
from routing.values import JsonObject

logger = logging.getLogger("routecodex")

_PORT = 123
_LENGTH = 48
_MOST_HEARD = 64
"""So many wrong packets, and the server counts as silent."""
_LOOKUP_S = 5.0
_LOOK_S = 5.0
"""How soon a jump of the clock is seen."""

Ask = Callable[[str, float], Verdict]
"""A server's name and the seconds to wait; blocks."""


class Sntp:
    """What this server's clock is off by; measured at the start, when that is old, and when the clock has jumped."""

    def __init__(
        self,
        moments: Moments,
        *,
        ask: Ask | None = None,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        disk: Disk | None = None,
    ) -> None:
        self._moments = moments
        self._ask_server = ask or ask_server
        self._jitter = jitter
        self._sleep = sleep
        self._disk = disk
        self._settings: Ntp | None = None
        self._folder: Folder | None = None
        self._state = NtpState()
        self._saved = b""
        self._told = ""
        self._sent_away: set[str] = set()
        """Servers that asked never to be asked again."""
        self._asking: dict[str, threading.Thread] = {}
        self._task: asyncio.Task[None] | None = None

    def use(self, settings: Ntp | None, folder: Path) -> None:
        """From now on these settings (None: there is no clock), and the state of that folder. Needs a running loop."""
        moved = self._folder is None or self._folder.path != folder
        if settings == self._settings and not moved:
            return
        self.close()
        self._settings = settings
        if settings is None or not settings.enabled:
            self._moments.correct(0)
            return
        if moved:
            self._folder = Folder(folder, self._disk)
            self._state = self._restored(self._folder)
        self._moments.correct(self._state.offset_ms)
        self._task = asyncio.get_running_loop().create_task(self._run(settings))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._settings = None
        self._sent_away.clear()

    def offset_ms(self) -> int:
        """What is in force: true time minus this machine's."""
        return self._moments.offset_ms

    def ntp(self) -> JsonObject:
        """The state as a model is told."""
        return report(self._state, self._status(), self.offset_ms())

    def _status(self) -> Status:
        if self._settings is None or not self._settings.enabled:
            return "disabled"
        return self._state.status(_now_ms(), self._settings.stale_after_ms)

    async def _run(self, settings: Ntp) -> None:
        failures = 0
        while True:
            jumps = self._moments.jumps
            failures = 0 if await self._sync(settings, jumps) else failures + 1
            await self._rest(pause_s(settings.stale_after_ms, failures, self._jitter()), jumps)

    async def _rest(self, pause: float, jumps: int) -> None:
        """Ends early when the clock jumps: what was measured no longer holds then."""
        began = steady_seconds()
        while True:
            if self._moments.jumps != jumps:
                jumps = self._moments.jumps
                self._state = self._state.doubted()
                pause = min(pause, SOONEST_S)
            left = began + pause - steady_seconds()
            if left <= 0:
                return
            await self._sleep(min(left, _LOOK_S))

    async def _sync(self, settings: Ntp, jumps: int) -> bool:
        """One round of questions. Never raises; whether the offset is known now."""
        try:
            outcome = await self._measure(settings)
        except Exception as error:  # whatever it was, the clock goes on without
            outcome = f"failed inside: {type(error).__name__}"
        if isinstance(outcome, Agreed) and self._moments.correct(outcome.offset_ms, jumps=jumps):
            self._state = self._state.measured(outcome, _now_ms())
        else:
            self._state = self._state.failed(outcome if isinstance(outcome, str) else Refusal.JUMPED)
        self._tell()
        await asyncio.to_thread(self._save)
        return not self._state.last_error

    async def _measure(self, settings: Ntp) -> Agreed | str:
        servers = tuple(dict.fromkeys(settings.servers))
        verdicts = await asyncio.gather(*(self._ask(server, settings.timeout_ms / 1000) for server in servers))
        self._sent_away.update(
            server for server, verdict in zip(servers, verdicts, strict=True) if verdict is Refusal.SENT_AWAY
        )
        return agree(dict(zip(servers, verdicts, strict=True)))

    async def _ask(self, server: str, timeout_s: float) -> Verdict:
        if server in self._sent_away:
            return Refusal.SENT_AWAY
        asking = self._asking.get(server)
        if asking is not None and asking.is_alive():
            return Refusal.UNKNOWN_NAME  # its name is still being looked up
        answer: concurrent.futures.Future[Verdict] = concurrent.futures.Future()
        answer.set_running_or_notify_cancel()
        thread = threading.Thread(target=self._answer, args=(answer, server, timeout_s), name=f"ntp {server}", daemon=True)
        self._asking[server] = thread
        thread.start()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), 2 * timeout_s + _LOOKUP_S)
        except TimeoutError:
            return Refusal.UNKNOWN_NAME

    def _answer(self, answer: concurrent.futures.Future[Verdict], server: str, timeout_s: float) -> None:
        try:
            answer.set_result(self._ask_server(server, timeout_s))
        except Exception as error:
            answer.set_exception(error)

    def _tell(self) -> None:
        """Once in the log, until something else is to be said."""
        why = self._state.last_error
        if why != self._told or self._state.agreed is None:
            pass
        self._told = why

    def _restored(self, folder: Folder) -> NtpState:
        try:
            found = folder.read(FILE)
        except (StoreError, NotRegular):
            return NtpState()
        return from_bytes(found[1], _now_ms()) if found is not None else NtpState()

    def _save(self) -> None:
        raw = to_bytes(self.ntp())
        if self._folder is None or raw == self._saved:
            return
        try:
            with self._folder.locked(FILE):
                self._folder.write(FILE, raw)
        except StoreError as error:
            logger.info("%s", error.message)
        else:
            self._saved = raw
