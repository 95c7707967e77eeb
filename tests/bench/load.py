"""A client that costs little: ready-made bytes out, bytes counted in, connections kept."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.bench.upstream import EVENTS
from tests.rig.client import Route
from tests.rig.pipe import Pipe
from tests.rig.proxy import Mitmdump

URL = "https://api.anthropic.com"
TOGETHER = 16
LARGE_BYTES = 332_000
TAGGED = 1_000_000
"""Sessions of their own, so that a tag of theirs is in force nowhere else."""
TAG = "<**!origin**>"
"""The session keeps to where its calls go anyway: what is measured is the reading of it."""
GO_ON = '<**stopMessage:"Go on.",1**> Say something short.'


class WrongAnswer(Exception):
    """A fast wrong answer is no measurement."""


def make_request(
    *,
    stream: bool = False,
    size: int = 0,
    headers: tuple[tuple[str, str], ...] = (),
    text: str = "Say something short.",
    session: int = 0,
    model: str = "claude-sonnet-4-5",
    body: bytes = b"",
) -> bytes:
    """A Messages call as a coding tool writes it; `size`: with a history of so many bytes; or all of it as `body`."""
    history: list[dict[str, object]] = []
    while size > 0:
        said = f"Turn {len(history)}: " + "the quick brown fox jumps over the lazy dog, and writes a line of code. " * 50
        history.append({"role": "assistant" if len(history) % 2 else "user", "content": [{"type": "text", "text": said}]})
        size -= len(said) + 60
    if len(history) % 2:
        history.append({"role": "assistant", "content": [{"type": "text", "text": "Done."}]})
    history.append({"role": "user", "content": [{"type": "text", "text": text}]})
    call: dict[str, object] = {"model": model, "max_tokens": 1024, "messages": history}
    if stream:
        call["stream"] = True
    body = body or json.dumps(call, separators=(",", ":")).encode()
    lines = [
        ("Host", "api.anthropic.com"),
        ("User-Agent", "claude-cli/2.1.326 (external, cli)"),
        ("x-api-key", "sk-ant-bench"),
        ("anthropic-version", "2023-06-01"),
        ("x-claude-code-session-id", f"5f0c7b5e-0000-4000-8000-{0xBE7C + session:012x}"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        *headers,
    ]
    return b"POST /v1/messages HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines).encode() + b"\r\n" + body


async def exchange(pipe: Pipe, request: bytes) -> bytes:
    """One call; the answer's body as it came over the wire."""
    await pipe.write(request)
    head = (await pipe.read_until(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise WrongAnswer(head.decode("latin-1") + bytes(pipe.buffer[:500]).decode("latin-1"))
    length = head.find(b"content-length:")
    if length >= 0:
        return await pipe.read_exactly(int(head[length + 15 :].split(b"\r\n", 1)[0]))
    while not pipe.buffer.endswith(b"\r\n0\r\n\r\n"):
        await pipe.more()
    return pipe.take(len(pipe.buffer))


def join_chunks(body: bytes) -> bytes:
    """A chunked body without its chunk lines: a proxy may cut an event in two."""
    joined, at = bytearray(), 0
    while size := int(body[at : (end := body.index(b"\r\n", at))], 16):
        joined += body[end + 2 : end + 2 + size]
        at = end + 4 + size
    return bytes(joined)


@dataclass
class Side:
    """One of the proxies: its open connections, and what was measured, a figure for each round."""

    name: str
    proxy: Mitmdump
    headers: tuple[tuple[str, str], ...] = ()
    pipes: list[Pipe] = field(default_factory=list)
    sessions: int = 0
    figures: dict[str, list[float]] = field(default_factory=dict)

    async def connect(self) -> None:
        """Every connection makes a call or two, so that no handshake and no first import is measured."""
        route = Route(URL, self.proxy)
        self.pipes = [await route.open("http/1.1") for _ in range(TOGETHER)]
        self.small = make_request(headers=self.headers)
        self.large = make_request(size=LARGE_BYTES, headers=self.headers)
        self.stream = make_request(stream=True, headers=self.headers)
        words = "the quick brown fox jumps over the lazy dog, and writes a line of code. " * (LARGE_BYTES // 72)
        self.tagged = make_request(headers=self.headers, text=f"{TAG} Say something short.", session=TAGGED)
        self.typed = make_request(headers=self.headers, text=words)
        self.typed_tagged = make_request(headers=self.headers, text=f"{words} {TAG}", session=TAGGED + 1)
        for pipe in self.pipes:
            if b"A short answer." not in await exchange(pipe, self.small):
                raise WrongAnswer(f"{self.name}: not the provider's answer")
        if b"A short answer." not in await exchange(self.pipes[0], self.large):
            raise WrongAnswer(f"{self.name}: not the provider's answer to the large call")
        answer = join_chunks(await exchange(self.pipes[0], self.stream))
        if answer.count(b"text_delta") != EVENTS or b"message_stop" not in answer:
            raise WrongAnswer(f"{self.name}: {answer.count(b'text_delta')} of {EVENTS} events")

    def continued(self, *, stream: bool) -> bytes:
        """A call whose answer has two rounds; in a session of its own, as a tag counts once."""
        self.sessions += 1
        return make_request(headers=self.headers, stream=stream, text=GO_ON, session=self.sessions)

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()

    async def measure(self, name: str, measure: Callable[[Side], Awaitable[float]]) -> None:
        self.figures.setdefault(name, []).append(await measure(self))


async def _median_ms(side: Side, request: bytes, times: int) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        await exchange(side.pipes[0], request)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


async def small_ms(side: Side) -> float:
    return await _median_ms(side, side.small, 150)


async def large_ms(side: Side) -> float:
    return await _median_ms(side, side.large, 25)


async def tagged_ms(side: Side) -> float:
    """As an agent's hops repeat it: the tag is obeyed once, and looked at in every call."""
    return await _median_ms(side, side.tagged, 150)


async def typed_ms(side: Side) -> float:
    return await _median_ms(side, side.typed, 25)


async def typed_tagged_ms(side: Side) -> float:
    return await _median_ms(side, side.typed_tagged, 25)


async def stream_ms(side: Side) -> float:
    return await _median_ms(side, side.stream, 3)


async def continued_ms(side: Side) -> float:
    """A small call that is answered in two rounds."""
    took = []
    for request in [side.continued(stream=False) for _ in range(40)]:
        began = time.perf_counter()
        answer = await exchange(side.pipes[0], request)
        took.append(time.perf_counter() - began)
        if answer.count(b"A short answer.") != 2:
            raise WrongAnswer(f"{side.name}: not an answer of two rounds: {answer[:500]!r}")
    return statistics.median(took) * 1000


async def continued_stream_ms(side: Side) -> float:
    """A stream of two rounds, each with all events."""
    took = []
    for request in [side.continued(stream=True) for _ in range(3)]:
        began = time.perf_counter()
        answer = await exchange(side.pipes[0], request)
        took.append(time.perf_counter() - began)
        if (words := join_chunks(answer).count(b"word ")) != 2 * EVENTS:
            raise WrongAnswer(f"{side.name}: {words} of {2 * EVENTS} events of two rounds")
    return statistics.median(took) * 1000


async def per_second(side: Side) -> float:
    async def many(pipe: Pipe) -> None:
        for _ in range(30):
            await exchange(pipe, side.small)

    began = time.perf_counter()
    await asyncio.gather(*(many(pipe) for pipe in side.pipes))
    return 30 * len(side.pipes) / (time.perf_counter() - began)


async def rss_mb(side: Side) -> float:
    return side.proxy.rss_bytes / 1e6


@dataclass(frozen=True)
class Measure:
    """`limit` is for ours compared with plain: a ratio, or a difference for memory."""

    name: str
    unit: str
    take: Callable[[Side], Awaitable[float]]
    limit: float
    smaller_is_better: bool = True
    difference: bool = False

    def compare(self, plain: list[float], ours: list[float]) -> list[float]:
        """Round by round, so that what slows the machine for a while slows both."""
        pairs = zip(plain, ours, strict=True)
        return [b - a if self.difference else b / a for a, b in pairs]

    def met(self, compared: float) -> bool:
        return compared <= self.limit if self.smaller_is_better else compared >= self.limit


MEASURES = (
    Measure("small call, one after another, p50", "ms", small_ms, 1.15),
    Measure(f"small calls, {TOGETHER} at once", "/s", per_second, 0.9, smaller_is_better=False),
    Measure(f"{LARGE_BYTES // 1000} kB call, p50", "ms", large_ms, 1.15),
    Measure("small call with a tag, p50", "ms", tagged_ms, 1.3),
    Measure(f"{LARGE_BYTES // 1000} kB typed at once, p50", "ms", typed_ms, 1.3),
    Measure(f"{LARGE_BYTES // 1000} kB typed, with a tag", "ms", typed_tagged_ms, 1.5),
    Measure(f"stream of {EVENTS:,} events", "ms", stream_ms, 1.0),
    Measure("memory after that", "MB", rss_mb, 40, difference=True),
)


ONE, ONE_STREAM, TWO, TWO_STREAM = "one round", "one round, streamed", "two rounds", "two rounds, streamed"
OF_ONE: dict[str, Callable[[Side], Awaitable[float]]] = {ONE: small_ms, ONE_STREAM: stream_ms}
OF_TWO: dict[str, Callable[[Side], Awaitable[float]]] = {TWO: continued_ms, TWO_STREAM: continued_stream_ms}
Figures = dict[str, dict[str, list[float]]]
"""By side and by name, a figure for each round of the benchmark."""


def _per_event(ms: list[float]) -> list[float]:
    return [one * 1000 / EVENTS for one in ms]


def _less(more: list[float], less: list[float]) -> list[float]:
    return [a - b for a, b in zip(more, less, strict=True)]


def _second_round(figures: Figures) -> list[float]:
    """What a round costs that follows another, whatever it says: the store, the memory for later calls, a new flow."""
    return _less(figures["ours"][TWO], figures["ours"][ONE])


def _events_of_second_round(figures: Figures) -> list[float]:
    both = _less(figures["ours"][TWO_STREAM], figures["ours"][ONE_STREAM])
    return _per_event(_less(both, _second_round(figures)))


@dataclass(frozen=True)
class Cost:
    """Two figures of this addon's; no goal."""

    name: str
    unit: str
    without: Callable[[Figures], list[float]]
    with_it: Callable[[Figures], list[float]]


COSTS = (
    Cost("a turn of one round: small call", "ms", lambda all_: all_["alone"][ONE], lambda all_: all_["ours"][ONE]),
    Cost(
        "a turn of one round: each event",
        "µs",
        lambda all_: _per_event(all_["alone"][ONE_STREAM]),
        lambda all_: _per_event(all_["ours"][ONE_STREAM]),
    ),
    Cost("a second round: small call", "ms", lambda all_: all_["ours"][ONE], lambda all_: all_["ours"][TWO]),
    Cost("a second round: each event", "µs", lambda all_: _per_event(all_["ours"][ONE_STREAM]), _events_of_second_round),
)
