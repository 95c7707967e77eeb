"""A client of a WebSocket: the upgrade through a route, text frames both ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from tests.rig.answer import Route
from tests.rig.pipe import Gone, Pipe

_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = (
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", _KEY),
    ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
)


class Closed(Exception):
    """The other side has closed; the code it gave, 1006 where it gave none."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class WebSocket:
    """`async with WebSocket(Route(url, proxy), path, headers) as socket: await socket.ask({...})`."""

    def __init__(self, route: Route, path: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        self.route, self.path, self.headers = route, path, tuple(headers)
        self.head = b""
        self.connection = Connection(ConnectionType.CLIENT)
        self._pipe: Pipe | None = None
        self._heard: list[str] = []
        self._part = ""

    @property
    def pipe(self) -> Pipe:
        assert self._pipe is not None
        return self._pipe

    async def __aenter__(self) -> WebSocket:
        async with asyncio.timeout(60):
            self._pipe = await self.route.open("http/1.1")
            lines = [f"{name}: {value}" for name, value in (("Host", self.route.authority), *UPGRADE, *self.headers)]
            await self.pipe.write("\r\n".join((f"GET {self.path} HTTP/1.1", *lines, "", "")).encode())
            self.head = await self.pipe.read_until(b"\r\n\r\n")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.pipe.close()

    @property
    def accepted(self) -> bool:
        token = generate_accept_token(_KEY.encode())
        return self.head.startswith(b"HTTP/1.1 101 ") and b"sec-websocket-accept: " + token in self.head

    async def send(self, frame: object) -> None:
        await self.write(TextMessage(data=frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)))

    async def write(self, event: Event) -> None:
        await self.pipe.write(self.connection.send(event))

    async def hear(self, within: float = 90) -> dict[str, Any]:
        """The next frame; Closed where there is none."""
        async with asyncio.timeout(within):
            while not self._heard:
                try:
                    self.connection.receive_data(await self.pipe.read_some())
                except Gone:
                    raise Closed(1006) from None
                for event in self.connection.events():
                    await self._take(event)
        told = json.loads(self._heard.pop(0))
        assert isinstance(told, dict)
        return told

    async def _take(self, event: Event) -> None:
        match event:
            case TextMessage():
                self._part += event.data
                if event.message_finished:
                    self._heard.append(self._part)
                    self._part = ""
            case Ping():
                await self.write(event.response())
            case CloseConnection():
                raise Closed(int(event.code))
            case BytesMessage():
                raise AssertionError("bytes from a socket that speaks text")

    async def ask(self, frame: object, within: float = 90) -> list[dict[str, Any]]:
        """Every frame up to the one that ends the turn."""
        await self.send(frame)
        return await self.rest(within)

    async def rest(self, within: float = 90) -> list[dict[str, Any]]:
        told = [await self.hear(within)]
        while told[-1]["type"] not in ("response.completed", "response.incomplete", "response.failed", "error"):
            told.append(await self.hear(within))
        return told
