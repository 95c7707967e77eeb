"""Requests are pointed at their targets; bodies and lengths are what they say."""

from __future__ import annotations

import asyncio
import gzip
import time
from typing import Any

import pytest
from mitmproxy import http

from routecodex.addons import flows, sealing
from routecodex.routing import codings
from routecodex.routing.errors import BadCall, TooLarge
from routecodex.routing.headers import Outgoing
from routecodex.routing.turn.upstream import Request


def make(pairs: list[tuple[bytes, bytes]], path: str = "/v1/messages", body: bytes = b"") -> http.Request:
    now = time.time()
    return http.Request(
        "api.anthropic.com", 443, b"POST", b"https", b"", path.encode(), b"HTTP/1.1", http.Headers(pairs), body, None, now, now
    )


def up(**changes: Any) -> Request:
    headers = Outgoing((("content-type", "application/json"),), (("authorization", "Bearer provider-key"),))
    given: dict[str, Any] = {"scheme": "https", "host": "far.example", "port": 443, "path": "/v1/x", "headers": headers}
    return Request(**given | {"body": b"{}"} | changes)


def test_a_rewritten_request_holds_no_secret_until_it_is_on_the_wire() -> None:
    request = make([(b"x-api-key", b"client-key"), (b"x-other", b"1")], "/v1/messages?key=client-query", b"old")
    request.trailers = http.Headers([(b"x-trailer", b"1")])
    sealed = sealing.seal(request)
    wire = flows.write_request(request, up(), sealed)
    assert (request.scheme, request.host, request.port, request.path) == ("https", "far.example", 443, "/v1/x")
    assert request.headers.fields == (
        (b"Host", b"far.example"),
        (b"content-type", b"application/json"),
        (b"Content-Length", b"2"),
    )
    assert request.raw_content == b"{}"
    assert request.trailers is None
    wired = wire(request)
    assert wired.headers["authorization"] == "Bearer provider-key"
    assert b"client" not in bytes(wired.headers) + wired.path.encode()
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    "changes, host",
    [({"port": 8443}, "far.example:8443"), ({"scheme": "http", "port": 80}, "far.example"), ({"port": 80}, "far.example:80")],
)
def test_the_host_header_names_an_unusual_port(changes: dict[str, Any], host: str) -> None:
    request = make([])
    flows.write_request(request, up(**changes), sealing.seal(request))
    assert request.headers["host"] == host


def test_our_own_credential_replaces_one_that_is_shown() -> None:
    headers = Outgoing((("Authorization", "left over"), ("a", "1")), (("authorization", "Bearer provider-key"),))
    request, wire = flows.new_request(up(headers=headers), sealing.Sealed())
    assert wire(request).headers.get_all("authorization") == ["Bearer provider-key"]


def test_a_body_as_large_as_allowed_and_one_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "REQUEST_BYTES", 1000)
    packed = [(b"content-encoding", b"gzip")]
    assert asyncio.run(flows.read_body(make([], body=b"x" * 1000))) == b"x" * 1000
    assert asyncio.run(flows.read_body(make(packed, body=gzip.compress(b"x" * 1000)))) == b"x" * 1000
    for request in (make([], body=b"x" * 1001), make(packed, body=gzip.compress(b"x" * 1001))):
        with pytest.raises(TooLarge):
            asyncio.run(flows.read_body(request))
    with pytest.raises(BadCall, match="not valid gzip"):
        asyncio.run(flows.read_body(make(packed, body=b"no")))
    with pytest.raises(BadCall, match="exotic"):
        asyncio.run(flows.read_body(make([(b"content-encoding", b"exotic")], body=b"x")))


def test_an_unknown_encoding_of_an_answer_is_left_alone() -> None:
    assert flows.stream_decoder("") is None
    assert flows.stream_decoder("utf-8") is None
    assert flows.stream_decoder(" GZIP ") is not None
    assert codings.decoder("compress") is None
