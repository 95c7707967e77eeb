"""How a key that rests is told of."""

from __future__ import annotations

import pytest

from routecodex.routing.router.health import Condition, Cooling, Fault, Healthy, Tripped
from routecodex.routing.router.resting import how_it_rests


@pytest.mark.parametrize(
    "state, told",
    [
        (Healthy(), "ready"),
        (Cooling(160.0, Fault.RATE), "resting 1 min (429)"),
        (Cooling(101.0), "resting 1 s"),
        (Tripped(700.0, Fault.AUTH), "down for 10 min (key refused)"),
        (Tripped(700.0, "what another version says"), "down for 10 min"),
    ],
)
def test_how_it_rests(state: Condition, told: str) -> None:
    assert how_it_rests(state, 100.0) == told
