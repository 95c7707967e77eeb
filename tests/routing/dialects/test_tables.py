"""A dialect is known everywhere or nowhere: whoever adds one reads here which tables wait for it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from routecodex.routing.config.providers import _find_family
from routecodex.routing.values import Dialect
from tests.test_layout import ROUTING, name_of


def tables() -> Iterator[tuple[str, set[object]]]:
    """What each module looks up by dialect, named where it stands; a table of two or fewer is about those alone."""
    seen: list[object] = []
    for path in ROUTING:
        module = importlib.import_module(name_of(path))
        for name, value in vars(module).items():
            if any(value is one for one in seen):
                continue
            if isinstance(value, dict | tuple) and len(value) > 2 and all(isinstance(key, Dialect) for key in value):
                seen.append(value)
                yield f"{path}: {name}", set(value)


def test_a_provider_of_a_dialect_is_not_taken_for_one_of_another() -> None:
    assert [_find_family(dialect) for dialect in Dialect] == list(Dialect)


def test_every_table_knows_every_dialect() -> None:
    found = dict(tables())
    assert len(found) > 10
    waiting = [name for name, known in found.items() if known != set(Dialect)]
    assert not waiting, "\n".join(waiting)
