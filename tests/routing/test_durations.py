"""Durations in words."""

from __future__ import annotations

from routecodex.routing.durations import duration


def test_durations() -> None:
    shown = {0.2: "1 s", 59: "59 s", 60: "1 min", 61: "2 min", 240: "4 min", 7200: "120 min", 7201: "3 h", 86_400: "24 h"}
    assert {seconds: duration(seconds) for seconds in shown} == shown
