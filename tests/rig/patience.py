"""Many who write one file wait for each other as long as it takes: how long a person would be let wait is another question."""

from __future__ import annotations

from routecodex.routing.storage import disk


def wait_for_locks() -> None:
    """In a process of the test's own."""
    disk._LOCK_WAIT_S = 300.0
