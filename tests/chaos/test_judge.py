"""The judge sees what is wrong."""

from __future__ import annotations

from tests.chaos.judge import Got, Told, judge

GOOD = [
    Told("remind", "r1", True, "ok r1"),
    Told("go on", "g1", True, "ok g1"),
    Told("say", "s1", False),
    Told("say", "s1", True, "ok s1"),
]
SEEN = [Got("r1"), Got("g1", reminded=("r1",)), Got("g1", "g1"), Got("g1", "g1"), Got("s1"), Got("s1")]


def test_a_good_history_holds() -> None:
    assert judge(GOOD, SEEN).holds
    assert judge(GOOD[:1], SEEN[:1]).holds, "no later call could have brought it"


def test_what_is_wrong_is_seen() -> None:
    assert judge(GOOD, [one for one in SEEN if not one.reminded] + [Got("g1")]).lost == ["r1"]
    assert judge(GOOD, [*SEEN, Got("s1", reminded=("r1",))]).doubled
    assert judge(GOOD, [*SEEN, Got("g1", "g1")]).exceeded == ["g1: 3"]
    assert judge(GOOD, [one for one in SEEN if not one.went_on]).short == ["g1: 0"]
    assert judge([Told("say", "s1", True, "ok s2")], []).strange
    assert judge(GOOD, [*SEEN, Got("x9", reminded=("r1",))]).strange


def test_of_a_repeated_call_the_last_try_counts() -> None:
    first = Got("g1", reminded=("r1",))
    assert judge(GOOD, [first, *(one for one in SEEN if not one.reminded), Got("g1")]).gone == ["r1"]
    assert judge(GOOD, [first, *SEEN]).holds
