"""What every test gets: folders of its own, and the profile that ROUTECODEX_TESTS chooses (`long`, else short)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.rig.provider import FakeProvider

LONG = os.environ.get("ROUTECODEX_TESTS") == "long"

settings.register_profile("fast", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("deep" if LONG else "fast")


def pytest_xdist_auto_num_workers() -> int:
    """Tests wait more than they compute; yet each worker has proxies of its own, and many at once make each other late."""
    return min(4, (os.cpu_count() or 1) + 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests are left out, not skipped: a skipped test would look like a test that ran."""
    if LONG:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the state of the person who runs it."""
    monkeypatch.setenv("ROUTECODEX_SESSION_DIR", str(tmp_path / "sessions"))
    monkeypatch.setenv("ROUTECODEX_USER_DIR", str(tmp_path / "user"))


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running
