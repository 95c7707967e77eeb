"""The judge of work sees what grows too fast, and nothing else."""

from __future__ import annotations

import pytest

from tests.rig.work import assert_as_many_lines, assert_linear, calls_of, lines_of


def test_linear_work_passes() -> None:
    assert_linear(lambda text: [ord(letter) for letter in text], lambda size: "x" * size, 100_000)


def test_too_little_work_to_compare_passes() -> None:
    assert_linear(len, lambda size: "x" * size, 100)


def test_quadratic_work_is_named() -> None:
    def in_pieces(count: int) -> None:
        for end in range(count):
            sum(range(end))

    with pytest.raises(AssertionError, match=r"four times the input takes \d\d+ times the work"):
        assert_linear(in_pieces, lambda size: size, 1_000)


def test_calls_are_counted() -> None:
    def inner() -> int:
        return len("x")

    once = calls_of(inner)
    assert calls_of(lambda: [inner() for _ in range(10)]) >= 10 * (once - 1)
    assert calls_of(inner) == once, "the same on every try"


def test_lines_of_a_loop_are_counted_each_time() -> None:
    def twice(count: int) -> None:
        for outer in range(count):
            for inner in range(outer):
                assert inner < outer

    assert lines_of(lambda: twice(10)) == lines_of(lambda: twice(10)) > 45
    assert_as_many_lines(lambda text: [letter.upper() for letter in text], lambda size: "x" * size, 50)
    with pytest.raises(AssertionError, match=r"four times the input runs 1[0-9]\.\d times the lines"):
        assert_as_many_lines(twice, lambda size: size, 30)
