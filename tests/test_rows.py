"""Rows that are tried together: all of them, and those that fail by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import rows

SEEN: list[tuple[int, str]] = []
MARKED: list[int] = []


@pytest.mark.parametrize("letter", ["a", "b"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_all_are_tried(number: int, letter: str) -> None:
    SEEN.append((number, letter))


def test_each_was_tried_once_and_all_as_one(request: pytest.FixtureRequest) -> None:
    ours = [item for item in request.session.items if item.path == request.path and "all_are_tried" in item.name]
    expected = [(number, letter) for number in (1, 2, 3) for letter in "ab"]
    if rows.wanted_alone(request.config):
        assert len(SEEN) == len(ours)
    else:
        assert [item.name for item in ours] == ["test_all_are_tried"] * len(ours)
        assert sorted(SEEN) == expected * len(ours)


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.filterwarnings("default")), 3])
def test_what_is_marked_stays_alone(number: int) -> None:
    MARKED.append(number)


def test_what_was_marked_is_an_item_of_its_own(request: pytest.FixtureRequest) -> None:
    ours = [item for item in request.session.items if item.path == request.path and "marked_stays" in item.name]
    if rows.wanted_alone(request.config):
        assert len(MARKED) == len(ours)
    else:
        assert sorted(item.name for item in ours) == ["test_what_is_marked_stays_alone", "test_what_is_marked_stays_alone[2]"]
        assert sorted(MARKED) == [1, 2, 3]


def row(name: str, **given: Any) -> rows.Row:
    return SimpleNamespace(id=name, params=given, marks=())


def test_those_that_fail_are_named_and_the_others_tried() -> None:
    tried = []

    def odd(number: int) -> None:
        tried.append(number)
        assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError, match="2 is even") as failed:
        rows._all_of(odd, [row(f"row {number}", number=number) for number in (1, 2, 3, 4)])()
    assert tried == [1, 2, 3, 4]
    assert failed.value.__notes__ == ["2 of 4 rows: row 2, row 4"]


def test_a_row_that_says_so_itself_fails_too() -> None:
    with pytest.raises(pytest.fail.Exception, match="said so"):
        rows._all_of(lambda: pytest.fail("said so"), [row("it")])()


def test_any_two_stand_together_in_any_two_places() -> None:
    values = "abcde"
    threes = rows.covering(values)
    for places in ((0, 1), (0, 2), (1, 2)):
        assert {(three[places[0]], three[places[1]]) for three in threes} == {(one, two) for one in values for two in values}
