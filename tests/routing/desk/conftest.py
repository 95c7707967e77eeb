"""A house of the shipped kind, and one to be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.routing.desk.given import Build
from tests.routing.house import House, config_text


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return lambda *args, **more: House(tmp_path, config_text(*args, **more))
