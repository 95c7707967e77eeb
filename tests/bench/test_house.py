"""The house is counted: a real call through the real proxy."""

from __future__ import annotations

import pytest

from tests.bench.house import BROUGHT, brought, lines, traced
from tests.rig.proxy import ROOT


def test_the_answer_side_is_where_it_is_counted() -> None:
    counted = lines(ROOT)
    assert counted["routing/dialects/answer"] > 1000
    assert all(counted.values()), "what is gone is not told"


def test_what_was_brought_in_is_there_and_counts_once() -> None:
    room, counted = ROOT / "routing/dialects/answer", brought(ROOT)
    assert list(counted) == [one.what for one in BROUGHT]
    assert all(counted.values()), "nothing speaks of it any more"
    whole = sum((room / module).read_bytes().count(b"\n") for one in BROUGHT for module in one.modules)
    assert whole < sum(counted.values()) < lines(ROOT)["routing/dialects/answer"] / 4


@pytest.mark.system
def test_a_traced_call() -> None:
    counted = traced(ROOT)
    rooms = counted.pop("calls by room")
    assert all(count > 10 for count in counted.values()), counted
    assert sum(rooms.values()) == counted["function calls"] > counted["functions"]
    assert {"addons", "routing/desk", "routing/turn", "routing/stop_message", "routing/clock"} <= rooms.keys()
