"""What a client gets, when it leaves, and how it reaches a URL."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.rig.certificates import common_context
from tests.rig.pipe import Pipe, connect, secure
from tests.rig.proxy import Mitmdump

Headers = Iterable[tuple[str, str]] | Mapping[str, str]
Body = bytes | AsyncIterable[bytes]
Ending = Literal["complete", "closed", "reset", "left", "timeout"]


@dataclass(slots=True)
class Answer:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    """When which bytes of the body came."""
    trailers: list[tuple[str, str]] = field(default_factory=list)
    ended: Ending = "complete"
    """`complete`: framing whole; `closed`, `reset`: the connection or stream went first; `left`: we did."""
    began: float = 0
    """When it was asked for (`time.monotonic()`); all other times count from here."""
    head_s: float = 0
    took_s: float = 0
    version: str = "HTTP/1.1"

    @property
    def body(self) -> bytes:
        return b"".join(data for _, data in self.chunks)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, str]]:
        """Name and data of every whole event of the stream."""
        found = []
        for block in self.text.replace("\r\n", "\n").split("\n\n")[:-1]:
            lines = [line.partition(":") for line in block.split("\n") if line and not line.startswith(":")]
            name = next((value.strip() for key, _, value in lines if key == "event"), "")
            data = "\n".join(value.removeprefix(" ") for key, _, value in lines if key == "data")
            if lines:
                found.append((name, data))
        return found

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Leave:
    """When the client goes: after so many chunks or bytes of the body, seconds, or when something is so that a test waits for.

    `reset`: without goodbye (RST, RST_STREAM).
    """

    chunks: int | None = None
    bytes: int | None = None
    after_s: float | None = None
    reset: bool = False
    when: Callable[[], bool] | None = None

    def due(self, answer: Answer) -> bool:
        many = self.chunks is not None and len(answer.chunks) >= self.chunks
        return many or (self.bytes is not None and sum(len(data) for _, data in answer.chunks) >= self.bytes)


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach a URL: straight, or through a proxy."""

    url: str
    proxy: Mitmdump | None = None
    ca: Path | None = None
    """Trusted besides the proxy's own authority."""
    who: str = ""
    """`user:password`, for a proxy that asks."""

    @property
    def secure(self) -> bool:
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or (443 if self.secure else 80)

    @property
    def authority(self) -> str:
        return urlsplit(self.url).netloc

    async def open(self, *protocols: str) -> Pipe:
        if self.proxy is None:
            pipe = await connect(self.host, self.port)
        else:
            pipe = await connect("127.0.0.1", self.proxy.port)
            if self.secure:
                await self._tunnel(pipe)
        if self.secure:
            trusted = [path for path in (self.proxy and self.proxy.ca_path, self.ca) if path]
            await secure(pipe, common_context(*trusted, protocols=protocols), self.host)
        return pipe

    async def _tunnel(self, pipe: Pipe) -> None:
        place = f"{self.host}:{self.port}"
        who = f"Proxy-Authorization: Basic {base64.b64encode(self.who.encode()).decode()}\r\n" if self.who else ""
        await pipe.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{who}\r\n".encode())
        head = await pipe.read_until(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode("latin-1"))


@asynccontextmanager
async def bounded(answer: Answer, leave: Leave | None, within: float) -> AsyncIterator[None]:
    """A call: until the client leaves it (`left`), or nothing came in time (`timeout`)."""
    after_s, when = (leave.after_s, leave.when) if leave is not None else (None, None)
    leaving = after_s is not None

    async def watch(bound: asyncio.Timeout) -> None:
        nonlocal leaving
        while when is not None and not when():  # noqa: ASYNC110  what is waited for tells nobody
            await asyncio.sleep(0.01)
        leaving = True
        bound.reschedule(asyncio.get_running_loop().time())

    watching: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(within if after_s is None else after_s) as bound:
            watching = asyncio.create_task(watch(bound)) if when is not None else None
            yield
    except TimeoutError:
        answer.ended = "left" if leaving else "timeout"
    finally:
        if watching is not None:
            watching.cancel()


def pairs(headers: Headers) -> list[tuple[str, str]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers)


def to_bytes(body: Body | dict[str, Any]) -> Body:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() if isinstance(body, dict) else body
