"""Which tests wait or race, and how often each is run where that is asked (`-m races --times 20`).

1. Where processes are started (`tests/system`, `trouble`, `addons`, `rig`) every test does: between two calls that follow each
   other a proxy still writes down what became of the first.
2. Elsewhere it is told by what a test's own code names, and that of the functions and fixtures of its file which it uses: a
   thread, a wait, a clock. A module that imports `asyncio` to run one function to its end waits for nobody.
3. The rows of one test are the same race with other words in it: `--times N` runs the test N times, its rows in turn, and each
   row once at least.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

PLACES = ("system", "trouble", "addons", "rig")
WAITS = frozenset(
    (
        *("sleep", "wait", "wait_for", "timeout", "timeout_at", "gather", "create_task", "TaskGroup", "as_completed"),
        *("to_thread", "run_in_executor", "in_thread", "ThreadPoolExecutor", "ProcessPoolExecutor", "Thread", "Timer", "Barrier"),
        *("Process", "Popen", "subprocess", "fork", "call_later", "call_soon_threadsafe", "run_coroutine_threadsafe"),
        *("monotonic", "perf_counter", "process_time", "thread_time", "time_ns", "assert_linear", "patience"),
    )
)
"""Names of what a busy machine or an unlucky order may upset."""


def waits(test: Callable[..., Any], fixtures: Iterable[Callable[..., Any]] = ()) -> bool:
    """Whether a test's code names any of them, in its file."""
    return any(not WAITS.isdisjoint(_names(one)) for one in (test, *fixtures))


def _names(test: Callable[..., Any]) -> set[str]:
    found: set[str] = set()
    seen: set[CodeType] = set()
    waiting: list[object] = [inspect.unwrap(test)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, type):  # a helper that keeps something
            waiting += [entry for entry in vars(one).values() if isinstance(entry, FunctionType)]
            continue
        if not isinstance(one, FunctionType) or one.__code__ in seen:
            continue
        seen.add(one.__code__)
        named = set(_named_in(one.__code__))
        found |= named
        known = (one.__globals__.get(name) for name in named)
        waiting += [other for other in known if getattr(other, "__module__", None) == one.__module__]
    return found


def _named_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named_in(constant)


def times_of_row(times: int, rows: int) -> int:
    """How often each of so many rows of a test is run, so that the test is run so many times."""
    return max(1, -(-times // max(1, rows)))
