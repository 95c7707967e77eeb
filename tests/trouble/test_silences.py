"""F12: a provider that only says that it is there, an error that takes its time, half a JSON: each comes to an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Asked, Reply, events
from tests.system.tool import CONFIG, Tool, side_by_side, text_of

pytestmark = pytest.mark.system

_TIMES = "proxy:\n  timeouts: {firstByteMs: 1500, idleMs: 1500, contentMs: 2000}\n"
ENDLESS = 2000
SIGNS = {
    Dialect.MESSAGES: b'event: ping\ndata: {"type": "ping"}\n\n',
    Dialect.CHAT: b": OPENROUTER PROCESSING\n\n",
    Dialect.RESPONSES: b'event: keepalive\ndata: {"type":"keepalive","sequence_number":3}\n\n',
    Dialect.GEMINI: b": here\n\n",
}


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    config = CONFIG.replace("proxy:\n", _TIMES, 1)
    with Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path_factory.mktemp("silent")) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


Everywhere = Callable[[Callable[[Tool], None]], None]


@pytest.fixture
def everywhere(provider: FakeProvider, proxy: Mitmdump) -> Everywhere:
    return partial(side_by_side, provider, proxy)


def said(dialect: Dialect, count: int) -> tuple[bytes, ...]:
    """The first events of an answer, and then nothing but signs of life."""
    whole = events(Reply(("one ", "two ", "three")), Asked(dialect, "generate", "m", stream=True))
    return (*whole[:count], *([SIGNS[dialect]] * ENDLESS))


def test_a_provider_that_only_says_that_it_is_there_is_replaced(everywhere: Everywhere) -> None:
    @everywhere
    def in_one(tool: Tool) -> None:
        opening = 0 if tool.dialect is Dialect.GEMINI else 1
        tool.enqueue(Behaviour(events=said(tool.dialect, opening), delay_s=0.05))
        answer = tool.ask("<**six.m**> hello", stream=True)
        assert (answer.status, answer.ended) == (200, "complete")
        assert text_of(tool.dialect, answer.body, True) == "m was asked: hello"
        first, second = tool.calls
        tool.provider.wait_until(lambda: first.left_early)
        assert first.packets_sent > 20, "it was not silent"
        assert second.finished_at is not None


def test_one_that_stops_within_its_answer_ends_in_an_error(everywhere: Everywhere) -> None:
    @everywhere
    def in_one(tool: Tool) -> None:
        count = {Dialect.MESSAGES: 4, Dialect.CHAT: 2, Dialect.RESPONSES: 5, Dialect.GEMINI: 1}[tool.dialect]
        tool.enqueue(Behaviour(events=said(tool.dialect, count), delay_s=0.05))
        answer = tool.ask("<**six.m**> hello", stream=True)
        assert answer.ended == "complete"
        assert "one " in answer.text
        assert "nothing but that it is there" in answer.text
        (call,) = tool.calls
        tool.provider.wait_until(lambda: call.left_early)
        assert call.packets_sent > 20


EMPTY = {
    Dialect.MESSAGES: b"event: content_block_delta\ndata: "
    b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}\n\n',
    Dialect.CHAT: b'data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}\n\n',
    Dialect.RESPONSES: b"event: response.output_text.delta\ndata: "
    b'{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":""}\n\n',
    Dialect.GEMINI: b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"index":0}]}\n\n',
}


def test_texts_without_a_letter_are_signs_of_life(everywhere: Everywhere) -> None:
    @everywhere
    def in_one(tool: Tool) -> None:
        count = {Dialect.MESSAGES: 3, Dialect.CHAT: 2, Dialect.RESPONSES: 5, Dialect.GEMINI: 1}[tool.dialect]
        only_said = said(tool.dialect, count)[:count]
        tool.enqueue(Behaviour(events=(*only_said, *([EMPTY[tool.dialect]] * ENDLESS)), delay_s=0.05))
        answer = tool.ask("<**six.m**> hello", stream=True)
        assert answer.ended == "complete"
        assert "nothing but that it is there" in answer.text
        tool.provider.wait_until(lambda: tool.calls[0].left_early)


@pytest.mark.parametrize("target", ["glm.glm-4.7", "claude.claude-sonnet-4-5"])
def test_in_translation_too(provider: FakeProvider, everywhere: Everywhere, target: str) -> None:
    def silent(received: Received) -> Behaviour:
        assert received.asked is not None
        return Behaviour(events=said(received.asked.dialect, 1), delay_s=0.05)

    @everywhere
    def in_one(tool: Tool) -> None:
        provider.script(silent)
        answer = tool.ask(f"<**{target}**> hello", stream=True)
        assert answer.ended == "complete"
        assert answer.status in (400, 502, 504)

    assert len(provider.calls) >= len(Dialect)
    provider.wait_until(lambda: all(received.left_early for received in provider.calls))


def test_an_error_that_takes_its_time(everywhere: Everywhere) -> None:
    @everywhere
    def in_one(tool: Tool) -> None:
        tool.enqueue(Behaviour(status=503, error="x" * 4000, bytes_per_packet=2, delay_s=0.05))
        answer = tool.ask("<**six.m**> hello", stream=True)
        assert text_of(tool.dialect, answer.body, True) == "m was asked: hello"
        tool.provider.wait_until(lambda: tool.calls[0].left_early)


@pytest.mark.parametrize(
    "text", ["<**six.m**> hello", '<**six.m**> <**stopMessage:"go on",1**> hello'], ids=["alone", "in rounds"]
)
def test_half_a_json(everywhere: Everywhere, text: str) -> None:
    """The attempt, not the client's ten minutes."""

    @everywhere
    def in_one(tool: Tool) -> None:
        tool.enqueue(Behaviour(stall_at=20, stall_s=600))
        answer = tool.ask(text)
        assert answer.status == 200
        assert "m was asked: " in answer.text
        tool.provider.wait_until(lambda: tool.calls[0].left_early)


def test_a_long_good_answer_is_whole(everywhere: Everywhere) -> None:
    @everywhere
    def in_one(tool: Tool) -> None:
        reply = Reply(tuple(f"w{number} " for number in range(60)))
        tool.enqueue(Behaviour(reply=reply, delay_s=0.08))
        answer = tool.ask("<**six.m**> hello", stream=True)
        assert text_of(tool.dialect, answer.body, True) == "".join(reply.text)
        assert len(tool.calls) == 1
