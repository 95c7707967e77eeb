"""A slow reader: the provider is read at its pace, in every round, and the proxy holds next to nothing meanwhile."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, events
from tests.system.slow_reader import WORD, SlowReader
from tests.system.speaker import Speaker, said_by_user
from tests.system.tool import CONFIG
from tests.system.watched import Highest, held, watched

pytestmark = pytest.mark.system

ROUND_BYTES = 25 << 20
SLOW_S = 10.0 if LONG else 3.0
GROWTH_BYTES = 8 << 20
AHEAD_BYTES = ROUND_BYTES * 3 // 5
"""How much further than its client a provider may be: what four sockets' buffers hold in the system."""
DIALECTS = list(Dialect) if LONG else [Dialect.RESPONSES]
"""Responses repeats all that was said in four events at its end."""


def long_answer(received: Received, size: int) -> tuple[tuple[bytes, ...], int]:
    """The events of an answer in small words that is so many bytes long, and how many words it has."""
    assert received.asked is not None
    delta = next(event for event in events(Reply((WORD, WORD)), received.asked) if WORD.encode() in event)
    words = size // len(delta)
    return tuple(events(Reply((WORD,) * words), received.asked)), words


@pytest.fixture
def house(provider: FakeProvider, tmp_path: Path) -> Iterator[Mitmdump]:
    """A new one for each test: memory that one test has used would hide what the next one needs."""
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, options=["flow_detail=0"]) as started:
        yield started


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_answer_of_two_rounds_read_slowly(house: Mitmdump, provider: FakeProvider, dialect: Dialect) -> None:
    """At the start of both rounds the client reads slowly, then quickly: 50 MB, nearly all of it framing of small words.

    Of what the provider sends nothing is read ahead. What was said has to be kept for the history: at the end that is allowed
    on top, once, however often the dialect repeats it there.
    """
    provider.forget()
    warm = Speaker(provider, house, dialect)
    for _ in range(3):
        warm.told(warm.ask('<**!six.m**> <**stopMessage:"go on",1**> hello'))
    ledger = house.folder / "user" / "usage.sqlite"
    while not ledger.exists():  # a database comes into memory once, with the first calls
        time.sleep(0.1)
    time.sleep(0.3)
    before = house.rss_bytes
    costs = [_read_slowly(house, provider, dialect, before) for _ in range(2 if LONG else 1)]
    for cost in costs:
        print(f"{dialect}: {cost}")
    first = costs[0]
    assert first.ahead < AHEAD_BYTES, "the provider ran ahead of its client"
    assert first.slow < GROWTH_BYTES
    assert first.slow_again < GROWTH_BYTES
    assert first.highest < GROWTH_BYTES + first.said
    assert costs[-1].at_end < first.at_end + GROWTH_BYTES, "a second one costs as much again"


@dataclass(frozen=True)
class Cost:
    """Resident memory beyond what the proxy had before, in bytes: the highest in each phase, and at the end."""

    read: int
    said: int
    ahead: int
    slow: int
    slow_again: int
    highest: int
    at_end: int

    def __str__(self) -> str:
        shown = {name: f"{getattr(self, name) / 1e6:.1f}" for name in self.__dataclass_fields__}
        return ", ".join(f"{name} {value} MB" for name, value in shown.items())


def _read_slowly(house: Mitmdump, provider: FakeProvider, dialect: Dialect, before: int) -> Cost:
    provider.forget()
    words: list[int] = []

    def rule(received: Received) -> Behaviour:
        made, count = long_answer(received, ROUND_BYTES)
        words.append(count)
        return Behaviour(events=made)

    provider.script(rule)
    speaker = Speaker(provider, house, dialect)
    speaker.items = said_by_user(dialect, '<**!six.m**> <**stopMessage:"go on",1**> tell me everything')
    reader = SlowReader(house, speaker)
    try:
        with Highest(house) as highest:
            reader.take_slowly(SLOW_S)
            slow, (received,) = highest.bytes - before, provider.calls
            ahead = received.bytes_sent - reader.taken
            while len(provider.calls) < 2 and reader.take(1 << 16):
                pass
            reader.take_slowly(SLOW_S)
            slow_again = highest.bytes - before
            while reader.take(1 << 16):
                pass
            time.sleep(0.5)
    finally:
        reader.close()
    assert len(provider.calls) == 2
    assert reader.taken > 2 * ROUND_BYTES * 0.95
    assert reader.words > sum(words) * 0.99, "words are missing"
    said = sum(words) * len(WORD)
    return Cost(reader.taken, said, ahead, slow, slow_again, highest.bytes - before, house.rss_bytes - before)


def test_a_long_end_is_whole_whoever_else_wants_something_written(provider: FakeProvider, tmp_path: Path) -> None:
    """While a piece of it waits for the client, the stream is told to write what it has: nothing is left out for that."""
    provider.forget()
    provider.script(lambda received: Behaviour(reply=Reply((WORD * 10_000,) * 50)))
    with watched(provider, CONFIG, folder=tmp_path, options=["flow_detail=0"]) as proxy:
        speaker = Speaker(provider, proxy, Dialect.RESPONSES)
        speaker.items = said_by_user(Dialect.RESPONSES, '<**!six.m**> <**stopMessage:"go on",1**> tell me everything')
        reader = SlowReader(proxy, speaker)
        reader.take_until(b"response.output_text.done")
        for _ in range(3):
            time.sleep(0.1)
            held(proxy, "/poke")
        while reader.take(1 << 16):
            pass
        reader.close()
    assert reader.tail.endswith(b"}\n\n\r\n0\r\n\r\n")
    assert reader.words > 3.9 * 2 * 50 * 10_000, "the end is not whole"


def test_a_long_end_is_not_sent_on_where_a_person_has_ended_the_flow(provider: FakeProvider, tmp_path: Path) -> None:
    """As in mitmweb."""
    provider.forget()
    provider.script(lambda received: Behaviour(reply=Reply((WORD * 10_000,) * 50)))
    with watched(provider, CONFIG, folder=tmp_path, options=["flow_detail=0"]) as proxy:
        speaker = Speaker(provider, proxy, Dialect.RESPONSES)
        speaker.items = said_by_user(Dialect.RESPONSES, '<**!six.m**> <**stopMessage:"go on",1**> tell me everything')
        reader = SlowReader(proxy, speaker)
        reader.take_until(b"response.output_text.done")
        held(proxy, "/kill")
        with contextlib.suppress(OSError):  # it may be a reset
            while reader.take(1 << 16):
                pass
        reader.close()
    assert not reader.tail.endswith(b"\r\n0\r\n\r\n")
    assert reader.words < 3 * 2 * 50 * 10_000, "it was all sent before"


def test_the_slow_reader_gets_everything(house: Mitmdump, provider: FakeProvider) -> None:
    """Read in small bites, byte for byte what a quick reader gets."""
    provider.forget()
    for dialect in Dialect:
        provider.script(lambda received: Behaviour(events=long_answer(received, 300_000)[0]))
        speaker = Speaker(provider, house, dialect)
        speaker.items = said_by_user(dialect, '<**!six.m**> <**stopMessage:"go on",1**> tell me')
        reader, whole = SlowReader(house, speaker), b""
        while True:
            data = reader.socket.recv(3000)
            whole += data
            if whole.endswith(b"\r\n0\r\n\r\n") or not data:
                break
            time.sleep(0.001)
        reader.close()
        assert whole.count(b"lorem ") > 2 * 300_000 / 400
