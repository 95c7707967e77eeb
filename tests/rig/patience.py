"""Many who write one file wait for each other as long as it takes: how long a person would be let wait is another question."""

from __future__ import annotations

import pytest

from routecodex.routing.storage import disk


def wait_for_locks(monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """For one test; or in a process of the test's own."""
    (monkeypatch or pytest.MonkeyPatch()).setattr(disk, "_LOCK_WAIT_S", 300.0)
