"""S11, A4: a few bytes that become many, in requests and in answers: refused, and the proxy neither swells nor stands still."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import brotli
import pytest

from routecodex.routing.codings import zstd
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.system.tool import CONFIG, CREDENTIALS, HOSTS, write

pytestmark = pytest.mark.system

MIB = 1 << 20
SIZE = 256 * MIB
GROWTH = 100 * MIB
STANDSTILL = 25
"""While somebody else's small call waits, the proxy computes no longer than this machine takes to unpack as many MiB of JSON."""


def _packed(packer: object, finish: Callable[[], bytes], write: Callable[[bytes], bytes]) -> bytes:
    """A plausible beginning and then nothing but zeros, packed without ever being whole in memory."""
    piece = bytes(4 * MIB)
    out = [write(b'{"messages": "')]
    out += [write(piece) for _ in range(SIZE // len(piece))]
    return b"".join(out) + finish()


def _zlib_bomb(window: int) -> bytes:
    packer = zlib.compressobj(9, wbits=window)
    return _packed(packer, packer.flush, packer.compress)


def _brotli_bomb() -> bytes:
    packer = brotli.Compressor(quality=5)
    return _packed(packer, packer.finish, packer.process)


def _zstd_bomb() -> bytes:
    packer = zstd.ZstdCompressor(level=3)
    return _packed(packer, packer.flush, packer.compress)


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    return {"gzip": _zlib_bomb(31), "deflate": _zlib_bomb(15), "br": _brotli_bomb(), "zstd": _zstd_bomb()}


@dataclass
class Site:
    proxy: Mitmdump
    provider: FakeProvider

    def watch(self, work: Callable[[], object]) -> tuple[float, int]:
        """How much the proxy computed at most while a small call waited, as the work was done, and by how much it grew.

        Measured in CPU time, by a yardstick that is as slow as this machine is just now.
        """
        before, mebibyte_s = self.proxy.rss_bytes, _mebibyte_s()
        longest, largest = asyncio.run(self._watch(work))
        return longest / max(mebibyte_s, _mebibyte_s()), largest - before

    def clock(self) -> float:
        computed = self.proxy.cpu_s
        return computed if computed is not None else time.process_time()

    async def _watch(self, work: Callable[[], object]) -> tuple[float, int]:
        done = asyncio.create_task(asyncio.to_thread(work))
        longest, largest = 0.0, 0
        path, body = write(Dialect.MESSAGES, "m", [("user", "<**echo**> still there?")], False)
        async with Http1(Route(HOSTS[Dialect.MESSAGES], self.proxy)) as client:
            while not done.done():
                began = self.clock()
                answer = await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]])
                longest = max(longest, self.clock() - began)
                largest = max(largest, self.proxy.rss_bytes)
                assert answer.status == 200
                await asyncio.sleep(0.005)
        await done
        return longest, max(largest, self.proxy.rss_bytes)


def _mebibyte_s() -> float:
    """CPU seconds for a MiB of usual JSON, packed and unpacked, read and written."""
    text = json.dumps([{"role": "user", "content": f"word {n} of many"} for n in range(22_000)])
    began = time.thread_time()
    json.dumps(json.loads(gzip.decompress(gzip.compress(text.encode()))))
    return time.thread_time() - began


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with (
        FakeProvider() as provider,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path_factory.mktemp("bombs")) as proxy,
    ):
        yield Site(proxy, provider)


@pytest.fixture(autouse=True)
def steady(site: Site) -> Iterator[None]:
    site.provider.forget()
    yield
    assert site.proxy.alive
    assert not site.proxy.crash
    assert "RouteCodex failed in" not in site.proxy.log


def send(site: Site, dialect: Dialect, body: bytes, coding: str) -> Answer:
    async def once() -> Answer:
        async with Http1(Route(HOSTS[dialect], site.proxy)) as client:
            headers = [CREDENTIALS[dialect], ("content-encoding", coding)]
            return await client.send("POST", write(dialect, "m", [], False)[0], body=body, headers=headers)

    return asyncio.run(once())


# ---- requests ----


@pytest.mark.parametrize(
    "dialect, coding",
    [*((dialect, "gzip") for dialect in Dialect), *((Dialect.MESSAGES, coding) for coding in ("deflate", "br", "zstd"))],
)
def test_a_request_that_swells_is_refused(site: Site, bombs: dict[str, bytes], dialect: Dialect, coding: str) -> None:
    answers: list[Answer] = []
    longest, growth = site.watch(lambda: answers.append(send(site, dialect, bombs[coding], coding)))
    (answer,) = answers
    assert answer.status == 413
    assert "32 MiB" in answer.json["error"]["message"]
    assert answer.header("x-should-retry") == "false"
    assert site.provider.calls == []
    assert growth < GROWTH
    assert longest < STANDSTILL


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_bomb_behind_harmless_text(site: Site, bombs: dict[str, bytes], coding: str) -> None:
    """What begins like any other body is no proof of its end."""
    text = " ".join(f"word{n}" for n in range(200_000)).encode()
    pack = {"gzip": gzip.compress, "br": lambda data: brotli.compress(data, quality=5), "zstd": zstd.compress}[coding]
    if coding == "br":
        packer = brotli.Compressor(quality=5)
        body = packer.process(text) + packer.process(bytes(200 * MIB)) + packer.finish()
    else:
        body = pack(text) + bombs[coding]
    answers: list[Answer] = []
    longest, growth = site.watch(lambda: answers.append(send(site, Dialect.MESSAGES, body, coding)))
    assert answers[0].status == 413
    assert growth < GROWTH
    assert longest < STANDSTILL


MEMBERS = {
    "gzip": gzip.compress(b""),
    "zstd": zstd.compress(b""),
    "deflate": b"\0\0\0\xff\xff",  # without its header: stored blocks of no bytes
    "br": b"\x06",  # nothing, and the end
}


@pytest.mark.parametrize("coding", MEMBERS)
def test_ten_megabytes_that_hold_nothing(site: Site, coding: str) -> None:
    """A million members, frames or blocks, each of them empty: the whole must not be copied for each."""
    body = MEMBERS[coding] * (10 * MIB // len(MEMBERS[coding]))
    answers: list[Answer] = []
    longest, growth = site.watch(lambda: answers.append(send(site, Dialect.MESSAGES, body, coding)))
    assert answers[0].status == 400
    assert site.provider.calls == []
    assert growth < GROWTH
    assert longest < STANDSTILL


@pytest.mark.parametrize(
    "message, count", [(b'{"role":"user","content":"a"},   ', 300_000), (b"{},", 350_000)], ids=["that say little", "empty"]
)
def test_hundreds_of_thousands_of_messages(site: Site, message: bytes, count: int) -> None:
    _, body = write(Dialect.MESSAGES, "m", [], False)
    whole = json.dumps(body).encode().replace(b"[]", b"[" + message * count + message.strip(b", ") + b"]")
    answers: list[Answer] = []
    longest, growth = site.watch(lambda: answers.append(send(site, Dialect.MESSAGES, whole, "identity")))
    assert answers[0].status == 400
    assert "Begin a new conversation" in answers[0].json["error"]["message"]
    assert site.provider.calls == []
    assert growth < GROWTH
    assert longest < STANDSTILL


def test_bombs_one_after_the_other_leave_nothing_behind(site: Site, bombs: dict[str, bytes]) -> None:
    before = site.proxy.rss_bytes
    for _ in range(3):
        for coding, bomb in bombs.items():
            assert send(site, Dialect.MESSAGES, bomb, coding).status == 413
    assert site.proxy.rss_bytes - before < GROWTH


# ---- large ones that are not packed ----


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_body_without_end_is_not_kept(site: Site, chunked: bool) -> None:
    """Far more than the limit: refused when the limit is reached, not when all of it is there."""
    piece = b"x" * MIB

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(300):
            yield piece

    async def once() -> Answer:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], site.proxy)) as client:
            if chunked:
                return await client.send("POST", "/v1/messages", body=pieces())
            await client.write_raw(b"POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 314572800\r\n\r\n")
            sending = asyncio.create_task(_pour(client, piece))
            answer = await client.read_answer()
            sending.cancel()
            return answer

    answers: list[Answer] = []
    longest, growth = site.watch(lambda: answers.append(asyncio.run(once())))
    assert answers[0].status in (413, 0), "0: cut off before the answer could be read"
    assert growth < GROWTH
    assert longest < STANDSTILL
    assert site.provider.calls == []


async def _pour(client: Http1, piece: bytes) -> None:
    try:
        for _ in range(300):
            await client.write_raw(piece)
    except Exception:  # cut off, as it should be
        return


def test_deep_json_costs_nothing(site: Site) -> None:
    bodies = [b"[" * MIB, b'{"a":' * (MIB // 5), b'{"messages":' + b"[" * 190 + b"]" * 190 + b"}", b'"' + b"\\" * MIB]
    answers: list[Answer] = []

    def all_of_them() -> None:
        for body in bodies:
            answers.append(send(site, Dialect.CHAT, body, "identity"))

    longest, growth = site.watch(all_of_them)
    assert [answer.status for answer in answers] == [400] * len(bodies)
    assert longest < STANDSTILL
    assert growth < GROWTH


def test_a_million_tags_cost_nothing(site: Site) -> None:
    """F14: what looks like tags, a mebibyte of it."""
    hostile = [
        "<**" * (MIB // 3),
        "<**a**>" * (MIB // 7),
        '<**stopMessage:"' * (MIB // 16),
        "<*" * (MIB // 2),
        "**>" * (MIB // 3),
    ]
    answers: list[Answer] = []

    def all_of_them() -> None:
        for text in hostile:
            body = json.dumps(write(Dialect.MESSAGES, "m", [("user", text)], False)[1]).encode()
            answers.append(send(site, Dialect.MESSAGES, body, "identity"))

    longest, _ = site.watch(all_of_them)
    assert {answer.status for answer in answers} <= {200, 400}
    assert longest < STANDSTILL


# ---- answers ----


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_swells_is_given_up(site: Site, bombs: dict[str, bytes], coding: str, stream: bool, status: int) -> None:
    """Another key answers, or an error ends it: nobody waits for a gigabyte of nothing."""
    site.provider.enqueue(Behaviour(status=status, body=bombs[coding], claims=coding))
    path, body = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> hello")], stream)
    answers: list[Answer] = []

    async def once() -> None:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], site.proxy)) as client:
            answers.append(await client.send("POST", path, body=body, headers=[CREDENTIALS[Dialect.MESSAGES]]))

    longest, growth = site.watch(lambda: asyncio.run(once()))
    assert answers[0].ended != "timeout"
    assert growth < GROWTH
    assert longest < STANDSTILL
    assert len(answers[0].body) < 64 * MIB


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("coding", MEMBERS)
def test_an_answer_that_holds_nothing_is_given_up(site: Site, coding: str, stream: bool) -> None:
    body = MEMBERS[coding] * (10 * MIB // len(MEMBERS[coding]))
    site.provider.enqueue(Behaviour(body=body, claims=coding))
    path, asked = write(Dialect.MESSAGES, "m", [("user", "<**six.m**> hello")], stream)
    answers: list[Answer] = []

    async def once() -> None:
        async with Http1(Route(HOSTS[Dialect.MESSAGES], site.proxy)) as client:
            answers.append(await client.send("POST", path, body=asked, headers=[CREDENTIALS[Dialect.MESSAGES]], within=90))

    longest, growth = site.watch(lambda: asyncio.run(once()))
    assert answers[0].ended == "complete"
    assert coding == "deflate" or b"hello" in answers[0].body, "no other key answered"
    assert growth < GROWTH
    assert longest < STANDSTILL
