"""What time it is: texts, the correction, and clocks that jump."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routecodex.routing.clock.moment import Moment, Moments, local_text, moment_at, steady_seconds, utc_text, zone_name

START = 1_800_000_000.0
HOUR = 3_600.0
YEAR = 365.25 * 86_400
JUMPS = [HOUR, -HOUR, 10 * YEAR, -10 * YEAR, 2.5, -2.5]


@dataclass(slots=True)
class Clocks:
    """A wall clock that somebody sets, and one that nobody does."""

    wall: float = START
    steady: float = 1_000.0
    moments: Moments = field(init=False)

    def __post_init__(self) -> None:
        self.moments = Moments(lambda: self.wall, lambda: self.steady, timezone="Asia/Shanghai")

    def passes(self, seconds: float, *, looks: int = 1) -> None:
        for _ in range(looks):
            self.wall += seconds / looks
            self.steady += seconds / looks
            self.moments.now_ms()

    def jumps(self, seconds: float) -> None:
        self.wall += seconds
        self.moments.now_ms()

    @property
    def now(self) -> float:
        return self.moments.now_ms() / 1000

    @property
    def trusted(self) -> float | None:
        now = self.moments.trusted_now_ms()
        return None if now is None else now / 1000


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


# --- texts


UTC_MS = 1_769_056_200_007


@pytest.mark.parametrize(
    "zone, expected",
    [
        (timezone(timedelta(hours=8)), "2026-01-22 12:30:00.007 +08:00"),
        (timezone(timedelta(hours=-8)), "2026-01-21 20:30:00.007 -08:00"),
        (timezone(timedelta(hours=5, minutes=45)), "2026-01-22 10:15:00.007 +05:45"),
        (timezone(timedelta(hours=-3, minutes=-30)), "2026-01-22 01:00:00.007 -03:30"),
        (UTC, "2026-01-22 04:30:00.007 +00:00"),
        (ZoneInfo("Europe/Berlin"), "2026-01-22 05:30:00.007 +01:00"),
    ],
)
def test_local_text(zone: timezone, expected: str) -> None:
    assert local_text(UTC_MS, zone) == expected


@pytest.mark.parametrize(
    "ms, local", [(1_793_493_000_000, "2026-11-01 01:30:00.000 +01:00"), (1_792_888_200_000, "2026-10-25 02:30:00.000 +02:00")]
)
def test_local_text_follows_summer_time(ms: int, local: str) -> None:
    assert local_text(ms, ZoneInfo("Europe/Berlin")) == local


def test_this_machines_own_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Shanghai")
        time.tzset()
        assert local_text(UTC_MS) == "2026-01-22 12:30:00.007 +08:00"
        assert zone_name() == "Asia/Shanghai"
    time.tzset()


@pytest.mark.parametrize(
    "ms, expected",
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (UTC_MS, "2026-01-22T04:30:00.007Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (10**30, "9999-12-31T23:59:59.999Z"),
        (-(10**18), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_utc_text(ms: int, expected: str) -> None:
    assert utc_text(ms) == expected
    assert local_text(ms, timezone(timedelta(hours=14)))
    assert local_text(ms, timezone(timedelta(hours=-14)))


@given(st.integers(0, 253_402_300_799_999))
def test_texts_say_the_same_instant(ms: int) -> None:
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    assert datetime.fromisoformat(utc_text(ms)) == instant
    if ms < 253_402_214_400_000:  # the calendar's last day is over in the east before it is over here
        assert datetime.strptime(local_text(ms, ZoneInfo("Asia/Kathmandu")), "%Y-%m-%d %H:%M:%S.%f %z").replace(
            microsecond=ms % 1000 * 1000
        ) == pytest.approx(instant, abs=timedelta(minutes=1))


@pytest.mark.parametrize(
    "tz, link, expected",
    [
        ("Asia/Shanghai", None, "Asia/Shanghai"),
        (":America/Argentina/Buenos_Aires", None, "America/Argentina/Buenos_Aires"),
        ("/usr/share/zoneinfo/Europe/Berlin", None, "Europe/Berlin"),
        ("UTC", "Europe/Berlin", "UTC"),
        ("EST5EDT", "Europe/Berlin", "unknown"),
        ("../../etc/passwd", None, "unknown"),
        ("Asia/`rm`", None, "unknown"),
        ("", "Europe/Berlin", "Europe/Berlin"),
        ("", "posix/Etc/UTC", "Etc/UTC"),
        ("", None, "unknown"),
    ],
)
def test_zone_name(tmp_path: Path, tz: str, link: str | None, expected: str) -> None:
    localtime = tmp_path / "localtime"
    if link:
        zone = tmp_path / "zoneinfo" / link
        zone.parent.mkdir(parents=True)
        zone.touch()
        localtime.symlink_to(zone)
    assert zone_name({"TZ": tz}, str(localtime)) == expected


def test_a_file_that_is_no_link_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "localtime").touch()
    assert zone_name({}, str(tmp_path / "localtime")) == "unknown"


# --- the correction


@pytest.mark.parametrize("offset", [0, 250, -250, 3_600_000, -3_600_000])
def test_c39_the_correction(clocks: Clocks, offset: int) -> None:
    clocks.moments.correct(offset)
    expected = round(START * 1000) + offset
    assert clocks.moments.now_ms() == expected
    assert clocks.moments.moment() == Moment(expected, utc_text(expected), local_text(expected), "Asia/Shanghai", offset)


@pytest.mark.parametrize(
    "offset, expected",
    [
        pytest.param(3_600_000, 0, id="a forged correction expires nothing"),
        pytest.param(-3_600_000, -3_600_000, id="a fast clock expires nothing before it is due"),
    ],
)
def test_s13_expiry_and_the_correction(clocks: Clocks, offset: int, expected: int) -> None:
    clocks.moments.correct(offset)
    assert clocks.moments.trusted_now_ms() == round(START * 1000) + expected


def test_a_correction_measured_across_a_jump_is_void(clocks: Clocks) -> None:
    jumps = clocks.moments.jumps
    clocks.wall += HOUR
    assert clocks.moments.correct(5, jumps=jumps) is False
    assert clocks.now == START
    assert clocks.moments.correct(-3_600_000, jumps=clocks.moments.jumps) is True
    assert clocks.now == START


def test_a_correction_ends_the_doubt_about_due_times_alone(clocks: Clocks) -> None:
    clocks.jumps(10 * HOUR)
    clocks.moments.correct(-2_000)
    assert clocks.now == START - 2, "not measured just now"
    clocks.moments.correct(-2_000, jumps=clocks.moments.jumps)
    assert clocks.now == START + 10 * HOUR - 2
    assert clocks.trusted is None
    clocks.passes(60)
    assert clocks.trusted == START + 10 * HOUR + 60 - 2


def test_a_correction_goes_with_the_clock_that_it_was_measured_against(clocks: Clocks) -> None:
    clocks.moments.correct(3_600_000, jumps=0)
    clocks.jumps(HOUR)  # somebody sets the clock right
    assert clocks.now == START + HOUR
    clocks.passes(60)
    assert clocks.moments.offset_ms == 0
    assert clocks.now == START + HOUR + 60


# --- clocks that jump


@pytest.mark.parametrize("jump", JUMPS)
def test_s13_a_jump_is_doubted_for_a_minute(clocks: Clocks, jump: float) -> None:
    clocks.passes(100)
    assert clocks.trusted == START + 100
    clocks.jumps(jump)
    assert clocks.moments.jumps == 1
    for second in range(60):
        assert clocks.trusted is None
        assert clocks.now == START + 100 + second + min(jump, 0), "the earlier of both"
        clocks.passes(1)
    assert clocks.trusted == clocks.now == START + 160 + jump
    assert clocks.moments.jumps == 1


@pytest.mark.parametrize("jump", JUMPS)
def test_s13_a_jump_that_is_taken_back(clocks: Clocks, jump: float) -> None:
    clocks.jumps(jump)
    clocks.passes(30)
    assert clocks.now == START + 30 + min(jump, 0)
    clocks.jumps(-jump)
    assert clocks.now == START + 30
    assert clocks.trusted is None
    clocks.passes(59)
    assert clocks.trusted is None
    clocks.passes(1)
    assert clocks.trusted == clocks.now == START + 90


def test_s13_a_jump_while_one_is_doubted(clocks: Clocks) -> None:
    clocks.jumps(HOUR)
    clocks.passes(50)
    clocks.jumps(HOUR)
    clocks.passes(59)
    assert clocks.trusted is None
    assert clocks.now == START + 109
    clocks.passes(1)
    assert clocks.trusted == START + 110 + 2 * HOUR


@pytest.mark.parametrize("asleep", [8 * HOUR, 90.0])
def test_s13_sleep_where_the_steady_clock_stands_still(clocks: Clocks, asleep: float) -> None:
    clocks.jumps(asleep)
    assert clocks.now == START
    assert clocks.trusted is None
    clocks.passes(60)
    assert clocks.now == clocks.trusted == START + asleep + 60


def test_s13_sleep_where_the_steady_clock_goes_on(clocks: Clocks) -> None:
    clocks.passes(8 * HOUR)
    assert clocks.now == clocks.trusted == START + 8 * HOUR


def test_s13_steps_that_are_too_small_to_be_jumps_add_up(clocks: Clocks) -> None:
    for _ in range(10):
        clocks.wall += 1.5
        clocks.passes(1)
    assert clocks.trusted is None
    assert clocks.now < START + 10 + 2 * 1.5 + 0.1


def test_a_clock_that_is_a_little_fast_is_no_jump(clocks: Clocks) -> None:
    for _ in range(1_000):
        clocks.wall += 0.03
        clocks.passes(60)
    assert clocks.moments.jumps == 0
    assert clocks.trusted == pytest.approx(START + 1_000 * 60.03)


ERROR = st.sampled_from([0.0, *JUMPS]) | st.floats(-11 * YEAR, 11 * YEAR).filter(lambda error: abs(abs(error) - 2) > 0.1)
"""What is just two seconds may be a jump or not."""
STEPS = st.lists(st.tuples(ERROR, st.floats(0, 59), st.floats(0, 4_000), st.integers(1, 5)), max_size=12)


@pytest.mark.parametrize("jump", JUMPS)
def test_s13_what_time_servers_have_confirmed_goes_on(clocks: Clocks, jump: float) -> None:
    clocks.moments.correct(500, jumps=0)
    clocks.jumps(jump)
    clocks.passes(59)
    assert clocks.now == START + 59.5
    clocks.passes(1)
    assert clocks.now == START + 60 + jump


@pytest.mark.parametrize("confirmed", [False, True])
@given(STEPS)
@example([(0.0, 0.0, 60.0, 1), (0.0, 0.0, 40.0, 1), (1.0, 20.0, 0.0, 1), (2.5, 0.0, 0.0, 1)])
def test_s13_no_passing_error_makes_time_jump(confirmed: bool, steps: list[tuple[float, float, float, int]]) -> None:
    """Whatever the wall clock says for less than a minute: nothing is early by it, and nothing is lost."""
    clocks = Clocks()
    if confirmed:
        clocks.moments.correct(0, jumps=0)
    true = START
    for error, wrong_for, right_for, looks in steps:
        clocks.jumps(error)
        for _ in range(looks):
            true += wrong_for / looks
            clocks.passes(wrong_for / looks)
            assert clocks.now == pytest.approx(true + (0 if confirmed else min(error, 0)), abs=2.01)
            assert clocks.trusted is None or clocks.trusted == pytest.approx(true, abs=2.01)
        clocks.jumps(-error)
        true += right_for
        clocks.passes(right_for, looks=looks)
        assert clocks.now == pytest.approx(true, abs=2.01)
        assert clocks.trusted is None or clocks.trusted == pytest.approx(true, abs=2.01)
    clocks.passes(60)
    assert clocks.trusted == pytest.approx(true + 60, abs=2.01)


@given(st.lists(st.tuples(ERROR, st.floats(60.01, 4_000)), max_size=8))
def test_s13_what_the_clock_says_for_a_minute_is_believed(steps: list[tuple[float, float]]) -> None:
    clocks = Clocks()
    for jump, steady_for in steps:
        clocks.jumps(jump)
        clocks.passes(steady_for)
        assert clocks.now == pytest.approx(clocks.wall, abs=2.01)
        assert clocks.trusted == pytest.approx(clocks.wall, abs=2.01)


def test_the_steady_clock_goes_on() -> None:
    first = steady_seconds()
    time.sleep(0.02)
    assert steady_seconds() - first > 0.015


@pytest.mark.parametrize(
    "platform, has_boottime, asked",
    [
        ("linux", True, "boottime"),
        ("linux", False, "monotonic"),
        ("darwin", True, "monotonic"),
        ("freebsd14", False, "monotonic"),
    ],
)
def test_which_clock_is_steady(monkeypatch: pytest.MonkeyPatch, platform: str, has_boottime: bool, asked: str) -> None:
    """One that goes on while the machine sleeps, where the system has it: macOS has it under the other's name."""
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(time, "CLOCK_MONOTONIC", "monotonic", raising=False)
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", "boottime", raising=False)
    if not has_boottime:
        monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    monkeypatch.setattr(time, "clock_gettime", {"boottime": 70.0, "monotonic": 7.0}.__getitem__, raising=False)
    assert steady_seconds() == {"boottime": 70.0, "monotonic": 7.0}[asked]


def test_a_moment_at_any_time() -> None:
    assert moment_at(UTC_MS, -5, "unknown", UTC) == Moment(
        UTC_MS, "2026-01-22T04:30:00.007Z", "2026-01-22 04:30:00.007 +00:00", "unknown", -5
    )
