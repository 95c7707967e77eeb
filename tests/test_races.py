"""Who is said to wait or race, and how often rows are run."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests import races


def a_helper() -> None:
    time.sleep(0)


class Held:
    def let_go(self) -> None:
        threading.Barrier(1).wait()


def _computes() -> None:
    async def answer() -> int:
        return 1

    assert asyncio.run(answer()) == 1


def _sleeps() -> None:
    time.sleep(0)


def _through_a_helper() -> None:
    a_helper()


def _in_a_function_of_its_own() -> None:
    def work() -> None:
        threading.Thread(target=print).start()

    work()


def _with_what_keeps_something() -> None:
    Held().let_go()


@pytest.mark.parametrize("test", [_sleeps, _through_a_helper, _in_a_function_of_its_own, _with_what_keeps_something])
def test_who_names_a_wait_waits(test: object) -> None:
    assert races.waits(test)  # type: ignore[arg-type]


def test_who_only_runs_to_its_end_does_not() -> None:
    assert not races.waits(_computes)
    assert races.waits(_computes, [a_helper]), "a fixture that it asks for"


@pytest.mark.parametrize("rows, each", [(0, 20), (1, 20), (2, 10), (3, 7), (19, 2), (20, 1), (300, 1)])
def test_rows_share_the_times(rows: int, each: int) -> None:
    assert races.times_of_row(20, rows) == each
