"""Time for one test: it stands still while anything works, and leaps where everything only waits.

1. The loop's clock is the only one: `asyncio.sleep`, `timeout` and `call_later` wait for it, and a slow machine does not move it.
2. Where a thread of the loop's works, nothing leaps until it is done.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
LATEST_S = 3_600.0
"""A test that waits for longer than this waits for nothing."""


class Leaping:
    """`time = Leaping(); time.run(work())`; `time()` is what the loop's clock shows, also between runs."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def run(self, work: Coroutine[Any, Any, T], *, factory: Any = None) -> T:
        """`factory`: of its tasks."""

        async def bounded() -> T:
            if factory is not None:
                asyncio.get_running_loop().set_task_factory(factory)
            async with asyncio.timeout(LATEST_S):
                return await work

        with asyncio.Runner(loop_factory=lambda: _Loop(self)) as runner:
            return runner.run(bounded())


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Leaping) -> None:
        self._clock = clock
        self._threads = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._clock.now

    def leap(self, seconds: float) -> None:
        self._clock.now += seconds

    @property
    def working(self) -> bool:
        return self._threads > 0

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._done)
        return future

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """Its threads are waited for by a thread of its own; newer Pythons give up by the loop's clock."""
        self._threads += 1
        try:
            await super().shutdown_default_executor(*arguments)
        finally:
            self._threads -= 1

    def _done(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: _Loop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or self._loop.working:
            return super().select(timeout)
        found = super().select(0)
        if not found and timeout > 0:
            self._loop.leap(timeout)
        return found
