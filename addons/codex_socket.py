"""Codex's WebSocket, served: each frame becomes a request of its own, which goes through all hooks like any other.

No connection is made for that, and none is listened on: the request is put into mitmproxy as a flow of its own, and what
its turn answers comes back as frames. The credentials of the upgrade join each request on its wire; no flow holds them.

1. `SocketStream` and `SocketLayer` take the place of mitmproxy's own WebSocket, which would keep every message for ever.
2. One turn at a time, in the order of the frames; a client that leaves takes its turn with it.
3. What cannot be carried on (a broken frame, a broken answer, a mistake in here) closes the socket: the client connects anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpEvent, ResponseEndOfMessage, SendHttp
from mitmproxy.proxy.layers.websocket import WebsocketEndHook, WebsocketStartHook
from wsproto import ConnectionType
from wsproto import events as frames
from wsproto.connection import Connection
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError, generate_accept_token

from ..routing.codex.conversation import Conversation, Post, Told
from ..routing.codex.frames import post_headers
from ..routing.codex.telling import Telling
from ..routing.errors import RouteCodexError
from . import flows, people
from .disk_threads import computed
from .exchange import Exchange
from .fail_closed import contained, report
from .relay import Commands, Poke, Relay, TurnStream
from .rounds import new_flow

if TYPE_CHECKING:
    from .sealing import Sealed

LONG = 1 << 20
"""Characters: from here on a frame takes longer to read than others should wait."""
WAITING = 16
"""So many frames may wait for the turn before them."""
GRACE_S = 2.0
"""A provider may leave its stream open so long behind its last event."""
PIECE_BYTES = 1 << 16
COMMENT = "WebSocket served: its turns are flows of their own"


def can_serve(request: http.Request) -> bool:
    """Whether this upgrade is one that can be answered: with a key, and of the one version there is."""
    asked = request.headers
    return asked.get("sec-websocket-version", "") == "13" and bool(asked.get("sec-websocket-key")) and not request.is_http2


def serve(relay: Relay, flow: http.HTTPFlow, sealed: Sealed) -> None:
    """Say yes to the upgrade; what follows it is ours."""
    token = generate_accept_token(flow.request.headers["sec-websocket-key"].encode("latin-1", "replace"))
    answer = http.Response.make(101)
    answer.headers = http.Headers(
        ((b"upgrade", b"websocket"), (b"connection", b"Upgrade"), (b"sec-websocket-accept", token)),
    )
    flow.response = answer
    flow.comment = COMMENT
    stream = relay.streams[flow.id]
    stream.wire = None
    stream.__class__ = SocketStream
    assert isinstance(stream, SocketStream)
    stream.socket = Socket(relay, flow, sealed)


class SocketStream(TurnStream):
    """A request whose connection has become a WebSocket of ours."""

    socket: Socket

    def flow_done(self) -> Commands:
        if self.flow.response is None or self.flow.response.status_code != 101:
            yield from super().flow_done()
            return
        self.child_layer = SocketLayer(self.context, self.socket)
        self._handle_event = self.passthrough  # type: ignore[method-assign]
        yield from self.child_layer.handle_event(events.Start())
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)


class SocketLayer(layer.Layer):
    """The client's bytes to the socket, the socket's to the client."""

    def __init__(self, context: Context, socket: Socket) -> None:
        super().__init__(context)
        self.socket = socket
        self.closed = False

    def _handle_event(self, event: events.Event) -> Commands:
        match event:
            case events.Start():
                if self.socket.flow.websocket is not None:
                    yield WebsocketStartHook(self.socket.flow)
            case events.DataReceived():
                self.socket.receive(event.data)
                yield from self.write()
            case events.ConnectionClosed() | HttpEvent():
                self.socket.gone()
                yield from self.close()
            case Poke():
                yield from self.write()

    def write(self) -> Commands:
        data = self.socket.take()
        for at in range(0, len(data), PIECE_BYTES):
            yield commands.SendData(self.context.client, data[at : at + PIECE_BYTES])
        if self.socket.closing:
            yield from self.close()

    def close(self) -> Commands:
        if self.closed:
            return
        self.closed = True
        flow = self.socket.flow
        flow.live = False
        yield commands.CloseConnection(self.context.client)
        if flow.websocket is not None:
            flow.websocket.timestamp_end = time.time()
            flow.websocket.close_code = self.socket.close_code
            flow.websocket.closed_by_client = not self.socket.closing
            yield WebsocketEndHook(flow)


class Socket:
    """One client's WebSocket: its frames, its turns one after the other, and what waits to be written."""

    def __init__(self, relay: Relay, flow: http.HTTPFlow, sealed: Sealed) -> None:
        self.relay = relay
        self.flow = flow
        self.sealed = sealed
        self.conversation = Conversation(relay.request_limit)
        self.turn: SocketTurn | None = None
        self.closing = False
        self.close_code = int(CloseReason.GOING_AWAY)
        self._connection = Connection(ConnectionType.SERVER)
        self._pieces: list[str] = []
        self._held = 0
        """Characters of frames that are not asked yet, whole or not."""
        self._waiting: deque[str] = deque()
        self._reads = False
        """A long one is being read, beside the loop."""
        self._outbox: list[bytes] = []
        self._flush: asyncio.Handle | None = None

    # From the client

    @contained
    def receive(self, data: bytes) -> None:
        if self.closing:
            return
        try:
            self._connection.receive_data(data)
            for event in self._connection.events():
                self._hear(event)
                if self.closing:
                    return
        except (LocalProtocolError, RemoteProtocolError):
            self.close(CloseReason.PROTOCOL_ERROR)

    def _hear(self, event: frames.Event) -> None:
        match event:
            case frames.TextMessage():
                self._hear_text(event)
            case frames.BytesMessage():
                self.close(CloseReason.UNSUPPORTED_DATA)
            case frames.Ping():
                self._outbox.append(self._connection.send(event.response()))
            case frames.CloseConnection():
                self.close(event.code)

    def _hear_text(self, event: frames.TextMessage) -> None:
        self._held += len(event.data)
        if self._held > self.relay.request_limit:
            self.close(CloseReason.MESSAGE_TOO_BIG)
            return
        if event.data:
            self._pieces.append(event.data)
        if event.message_finished:
            self._waiting.append("".join(self._pieces))
            self._pieces.clear()
            self._next()
            if len(self._waiting) > WAITING:
                self.close(CloseReason.POLICY_VIOLATION)

    def _next(self) -> None:
        while self._waiting and self.turn is None and not (self._reads or self.closing):
            text = self._waiting.popleft()
            self._held -= len(text)
            ask = partial(self.conversation.ask, text, new_id=f"resp_{uuid.uuid4().hex}", now=int(time.time()))
            if len(text) < LONG:
                self._answer(ask())
            else:
                self._reads = True
                asyncio.get_running_loop().call_soon(self.begin, self._read(self.conversation, ask))

    def _answer(self, asked: Post | Told) -> None:
        if isinstance(asked, Told):
            self.send(asked.frames)
        else:
            self.turn = SocketTurn(self, asked)
            asyncio.get_running_loop().call_soon(self.turn.start)  # tasks are begun from the loop, never inside a layer

    async def _read(self, conversation: Conversation, ask: Callable[[], Post | Told]) -> None:
        """Whoever else waits, waits for no part of it."""
        try:
            asked = await computed(ask)
        except Exception as error:
            report("a frame of a WebSocket", error, "The socket was closed.")
            self.burst()
            return
        self._reads = False
        if conversation is self.conversation:  # nobody has left meanwhile
            self._answer(asked)
            self._next()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self.relay.tasks.add(task)
        task.add_done_callback(self.relay.tasks.discard)

    def gone(self) -> None:
        """The client has left, most of them without a goodbye."""
        self._outbox.clear()
        self._stop()

    def _stop(self) -> None:
        """Nothing more is asked, and nothing is kept."""
        self._waiting.clear()
        self._pieces.clear()
        if self.turn is not None:
            self.turn.leave()
            self.turn = None
        self.conversation = Conversation(0)

    # To the client

    def send(self, told: Iterable[bytes]) -> None:
        if self.closing:
            return
        for frame in told:
            self._outbox.append(self._connection.send(frames.TextMessage(data=frame.decode("utf-8", "replace"))))
        self._write_soon()

    def close(self, code: int) -> None:
        if self.closing:
            return
        self._stop()
        self.closing = True
        self.close_code = int(code)
        with contextlib.suppress(LocalProtocolError):
            self._outbox.append(self._connection.send(frames.CloseConnection(code=self.close_code)))
        self._write_soon()

    def burst(self) -> None:
        self.close(CloseReason.INTERNAL_ERROR)

    def take(self) -> bytes:
        data = b"".join(self._outbox)
        self._outbox.clear()
        return data

    def _write_soon(self) -> None:
        """What is told in one turn of the loop leaves as one write."""
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        self._flush = None
        stream = self.relay.streams.get(self.flow.id)
        if stream is not None:
            self.relay.flush(stream)

    async def drained(self) -> None:
        await self.relay.poke(self.flow)

    # A turn

    def finished(self, turn: SocketTurn) -> None:
        if turn is self.turn:
            self.turn = None
            if turn.telling.past is not None:
                self.conversation.keep(turn.telling.id, turn.telling.past)
            self._next()


class SocketTurn:
    """One frame's request, and its answer."""

    def __init__(self, socket: Socket, post: Post) -> None:
        self.socket = socket
        self.telling = Telling(post)
        request = flows.posted(
            socket.flow.request, post_headers(flows.header_pairs(socket.flow.request), post.headers), post.body
        )
        flow = new_flow(socket.flow, request)
        flow.is_replay = None
        people.stands_for(flow, socket.flow)
        socket.relay.sealed[flow] = socket.sealed
        self.exchange = Exchange(flow, socket.relay, self, socket.drained)
        self.over = False
        self._grace: asyncio.TimerHandle | None = None

    def start(self) -> None:
        if not self.over:
            self.socket.begin(self._run())

    def leave(self) -> None:
        self._finish()
        asyncio.get_running_loop().call_soon(lambda: self.socket.begin(self.exchange.leave()))

    async def _run(self) -> None:
        try:
            await self.exchange.run()
        except Exception as error:  # whatever it was, the client must not wait for ever
            report("a turn of a WebSocket", error, "The socket was closed.")
        if not self.over:
            self.burst()

    @contained
    def head(self, response: http.Response) -> None:
        if not self.over:
            self.socket.send(self.telling.head(response.status_code, flows.read_headers(response)))

    @contained
    def data(self, chunk: bytes) -> None:
        if self.over:
            return
        try:
            self.socket.send(self.telling.data(chunk))
        except RouteCodexError:
            self.burst()
            return
        if self.telling.ended and self._grace is None:
            self._grace = asyncio.get_running_loop().call_later(GRACE_S, self._stop)

    @contained
    def end(self) -> None:
        if not self.over:
            self.socket.send(self.telling.end())
            self._conclude()

    @contained
    def broke(self, message: str) -> None:
        if not self.over:
            self.socket.send(self.telling.broke(message))
            self._conclude()

    def _conclude(self) -> None:
        """An answer without an end is no answer: the client is to hear nothing that looks like one."""
        self._finish()
        if self.telling.ended:
            self.socket.finished(self)
        else:
            self.socket.close(CloseReason.INTERNAL_ERROR)

    def _stop(self) -> None:
        self.leave()
        self.socket.finished(self)

    def _finish(self) -> None:
        self.over = True
        if self._grace is not None:
            self._grace.cancel()

    def burst(self) -> None:
        self.socket.close(CloseReason.INTERNAL_ERROR)
