"""What waits for another process's lock holds no thread, and what waits for a disk none of the loop's own."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from pathlib import Path

import pytest

from routecodex.addons import disk_threads
from routecodex.addons.disk_threads import PATIENT, QUICK, computed, if_possible, in_thread
from routecodex.routing.errors import Locked, StoreError
from routecodex.routing.storage.disk import Folder


def locked() -> None:
    raise Locked("The session file x is locked by process 1")


def test_forty_that_are_locked_out_leave_the_threads_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_threads, "WAIT_S", 3600.0)

    async def both() -> list[int]:
        waiting = [asyncio.create_task(in_thread(locked)) for _ in range(40)]
        done = [await in_thread(lambda number=number: number) for number in range(200)]
        assert not any(one.done() for one in waiting)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return done

    assert asyncio.run(both()) == list(range(200))


def test_it_is_tried_until_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_threads, "WAIT_S", 3600.0)
    tries = iter([Locked("no")] * 5 + [None])

    def work() -> str:
        if (error := next(tries)) is not None:
            raise error
        return "done"

    assert asyncio.run(in_thread(work)) == "done"
    assert next(tries, "none left") == "none left"


def test_in_the_end_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_threads, "WAIT_S", 0.0)
    with pytest.raises(Locked, match="process 1"):
        asyncio.run(in_thread(locked))


def test_what_may_be_lost_fails_nobodys_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_threads, "WAIT_S", 0.0)
    notes: list[str] = []
    asyncio.run(if_possible(lambda thread: thread(locked), notes.append))
    assert notes == ["The session file x is locked by process 1"]


def test_another_error_is_not_tried_again() -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        raise StoreError("disk full")

    with pytest.raises(StoreError, match="disk full"):
        asyncio.run(in_thread(work))
    assert tries == [1]


def test_few_threads_of_its_own() -> None:
    async def names() -> set[str]:
        return set(await asyncio.gather(*(in_thread(lambda: threading.current_thread().name) for _ in range(50))))

    found = asyncio.run(names())
    assert len(found) <= 4
    assert all(name.startswith("routecodex-disk") for name in found)


def test_only_the_clocks_threads_wait_for_a_lock(tmp_path: Path) -> None:
    """Work that cannot be repeated as a whole waits where it is."""

    def update() -> str:
        with Folder(tmp_path).locked("session-x.json"):
            return "had it"

    with Folder(tmp_path).locked("session-x.json"):
        with pytest.raises(Locked):
            QUICK.submit(update).result()
        patient = PATIENT.submit(update)
        assert not patient.done()
    assert patient.result() == "had it"


def test_the_loop_has_its_turns_while_something_is_computed() -> None:
    usual = sys.getswitchinterval()

    async def both() -> tuple[bool, float]:
        seen: list[float] = []

        def work() -> bool:
            return any(seen for _ in range(100_000_000))

        async def turn() -> None:
            seen.append(sys.getswitchinterval())

        had_its_turn, _ = await asyncio.gather(computed(work), turn())
        return had_its_turn, seen[0]

    had_its_turn, during = asyncio.run(both())
    assert had_its_turn
    assert during < usual == sys.getswitchinterval()
    assert gc.isenabled()
