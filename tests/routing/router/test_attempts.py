"""The failover rule, the retry budget, and how long a provider asks to wait."""

from __future__ import annotations

import pytest

from routecodex.routing.dialects.failures import read_failure
from routecodex.routing.router.attempts import (
    PATIENCE_S,
    Attempts,
    GiveUp,
    RetryBudget,
    TryNext,
    WaitThenSame,
    retryable,
)
from routecodex.routing.values import Target
from tests.routing.router.builders import error

A = Target("openai", "primary", "gpt-4")
B = Target("openai", "backup", "gpt-4")
NOW = 1_700_000_000.0


def attempts(most: int = 6, budget: RetryBudget | None = None) -> Attempts:
    return Attempts(most, budget or RetryBudget())


@pytest.mark.parametrize(
    "status, changes, again",
    [
        *[pytest.param(status, {}, True, id=str(status)) for status in (401, 402, 403, 408, 425, 429, 500, 502, 503, 504, 529)],
        *[pytest.param(status, {}, False, id=str(status)) for status in (300, 400, 404, 405, 409, 410, 413, 415, 422, 451, 501)],
        pytest.param(200, {}, True, id="error inside a 200"),
        pytest.param(502, {"network": True}, True, id="refused or dropped"),
        pytest.param(0, {"network": True}, True, id="no answer"),
        pytest.param(400, {"quota": True}, True, id="spent quota told as 400"),
        pytest.param(400, {"code": "API_KEY_INVALID"}, True, id="bad key told as 400"),
    ],
)
def test_what_is_repeated(status: int, changes: dict[str, object], again: bool) -> None:
    failed = error(status, **changes)
    assert retryable(failed) is again
    assert attempts().after(A, failed) == (TryNext() if again else GiveUp())


def test_as_many_attempts_as_allowed() -> None:
    one = attempts(2)
    assert one.after(A, error(503)) == TryNext()
    assert one.after(B, error(500)) == GiveUp()


def test_v19_excluded_targets_add_up() -> None:
    one = attempts()
    one.after(A, error(500))
    assert (one.after(B, error(500)), one.excluded) == (TryNext(), {A, B})


def test_h15_stops_after_six() -> None:
    one = attempts()
    keys = [Target("p", f"key{number}", "m") for number in range(6)]
    steps = [one.after(key, error(500)) for key in keys]
    assert [type(step) for step in steps] == [TryNext] * 5 + [GiveUp]
    assert one.made == 6


@pytest.mark.parametrize(
    "changes, sole, ready, wait",
    [
        pytest.param({"retry_after_s": 2.0}, False, None, 2.0, id="a short limit is waited for"),
        pytest.param({"retry_after_s": 5.0}, False, None, 5.0, id="just short enough"),
        pytest.param({"retry_after_s": 5.1}, False, None, None, id="too long"),
        pytest.param({"retry_after_s": 2.0, "quota": True}, False, None, None, id="a spent quota is not"),
        pytest.param({}, False, 5.0, None, id="not said how long, others there"),
        pytest.param({}, True, 5.0, 5.0, id="not said how long, nobody else"),
        pytest.param({}, True, 15.0, None, id="nobody else, but long"),
        pytest.param({"retry_after_s": -1.0}, True, None, None, id="nonsense"),
        pytest.param({"retry_after_s": float("nan")}, True, None, None, id="no number"),
    ],
)
def test_two_kinds_of_429(changes: dict[str, object], sole: bool, ready: float | None, wait: float | None) -> None:
    one = attempts()
    step = one.after(A, error(429, **changes), sole=sole, ready_in_s=ready)
    assert step == (TryNext() if wait is None else WaitThenSame(wait))


def test_the_same_key_is_waited_for_once() -> None:
    one = attempts()
    limit = error(429, retry_after_s=1.0)
    assert one.after(A, limit) == WaitThenSame(1.0)
    assert one.after(A, limit) == TryNext()
    assert one.after(B, limit) == WaitThenSame(1.0)


@pytest.mark.parametrize("status, changes", [(500, {}), (503, {}), (529, {}), (408, {}), (502, {"network": True})])
def test_without_a_stand_in_the_same_target_is_asked_again(status: int, changes: dict[str, object]) -> None:
    one = attempts()
    failed = error(status, **changes)
    steps = [one.after(A, failed, sole=True) for _ in range(3)]
    assert steps == [WaitThenSame(0.5), WaitThenSame(2.0), TryNext()]


def test_without_a_stand_in_a_refused_key_is_not_asked_again() -> None:
    for status in (401, 402, 403):
        step = attempts().after(A, error(status), sole=True)
        assert step == TryNext()


# --- the budget -------------------------------------------------------------------------------------------------------


def test_budget_of_calls_repeated_at_once() -> None:
    budget = RetryBudget()
    calls = [failing(budget) for _ in range(10)]
    assert [one.place(10.0) for one in calls] == [0.0] * 3 + [0.1] * 7
    calls[0].settled()
    assert [one.place(11.0) for one in calls[3:5]] == [0.0, 0.1]


def failing(budget: RetryBudget) -> Attempts:
    one = attempts(budget=budget)
    assert isinstance(one.after(A, error(503)), TryNext)
    return one


def test_nobody_waits_for_a_place_for_long() -> None:
    budget = RetryBudget(floor=0)
    one = failing(budget)
    assert [one.place(now) for now in (10.0, 9.9 + PATIENCE_S, 10.0 + PATIENCE_S)] == [0.1, 0.1, None]
    assert budget.retrying == 0


def test_a_first_attempt_needs_no_place() -> None:
    assert attempts(budget=RetryBudget(floor=0)).place(0.0) == 0.0


def test_budget_grows_with_the_calls_in_flight() -> None:
    budget = RetryBudget()
    calls = [failing(budget) for _ in range(100)]
    assert sum(one.place(0.0) == 0.0 for one in calls) == 20


@pytest.mark.parametrize("of_other, by_other, given", [(0, 0, 3), (20, 0, 4), (20, 2, 2), (20, 4, 0)])
def test_what_another_process_says_counts_as_well(of_other: int, by_other: int, given: int) -> None:
    """Of the two together a fifth may repeat at once."""
    budget = RetryBudget(others={"another": (of_other, by_other)})
    calls = [failing(budget) for _ in range(4)]
    assert sum(one.place(0.0) == 0.0 for one in calls) == given


def test_a_call_that_repeats_keeps_its_place() -> None:
    budget = RetryBudget(floor=1)
    one = attempts(budget=budget)
    for key in (A, B):
        assert isinstance(one.after(key, error(503)), TryNext)
        assert one.place(0.0) == 0.0
    assert budget.retrying == 1


def test_every_place_is_given_back_once() -> None:
    budget = RetryBudget()
    one = attempts(budget=budget)
    one.after(A, error(503))
    one.place(0.0)
    for _ in range(2):
        one.done()
    assert (budget.calls, budget.retrying) == (0, 0)


# --- how long to wait -------------------------------------------------------------------------------------------------


def waits(headers: dict[str, str]) -> float | None:
    return read_failure(429, headers, b"", now=NOW).retry_after_s


@pytest.mark.parametrize(
    "value, seconds",
    [
        ("20", 20.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("3600", 3600.0),
        ("99999999999999", 86400.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:50 -0000", 30.0),
        ("14 Nov 2023 22:13:50", 30.0),
        ("2023-11-14T22:13:50Z", 30.0),
        ("2023-11-14T22:13:50.500+00:00", 30.5),
        ("Wed, 29 Sep 1999 23:26:57 GMT", 0.0),
        ("Wed, 29 Sep 9999 23:26:57 GMT", 86400.0),
        ("inf", None),
        ("-inf", None),
        ("Infinity", None),
        ("nan", None),
        ("-10", None),
        ("-0.5", None),
        ("1e3", None),
        ("1_000", None),
        ("0x10", None),
        ("", None),
        ("   ", None),
        ("soon", None),
        ("Zun, 29 Sep 2000 23:26:27 GMT", 0.0),
        ("Wed, 99 Zep 2000 23:26:27 GMT", None),
        ("١٢", None),
        ("5 seconds", 5.0),
        ("1m30s", 90.0),
        ("86401", 86400.0),
        ("9" * 400, None),
        ("-9999999999", None),
        ("\x00", None),
    ],
)
def test_a8_retry_after(value: str, seconds: float | None) -> None:
    assert waits({"retry-after": value}) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360.0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "3"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "20ms",
                "x-ratelimit-remaining-tokens": "0",
            },
            1.0,
        ),
        ({"x-ratelimit-reset": str(int(NOW) + 40), "x-ratelimit-remaining": "0"}, 40.0),
        ({"x-ratelimit-reset": str((int(NOW) + 40) * 1000), "x-ratelimit-remaining": "0"}, 40.0),
        ({"x-ratelimit-reset": "40", "x-ratelimit-remaining": "0"}, 40.0),
        (
            {
                "anthropic-ratelimit-tokens-reset": "2023-11-14T22:14:20Z",
                "anthropic-ratelimit-tokens-remaining": "0",
            },
            60.0,
        ),
        ({"x-ratelimit-reset-tokens": "6m0", "x-ratelimit-remaining-tokens": "0"}, 360.0),
        ({"x-ratelimit-reset-tokens": "-6m", "x-ratelimit-remaining-tokens": "0"}, None),
        ({"x-ratelimit-reset-tokens": "999999999h", "x-ratelimit-remaining-tokens": "0"}, 86400.0),
        ({"retry-after": "2", "x-ratelimit-reset-tokens": "50s", "x-ratelimit-remaining-tokens": "0"}, 2.0),
    ],
)
def test_where_the_wait_is_said(headers: dict[str, str], seconds: float | None) -> None:
    assert waits(headers) == (None if seconds is None else pytest.approx(seconds, abs=0.01))
