"""A parametrised test of nothing but its rows is one item of the suite, which tries every row and names those that fail.

Making, sending and reporting an item costs more than most rows ask. A row is an item of its own where its name is given (`-k`, or
an id with brackets), with `--rows`, and where it has a mark, a fixture, or a search of its own.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Protocol, TypeVar

import pytest

EVERYWHERE = frozenset(("own_folders", "request", "monkeypatch", "tmp_path_factory"))
"""What every test gets, though it does not ask for it."""

T = TypeVar("T")


class Row(Protocol):
    """What pytest keeps of one."""

    @property
    def id(self) -> str: ...
    @property
    def params(self) -> dict[str, Any]: ...
    @property
    def marks(self) -> Sequence[Any]: ...


def covering(values: Sequence[T]) -> list[tuple[T, T, T]]:
    """Threes of these in which every two stand together in every two places; all threes in the long profile."""
    if os.environ.get("ROUTECODEX_TESTS") == "long":
        return list(product(values, repeat=3))
    return [
        (one, two, values[(place + shift) % len(values)]) for place, one in enumerate(values) for shift, two in enumerate(values)
    ]


def wanted_alone(config: pytest.Config) -> bool:
    options = config.option
    return bool(options.rows or options.keyword or options.times > 1 or any("[" in argument for argument in config.args))


_TOGETHER: dict[int, list[Row]] = {}
"""By the row that stands for them, until the item is made."""


def put_together(metafunc: pytest.Metafunc) -> None:
    """Of the rows of a test function that can be one item only the first is made: making a row costs more than trying most."""
    calls: list[Row] = metafunc._calls
    if len(calls) < 2 or not _is_plain(metafunc):
        return
    plain = [call for call in calls if not call.marks]
    if len(plain) > 1:
        _TOGETHER[id(plain[0])] = plain
        calls[:] = [call for call in calls if call.marks or call is plain[0]]


def together(made: list[pytest.Item | pytest.Collector]) -> list[pytest.Item | pytest.Collector]:
    """What was made of the rows of one test function: those that were put together are one item, the last."""
    alone: list[pytest.Item | pytest.Collector] = []
    one: list[pytest.Item | pytest.Collector] = []
    for item in made:
        if isinstance(item, pytest.Function) and (rows := _TOGETHER.pop(id(getattr(item, "callspec", None)), None)):
            one.append(pytest.Function.from_parent(item.parent, name=item.originalname, callobj=_all_of(item.obj, rows)))
        else:
            alone.append(item)
    return alone + one


def _is_plain(metafunc: pytest.Metafunc) -> bool:
    """It asks for nothing but what stands in its rows, and nothing is said of it but them."""
    if metafunc.cls is not None:
        return False
    marks = list(metafunc.definition.iter_markers("parametrize"))
    named = {name.strip() for mark in marks for name in _names(mark.args[0]) if not mark.kwargs.get("indirect")}
    return (
        metafunc._calls[0].params.keys() <= named
        and named | EVERYWHERE >= set(metafunc.fixturenames)
        and _asked_by(metafunc.function) <= named
        and all(mark.name == "parametrize" for mark in metafunc.definition.own_markers)
        and not getattr(metafunc.function, "is_hypothesis_test", False)
    )


@functools.cache
def _asked_by(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def _names(given: str | list[str] | tuple[str, ...]) -> list[str]:
    return given.split(",") if isinstance(given, str) else list(given)


def _all_of(test: Callable[..., None], rows: Sequence[Row]) -> Callable[[], None]:
    def every_row() -> None:
        failed: dict[str, BaseException] = {}
        for row in rows:
            try:
                test(**row.params)
            except (Exception, pytest.fail.Exception) as wrong:
                failed[row.id] = wrong
        for first in failed.values():
            first.add_note(f"{len(failed)} of {len(rows)} rows: {', '.join(list(failed)[:20])}")
            raise first

    every_row.rows = len(rows)  # type: ignore[attr-defined]
    return every_row
