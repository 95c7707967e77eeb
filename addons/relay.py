"""The live relay: keeps a client's answer open while the rounds behind it change.

mitmproxy's hooks alone cannot hold a head, swap a failed upstream, or append to a streamed answer. This file can, and it
is the only one that leans on mitmproxy's internals:

1. `TurnLayer` and `TurnStream` replace `HttpLayer` and `HttpStream` on live connections and in our own rounds. Without an
   `OpenAnswer` they behave exactly like the originals.
2. With an `OpenAnswer`, nothing goes to the client but what stands in its outbox: the head leaves with the first bytes.
3. Everything from outside the layers reaches a stream as one event, `Poke`; the stream itself never waits.
4. Secrets join the request on a copy, on its way to the wire. No flow ever holds them.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from mitmproxy import connection, ctx, http
from mitmproxy import flow as mitmflow
from mitmproxy.net.http.validate import validate_headers
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import (
    DropStream,
    GetHttpConnection,
    GetHttpConnectionCompleted,
    HttpErrorHook,
    HttpLayer,
    HTTPMode,
    HttpRequestHeadersHook,
    HttpStream,
    RegisterHttpConnection,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseTrailers,
    SendHttp,
    tcp,
)
from mitmproxy.proxy.layers.http._events import RequestProtocolError, ResponseProtocolError
from mitmproxy.proxy.server import ConnectionHandler

from ..routing.redact import unquoted
from ..routing.turn.state import State
from . import framing, quick_hooks
from .codes import ABORT, BAD_ANSWER, CANCEL, TOO_LARGE
from .fail_closed import report
from .intercept import Arrival
from .layers import PIECE_BYTES, Place, in_pieces, layers_below, place_of, waits_for_connection, was_reset
from .open_answer import OpenAnswer, drain_client, has_left
from .sealing import Backs, Sealed, put_on_wire

if TYPE_CHECKING:
    from .rounds import Round
    from .turns import CarriedTurn

_READABLE = (connection.ConnectionState.OPEN, connection.ConnectionState.CAN_READ)
Commands = layer.CommandGenerator[None]
_SAID = 200
"""Characters of what somebody else's words may be told."""
TOGETHER_BYTES = 16 << 10
"""One record of TLS."""
Wire = Callable[[http.Request], http.Request]
"""Makes the copy of a request that goes to the wire, secrets included."""


@dataclass
class Poke(events.Event):
    """Something changed in a stream's `OpenAnswer`, or a hook that it waits for is over."""

    stream: TurnStream
    over: commands.StartHook | None = None


class Leave(commands.Command):
    """Nothing follows for this side that it waits for: what is held leaves before anything else is done."""


class TurnStream(HttpStream):
    """One request and its answer, the answer written by a turn if there is one."""

    relay: Relay
    answer: OpenAnswer | None = None
    wire: Wire | None = None
    leaving: Callable[[], None] | None = None
    """Hears that the client has left while no turn does yet."""
    arrival: Arrival | None = None
    """How the request came in; None where no client sent it."""
    read_whole = False
    """Whatever another addon wants: it is read before anything of it leaves."""
    head_sent = False

    def handle_event(self, event: events.Event) -> Commands:
        """Hooks that wait for nothing are run right here: the stream goes on at once."""
        if isinstance(event, RequestProtocolError | ResponseProtocolError):
            event.message = unquoted(event.message)[:_SAID]
        if isinstance(event, RequestProtocolError):  # heard at once, also while a hook has this stream paused
            if self.answer is not None:
                self.answer.upstream.gone()
            elif self.leaving is not None:
                self.leaving()
        coming, dropped = [event], False
        for event in coming:
            for command in super().handle_event(event):
                if isinstance(command, SendHttp):
                    if isinstance(command.event, ResponseData | RequestData):
                        yield from in_pieces(command)
                    elif self._finish(command):
                        yield command
                    continue
                if not isinstance(command, commands.StartHook):
                    dropped = dropped or isinstance(command, DropStream)
                    yield command
                    continue
                if isinstance(command, HttpRequestHeadersHook) and command.flow is self.flow:  # not one of a tunnel's inside
                    self.relay.streams[command.flow.id] = self
                elif isinstance(command, HttpErrorHook) and command.flow.error is not None:
                    command.flow.error.msg = unquoted(command.flow.error.msg)
                if (over := self.relay.run_hook(self, command)) is None:
                    yield command
                elif over:
                    coming.append(events.HookCompleted(command))
        if dropped:
            self._let_go()

    def _let_go(self) -> None:
        """Nobody knows it any more; what it holds, the bodies above all, goes with it: it refers to itself, and would stay until
        somebody looks for garbage, while the next calls fill pages that the system has yet to give."""
        self.client_state = self.server_state = _over
        if self.context.layers[-1:] == [self]:
            del self.context.layers[-1]

    def _finish(self, command: SendHttp) -> bool:
        """As it goes to the wire; whether it does."""
        event, to = command.event, command.connection
        put_on_wire(self, event)
        match event:
            case RequestHeaders() if not event.end_stream:
                if event.request.is_http2 and to.alpn != b"h2":
                    event.request = framing.framed(event.request)
                if not self.flow.request.stream:
                    command.event = framing.RequestHead(event.stream_id, event.request, end_stream=False)
            case ResponseHeaders() if to.alpn == b"h2":
                event.response = framing.unframed(event.response)
            case RequestTrailers() | ResponseTrailers():
                event.trailers = framing.passing(event.trailers)
                return bool(event.trailers)
        return True

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, Poke):
            yield from self.flush()
        else:
            yield from super()._handle_event(event)

    def state_wait_for_request_headers(self, event: RequestHeaders) -> Commands:
        if event.replay_flow is None:
            self.arrival = self._arrive(event.request)
        yield from super().state_wait_for_request_headers(event)

    def _arrive(self, request: http.Request) -> Arrival:
        """mitmproxy makes all forms of a request alike before anybody else sees it."""
        to_a_host = not request.host or (request.is_http2 and request.scheme == "https")
        direct = to_a_host and self.mode is not HTTPMode.transparent and request.method != "CONNECT"
        return Arrival(direct, request.host_header or "")

    def start_request_stream(self) -> Commands:
        if self.flow.response is not None:  # answered already: mitmproxy itself would fall over that
            self.client_state = self.state_consume_request_body
        elif self.read_whole:
            self.flow.request.stream = False
            self.client_state = self.state_consume_request_body
        else:
            yield from super().start_request_stream()

    def state_consume_request_body(self, event: events.Event) -> Commands:
        if isinstance(event, RequestData) and len(self.request_body_buf) + len(event.data) > self.relay.request_limit:
            yield from self.refuse_size()
        elif isinstance(event, RequestEndOfMessage) and was_reset(self.relay_layer, self.context.client, self.stream_id):
            yield from self.handle_protocol_error(RequestProtocolError(self.stream_id, "stream reset by client", CANCEL))
        else:
            yield from super().state_consume_request_body(event)

    def refuse_size(self) -> Commands:
        """mitmproxy would buffer without end."""
        self.request_body_buf.clear()
        message = f"RouteCodex reads requests of up to {self.relay.request_limit >> 20} MiB; this one is larger."
        self.flow.error = mitmflow.Error(message)
        yield HttpErrorHook(self.flow)
        yield SendHttp(ResponseProtocolError(self.stream_id, message, TOO_LARGE), self.context.client)
        self.client_state = self.server_state = self.state_errored
        self.flow.live = False

    def state_wait_for_response_headers(self, event: ResponseHeaders) -> Commands:
        if framing.is_answer(self.flow.request, event.response):
            yield from super().state_wait_for_response_headers(event)
            return
        yield from self._refuse_head(f"The provider answered with the status {event.response.status_code}, which does not exist.")

    def check_invalid(self, request: bool) -> layer.CommandGenerator[bool]:
        """Where a turn asks, a head that mitmproxy refuses is an attempt that failed, not the end of the call."""
        if request or self.answer is None or not self.context.options.validate_inbound_headers:
            return (yield from super().check_invalid(request))
        assert self.flow.response is not None
        try:
            validate_headers(self.flow.response)
        except ValueError as error:
            self.flow.response = None
            yield from self._refuse_head(f"The provider's answer has no head that can be trusted: {unquoted(str(error))}")
            return True
        return False

    def _refuse_head(self, message: str) -> Commands:
        yield SendHttp(RequestProtocolError(self.stream_id, message, CANCEL), self.context.server)
        yield from self.handle_protocol_error(ResponseProtocolError(self.stream_id, message, BAD_ANSWER))

    def flow_done(self) -> Commands:
        """Another protocol follows, which is none of ours: mitmproxy would keep all that is said in it."""
        assert self.flow.response is not None
        if self.flow.response.status_code != 101:
            yield from super().flow_done()
            return
        self.flow.websocket, self.flow.live = None, False
        self.child_layer = tcp.TCPLayer(self.context, ignore=True)
        self._handle_event = self.passthrough  # type: ignore[method-assign]
        yield from self.child_layer.handle_event(events.Start())
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)

    def start_response_stream(self) -> Commands:
        if self.answer is None:
            yield from super().start_response_stream()
        else:
            self.server_state = self.state_stream_response_body

    def state_stream_response_body(self, event: events.Event) -> Commands:
        if self.answer is None:
            yield from super().state_stream_response_body(event)
        else:
            yield from self.hear(self.answer, event)

    def state_consume_response_body(self, event: events.Event) -> Commands:
        if self.answer is None:
            yield from super().state_consume_response_body(event)
        else:
            yield from self.hear(self.answer, event)

    def hear(self, answer: OpenAnswer, event: events.Event) -> Commands:
        if isinstance(event, ResponseData):
            answer.upstream.data(event.data)
            self.relay_layer.due[self] = None
        elif isinstance(event, ResponseEndOfMessage):
            self.server_state = self.state_relaying
            answer.upstream.end()
            yield from self.flush()

    def state_relaying(self, event: events.Event) -> Commands:
        """The first round is over; others write the answer now."""
        yield from ()

    def state_done(self, event: events.Event) -> Commands:
        """What waited here while a hook took its time comes too late; mitmproxy itself would fall over it."""
        yield from ()

    def flush(self) -> Commands:
        answer = self.answer
        if (
            answer is None
            or self.server_state in (self.state_done, _over)
            or self.state_errored in (self.server_state, self.client_state)
        ):
            return
        if answer.abandoned and self.server_state not in (self.state_relaying, self.state_done, self.state_errored):
            self.server_state = self.state_relaying
            server = self.context.server
            # Closing a connection twice would cancel mitmproxy's own closing of it: the socket would stay open.
            if server in self.relay_layer.connections and server.state is not connection.ConnectionState.CLOSED:
                yield SendHttp(RequestProtocolError(self.stream_id, "abandoned", CANCEL), self.context.server)
        chunk = answer.take() if not answer.waits else b""
        is_all = answer.ending is None and answer.course.state is State.ENDED and not self.head_sent
        if (chunk or answer.head_now) and not self.head_sent:
            self.head_sent = True
            if answer.response is not None:
                self.flow.response = answer.response
            assert self.flow.response is not None
            if is_all:
                framing.measure(self.flow.response, len(chunk))
            yield SendHttp(ResponseHeaders(self.stream_id, self.flow.response, False), self.context.client)
        if chunk:
            answer.kept.add(chunk)
            yield from in_pieces(SendHttp(ResponseData(self.stream_id, chunk), self.context.client), PIECE_BYTES)
        if is_all:
            yield Leave()
        if answer.course.state is State.CUT or (answer.ending is not None and self.flow.error is not None):
            yield from self.cut_off()
        elif answer.ending is not None:
            self.relay.flush_again(self, answer)
        elif answer.course.state is State.ENDED:
            yield from self.close(answer)

    def close(self, answer: OpenAnswer) -> Commands:
        if not self.head_sent and answer.response is not None:
            self.flow.response = answer.response
        self.flow.response = self.flow.response or http.Response.make(502)
        if self.head_sent:
            self.flow.response.data.content = answer.kept.take()
        self.server_state = self.state_relaying
        yield from self.send_response(already_streamed=self.head_sent)

    def cut_off(self) -> Commands:
        self.flow.error = mitmflow.Error("The provider broke off in the middle of its answer.")
        yield HttpErrorHook(self.flow)
        yield SendHttp(ResponseProtocolError(self.stream_id, "upstream broke off", ABORT), self.context.client)
        self.client_state = self.server_state = self.state_errored
        self.flow.live = False
        yield DropStream(self.stream_id)

    def handle_protocol_error(self, event: RequestProtocolError | ResponseProtocolError) -> Commands:
        answer = self.answer
        if self.client_state is _over:
            return
        if answer is None:
            yield from super().handle_protocol_error(event)
        elif isinstance(event, ResponseProtocolError):
            if self.server_state not in (self.state_relaying, self.state_done, self.state_errored):
                self.server_state = self.state_relaying
                answer.upstream.broke(event.message)
                yield from self.flush()
        elif self.server_state == self.state_relaying:
            self.flow.error = mitmflow.Error(event.message)
            yield HttpErrorHook(self.flow)
            self.client_state = self.state_errored
            self.flow.live = False
            yield DropStream(self.stream_id)
        else:
            yield from super().handle_protocol_error(event)

    @property
    def relay_layer(self) -> TurnLayer:
        parent = self.context.layers[self.context.layers.index(self) - 1]
        assert isinstance(parent, TurnLayer)
        return parent


def _over(_: events.Event) -> Commands:
    """What still comes is for nobody."""
    yield from ()


class TurnLayer(HttpLayer):
    """An HTTP connection whose streams can be poked."""

    relay: Relay

    @functools.cached_property
    def due(self) -> dict[TurnStream, None]:
        """Those that have heard something since what came in was read: what arrives together leaves together."""
        return {}

    @functools.cached_property
    def is_outermost(self) -> bool:
        """No other one stands between this and the connection."""
        return not any(isinstance(one, TurnLayer) for one in self.context.layers[: self.context.layers.index(self)])

    def _handle_event(self, event: events.Event) -> Commands:
        """What goes to one side one behind the other leaves as one where it is short: a head, the text, and its end are one
        write. A layer that fails does not leave both sides waiting, as it would in mitmproxy."""
        held: commands.SendData | None = None
        try:
            for command in self._handle(event):
                if type(command) is commands.SendData:
                    if held is None:
                        held = command
                    elif held.connection is command.connection and len(held.data) + len(command.data) <= TOGETHER_BYTES:
                        held.data += command.data
                    else:
                        waiting, held = held, command
                        yield waiting
                    continue
                if held is not None:
                    waiting, held = held, None
                    yield waiting
                if type(command) is not Leave or not self.is_outermost:  # mitmproxy itself knows none
                    yield command
        except Exception as error:  # whatever it was, what it happened to comes to an end
            if held is not None:  # it was sent before what failed
                yield held
            at_provider = isinstance(event, events.ConnectionEvent) and event.connection is not self.context.client
            report("a connection", error, "It was closed.")
            yield from self.give_up(event.connection if at_provider else None)  # type: ignore[attr-defined]
        else:
            if held is not None:
                yield held

    def give_up(self, server: connection.Connection | None) -> Commands:
        """What came over one connection to a provider made a layer fail, or else the whole connection is lost."""
        if server is not None:
            self.connections[server] = Deaf(self.context.fork())
            yield from self.hang_up(server)
            try:
                for stream in [one for one in self.streams.values() if one.context.server is server]:
                    broken = ResponseProtocolError(stream.stream_id, "The provider's answer is no HTTP.", BAD_ANSWER)
                    yield from self.event_to_child(stream, broken)
            except Exception as error:
                report("a connection", error, "Its client was cut off.")
            else:
                return
        self._handle_event = self.state_lost  # type: ignore[assignment,method-assign]
        for stream in list(self.streams.values()):
            try:
                yield from self.event_to_child(stream, RequestProtocolError(stream.stream_id, "The connection is lost.", CANCEL))
            except Exception as error:
                report("a connection", error, "Its client was cut off.")
        for one in {*self.connections, self.context.client}:
            yield from self.hang_up(one)

    def hang_up(self, one: connection.Connection) -> Commands:
        """Closing a connection twice would cancel mitmproxy's own closing of it: the socket would stay open."""
        if one.state is not connection.ConnectionState.CLOSED:
            yield commands.CloseConnection(one)

    def state_lost(self, _: events.Event) -> Commands:
        yield from ()

    def _handle(self, event: events.Event) -> Commands:
        if isinstance(event, events.Start) and not (self.context.client.alpn or b"").startswith((b"h2", b"h3")):
            self.connections.setdefault(self.context.client, framing.Server(self.context.fork()))
        yield from self._tell(event) if isinstance(event, Poke) else super()._handle_event(event)
        client = self.connections.get(self.context.client)
        while True:
            if self.due:
                stream, _ = self.due.popitem()
                if self.streams.get(stream.stream_id) is stream:
                    yield from self.event_to_child(stream, Poke(stream))
            elif isinstance(client, framing.Server) and client.early:
                early, client.early = client.early, b""
                yield from self.event_to_child(client, events.DataReceived(self.context.client, early))
            else:
                return

    def _tell(self, event: Poke) -> Commands:
        if self.streams.get(event.stream.stream_id) is event.stream:
            if event.over is not None:
                yield from self.event_to_child(event.stream, events.HookCompleted(event.over))
                return
            if event.stream.answer is not None and event.stream.answer.abandoned:
                yield from self.stop_waiting(event.stream)
            yield from self.event_to_child(event.stream, event)
        else:  # the stream lives further in: this is the layer of a CONNECT request
            for stream in list(self.streams.values()):
                if stream.child_layer is not None:
                    yield from self.event_to_child(stream, event)

    def stop_waiting(self, stream: TurnStream) -> Commands:
        """A stream that waits for a connection hears nothing else. The attempt goes on: other streams may wait for it too."""
        for waiting in self.waiting_for_establishment.values():
            for command in waiting:
                if self.command_sources.get(command) is stream:
                    waiting[:] = [other for other in waiting if other is not command]
                    del self.command_sources[command]
                    yield from self.event_to_child(stream, GetHttpConnectionCompleted(command, (None, "abandoned")))
                    return

    def get_connection(self, event: GetHttpConnection, *, reuse: bool = True) -> Commands:
        """A host that could not be reached may be reachable now; mitmproxy would repeat the old failure for ever."""
        for old in self.connections:
            if event.connection_spec_matches(old) and old not in self.waiting_for_establishment:
                old.error = None
        yield from super().get_connection(event, reuse=reuse)

    def register_connection(self, command: RegisterHttpConnection) -> Commands:
        framing.adopt(self.connections.get(command.connection))
        yield from super().register_connection(command)

    def make_stream(self, stream_id: int) -> Commands:
        stream = TurnStream(self.context.fork(), stream_id)
        stream.relay = self.relay
        self.streams[stream_id] = stream
        yield from self.event_to_child(stream, events.Start())


class Deaf(layer.Layer):
    """In the place of a layer that failed."""

    def _handle_event(self, event: events.Event) -> Commands:
        yield from ()


class Relay:
    """Puts `TurnLayer` in place and talks to its streams."""

    def __init__(self, request_limit: int) -> None:
        self.request_limit = request_limit
        self.streams: WeakValueDictionary[str, TurnStream] = WeakValueDictionary()
        """The live stream of each flow, by flow id."""
        self.sealed: WeakKeyDictionary[http.HTTPFlow, Sealed] = WeakKeyDictionary()
        self.backs = Backs(self.sealed)
        """What was taken off each flow of ours, and off its answer."""
        self._sent: WeakKeyDictionary[http.HTTPFlow, tuple[Place, Wire]] = WeakKeyDictionary()
        self.rounds: dict[str, Round] = {}
        """The later rounds that are running, by flow id."""
        self.tasks: set[asyncio.Task[None]] = set()

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        """The built-in decision first, then ours: a script's hook runs before the built-in one, which does not override it."""
        builtin = ctx.master.addons.get("nextlayer")
        builtin.next_layer(nextlayer)
        for found in layers_below(nextlayer.layer):
            if type(found) is HttpLayer:
                self.adopt(found)

    def adopt(self, http_layer: HttpLayer) -> None:
        http_layer.__class__ = TurnLayer
        http_layer.relay = self  # type: ignore[attr-defined]

    def arrival(self, flow: http.HTTPFlow) -> Arrival | None:
        """How this flow's request came in; None where no client sent it."""
        stream = self.streams.get(flow.id)
        return stream.arrival if stream is not None else None

    def running(self) -> int:
        """How many of the streams are not over."""
        return sum(stream.flow.live for stream in list(self.streams.values()))

    def is_loaded(self, flow: http.HTTPFlow) -> bool:
        """Whether a file brought it. mitmproxy runs all hooks for those too, and they may have the ids of flows that run; what
        somebody has just killed is not live either."""
        stream = self.streams.get(flow.id)
        return not flow.live and (stream is None or stream.flow is not flow)

    def later_round(self, flow: http.HTTPFlow) -> Round | None:
        """The later round that this flow is."""
        later = self.rounds.get(flow.id)
        return later if later is not None and later.flow is flow else None

    def set_wire(self, flow: http.HTTPFlow, wire: Wire) -> None:
        """What joins this flow's request on its way out, to where it points now."""
        self.streams[flow.id].wire = wire
        self._sent[flow] = (place_of(flow.request), wire)

    def sent(self, flow: http.HTTPFlow) -> Wire | None:
        """What joined this flow's request when it was sent, if it still points to the same place."""
        place, wire = self._sent.get(flow, (None, None))
        return wire if place == place_of(flow.request) else None

    def read_whole(self, flow: http.HTTPFlow) -> None:
        """What is streamed leaves before anybody has read it."""
        self.streams[flow.id].read_whole = True

    def when_gone(self, flow: http.HTTPFlow, hear: Callable[[], None]) -> None:
        """Until a turn writes this flow's answer: mitmproxy itself sends nothing any more once the client has left."""
        self.streams[flow.id].leaving = hear

    def open(self, flow: http.HTTPFlow, answer: OpenAnswer) -> None:
        """From now on a turn writes this flow's answer."""
        stream = self.streams[flow.id]
        stream.answer, stream.leaving = answer, None

    def carried(self, flow: http.HTTPFlow) -> CarriedTurn | None:
        """The turn that writes this flow's answer, if one does, and is not over."""
        stream = self.streams.get(flow.id)  # a flow from a file may have the id of one that runs
        return stream.answer.upstream.carried if stream and stream.flow is flow and stream.answer else None

    def run_hook(self, stream: TurnStream, command: commands.StartHook) -> bool | None:
        """Whether it is over; None: it is mitmproxy's to run."""
        handler = self.handler(stream.flow)
        if handler is None or handler.client is not stream.context.client or not command.blocking:  # a replay is no live stream
            return None
        over = quick_hooks.run(handler, command)
        if over is None or isinstance(over, bool):
            return over
        rest = over

        async def complete() -> None:
            await rest
            await handler.server_event(Poke(stream, command))

        self.begin(complete())
        return False

    def flush(self, stream: TurnStream) -> None:
        """Called by the loop, never from inside a layer."""
        if (handler := self.handler(stream.flow)) is not None:
            self.begin(handler.server_event(Poke(stream)))

    def flush_again(self, stream: TurnStream, answer: OpenAnswer) -> None:
        """Once the client has taken what it was sent."""

        async def drained(handler: ConnectionHandler) -> None:
            await drain_client(handler)
            answer.waits = False
            await handler.server_event(Poke(stream))

        if not answer.waits and (handler := self.handler(stream.flow)) is not None:
            answer.waits = True
            self.begin(drained(handler))

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def poke(self, flow: http.HTTPFlow) -> None:
        """Let the stream write what waits, then wait until the client has taken it."""
        stream = self.streams.get(flow.id)
        if stream is None or (handler := self.handler(flow)) is None:
            return
        await handler.server_event(Poke(stream))
        await drain_client(handler)

    def has_left(self, flow: http.HTTPFlow) -> bool:
        """Its client."""
        handler = self.handler(flow)
        client = flow.client_conn if handler is None else handler.client  # a socket's turn has one of its own
        is_open = client.state in _READABLE
        return flow.error is not None or not is_open or (handler is not None and has_left(handler))

    def handler(self, flow: http.HTTPFlow) -> ConnectionHandler | None:
        return ctx.master.addons.get("proxyserver").connections.get(flow.client_conn.id)

    def stop_waiting(self, flow: http.HTTPFlow) -> None:
        """The flow's upstream is abandoned, perhaps while it waits for a connection."""
        stream = self.streams.get(flow.id)
        if stream is not None and stream in stream.context.layers and waits_for_connection(stream):
            asyncio.get_running_loop().call_soon(self.flush, stream)


@functools.cache
def shared(request_limit: int) -> Relay:
    """One for the process: connections and turns outlive a reload of the script that began them."""
    return Relay(request_limit)
