"""Requests that come before the last one's answer, answers that nobody asked for: each meets its own, however it is cut."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, HOSTS, text_of, write

pytestmark = pytest.mark.system

MESSAGES = HOSTS[Dialect.MESSAGES]
CASES = 400 if LONG else 25


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module", params=["usual", "without shortcuts"])
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Mitmdump]:
    options = [f"routecodex_shortcuts={'true' if request.param == 'usual' else 'false'}"]
    folder = tmp_path_factory.mktemp("pipelined")
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, options=options) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


@pytest.fixture(autouse=True)
def fresh(provider: FakeProvider) -> None:
    provider.forget()


def chunked(body: bytes, size: int, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces) + b"0\r\n" + trailers + b"\r\n"


def posted(path: str, framed: bytes, how: str = "Transfer-Encoding: chunked") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: api.anthropic.com\r\nx-api-key: k\r\n{how}\r\n\r\n".encode() + framed


async def answers_to(proxy: Mitmdump, raw: bytes, cuts: list[int], count: int) -> list[Answer]:
    async with Http1(Route(MESSAGES, proxy)) as client:
        for start, end in pairwise(sorted({0, len(raw), *cuts})):
            await client.write_raw(raw[start:end])
            await asyncio.sleep(0)
        return [await client.read_answer(within=90) for _ in range(count)]


def test_calls_that_come_together_are_answered_one_after_the_other(proxy: Mitmdump, provider: FakeProvider) -> None:
    raw, said = b"", ["hello", "<**six.m**> there", "<**echo**> here", "again", "<**six.m**> at last"]
    for text in said:
        path, body = write(Dialect.MESSAGES, "m", [("user", text)], False)
        raw += posted(path, json.dumps(body).encode(), f"Content-Length: {len(json.dumps(body))}")
    answers = asyncio.run(answers_to(proxy, raw, [], len(said)))
    assert [answer.status for answer in answers] == [200] * len(said)
    told = [text_of(Dialect.MESSAGES, answer.body, False) for answer in answers]
    assert told[:2] == ["m was asked: hello", "m was asked: there"]
    assert told[3:] == ["m was asked: again", "m was asked: at last"]
    assert len(provider.calls) == 4


def test_bodies_in_chunks_that_look_like_anything(proxy: Mitmdump, provider: FakeProvider) -> None:
    chance = random.Random(5)

    def repeated(received: Received) -> Behaviour:
        trailers = chance.choice([(), (("x-sum", "1"),)])
        return Behaviour(
            body=b"was " + received.body, framing="chunked", bytes_per_packet=chance.choice([0, 1, 3]), trailers=trailers
        )

    for _ in range(CASES):
        provider.forget()
        provider.script(repeated)
        bodies = [bytes(chance.choices(b"ab\r\n0 GET/HTP1.:;", k=chance.randint(1, 60))) + b"%d" % one for one in range(3)]
        raw = b"".join(
            posted(
                "/v1/files",
                chunked(
                    body,
                    chance.choice([1, 2, 7, 99]),
                    chance.choice([b"", b";x=y", b";"]),
                    chance.choice([b"", b"x-sum: 1\r\n"]),
                ),
            )
            for body in bodies
        )
        cuts = chance.sample(range(len(raw)), chance.choice([0, 1, 5, 30]))
        answers = asyncio.run(answers_to(proxy, raw, cuts, len(bodies)))
        assert [(answer.status, answer.body) for answer in answers] == [(200, b"was " + body) for body in bodies]
        assert [received.body for received in provider.requests] == bodies


@pytest.mark.parametrize("trailers", [b"", b"x-sum: 1\r\n"], ids=["alone", "trailers"])
@pytest.mark.parametrize("size", [1, 9])
def test_an_answer_that_nobody_asked_for_meets_no_request(
    proxy: Mitmdump, provider: FakeProvider, size: int, trailers: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    more = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsomebody's"
    first = Behaviour(raw=head + chunked(b"first", size, b"", trailers) + more, ending="hang")
    provider.script(lambda received: first if received.body == b"1" else Behaviour(body=b"second"))

    async def both() -> list[Answer]:
        async with Http1(Route(MESSAGES, proxy)) as client:
            return [await client.send("POST", "/v1/files", body=body, within=90) for body in (b"1", b"2")]

    assert [answer.body for answer in asyncio.run(both())] == [b"first", b"second"]
