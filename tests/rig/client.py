"""Real clients: HTTP/1.1 and HTTP/2, plain or TLS, straight or through the proxy.

1. Every call has a time limit and returns an `Answer`, also when it ended badly: `ended` says how.
2. Times are seconds since the request was written, so that a test can say when which bytes came.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

from tests.rig.answer import Answer, Body, Headers, Leave, Route, bounded, pairs, to_bytes
from tests.rig.http2 import Http2
from tests.rig.pipe import Gone, Pipe
from tests.rig.proxy import Mitmdump


class Http1:
    """One HTTP/1.1 connection: `async with Http1(Route(url, proxy)) as client: await client.send("POST", path, body=…)`."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.pipe: Pipe | None = None
        self._started = 0.0

    async def __aenter__(self) -> Http1:
        async with asyncio.timeout(60):
            self.pipe = await self.route.open("http/1.1")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.pipe is not None:
            self.pipe.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Headers = (),
        body: Body | dict[str, Any] = b"",
        leave: Leave | None = None,
        within: float = 90,
        into: Answer | None = None,
    ) -> Answer:
        """An async iterable as body is sent chunked, at its own pace. `into` fills as it comes: a test may look meanwhile."""
        assert self.pipe is not None
        answer = into if into is not None else Answer()
        self._started = answer.began = time.monotonic()
        try:
            async with bounded(answer, leave, within):
                await self._write(method, path, pairs(headers), to_bytes(body))
                await self._read(method, answer, leave)
        except Gone:
            answer.ended = "reset" if self.pipe.reset_by_peer else "closed"
        answer.took_s = time.monotonic() - self._started
        if answer.ended == "left":
            self.pipe.reset() if leave and leave.reset else self.pipe.close()
        return answer

    async def write_raw(self, data: bytes) -> None:
        """Bytes as they are: broken requests, half requests."""
        assert self.pipe is not None
        self._started = time.monotonic()
        await self.pipe.write(data)

    async def read_answer(self, method: str = "POST", within: float = 90) -> Answer:
        answer = Answer()
        assert self.pipe is not None
        try:
            async with asyncio.timeout(within):
                await self._read(method, answer, None)
        except TimeoutError:
            answer.ended = "timeout"
        except Gone:
            answer.ended = "reset" if self.pipe.reset_by_peer else "closed"
        return answer

    async def _write(self, method: str, path: str, headers: list[tuple[str, str]], body: Body) -> None:
        assert self.pipe is not None
        plain_proxy = self.route.proxy is not None and not self.route.secure
        target = f"http://{self.route.authority}{path}" if plain_proxy else path
        names = {name.lower() for name, _ in headers}
        lines = [] if "host" in names else [("Host", self.route.authority)]
        lines += headers
        if "content-type" not in names and body:
            lines.append(("Content-Type", "application/json"))
        if not isinstance(body, bytes):
            lines.append(("Transfer-Encoding", "chunked"))
        elif "content-length" not in names:
            lines.append(("Content-Length", str(len(body))))
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
        if isinstance(body, bytes):
            await self.pipe.write(head.encode("latin-1") + body)
            return
        await self.pipe.write(head.encode("latin-1"))
        async for piece in body:
            await self.pipe.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self.pipe.write(b"0\r\n\r\n")

    async def _read(self, method: str, answer: Answer, leave: Leave | None) -> None:
        assert self.pipe is not None
        while answer.status < 200:
            head = (await self.pipe.read_until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            answer.version, _, status = head[0].partition(" ")
            answer.status = int(status[:3])
            answer.headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:] if line)]
        answer.head_s = time.monotonic() - self._started
        if method == "HEAD" or answer.status in (204, 304):
            return
        if "chunked" in (answer.header("transfer-encoding") or ""):
            await self._read_chunks(answer, leave)
        elif (length := answer.header("content-length")) is not None:
            await self._read_length(int(length), answer, leave)
        else:
            with contextlib.suppress(Gone):
                while not self._note(await self.pipe.read_some(), answer, leave):
                    pass
            if self.pipe.reset_by_peer:
                answer.ended = "reset"

    def _note(self, data: bytes, answer: Answer, leave: Leave | None) -> bool:
        """Whether to leave now."""
        answer.chunks.append((time.monotonic() - self._started, data))
        if leave is not None and leave.due(answer):
            answer.ended = "left"
            return True
        return False

    async def _read_chunks(self, answer: Answer, leave: Leave | None) -> None:
        assert self.pipe is not None
        while True:
            size = int((await self.pipe.read_until(b"\r\n")).split(b";")[0], 16)
            if size == 0:
                break
            data = await self.pipe.read_exactly(size + 2)
            if self._note(data[:-2], answer, leave):
                return
        while (line := await self.pipe.read_until(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            answer.trailers.append((name, value.strip()))

    async def _read_length(self, length: int, answer: Answer, leave: Leave | None) -> None:
        assert self.pipe is not None
        while length:
            data = await self.pipe.read_some(length)
            length -= len(data)
            if self._note(data, answer, leave):
                return


async def send(route: Route, method: str, path: str, **what: Any) -> Answer:
    """One call on a connection of its own."""
    async with Http1(route) as client:
        return await client.send(method, path, **what)


def call(
    url: str, path: str, body: Body | dict[str, Any], *, proxy: Mitmdump | None = None, ca: Path | None = None, **what: Any
) -> Answer:
    """The same for a test that is not async: `call("https://api.anthropic.com", "/v1/messages", {...}, proxy=proxy)`."""
    return asyncio.run(send(Route(url, proxy, ca), what.pop("method", "POST"), path, body=body, **what))


__all__ = ["Answer", "Http1", "Http2", "Leave", "Route", "call", "send"]
