"""S3, S7: nothing leaves for a host that is neither the caller's own nor configured, and nothing hostile leaves in a head.

Every host that is not named here is played by a trap; what a provider received is compared line by line.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.sheet import Tally
from tests.system.tool import CREDENTIALS, HOSTS, text_of, write

pytestmark = pytest.mark.system

ODD_MODELS = ["odd/model name?x=1#y", "vendor/model:free@2", "../../etc/passwd", "ünïcode-模型"]
_TEMPLATE = """
proxy:
  interceptHosts: [api.anthropic.com, api.openai.com, generativelanguage.googleapis.com]
virtualrouter:
  providers:
    far:
      protocol: openai-chat
      baseURL: https://far.example/deep/v1
      endpoints:
        anthropic-messages: https://far.example/anthropic
        openai-responses: https://far.example/deep/v1
        gemini-chat: https://far.example/gemini
      auth: {type: apikey, keys: [{alias: one, value: far-key}]}
      models:
        m: {}
        ODD_MODELS
  routing:
    default: [origin]
    ODD_ROUTES
  health: {serverErrorLadderMs: [1], serverErrorTripMs: 1}
"""
CONFIG = _TEMPLATE.replace("ODD_MODELS", "\n        ".join(f'"{model}": {{}}' for model in ODD_MODELS)).replace(
    "ODD_ROUTES", "\n    ".join(f'odd{number}: ["far.{model}"]' for number, model in enumerate(ODD_MODELS))
)


@dataclass
class Net:
    proxy: Mitmdump
    known: FakeProvider
    trap: FakeProvider


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    with FakeProvider() as known, FakeProvider() as trap:
        played = dict.fromkeys(
            ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "far.example"], known
        ) | {"*": trap}
        with Mitmdump(script=SCRIPT, config=CONFIG, upstream=played, folder=tmp_path_factory.mktemp("net")) as proxy:
            yield Net(proxy, known, trap)


@pytest.fixture
def net(lines: Net) -> Iterator[Net]:
    lines.known.forget()
    yield lines
    assert lines.trap.connections == [], "something left for a host that nobody meant"
    assert lines.proxy.alive
    assert "RouteCodex failed in" not in lines.proxy.log
    assert not lines.proxy.crash


def ask(net: Net, dialect: Dialect, text: str, *, stream: bool = False, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    path, body = write(dialect, "m", [("user", text)], stream)
    headers = [CREDENTIALS[dialect], *headers]
    return call(HOSTS[dialect], path, body, proxy=net.proxy, headers=headers)


# ---- the exact head ----


def head_of(received: Received) -> list[str]:
    return received.head.decode("latin-1").split("\r\n")[:-2]


CREDENTIAL_LINE = {
    Dialect.MESSAGES: "x-api-key: far-key",
    Dialect.CHAT: "authorization: Bearer far-key",
    Dialect.RESPONSES: "authorization: Bearer far-key",
    Dialect.GEMINI: "x-goog-api-key: far-key",
}
PATHS = {
    Dialect.MESSAGES: "/anthropic/v1/messages",
    Dialect.CHAT: "/deep/v1/chat/completions",
    Dialect.RESPONSES: "/deep/v1/responses",
    Dialect.GEMINI: "/gemini/v1beta/models/m:generateContent",
}


def expected_head(dialect: Dialect, received: Received, path: str | None = None) -> list[str]:
    """All that a foreign provider is told; the order is ours."""
    version = ["anthropic-version: 2023-06-01"] if dialect is Dialect.MESSAGES else []
    return [
        f"POST {path or PATHS[dialect]} HTTP/1.1",
        "Host: far.example",
        "content-type: application/json",
        "accept-encoding: identity",
        "accept: application/json",
        *version,
        f"Content-Length: {len(received.body)}",
        CREDENTIAL_LINE[dialect],
    ]


HOSTILE_HEADERS = [
    ("X-Forwarded-Host", "evil.example"),
    ("X-Original-URL", "https://evil.example/"),
    ("Forwarded", "host=evil.example"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("Proxy-Connection", "keep-alive"),
    ("Connection", "keep-alive, x-api-key"),
    ("Keep-Alive", "timeout=5"),
    ("TE", "trailers"),
    ("x-routecodex-target", "evil"),
    ("x-session-id", "../../../etc/passwd"),
    ("openai-organization", "org-1"),
    ("anthropic-beta", "oauth-2025-04-20,interleaved"),
    ("Referer", "https://evil.example/"),
    ("Via", "1.1 evil"),
]


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("retry", [False, True], ids=["first", "later round"])
def test_a_foreign_provider_gets_exactly_this_head(net: Net, dialect: Dialect, retry: bool) -> None:
    if retry:
        net.known.enqueue(Behaviour(status=408, error="again"))
    answer = ask(net, dialect, "<**far.m**> hello", headers=HOSTILE_HEADERS)
    if retry and answer.status != 200:
        pytest.fail(f"not repeated: {answer.text}")
    for received in net.known.calls:
        assert head_of(received) == expected_head(dialect, received)


HOSTILE_VALUES = [
    "a\r\nHost: evil.example\r\nX-Injected: 1",
    "a\nX-Injected: 1",
    "a\x00b",
    "a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "//evil.example/x",
    "https://evil.example/v1",
    "@evil.example",
    "..\\..\\evil",
    "../../admin",
    "%0d%0aX-Injected:%201",
    "%2e%2e%2fadmin",
    "m?key=1&x=y#z",
    "m m\tm",
    "ünïcode-模型-🦀",
    "\ud800",
    "x" * 20_000,
    "",
    ":generateContent",
    "\u2028\u2029\u0085",
]


OBEYED_ELSEWHERE = ("api_base", "base_url", "baseURL", "endpoint", "host", "provider", "proxy", "url", "user", "prompt_cache_key")


def ask_all(net: Net, dialect: Dialect, asked: list[tuple[str, dict[str, Any]]]) -> list[Answer]:
    """Texts with further fields, one after the other on one connection."""

    async def all_of_them() -> list[Answer]:
        answers = []
        async with Http1(Route(HOSTS[dialect], net.proxy)) as client:
            for text, more in asked:
                path, body = write(dialect, "m", [("user", text)], False)
                written = json.dumps(body | more).encode()
                answers.append(await client.send("POST", path, body=written, headers=[CREDENTIALS[dialect]]))
        return answers

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("dialect", list(Dialect))
def test_hostile_values_in_a_body_change_no_head(net: Net, dialect: Dialect) -> None:
    """Models, ids, addresses that some gateways obey: in the body they are text, and nothing else."""
    asked: list[tuple[str, dict[str, Any]]] = []
    for value in HOSTILE_VALUES:
        more: dict[str, Any] = dict.fromkeys(OBEYED_ELSEWHERE, value)
        more |= {"metadata": {"user_id": value, "session_id": value}, "headers": {"x": value}, "extra_headers": {value: value}}
        if dialect is not Dialect.GEMINI:
            more["model"] = value
        asked += [("hello", more), ("<**far.m**> hello", more)]
    answers = ask_all(net, dialect, asked)
    assert {answer.status for answer in answers} <= {200, 400}
    assert [answer.status for answer in answers].count(200) >= len(HOSTILE_VALUES)
    _assert_heads(net, dialect)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_hostile_tags_reach_nothing(net: Net, dialect: Dialect) -> None:
    """A tag names a provider of the configuration, or nothing."""
    forms = ("<**{}**>", "<**far.{}**>", "<**!{}.m**>", "<**far[{}].m**>", "<**{0}.{0}**>")
    answers = ask_all(net, dialect, [(f"{form.format(value)} hello", {}) for value in HOSTILE_VALUES for form in forms])
    assert {answer.status for answer in answers} <= {200, 400}
    _assert_heads(net, dialect)


def _assert_heads(net: Net, dialect: Dialect) -> None:
    for received in net.known.requests:
        if received.host == "far.example":
            assert head_of(received) == expected_head(dialect, received)
        else:
            _assert_own_head(net, dialect, received)


def _assert_own_head(net: Net, dialect: Dialect, received: Received) -> None:
    assert received.host == HOSTS[dialect].removeprefix("https://")
    assert received.target == write(dialect, "m", [], False)[0]
    names = [line.partition(":")[0].lower() for line in head_of(received)[1:]]
    assert sorted(names) == sorted(["host", CREDENTIALS[dialect][0], "content-type", "accept-encoding", "content-length"])


@pytest.mark.parametrize("number", range(4))
def test_odd_names_of_models_stay_one_segment_of_the_path(net: Net, number: int) -> None:
    """Gemini's providers are told the model in the path."""
    answer = ask(net, Dialect.GEMINI, "hello", headers=(("x-routecodex-route", f"odd{number}"),))
    assert answer.status == 200, answer.text
    (received,) = net.known.calls
    assert received.path.startswith("/gemini/v1beta/models/")
    assert received.path.count("/") == 4
    assert received.asked is not None
    assert received.asked.model == ODD_MODELS[number]
    assert head_of(received)[1:] == expected_head(Dialect.GEMINI, received)[1:]


# ---- paths and heads that a client writes ----

HOSTILE_TARGETS = [
    "https://evil.example/v1/messages",
    "http://169.254.169.254/v1/messages",
    "//evil.example/v1/messages",
    "/\\evil.example/v1/messages",
    "/@evil.example/v1/messages",
    "/v1/messages/../../v1/messages",
    "/%2f%2fevil.example/v1/messages",
    "/v1/messages?url=https://evil.example&host=evil.example",
    "/v1/messages#@evil.example",
    "/x/v1/messages;evil.example",
]


TALLY = Tally("S3", "{targets:,} hostile targets by path and Host: 0 connections to any of them")


@pytest.mark.parametrize("target", HOSTILE_TARGETS)
@pytest.mark.parametrize(
    "host", ["api.anthropic.com", "evil.example", "api.anthropic.com:8443", "api.anthropic.com@evil.example", ""]
)
def test_hostile_targets_go_where_the_connection_was_made_to(net: Net, target: str, host: str) -> None:
    """Inside a tunnel to a host, whatever path and Host header say."""

    async def once(text: str) -> Answer:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], net.proxy)) as client:
            body = json.dumps(write(Dialect.MESSAGES, "m", [("user", text)], False)[1]).encode()
            head = f"POST {target} HTTP/1.1\r\nHost: {host}\r\nx-api-key: k\r\nContent-Length: {len(body)}\r\n\r\n"
            await client.write_raw(head.encode() + body)
            return await client.read_answer()

    for text in ("hello", "<**far.m**> hello"):
        TALLY["targets"] += 1
        net.known.forget()
        answer = asyncio.run(once(text))
        assert answer.ended != "timeout"
        for received in net.known.requests:
            assert received.sni in ("api.anthropic.com", "far.example")
            if endpoint_of("POST", target) is not None:  # other paths keep the head that their client wrote
                assert b"Host: evil" not in received.head
            if received.sni == "far.example":
                assert head_of(received) == expected_head(Dialect.MESSAGES, received)


RAW_HEADS = {
    "a line break in a value": b"X-Bad: a\rX-Injected: 1\r\n",
    "a bare line feed": b"X-Bad: a\nX-Injected: 1\r\n",
    "a NUL": b"X-Bad: a\x00b\r\n",
    "a folded line": b"X-Bad: a\r\n  X-Injected: 1\r\n",
    "a space in a name": b"X Bad: a\r\n",
    "no colon": b"XBad\r\n",
    "two lengths": b"Content-Length: 3\r\n",
    "length and chunks": b"Transfer-Encoding: chunked\r\n",
    "odd chunks": b"Transfer-Encoding: xchunked\r\n",
    "a hidden name": b"Transfer-Encoding : chunked\r\n",
    "two hosts": b"Host: evil.example\r\n",
    "not ASCII": "X-Bad: ü模\r\n".encode(),
}


@pytest.mark.parametrize("name", RAW_HEADS)
def test_broken_heads_smuggle_nothing(net: Net, name: str) -> None:
    """Refused, or one request with one meaning; what follows on the connection is answered as itself or not at all."""

    async def once() -> list[Answer]:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], net.proxy)) as client:
            body = json.dumps(write(Dialect.MESSAGES, "m", [("user", "<**far.m**> hello")], False)[1]).encode()
            head = b"POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\n" + RAW_HEADS[name]
            await client.write_raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            answers = [await client.read_answer()]
            if answers[0].ended == "complete" and answers[0].status == 200:
                answers.append(await client.send("GET", "/v1/second"))
            return answers

    answers = asyncio.run(once())
    assert all(answer.ended != "timeout" for answer in answers)
    assert len(net.known.requests) <= 2
    for received in net.known.requests:
        assert received.header("x-injected") is None
        assert received.method in ("POST", "GET")
        if received.method == "POST":
            assert head_of(received) == expected_head(Dialect.MESSAGES, received)
        else:
            assert received.target == "/v1/second"


# ---- what a provider answers ----


@pytest.mark.parametrize(
    "headers",
    [
        (("location", "https://evil.example/"),),
        (("refresh", "0; url=https://evil.example"), ("alt-svc", 'h3="evil.example:443"')),
        (("set-cookie", "session=stolen"), ("x-team", "secret")),
        (("x-bad", "a\x00b"),),
        (("request-id", "a\x00b"),),
        (("request-id", "ümläut"),),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_hostile_answer_leads_nowhere(net: Net, headers: tuple[tuple[str, str], ...], stream: bool) -> None:
    """Redirects are not followed, cookies not kept, odd heads not passed on."""
    net.known.enqueue(Behaviour(headers=headers))
    answer = ask(net, Dialect.MESSAGES, "<**far.m**> hello", stream=stream)
    assert (answer.status, answer.ended) == (200, "complete")
    for name in ("location", "refresh", "alt-svc", "set-cookie", "x-team", "x-bad"):
        assert answer.header(name) is None
    assert text_of(Dialect.MESSAGES, answer.body, stream) == "m was asked: hello"
    assert ask(net, Dialect.MESSAGES, "<**far.m**> hello").status == 200


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_of_a_provider_are_errors(net: Net, status: int) -> None:
    net.known.always(
        Behaviour(status=status, headers=(("location", "https://evil.example/v1/messages"),), body=b""), host="far.example"
    )
    answer = ask(net, Dialect.MESSAGES, "<**far.m**> hello")
    assert (answer.status, answer.body) == (status, b"")
    assert answer.header("location") is None
    assert len(net.known.requests) == 1, "it was followed, or tried again"


def test_private_addresses_are_reached_only_by_who_asks_for_them(net: Net) -> None:
    """A client that itself asks for an address is a proxy's client like any other: not ours, tunnelled or passed."""
    for address in ("169.254.169.254", "[::ffff:169.254.169.254]", "2852039166", "0x7f.1"):
        answer = ask(net, Dialect.MESSAGES, f"<**{address}**> <**far@{address}**> <**far.m@{address}**> hello")
        assert answer.status == 400
        assert answer.json["error"]["code"] in ("PROVIDER_NOT_AVAILABLE", "BAD_TAG"), address
        assert net.known.requests == [], address
