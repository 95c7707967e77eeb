"""Live: what a provider sends reaches the client before it sends more, in every round of a turn.

It writes an event, and the next one when its client has all that was said up to there: what is kept back stops the answer. Kept
back may be what ends a block or an answer, never a word, a thought, or a piece of what a tool is called with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Http2, Route
from tests.rig.pipe import Pipe
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply, ToolUse
from tests.system.grammar import read_stream
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write

pytestmark = pytest.mark.system

ROUNDS = 3
WORDS = 12 if LONG else 6
LOOKS = 3_000
"""A hundred a second."""


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("live")
    options = ["routecodex_http2=true"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, options=options) as started:
        yield started


@dataclass
class Heard:
    dialect: Dialect
    client: type[Http1 | Http2]
    answer: Answer = field(default_factory=Answer)
    written: list[bytes] = field(default_factory=list)
    """Of the words, those that the provider has written for this client."""
    missing: list[bytes] = field(default_factory=list)
    """Of those, the ones that it does not have yet."""
    looks: int = 0
    kept_back: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Everything that is to come by itself."""
        words = [_word(self.token, round_, place) for round_ in range(ROUNDS) for place in range(WORDS)]
        self.words = [word.encode() for word in (*words, *(piece[:6] for of in "tc" for piece in _pieces(self.token, of)))]

    @property
    def token(self) -> str:
        return _token(self.dialect, self.client)

    def note(self, data: bytes) -> bool:
        """Whether it was for this client."""
        found = [word for word in self.words if word in data]
        self.written += found
        self.missing += found
        return bool(found)

    def all_of_it(self) -> bool:
        """The client has what was written up to now; or never gets it, which is noted."""
        if self.missing:
            body = self.answer.body
            self.missing = [word for word in self.missing if word not in body]
        self.looks = self.looks + 1 if self.missing else 0
        if self.looks < LOOKS:
            return not self.missing
        self.kept_back += self.missing
        self.missing, self.looks = [], 0
        return True


def _word(token: str, round_: int, place: int) -> str:
    return f"{token}r{round_}w{place:02}."


def _token(dialect: Dialect, client: type[Http1 | Http2]) -> str:
    return f"{dialect.name}{client.__name__}"


def _pieces(token: str, of: str) -> list[str]:
    """As long as the provider cuts them."""
    caller = "abcdefgh"[[_token(dialect, client) for dialect in Dialect for client in (Http1, Http2)].index(token)]
    return [f"~{of}{caller}{place:02}~......" for place in range(WORDS)]


def _reply(token: str, round_: int) -> Reply:
    """The first round thinks, the last one calls a tool of the client's."""
    words = tuple(_word(token, round_, place) + " " for place in range(WORDS))
    thinking = "".join(_pieces(token, "t")) if round_ == 0 else ""
    called = ToolUse("Bash", {"command": "".join(_pieces(token, "c"))})
    return Reply(words, thinking=thinking, calls=(called,) if round_ == ROUNDS - 1 else ())


async def _hear(proxy: Mitmdump, heard: Heard) -> None:
    dialect, client, token = heard.dialect, heard.client, heard.token
    path, body = write(dialect, "m", [("user", f'<**stopMessage:"go on {token}",{ROUNDS - 1}**> {token}')], True)
    async with client(Route(HOSTS[dialect], proxy)) as connected:
        sent = [CREDENTIALS[dialect], ("x-session-id", f"live-{token}-{time.monotonic()}")]
        await connected.send("POST", path, body=body, headers=sent, within=600, into=heard.answer)


def test_every_word_of_three_rounds_comes_as_it_is_sent(
    proxy: Mitmdump, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All dialects, over HTTP/1.1 and HTTP/2, at the same time."""
    provider.forget()
    all_heard = [Heard(dialect, client) for dialect in Dialect for client in (Http1, Http2)]
    write_packet = Pipe.write

    async def noted(pipe: Pipe, data: bytes) -> None:
        any(heard.note(data) for heard in all_heard)
        await write_packet(pipe, data)

    def rule(received: Received) -> Behaviour:
        asked = received.body.decode()
        heard = next(heard for heard in all_heard if heard.token in asked)
        reply = _reply(heard.token, asked.count(f"go on {heard.token}"))
        return Behaviour(reply=reply, delay_s=0.001, body_wait_s=0.001, until=heard.all_of_it)

    provider.script(rule)
    monkeypatch.setattr(Pipe, "write", noted)

    async def together() -> None:
        await asyncio.gather(*(_hear(proxy, heard) for heard in all_heard))

    asyncio.run(together())
    for heard in all_heard:
        assert (heard.answer.status, heard.answer.ended) == (200, "complete")
        assert heard.answer.version == ("HTTP/2" if heard.client is Http2 else "HTTP/1.1")
        token = _token(heard.dialect, heard.client)
        rounds = ["".join(_word(token, round_, place) + " " for place in range(WORDS)) for round_ in range(ROUNDS)]
        assert read_stream(heard.dialect, heard.answer.body).text == "\n\n".join(rounds)
        assert set(heard.written) == set(heard.words)
        assert heard.kept_back == [], "kept back until more came"
