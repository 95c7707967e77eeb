"""`--set routecodex_http2=true`: many calls at once on one connection, each with an answer of its own."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http2, Leave, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, text_of, write

pytestmark = pytest.mark.system

ANTHROPIC = "https://api.anthropic.com"
TOGETHER = 12


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("http2")
    options = ["routecodex_http2=true"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, options=options) as started:
        yield started
        assert not started.crash


@pytest.fixture(autouse=True)
def fresh(provider: FakeProvider) -> None:
    provider.forget()


async def ask(client: Http2, text: str, *, stream: bool = True, dialect: Dialect = Dialect.MESSAGES, **how: object) -> Answer:
    path, body = write(dialect, "m-x", [("user", text)], stream)
    return await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]], **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("tag, host", [("", "api.anthropic.com"), ("<**six.m**> ", "six.example")])
def test_twelve_at_once(proxy: Mitmdump, provider: FakeProvider, tag: str, host: str) -> None:
    """F11: not five and then the next five. Nobody answers before all have been asked."""
    provider.always(Behaviour(before="hang"), path="never")

    async def together() -> list[Answer]:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            provider.always(Behaviour(wait_s=1, until=lambda: len(provider.calls) >= TOGETHER))
            calls = [ask(client, f"{tag}token{number:02}") for number in range(TOGETHER)]
            return list(await asyncio.gather(*calls))

    answers = asyncio.run(together())
    for number, answer in enumerate(answers):
        assert (answer.version, answer.status, answer.ended) == ("HTTP/2", 200, "complete")
        assert text_of(Dialect.MESSAGES, answer.body, True).endswith(f"token{number:02}")
        assert answer.body.count(b"event: message_stop") == 1
        assert answer.header("transfer-encoding") is None
    assert len(provider.calls) == TOGETHER
    asked, answered = ([getattr(one, name) for one in provider.calls] for name in ("at", "head_sent_at"))
    assert max(asked) < min(answered), "some waited for others"
    assert {received.host for received in provider.calls} == {host}


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_every_dialect_also_after_a_failure(proxy: Mitmdump, provider: FakeProvider, dialect: Dialect, stream: bool) -> None:
    async def once() -> Answer:
        async with Http2(Route(HOSTS[dialect], proxy)) as client:
            provider.enqueue(Behaviour(status=503, error="down"))
            return await ask(client, "<**six.m**> bonjour", stream=stream, dialect=dialect)

    answer = asyncio.run(once())
    assert (answer.status, answer.ended) == (200, "complete")
    assert "bonjour" in text_of(dialect, answer.body, stream)
    assert len(provider.calls) == 2


@pytest.mark.parametrize("tag", ["", "<**six.m**> "])
def test_a_body_without_length_is_one_request(proxy: Mitmdump, provider: FakeProvider, tag: str) -> None:
    """Without a length of ours the body would reach an HTTP/1.1 provider as a request of its own."""

    async def once() -> Answer:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            return await ask(client, f"{tag}hello", length=False)

    assert asyncio.run(once()).status == 200
    (received,) = provider.requests
    assert received.header("content-length") == str(len(received.body))
    assert b"hello" in received.body
    assert all(bytes(pipe.received or b"").count(b"POST ") <= 1 for pipe in provider.connections)


def test_a_body_without_length_on_another_path(proxy: Mitmdump, provider: FakeProvider) -> None:
    async def once() -> Answer:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            hidden = b"POST /v1/hidden HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 0\r\n\r\n"
            return await client.send("POST", "/v1/files", body=hidden, headers=[CREDENTIALS[Dialect.MESSAGES]], length=False)

    asyncio.run(once())
    assert [received.target for received in provider.requests] == ["/v1/files"]
    assert b"/v1/hidden" in provider.requests[0].body


def test_answers_of_our_own_and_refusals(proxy: Mitmdump, provider: FakeProvider) -> None:
    async def several() -> list[Answer]:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            texts = ("<**echo**> said by nobody", "<**status**>", "<**nosuch.m**> hello")
            return list(await asyncio.gather(*(ask(client, text, stream=stream) for text in texts for stream in (True, False))))

    answers = asyncio.run(several())
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 400, 400]
    assert all(answer.ended == "complete" for answer in answers)
    assert provider.calls == []


def test_one_stream_is_reset_and_the_others_live(proxy: Mitmdump, provider: FakeProvider) -> None:
    """Its provider hears at once that nobody listens any more; the connection and its other streams go on."""
    words = Behaviour(reply=Reply(tuple(f"w{n} " for n in range(20))), delay_s=0.05)
    provider.script(lambda received: dataclasses.replace(words, ending="hang") if b"leaves" in received.body else words)

    async def some_leave() -> tuple[list[Answer], list[Answer]]:
        loop = asyncio.get_running_loop()
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            leaving = [ask(client, f"<**six.m**> leaves {n}", leave=Leave(chunks=3)) for n in range(4)]
            staying = [ask(client, f"<**six.m**> stays {n}") for n in range(4)]
            tasks = [loop.create_task(one) for one in leaving + staying]
            left = list(await asyncio.gather(*tasks[:4]))
            await asyncio.to_thread(provider.wait_until, lambda: sum(received.left_early for received in provider.calls) == 4)
            return left, list(await asyncio.gather(*tasks[4:]))

    left, stayed = asyncio.run(some_leave())
    assert [answer.ended for answer in left] == ["left"] * 4
    for answer in stayed:
        assert answer.ended == "complete"
        assert b"w19 " in answer.body
    assert len(provider.calls) == 8
    assert {received.left_early for received in provider.calls if b"stays" in received.body} == {False}


def test_a_stream_that_is_reset_before_the_head(proxy: Mitmdump, provider: FakeProvider) -> None:
    """While the provider says nothing yet, and while a failed attempt is being repeated: no attempt follows."""
    provider.always(Behaviour(before="hang"))

    async def leaves() -> Answer:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            answer = await ask(client, "<**six.m**> hello", leave=Leave(when=lambda: len(provider.calls) == 1))
            await asyncio.to_thread(provider.wait_until, lambda: provider.calls[0].left_early)
            provider.forget()
            after = await ask(client, "<**echo**> still here")
            assert after.status == 200
            return answer

    assert asyncio.run(leaves()).ended == "left"
    assert provider.calls == []


def test_the_pace_of_a_slow_stream_is_its_own(proxy: Mitmdump, provider: FakeProvider) -> None:
    """A silent stream holds nobody up: the slow one is answered when the quick one has its whole answer."""
    answered: list[Answer] = []

    def rule(received):  # type: ignore[no-untyped-def]
        return Behaviour(wait_s=1, until=lambda: bool(answered)) if b"slow" in received.body else None

    provider.script(rule)

    async def both() -> Answer:
        async with Http2(Route(ANTHROPIC, proxy)) as client:
            slow = asyncio.ensure_future(ask(client, "<**six.m**> slow"))
            await asyncio.to_thread(provider.wait_for, 1)
            quick = await ask(client, "<**six.m**> quick")
            assert not slow.done()
            answered.append(quick)
            return await slow

    assert asyncio.run(both()).status == 200
    assert [answer.status for answer in answered] == [200]
