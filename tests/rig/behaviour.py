"""What the fake provider does with one request, and the bytes that makes.

The order of work: events → `edit` → cut after n events → content encoding → packets → cut at byte n.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import brotli

from routecodex.routing.codings import zstd
from tests.rig import wire

Headers = tuple[tuple[str, str], ...]
Encoding = Literal["", "gzip", "deflate", "br", "zstd"]


@dataclass(frozen=True, slots=True)
class Behaviour:
    # What it says
    reply: wire.Reply | None = None
    """None: a short text naming what was asked."""
    status: int = 200
    headers: Headers = ()
    """Added to the usual ones; a name given here replaces the usual one."""
    body: bytes | None = None
    """Instead of any answer in the dialect."""
    events: tuple[bytes, ...] | None = None
    """Ready-made events instead of the reply's."""
    error: str | None = None
    """The dialect's error with this message; a status from 400 on makes one anyway."""
    error_after: int | None = None
    """Inside a stream with status 200: 0 as the first event, n after n events. None: the error is the whole body."""
    form: Literal["asked", "stream", "json"] = "asked"
    """`stream` or `json`: whatever the client asked for."""
    edit: Callable[[list[bytes]], Iterable[bytes]] | None = None
    """Changes the list of events (or the one whole body)."""

    # What it does first
    before: Literal["answer", "hang", "close", "reset"] = "answer"
    wait_s: float = 0
    """Silence before the head."""
    body_wait_s: float = 0
    """Silence between the head and the first byte of the body."""

    until: Callable[[], bool] | None = None
    """Each silence lasts until this is true, whatever its seconds say (not 0: there is one); at most a minute."""

    # How it writes
    framing: Literal["", "chunked", "length", "eof"] = ""
    """Empty: streams are chunked, whole answers have a length."""
    encoding: Encoding = ""
    claims: str | None = None
    """What the content-encoding header says; None: the truth."""
    trailers: Headers = ()
    events_per_packet: int = 1
    bytes_per_packet: int = 0
    """Not 0: the bytes are cut into packets of this size, whatever the events."""
    delay_s: float = 0
    """Between packets."""
    stall_at: int | None = None
    """After this many bytes of the body, as written…"""
    stall_after: int | None = None
    """… or after this many events: silence for `stall_s`."""
    stall_s: float = 0

    # How it ends
    cut_after: int | None = None
    """Nothing of the body after this many events…"""
    cut_at: int | None = None
    """… or after this many bytes, as written."""
    ending: Literal["", "clean", "close", "reset", "hang"] = ""
    """`clean`: HTTP's own end; `close`, `reset`: the connection goes without it; `hang`: never.
    Empty: `close` after a cut, else `clean`."""
    close: bool = False
    """`Connection: close` after a whole answer."""

    @property
    def how_it_ends(self) -> str:
        return self.ending or ("close" if self.cut_after is not None or self.cut_at is not None else "clean")


@dataclass(frozen=True, slots=True)
class Plan:
    """The bytes of one answer."""

    head: bytes
    packets: list[bytes]
    chunked: bool
    keep_alive: bool
    stalls: frozenset[int]
    """Indexes of packets that are preceded by the long silence."""
    events: int = 0


class _Encoder(Protocol):
    def write(self, data: bytes) -> bytes: ...
    def end(self) -> bytes: ...


class _Zlib:
    def __init__(self, window: int) -> None:
        self._stream = zlib.compressobj(wbits=window)

    def write(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._stream.flush(zlib.Z_FINISH)


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Compressor(quality=4)

    def write(self, data: bytes) -> bytes:
        return bytes(self._stream.process(data) + self._stream.flush())

    def end(self) -> bytes:
        return bytes(self._stream.finish())


class _Zstandard:
    def __init__(self) -> None:
        self._stream = zstd.ZstdCompressor()

    def write(self, data: bytes) -> bytes:
        return self._stream.compress(data, mode=zstd.ZstdCompressor.FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._stream.flush()


_ENCODERS: dict[str, Callable[[], _Encoder]] = {
    "gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(15),
    "br": _Brotli,
    "zstd": _Zstandard,
}


def encode(items: Iterable[bytes], encoding: str) -> list[bytes]:
    """Each item compressed and flushed, so that a reader gets it without waiting for the next."""
    if not encoding:
        return list(items)
    encoder = _ENCODERS[encoding]()
    encoded = [encoder.write(item) for item in items]
    return [*encoded, encoder.end()]


_STATUS = {200: b"OK", 400: b"Bad Request", 401: b"Unauthorized", 429: b"Too Many Requests", 500: b"Internal Server Error"}


def make_plan(behaviour: Behaviour, asked: wire.Asked | None, said: str) -> Plan:
    """`said` is what the default answer says."""
    items, kind, streamed = _make_items(behaviour, asked, said)
    if behaviour.edit is not None:
        items = list(behaviour.edit(items))
    count = len(items)
    if behaviour.cut_after is not None:
        items = items[: behaviour.cut_after]
    encoded = encode(items, behaviour.encoding)
    whole_length = sum(map(len, encoded))
    stops = sorted({stop for stop in (behaviour.stall_at, _offset(encoded, behaviour.stall_after)) if stop is not None})
    packets = _pack(encoded, behaviour, stops)
    framing = behaviour.framing or ("chunked" if streamed else "length")
    keep_alive = framing != "eof" and not behaviour.close
    head = _make_head(behaviour, kind, framing, whole_length, keep_alive)
    return Plan(head, packets, framing == "chunked", keep_alive, _find_stalls(packets, stops), count)


def _make_items(behaviour: Behaviour, asked: wire.Asked | None, said: str) -> tuple[list[bytes], str, bool]:
    """The events or the whole body, its content type, and whether it is a stream."""
    if behaviour.body is not None:
        return [behaviour.body], "application/json", False
    if asked is None:
        return [b'{"ok":true}'], "application/json", False
    message = behaviour.error or f"the rig answers {behaviour.status}"
    if behaviour.status >= 400 or (behaviour.error is not None and behaviour.error_after is None):
        status = behaviour.status if behaviour.status >= 400 else 529
        return [wire.error(asked.dialect, status, message)], "application/json", False
    if asked.action == "count":
        return [wire.count(25, asked)], "application/json", False
    reply = behaviour.reply or wire.Reply(said)
    if not (asked.stream if behaviour.form == "asked" else behaviour.form == "stream"):
        return [wire.whole(reply, asked)], "application/json", False
    items = list(behaviour.events) if behaviour.events is not None else wire.events(reply, asked)
    if behaviour.error_after is not None:
        items = items[: behaviour.error_after]
        items.append(wire.error_event(asked, 529, message, first=not items))
    return items, "application/json" if asked.json_array else "text/event-stream; charset=utf-8", True


def _offset(items: list[bytes], count: int | None) -> int | None:
    return None if count is None else sum(map(len, items[:count]))


def _pack(items: list[bytes], behaviour: Behaviour, stops: list[int]) -> list[bytes]:
    if size := behaviour.bytes_per_packet:
        joined = b"".join(items)
        packets = [joined[at : at + size] for at in range(0, len(joined), size)]
    else:
        together = behaviour.events_per_packet
        packets = [b"".join(items[at : at + together]) for at in range(0, len(items), together)]
    if behaviour.cut_at is not None:
        packets = _split(packets, behaviour.cut_at)
        packets = packets[: _index_at(packets, behaviour.cut_at)]
    for stop in stops:
        packets = _split(packets, stop)
    return [packet for packet in packets if packet]


def _index_at(packets: list[bytes], offset: int) -> int:
    """The index of the packet that begins at that offset."""
    at = 0
    for index, packet in enumerate(packets):
        if at >= offset:
            return index
        at += len(packet)
    return len(packets)


def _split(packets: list[bytes], offset: int) -> list[bytes]:
    """The same bytes with a border between two packets at that offset."""
    at = 0
    for index, packet in enumerate(packets):
        if at < offset < at + len(packet):
            return [*packets[:index], packet[: offset - at], packet[offset - at :], *packets[index + 1 :]]
        at += len(packet)
    return packets


def _find_stalls(packets: list[bytes], stops: list[int]) -> frozenset[int]:
    return frozenset(_index_at(packets, stop) for stop in stops)


def _make_head(behaviour: Behaviour, kind: str, framing: str, length: int, keep_alive: bool) -> bytes:
    usual = [("date", "Tue, 18 Nov 2025 12:00:00 GMT"), ("content-type", kind), ("request-id", "req_011Rig")]
    match framing:
        case "chunked":
            usual.append(("transfer-encoding", "chunked"))
        case "length":
            usual.append(("content-length", str(length)))
    if not keep_alive:
        usual.append(("connection", "close"))
    if claims := behaviour.encoding if behaviour.claims is None else behaviour.claims:
        usual.append(("content-encoding", claims))
    if behaviour.trailers:
        usual.append(("trailer", ", ".join(name for name, _ in behaviour.trailers)))
    given = {name.lower() for name, _ in behaviour.headers}
    lines = [*((name, value) for name, value in usual if name not in given), *behaviour.headers]
    written = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in lines)
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (behaviour.status, _STATUS.get(behaviour.status, b"Rig"), written)
