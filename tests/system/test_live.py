"""Live: what a provider sends reaches the client at once, in every round of a turn.

The provider writes an event each 100 ms over three rounds; its clock and the client's are the same. What may be late by design
is what ends a block or an answer, never a word, a thought, or a piece of what a tool is called with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

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
EVERY_S = 0.1
THINKS_S = 0.6
"""Before a round's first word: longer than a word may take, so that nothing rides along with the next round."""
LATE_S = 0.25


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
    answer: Answer

    def came(self, word: str) -> float:
        """When the client had the word."""
        text = b""
        for at, data in self.answer.chunks:
            text += data
            if word.encode() in text:
                return self.answer.began + at
        raise AssertionError(f"{word} never came")


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


async def _hear(proxy: Mitmdump, dialect: Dialect, client: type[Http1 | Http2]) -> Heard:
    token = _token(dialect, client)
    path, body = write(dialect, "m", [("user", f'<**stopMessage:"go on {token}",{ROUNDS - 1}**> {token}')], True)
    async with client(Route(HOSTS[dialect], proxy)) as connected:
        sent = [CREDENTIALS[dialect], ("x-session-id", f"live-{token}-{time.monotonic()}")]
        answer = await connected.send("POST", path, body=body, headers=sent, within=60)
    return Heard(dialect, client, answer)


def test_every_word_of_three_rounds_comes_as_it_is_sent(
    proxy: Mitmdump, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All dialects, over HTTP/1.1 and HTTP/2, at the same time."""
    provider.forget()
    written: list[tuple[float, bytes]] = []
    write_packet = Pipe.write

    async def stamped(pipe: Pipe, data: bytes) -> None:
        written.append((time.monotonic(), data))
        await write_packet(pipe, data)

    def rule(received: Received) -> Behaviour:
        asked = received.body.decode()
        token = next(token for dialect in Dialect for client in (Http1, Http2) if (token := _token(dialect, client)) in asked)
        return Behaviour(reply=_reply(token, asked.count(f"go on {token}")), delay_s=EVERY_S, body_wait_s=THINKS_S)

    provider.script(rule)
    monkeypatch.setattr(Pipe, "write", stamped)

    async def together() -> list[Heard]:
        return list(await asyncio.gather(*(_hear(proxy, dialect, client) for dialect in Dialect for client in (Http1, Http2))))

    late: list[tuple[float, str]] = []
    for heard in asyncio.run(together()):
        assert (heard.answer.status, heard.answer.ended) == (200, "complete")
        assert heard.answer.version == ("HTTP/2" if heard.client is Http2 else "HTTP/1.1")
        token = _token(heard.dialect, heard.client)
        rounds = ["".join(_word(token, round_, place) + " " for place in range(WORDS)) for round_ in range(ROUNDS)]
        assert read_stream(heard.dialect, heard.answer.body).text == "\n\n".join(rounds)
        expected = [_word(token, round_, place) for round_ in range(ROUNDS) for place in range(WORDS)]
        for word in (*expected, *(piece[:6] for of in "tc" for piece in _pieces(token, of))):
            sent = next(at for at, data in written if word.encode() in data and b"HTTP/1.1 2" not in data)
            late.append((heard.came(word) - sent, word))
    assert len(late) == len(Dialect) * 2 * (ROUNDS + 2) * WORDS
    print(f"{len(late)} events, the latest after {max(late)[0] * 1000:.0f} ms ({max(late)[1]})")
    assert not [(f"{after:.3f}", word) for after, word in late if after > LATE_S]
    assert min(late)[0] > -0.001
