"""What the contract itself says."""

from __future__ import annotations

from routecodex.routing.storage.contract import BOUNDS, Kind


def test_every_kind_is_bounded() -> None:
    assert set(BOUNDS) == set(Kind)
    assert all(bounds.entries > 0 and bounds.bytes > 0 for bounds in BOUNDS.values())


def test_what_a_conversation_needs_lasts_as_long_as_it() -> None:
    assert all(BOUNDS[kind].ttl_s == 0 for kind in (Kind.STATE, Kind.TASKS, Kind.HIDDEN))
