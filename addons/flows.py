"""mitmproxy's requests and responses <-> our values: the only code that touches host, headers and bodies of a flow."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable
from enum import StrEnum

from mitmproxy import http
from mitmproxy.net.http import status_codes

from ..routing import codings
from ..routing import headers as fields
from ..routing.errors import BadCall, TooLarge
from ..routing.turn.actions import Head, Refusal
from ..routing.turn.replies import Reply
from ..routing.turn.upstream import Received, Request
from ..routing.values import Endpoint, Headers, JsonObject
from . import people
from .framing import with_headers
from .layers import Place, place_of
from .relay import Wire
from .sealing import Sealed, is_mask, seal

logger = logging.getLogger("routecodex")

REQUEST_BYTES = 32 << 20
"""A request may be this large on the wire, and once more when it is decoded."""
PIECE_BYTES = 16 << 20
"""What one piece of an answer may become when it is decoded."""
_PLAIN = ("", "identity")
_BREATH = 1000
"""So many bites, or KiB, of a packed request, and the loop has its turn."""
NOT_AGAIN = b"RouteCodex repeats only what it sent itself, to the same place: it holds no credential for anything else.\n"
REFUSED = {"content-type": "application/json", "x-should-retry": "false"}
RECORD = "routecodex"
"""What is written down about a flow, in its metadata."""


class Marker(StrEnum):
    """How windows show what a flow of ours is."""

    CALL = ":arrow_right:"
    ROUND = ":arrow_right_hook:"
    RETRY = ":repeat:"
    HELD = ":hourglass_flowing_sand:"
    FAILED = ":x:"
    ANSWERED_HERE = ":speech_balloon:"
    REFUSED = ":no_entry:"
    LEG = ":mag:"
    AGAIN = ":arrows_counterclockwise:"


_CHUNKED = (("transfer-encoding", "chunked"),)


def read_headers(message: http.Message) -> Headers:
    """Names in lower case; of several values the last."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message.headers.fields}


def header_pairs(message: http.Message) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.fields]


async def read_body(request: http.Request) -> bytes:
    """The request's body decoded, however hostile its encoding; what takes long lets others take their turns."""
    raw = request.raw_content or b""
    if len(raw) > REQUEST_BYTES:
        raise TooLarge(f"RouteCodex reads requests of up to {REQUEST_BYTES >> 20} MiB; this one has {len(raw)} bytes.")
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding in _PLAIN:
        return raw
    decode = codings.decoder(coding)
    if decode is None:
        raise BadCall(f"The request's content-encoding {coding!r} is not one of {', '.join(codings.KNOWN)}.")
    out, work = bytearray(), 0
    try:
        for bite in decode(raw):
            out += bite
            if len(out) > REQUEST_BYTES:
                raise codings.TooMuch
            work += 1 + (len(bite) >> 10)
            if work >= _BREATH:
                work = 0
                await asyncio.sleep(0)
    except codings.Damaged as error:
        raise BadCall(f"The request's body is not valid {coding}: {error}") from None
    except codings.TooMuch:
        raise TooLarge(f"The request's body is larger than {REQUEST_BYTES >> 20} MiB once its {coding} is undone.") from None
    return bytes(out)


def stream_decoder(coding: str) -> codings.Decode | None:
    """Undoes a provider's content-encoding as it streams; None where there is none (or none that is known)."""
    return codings.decoder(coding)


async def read_request(flow: http.HTTPFlow, endpoint: Endpoint, sealed: Sealed, *, call_id: str) -> Received:
    request = flow.request
    return Received(
        id=call_id,
        scheme=request.scheme,
        host=request.host,
        port=request.port,
        path=request.path,
        headers=read_headers(request),
        fields=tuple(header_pairs(request)),
        credential=sealed.credential,
        endpoint=endpoint,
        body=await read_body(request),
        wire_body=request.raw_content or b"",
        user=people.name_of(flow),
    )


def write_request(request: http.Request, up: Request, sealed: Sealed) -> Wire:
    """Point the flow's request at its target; what comes back adds the secrets on the wire."""
    request.http_version = "HTTP/1.1"
    if (request.scheme, request.host, request.port) != (up.scheme, up.host, up.port):
        request.scheme, request.host, request.port = up.scheme, up.host, up.port
    request.path = up.path
    request.authority = ""
    default = (up.scheme, up.port) in (("https", 443), ("http", 80))
    host = up.host if default else f"{up.host}:{up.port}"
    pairs = [("Host", host), *up.headers.shown, ("Content-Length", str(len(up.body)))]
    request.data.headers = _headers(pairs)
    request.raw_content = up.body
    request.trailers = None
    return sealed.wire if up.client_credential else adding(up.headers.secret, place_of(request))


def adding(secret: fields.Fields, place: Place) -> Wire:
    """A wire that puts these headers on, if the request still goes to this place: another addon may send it elsewhere."""

    added = [(name.encode("latin-1"), value.encode("latin-1", "surrogateescape")) for name, value in secret]
    names = {name.lower() for name, _ in added}

    def wire(shown: http.Request) -> http.Request:
        kept = [pair for pair in shown.headers.fields if pair[0].lower() not in names and not is_mask(*pair)]
        if place_of(shown) == place:
            return with_headers(shown, kept + added)
        logger.warning("Another addon sent a call for %s elsewhere: no key goes to %s", place[1], shown.host)
        return with_headers(shown, kept)

    return wire


def new_request(up: Request, sealed: Sealed) -> tuple[http.Request, Wire]:
    """A request made from nothing, for a later round."""
    now = time.time()
    request = http.Request(
        up.host, up.port, b"POST", up.scheme.encode(), b"", b"/", b"HTTP/1.1", http.Headers(), b"", None, now, now
    )
    return request, write_request(request, up, sealed)


def posted(upgrade: http.Request, pairs: fields.Fields, body: bytes) -> http.Request:
    """What a frame of a WebSocket asks, as a request to where its upgrade went; credentials stay masked."""
    now = time.time()
    headers = _headers((*pairs, ("content-length", str(len(body)))))
    place = upgrade.data
    return http.Request(
        place.host, place.port, b"POST", place.scheme, b"", place.path, b"HTTP/1.1", headers, body, None, now, now
    )


def asked_again(shown: http.Request) -> http.Request:
    """The same call, and nothing of who sent it; credentials in its path are masked already."""
    now = time.time()
    place, body = shown.data, shown.raw_content or b""
    headers = _headers((("content-type", "application/json"), ("content-length", str(len(body)))))
    return http.Request(
        place.host, place.port, b"POST", place.scheme, b"", place.path, b"HTTP/1.1", headers, body, None, now, now
    )


def mark(flow: http.HTTPFlow, comment: str, marker: Marker, record: JsonObject) -> None:
    """What windows show of a decision. All rounds of one call carry its id (`call` in the record)."""
    flow.comment = comment
    flow.marked = marker
    flow.metadata[RECORD] = record


def add_to_record(flow: http.HTTPFlow, more: JsonObject) -> None:
    """A new one, in place of the old: copies of the flow share it."""
    known = flow.metadata.get(RECORD)
    flow.metadata[RECORD] = {**(known if isinstance(known, dict) else {}), **more}


def turn_away(flow: http.HTTPFlow, why: str) -> None:
    """Nothing of it is read, and nothing that is shown of it holds a credential."""
    seal(flow.request)
    told = {"type": "error", "error": {"type": "invalid_request_error", "code": "NOT_FOR_A_PROXY", "message": why}}
    flow.response = http.Response.make(400, json.dumps(told), {**REFUSED, "connection": "close"})
    flow.comment = "refused: " + why
    flow.marked = Marker.REFUSED


def write_reply(flow: http.HTTPFlow, reply: Reply) -> None:
    """An answer of our own; mitmproxy runs the response hooks for it as for any other."""
    flow.response = _response(reply.status, (*reply.headers, ("content-length", str(len(reply.body)))), reply.body)
    flow.comment = reply.comment
    flow.marked = Marker.ANSWERED_HERE if reply.status < 400 else Marker.REFUSED


def open_response(head: Head, *, http2: bool) -> http.Response:
    """The head of a live answer: its framing is ours."""
    framing = () if http2 else _CHUNKED
    return _response(head.status, (*head.headers, *framing), b"")


def reopen_response(response: http.Response, head: Head, *, http2: bool) -> http.Response:
    """The same for a provider's response that stays the flow's own: cheaper than a new one."""
    framing = () if http2 else _CHUNKED
    response.data.headers = _headers((*head.headers, *framing))
    response.data.http_version = b"HTTP/1.1"
    return response


def whole_response(refusal: Refusal) -> http.Response:
    length = (("content-length", str(len(refusal.body))),)
    return _response(refusal.head.status, (*refusal.head.headers, *length), refusal.body)


def _response(status: int, pairs: Iterable[tuple[str, str]], body: bytes) -> http.Response:
    now = time.time()
    reason = status_codes.RESPONSES.get(status, "").encode()
    return http.Response(b"HTTP/1.1", status, reason, _headers(pairs), body, None, now, now)


def _headers(pairs: Iterable[tuple[str, str]]) -> http.Headers:
    return http.Headers([(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in pairs])
