"""Repeated attempts under trouble: not too many, not too early, not to a key that asked for rest, not after the first byte.

The whole rule runs here as it does in a turn (choose, begin, after, health), against providers that fail on purpose.
"""

from __future__ import annotations

import itertools
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.dialects.failures import read_failure
from routecodex.routing.errors import NoTarget
from routecodex.routing.router.attempts import Attempts, GiveUp, RetryBudget, TryNext, WaitThenSame
from routecodex.routing.router.balance import Rotation
from routecodex.routing.router.choose import choose
from routecodex.routing.router.health import Cooling, Health, Healthy
from routecodex.routing.router.registry import Registry
from routecodex.routing.values import ProviderError, Target
from tests.conftest import LONG
from tests.routing.router.builders import CLAUDE, GLM_47, GPT_4, error, pool, provider, registry, targets, wish
from tests.sheet import seen

CALLS = 10_000 if LONG else 1_000


@dataclass(slots=True)
class Server:
    """What the turns of one server share."""

    registry: Registry
    answer: Callable[[Target, float], ProviderError | None]
    """What a provider says to an attempt at that time; None: a good answer."""
    health: Health = field(default_factory=Health)
    rotation: Rotation = field(default_factory=Rotation)
    budget: RetryBudget = field(default_factory=RetryBudget)
    sent: list[tuple[Target, float]] = field(default_factory=list)

    def turn(self, now: float) -> ProviderError | Target | None:
        """One call, its attempts one after another: who answered, or the error for the client; None: refused at once."""
        attempts = Attempts(6, self.budget)
        one, first = wish(), None
        try:
            while True:
                try:
                    decision = choose(one, self.registry, self.health, self.rotation, now)
                except NoTarget:
                    return first
                target = decision.target
                while True:
                    self.health.begin(target, now)
                    self.sent.append((target, now))
                    failure = self.answer(target, now)
                    if failure is None:
                        self.health.succeeded(target, now, began=now)
                        attempts.settled()
                        return target
                    self.health.failed(target, failure, now, wall=now, began=now)
                    first = first or failure
                    step = attempts.after(target, failure, sole=decision.sole)
                    if isinstance(step, WaitThenSame):
                        now += step.seconds
                    while not isinstance(step, GiveUp) and (wait := attempts.place(now)):
                        now += wait
                    if not isinstance(step, WaitThenSame):
                        break
                if isinstance(step, GiveUp) or wait is None:
                    return first
                one = replace(one, excluded=attempts.excluded)
        finally:
            attempts.done()


def always(status: int, **changes: object) -> Callable[[Target, float], ProviderError | None]:
    return lambda target, now: error(status, **changes)


THREE_KEYS = registry({"default": [pool(*GPT_4)]})


# --- one call ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 402, 403, 408, 425, 429, 500, 502, 503, 504, 529])
def test_h05_another_key_answers_and_the_client_never_knows(status: int) -> None:
    server = Server(THREE_KEYS, lambda target, now: error(status) if target == GPT_4[0] else None)
    assert server.turn(0.0) == GPT_4[1]
    assert [target for target, _ in server.sent] == [GPT_4[0], GPT_4[1]]


@pytest.mark.parametrize("status", [401, 429, 500])
def test_next_key_then_next_provider(status: int) -> None:
    found = registry({"default": [pool(*GPT_4, id="first", priority=2), pool(GLM_47, id="second")]})
    server = Server(found, lambda target, now: error(status) if target.provider == "openai" else None)
    assert server.turn(0.0) == GLM_47
    assert [target for target, _ in server.sent] == [*GPT_4, GLM_47]


def test_h06_all_fail_and_the_first_error_is_told() -> None:
    server = Server(THREE_KEYS, lambda target, now: error(500 + GPT_4.index(target) * 2))
    assert server.turn(0.0) == error(500)
    assert [target for target, _ in server.sent] == [*GPT_4]


def test_h07_a_bad_request_is_sent_once() -> None:
    server = Server(THREE_KEYS, always(400))
    assert server.turn(0.0) == error(400)
    assert len(server.sent) == 1
    assert server.health.state(server.sent[0][0], 0.0) == Healthy()


def test_h15_ten_failing_keys_are_six_attempts() -> None:
    many = provider("many", [f"k{number}" for number in range(10)], ["m"])
    server = Server(registry({"default": [pool(*targets(many, "m"))]}, many), always(500))
    assert server.turn(0.0) == error(500)
    assert len({target for target, _ in server.sent}) == len(server.sent) == 6


def test_a_short_limit_is_waited_for_at_the_same_key() -> None:
    server = Server(THREE_KEYS, lambda target, now: error(429, retry_after_s=2.0) if now < 2 else None)
    assert server.turn(0.0) == GPT_4[0]
    assert server.sent == [(GPT_4[0], 0.0), (GPT_4[0], 2.0)]


def test_a_spent_quota_switches_keys_at_once() -> None:
    server = Server(THREE_KEYS, lambda target, now: error(429, quota=True, retry_after_s=2.0) if target == GPT_4[0] else None)
    assert server.turn(0.0) == GPT_4[1]
    assert server.sent == [(GPT_4[0], 0.0), (GPT_4[1], 0.0)]
    assert {server.turn(1.0) for _ in range(6)} == {GPT_4[1], GPT_4[2]}


# --- many calls -------------------------------------------------------------------------------------------------------


def test_a1_repeated_calls_stay_within_the_budget() -> None:
    """Calls come, fail and go at random; at no moment are more than a fifth of those in flight (or three) being repeated."""
    chance = random.Random(7)
    budget = RetryBudget()
    flying: list[Attempts] = []
    most = 0
    for _ in range(CALLS):
        flying.append(Attempts(6, budget))
        for one in chance.sample(flying, k=min(len(flying), 3)):
            match chance.choice(["fail", "fail", "answer", "end"]):
                case "fail":
                    before = budget.retrying
                    step = one.after(CLAUDE, error(503))
                    one.place(0.0)
                    if budget.retrying > before:
                        assert budget.retrying <= max(3, len(flying) * 0.2)
                    if not isinstance(step, TryNext):
                        one.done()
                        flying.remove(one)
                case "answer":
                    one.settled()
                case "end":
                    one.done()
                    flying.remove(one)
        assert budget.calls == len(flying)
        most = max(most, budget.retrying)
    for one in flying:
        one.done()
    assert (budget.calls, budget.retrying) == (0, 0)
    assert most >= 3
    seen("A1", f"{CALLS:,} calls, at most {most} repeated at once, never more than a fifth of those in flight (or three)")


def test_r10_a_storm_of_429() -> None:
    """100 clients ask once a second; for 60 s all three keys answer 429 with `Retry-After: 6`."""
    storm, clients, pause = 60.0, 100, 6.0
    server = Server(THREE_KEYS, lambda target, now: error(429, retry_after_s=pause) if now < storm else None)
    outcomes: list[tuple[float, object]] = []
    requests = 0
    for tick in range(80 * clients):
        now = tick / clients
        requests += now < storm
        outcomes.append((now, server.turn(now)))
    during = [(target, now) for target, now in server.sent if now < storm]
    assert len(during) <= 1.2 * requests
    for key in GPT_4:
        times = [now for target, now in during if target == key]
        assert all(later - earlier >= pause for earlier, later in itertools.pairwise(times)), (
            "A9: a key was asked before its time"
        )
        assert len(times) <= storm / pause + 1
    first_good = next(now for now, outcome in outcomes if isinstance(outcome, Target))
    assert first_good - storm <= pause
    assert all(isinstance(outcome, Target) for now, outcome in outcomes if now > storm + pause)
    shares = Counter(target for target, now in server.sent if now > storm + pause + 1)
    assert max(shares.values()) - min(shares.values()) <= 1
    each, back = len(during) / requests, first_good - storm
    seen("R10", f"{each:.3f} attempts a call, {len(times)} of a key in {storm:.0f} s, back after {back:.1f} s")


@given(st.lists(st.tuples(st.floats(0, 30), st.sampled_from([None, 429, 500, 401]), st.none() | st.floats(6, 300)), max_size=30))
def test_a9_no_key_is_asked_before_its_time(script: list[tuple[float, int | None, float | None]]) -> None:
    """With somewhere else to go, a key that asked for rest is left alone until it is over."""
    now = 0.0
    answers = iter(script)
    due: dict[Target, float] = {}

    def answer(target: Target, at: float) -> ProviderError | None:
        assert at >= due.get(target, 0.0) - 1e-6
        _, status, pause = next(answers, (0, None, None))
        if status is None:
            return None
        if status == 429 and pause is not None:
            due[target] = at + pause
        return error(status, retry_after_s=pause)

    server = Server(registry({"default": [pool(*GPT_4, GLM_47, CLAUDE)]}), answer)
    for step, _, _ in script:
        now = max(now + step, server.sent[-1][1] if server.sent else 0.0)  # a call that waits takes its time
        server.turn(now)


def test_one_probe_while_many_wait() -> None:
    health, now = Health(), 10.0
    health.failed(GPT_4[0], error(429), 0.0, wall=0.0)
    let_through = 0
    for _ in range(100):
        if health.state(GPT_4[0], now) == Healthy():
            let_through += 1
            health.begin(GPT_4[0], now)
    assert let_through == 1
    assert isinstance(health.state(GPT_4[0], now), Cooling)


# --- A8: what providers write into Retry-After ------------------------------------------------------------------------

VALUES = (
    st.text()
    | st.from_regex(r"-?[0-9.]{0,40}(e[0-9]{1,5})?", fullmatch=True)
    | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,12} [A-Z][a-z]{2} [0-9]{1,12} [0-9:]{0,12} ?[A-Z+-]{0,4}[0-9]{0,8}", fullmatch=True)
    | st.from_regex(r"[0-9]{1,6}-[0-9]{1,3}-[0-9]{1,3}T[0-9:.]{0,20}[Z+-]?[0-9:]{0,8}", fullmatch=True)
    | st.from_regex(r"([0-9]{1,12}(\.[0-9]{1,12})?(ms|h|m|s|d)){0,4}", fullmatch=True)
)
NAMES = st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens", "a-ratelimit-b-reset"])


WRITTEN = 100_000 if LONG else 500


def value_by_chance(chance: random.Random) -> str:
    """Of the pieces that such values are made of."""
    pieces = re.findall(
        r"\S+", "0 1 9 12 59 60 2026 99999999999 . , : - + e E ms h m s d T Z GMT Mon Zun 29 Sep Feb inf nan é % 1e308"
    )
    return "".join(chance.choice((*pieces, " ", "\t")) for _ in range(chance.randrange(12)))


def test_a8_a_hundred_thousand_values_by_chance() -> None:
    seed = time.time_ns()
    chance, waits = random.Random(seed), 0
    names = ("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens", "a-ratelimit-b-reset")
    for _ in range(WRITTEN):
        headers = {name: value_by_chance(chance) for name in chance.sample(names, 2)}
        spent = {name.replace("reset", "remaining"): "0" for name in headers if "reset" in name}
        seconds = read_failure(429, {**headers, **spent}, b"", now=chance.choice((0.0, 1e9, 1.8e9, 1e10))).retry_after_s
        assert seconds is None or 0 <= seconds <= 86_400, (seed, headers)
        waits += seconds is not None
    seen("A8", f"{WRITTEN:,} values by chance: {waits:,} a wait within a day, all others none")


@settings(max_examples=5_000 if LONG else 400)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=2), st.floats(0, 1e10))
def test_a8_any_value_is_a_wait_within_a_day_or_none(headers: dict[str, str], now: float) -> None:
    spent = {name.replace("reset", "remaining"): "0" for name in headers if "reset" in name}
    seconds = read_failure(429, {**headers, **spent}, b"", now=now).retry_after_s
    assert seconds is None or 0 <= seconds <= 86_400
