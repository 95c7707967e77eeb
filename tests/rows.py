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
from typing import Any, TypeVar

import pytest

EVERYWHERE = frozenset(("own_folders", "request", "monkeypatch", "tmp_path_factory"))
"""What every test gets, though it does not ask for it."""

T = TypeVar("T")


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


def together(made: list[pytest.Item | pytest.Collector]) -> list[pytest.Item | pytest.Collector]:
    """The rows of one test function, as one item where that asks the same."""
    alone: list[pytest.Item | pytest.Collector] = []
    rows: list[pytest.Function] = []
    for row in made:
        if isinstance(row, pytest.Function) and _is_plain(row):
            rows.append(row)
        else:
            alone.append(row)
    if len(rows) < 2:
        return alone + rows
    return [*alone, pytest.Function.from_parent(rows[0].parent, name=rows[0].originalname, callobj=_all_of(rows))]


def _is_plain(row: pytest.Function) -> bool:
    if row.cls is not None or not hasattr(row, "callspec"):
        return False
    parametrized = list(row.iter_markers("parametrize"))
    named = {name.strip() for mark in parametrized for name in _names(mark.args[0]) if not mark.kwargs.get("indirect")}
    return (
        row.callspec.params.keys() <= named
        and named | EVERYWHERE >= set(row.fixturenames)
        and _asked_by(row.obj) <= named
        and all(mark.name == "parametrize" for mark in row.own_markers)
        and not getattr(row.obj, "is_hypothesis_test", False)
    )


@functools.cache
def _asked_by(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def _names(given: str | list[str] | tuple[str, ...]) -> list[str]:
    return given.split(",") if isinstance(given, str) else list(given)


def _all_of(rows: list[pytest.Function]) -> Callable[[], None]:
    tried: list[tuple[str, Callable[..., None], dict[str, Any]]] = [
        (row.callspec.id, row.obj, row.callspec.params) for row in rows
    ]

    def every_row() -> None:
        failed: dict[str, BaseException] = {}
        for name, test, given in tried:
            try:
                test(**given)
            except (Exception, pytest.fail.Exception) as wrong:
                failed[name] = wrong
        for first in failed.values():
            first.add_note(f"{len(failed)} of {len(tried)} rows: {', '.join(list(failed)[:20])}")
            raise first

    every_row.rows = len(tried)  # type: ignore[attr-defined]
    return every_row
