"""A turn that is over is gone at once, and its flow with all that was said: nothing holds it until the collector comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply
from tests.system.slow_reader import WORD, SlowReader
from tests.system.speaker import Speaker, said_by_user
from tests.system.tool import CONFIG
from tests.system.watched import held, settles, until, watched

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def uncollected(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """No collector runs there any more."""
    with watched(provider, CONFIG, folder=tmp_path_factory.mktemp("gone")) as proxy:
        held(proxy, "/leave")
        yield proxy


@pytest.mark.parametrize("text", ["hello", '<**stopMessage:"go on",1**> hello'], ids=["one round", "two rounds"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_without_the_collector(provider: FakeProvider, uncollected: Mitmdump, dialect: Dialect, text: str) -> None:
    provider.forget()
    speaker = Speaker(provider, uncollected, dialect)
    for _ in range(5):
        speaker.told(speaker.ask(f"<**!six.m**> {text}"))
    assert len(provider.calls) >= 5
    until(lambda: (now := held(uncollected, "/look"))["alive"] == now["flows"] == 0, 60, lambda: held(uncollected, "/look"))


def test_a_client_that_leaves_while_the_end_is_made(provider: FakeProvider, tmp_path: Path) -> None:
    """Responses repeats all that was said at its end: far more than what is on its way to a slow reader."""
    provider.forget()
    provider.script(lambda received: Behaviour(reply=Reply((WORD * 10_000,) * 50)))
    with watched(provider, CONFIG, folder=tmp_path) as proxy:
        held(proxy, "/leave")
        before = held(proxy)
        speaker = Speaker(provider, proxy, Dialect.RESPONSES)
        speaker.items = said_by_user(Dialect.RESPONSES, '<**!six.m**> <**stopMessage:"go on",1**> tell me everything')
        reader = SlowReader(proxy, speaker)
        reader.take_until(b"response.output_text.done")
        until(  # one task waits for the client, and no turn
            lambda: ((now := held(proxy, "/look"))["pokes"], now["alive"]) == (1, 0), 3, lambda: held(proxy, "/look")
        )
        reader.close()
        until(lambda: held(proxy, "/look")["pokes"] == 0, 3, lambda: held(proxy, "/look"))
        settles(proxy, before)
