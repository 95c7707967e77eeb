"""Key health: which error does what to which key, for how long, and how a key comes back."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.router.health import (
    DAY_S,
    ENTRIES,
    PROBE_S,
    Cooling,
    Fault,
    Health,
    Healthy,
    Tripped,
    fault_of,
    seconds_to_reset,
)
from routecodex.routing.router.registry import HealthSettings, Url
from routecodex.routing.values import Dialect, ProviderError, Target
from tests.routing.router.builders import error, provider, registry

A = Target("glm", "key1", "glm-4.7")
SAME_KEY = Target("glm", "key1", "glm-5")
OTHER_KEY = Target("glm", "key2", "glm-4.7")
MORNING = 8 * 3600.0
"""Wall time 08:00 on the first day."""


def fail(health: Health, status: int, now: float, target: Target = A, began: float | None = None, **changes: object) -> None:
    health.failed(target, error(status, **changes), now, wall=MORNING + now, began=began)


def rest(health: Health, now: float, target: Target = A) -> tuple[str, float]:
    """The condition's name and how long it lasts."""
    match health.state(target, now):
        case Cooling(until):
            return "cooling", until - now
        case Tripped(until, _):
            return "tripped", until - now
    return "healthy", 0.0


@pytest.mark.parametrize(
    "status, changes, condition, seconds",
    [
        pytest.param(429, {}, "cooling", 5, id="H01 rate limit"),
        pytest.param(429, {"retry_after_s": 17.5}, "cooling", 17.5, id="rate limit with a hint"),
        pytest.param(429, {"retry_after_s": 0.0}, "cooling", 5, id="hint of nothing"),
        pytest.param(429, {"retry_after_s": -3.0}, "cooling", 5, id="hint below nothing"),
        pytest.param(429, {"retry_after_s": math.nan}, "cooling", 5, id="hint is no number"),
        pytest.param(429, {"retry_after_s": math.inf}, "cooling", DAY_S, id="hint for ever"),
        pytest.param(429, {"retry_after_s": 1e9}, "cooling", DAY_S, id="hint beyond a day"),
        pytest.param(429, {"quota": True}, "tripped", 4 * 3600, id="quota until noon"),
        pytest.param(403, {"quota": True, "retry_after_s": 90.0}, "tripped", 90, id="quota with a hint"),
        pytest.param(400, {"quota": True}, "tripped", 4 * 3600, id="quota told as 400"),
        pytest.param(401, {}, "tripped", 600, id="H04 401"),
        pytest.param(403, {}, "tripped", 600, id="H04 403"),
        pytest.param(403, {"retry_after_s": 1.0}, "tripped", 600, id="H04 no hint shortens it"),
        pytest.param(400, {"code": "API_KEY_INVALID"}, "tripped", 600, id="H04 a bad key told as 400"),
        pytest.param(402, {}, "tripped", 4 * 3600, id="H10 until noon"),
        pytest.param(402, {"quota": True}, "tripped", 4 * 3600, id="H10 quota"),
        pytest.param(402, {"retry_after_s": 60.0}, "tripped", 60, id="H10 reset time"),
        pytest.param(500, {}, "cooling", 5, id="H05 500"),
        pytest.param(502, {}, "cooling", 5, id="H05 502"),
        pytest.param(529, {}, "cooling", 5, id="overloaded"),
        pytest.param(503, {"retry_after_s": 40.0}, "cooling", 40, id="5xx with a hint"),
        pytest.param(503, {"retry_after_s": 1.0}, "cooling", 5, id="5xx with a shorter hint"),
        pytest.param(200, {}, "cooling", 5, id="error inside a 200"),
        pytest.param(400, {}, "healthy", 0, id="H07 400"),
        pytest.param(404, {}, "healthy", 0, id="404"),
        pytest.param(408, {}, "healthy", 0, id="408"),
        pytest.param(409, {}, "healthy", 0, id="409"),
        pytest.param(413, {}, "healthy", 0, id="413"),
        pytest.param(422, {}, "healthy", 0, id="422"),
        pytest.param(425, {}, "healthy", 0, id="425"),
        pytest.param(502, {"network": True}, "healthy", 0, id="H11 network"),
        pytest.param(0, {}, "healthy", 0, id="H11 no status"),
    ],
)
def test_one_failure(status: int, changes: dict[str, object], condition: str, seconds: float) -> None:
    health = Health()
    fail(health, status, 0.0, **changes)
    assert rest(health, 0.0) == (condition, pytest.approx(seconds))
    if seconds:
        assert rest(health, seconds - 0.01)[0] == condition
        assert rest(health, seconds + 0.01)[0] == "healthy"


@pytest.mark.parametrize(
    "status, changes, same_key, whole_key",
    [
        (429, {}, "healthy", False),
        (429, {"quota": True}, "healthy", False),
        (500, {}, "healthy", False),
        (401, {}, "tripped", True),
        (402, {}, "tripped", True),
        (403, {}, "tripped", True),
    ],
)
def test_a_refused_credential_rests_with_all_its_models(
    status: int, changes: dict[str, object], same_key: str, whole_key: bool
) -> None:
    health = Health()
    fail(health, status, 0.0, **changes)
    assert rest(health, 1.0, SAME_KEY)[0] == same_key
    assert rest(health, 1.0, OTHER_KEY)[0] == "healthy"
    assert whole_key is (same_key == "tripped")


def climb(health: Health, status: int, times: int, start: float = 0.0) -> tuple[list[tuple[str, float]], float]:
    """Each failure comes when the rest before it is over."""
    now, seen = start, []
    for _ in range(times):
        health.begin(A, now)
        fail(health, status, now)
        seen.append(rest(health, now))
        now += seen[-1][1]
    return seen, now


def test_h01_the_ladder_of_rate_limits() -> None:
    health = Health()
    assert [seconds for _, seconds in climb(health, 429, 6)[0]] == [5, 15, 30, 60, 60, 60]
    assert rest(health, 1.0, OTHER_KEY)[0] == "healthy"


def test_h01_also_when_all_come_at_once() -> None:
    health = Health()
    for expected in (5, 15, 30, 60):
        fail(health, 429, 0.0)
        assert rest(health, 0.0) == ("cooling", expected)


def test_h03_success_leads_back_to_the_ladders_foot() -> None:
    health = Health()
    _, now = climb(health, 429, 4)
    health.succeeded(A, now)
    assert climb(health, 429, 2, now)[0] == [("cooling", 5), ("cooling", 15)]


def test_the_ladder_forgets_after_a_day() -> None:
    health = Health()
    _, now = climb(health, 429, 3)
    assert climb(health, 429, 1, now + DAY_S)[0] == [("cooling", 5)]


def test_h05_three_server_errors_in_a_row_trip() -> None:
    health = Health()
    seen, now = climb(health, 500, 4)
    assert seen == [("cooling", 5), ("cooling", 15), ("tripped", 300), ("tripped", 300)]
    health.succeeded(A, now)
    assert climb(health, 502, 2, now)[0] == [("cooling", 5), ("cooling", 15)]


def test_h05_a_success_between_breaks_the_row() -> None:
    health = Health()
    for now in range(0, 100, 20):
        fail(health, 500, now)
        assert rest(health, now) == ("cooling", 5)
        health.succeeded(A, now + 6.0)


@pytest.mark.parametrize("status, changes", [(502, {"network": True}), (400, {}), (404, {}), (408, {}), (425, {}), (429, {})])
def test_h17_ordinary_failures_never_trip(status: int, changes: dict[str, object]) -> None:
    health = Health()
    for now in range(10):
        fail(health, status, float(now), **changes)
        assert rest(health, float(now))[0] != "tripped"


def test_a7_a_client_that_leaves_changes_nothing() -> None:
    health = Health()
    for now in range(300):
        health.begin(A, float(now))
        health.released(A)
        assert rest(health, float(now)) == ("healthy", 0)


@pytest.mark.parametrize("provider", ["origin", "echo"])
def test_the_callers_own_credential_is_not_ours_to_rest(provider: str) -> None:
    health = Health()
    for status in (401, 402, 429, 500, 500, 500):
        fail(health, status, 0.0, Target(provider, "client", "m"))
    assert rest(health, 0.0, Target(provider, "client", "m"))[0] == "healthy"


def test_a_storm_is_one_failure() -> None:
    """Ten calls under way when the limit hits: the ladder climbs one step, not ten."""
    health = Health()
    for _ in range(10):
        fail(health, 429, 10.0, began=9.0)
    assert rest(health, 10.0) == ("cooling", 5)
    for _ in range(10):
        fail(health, 500, 20.0, OTHER_KEY, began=19.0)
    assert rest(health, 20.0, OTHER_KEY) == ("cooling", 5)


def test_an_answer_begun_before_the_rest_does_not_end_it() -> None:
    health = Health()
    fail(health, 401, 10.0)
    health.succeeded(A, 20.0, began=5.0)
    assert rest(health, 20.0)[0] == "tripped"
    health.succeeded(A, 20.0, began=15.0)
    assert rest(health, 20.0)[0] == "healthy"


def test_a_shorter_rest_never_cuts_a_longer_one() -> None:
    health = Health()
    fail(health, 429, 0.0, retry_after_s=100.0)
    fail(health, 429, 1.0, retry_after_s=2.0)
    assert rest(health, 1.0) == ("cooling", 99)
    fail(health, 429, 1.0, quota=True, retry_after_s=50.0)
    assert rest(health, 1.0) == ("tripped", 99)


# --- one probe --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status, seconds", [(429, 5.0), (500, 5.0), (401, 600.0)])
def test_r10_one_probe_after_a_rest(status: int, seconds: float) -> None:
    health = Health()
    fail(health, status, 0.0)
    over = seconds + 1
    assert rest(health, over)[0] == "healthy"
    health.begin(A, over)
    assert rest(health, over + 1) == ("cooling", PROBE_S - 1)
    health.succeeded(A, over + 2)
    assert rest(health, over + 2)[0] == "healthy"
    health.begin(A, over + 2)
    assert rest(health, over + 2)[0] == "healthy"


def test_a_failed_probe_starts_the_next_rest() -> None:
    health = Health()
    fail(health, 429, 0.0)
    health.begin(A, 6.0)
    fail(health, 429, 7.0)
    assert rest(health, 7.0) == ("cooling", 15)


@pytest.mark.parametrize("status, changes", [(400, {}), (502, {"network": True})])
def test_a_probe_that_tells_nothing_lets_the_next_one_through(status: int, changes: dict[str, object]) -> None:
    health = Health()
    fail(health, 429, 0.0)
    health.begin(A, 6.0)
    fail(health, status, 7.0, **changes)
    assert rest(health, 7.0)[0] == "healthy"
    health.begin(A, 7.0)
    health.released(A)
    assert rest(health, 7.0)[0] == "healthy"


def test_a_lost_probe_is_forgotten_after_a_minute() -> None:
    health = Health()
    fail(health, 429, 0.0)
    health.begin(A, 6.0)
    assert rest(health, 6.0 + PROBE_S - 0.1)[0] == "cooling"
    assert rest(health, 6.0 + PROBE_S)[0] == "healthy"


# --- clocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-1e9, -3600.0, -10.0, 0.0, 1e9])
@pytest.mark.parametrize("status", [401, 429, 500])
def test_a_clock_jump_freezes_nothing(status: int, jump: float) -> None:
    health = Health()
    fail(health, status, 1000.0)
    health.state(A, 1000.0 + jump)
    assert rest(health, 1000.0 + jump + 600.0)[0] == "healthy"
    health.begin(A, 1000.0 + jump + 600.0)
    health.state(A, 0.0)
    assert rest(health, PROBE_S + 601.0)[0] == "healthy"


@pytest.mark.parametrize(
    "at, hour, offset, seconds",
    [
        ("12:00", 8.0, 0.0, 4 * 3600),
        ("12:00", 12.0, 0.0, DAY_S),
        ("12:00", 13.0, 0.0, 23 * 3600),
        ("12:00", 3.0, 8 * 3600.0, 3600),
        ("12:00", 23.0, -5 * 3600.0, 18 * 3600),
        ("00:30", 0.0, 0.0, 1800),
        ("7", 6.0, 0.0, 3600),
        ("noon", 11.0, 0.0, 3600),
        ("", 11.0, 0.0, 3600),
        ("99:99", 0.0, 0.0, (99 * 60 + 99) * 60 % DAY_S),
    ],
)
def test_daily_reset(at: str, hour: float, offset: float, seconds: float) -> None:
    assert seconds_to_reset(at, 20_000 * DAY_S + hour * 3600, offset) == pytest.approx(seconds)


def test_h10_the_reset_is_local() -> None:
    health = Health(HealthSettings(quota_reset="09:00"))
    health.failed(A, error(402), 0.0, wall=0.0, utc_offset_s=8 * 3600.0)
    assert rest(health, 0.0) == ("tripped", 3600)


# --- what others know -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [(401,), (500, 500, 500)], ids=["of its key", "of its own"])
def test_a_longer_rest_is_no_leave_to_ask_sooner_than_was_told(others: tuple[int, ...]) -> None:
    health = Health()
    fail(health, 429, 0.0, retry_after_s=82.0)
    for status in others:
        fail(health, status, 1.0)
    condition = health.state(A, 81.5)
    assert isinstance(condition, Tripped)
    assert condition.told
    if others == (401,):
        later = health.state(A, 82.5)
        assert isinstance(later, Tripped)
        assert not later.told


def told(one: Health, other: Health, now: float, wall: float, *, then: float, wall_then: float) -> None:
    """All that one knows, through JSON, to another one on another machine."""
    for scope in list(one._records):
        said = json.loads(json.dumps(one.told(scope, now, wall)))
        other.learn(scope, said, then, wall_then)


def test_a_rest_holds_on_another_machine() -> None:
    health = Health()
    fail(health, 401, 100.0)
    climb(health, 429, 2, 100.0)
    fail(health, 429, 100.0, OTHER_KEY, retry_after_s=50.0)
    other = Health()
    told(health, other, 110.0, 1_000_000.0, then=3.0, wall_then=1_000_010.0)
    assert rest(other, 3.0, SAME_KEY) == ("tripped", pytest.approx(580))
    assert rest(other, 3.0, OTHER_KEY) == ("cooling", pytest.approx(30))
    fail(other, 429, 700.0)
    assert rest(other, 700.0) == ("cooling", 30)


def test_a_probe_elsewhere_keeps_others_out() -> None:
    health, other = Health(), Health()
    fail(health, 429, 0.0)
    health.begin(A, 100.0)
    told(health, other, 100.0, 5_000.0, then=7.0, wall_then=5_000.0)
    assert rest(other, 7.0)[0] == "cooling"
    health.succeeded(A, 101.0)
    other.learn((A.provider, A.key, A.model), health.told((A.provider, A.key, A.model), 101.0, 5_001.0), 8.0, 5_001.0)
    assert rest(other, 8.0)[0] == "healthy"


def test_another_machines_clock_freezes_nothing() -> None:
    health, other = Health(), Health()
    fail(health, 401, 0.0)
    told(health, other, 0.0, 2_000_000.0, then=0.0, wall_then=5.0)
    assert rest(other, 0.0, A) == ("tripped", pytest.approx(600))


def test_a_key_that_is_corrected_is_ready() -> None:
    """Whoever mistyped one is not kept waiting for the end of its rest; others are left as they are."""
    typo = provider("glm", ["key1", "key2"], ["glm-4.7"])
    health, said = Health(), []
    health.use(registry({}, typo))
    health.changed = said.append
    fail(health, 401, 0.0)
    fail(health, 429, 0.0, OTHER_KEY)
    said.clear()
    health.use(registry({}, typo))
    assert rest(health, 1.0)[0] == "tripped", "the file was saved as it was"
    health.use(registry({}, replace(typo, keys=(replace(typo.keys[0], value="another"), typo.keys[1]))))
    assert rest(health, 1.0)[0] == "healthy"
    assert rest(health, 1.0, OTHER_KEY)[0] == "cooling"
    assert said == [("glm", "key1", "")], "whoever shares the key hears of it"
    fail(health, 401, 1.0)
    health.use(registry({}, replace(typo, endpoints={Dialect.CHAT: Url("https", "glm.example", 443, "/v2")})))
    assert rest(health, 2.0)[0] == "healthy", "it is asked elsewhere"


def test_what_changes_is_said() -> None:
    health, said = Health(), []
    health.changed = said.append
    fail(health, 429, 0.0)
    health.begin(A, 1_000.0)
    health.released(A)
    health.begin(A, 1_000.0)
    health.succeeded(A, 1_001.0)
    assert said == [(A.provider, A.key, A.model)] * 5
    health.succeeded(A, 1_002.0)
    health.released(A)
    assert len(said) == 5, "nothing new"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["since", "length", "shut", "tripped", "told", "reason", "rateSteps", "ratedAt", "serverRow", "probe"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON), st.floats(0, 1e9), st.floats(0, 1e10))
def test_anything_may_be_told(said: dict[str, object], now: float, wall: float) -> None:
    health, scope = Health(), (A.provider, A.key, A.model)
    health.learn(scope, said, now, wall)
    assert rest(health, now)[1] <= DAY_S
    health.failed(A, ProviderError(429), now, wall=wall)
    json.dumps(health.told(scope, now, wall))
    assert rest(health, now)[1] <= DAY_S


def test_what_is_remembered_is_bounded() -> None:
    health = Health()
    for number in range(ENTRIES + 50):
        fail(health, 429, 0.0, Target("glm", "key1", f"m{number}"))
    assert len(health._records) == ENTRIES


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["fail", "succeed", "begin", "release"]),
        st.sampled_from([0, 200, 400, 401, 402, 403, 404, 408, 429, 500, 503, 529]),
        st.booleans(),
        st.none() | st.floats(),
        st.floats(-1e6, 1e6),
        st.sampled_from([A, SAME_KEY, OTHER_KEY]),
    ),
    max_size=25,
)


@given(STEPS)
def test_no_history_rests_a_key_longer_than_a_day(steps: list[tuple[str, int, bool, float | None, float, Target]]) -> None:
    health, now = Health(), 0.0
    for what, status, quota, hint, forward, target in steps:
        now += forward
        match what:
            case "fail":
                fail(health, status, now, target, quota=quota, retry_after_s=hint)
            case "succeed":
                health.succeeded(target, now)
                assert health.state(target, now) == Healthy()
            case "begin":
                health.begin(target, now)
            case "release":
                health.released(target)
        for one in (A, SAME_KEY, OTHER_KEY):
            assert 0 <= rest(health, now, one)[1] <= DAY_S + 1e-6


@pytest.mark.parametrize("status, fault", [(418, Fault.NOBODY), (302, Fault.NOBODY), (599, Fault.SERVER), (-1, Fault.SERVER)])
def test_odd_statuses(status: int, fault: Fault) -> None:
    assert fault_of(error(status)) is fault
