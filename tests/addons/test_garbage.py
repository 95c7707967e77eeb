"""What was loaded at the start is not looked through again, and nothing that somebody has set is undone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator

import pytest

from routecodex.addons import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.unfreeze()
    garbage._settled = False
    yield
    gc.unfreeze()
    if frozen:
        gc.freeze()
    gc.set_threshold(*threshold)


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generation of every look for garbage since."""
    seen: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        seen.append(info["generation"])

    gc.callbacks.append(look)
    yield seen
    gc.callbacks.remove(look)


def test_what_is_there_stays() -> None:
    garbage.settle()
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    held = [[number] for number in range(1000)]
    garbage.settle()
    assert gc.get_freeze_count() <= frozen, "once in a process: what comes later is looked at"
    assert len(held) == 1000


@pytest.mark.parametrize("young, expected", [(700, 2000), (2000, 2000), (50_000, 50_000)])
def test_the_threshold_only_ever_rises(young: int, expected: int) -> None:
    gc.set_threshold(young, 11, 12)
    garbage.settle()
    assert gc.get_threshold() == (expected, 11, 12)


def test_it_rests_for_as_long_as_it_is_asked_to(collections: list[int]) -> None:
    gc.set_threshold(10, 1, 1)
    with contextlib.suppress(ZeroDivisionError), garbage.resting():
        collections.clear()
        assert [[number] for number in range(10_000)]
        assert collections == []
        raise ZeroDivisionError
    assert gc.isenabled()
    assert [[number] for number in range(10_000)]
    assert collections


def test_who_has_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with garbage.resting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_calls_have_used_goes_back_once_it_is_much(monkeypatch: pytest.MonkeyPatch, collections: list[int]) -> None:
    given: list[int] = []
    monkeypatch.setattr(garbage.allocator, "give_back", lambda: given.append(1))
    monkeypatch.setattr(garbage.Spent, "SOON_S", 0.0)

    async def run() -> None:
        spent = garbage.Spent()
        for size, times in ((0, 0), (garbage.Spent.MUCH_BYTES, 1), (0, 1)):
            spent.add(size)
            spent.add(0)
            await asyncio.sleep(0.01)
            assert len(given) == times
        assert collections.count(2) >= 1
        gc.disable()
        try:
            collections.clear()
            spent.add(garbage.Spent.MUCH_BYTES)
            await asyncio.sleep(0.01)
        finally:
            gc.enable()
        assert len(given) == 2
        assert 2 not in collections
        spent.add(garbage.Spent.MUCH_BYTES)
        spent.stop()
        await asyncio.sleep(0.01)
        assert len(given) == 2

    asyncio.run(run())


def test_nobody_is_stopped_for_it_while_many_calls_run(monkeypatch: pytest.MonkeyPatch, collections: list[int]) -> None:
    given: list[int] = []
    monkeypatch.setattr(garbage.allocator, "give_back", lambda: given.append(1))
    monkeypatch.setattr(garbage.Spent, "SOON_S", 0.0)
    asked: list[int] = []

    def running() -> int:
        asked.append(1)
        return garbage.Spent.FEW_CALLS + (len(asked) < 3)

    async def run() -> None:
        spent = garbage.Spent(running)
        spent.add(garbage.Spent.MUCH_BYTES)
        while not given:
            assert 2 not in collections
            await asyncio.sleep(0)
        assert (len(asked), len(given)) == (3, 1)
        assert 2 in collections

    asyncio.run(asyncio.wait_for(run(), 30))


def test_what_a_large_call_is_made_of_is_not_looked_through_for_nothing(collections: list[int]) -> None:
    gc.set_threshold(700, 10, 10)
    garbage.settle()
    with garbage.resting(), garbage.resting():
        held = [[number] for number in range(2 * garbage.MANY_OBJECTS)]
        collections.clear()
    assert gc.isenabled()
    more = [[number] for number in range(garbage.MANY_OBJECTS)]
    assert collections == []
    more += [[number] for number in range(4 * garbage.MANY_OBJECTS)]
    assert collections, "it does not wait for ever"
    del held, more
    garbage.Spent().add(0)
    assert gc.get_threshold()[0] == garbage.YOUNG_OBJECTS, "once the call is over"


def test_it_rests_until_the_last_of_them_is_done() -> None:
    first, second = garbage.resting(), garbage.resting()
    with contextlib.ExitStack() as last:
        with first:
            last.enter_context(second)
        assert not gc.isenabled()
    assert gc.isenabled()
