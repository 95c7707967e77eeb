"""Several workers behind one port: what a person sees is one proxy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from mitmproxy.exceptions import FlowReadException
from mitmproxy.io import FlowReader

from routecodex.addons.control.servers import Server
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.door import until
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Reply as Says
from tests.system.test_telemetry import free_port, look, value
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("workers")
    saved = ["-w", f"+{folder / 'flows'}"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, workers=2, args=saved) as started:
        until(lambda: "2 workers serve" in started.log, "two workers do not come")
        yield started
        assert started.alive


Ask = Callable[[str], Awaitable[Answer]]


def asks(client: Http1, session: str) -> Ask:
    def ask(text: str) -> Awaitable[Answer]:
        body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
        return client.send("POST", "/v1/messages", body=body, headers={"x-api-key": "sk-client", "x-session-id": session})

    return ask


def with_two(proxy: Mitmdump, act: Callable[[Ask, Ask], Awaitable[None]]) -> None:
    """Two connections: each has a worker of its own."""

    async def main() -> None:
        route = Route("https://api.anthropic.com", proxy)
        async with Http1(route) as one, Http1(route) as other:
            await act(asks(one, "s-one"), asks(other, "s-other"))

    asyncio.run(main())


def saved_flows(proxy: Mitmdump) -> int | None:
    """So many are readable."""
    with (proxy.folder / "flows").open("rb") as file:
        try:
            return len(list(FlowReader(file).stream()))
        except FlowReadException:  # it is just being written
            return None


def logged(proxy: Mitmdump, since: int) -> list[tuple[str, str]]:
    return re.findall(r"^\[[\d:.]+\] [\d:]+ (s-\S+) .*?→ (\w+)", proxy.log[since:], re.MULTILINE)


def spent(proxy: Mitmdump) -> int:
    """Rounds in the one ledger."""
    file = proxy.folder / "user" / "usage.sqlite"
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as ledger:
            return int(ledger.execute("select count(*) from rounds").fetchone()[0])
    except sqlite3.OperationalError:  # it is just being made
        return 0


def test_one_answer_and_one_log_for_all(proxy: Mitmdump, provider: FakeProvider) -> None:
    """What is set for all sessions holds for the next call of each worker; every call has its line, at once, and its flow."""
    provider.forget()
    server = Server(f"127.0.0.1_{proxy.port}", proxy.sessions)
    until(lambda: saved_flows(proxy) is not None, "a flow stays half written")
    flows, rounds, since = saved_flows(proxy) or 0, spent(proxy), len(proxy.log)
    expected: list[tuple[str, str]] = []

    async def act(one: Ask, other: Ask) -> None:
        async def both(text: str, target: str, *asked: tuple[str, Ask]) -> None:
            for session, ask in asked:
                assert (await ask(text)).status == 200
                expected.append((session, target))
                until(lambda: logged(proxy, since) == expected, f"not in the log: {expected}")

        await both("<**echo**> hello", "echo", ("s-one", one), ("s-other", other))
        server.ask("set routing", {"orders": [["sticky", "six.m"]]})
        await both("and now?", "six", ("s-one", one), ("s-other", other))
        server.ask("set routing", {"orders": [["clear", ""]]})
        await both("and now?", "origin", ("s-other", other), ("s-one", one))

    with_two(proxy, act)
    assert server.ask("status")["pid"] == proxy.pid
    assert [received.host for received in provider.calls] == ["six.example"] * 2 + ["api.anthropic.com"] * 2
    until(lambda: saved_flows(proxy) == flows + 6, "a flow of each call is not in the file")
    until(lambda: spent(proxy) == rounds + 4, "what both spent is not in one ledger")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_freezes_costs_its_own_connections(proxy: Mitmdump, number: signal.Signals) -> None:
    """The other one goes on; whoever connects meanwhile is answered; soon there are two again."""
    victim = proxy.workers[0]

    async def act(one: Ask, other: Ask) -> None:
        for ask in (one, other):
            assert (await ask("<**echo**> hello")).status == 200
        os.kill(victim, number)
        assert sorted([(await one("<**echo**> on")).status, (await other("<**echo**> on")).status]) == [0, 200]
        route = Route("https://api.anthropic.com", proxy)
        for _ in range(4):
            async with Http1(route) as new:
                assert (await asks(new, "s-new")("<**echo**> hello")).status == 200

    with_two(proxy, act)
    ended = f"({victim}) ended with -9 with 1 connection; another one takes its place"
    until(lambda: " is back as " in proxy.log.partition(ended)[2], "nobody takes its place")
    assert len(proxy.workers) == 2


def test_numbers_are_those_of_all_workers_also_of_one_that_died(tmp_path: Path) -> None:
    """Whoever serves the page: the token stays, and so does what the one before it counted."""
    port = free_port()
    config = CONFIG + "telemetry: {prometheus: true}\n"
    options = [f"routecodex_page={port}"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=tmp_path, workers=2, options=options) as proxy,
    ):
        until(lambda: "2 workers serve" in proxy.log, "two workers do not come")
        until(lambda: re.search(r"/routecodex\?token=(\S+)", proxy.log), "no page is served")
        (token,) = re.findall(r"/routecodex\?token=(\S+)", proxy.log)

        def counted() -> float | None:
            status, told = look(port, "/metrics", f"Bearer {token}")
            assert status == 200, "the token is another one"
            return value(told, "routecodex_attempts_total") if "routecodex_attempts_total" in told else None

        async def act(one: Ask, other: Ask) -> None:
            assert [(await ask("hello")).status for ask in (one, one, other)] == [200] * 3

        with_two(proxy, act)
        until(lambda: counted() == 3, "the sum is not told")
        leads = proxy.workers[0]
        os.kill(leads, signal.SIGKILL)
        until(lambda: " is back as " in proxy.log.partition(f"({leads}) ended")[2], "nobody takes its place")
        with_two(proxy, act)
        until(lambda: counted() == 6, "what was counted before is lost")


def test_who_ends_the_parent_ends_all_and_what_is_open(tmp_path: Path) -> None:
    """Answers in the middle are cut off, not finished; no process stays behind, and what was saved is readable."""
    over = threading.Event()
    saved = ["-w", f"+{tmp_path / 'flows'}"]
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, workers=2, args=saved) as proxy,
    ):
        until(lambda: "2 workers serve" in proxy.log, "two workers do not come")
        workers = proxy.workers
        provider.always(Behaviour(reply=Says("some words " * 20), stall_after=5, stall_s=60, until=over.is_set))
        body = {"model": "claude-x", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        answers = [Answer(), Answer()]

        async def main() -> None:
            route = Route("https://api.anthropic.com", proxy)
            async with Http1(route) as one, Http1(route) as other:
                asked = [
                    asyncio.ensure_future(client.send("POST", "/v1/messages", body=body, headers={"x-api-key": "k"}, into=answer))
                    for client, answer in zip((one, other), answers, strict=True)
                ]
                await asyncio.to_thread(until, lambda: all(answer.chunks for answer in answers), "no answer begins")
                os.kill(proxy.pid, signal.SIGTERM)
                await asyncio.gather(*asked)

        asyncio.run(main())
        until(lambda: not proxy.alive, "the parent stays")
        over.set()
        assert [(answer.status, answer.ended) for answer in answers] == [(200, "closed")] * 2
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        assert saved_flows(proxy) == 2
        assert "RouteCodex failed" not in proxy.log


def test_what_workers_learned_outlives_them(proxy: Mitmdump, provider: FakeProvider) -> None:
    """All of them die at once; who follows an answer of theirs still goes where that lives."""

    def ask(said: str, **more: str) -> str:
        body = {"model": "m", "input": [{"role": "user", "content": said}], **more}
        answer = call("https://api.openai.com", "/v1/responses", body, proxy=proxy, headers={"authorization": "Bearer sk-client"})
        assert answer.status == 200, answer.text
        return str(answer.json["id"])

    provider.forget()
    first, come = ask("<**!six.m**> hello"), proxy.log.count(" is back as ")
    for pid in proxy.workers:
        os.kill(pid, signal.SIGKILL)
    ask("and then?", previous_response_id=first)
    one, other = provider.calls
    assert other.host == "six.example"
    assert other.key == one.key
    until(lambda: proxy.log.count(" is back as ") == come + 2, "nobody takes their place")
