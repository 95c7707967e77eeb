"""What time it is, and how far that is to be believed.

1. The wall clock is compared with a clock that nobody sets. Where the two part by more than two seconds, the wall clock has
   jumped (somebody set it, or the machine slept): it is in doubt, and believed once it has gone on steadily for a minute.
2. While it is in doubt nothing expires, and nothing is due early: it is the earlier of both, what the wall clock says and what
   was believed. Where time servers had confirmed what was believed, it is that.
3. An offset is measured against one wall clock: it holds until that clock jumps and the new time is believed.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from msgspec import Struct

UNKNOWN = "unknown"

_JUMP_S = 2.0
_STEADY_S = 60.0
_DRIFT = 0.0005
"""So far a clock drifts from another in a second at most, also while it is being corrected bit by bit."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE = re.compile(r"(?:/.*/zoneinfo/(?:posix/)?)?([A-Z][\w+-]*(?:/[\w+-]+)+|UTC)")


class Moment(Struct, frozen=True):
    """One point in time as it is shown."""

    now_ms: int
    utc: str
    """`2026-01-21T12:30:00.000Z`"""
    local: str
    """`2026-01-21 20:30:00.000 +08:00`"""
    timezone: str
    """`Asia/Shanghai`, or `unknown`."""
    offset_ms: int
    """What of it is correction."""


def moment_at(now_ms: int, offset_ms: int, timezone: str, zone: tzinfo | None = None) -> Moment:
    utc, local = _texts(now_ms - now_ms % 1000, zone)
    ms = f".{now_ms % 1000:03}"
    return Moment(now_ms, utc.replace(".000", ms), local.replace(".000", ms), timezone, offset_ms)


@lru_cache(4)
def _texts(second_ms: int, zone: tzinfo | None) -> tuple[str, str]:
    """Calls that come within one second share what costs most of a moment."""
    return utc_text(second_ms), local_text(second_ms, zone)


def utc_text(ms: int) -> str:
    return _at(ms).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def local_text(ms: int, zone: tzinfo | None = None) -> str:
    """Without a zone: in this machine's own."""
    try:
        here = _at(ms).astimezone(zone)
    except (OverflowError, ValueError, OSError):  # the first and last hours of the calendar, and what some systems cannot tell
        here = _at(ms)
    offset = here.strftime("%z")
    return f"{here.replace(tzinfo=None).isoformat(' ', 'milliseconds')} {offset[:3]}:{offset[3:5]}"


def _at(ms: int) -> datetime:
    """The nearest time that the calendar holds."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return (datetime.max if ms > 0 else datetime.min).replace(tzinfo=UTC)


def zone_name(environ: Mapping[str, str] = os.environ, localtime: str = "/etc/localtime") -> str:
    """The IANA name of this machine's zone, as far as it tells."""
    where = environ.get("TZ", "").removeprefix(":") or os.path.realpath(localtime)
    found = _ZONE.fullmatch(where)
    return found[1] if found else UNKNOWN


def steady_seconds() -> float:
    """Seconds that nobody sets, and that go on while the machine sleeps where the system can tell: then sleep is no jump."""
    if sys.platform == "win32":
        return time.monotonic()
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _Pair(Struct, frozen=True):
    """Both clocks, read together."""

    wall: float
    steady: float

    def wall_at(self, steady: float) -> float:
        return self.wall + steady - self.steady


class Moments:
    """`wall`: epoch seconds; `monotonic`: seconds that nobody sets (`steady_seconds`). Any thread may ask."""

    def __init__(
        self, wall: Callable[[], float], monotonic: Callable[[], float], *, offset_ms: int = 0, timezone: str | None = None
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._timezone = zone_name() if timezone is None else timezone or UNKNOWN
        self._lock = threading.Lock()
        self._offset_ms = offset_ms
        self._measured = False
        """The offset was measured against the wall clock as it is believed now."""
        self._jumps = 0
        self._believed = _Pair(wall(), monotonic())
        self._new: _Pair | None = None
        """Where the wall clock jumped to, while that is in doubt."""
        self._doubted_until: float | None = None

    @property
    def offset_ms(self) -> int:
        """What is added to the wall clock."""
        with self._lock:
            return self._offset_ms

    @property
    def jumps(self) -> int:
        """How often the wall clock has jumped, as far as it was looked at. After a jump, measure the offset anew."""
        with self._lock:
            self._look()
            return self._jumps

    def correct(self, offset_ms: int, *, jumps: int | None = None) -> bool:
        """True time minus `wall()`. Whether it was taken.

        `jumps`, as it was before measuring: due times believe the wall clock from here on; but where it has jumped since, the
        measure is void. None: it was not measured just now, and is no reason to believe a clock in doubt.
        """
        with self._lock:
            now = self._look()
            if jumps is not None and jumps != self._jumps:
                return False
            self._offset_ms, self._measured = offset_ms, jumps is not None
            if self._measured and self._new is not None:
                self._believed, self._new = now, None
            return True

    def now_ms(self) -> int:
        """The corrected time: for what is due, and what is shown."""
        return self._now()[0]

    def moment(self) -> Moment:
        return moment_at(*self._now(), self._timezone)

    def trusted_now_ms(self) -> int | None:
        """The time by which a task may expire; None while the wall clock is in doubt.

        A correction only ever makes it earlier: a forged one drops no task, and a clock that is fast drops none before it is due.
        """
        with self._lock:
            now = self._look()
            return None if self._doubted_until is not None else round(now.wall * 1000) + min(0, self._offset_ms)

    def _now(self) -> tuple[int, int]:
        """The corrected time, and what of it is correction."""
        with self._lock:
            now = self._look()
            before = now.wall if self._new is None else self._believed.wall_at(now.steady)
            return round((before if self._measured else min(before, now.wall)) * 1000) + self._offset_ms, self._offset_ms

    def _look(self) -> _Pair:
        """Both clocks now; whether they have parted is decided here, and nowhere else."""
        now = _Pair(self._wall(), self._monotonic())
        expected = self._believed if self._new is None else self._new
        if _apart(now, expected):
            self._jumped(now)
        elif expected is self._believed:
            self._believed = _followed(expected, now)
        if self._doubted_until is not None and now.steady >= self._doubted_until:
            self._believe(now)
        return now

    def _jumped(self, now: _Pair) -> None:
        self._jumps += 1
        self._doubted_until = now.steady + _STEADY_S
        self._new = now if _apart(now, self._believed) else None

    def _believe(self, now: _Pair) -> None:
        self._doubted_until = None
        if self._new is not None:
            self._believed, self._new, self._offset_ms, self._measured = now, None, 0, False


def _followed(before: _Pair, now: _Pair) -> _Pair:
    """What differs by little adds up over hours, and is no jump; but an error that passes must not be taken for it."""
    expected, most = before.wall_at(now.steady), _DRIFT * max(0.0, now.steady - before.steady)
    return _Pair(expected + min(max(now.wall - expected, -most), most), now.steady)


def _apart(now: _Pair, before: _Pair) -> bool:
    return abs(now.wall - before.wall_at(now.steady)) > _JUMP_S
