"""F4: trailers, and whatever else makes a layer of mitmproxy fail: nobody waits for ever, and the proxy lives on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import h2.config
import h2.connection
import h2.events
import pytest

from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.rig.behaviour import Behaviour
from tests.rig.certificates import provider_authority
from tests.rig.client import Answer, Http1, Http2, Route, call
from tests.rig.provider import FakeProvider, Received
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.wire import Asked, Reply, whole
from tests.sheet import seen
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, text_of, write

pytestmark = pytest.mark.system

TRAILERS = (("X-Checksum", "abc"), ("x-more", "1"))
HOSTILE = (("Content-Length", "5"), ("Transfer-Encoding", "chunked"), ("X-Good", "1"))
FORMS = [(dialect, stream) for dialect in Dialect for stream in (True, False)]
MESSAGES = HOSTS[Dialect.MESSAGES]


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as fake:
        yield fake


@pytest.fixture(scope="module")
def proxy(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder, options = tmp_path_factory.mktemp("trailers"), ["routecodex_http2=true"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, options=options) as started:
        yield started
        assert started.alive
        assert not started.crash
        assert "RouteCodex failed" not in started.log


@pytest.fixture(autouse=True)
def fresh(provider: FakeProvider) -> None:
    provider.forget()


async def over(version: int, url: str, proxy: Mitmdump, path: str, body: object, **how: object) -> Answer:
    async with (Http1 if version == 1 else Http2)(Route(url, proxy)) as client:
        return await client.send("POST", path, body=body, within=90, **how)  # type: ignore[arg-type]


def ask(proxy: Mitmdump, text: str, dialect: Dialect, stream: bool, version: int = 1) -> Answer:
    path, body = write(dialect, "m", [("user", text)], stream)
    return asyncio.run(over(version, HOSTS[dialect], proxy, path, body, headers=[CREDENTIALS[dialect]]))


# ---- from a provider ----


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dialect, stream", FORMS)
@pytest.mark.parametrize("text", ["hello", "<**six.m**> hello"], ids=["home", "elsewhere"])
def test_an_answer_with_trailers_is_whole(
    proxy: Mitmdump, provider: FakeProvider, version: int, dialect: Dialect, stream: bool, text: str
) -> None:
    provider.enqueue(Behaviour(framing="chunked", trailers=TRAILERS + HOSTILE))
    answer = ask(proxy, text, dialect, stream, version)
    assert (answer.status, answer.ended) == (200, "complete")
    assert text_of(dialect, answer.body, stream).endswith("was asked: hello")
    assert len(provider.calls) == 1


@pytest.mark.parametrize("trailers", [TRAILERS, HOSTILE])
def test_errors_and_later_rounds_with_trailers(
    proxy: Mitmdump, provider: FakeProvider, trailers: tuple[tuple[str, str], ...]
) -> None:
    provider.enqueue(Behaviour(status=529, error="busy", framing="chunked", trailers=trailers))
    provider.enqueue(Behaviour(framing="chunked", trailers=trailers))
    answer = ask(proxy, "<**six.m**> hello", Dialect.MESSAGES, True)
    assert text_of(Dialect.MESSAGES, answer.body, True) == "m was asked: hello"
    assert len(provider.calls) == 2


def test_rounds_of_a_turn_with_trailers(proxy: Mitmdump, provider: FakeProvider) -> None:
    provider.always(Behaviour(framing="chunked", trailers=TRAILERS))
    answer = ask(proxy, '<**six.m**> <**stopMessage:"go on",2**> hello', Dialect.MESSAGES, True)
    assert (answer.status, answer.ended) == (200, "complete")
    assert len(provider.calls) == 3


@pytest.mark.parametrize("version", [1, 2])
def test_trailers_pass_on_other_paths(proxy: Mitmdump, provider: FakeProvider, version: int) -> None:
    """But for those that would frame another message."""
    provider.always(Behaviour(body=b"data" * 9, framing="chunked", trailers=TRAILERS + HOSTILE), path="/v1/files")
    answer = asyncio.run(over(version, MESSAGES, proxy, "/v1/files", b"{}"))
    assert (answer.status, answer.body, answer.ended) == (200, b"data" * 9, "complete")
    assert answer.trailers == [("x-checksum", "abc"), ("x-more", "1"), ("x-good", "1")]


def test_the_connection_serves_on(proxy: Mitmdump, provider: FakeProvider) -> None:
    async def three() -> list[Answer]:
        async with Http1(Route(MESSAGES, proxy)) as client:
            answers = []
            for trailers in (TRAILERS, (), HOSTILE[:2]):
                provider.enqueue(Behaviour(body=b"{}", framing="chunked", trailers=trailers), path="/v1/files")
                answers.append(await client.send("POST", "/v1/files", body=b"{}", within=90))
            return answers

    answers = asyncio.run(three())
    assert [len(answer.trailers) for answer in answers] == [2, 0, 0]
    assert len({received.connection for received in provider.requests}) == 1


# ---- from a client ----


def chunked(path: str, body: bytes, trailers: tuple[tuple[str, str], ...]) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: api.anthropic.com\r\nTransfer-Encoding: chunked\r\nx-api-key: sk-client-secret\r\n\r\n"
    tail = "".join(f"{name}: {value}\r\n" for name, value in trailers)
    return head.encode() + b"%x\r\n%b\r\n0\r\n" % (len(body), body) + tail.encode() + b"\r\n"


@pytest.mark.parametrize("trailers", [TRAILERS, HOSTILE])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/files"])
def test_a_request_with_trailers(
    proxy: Mitmdump, provider: FakeProvider, path: str, trailers: tuple[tuple[str, str], ...]
) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}'

    async def twice() -> list[Answer]:
        async with Http1(Route(MESSAGES, proxy)) as client:
            answers = []
            for _ in range(2):
                await client.write_raw(chunked(path, body, trailers))
                answers.append(await client.read_answer(within=90))
            return answers

    assert [(answer.status, answer.ended) for answer in asyncio.run(twice())] == [(200, "complete")] * 2
    assert [received.body for received in provider.requests] == [body] * 2
    sent = b"".join(bytes(pipe.received or b"") for pipe in provider.connections)
    assert sent.count(b"x-checksum: abc") == (2 if path == "/v1/files" and trailers == TRAILERS else 0)
    assert b"Content-Length: 5" not in sent


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/files"])
@pytest.mark.parametrize("length", [True, False])
def test_an_http2_request_with_trailers(proxy: Mitmdump, provider: FakeProvider, path: str, length: bool) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}'
    trailers = [("x-checksum", "abc")]
    answer = asyncio.run(over(2, MESSAGES, proxy, path, body, length=length, trailers=trailers))
    assert (answer.status, answer.ended) == (200, "complete")
    assert [received.body for received in provider.requests] == [body]


def test_an_http2_provider_with_trailers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """For a client of HTTP/2, mitmproxy speaks it to the provider as well."""
    folder, options = tmp_path_factory.mktemp("both"), ["routecodex_http2=true"]

    _, body = write(Dialect.MESSAGES, "m", [("user", "<**claude.claude-sonnet-4-5**> hello")], False)

    async def asked() -> list[Answer]:
        server = await _http2_server()
        port = server.sockets[0].getsockname()[1]
        proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream={"*": (port, port)}, folder=folder, options=options)
        async with server:
            await asyncio.to_thread(proxy.start)
            try:
                return [
                    await over(2, MESSAGES, proxy, path, body, headers=[("x-api-key", "k")])
                    for path in ("/v1/messages", "/v1/files")
                ]
            finally:
                await asyncio.to_thread(proxy.stop)
                assert "has crashed" not in proxy.log
                assert "RouteCodex failed" not in proxy.log

    model, other = asyncio.run(asked())
    assert (model.status, model.ended) == (200, "complete"), model.text
    assert text_of(Dialect.MESSAGES, model.body, False) == "by HTTP/2"
    assert (other.status, other.ended, other.trailers) == (200, "complete", [("x-checksum", "abc")])


async def _http2_server() -> asyncio.Server:
    body = whole(Reply("by HTTP/2"), Asked(Dialect.MESSAGES, "generate", "m"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    number = event.stream_id
                    assert number is not None
                    connection.send_headers(number, [(":status", "200"), ("content-type", "application/json")])
                    connection.send_data(number, body)
                    connection.send_headers(number, [("x-checksum", "abc")], end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
        writer.close()

    context = provider_authority()._make_context("api.anthropic.com")
    context.set_alpn_protocols(["h2"])
    context.sni_callback = None
    return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)


# ---- anything else ----

_FAULTS = """
from routecodex.addons import framing

def failing(owner, name, mark):
    usual = getattr(owner, name)
    def instead(self, event):
        if mark in bytes(getattr(event, "data", b"")):
            raise RuntimeError("as a mistake in mitmproxy would")
        yield from usual(self, event)
    setattr(owner, name, instead)

failing(framing.Client, "read_body", b"provider fault")
failing(framing.Client, "read_headers", b"head fault")
failing(framing.Server, "read_body", b"client fault")
"""


@pytest.fixture(scope="module")
def faulty(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mitmdump]:
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faults.py").write_text(_FAULTS)
    with Mitmdump(script=[SCRIPT, folder / "faults.py"], config=CONFIG, upstream=provider, folder=folder) as started:
        yield started
        assert started.alive
        assert not started.crash


@pytest.mark.parametrize("fault", ["head fault", "provider fault"])
@pytest.mark.parametrize("dialect, stream", FORMS)
def test_a_layer_that_fails_over_a_provider_is_a_failed_attempt(
    faulty: Mitmdump, provider: FakeProvider, dialect: Dialect, stream: bool, fault: str
) -> None:
    late = b"\r\n\r\n" if fault == "provider fault" else b""
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\nX: 1" + late + fault.encode()
    provider.enqueue(Behaviour(raw=raw, ending="hang"), Behaviour(raw=raw, ending="hang"))
    answer = ask(faulty, "<**six.m**> hello", dialect, stream)
    assert (answer.status, answer.ended) == (200, "complete")
    assert text_of(dialect, answer.body, stream) == "m was asked: hello"
    provider.wait_until(lambda: all(received.left_early for received in provider.calls[:2]))


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_layer_that_fails_within_an_answer_ends_it_in_an_error(
    faulty: Mitmdump, provider: FakeProvider, dialect: Dialect
) -> None:
    reply = Reply(("one ", "provider fault ", "three"))
    provider.enqueue(Behaviour(reply=reply, ending="hang", delay_s=0.05))
    answer = ask(faulty, "<**six.m**> hello", dialect, True)
    assert answer.ended == "complete"
    assert "one " in answer.text
    assert "is no HTTP" in answer.text
    assert "three" not in answer.text
    provider.wait_until(lambda: provider.calls[0].left_early)


def test_other_paths_end_as_well(faulty: Mitmdump, provider: FakeProvider) -> None:
    provider.always(
        Behaviour(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nprovider fault", ending="hang"), path="/v1/files"
    )
    answer = call(MESSAGES, "/v1/files", b"{}", proxy=faulty, within=90)
    assert answer.ended in ("closed", "reset")
    provider.wait_until(lambda: provider.requests[0].left_early)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/files"])
def test_a_layer_that_fails_over_a_client_cuts_it_off(faulty: Mitmdump, provider: FakeProvider, path: str) -> None:
    async def written() -> None:
        async with Http1(Route(MESSAGES, faulty)) as client:
            assert client.pipe is not None
            await client.write_raw(chunked(path, b"{", ())[:-5])
            await client.write_raw(b"c\r\nclient fault\r\n")
            async with asyncio.timeout(20):
                await client.pipe.wait_gone()

    asyncio.run(written())
    provider.wait_until(lambda: provider.open_connections == 0)
    assert ask(faulty, "<**echo**> on it goes", Dialect.MESSAGES, False).status == 200


# ---- any bytes ----

ASKED, COUNT = 100_000, 1_500 if LONG else 60
"""A spoiled message is a connection through a real proxy: all that are asked for would take the night."""
_GOOD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'4\r\n{"a"\r\n5\r\n:[1]}\r\n0\r\nX: 1\r\n\r\n'
)
_ASKED = chunked("/v1/files", b"{}", TRAILERS)
_BITS = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b":",
    b" ",
    b"0\r\n",
    b"\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"Content-Length: -1\r\n",
]
_BITS += [
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"ffffffffffffffff\r\n",
    b"\xff\xfe",
    b"Connection: close\r\n",
    b"X: " + b"y" * 9000,
]


def spoiled(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at, bit = chance.randrange(len(data) + 1), chance.choice(_BITS)
        match chance.randrange(3):
            case 0:
                data = data[:at] + bit + data[at:]
            case 1:
                data = data[:at] + data[at + chance.randint(1, 9) :]
            case 2:
                data = data[:at] + bit + data[at + len(bit) :]
    return data or b"\n"


def test_any_bytes_of_a_provider_come_to_an_end(proxy: Mitmdump, provider: FakeProvider) -> None:
    chance = random.Random(4)
    raws = [spoiled(_GOOD, chance) for _ in range(COUNT)]

    given: set[int] = set()

    def rule(received: Received) -> Behaviour | None:
        """Spoiled once; who asks again gets an answer."""
        number = int(received.header("x-number") or -1)
        if number in given:
            return None
        given.add(number)
        return Behaviour(raw=raws[number], close=True)

    provider.script(rule)

    async def asked(number: int) -> Answer:
        path, body = write(Dialect.MESSAGES, "m", [("user", "hello")], bool(number % 2))
        path = path if number % 3 else "/v1/files"
        own = [CREDENTIALS[Dialect.MESSAGES], ("x-number", str(number))]
        return await over(1, MESSAGES, proxy, path, body, headers=own)

    async def all_of_them() -> list[Answer]:
        """Some beside each other: an attempt that fails is repeated after a pause."""
        gate = asyncio.Semaphore(8)

        async def gated(number: int) -> Answer:
            async with gate:
                return await asked(number)

        return await asyncio.gather(*map(gated, range(COUNT)))

    answers = asyncio.run(all_of_them())
    print(f"{len(answers)} spoiled answers, {sum(answer.ended == 'complete' for answer in answers)} came to their end")
    assert [raw for raw, answer in zip(raws, answers, strict=True) if answer.ended in ("timeout", "left")] == []
    assert not proxy.crash
    seen("S7", f"{COUNT:,} spoiled answers (of the {ASKED:,} messages asked): all came to an end, 0 crashes")


def test_any_bytes_of_a_client_come_to_an_end(proxy: Mitmdump, provider: FakeProvider) -> None:
    """A request that is not complete is waited for; so each of these clients has done its part and says so."""
    chance = random.Random(5)
    raws = [spoiled(_ASKED, chance) for _ in range(COUNT)]

    async def asked(raw: bytes) -> bool:
        async with Http1(Route(MESSAGES, proxy)) as client:
            await client.write_raw(raw)
            assert client.pipe is not None
            if client.pipe.transport.can_write_eof():
                client.pipe.transport.write_eof()
            else:
                client.pipe.close()
            async with asyncio.timeout(20):
                await client.pipe.wait_gone()
            return True

    async def all_of_them() -> int:
        return sum([await asked(raw) for raw in raws])

    assert asyncio.run(all_of_them()) == COUNT
    assert not proxy.crash
    provider.wait_until(lambda: provider.open_connections == 0)
    assert ask(proxy, "<**echo**> on it goes", Dialect.MESSAGES, False).status == 200
    seen("S7", f"{COUNT:,} spoiled requests (of the {ASKED:,} messages asked): all came to an end, 0 crashes")


@pytest.mark.parametrize("side", ["client", "provider"])
def test_a_head_without_an_end(proxy: Mitmdump, provider: FakeProvider, side: str) -> None:
    endless = b"X-Long: " + b"y" * 300_000
    if side == "provider":
        provider.always(Behaviour(raw=b"HTTP/1.1 200 OK\r\n" + endless, ending="hang"), path=".")
        answer = call(MESSAGES, "/v1/files", b"{}", proxy=proxy, within=90)
        assert answer.status == 502
        return

    async def written() -> Answer:
        async with Http1(Route(MESSAGES, proxy)) as client:
            await client.write_raw(b"POST /v1/messages HTTP/1.1\r\n" + endless)
            return await client.read_answer(within=90)

    assert asyncio.run(written()).status == 431


@pytest.mark.parametrize("begun", [b"2\r\n{}\r\n1;", b"2\r\n{}\r\n0\r\nx: "], ids=["a chunk's line", "trailers"])
@pytest.mark.parametrize("side", ["client", "provider"])
def test_a_chunks_line_and_trailers_without_an_end(proxy: Mitmdump, provider: FakeProvider, side: str, begun: bytes) -> None:
    """Whoever sends them is left: nothing is kept for ever."""
    endless = begun + b"y" * 300_000
    if side == "provider":
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        provider.enqueue(Behaviour(raw=head + endless, ending="hang"))
        answer = ask(proxy, "<**six.m**> hello", Dialect.MESSAGES, False)
        assert text_of(Dialect.MESSAGES, answer.body, False) == "m was asked: hello"
        provider.wait_until(lambda: provider.calls[0].left_early)
        return

    async def written() -> None:
        async with Http1(Route(MESSAGES, proxy)) as client:
            assert client.pipe is not None
            await client.write_raw(chunked("/v1/messages", b"{}", ())[: -len(b"2\r\n{}\r\n0\r\n\r\n")] + endless)
            async with asyncio.timeout(20):
                await client.pipe.wait_gone()

    asyncio.run(written())
    assert provider.requests == []
