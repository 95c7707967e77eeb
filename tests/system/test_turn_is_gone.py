"""A turn that is over is gone at once: nothing that mitmproxy keeps holds it until the collector comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from routing.values import Dialect
from tests.rig.provider import FakeProvider
from tests.system.speaker import Speaker
from tests.system.tool import CONFIG
from tests.system.watched import held, until, watched

pytestmark = pytest.mark.system


@pytest.mark.parametrize("text", ["hello", '<**stopMessage:"go on",1**> hello'], ids=["one round", "two rounds"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_without_the_collector(provider: FakeProvider, tmp_path: Path, dialect: Dialect, text: str) -> None:
    provider.forget()
    with watched(provider, CONFIG, folder=tmp_path) as proxy:
        held(proxy, "/leave")
        speaker = Speaker(provider, proxy, dialect)
        for _ in range(5):
            speaker.told(speaker.ask(f"<**!six.m**> {text}"))
        assert len(provider.calls) >= 5
        until(lambda: held(proxy, "/look")["alive"] == 0, 3, lambda: held(proxy, "/look"))
