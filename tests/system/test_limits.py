"""Limits: what is too large, too deep or no call at all is refused in the tool's dialect; who is silent too long is given up."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from routecodex.addons.alarm import LONGEST_S
from routecodex.routing.turn.turn import ERROR_S
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Leave, Route, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, Tool, text_of, write

pytestmark = pytest.mark.system

MIB = 1 << 20
LEAP = Path(__file__).with_name("leap.py")
SMALL = write(Dialect.MESSAGES, "m", [("user", "hello")], False)[1]


def send(tool: Tool, dialect: Dialect, body: bytes, path: str | None = None) -> Answer:
    headers = [CREDENTIALS[dialect], ("content-type", "application/json")]
    return call(HOSTS[dialect], path or write(dialect, "m", [], False)[0], body, proxy=tool.proxy, headers=headers)


def assert_refused(answer: Answer, dialect: Dialect, status: int = 400) -> str:
    """An error as this dialect writes it, that no client repeats by itself; its message."""
    assert answer.status == status
    assert answer.ended == "complete"
    assert answer.header("x-should-retry") == "false"
    assert answer.header("content-type") == "application/json"
    error = answer.json["error"]
    match dialect:
        case Dialect.MESSAGES:
            assert answer.json["type"] == "error"
            assert isinstance(error["type"], str)
        case Dialect.GEMINI:
            assert error["code"] == status
            assert isinstance(error["status"], str)
        case _:
            assert isinstance(error["type"], str)
    assert isinstance(error["message"], str)
    return str(error["message"])


# ---- no call at all ----

NO_CALLS: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"hello",
    "half of it": b'{"messages": [',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "not UTF-8": b'{"model": "\xff\xfe"}',
    "NaN": b'{"temperature": NaN, "messages": []}',
    "deep lists": b'{"messages":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "very deep lists": b"[" * 400_000,
    "deep objects": b'{"messages":[' + b'{"a":' * 3_000 + b"1" + b"}" * 3_000 + b"]}",
    "a huge number": b'{"messages": 1' + b"0" * 100_000 + b"}",
}


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("name", NO_CALLS)
def test_what_is_no_call_is_refused(tool: Tool, dialect: Dialect, name: str) -> None:
    assert_refused(send(tool, dialect, NO_CALLS[name]), dialect)
    assert tool.received == []


WRONG: list[tuple[Dialect, dict[str, Any]]] = [
    (Dialect.MESSAGES, {"model": 5, "messages": [{"role": "user", "content": "hi"}]}),
    (Dialect.MESSAGES, {"model": "m", "messages": "hi"}),
    (Dialect.MESSAGES, {"model": "m", "messages": ["hi"]}),
    (Dialect.MESSAGES, {"model": "m", "messages": [{"role": "user", "content": 7}]}),
    (Dialect.CHAT, {"model": ["m"], "messages": [{"role": "user", "content": "hi"}]}),
    (Dialect.CHAT, {"model": "m", "messages": {"role": "user"}}),
    (Dialect.CHAT, {"model": "m", "messages": [[]]}),
    (Dialect.RESPONSES, {"model": {}, "input": "hi"}),
    (Dialect.RESPONSES, {"model": "m", "input": 3}),
    (Dialect.RESPONSES, {"model": "m", "input": [3]}),
    (Dialect.GEMINI, {"contents": "hi"}),
    (Dialect.GEMINI, {"contents": ["hi"]}),
]


@pytest.mark.parametrize("dialect, body", WRONG)
def test_wrong_types_are_refused(tool: Tool, dialect: Dialect, body: dict[str, Any]) -> None:
    assert_refused(send(tool, dialect, json.dumps(body).encode()), dialect)
    assert tool.received == []


@pytest.mark.parametrize("dialect", list(Dialect))
def test_odd_types_in_odd_places_break_nothing(tool: Tool, dialect: Dialect) -> None:
    """Each field of a plausible call replaced by each kind of value: an answer or a refusal, never a crash."""
    path, plausible = write(dialect, "m", [("user", "<**six.m**> hello"), ("assistant", "yes"), ("user", "go on")], False)
    plausible |= {
        "tools": [{"name": "t", "type": "function"}],
        "tool_choice": "auto",
        "metadata": {"user_id": "u"},
        "system": "s",
    }
    values: list[Any] = [None, True, -1, 1.5, "", "text", [], [None], [[]], {}, {"text": {}}, [{"type": None}], "\x00\ud800"]

    async def all_of_them() -> list[Answer]:
        answers = []
        async with Http1(Route(HOSTS[dialect], tool.proxy)) as client:
            for changed in _variations(plausible, values):
                body = json.dumps(changed).encode()
                answers.append(await client.send("POST", path, body=body, headers=[CREDENTIALS[dialect]], within=90))
        return answers

    answers = asyncio.run(all_of_them())
    assert len(answers) > 100
    assert {answer.status for answer in answers} <= {200, 400}
    assert "RouteCodex failed in" not in tool.proxy.log
    conversation = next(key for key in ("messages", "input", "contents") if key in plausible)
    typed = json.dumps(plausible[conversation][0])
    assert not any(typed in received.body.decode() for received in tool.received), "the tag was not seen"


def _variations(whole: dict[str, Any], values: list[Any]) -> Iterator[dict[str, Any]]:
    def at(node: Any) -> Iterator[Any]:
        """Every version of this node in which one value inside it is another."""
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, child in pairs:
            for other in (*values, *at(child)):
                copy = dict(node) if isinstance(node, dict) else list(node)
                copy[key] = other
                yield copy

    yield from at(whole)


# ---- too large ----


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_33_mib_are_refused(tool: Tool, dialect: Dialect, chunked: bool) -> None:
    piece = b'{"pad": "' + b"x" * (MIB - 9)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(33):
            yield piece

    headers = [CREDENTIALS[dialect]]
    path = write(dialect, "m", [], False)[0]
    answer = call(HOSTS[dialect], path, pieces() if chunked else piece * 33, proxy=tool.proxy, headers=headers)
    assert answer.status == 413
    assert "32 MiB" in answer.text
    assert tool.received == []


def test_31_mib_pass(tool: Tool) -> None:
    body = json.dumps(SMALL | {"pad": "x" * (31 * MIB)}).encode()
    assert send(tool, Dialect.MESSAGES, body).status == 200
    assert tool.received[0].body == body


# ---- too slow ----

_FIRST_BYTE_S, _IDLE_S = 20, 50
_TIMES = f"proxy:\n  timeouts: {{firstByteMs: {_FIRST_BYTE_S}000, idleMs: {_IDLE_S}000}}\n"
HANGS = Behaviour(before="hang")
SAID_ONE = {Dialect.MESSAGES: 4, Dialect.CHAT: 2, Dialect.RESPONSES: 5, Dialect.GEMINI: 1}
"""After so many events each dialect has said the first word."""


class Quick(Tool):
    """Behind a proxy whose clock leaps when a test says so: nobody is given up because this machine is slow."""

    __slots__ = ()

    def leap(self, seconds: float) -> None:
        """What has been sent to the proxy is heard before. A leap looks like a standstill, after which it waits once more."""
        self._wake()
        for part in (seconds - LONGEST_S + 0.01, LONGEST_S):
            self.move_the_clock(part)
            self._wake()

    def move_the_clock(self, seconds: float) -> None:
        ahead = self.proxy.folder / "ahead"
        (before,) = struct.unpack("d", ahead.read_bytes())
        with ahead.open("r+b") as file:
            file.write(struct.pack("d", before + seconds))

    def _wake(self) -> None:
        assert call("http://clock.rig", "/", b"", proxy=self.proxy, method="GET").status == 200

    def leap_after(self, seconds: float, held: Callable[[], object]) -> None:
        self.provider.wait_until(held)
        self.leap(seconds)


@pytest.fixture(scope="module")
def impatient(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("impatient")
    (folder / "ahead").write_bytes(struct.pack("d", 0.0))
    env, scripts = {"RIG_AHEAD": str(folder / "ahead")}, [LEAP, SCRIPT]
    config = CONFIG.replace("proxy:\n", _TIMES, 1)
    with Mitmdump(script=scripts, config=config, upstream=provider, folder=folder, env=env) as proxy:
        yield proxy


@pytest.fixture
def quick(provider: FakeProvider, impatient: Mitmdump) -> Quick:
    provider.forget()
    return Quick(provider, impatient)


BEFORE_CONTENT = {
    "before the head": HANGS,
    "after the head": Behaviour(body_wait_s=600),
    "after the first event": Behaviour(stall_after=1, stall_s=600),
    "inside an error's body": Behaviour(status=503, error="down", stall_at=5, stall_s=600),
}


def together(
    tool: Tool,
    behaviours: dict[tuple[Dialect, str], list[Behaviour]],
    *,
    until: Callable[[Answer], bool] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> dict[tuple[Dialect, str], Answer]:
    """One streamed call for each dialect and name, all at the same time; each has the behaviours of its attempts in order.

    Silences last `until` that is true of what the client has heard.
    """
    heard = {case: Answer() for case in behaviours}
    waiting = {
        _mark(case): [
            dataclasses.replace(one, until=partial(until, heard[case])) if until is not None else one for one in attempts
        ]
        for case, attempts in behaviours.items()
    }

    def rule(received: Received) -> Behaviour | None:
        mine = next((attempts for mark, attempts in waiting.items() if mark in received.body), [])
        return mine.pop(0) if mine else None

    tool.provider.script(rule)

    async def ask(case: tuple[Dialect, str]) -> Answer:
        path, body = write(case[0], "m", [("user", f"<**six.m**> {_mark(case).decode()}")], True)
        async with Http1(Route(HOSTS[case[0]], tool.proxy)) as client:
            return await client.send("POST", path, body=body, headers=[CREDENTIALS[case[0]]], into=heard[case])

    async def all_of_them() -> list[Answer]:
        asked = asyncio.gather(*map(ask, behaviours))
        await asyncio.to_thread(meanwhile)
        return list(await asked)

    return dict(zip(behaviours, asyncio.run(all_of_them()), strict=True))


def _mark(case: tuple[Dialect, str]) -> bytes:
    return f"call {case[0]} {case[1]} end".encode()


def attempts_of(tool: Tool, case: tuple[Dialect, str]) -> list[Received]:
    return [received for received in tool.received if _mark(case) in received.body]


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("half", [0, 1])
def test_a_provider_that_is_silent_before_its_content_is_replaced(quick: Quick, dialect: Dialect, half: int) -> None:
    """Two at a time: of four that fail in the same instant only three may be repeated."""
    cases = {
        (dialect, name): [behaviour]
        for name, behaviour in list(BEFORE_CONTENT.items())[half::2]
        if (dialect, name) != (Dialect.GEMINI, "after the first event")  # which is content there
    }

    def said_their_part() -> bool:
        silent = [received for received in quick.received if received.behaviour is HANGS or received.head_sent_at is not None]
        return len(silent) == len(cases)

    def first_ones_only() -> None:
        quick.provider.wait_until(said_their_part)
        quick.leap(ERROR_S / 3)
        assert len(quick.received) == len(cases), "given up too early"
        quick.leap(_FIRST_BYTE_S)

    answers = together(quick, cases, meanwhile=first_ones_only)
    for case, answer in answers.items():
        assert (answer.status, answer.ended) == (200, "complete"), case
        assert text_of(case[0], answer.body, True) == f"m was asked: {_mark(case).decode()}", case
        first, _ = attempts_of(quick, case)
        quick.provider.wait_until(lambda first=first: first.left_early, 1)  # type: ignore[misc]


def test_a_provider_that_falls_silent_in_its_answer_is_given_up(quick: Quick) -> None:
    """What has been said stays; an error says that it is not all."""
    reply = Reply(("one ", "two ", "three"))
    cases = {(dialect, ""): [Behaviour(reply=reply, stall_after=SAID_ONE[dialect], stall_s=600)] for dialect in Dialect}

    def all_of_them() -> bool:
        said = {received.asked.dialect: received.packets_sent for received in quick.received if received.asked is not None}
        return said == SAID_ONE

    def silence() -> None:
        quick.leap_after(_IDLE_S / 2, all_of_them)
        assert not any(received.left_early for received in quick.received), "given up too early"
        quick.leap(_IDLE_S + 0.5)  # what was held back for a look has been heard meanwhile

    for case, answer in together(quick, cases, meanwhile=silence).items():
        assert (answer.status, answer.ended) == (200, "complete"), case
        assert "fell silent" in answer.text, case
        assert "one " in answer.text, case
        assert "two" not in answer.text, case
        (only,) = attempts_of(quick, case)
        quick.provider.wait_until(lambda only=only: only.left_early, 1)  # type: ignore[misc]


def test_a_whole_answer_that_stops_in_the_middle_is_asked_for_again(quick: Quick) -> None:
    """Half of it is of no use to anybody, so nothing of it has left."""
    reply = Reply("word " * 60_000)
    quick.provider.enqueue(Behaviour(reply=reply, stall_at=200_000, stall_s=600))
    quick.provider.enqueue(Behaviour(reply=reply))
    with leaping(quick, _IDLE_S + 1, lambda: quick.received and quick.received[0].bytes_sent >= 200_000):
        answer = quick.ask("<**six.m**> hello")
    assert answer.json["content"][0]["text"] == "word " * 60_000
    quick.provider.wait_until(lambda: quick.received[0].left_early, 1)


@contextlib.contextmanager
def leaping(quick: Quick, seconds: float, *held: Callable[[], object]) -> Iterator[None]:
    """Beside what the test does: one leap after the other."""

    def leap() -> None:
        for one in held:
            quick.leap_after(seconds, one)

    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(leap)
        yield
        done.result()


def test_all_of_them_silent(quick: Quick) -> None:
    """Attempts come to an end; the tool hears the first provider's silence as an error of its dialect."""
    quick.provider.always(HANGS)
    over: list[Answer] = []

    def another(number: int) -> Callable[[], object]:
        return lambda: over or len(quick.received) > number

    with leaping(quick, 601, *map(another, range(6))):
        answer = quick.ask("<**six.m**> hello")
        over.append(answer)
        quick.provider._notify()
    assert answer.status == 504
    assert "said nothing" in answer.json["error"]["message"]
    assert 2 <= len(quick.received) <= 6


def test_a_slow_but_steady_answer_is_not_given_up(quick: Quick) -> None:
    """In all it takes far longer than a silence may."""
    leaps: list[int] = []

    def leapt() -> bool:
        return bool(leaps) and leaps[-1] == quick.received[-1].packets_sent

    def another() -> Received | None:
        seen = leaps[-1] if leaps else 0
        return next((one for one in quick.received if one.packets_sent > seen or one.finished_at), None)

    def leap_between_packets() -> None:
        while (call := quick.provider.wait_until(another)) is not None and not call.finished_at:
            quick.leap(_FIRST_BYTE_S / 2)
            leaps.append(call.packets_sent)

    quick.provider.enqueue(Behaviour(reply=Reply(tuple(f"w{n} " for n in range(4))), delay_s=600, until=leapt))
    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(leap_between_packets)
        answer = quick.ask("<**six.m**> hello", stream=True)
        done.result()
    assert answer.events[-1][0] == "message_stop"
    assert len(leaps) * _FIRST_BYTE_S / 2 > 1.5 * _IDLE_S
    assert len(quick.received) == 1


@pytest.mark.skipif(os.name == "nt", reason="nobody can be stopped there")
@pytest.mark.parametrize("behaviour", [Behaviour(wait_s=0.1), Behaviour(reply=Reply(("w ",) * 9), delay_s=0.1)])
def test_a_proxy_that_stood_still_does_not_blame_its_provider(quick: Quick, behaviour: Behaviour) -> None:
    """Ctrl-Z, a disk that hangs: what came meanwhile is heard before anybody is given up."""
    stopped, there = list[bool](), 4 if behaviour.delay_s else 0
    quick.provider.enqueue(dataclasses.replace(behaviour, until=lambda: stopped or quick.received[-1].packets_sent < there))

    async def asked() -> Answer:
        path, body = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> hello")], True)
        until = partial(asyncio.to_thread, quick.provider.wait_until)
        async with Http1(Route(HOSTS[Dialect.MESSAGES], quick.proxy)) as client:
            answer = asyncio.ensure_future(client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]]))
            await until(lambda: quick.received and quick.received[-1].packets_sent == there)
            await asyncio.to_thread(quick.leap, LONGEST_S)
            os.kill(quick.proxy.pid, signal.SIGSTOP)
            quick.move_the_clock(2 * _IDLE_S)
            stopped.append(True)
            await until(lambda: quick.received[-1].finished_at)
            os.kill(quick.proxy.pid, signal.SIGCONT)
            return await answer

    answer = asyncio.run(asked())
    assert answer.status == 200
    assert answer.events[-1][0] == "message_stop"
    assert len(quick.received) == 1


# ---- long waits: the client is kept ----

_SOONER = """
from msgspec.structs import replace
from routecodex.routing.desk.desk import Desk

usual = Desk.limits
Desk.limits = lambda *given, **named: replace(usual(*given, **named), early_head_s=0.25, keep_alive_s=0.15)
"""
KEPT = {Dialect.MESSAGES: b"event: ping", Dialect.CHAT: b": ", Dialect.RESPONSES: b"response.in_progress", Dialect.GEMINI: b"\n"}
STARTS = {Dialect.MESSAGES: b"event: message_start", Dialect.RESPONSES: b"event: response.created"}


@pytest.fixture(scope="module")
def keeping(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    """A proxy that does after parts of a second what it usually does after half a minute."""
    folder = tmp_path_factory.mktemp("keeping")
    (folder / "sooner.py").write_text(_SOONER)
    scripts = [SCRIPT, folder / "sooner.py"]
    with Mitmdump(script=scripts, config=CONFIG, upstream=provider, folder=folder) as proxy:
        yield proxy


@pytest.fixture
def kept(provider: FakeProvider, keeping: Mitmdump) -> Tool:
    provider.forget()
    return Tool(provider, keeping)


@pytest.mark.parametrize(
    "later, dialects", [(False, list(Dialect)), (True, list(Dialect)[:2]), (True, list(Dialect)[2:])], ids=["1", "2", "2 again"]
)
def test_a_client_that_waits_long_is_sent_signs_of_life(kept: Tool, later: bool, dialects: list[Dialect]) -> None:
    """The head and something that its dialect ignores; then one good answer, though the first attempt fails under it."""
    waits, fails = Behaviour(wait_s=0.7), Behaviour(status=529, error="busy", wait_s=0.5)
    cases = {(dialect, ""): [fails, waits] if later else [waits] for dialect in dialects}
    answers = together(kept, cases, until=lambda answer: len(answer.chunks) >= 4)
    for case, answer in answers.items():
        dialect = case[0]
        assert (answer.status, answer.ended) == (200, "complete"), case
        assert answer.head_s > 0.2, case
        assert text_of(dialect, answer.body, True) == f"m was asked: {_mark(case).decode()}", case
        first_words = next(at for at, data in answer.chunks if b"asked" in data or b"m " in data)
        before = b"".join(data for at, data in answer.chunks if at < first_words)
        assert before.count(KEPT[dialect]) >= 2, case
        if dialect in STARTS:
            assert answer.body.count(STARTS[dialect]) == 1, case
        assert len(attempts_of(kept, case)) == len(cases[case]), case


def test_a_failure_after_signs_of_life_is_an_error_event(kept: Tool) -> None:
    """The status has gone: the error comes inside the stream."""
    refuses = Behaviour(status=400, error="that is no model of mine", wait_s=0.6)
    cases = {(dialect, ""): [refuses] for dialect in Dialect}
    for case, answer in together(kept, cases, until=lambda answer: len(answer.chunks) >= 2).items():
        assert (answer.status, answer.ended) == (200, "complete"), case
        assert "that is no model of mine" in answer.text, case
        assert text_of(case[0], answer.body, True) == "", case
        assert len(attempts_of(kept, case)) == 1, case


def test_json_is_waited_for_in_silence(kept: Tool) -> None:
    """No sign of life fits into JSON; and origin alone is left to its client's patience."""
    kept.provider.enqueue(Behaviour(wait_s=0.7))
    answer = kept.ask("<**six.m**> hello")
    assert answer.status == 200
    assert answer.head_s > 0.6


def test_leaving_between_two_signs_of_life(kept: Tool) -> None:
    kept.provider.always(Behaviour(before="hang"))
    path, body = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> hello")], True)
    headers = [CREDENTIALS[Dialect.MESSAGES]]
    answer = call(HOSTS[Dialect.MESSAGES], path, body, proxy=kept.proxy, headers=headers, leave=Leave(chunks=2))
    assert answer.ended == "left"
    kept.provider.wait_until(lambda: kept.provider.open_connections == 0, 1)
    assert len(kept.received) == 1
