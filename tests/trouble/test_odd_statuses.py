"""F6: heads that come before the answer, and statuses that do not exist. No client sees either."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Asked, Reply, whole
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, text_of, write

pytestmark = pytest.mark.system

INTERIM = {
    "100": b"HTTP/1.1 100 Continue\r\n\r\n",
    "102": b"HTTP/1.1 102 Processing\r\n\r\n",
    "103": b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n",
    "199": b"HTTP/1.1 199 What\r\nContent-Length: 5\r\n\r\n",
    "101 that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "many": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nX: 1\r\n\r\n" * 20,
}
NONE = ["000", "0", "-1", "99", "600", "999", "1000", "99999", "99999999999999999999", "abc", "2 00"]


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path_factory.mktemp("odd")) as started:
        yield started
        assert not started.crash
        assert "RouteCodex failed" not in started.log


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(autouse=True)
def fresh(provider: FakeProvider) -> None:
    provider.forget()


def ask(proxy: Mitmdump, text: str, dialect: Dialect, *, stream: bool = False) -> Answer:
    path, body = write(dialect, "m", [("user", text)], stream)
    return call(HOSTS[dialect], path, body, proxy=proxy, headers=[CREDENTIALS[dialect]], within=90)


def answered(dialect: Dialect) -> bytes:
    body = whole(Reply("the answer"), Asked(dialect, "generate", "m"))
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("name", INTERIM)
@pytest.mark.parametrize("text", ["hello", "<**six.m**> hello"], ids=["home", "elsewhere"])
def test_an_answer_follows(proxy: Mitmdump, provider: FakeProvider, name: str, text: str) -> None:
    provider.enqueue(Behaviour(raw=INTERIM[name] + answered(Dialect.MESSAGES)))
    answer = ask(proxy, text, Dialect.MESSAGES)
    assert (answer.status, answer.ended) == (200, "complete")
    assert text_of(Dialect.MESSAGES, answer.body, False) == "the answer"
    assert len(provider.calls) == 1


@pytest.mark.parametrize("name", INTERIM)
def test_an_answer_follows_on_another_path(proxy: Mitmdump, provider: FakeProvider, name: str) -> None:
    provider.always(Behaviour(raw=INTERIM[name] + b"HTTP/1.1 203 Fine\r\nContent-Length: 4\r\n\r\nhere"), path="/v1/files")
    answer = call(HOSTS[Dialect.CHAT], "/v1/files", b"x", proxy=proxy)
    assert (answer.status, answer.body, answer.ended) == (203, b"here", "complete")


def test_an_answer_follows_in_a_later_round(proxy: Mitmdump, provider: FakeProvider) -> None:
    provider.enqueue(Behaviour(status=500, error="down"), Behaviour(raw=INTERIM["many"] + answered(Dialect.MESSAGES)))
    answer = ask(proxy, "<**six.m**> hello", Dialect.MESSAGES)
    assert text_of(Dialect.MESSAGES, answer.body, False) == "the answer"
    assert len(provider.calls) == 2


@pytest.mark.parametrize("interim", INTERIM)
def test_heads_without_an_answer_are_none(proxy: Mitmdump, provider: FakeProvider, interim: str) -> None:
    """The connection goes behind them: another key is asked."""
    provider.enqueue(Behaviour(raw=INTERIM[interim], close=True))
    answer = ask(proxy, "<**six.m**> hello", Dialect.MESSAGES, stream=True)
    assert text_of(Dialect.MESSAGES, answer.body, True) == "m was asked: hello"
    assert len(provider.calls) == 2


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("status", NONE)
def test_a_status_that_does_not_exist_is_a_failed_attempt(
    proxy: Mitmdump, provider: FakeProvider, dialect: Dialect, status: str
) -> None:
    provider.enqueue(Behaviour(raw=f"HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\nno".encode()))
    answer = ask(proxy, "<**six.m**> hello", dialect, stream=True)
    assert (answer.status, answer.ended) == (200, "complete")
    assert text_of(dialect, answer.body, True) == "m was asked: hello"
    assert len(provider.calls) == 2


@pytest.mark.parametrize("status", NONE)
def test_at_home_and_on_other_paths_it_is_a_502(proxy: Mitmdump, provider: FakeProvider, status: str) -> None:
    provider.always(Behaviour(raw=f"HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\nno".encode()), path=".")
    home = ask(proxy, "hello", Dialect.MESSAGES)
    other = call(HOSTS[Dialect.CHAT], "/v1/files", b"x", proxy=proxy, within=90)
    assert [answer.status for answer in (home, other)] == [502, 502]
    assert all(answer.ended in ("complete", "closed") for answer in (home, other))


REFUSED = {
    "a name that is none": b"HTTP/1.1 200 OK\r\nx\x00y: b\r\nContent-Length: 2\r\n\r\n{}",
    "two ways to tell its length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in an answer without a body": b"HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a very long name that is none": b"HTTP/1.1 200 OK\r\n" + b"\x01" * 5000 + b": b\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("head", REFUSED.values(), ids=REFUSED)
def test_a_head_that_mitmproxy_refuses_is_a_failed_attempt(
    proxy: Mitmdump, provider: FakeProvider, dialect: Dialect, head: bytes
) -> None:
    """It ended the call in a page for people, was told as a tool that had left, and cost its key nothing."""
    provider.enqueue(Behaviour(raw=head), Behaviour(raw=head))
    answer = ask(proxy, "<**six.m**> hello", dialect, stream=True)
    assert (answer.status, answer.ended) == (200, "complete")
    assert text_of(dialect, answer.body, True) == "m was asked: hello"
    assert len(provider.calls) == 3
    assert "the tool left" not in proxy.log


@pytest.mark.parametrize("head", REFUSED.values(), ids=REFUSED)
def test_at_home_a_head_that_mitmproxy_refuses_is_a_502(proxy: Mitmdump, provider: FakeProvider, head: bytes) -> None:
    provider.always(Behaviour(raw=head), path=".")
    answer = ask(proxy, "hello", Dialect.MESSAGES)
    assert (answer.status, answer.ended) == (502, "complete")
    assert "no head that can be trusted" in answer.json["error"]["message"]
    assert len(answer.body) < 1000
    other = call(HOSTS[Dialect.CHAT], "/v1/files", b"x", proxy=proxy, within=90)
    assert other.status == 502


@pytest.mark.parametrize("status", ["200", "207", "299", "404", "599"])
def test_statuses_that_exist_pass(proxy: Mitmdump, provider: FakeProvider, status: str) -> None:
    provider.always(Behaviour(raw=f"HTTP/1.1 {status} Odd\r\nContent-Length: 2\r\n\r\nno".encode()), path=".")
    answer = call(HOSTS[Dialect.CHAT], "/v1/files", b"x", proxy=proxy, within=90)
    assert (answer.status, answer.body) == (int(status), b"no")
