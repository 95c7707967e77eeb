"""HTTP/1 as mitmproxy speaks it, but for what it falls over or takes for something else.

1. Trailers: mitmproxy knows them in HTTP/2 only, and crashes where they stand in HTTP/1. They pass.
2. Interim answers (100, 102, 103) come before the answer; mitmproxy takes the first of them for it. They are skipped.
3. A head without an end is not kept for ever, nor is a chunk's line, nor what follows the last chunk.
4. A request's head leaves with its body where that is all there: mitmproxy encrypts each alone.
5. Chunks that came together are passed on as one: mitmproxy takes each through all layers alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import (
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import ResponseProtocolError
from mitmproxy.proxy.layers.http._http1 import (
    Http1Client,
    Http1Connection,
    Http1Server,
    make_error_response,
    should_make_pipe,
)

from ..routing import headers as fields
from .codes import BAD_ANSWER
from .layers import layers_below

Commands = layer.CommandGenerator[None]
M = TypeVar("M", http.Request, http.Response)
HEAD_BYTES = 256 << 10
"""Longer than any head that a tool or a provider sends."""
_LAST_CHUNK = b"0\r\n\r\n"
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_TOGETHER_BYTES = 64 << 10
"""To copy a longer body costs more than to send its head alone."""
_TOO_LONG = f"The head is longer than {HEAD_BYTES >> 10} KiB."
_NO_END = f"the line of a chunk, or what follows the last, is longer than {HEAD_BYTES >> 10} KiB"


class RequestHead(RequestHeaders):
    """The whole body follows at once."""


class Chunks:
    """A reader of chunks: what came together is one piece, however many it was. Its end bears no trailers; they are kept."""

    def __init__(self, reader: ChunkedReader) -> None:
        self.trailers: tuple[tuple[bytes, bytes], ...] = ()
        self.read_eof = reader.read_eof
        self._reader = reader
        self._behind: h11.EndOfMessage | h11.ProtocolError | None = None
        """What came behind the piece that was given last."""

    def __call__(self, buffer: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        event: h11.Data | h11.EndOfMessage | h11.ProtocolError | None
        event, self._behind = self._behind, None
        pieces: list[bytes] = []
        while event is None or isinstance(event, h11.Data):
            pieces += self._whole(buffer)
            try:
                event = self._reader(buffer)
            except h11.ProtocolError as error:
                event = error
            if event is None:
                event = self._endless(buffer)
                break
            if isinstance(event, h11.Data):
                pieces.append(event.data)
        if isinstance(event, h11.EndOfMessage) and event.headers:
            self.trailers = tuple((bytes(name), bytes(value)) for name, value in event.headers)
            event = h11.EndOfMessage()
        if pieces:
            self._behind = event
            return h11.Data(data=b"".join(pieces))
        if isinstance(event, h11.ProtocolError):
            raise event
        return event

    def _endless(self, buffer: ReceiveBuffer) -> h11.ProtocolError | None:
        """What waits is a line that has no end."""
        return h11.RemoteProtocolError(_NO_END) if len(buffer) > HEAD_BYTES else None

    def _whole(self, buffer: ReceiveBuffer) -> list[bytes]:
        """Chunks that are all there and bear nothing but their length; the others are for h11 to read, or to refuse."""
        reader = self._reader
        if reader._bytes_in_chunk or reader._bytes_to_discard or reader._reading_trailer:
            return []
        raw, at, pieces = bytes(buffer), 0, []
        while (size := _SIZE.match(raw, at)) is not None:
            start = size.end()
            end = start + int(size[1], 16)
            if start == end or raw[end : end + 2] != b"\r\n":
                break
            pieces.append(raw[start:end])
            at = end + 2
        if at:
            buffer.maybe_extract_at_most(at)
        return pieces


class Connection(Http1Connection):
    """Either side's."""

    ReceiveTrailers: type[RequestTrailers | ResponseTrailers]
    last_chunk = _LAST_CHUNK
    """With the trailers of the message that is being sent."""
    head = b""
    """It waits for the body that follows at once: they leave together."""

    def read_body(self, event: events.Event) -> Commands:
        reader: Any = self.body_reader
        if isinstance(reader, ChunkedReader):
            self.body_reader = reader = Chunks(reader)  # type: ignore[assignment]
        return super().read_body(event) if not isinstance(reader, Chunks) else self._read_chunks(reader, event)

    def _read_chunks(self, reader: Chunks, event: events.Event) -> Commands:
        for command in super().read_body(event):
            if reader.trailers and _is(command, self.ReceiveEndOfMessage):
                trailers, reader.trailers = http.Headers(reader.trailers), ()
                assert self.stream_id is not None
                yield ReceiveHttp(self.ReceiveTrailers(self.stream_id, trailers))
            yield command

    def send(self, event: HttpEvent) -> Commands:
        if isinstance(event, RequestTrailers | ResponseTrailers):
            self.last_chunk = b"0\r\n" + bytes(event.trailers) + b"\r\n"
            return _nothing()
        opens = isinstance(event, RequestHead)
        plain = self.last_chunk is _LAST_CHUNK and not (opens or self.head)
        return super().send(event) if plain else self._send(event, opens=opens)

    def _send(self, event: HttpEvent, *, opens: bool) -> Commands:
        head, self.head = self.head, b""
        for command in super().send(event):
            if isinstance(command, commands.SendData):
                if opens:
                    self.head = command.data
                    continue
                if command.data == _LAST_CHUNK and isinstance(event, _ENDS):
                    command, self.last_chunk = commands.SendData(command.connection, self.last_chunk), _LAST_CHUNK
                if head and len(command.data) <= _TOGETHER_BYTES:
                    command, head = commands.SendData(command.connection, head + command.data), b""
            if head:
                yield commands.SendData(self.conn, head)
                head = b""
            yield command
        if head:
            yield commands.SendData(self.conn, head)

    def has_no_end(self) -> bool:
        return self.state == self.read_headers and len(self.buf) > HEAD_BYTES


class Server(Connection, Http1Server):
    """Towards the client."""

    ReceiveTrailers = RequestTrailers
    early = b""
    """What came behind a request before its answer was over. mitmproxy would read it from within the end of that answer, while
    the connection to the provider is still taken: the layer above tells it again, once all have heard of that end."""

    def mark_done(self, *, request: bool = False, response: bool = False) -> Commands:
        over = response and self.request_done and self.request is not None and self.response is not None
        if over and self.buf and not should_make_pipe(self.request, self.response):  # type: ignore[arg-type]
            self.early, self.buf = bytes(self.buf), ReceiveBuffer()
        yield from super().mark_done(request=request, response=response)

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        yield from super().read_headers(event)
        if self.has_no_end():
            yield commands.SendData(self.conn, make_error_response(431, _TOO_LONG))
            yield commands.CloseConnection(self.conn)
            self.state = self.done


class Client(Connection, Http1Client):
    """Towards a provider."""

    ReceiveTrailers = ResponseTrailers

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        interim = True
        while interim:
            interim = False
            for command in super().read_headers(event):
                if _is(command, ResponseHeaders) and self.response is not None and is_interim(self.request, self.response):
                    self.response, interim = None, True
                    break
                yield command
        if self.has_no_end() and self.stream_id is not None:
            yield commands.CloseConnection(self.conn)
            yield ReceiveHttp(ResponseProtocolError(self.stream_id, _TOO_LONG, BAD_ANSWER))


def _nothing() -> Commands:
    yield from ()


_ENDS = (RequestEndOfMessage, ResponseEndOfMessage)


def adopt(found: layer.Layer | None) -> None:
    """Before anything has come over this connection to a provider."""
    for one in layers_below(found):
        if type(one) is Http1Client:
            one.__class__ = Client
            one.state = one.read_headers  # it was bound to the other class's


def is_interim(request: http.Request | None, response: http.Response) -> bool:
    """Another head follows. To switch protocols ends HTTP, where the request has asked for it."""
    return 100 <= response.status_code < 200 and not is_answer(request, response)


def is_answer(request: http.Request | None, response: http.Response) -> bool:
    if response.status_code == 101:
        return request is not None and "upgrade" in request.headers
    return 200 <= response.status_code < 600


def passing(trailers: http.Headers) -> http.Headers:
    """What may follow a body: nothing that would frame it, no line that could begin another message."""
    pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in trailers.fields)
    return http.Headers(_encoded(fields.answer(pairs, foreign=False)))


def framed(request: http.Request) -> http.Request:
    """HTTP/2 needs no length, but without one a body reaches an HTTP/1.1 host as a request of its own."""
    if "content-length" in request.headers or "transfer-encoding" in request.headers:
        return request
    return with_headers(request, [*request.headers.fields, (b"transfer-encoding", b"chunked")])


def measure(response: http.Response, size: int) -> None:
    """All of it is known before its head leaves: over HTTP/1 it has a length then, and needs no end of its own."""
    kept = [pair for pair in response.headers.fields if pair[0] != b"transfer-encoding"]
    if len(kept) < len(response.headers.fields):
        response.headers = http.Headers([*kept, (b"content-length", b"%d" % size)])


def unframed(response: http.Response) -> http.Response:
    """HTTP/2 frames by itself, and calls it an error where a header says how."""
    kept = [pair for pair in response.headers.fields if pair[0].decode("latin-1").lower() not in fields.HOP_BY_HOP]
    return response if len(kept) == len(response.headers.fields) else with_headers(response, kept)


def with_headers(message: M, headers: Iterable[tuple[bytes, bytes]]) -> M:
    """The same message with other headers; mitmproxy's own copy would copy everything, deeply."""
    made, data = object.__new__(type(message)), object.__new__(type(message.data))
    vars(data).update(vars(message.data), headers=http.Headers(headers))
    vars(made).update(vars(message), data=data)
    return made


def _encoded(pairs: fields.Fields) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)


def _is(command: commands.Command, kind: type | tuple[type, ...]) -> bool:
    return isinstance(command, ReceiveHttp) and isinstance(command.event, kind)
