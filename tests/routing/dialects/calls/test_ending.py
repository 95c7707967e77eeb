"""Texts at the end of a history: the same whether it ends there now, or did so some calls ago."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest

from routecodex.routing.dialects.calls.ending import texts_behind, with_texts
from tests.routing.clock.test_time_tag import GEMINI, KEYS, MESSAGES, PLACES, call_of, sent


@pytest.mark.parametrize("name", [name for name, (_, items, _) in PLACES.items() if isinstance(items, list)])
def test_behind_one_item_as_at_the_end(name: str) -> None:
    dialect, items, expected = PLACES[name]
    last = copy.deepcopy(items[-1])
    assert [*items[:-1], *texts_behind(dialect, items[-1], ["one", "two"])] == expected
    assert items[-1] == last, "the item that was given is never written to"


@pytest.mark.parametrize("name", [name for name, (dialect, _, _) in PLACES.items() if dialect in (MESSAGES, GEMINI)])
def test_c28_never_two_of_the_users_in_a_row(name: str) -> None:
    dialect, items, _ = PLACES[name]
    roles = [item["role"] for item in sent(with_texts(call_of(dialect, items), ["one"]))[KEYS[dialect]]]
    assert all(pair != ("user", "user") for pair in pairwise(roles))
