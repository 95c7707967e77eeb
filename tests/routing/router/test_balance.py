"""Taking turns among models and keys."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.router.balance import WHEELS, Mode, Rotation, balance
from routecodex.routing.values import Target
from tests.routing.router.builders import CLAUDE, GLM_47, GPT_4

A, B = Target("p", "a", "m"), Target("p", "b", "m")
C = Target("q", "c", "n")


def picks(
    candidates: list[Target], times: int, mode: Mode = "round-robin", weights: dict[str, float] | None = None
) -> list[Target]:
    rotation = Rotation()
    return [balance(candidates, rotation, "pool", mode=mode, weights=weights) for _ in range(times)]


def test_three_keys_get_no_larger_share() -> None:
    counted = Counter(target.provider for target in picks([GLM_47, *GPT_4, CLAUDE], 300))
    assert counted == {"glm": 100, "openai": 100, "anthropic": 100}
    assert Counter(picks([GLM_47, *GPT_4], 60))[GPT_4[0]] == 10


def test_keys_of_one_model_alternate() -> None:
    assert picks([A, B], 5) == [A, B, A, B, A]


@pytest.mark.parametrize(
    "candidates, expected",
    [
        pytest.param([A, B, C], [A, B, A, B], id="V02 the first group, its keys in turn"),
        pytest.param([B, C], [B, B, B, B], id="V02 one healthy key, every time"),
        pytest.param([C], [C, C, C, C], id="V02 the second group when the first is down"),
    ],
)
def test_v02_priority(candidates: list[Target], expected: list[Target]) -> None:
    assert picks(candidates, 4, "priority") == expected


def test_v02_a_key_that_comes_back_is_not_owed_anything() -> None:
    rotation = Rotation()
    for _ in range(10):
        assert balance([B], rotation, "pool") == B
    assert [balance([A, B], rotation, "pool") for _ in range(4)] == [A, B, A, B]


def test_sticky_stays_until_it_cannot() -> None:
    rotation = Rotation()
    first = [balance([A, B, C], rotation, "pool", mode="sticky") for _ in range(3)]
    assert len(set(first)) == 1
    rest = [target for target in (A, B, C) if target != first[0]]
    then = [balance(rest, rotation, "pool", mode="sticky") for _ in range(3)]
    assert len(set(then)) == 1
    assert then[0] != first[0]


def test_v04_a_pools_own_round_robin_rotates_though_another_pool_is_sticky() -> None:
    rotation = Rotation()
    balance([A, B], rotation, "sticky one", mode="sticky")
    assert [balance([A, B], rotation, "pool", mode="round-robin") for _ in range(2)] == [A, B]


@pytest.mark.parametrize(
    "weights, shares",
    [
        pytest.param({"p": 3}, {"p": 75, "q": 25}, id="provider"),
        pytest.param({"p.m": 3, "p": 100}, {"p": 75, "q": 25}, id="model before provider"),
        pytest.param({"p": 0}, {"q": 100}, id="0 is never"),
        pytest.param({"p": 0, "q": 0}, {"p": 50, "q": 50}, id="0 for all is nothing said"),
        pytest.param({"p": math.nan, "q": -1}, {"p": 50, "q": 50}, id="nonsense counts as 1"),
        pytest.param({"p": math.inf}, {"p": 50, "q": 50}, id="no end counts as 1"),
    ],
)
def test_weights_of_groups(weights: dict[str, float], shares: dict[str, int]) -> None:
    assert Counter(target.provider for target in picks([A, B, C], 100, "weighted", weights)) == shares


def test_weights_of_keys() -> None:
    assert Counter(picks([A, B], 100, "weighted", {"p.a": 4})) == {A: 80, B: 20}
    assert picks([A, B], 5, "weighted", {"p.a": 4}) == [A, A, B, A, A]


def test_the_pinned_target_wins_and_takes_nobodys_turn() -> None:
    rotation = Rotation()
    assert balance([A, B], rotation, "pool") == A
    assert [balance([A, B], rotation, "pool", pinned=A) for _ in range(5)] == [A] * 5
    assert balance([A, B], rotation, "pool") == B
    assert balance([A, B], rotation, "pool", pinned=C) == A


def test_what_is_remembered_is_bounded() -> None:
    rotation = Rotation()
    for number in range(3000):
        balance([A, B, C], rotation, f"pool {number}", mode="sticky")
    assert len(rotation.wheels) <= WHEELS
    assert len(rotation.kept) <= WHEELS


@given(
    st.lists(st.builds(Target, st.sampled_from("pq"), st.sampled_from("ab"), st.sampled_from("mn")), min_size=1, unique=True),
    st.sampled_from(["priority", "round-robin", "weighted", "sticky"]),
    st.dictionaries(st.sampled_from(["p", "q", "p.a", "p.m", "q.b"]), st.floats()),
)
def test_always_a_candidate_and_always_the_same(candidates: list[Target], mode: Mode, weights: dict[str, float]) -> None:
    first = picks(candidates, 12, mode, weights)
    assert set(first) <= set(candidates)
    assert first == picks(candidates, 12, mode, weights)
