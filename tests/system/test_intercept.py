"""Only the configured hosts are opened, and of those only the paths of models are touched."""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.certificates import client_context
from tests.rig.client import Answer, Http1, Leave, Route, call
from tests.rig.pipe import connect, secure
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool

pytestmark = pytest.mark.system

ANTHROPIC = "https://api.anthropic.com"
CALL = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "words of a person"}]}
CREDENTIALS = [("authorization", "Bearer headersecret-1"), ("x-api-key", "headersecret-2"), ("cookie", "a=headersecret-3")]


async def _issuer(proxy: Mitmdump, provider: FakeProvider, place: str, sni: str) -> str:
    """Who signed the certificate that a client sees."""
    pipe = await connect("127.0.0.1", proxy.port)
    await pipe.write(f"CONNECT {place}:443 HTTP/1.1\r\nHost: {place}:443\r\n\r\n".encode())
    assert b" 200 " in await pipe.read_until(b"\r\n\r\n")
    await secure(pipe, client_context(proxy.ca_path, provider.ca), sni)
    certificate: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = pipe.transport.get_extra_info("ssl_object").getpeercert()
    pipe.close()
    return dict(pair[0] for pair in certificate["issuer"])["commonName"]


@pytest.mark.parametrize(
    "place, sni, opened",
    [
        ("api.anthropic.com", "api.anthropic.com", True),
        ("API.Anthropic.com", "API.Anthropic.com", True),
        ("generativelanguage.googleapis.com", "generativelanguage.googleapis.com", True),
        pytest.param("open.bigmodel.cn", "open.bigmodel.cn", True, id="a provider's host is added by itself"),
        pytest.param("127.0.0.2", "api.openai.com", True, id="by address, with the name in the handshake"),
        ("github.com", "github.com", False),
        ("anthropic.com", "anthropic.com", False),
        ("console.api.anthropic.com", "console.api.anthropic.com", False),
        ("api.anthropic.com.evil.example", "api.anthropic.com.evil.example", False),
        ("xapi.anthropic.com", "xapi.anthropic.com", False),
        ("oauth2.googleapis.com", "oauth2.googleapis.com", False),
        ("169.254.169.254", "localhost", False),
    ],
)
def test_which_hosts_are_opened(tool: Tool, place: str, sni: str, opened: bool) -> None:
    issuer = asyncio.run(_issuer(tool.proxy, tool.provider, place, sni))
    assert issuer == ("mitmproxy" if opened else "rig provider authority")


def test_the_rest_is_tunnelled_as_it_is(tool: Tool) -> None:
    answer = call(
        "https://github.com",
        "/v1/messages?k=1",
        {"model": "m", "messages": [{"role": "user", "content": "<**echo**> hello"}]},
        proxy=tool.proxy,
        ca=tool.provider.ca,
        headers={"authorization": "Bearer k"},
    )
    assert answer.status == 200
    (received,) = tool.received
    assert b"<**echo**> hello" in received.body
    assert received.header("authorization") == "Bearer k"
    assert "github.com/v1/messages" not in tool.proxy.log


def test_without_trust_in_the_proxy_other_hosts_still_work(tool: Tool) -> None:
    """A program that trusts only the real authorities is disturbed for our hosts alone."""

    async def connected(host: str) -> None:
        pipe = await connect("127.0.0.1", tool.proxy.port)
        await pipe.write(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        await pipe.read_until(b"\r\n\r\n")
        try:
            await secure(pipe, client_context(tool.provider.ca), host)
        finally:
            pipe.close()

    asyncio.run(connected("pypi.org"))
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(connected("api.openai.com"))


# ---- other paths of our hosts ----

OTHER_PATHS = [
    ("GET", "/api/claude_code/settings?x=%2F&&y=1+2", b""),
    ("POST", "/api/event_logging/v2/batch?key=querysecret&alt=json", b'{"a": "<**glm**>",  "b":1}'),
    ("POST", "/v1/messages/batches", b'{"requests":[{"params":{"messages":[{"role":"user","content":"<**echo**>"}]}}]}'),
    ("POST", "/v1internal:loadCodeAssist?access_token=querysecret", b"{}"),
    ("GET", "/v1/messages?beta=true", b""),
    ("POST", "/v1/files", b"\x00\xff binary \r\n\r\n <**echo**>"),
    ("PUT", "/v1/chat/completions", b"{}"),
    ("DELETE", "/v1/responses/resp_1?token=querysecret#f", b""),
    ("POST", "//v1//other/../path;a=b?", b"x"),
]
HEADERS = [
    ("X-Zebra", "first"),
    ("x-api-key", "headersecret"),
    ("Accept-Encoding", "gzip, br"),
    ("Cookie", "a=headersecret; b=2"),
    ("X-zebra", "second"),
    ("Authorization", "Bearer headersecret"),
    ("Content-Type", "application/x-odd; charset=latin-1"),
    ("User-Agent", "a tool/1"),
    ("X-Empty", ""),
    ("TE", "trailers"),
]


@pytest.mark.parametrize("method, path, body", OTHER_PATHS)
def test_other_paths_pass_untouched(tool: Tool, method: str, path: str, body: bytes) -> None:
    provider, proxy = tool.provider, tool.proxy
    back = (("X-Answer", "one"), ("Set-Cookie", "c=1"), ("x-answer", "two"), ("ETag", '"e"'))
    provider.always(Behaviour(status=207, headers=back, body=b"{'answer': \x00\xff}"), path=".")
    answer = call(ANTHROPIC, path, body, method=method, proxy=proxy, headers=HEADERS)
    (received,) = provider.requests
    lines = [("Host", "api.anthropic.com"), *HEADERS, ("Content-Length", str(len(body)))]
    assert (
        received.head.decode("latin-1")
        == f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
    )
    assert received.wire_body == body
    assert answer.status == 207
    assert answer.body == b"{'answer': \x00\xff}"
    assert [pair for pair in answer.headers if pair in back] == list(back)


def test_a_chunked_body_on_another_path_keeps_its_bytes(tool: Tool) -> None:
    async def pieces():  # type: ignore[no-untyped-def]
        for piece in (b"one ", b"two ", b"three"):
            yield piece

    answer = call(ANTHROPIC, "/v1/files", pieces(), proxy=tool.proxy, headers={"x-api-key": "headersecret"})
    assert answer.status == 200
    assert tool.provider.requests[0].body == b"one two three"
    assert tool.provider.requests[0].header("x-api-key") == "headersecret"


def test_a_streamed_answer_on_another_path_streams(tool: Tool) -> None:
    """Event streams of other paths arrive as they are sent, or come whole: but with every byte."""
    body = b"".join(b"data: %d\n\n" % n for n in range(50))
    tool.provider.always(Behaviour(body=body, framing="chunked", bytes_per_packet=7), path="/other")
    answer = call(ANTHROPIC, "/v1/other/stream", b"", proxy=tool.proxy, method="GET")
    assert answer.body == body


# ---- calls of models ----


@pytest.mark.parametrize("text", ["words of a person", "<**echo**> words of a person"])
def test_an_answer_that_is_known_whole_has_a_length(tool: Tool, text: str) -> None:
    """A client then has it all at once, whatever else is still to be written down."""
    asked = {**CALL, "messages": [{"role": "user", "content": text}]}
    whole = call(ANTHROPIC, "/v1/messages", asked, proxy=tool.proxy)
    assert (whole.header("content-length"), whole.header("transfer-encoding")) == (str(len(whole.body)), None)


def test_a_call_that_needs_no_edit_passes_byte_for_byte(tool: Tool) -> None:
    """Odd spacing, key order, unknown fields, repeated keys, numbers as they were written."""
    body = b'{ "model":"claude-x",\n"odd" : 1.50e2, "messages" : [ {"content":"hi \\u00e9\\/", "role":"user"} ] ,"odd":[ ]}'
    headers = [("X-B", "1"), ("x-api-key", "callsecret"), ("anthropic-version", "2023-06-01"), ("x-a", "2"), ("X-B", "3")]
    answer = call(ANTHROPIC, "/v1/messages?beta=true&x=%20", body, proxy=tool.proxy, headers=headers)
    assert answer.status == 200
    (received,) = tool.received
    assert received.body == body
    assert received.target == "/v1/messages?beta=true&x=%20"
    sent = [pair for pair in received.headers if pair[0].lower() not in ("host", "content-length", "content-type")]
    # At the end what we add; secrets in their own place.
    assert sent == [*headers, ("accept-encoding", "identity")]


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages"])
def test_credentials_go_where_the_client_sent_them(tool: Tool, path: str) -> None:
    answer = call(ANTHROPIC, f"{path}?key=in-query&b=1", CALL, proxy=tool.proxy, headers=CREDENTIALS)
    assert answer.status == 200
    (received,) = tool.received
    assert received.target == f"{path}?key=in-query&b=1"
    assert [pair for pair in received.headers if pair in CREDENTIALS] == CREDENTIALS


def test_what_is_saved(provider: FakeProvider, tmp_path: Path) -> None:
    """Flows of our hosts are in the file, without a credential; what was tunnelled is not in it at all."""
    provider.forget()
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "saving", flows=True) as proxy:
        call("https://github.com", "/v1/tunnelled", b"{}", proxy=proxy, ca=provider.ca, headers=CREDENTIALS)
        call(ANTHROPIC, "/v1/other?token=in-query", b"{}", proxy=proxy, headers=CREDENTIALS)
        call(ANTHROPIC, "/v1/messages?key=in-query", CALL, proxy=proxy, headers=CREDENTIALS)
        call(ANTHROPIC, "/v1/messages", CALL | {"stream": True}, proxy=proxy, headers=CREDENTIALS)
        call("https://api.openai.com", "/v1/responses", b"", method="GET", proxy=proxy, headers=[*UPGRADE, *CREDENTIALS])
        provider.enqueue(Behaviour(before="hang"))
        leave = Leave(when=lambda: b"inflight" in provider.requests[-1].head)
        hanging = call(ANTHROPIC, "/v1/messages?inflight", CALL, proxy=proxy, headers=CREDENTIALS, leave=leave)
        assert hanging.ended == "left"
    assert proxy.flows_path is not None
    saved = proxy.flows_path.read_bytes()
    for expected in (b"/v1/other?token=***", b"/v1/messages?key=***", b"/v1/responses", b"words of a person", b"inflight"):
        assert expected in saved, expected
    assert b"tunnelled" not in saved + proxy.log.encode()
    for secret in (b"headersecret", b"in-query"):
        assert secret not in saved + proxy.log.encode(), secret


def test_what_is_saved_of_a_call_in_flight(provider: FakeProvider, tmp_path: Path) -> None:
    """Who ends the proxy in the middle of a call finds it in the file, without anybody's credential."""
    provider.forget()
    provider.always(Behaviour(before="hang"))
    proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "ended", flows=True)
    with proxy, ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(call, ANTHROPIC, "/v1/messages", body, proxy=proxy, headers=CREDENTIALS)
            for body in (CALL, CALL | {"messages": [{"role": "user", "content": "<**six.k7.m**> hello"}]})
        ]
        provider.wait_for(2)
        assert sorted(received.key or "" for received in provider.calls) == ["headersecret-2", "six-key-007"]
        proxy.stop()
        assert all(one.result().ended != "timeout" for one in calls)
    assert proxy.flows_path is not None
    saved = proxy.flows_path.read_bytes()
    assert saved.count(b"words of a person") == 3, "in the body, and as typed and as sent in what is written down of it"
    assert b"six.example" in saved
    for secret in (b"headersecret", b"six-key"):
        assert secret not in saved + proxy.log.encode(), secret


# ---- WebSockets ----

UPGRADE = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("openai-beta", "responses_websockets=2026-02-06"),
    ("authorization", "Bearer sk-client-secret"),
]


@pytest.mark.parametrize(
    "host, path", [("https://api.openai.com", "/v1/responses"), ("https://api.openai.com", "/backend-api/codex/responses?a=b")]
)
def test_a_websocket_for_answers_is_refused_at_once(tool: Tool, host: str, path: str) -> None:
    answer = call(host, path, b"", method="GET", proxy=tool.proxy, headers=UPGRADE)
    assert answer.status == 426
    assert answer.ended == "complete"
    assert tool.received == []


def test_after_the_refusal_the_same_connection_serves_a_post(tool: Tool) -> None:
    async def both() -> list[Answer]:
        async with Http1(Route("https://api.openai.com", tool.proxy)) as client:
            refused = await client.send("GET", "/v1/responses", headers=UPGRADE)
            body = {"model": "gpt-5", "input": "hello", "stream": True}
            return [refused, await client.send("POST", "/v1/responses", body=body, headers={"authorization": "Bearer k"})]

    refused, answered = asyncio.run(both())
    assert (refused.status, answered.status) == (426, 200)
    assert "response.completed" in answered.text


def test_other_websockets_pass(tool: Tool) -> None:
    """Realtime sockets are none of our business."""
    tool.provider.always(
        Behaviour(
            status=101,
            body=b"",
            headers=(
                ("upgrade", "websocket"),
                ("connection", "Upgrade"),
                ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
            ),
        ),
        path="/realtime",
    )

    async def upgraded() -> bytes:
        async with Http1(Route("https://api.openai.com", tool.proxy)) as client:
            lines = "".join(f"{name}: {value}\r\n" for name, value in [("Host", "api.openai.com"), *UPGRADE])
            await client.write_raw(f"GET /v1/realtime?model=m HTTP/1.1\r\n{lines}\r\n".encode())
            assert client.pipe is not None
            async with asyncio.timeout(60):
                return await client.pipe.read_until(b"\r\n\r\n")

    assert b" 101 " in asyncio.run(upgraded())
    (received,) = tool.received
    assert received.header("authorization") == "Bearer sk-client-secret"
    assert received.target == "/v1/realtime?model=m"
