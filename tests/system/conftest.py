"""One real proxy and one fake provider for many tests; each test starts with a provider that remembers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy import version

from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.readers import ARE_THERE
from tests.system.tool import CONFIG, Tool

collect_ignore = ["test_web.py"] if tuple(map(int, version.VERSION.split(".")[:3])) < (11, 1, 2) else []
"""Under an older mitmweb no configured key is used: `tests/trouble/test_open_mitmweb.py`."""
collect_ignore += [] if ARE_THERE else ["test_telemetry.py"]


@pytest.fixture(scope="session")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(autouse=True)
def forgets(request: pytest.FixtureRequest) -> None:
    """Also who asks for it without a tool: what an earlier test told it kept calls of a later one waiting."""
    if "provider" in request.fixturenames:
        request.getfixturevalue("provider").forget()


@pytest.fixture(scope="session")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder: Path = tmp_path_factory.mktemp("proxy")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, flows=True) as started:
        yield started


@pytest.fixture
def tool(provider: FakeProvider, proxy: Mitmdump) -> Iterator[Tool]:
    """A conversation of its own."""
    yield Tool(provider, proxy)
    assert proxy.alive
