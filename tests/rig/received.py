"""One request as the fake provider received it, and what became of its answer."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import brotli

from routecodex.routing.codings import zstd
from tests.rig.behaviour import Behaviour
from tests.rig.pipe import Pipe
from tests.rig.reply import Asked, read_request


@dataclass(slots=True, eq=False)
class Received:
    """One request as it arrived, and what became of its answer. Times are `time.monotonic()`."""

    number: int
    connection: int
    at: float
    tls: bool
    sni: str | None
    head: bytes
    wire_body: bytes
    """With chunk lines, as it came."""
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    """Without chunk lines and content encoding."""
    asked: Asked | None = None
    behaviour: Behaviour | None = None
    head_sent_at: float | None = None
    packets_sent: int = 0
    bytes_sent: int = 0
    finished_at: float | None = None
    """The answer was written to its planned end."""
    left_at: float | None = None
    """The client left before that."""

    @property
    def raw(self) -> bytes:
        return self.head + self.wire_body

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def host(self) -> str | None:
        return self.header("host")

    @property
    def left_early(self) -> bool:
        return self.left_at is not None

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def key(self) -> str | None:
        """The credential it came with, wherever that was."""
        bearer = self.header("authorization") or ""
        named = self.header("x-api-key") or self.header("x-goog-api-key")
        return named or bearer.removeprefix("Bearer ") or self.query.get("key", [None])[0]

    @property
    def said(self) -> str:
        """The last text of a user, for the default answer."""
        texts = re.findall(rb'"(?:text|content|input)"\s*:\s*("(?:[^"\\]|\\.)*")', self.body[-20_000:])
        with contextlib.suppress(ValueError):
            return str(json.loads(texts[-1]))[:80] if texts else ""
        return ""


async def read_received(pipe: Pipe, served: Callable[[], int], connection: int, *, parse: bool) -> Received | None:
    """None: not HTTP. How many were `served` before is asked when all of it is there: others may have come meanwhile."""
    head = await pipe.read_until(b"\r\n\r\n")
    at = time.monotonic()
    lines = head.decode("latin-1").split("\r\n")
    first = lines[0].split(" ")
    if len(first) != 3 or not first[2].startswith("HTTP/1."):
        return None
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line)]
    fields = {name.lower(): value for name, value in headers}
    if fields.get("expect", "").lower() == "100-continue":
        await pipe.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        if "chunked" in fields.get("transfer-encoding", "").lower():
            wire_body, body = await _read_chunks(pipe)
        else:
            wire_body = body = await pipe.read_exactly(int(fields.get("content-length") or 0))
    except ValueError:
        return None
    security = pipe.transport.get_extra_info("ssl_object")
    number = served()
    received = Received(
        number=number,
        connection=connection,
        at=at,
        tls=security is not None,
        sni=getattr(security, "asked_for", None),
        head=head,
        wire_body=wire_body,
        method=first[0],
        target=first[1],
        headers=headers,
        body=_decode(body, fields.get("content-encoding", "")),
    )
    # Reading large JSON would be the greater part of a measured call, so it is left out where nothing is kept.
    fields_said = _json(received.body) if parse else {"stream": b'"stream":true' in body}
    received.asked = read_request(first[0], first[1], fields_said, number)
    return received


async def _read_chunks(pipe: Pipe) -> tuple[bytes, bytes]:
    raw, body = bytearray(), bytearray()
    while True:
        line = await pipe.read_until(b"\r\n")
        size = int(line.split(b";")[0], 16)
        raw += line
        if size == 0:
            while line != b"\r\n":
                line = await pipe.read_until(b"\r\n")
                raw += line
            return bytes(raw), bytes(body)
        data = await pipe.read_exactly(size + 2)
        raw += data
        body += data[:-2]


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
}


def _decode(body: bytes, encoding: str) -> bytes:
    """The body as it is where its encoding is a lie."""
    try:
        return _DECODERS[encoding](body) if body and encoding in _DECODERS else body
    except (OSError, EOFError, zlib.error, brotli.error, zstd.ZstdError):
        return body


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
