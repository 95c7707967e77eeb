"""A coroutine that is begun at once: what it does before it waits is done at once, and the rest is its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from routecodex.routing.turn.stepping import Done, begin


def test_what_waits_for_nothing_is_done() -> None:
    async def work() -> str:
        return "done"

    begun = begin(work())
    assert isinstance(begun, Done)
    assert begun.result == "done"


def test_its_error_is_raised_at_once() -> None:
    async def work() -> None:
        raise LookupError("nowhere")

    with pytest.raises(LookupError, match="nowhere"):
        begin(work())


def test_the_rest_goes_on_in_a_task() -> None:
    steps: list[str] = []

    async def work() -> str:
        steps.append("begun")
        first = await asyncio.sleep(0, "slept")
        second = await asyncio.to_thread(lambda: "threaded")
        with pytest.raises(LookupError):
            await failing()
        return f"{first} {second}"

    async def failing() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def main() -> str:
        begun = begin(work())
        assert steps == ["begun"]
        assert not isinstance(begun, Done)
        return await asyncio.ensure_future(_awaited(begun))

    assert asyncio.run(main()) == "slept threaded"


def test_an_error_of_the_rest_is_the_tasks() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise LookupError("later")

    async def main() -> None:
        await _awaited(begin(work()))

    with pytest.raises(LookupError, match="later"):
        asyncio.run(main())


@pytest.mark.parametrize("deaf", [False, True])
def test_a_cancellation_is_the_coroutines_to_hear_of(deaf: bool) -> None:
    heard: list[str] = []

    async def work() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("cancelled")
            if not deaf:
                raise
        return "all the same"

    async def main() -> Any:
        task = asyncio.ensure_future(_awaited(begin(work())))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task

    task = asyncio.run(main())
    assert heard == ["cancelled"]
    assert task.cancelled() is not deaf


async def _awaited(begun: Any) -> Any:
    return await begun
