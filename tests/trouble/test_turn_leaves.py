"""R8: clients leave at any moment of a turn of several rounds. Within a second nobody works for them, and nothing is left over.

Half of them go over HTTP/2 by resetting their stream, which gives no disconnect of a connection.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Http2, Leave, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import Mitmdump
from tests.rig.wire import Reply
from tests.sheet import seen
from tests.system.speaker import Speaker, said_by_user
from tests.system.tool import CONFIG, HOSTS
from tests.system.watched import held, settles, watched

pytestmark = pytest.mark.system

CLIENTS = 300 if LONG else 60
AT_ONCE = 12
CLOCK = "  clock: {enabled: true, ntp: {enabled: false}}\n"
SLOW = Reply(tuple(f"w{n} " for n in range(12)))


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def house(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    patience = {"early_head_s": 0.4, "keep_alive_s": 0.1, "whole_s": 0.3}
    with watched(
        provider, CONFIG + CLOCK, patience, folder=tmp_path_factory.mktemp("leaves"), options=["routecodex_http2=true"]
    ) as started:
        yield started
        assert started.alive
        assert "RouteCodex failed" not in started.log
        assert not started.crash


@dataclass
class Leaver:
    """One client: in which of up to four rounds it goes, and how the provider behaves meanwhile."""

    number: int
    dialect: Dialect
    stream: bool
    http2: bool
    rounds: int
    leave: Leave
    behaviour: Behaviour
    session: str
    reminded: bool
    """A reminder of its session is due: it is reserved for this call."""
    received: list[Received] = field(default_factory=list)
    answer: Answer | None = None

    @property
    def token(self) -> str:
        return f"leaver{self.number:04}."

    def __str__(self) -> str:
        form = f"{self.dialect}{' stream' if self.stream else ''}{' h2' if self.http2 else ''}"
        return f"{self.token} {form} rounds {self.rounds} {self.leave} sent {len(self.received)}"


STREAMED = (
    (Behaviour(reply=SLOW, delay_s=0.03), 0.45),
    (Behaviour(reply=SLOW, wait_s=0.2, delay_s=0.01), 0.4),
    (Behaviour(reply=SLOW, body_wait_s=0.2, delay_s=0.01), 0.4),
    (Behaviour(reply=Reply("thinks", thinking="I think and think. " * 8), delay_s=0.03), 0.45),
    (Behaviour(reply=Reply("quick")), 0.03),
)
AS_JSON = (
    (Behaviour(reply=SLOW, wait_s=0.3), 0.3),
    (Behaviour(reply=SLOW, stall_at=30, stall_s=0.3), 0.3),
    (Behaviour(reply=Reply("quick")), 0.03),
)
"""How a provider behaves in every round, and about how long one takes."""


def leaver(number: int, chance: random.Random) -> Leaver:
    """Somebody who goes at some moment of some round."""
    stream, rounds = chance.random() < 0.7, chance.randint(1, 4)
    behaviour, takes_s = chance.choice(STREAMED if stream else AS_JSON)
    at = chance.uniform(0, rounds) * 0.95
    chunks = round(at * 12) + 1 if stream and takes_s > 0.1 and chance.random() < 0.3 else None
    leave = Leave(chunks=chunks, after_s=None if chunks else max(0.01, at * takes_s), reset=chance.random() < 0.5)
    dialect = chance.choice(list(Dialect))
    session = str(uuid.UUID(int=chance.getrandbits(128)))
    return Leaver(number, dialect, stream, number % 2 == 1, rounds, leave, behaviour, session, number % 3 == 0)


class Crowd:
    def __init__(self, provider: FakeProvider, proxy: Mitmdump, leavers: list[Leaver]) -> None:
        self.provider, self.proxy, self.leavers = provider, proxy, leavers
        self.by_token = {one.token: one for one in leavers}
        self.store = ClockStore(proxy.sessions)
        provider.script(self._rule)

    def _rule(self, received: Received) -> Behaviour | None:
        text = received.body.decode()
        found = self.by_token.get(text[text.find("leaver") :][:11])
        if found is None:
            return None
        found.received.append(received)
        return found.behaviour

    async def go(self) -> None:
        """A dozen at a time; those of HTTP/2 share a connection, which stays."""
        for one in self.leavers:
            if one.reminded:
                now_ms = round(time.time() * 1000)
                task = Task(one.token, one.session, now_ms, now_ms, now_ms, "look at the oven")
                self.store.update(one.session, lambda tasks, task=task: (*tasks, task))  # type: ignore[misc]
        for start in range(0, len(self.leavers), AT_ONCE):
            batch = self.leavers[start : start + AT_ONCE]
            shared = {one.dialect for one in batch if one.http2}
            connections = {dialect: Http2(Route(HOSTS[dialect], self.proxy)) for dialect in shared}
            for connection in connections.values():
                await connection.__aenter__()
            try:
                await asyncio.gather(*(self.one(one, connections.get(one.dialect)) for one in batch))
                await asyncio.sleep(0.3)
            finally:
                for connection in connections.values():
                    await connection.__aexit__(None, None, None)

    async def one(self, one: Leaver, shared: Http2 | None) -> None:
        speaker = Speaker(self.provider, self.proxy, one.dialect, one.stream, session=one.session)
        text = f'<**!six.m**> <**stopMessage:"go on",{one.rounds - 1}**> {one.token}'
        speaker.items = said_by_user(one.dialect, text if one.rounds > 1 else f"<**!six.m**> {one.token}")
        how: dict[str, Any] = {"headers": speaker.sent_headers, "body": speaker.body, "leave": one.leave}
        if one.http2 and shared is not None:
            one.answer = await shared.send("POST", speaker.path, **how)
        else:
            async with Http1(Route(HOSTS[one.dialect], self.proxy)) as client:
                one.answer = await client.send("POST", speaker.path, **how)


def test_r8_clients_leave_at_any_moment(house: Mitmdump, provider: FakeProvider) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    provider.forget()
    Speaker(provider, house).ask("hello")
    written = [house.folder / "user" / f"usage.sqlite{rest}" for rest in ("", "-wal", "-shm")]  # open from the first call on
    provider.wait_until(lambda: all(file.exists() for file in written))
    before, files, connections = held(house), house.open_files, provider.open_connections
    crowd = Crowd(provider, house, [leaver(number, random.Random(seed + number)) for number in range(CLIENTS)])
    asyncio.run(crowd.go())
    sent = [received for one in crowd.leavers for received in one.received]
    provider.wait_until(lambda: all((received.left_at or received.finished_at) is not None for received in sent))
    provider.wait_until(lambda: provider.open_connections <= connections)
    kept = settles(house, before)
    rounds_then = {one.token: len(one.received) for one in crowd.leavers}
    time.sleep(1)

    left = [one for one in crowd.leavers if one.answer is not None and one.answer.ended == "left"]
    assert len(left) > CLIENTS * 0.7, "most came too late to leave"
    for one in left:
        assert len(one.received) == rounds_then[one.token], f"a round began when all was over: {one}"
        for received in one.received:
            assert (received.left_at or received.finished_at) is not None, f"a provider still works: {one}"
    rounds = sorted(len(one.received) for one in left)
    print(f"{len(left)} of {CLIENTS} left, in rounds {[rounds.count(n) for n in range(5)]}")
    assert house.open_files is None or files is None or house.open_files <= files + 2
    assert provider.open_connections <= connections
    assert (kept["calls"], kept["retrying"], kept["reserved"]) == (0, 0, 0)
    told = [one for one in crowd.leavers if one.reminded and one.received]
    counts = [crowd.store.load(one.session)[0].delivery_count for one in told]
    assert all(count == 0 for one, count in zip(told, counts, strict=True) if not any(r.bytes_sent for r in one.received))
    assert set(counts) == {0, 1}
    kept.pop("names")
    print(f"{len(told)} had a reminder, {counts.count(1)} heard of it before they left; at the end: {kept}")
    answer = Speaker(provider, house).ask("still here?")
    assert answer.status == 200
    seen("R8", f"{len(left)} of {CLIENTS} left within turns: 0 rounds begun afterwards, 0 tasks or reminders left")


@pytest.mark.parametrize("text", ["hello", "<**!six.m**> hello", '<**!six.m**> <**stopMessage:"go on",2**> hello'])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_asked_and_reset_in_one_breath(house: Mitmdump, provider: FakeProvider, dialect: Dialect, text: str) -> None:
    """A busy proxy reads the request and its reset together: then nothing is sent at all."""
    Speaker(provider, house).ask("hello")
    provider.forget()
    before = held(house)
    speaker = Speaker(provider, house, dialect, items=said_by_user(dialect, text))

    async def ask_and_reset() -> None:
        async with Http2(Route(HOSTS[dialect], house)) as client:
            number = client._h2.get_next_available_stream_id()
            lines = [(":method", "POST"), (":authority", client.route.authority), (":scheme", "https"), (":path", speaker.path)]
            lines += [(name.lower(), value) for name, value in speaker.sent_headers]
            client._h2.send_headers(number, lines)
            client._h2.send_data(number, speaker.body, end_stream=True)
            client._h2.reset_stream(number, error_code=8)
            await client._flush()
            await asyncio.sleep(0.2)
            assert (await client.send("POST", speaker.path, headers=speaker.sent_headers, body=speaker.body)).status == 200

    asyncio.run(ask_and_reset())
    expected = 3 if "stopMessage" in text else 1
    assert len(provider.calls) == expected, "the call that nobody waited for was sent"
    settles(house, before)
