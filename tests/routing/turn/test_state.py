"""One owner knows whether a turn is over: what ends it in the wrong order is refused, what ends it twice changes nothing."""

from __future__ import annotations

import pytest

from routecodex.routing.turn.state import GOES, Course, OutOfPlace, State

BEHIND = frozenset((State.OVER, State.ENDED, State.CUT))


@pytest.mark.parametrize("state", State)
def test_what_is_over_stays_over(state: State) -> None:
    course = Course()
    course.state = state
    assert course.over == (state in BEHIND)
    assert not course.over or GOES[state] <= BEHIND
    assert course.over or not GOES[state] & {State.ENDED, State.CUT}, "it is over before it leaves"


def test_an_end_leaves_once_and_not_behind_a_cut() -> None:
    course = Course()
    course.end()
    assert course.state is State.ASKING, "nothing was said last yet"
    with pytest.raises(OutOfPlace):
        course.cut()
    course.go(State.OVER)
    for _ in range(2):
        course.end()
        assert course.state is State.ENDED
    for _ in range(2):
        course.cut()
        course.end()
        assert course.state is State.CUT, "an end that cannot be made"
