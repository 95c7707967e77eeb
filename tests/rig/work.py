"""How much work something is, whatever else the machine does: counted calls, or the ratio of CPU time for n and for 4 n."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Collection
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")

FOUR_TIMES = 9
"""Linear work is 4 times as much for 4 times the input, quadratic work 16 times; between them both have room."""
TOO_LITTLE_S = 0.004
"""Less CPU time than this is not compared: it is the measuring itself."""


def calls_of(work: Callable[[], object]) -> int:
    """The functions that it calls, those of C included: the same number on every machine, loaded or not."""
    return _events(work, ("call", "c_call"), sys.getprofile(), sys.setprofile)


def lines_of(work: Callable[[], object]) -> int:
    """The lines of Python that it runs, those of loops each time: likewise."""
    return _events(work, ("line",), sys.gettrace(), sys.settrace)


def _events(work: Callable[[], object], kinds: Collection[str], before: Any, watch: Callable[[Any], None]) -> int:
    count = 0

    def note(frame: object, event: str, argument: object) -> Any:
        nonlocal count
        count += event in kinds
        return note

    collected = gc.isenabled()
    gc.disable()  # what it finalises, and when, is not of this work's making
    watch(note)
    try:
        work()
    finally:
        watch(before)
        if collected:
            gc.enable()
    return count


def assert_linear(work: Callable[[T], object], make: Callable[[int], T], size: int) -> None:
    """`work(make(size))` against `work(make(4 * size))` in CPU time of this thread; what disturbs one try is gone in another.

    The small one is a median: a machine that counts its time in ticks tells now and then a third of what a short work took.
    """
    tries: list[float] = []
    large = float("inf")
    for _ in range(6):
        tries.append(_cpu_s(work, make(size)))
        large = min(large, _cpu_s(work, make(4 * size)))
        small = median(tries)
        if large < FOUR_TIMES * max(small, TOO_LITTLE_S):
            return
    raise AssertionError(
        f"four times the input takes {large / small:.0f} times the work (linear: 4): "
        f"{small * 1000:.1f} ms of CPU for {size}, {large * 1000:.1f} ms for {4 * size}"
    )


def _cpu_s(work: Callable[[T], object], given: T) -> float:
    collected = gc.isenabled()
    gc.disable()  # what it looks through is not of this work's making
    try:
        began = time.thread_time()
        work(given)
        return time.thread_time() - began
    finally:
        if collected:
            gc.enable()


LINES_FOUR_TIMES = 5.5
"""They are counted, not measured: what is linear gives 4, and a quadratic part shows long before it is all."""


def assert_as_many_lines(work: Callable[[T], object], make: Callable[[int], T], size: int) -> None:
    """`work(make(4 * size))` runs four times the lines of `work(make(size))`."""
    small, large = (make(each) for each in (size, 4 * size))
    work(make(1))  # what is made once
    few, many = lines_of(lambda: work(small)), lines_of(lambda: work(large))
    assert many < LINES_FOUR_TIMES * few, f"four times the input runs {many / few:.1f} times the lines: {few:,} and {many:,}"
