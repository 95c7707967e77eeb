"""Begins a coroutine at once: most hooks have nothing to wait for, and a task costs more than they do.

What a coroutine does before it waits for the first time is done in the caller's task. So this is only for coroutines that ask
nothing of "their" task there: no `asyncio.timeout`, no task group.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Done(Struct, Generic[T]):
    """It had nothing to wait for."""

    result: T


def begin(coroutine: Coroutine[Any, Any, T]) -> Done[T] | Awaitable[T]:
    """`Done`, or what is left of it; an error that it raises at once is raised here."""
    try:
        waits_for = coroutine.send(None)
    except StopIteration as end:
        return Done(end.value)
    return _Rest(coroutine, waits_for)


class _Rest(Awaitable[T]):
    """A coroutine from its first waiting on."""

    __slots__ = ("_coroutine", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, T], waits_for: object) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, waits_for = self._coroutine, self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:  # a cancellation as well: it is the coroutine's to hear of
                    waits_for = coroutine.throw(error)
                else:
                    waits_for = coroutine.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result
