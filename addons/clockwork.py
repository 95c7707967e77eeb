"""The clock's parts that outlive a change of the configuration: its tasks, its time, and who delivers what."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from ..routing.clock.claims import FileClaims
from ..routing.clock.moment import Moments, steady_seconds
from ..routing.clock.plugin import ClockPlugin, ClockSwitchedOff, Note
from ..routing.clock.reminders import Claims, Reservations
from ..routing.clock.store import ClockStore
from ..routing.clock.watch import Watch
from ..routing.config import Config
from ..routing.config.values import Clock
from . import worker
from .disk_threads import PATIENT, breathe
from .sntp import Sntp


class Clockwork:
    """One for each folder."""

    def __init__(self, folder: Path, store: ClockStore | None = None, claims: Claims | None = None) -> None:
        """`store`, `claims`: where several machines share them; else they lie in the folder."""
        self.store = store or ClockStore(folder)
        moments = Moments(time.time, steady_seconds)
        self._sntp = Sntp(moments, asks=worker.leads())
        self.claims = claims or FileClaims(folder)
        reservations = Reservations(self.claims)
        self._watch = Watch(self.store, moments, reservations, lambda: str(uuid.uuid4()), self._sntp.ntp)
        self._swept: float | None = None

    def plugin(self, config: Config, note: Note, log: Callable[[str], None]) -> ClockPlugin | ClockSwitchedOff:
        """By these settings from now on. `log` is called in the loop; the plugin may tell it something from any thread."""
        loop = asyncio.get_running_loop()
        self._sntp.use(config.clock.ntp if config.clock is not None else None, self.store)
        if config.clock is None:
            return ClockSwitchedOff(self._watch)

        def log_soon(line: str) -> None:
            loop.call_soon_threadsafe(log, line)

        return ClockPlugin(self._watch, config.clock, note, log_soon, derived_too=config.derive == "all", threads=PATIENT)

    async def sweep(self, settings: Clock | None) -> None:
        """What has expired goes: once at the start, then as often as the settings say."""
        if self._watch.unwritten:
            await asyncio.get_running_loop().run_in_executor(PATIENT, self._watch.write_unwritten)
        if settings is None or not worker.leads():
            return
        now = time.monotonic()
        if self._swept is not None and (not settings.tick_ms or now - self._swept < settings.tick_ms / 1000):
            return
        self._swept = now
        await asyncio.get_running_loop().run_in_executor(
            PATIENT, lambda: self.store.sweep(self._watch.moments.trusted_now_ms(), settings.retention_ms, breathe)
        )

    def close(self) -> None:
        self._sntp.close()


_SHARED: dict[Path, Clockwork] = {}


def shared(folder: Path, store: ClockStore | None = None, claims: Claims | None = None) -> Clockwork:
    """The same for everybody in this process: an addon that is loaded anew must know what the old one is delivering."""
    if folder not in _SHARED:
        _SHARED[folder] = Clockwork(folder, store, claims)
    return _SHARED[folder]
