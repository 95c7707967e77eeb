"""An HTTP/2 client over TLS: many streams at once on one connection."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from tests.rig.answer import Answer, Body, Headers, Leave, Route, bounded, pairs, to_bytes
from tests.rig.pipe import Gone, Pipe


@dataclass(slots=True)
class _Stream:
    answer: Answer
    started: float
    done: asyncio.Event = field(default_factory=asyncio.Event)
    leave: Leave | None = None


class Http2:
    """One HTTP/2 connection; `send` may run many times at once."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.pipe: Pipe | None = None
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self._streams: dict[int, _Stream] = {}
        self._window = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Http2:
        async with asyncio.timeout(60):
            self.pipe = await self.route.open("h2")
            if self.pipe.transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
                self.pipe.close()
                raise ConnectionError("no HTTP/2 here")
            self._h2.initiate_connection()
            await self._flush()
        self._reader = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
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
        length: bool = True,
        into: Answer | None = None,
    ) -> Answer:
        """`length=False` leaves out the content-length, as HTTP/2 allows."""
        number = self._h2.get_next_available_stream_id()
        stream = self._streams[number] = _Stream(into if into is not None else Answer(), time.monotonic(), leave=leave)
        stream.answer.began, stream.answer.version = stream.started, "HTTP/2"
        content = to_bytes(body)
        lines = [(":method", method), (":authority", self.route.authority), (":scheme", "https"), (":path", path)]
        lines += [(name.lower(), value) for name, value in pairs(headers)]
        names = {name for name, _ in lines}
        if content and "content-type" not in names:
            lines.append(("content-type", "application/json"))
        if length and isinstance(content, bytes) and "content-length" not in names:
            lines.append(("content-length", str(len(content))))
        try:
            async with bounded(stream.answer, leave, within):
                self._h2.send_headers(number, lines, end_stream=content == b"")
                await self._flush()
                if content != b"":
                    await self._send_body(number, content)
                await stream.done.wait()
        except Gone:
            stream.answer.ended = "closed"
        if stream.answer.ended in ("left", "timeout"):
            await self._reset(number)
        del self._streams[number]
        stream.answer.took_s = time.monotonic() - stream.started
        return stream.answer

    async def _send_body(self, number: int, body: Body) -> None:
        if isinstance(body, bytes):
            await self._send_data(number, body)
        else:
            async for piece in body:
                await self._send_data(number, piece)
        self._h2.end_stream(number)
        await self._flush()

    async def _send_data(self, number: int, data: bytes) -> None:
        while data:
            room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size)
            if room <= 0:
                self._window.clear()
                await self._window.wait()
                continue
            self._h2.send_data(number, data[:room])
            data = data[room:]
            await self._flush()

    async def _reset(self, number: int) -> None:
        with contextlib.suppress(h2.exceptions.ProtocolError, Gone):
            self._h2.reset_stream(number, error_code=8)
            await self._flush()

    async def _flush(self) -> None:
        assert self.pipe is not None
        if data := self._h2.data_to_send():
            await self.pipe.write(data)

    async def _read(self) -> None:
        assert self.pipe is not None
        try:
            while True:
                for event in self._h2.receive_data(await self.pipe.read_some()):
                    self._hear(event)
                await self._flush()
        except (Gone, h2.exceptions.ProtocolError):
            for stream in self._streams.values():
                stream.answer.ended = "closed"
                stream.done.set()
            self._window.set()

    def _hear(self, event: h2.events.Event) -> None:
        if isinstance(event, (h2.events.WindowUpdated, h2.events.RemoteSettingsChanged)):
            self._window.set()
        if isinstance(event, h2.events.DataReceived):
            # Acknowledged even if nobody waits for it any more: the connection's window belongs to all.
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if stream is None:
            return
        answer, now = stream.answer, time.monotonic() - stream.started
        match event:
            case h2.events.ResponseReceived():
                fields = [(str(name), str(value)) for name, value in event.headers or ()]
                answer.status, answer.head_s = int(dict(fields)[":status"]), now
                answer.headers = [(name, value) for name, value in fields if not name.startswith(":")]
            case h2.events.DataReceived() if event.data:
                answer.chunks.append((now, event.data))
                if stream.leave is not None and stream.leave.due(answer):
                    answer.ended = "left"
                    stream.done.set()
            case h2.events.TrailersReceived():
                answer.trailers = [(str(name), str(value)) for name, value in event.headers or ()]
            case h2.events.StreamEnded():
                stream.done.set()
            case h2.events.StreamReset():
                answer.ended = "reset"
                stream.done.set()
