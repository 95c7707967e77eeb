"""Which answer of a time server is believed, what several agree on, and what is remembered of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.clock.offset import (
    LARGEST_MS,
    SOONEST_S,
    VERSION,
    Agreed,
    Answer,
    Asked,
    NtpState,
    Refusal,
    Sample,
    Verdict,
    agree,
    from_bytes,
    judge,
    pause_s,
    report,
    to_bytes,
)

MS = 1_000_000
HOUR_MS = 3_600_000
NOW_NS = 1_790_000_000_123_456_789
SECOND = 1 << 32
PEER = ("192.0.2.1", 123)


def stamp(wall_ns: int) -> int:
    """NTP's own way of writing a time."""
    return ((wall_ns + 2_208_988_800 * 10**9) * SECOND // 10**9) % (1 << 64)


def exchange(
    *, offset_ms: float = 0, out_ms: float = 10, held_ms: float = 1, back_ms: float = 10, at_ns: int = NOW_NS
) -> tuple[Asked, Answer]:
    """A question and its true answer; the server's clock is `offset_ms` ahead of ours."""
    received_ns = at_ns + round((out_ms + offset_ms) * MS)
    took_ns = round((out_ms + held_ms + back_ms) * MS)
    asked = Asked(PEER, 0x0123_4567_89AB_CDEF, at_ns, 5_000 * MS)
    answer = Answer(
        peer=PEER,
        leap=0,
        version=VERSION,
        mode=4,
        stratum=2,
        code=int.from_bytes(b"GPS\0", "big"),
        root_delay_s=0.02,
        root_dispersion_s=0.01,
        reference=stamp(received_ns - 60_000 * MS),
        originate=asked.stamp,
        receive=stamp(received_ns),
        transmit=stamp(received_ns + round(held_ms * MS)),
        wall_ns=at_ns + took_ns,
        steady_ns=asked.steady_ns + took_ns,
    )
    return asked, answer


# One answer

ASKED, TRUE = exchange()
CODES = {name: int.from_bytes(name.encode(), "big") for name in ("DENY", "RSTD", "RATE", "INIT", "EVIL")}

REFUSED: list[tuple[str, dict[str, Any], Refusal]] = [
    ("another address", {"peer": ("192.0.2.2", 123)}, Refusal.FOREIGN),
    ("another port", {"peer": ("192.0.2.1", 124)}, Refusal.FOREIGN),
    ("no originate", {"originate": 0}, Refusal.FOREIGN),
    ("one random bit is wrong", {"originate": ASKED.stamp ^ 1}, Refusal.FOREIGN),
    ("the time as originate", {"originate": stamp(ASKED.wall_ns)}, Refusal.FOREIGN),
    ("a question", {"mode": 3}, Refusal.NO_SERVER),
    ("broadcast", {"mode": 5}, Refusal.NO_SERVER),
    ("symmetric", {"mode": 2}, Refusal.NO_SERVER),
    ("an old version", {"version": 3}, Refusal.NO_SERVER),
    ("a later version", {"version": 5}, Refusal.NO_SERVER),
    ("kiss: deny", {"stratum": 0, "code": CODES["DENY"]}, Refusal.SENT_AWAY),
    ("kiss: restricted", {"stratum": 0, "code": CODES["RSTD"]}, Refusal.SENT_AWAY),
    ("kiss: rate", {"stratum": 0, "code": CODES["RATE"]}, Refusal.TOO_OFTEN),
    ("kiss: starting", {"stratum": 0, "code": CODES["INIT"]}, Refusal.UNSET),
    ("kiss: unheard of", {"stratum": 0, "code": CODES["EVIL"]}, Refusal.UNSET),
    ("stratum 16", {"stratum": 16}, Refusal.UNSET),
    ("stratum 255", {"stratum": 255}, Refusal.UNSET),
    ("alarm", {"leap": 3}, Refusal.UNSET),
    ("no transmit", {"transmit": 0}, Refusal.UNSET),
    ("no receive", {"receive": 0}, Refusal.UNSET),
    ("root delay of a second", {"root_delay_s": 1.0}, Refusal.UNSET),
    ("negative root delay, read without its sign", {"root_delay_s": 65535.5}, Refusal.UNSET),
    ("root dispersion of a second", {"root_dispersion_s": 1.0}, Refusal.UNSET),
    ("set after it was sent", {"reference": TRUE.transmit + SECOND}, Refusal.UNSET),
    ("our clock stepped on", {"wall_ns": TRUE.wall_ns + 51 * MS}, Refusal.JUMPED),
    ("our clock stepped back", {"wall_ns": TRUE.wall_ns - 51 * MS}, Refusal.JUMPED),
    ("our clock stepped by an hour", {"wall_ns": TRUE.wall_ns + HOUR_MS * MS}, Refusal.JUMPED),
    (
        "too slow",
        {"wall_ns": ASKED.wall_ns + 2001 * MS, "steady_ns": ASKED.steady_ns + 2001 * MS},
        Refusal.SLOW,
    ),
    ("steady time that runs back", {"wall_ns": ASKED.wall_ns - MS, "steady_ns": ASKED.steady_ns - MS}, Refusal.SLOW),
    ("sent before it was received", {"receive": TRUE.transmit + 1 * SECOND // 1000}, Refusal.IMPOSSIBLE),
    ("held for longer than we waited", {"receive": TRUE.receive - SECOND}, Refusal.IMPOSSIBLE),
    ("only the transmit is later", {"transmit": TRUE.transmit + SECOND}, Refusal.IMPOSSIBLE),
]


@pytest.mark.parametrize("change, refusal", [pytest.param(change, refusal, id=name) for name, change, refusal in REFUSED])
def test_what_is_refused(change: dict[str, Any], refusal: Refusal) -> None:
    assert judge(ASKED, replace(TRUE, **change)) is refusal


FAR = [HOUR_MS + 1, -HOUR_MS - 1, 86_400_000, -86_400_000, 31_557_600_000, -31_557_600_000, 2_000_000_000_000]


@pytest.mark.parametrize("offset_ms", FAR)
def test_more_than_an_hour_is_refused(offset_ms: int) -> None:
    assert judge(*exchange(offset_ms=offset_ms)) is Refusal.TOO_FAR


def test_every_refusal_is_tried() -> None:
    before_any_answer = {Refusal.UNKNOWN_NAME, Refusal.UNREACHABLE, Refusal.SILENT, Refusal.MALFORMED}
    assert {refusal for _, _, refusal in REFUSED} | {Refusal.TOO_FAR} | before_any_answer == set(Refusal)


BELIEVED: list[tuple[str, dict[str, Any]]] = [
    ("as it is", {}),
    ("a second is put in tonight", {"leap": 1}),
    ("a second is left out tonight", {"leap": 2}),
    ("stratum 1", {"stratum": 1}),
    ("stratum 15", {"stratum": 15}),
    ("it does not say since when it is set", {"reference": 0}),
    ("set just now", {"reference": TRUE.transmit}),
    ("answered within one tick", {"receive": TRUE.transmit}),
    ("root delay and dispersion just below", {"root_delay_s": 0.999, "root_dispersion_s": 0.999}),
    ("our clock is slewed", {"wall_ns": TRUE.wall_ns + 49 * MS}),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in BELIEVED])
def test_what_is_believed(change: dict[str, Any]) -> None:
    verdict = judge(ASKED, replace(TRUE, **change))
    assert isinstance(verdict, Sample)
    assert abs(verdict.offset_ms) <= 25
    assert verdict.peer == PEER


@pytest.mark.parametrize("offset_ms", [0, 1500, -1500, HOUR_MS, -HOUR_MS])
def test_the_offset_is_what_is_to_be_added(offset_ms: int) -> None:
    assert judge(*exchange(offset_ms=offset_ms)) == Sample(PEER, offset_ms, 21)


ERA_END_NS = ((1 << 32) - 2_208_988_800) * 10**9
"""2036-02-07: NTP's seconds begin again at 0."""


@pytest.mark.parametrize("at_ns", [ERA_END_NS - 5 * MS, ERA_END_NS - 15 * MS, ERA_END_NS + 15 * MS, ERA_END_NS - 1500 * MS])
@pytest.mark.parametrize("offset_ms", [0, 1500, -1500])
def test_the_end_of_ntps_era_is_a_day_like_any_other(at_ns: int, offset_ms: int) -> None:
    assert judge(*exchange(offset_ms=offset_ms, at_ns=at_ns)) == Sample(PEER, offset_ms, 21)


@given(
    st.integers(-HOUR_MS + 1000, HOUR_MS - 1000), st.floats(0, 900), st.floats(0, 150), st.floats(0, 900), st.integers(0, 1 << 62)
)
def test_it_errs_by_half_a_round_trip_at_most(offset_ms: int, out_ms: float, held_ms: float, back_ms: float, at: int) -> None:
    verdict = judge(*exchange(offset_ms=offset_ms, out_ms=out_ms, held_ms=held_ms, back_ms=back_ms, at_ns=NOW_NS + at // 8))
    assert isinstance(verdict, Sample)
    assert abs(verdict.offset_ms - offset_ms) <= (out_ms + back_ms) / 2 + 1


# Several servers


def said(number: int, offset_ms: int, round_trip_ms: int = 20) -> Sample:
    return Sample((f"192.0.2.{number}", 123), offset_ms, round_trip_ms)


AGREE: list[tuple[str, dict[str, Verdict], int, tuple[str, ...]]] = [
    ("the only one", {"a": said(1, 1234)}, 1234, ("a",)),
    ("two of two", {"a": said(1, 10), "b": said(2, 20)}, 15, ("a", "b")),
    ("just a second apart", {"a": said(1, 0), "b": said(2, 1000)}, 500, ("a", "b")),
    ("two of three, one silent", {"a": said(1, 10), "b": Refusal.SILENT, "c": said(3, 20)}, 15, ("a", "c")),
    ("two of three, one lies ahead", {"a": said(1, 10), "b": said(2, 900_000), "c": said(3, 20)}, 15, ("a", "c")),
    ("two of three, one lies behind", {"a": said(1, 10), "b": said(2, -900_000), "c": said(3, 20)}, 15, ("a", "c")),
    ("three of three", {"a": said(1, 10), "b": said(2, 900), "c": said(3, 20)}, 20, ("a", "c", "b")),
    ("two of five, three alone", {x: said(n, n * n * 5000 * (n > 1)) for n, x in enumerate("abcde")}, 0, ("a", "b")),
    ("in a chain", {"a": said(1, 0), "b": said(2, 900), "c": said(3, 1800)}, 450, ("a", "b")),
]


@pytest.mark.parametrize("verdicts, offset_ms, servers", [pytest.param(*row[1:], id=row[0]) for row in AGREE])
def test_who_agrees(verdicts: dict[str, Verdict], offset_ms: int, servers: tuple[str, ...]) -> None:
    assert agree(verdicts) == Agreed(offset_ms, 20, servers)


DISAGREE: list[tuple[str, dict[str, Verdict], str]] = [
    ("none", {}, "no time server is configured"),
    ("the only one is silent", {"a": Refusal.SILENT}, "no answer (1 of 1)"),
    (
        "all silent",
        {"a": Refusal.SILENT, "b": Refusal.SILENT, "c": Refusal.UNKNOWN_NAME},
        "no answer (2 of 3); the name is not found (1 of 3)",
    ),
    (
        "one of two",
        {"a": said(1, 0), "b": Refusal.TOO_FAR},
        "more than an hour away from this machine's clock (1 of 2); a time that no other server confirms",
    ),
    ("more than a second apart", {"a": said(1, 0), "b": said(2, 1001)}, "2 times that do not agree"),
    (
        "two against two",
        {"a": said(1, 0), "b": said(2, 10), "c": said(3, 60_000), "d": said(4, 60_010)},
        "4 servers answered, and do not agree",
    ),
    ("two names of one machine", {"a": said(1, 0), "b": said(1, 5)}, "a time that no other server confirms"),
    (
        "two names of one machine, and another",
        {"a": said(1, 9000), "b": said(1, 9005), "c": said(2, 0)},
        "2 times that do not agree",
    ),
]


@pytest.mark.parametrize("verdicts, why", [pytest.param(*row[1:], id=row[0]) for row in DISAGREE])
def test_who_does_not(verdicts: dict[str, Verdict], why: str) -> None:
    assert agree(verdicts) == why


@given(st.lists(st.integers(-HOUR_MS, HOUR_MS), min_size=2, max_size=7))
def test_what_they_agree_on_is_said_by_two_within_a_second(offsets: list[int]) -> None:
    outcome = agree({f"s{number}": said(number, value) for number, value in enumerate(offsets)})
    if isinstance(outcome, Agreed):
        near = [value for value in offsets if abs(value - outcome.offset_ms) <= 1000]
        assert len(near) >= len(outcome.servers) >= 2


# What is known

NOW_MS = NOW_NS // MS
STALE_MS = 21_600_000
SYNCED = NtpState().measured(Agreed(250, 21, ("a", "b")), NOW_MS)


@pytest.mark.parametrize(
    "state, later_ms, status",
    [
        pytest.param(NtpState(), 0, "stale", id="never asked"),
        pytest.param(SYNCED, 0, "synced", id="just now"),
        pytest.param(SYNCED, STALE_MS, "synced", id="still"),
        pytest.param(SYNCED, STALE_MS + 1, "stale", id="old"),
        pytest.param(SYNCED, -1, "stale", id="the clock was set back"),
        pytest.param(SYNCED.doubted(), 0, "stale", id="the clock jumped"),
        pytest.param(SYNCED.failed("no answer"), 0, "error", id="C32 failed"),
        pytest.param(NtpState().failed("no answer"), 0, "error", id="C32 failed at once"),
        pytest.param(SYNCED.failed("no answer").measured(Agreed(1, 2, ("a",)), NOW_MS), 0, "synced", id="works again"),
        pytest.param(from_bytes(to_bytes(report(SYNCED, "synced", 250)), NOW_MS), 0, "stale", id="after a restart"),
    ],
)
def test_status(state: NtpState, later_ms: int, status: str) -> None:
    assert state.status(NOW_MS + later_ms, STALE_MS) == status


def test_a_failure_changes_only_what_it_says() -> None:
    assert replace(SYNCED.failed("no answer"), last_error="") == SYNCED


def test_what_is_told_and_written() -> None:
    told = {"status": "synced", "offsetMs": 250, "updatedAtMs": NOW_MS, "servers": 2, "rttMs": 21}
    assert report(SYNCED, "synced", 250) == told
    assert json.loads(to_bytes(told)) == {"version": 1, **told}
    failed = SYNCED.doubted().failed("no answer (1 of 1)")
    assert report(failed, "error", 250) == {
        "status": "error",
        "offsetMs": 250,
        "updatedAtMs": NOW_MS,
        "lastError": "no answer (1 of 1)",
    }
    assert report(failed, "disabled", 0) == {"status": "disabled", "offsetMs": 0, "updatedAtMs": NOW_MS}


def test_a_single_server_is_said_to_be_one() -> None:
    state = NtpState().measured(Agreed(250, 21, ("a",)), NOW_MS)
    assert report(state, "synced", 250)["note"] == "one server only, confirmed by no other"


@pytest.mark.parametrize(
    "raw, offset_ms",
    [
        (b'{"version":1,"status":"synced","offsetMs":250,"updatedAtMs":5}', 250),
        (b'{"offsetMs":-250.4}', -250),
        (b'{"version":9,"offsetMs":1,"more":[{}]}', 1),
        (b'{"offsetMs":3600000}', LARGEST_MS),
        (b'{"offsetMs":3600001}', 0),
        (b'{"offsetMs":-1e300}', 0),
        (b'{"offsetMs":1' + b"0" * 5000 + b"}", 0),
        (b'{"offsetMs":true}', 0),
        (b'{"offsetMs":"250"}', 0),
        (b'{"offsetMs":null}', 0),
        (b'{"offsetMs":NaN}', 0),
        (b'{"offsetMs":250,"updatedAtMs":9999999999999}', 0),
        (b'{"offsetMs":250,"updatedAtMs":"x","lastError":7}', 250),
        (b"{}", 0),
        (b"[]", 0),
        (b"", 0),
        (b'{"offsetMs":250', 0),
        (b"\xff\x00", 0),
        (b"[" * 100_000, 0),
    ],
)
def test_reading_is_tolerant(raw: bytes, offset_ms: int) -> None:
    state = from_bytes(raw, NOW_MS)
    assert state.offset_ms == offset_ms
    assert state.agreed is None
    assert state.last_error == ""


@given(st.binary(max_size=200) | st.integers(0, 60).map(lambda cut: to_bytes(report(SYNCED, "synced", 250))[:cut]))
def test_any_file_is_read(raw: bytes) -> None:
    assert abs(from_bytes(raw, NOW_MS).offset_ms) <= LARGEST_MS


# How long until they are asked again


@pytest.mark.parametrize(
    "stale_after_ms, failures, jitter, seconds",
    [
        (STALE_MS, 0, 0.0, 19_440),
        (STALE_MS, 0, 1.0, 21_600),
        (STALE_MS, 1, 0.0, 60),
        (STALE_MS, 1, 1.0, 75),
        (STALE_MS, 2, 0.0, 120),
        (STALE_MS, 5, 0.0, 960),
        (STALE_MS, 99_999, 0.0, 21_600),
        (1, 0, 0.0, SOONEST_S),
        (1, 7, 1.0, SOONEST_S),
    ],
)
def test_pause(stale_after_ms: int, failures: int, jitter: float, seconds: float) -> None:
    assert pause_s(stale_after_ms, failures, jitter) == pytest.approx(seconds)
