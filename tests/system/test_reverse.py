"""`--mode reverse:https://…`: the tool speaks plain HTTP to the proxy, as with ANTHROPIC_BASE_URL; all else is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, CREDENTIALS, text_of, write

pytestmark = pytest.mark.system

FORMS = [(dialect, stream) for dialect in Dialect for stream in (True, False)]


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("reverse")
    mode = "reverse:https://api.anthropic.com"
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, mode=mode, flows=True) as started:
        yield started


@pytest.fixture(autouse=True)
def fresh(provider: FakeProvider) -> None:
    provider.forget()


def ask(proxy: Mitmdump, text: str, dialect: Dialect = Dialect.MESSAGES, *, stream: bool = False) -> Answer:
    path, body = write(dialect, "claude-x", [("user", text)], stream)
    return call(proxy.url, path, body, headers=[CREDENTIALS[dialect]])


@pytest.mark.parametrize("dialect, stream", FORMS)
def test_calls_go_to_the_named_host(proxy: Mitmdump, provider: FakeProvider, dialect: Dialect, stream: bool) -> None:
    answer = ask(proxy, "hello", dialect, stream=stream)
    assert answer.status == 200
    assert text_of(dialect, answer.body, stream) == "claude-x was asked: hello"
    (received,) = provider.calls
    assert (received.tls, received.sni, received.host) == (True, "api.anthropic.com", "api.anthropic.com")
    assert received.key == "sk-client-secret"


@pytest.mark.parametrize("dialect, stream", FORMS)
def test_tags_send_them_elsewhere(proxy: Mitmdump, provider: FakeProvider, dialect: Dialect, stream: bool) -> None:
    provider.enqueue(Behaviour(status=500, error="down"))
    answer = ask(proxy, "<**six.m**> hello", dialect, stream=stream)
    assert answer.status == 200
    assert text_of(dialect, answer.body, stream) == "m was asked: hello"
    assert {received.host for received in provider.calls} == {"six.example"}
    assert len({received.key for received in provider.calls}) == 2
    assert b"sk-client-secret" not in provider.all_bytes()


def test_several_calls_on_one_connection_to_different_hosts(proxy: Mitmdump, provider: FakeProvider) -> None:
    texts = ["hello", "<**six.m**> hello", "<**echo**> hello", "hello", "<**status**>", "<**six.m**> hello"]

    async def kept() -> list[int]:
        async with Http1(Route(proxy.url)) as client:
            statuses = []
            for text in texts:
                path, body = write(Dialect.MESSAGES, "m", [("user", text)], False)
                statuses.append((await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]])).status)
            return statuses

    assert asyncio.run(kept()) == [200] * 6
    hosts = [received.host for received in provider.calls]
    assert hosts == ["api.anthropic.com", "six.example", "api.anthropic.com", "six.example"]
    assert [received.key == "sk-client-secret" for received in provider.calls] == [True, False, True, False]


def test_other_paths_pass(proxy: Mitmdump, provider: FakeProvider) -> None:
    answer = call(
        proxy.url, "/api/settings?key=secret&b=%2f", b"", method="GET", headers=[("X-One", "1"), CREDENTIALS[Dialect.MESSAGES]]
    )
    assert answer.status == 200
    (received,) = provider.requests
    assert received.target == "/api/settings?key=secret&b=%2f"
    assert received.header("x-one") == "1"
    assert received.header("x-api-key") == "sk-client-secret"
    assert received.host == "api.anthropic.com"


def test_a_forged_host_header_goes_nowhere_else(proxy: Mitmdump, provider: FakeProvider) -> None:
    for host in ("evil.example", "api.openai.com", "six.example", "169.254.169.254"):
        path, body = write(Dialect.MESSAGES, "m", [("user", "hello")], False)
        call(proxy.url, path, body, headers=[("Host", host), CREDENTIALS[Dialect.MESSAGES]])
    assert {received.host for received in provider.requests} == {"api.anthropic.com"}
    assert {received.sni for received in provider.requests} == {"api.anthropic.com"}


def test_a_websocket_is_refused_here_too(proxy: Mitmdump, provider: FakeProvider) -> None:
    headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "eA=="),
    ]
    assert call(proxy.url, "/v1/responses", b"", method="GET", headers=headers).status == 426
    assert provider.requests == []


def test_no_credential_was_saved(proxy: Mitmdump) -> None:
    """The last of this file: what all those before it have left."""
    proxy.stop()
    assert proxy.flows_path is not None
    saved = proxy.flows_path.read_bytes() + proxy.log.encode()
    assert b"six.example" in saved
    for secret in (b"sk-client-secret", b"six-key-", b"key=secret"):
        assert secret not in saved
