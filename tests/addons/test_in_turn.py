"""Large calls that come at once: one in each turn of the loop, in their order; small ones wait for nobody."""

from __future__ import annotations

import asyncio
import itertools

from routecodex.addons.in_turn import LARGE_BYTES, InTurn


def test_many_at_once_are_read_one_after_the_other() -> None:
    async def run() -> list[str]:
        turn, seen = InTurn(), []

        async def call(name: str, size: int) -> None:
            await turn.wait(size)
            seen.append(name)

        async def others() -> None:
            while len(seen) < 7:
                seen.append("|")
                await asyncio.sleep(0)

        calls = [asyncio.create_task(call(f"large {number}", LARGE_BYTES)) for number in range(4)]
        beside = asyncio.create_task(others())
        calls.append(asyncio.create_task(call("small", LARGE_BYTES - 1)))
        calls[1].cancel()  # its client has left
        await asyncio.gather(*calls, beside, return_exceptions=True)
        await turn.wait(LARGE_BYTES)
        return seen

    seen = asyncio.run(asyncio.wait_for(run(), 60))
    assert [name for name in seen if name != "|"] == ["large 0", "small", "large 2", "large 3"]
    large = [at for at, name in enumerate(seen) if name.startswith("large")]
    assert all("|" in seen[before:after] for before, after in itertools.pairwise(large))


def test_who_comes_alone_does_not_wait() -> None:
    async def run() -> None:
        turn = InTurn()
        for _ in range(3):
            waiting = turn.wait(LARGE_BYTES)
            try:
                waiting.send(None)
            except StopIteration:
                pass
            else:
                raise AssertionError("it waits")
            for _ in range(4):
                await asyncio.sleep(0)

    asyncio.run(run())
