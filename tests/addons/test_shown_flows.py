"""The newest flows stay, by their number and by their size; what is still at work stays; what a person removed is no loss."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from mitmproxy.addons.view import View
from mitmproxy.test import tflow

from routecodex.addons import shown_flows
from routecodex.addons.shown_flows import ShownFlows


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> View:
    made = View()
    monkeypatch.setattr(shown_flows, "ctx", SimpleNamespace(master=SimpleNamespace(addons={"view": made})))
    return made


def over(view: View, shown: ShownFlows, count: int, *, most: int = 5, size: int = 10, live: bool = False) -> None:
    for number in range(count):
        flow = tflow.tflow(req=tflow.treq(content=b"x" * size, timestamp_start=1e9 + number), resp=True)
        flow.live = live
        view.add([flow])
        shown.add(flow, most)


def test_so_many_stay(view: View) -> None:
    over(view, ShownFlows(), 12)
    assert len(view._store) == 5
    assert [flow.request.timestamp_start for flow in view] == [1e9 + number for number in range(7, 12)]


def test_large_ones_are_fewer(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_flows, "MOST_BYTES", 3500)
    over(view, ShownFlows(), 12, most=100, size=1000)
    assert len(view._store) == 3


def test_all_of_them_where_somebody_wants_that(view: View) -> None:
    over(view, ShownFlows(), 12, most=0)
    assert len(view._store) == 12


def test_what_is_at_work_stays(view: View) -> None:
    shown = ShownFlows()
    over(view, shown, 1, live=True)
    over(view, shown, 12)
    assert len(view._store) == 6


def test_what_a_person_removed_is_no_loss(view: View) -> None:
    shown = ShownFlows()
    over(view, shown, 4)
    view.clear()
    over(view, shown, 6)
    assert len(view._store) == 5


def test_mitmdump_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_flows, "ctx", SimpleNamespace(master=SimpleNamespace(addons={})))
    shown = ShownFlows()
    shown.add(tflow.tflow(resp=True), 5)
    assert not shown._over
