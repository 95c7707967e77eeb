"""The judge of work sees what grows too fast, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from tests.rig.work import assert_as_many_lines, assert_linear, calls_of, lines_of


def test_linear_work_passes() -> None:
    assert_linear(lambda text: [ord(letter) for letter in text], lambda size: "x" * size, 100_000)


def test_too_little_work_to_compare_passes() -> None:
    assert_linear(len, lambda size: "x" * size, 100)


class Clock:
    """Tells what was worked, and now and then a wrong number, as a machine does that counts in ticks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, wrong: Sequence[float] = ()) -> None:
        """`wrong`: what the first measurements are multiplied with, a small one and a large one in turn."""
        self.told = self.worked = 0.0
        self._wrong = iter([factor for each in wrong for factor in (1.0, each)])  # it is asked before each work, and behind it
        monkeypatch.setattr(time, "thread_time", self)

    def __call__(self) -> float:
        self.told += self.worked * next(self._wrong, 1.0)
        self.worked = 0.0
        return self.told

    def works(self, power: int) -> Callable[[int], None]:
        def work(size: int) -> None:
            self.worked += size**power / 1000

        return work


def test_quadratic_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"four times the input takes 16 times the work"):
        assert_linear(Clock(monkeypatch).works(2), lambda size: size, 1_000)


def test_quadratic_work_is_named_also_where_one_try_of_the_small_took_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match=r"four times the input takes 16 times the work"):
        assert_linear(Clock(monkeypatch, wrong=(1.7, 1.0)).works(2), lambda size: size, 1_000)


def test_linear_work_passes_also_where_a_third_of_one_try_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_linear(Clock(monkeypatch, wrong=(0.3, 1.0)).works(1), lambda size: size, 1_000)


def test_quadratic_work_is_named_whatever_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_pieces(count: int) -> None:
        for end in range(count):
            sum(range(end))

    with pytest.raises(AssertionError, match=r"four times the input takes [12]\d times the work"):
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
