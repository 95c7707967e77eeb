"""Credentials come off a request and go on again as they were; bodies and lengths are what they say."""

from __future__ import annotations

import gzip
import time
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import http

from routecodex.addons import codings, flows
from routecodex.routing import headers as fields
from routecodex.routing.errors import BadCall, TooLarge
from routecodex.routing.headers import Outgoing
from routecodex.routing.upstream import Request

SECRET_NAMES = sorted(fields.SECRET)
names = st.sampled_from([*SECRET_NAMES, *map(str.title, SECRET_NAMES), "X-Api-Key", "accept", "X-Other", "user-agent"])
values = st.one_of(
    st.sampled_from([b"", fields.MASK.encode(), b"Bearer sk-1", "schlüssel".encode(), b"\xff\xfe"]),
    st.binary(min_size=8, max_size=30).filter(lambda value: not set(value) & set(b"\r\n\0")),
)
queries = st.lists(
    st.tuples(
        st.sampled_from(["key", "KEY", "api_key", "api-key", "access_token", "token", "alt", "monkey", "key2"]),
        st.text("abc123-._~%+/=:@*", max_size=12),
    ),
    max_size=6,
)


def make(pairs: list[tuple[bytes, bytes]], path: str = "/v1/messages", body: bytes = b"") -> http.Request:
    now = time.time()
    return http.Request(
        "api.anthropic.com", 443, b"POST", b"https", b"", path.encode(), b"HTTP/1.1", http.Headers(pairs), body, None, now, now
    )


@given(pairs=st.lists(st.tuples(names, values), max_size=10), query=queries)
def test_what_is_sealed_comes_back_as_it_was(pairs: list[tuple[str, bytes]], query: list[tuple[str, str]]) -> None:
    path = "/v1/x" + ("?" + "&".join(f"{name}={value}" for name, value in query) if query else "")
    raw = [(name.encode(), value) for name, value in pairs]
    request = make(raw, path)
    sealed = flows.seal(request)
    shown = bytes(request.headers) + request.path.encode()
    for name, value in request.headers.fields:
        assert name.decode().lower() not in fields.SECRET or value == b"***"
    for name, value in parse_qsl(request.path.partition("?")[2], keep_blank_values=True):
        assert name.lower() not in ("key", "api_key", "api-key", "access_token", "token") or value == "***"
    wired = sealed.wire(request)
    assert wired.headers.fields == tuple(raw)
    assert wired.path == path
    assert bytes(request.headers) + request.path.encode() == shown, "the flow itself is not touched"


@pytest.mark.parametrize(
    "path, shown",
    [
        ("/v1beta/models/m:generateContent?key=AIza1&alt=sse", "/v1beta/models/m:generateContent?key=***&alt=sse"),
        ("/x?alt=sse&KEY=a&access_token=b", "/x?alt=sse&KEY=***&access_token=***"),
        ("/x?monkey=a&key2=b&keys=c", "/x?monkey=a&key2=b&keys=c"),
        ("/key=a", "/key=a"),
        ("/x?key=a#key=b", "/x?key=***#key=b"),
        ("/x?key=", "/x?key=***"),
    ],
)
def test_credentials_in_a_query(path: str, shown: str) -> None:
    request = make([], path)
    sealed = flows.seal(request)
    assert request.path == shown
    assert sealed.wire(request).path == path


@pytest.mark.parametrize(
    "pairs, path, credential",
    [
        ([(b"authorization", b"Bearer a"), (b"x-api-key", b"b")], "/", "Bearer a"),
        ([(b"X-Api-Key", b"b"), (b"cookie", b"c")], "/", "b"),
        ([(b"x-goog-api-key", b"g")], "/?key=q", "g"),
        ([(b"cookie", b"c")], "/?key=q", "q"),
        ([(b"cookie", b"c")], "/", ""),
    ],
)
def test_which_credential_tells_callers_apart(pairs: list[tuple[bytes, bytes]], path: str, credential: str) -> None:
    assert flows.seal(make(pairs, path)).credential == credential


def up(**changes: Any) -> Request:
    headers = Outgoing((("content-type", "application/json"),), (("authorization", "Bearer provider-key"),))
    given: dict[str, Any] = {"scheme": "https", "host": "far.example", "port": 443, "path": "/v1/x", "headers": headers}
    return Request(**given | {"body": b"{}"} | changes)


def test_a_rewritten_request_holds_no_secret_until_it_is_on_the_wire() -> None:
    request = make([(b"x-api-key", b"client-key"), (b"x-other", b"1")], "/v1/messages?key=client-query", b"old")
    request.trailers = http.Headers([(b"x-trailer", b"1")])
    sealed = flows.seal(request)
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
    flows.write_request(request, up(**changes), flows.seal(request))
    assert request.headers["host"] == host


def test_our_own_credential_replaces_one_that_is_shown() -> None:
    headers = Outgoing((("Authorization", "left over"), ("a", "1")), (("authorization", "Bearer provider-key"),))
    request, wire = flows.new_request(up(headers=headers), flows.Sealed({}, ()))
    assert wire(request).headers.get_all("authorization") == ["Bearer provider-key"]


def test_a_body_as_large_as_allowed_and_one_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "REQUEST_BYTES", 1000)
    packed = [(b"content-encoding", b"gzip")]
    assert flows.read_body(make([], body=b"x" * 1000)) == b"x" * 1000
    assert flows.read_body(make(packed, body=gzip.compress(b"x" * 1000))) == b"x" * 1000
    for request in (make([], body=b"x" * 1001), make(packed, body=gzip.compress(b"x" * 1001))):
        with pytest.raises(TooLarge):
            flows.read_body(request)
    with pytest.raises(BadCall, match="not valid gzip"):
        flows.read_body(make(packed, body=b"no"))
    with pytest.raises(BadCall, match="exotic"):
        flows.read_body(make([(b"content-encoding", b"exotic")], body=b"x"))


@pytest.mark.parametrize(
    "pairs, body, length",
    [
        ([], b"abc", "3"),
        ([], b"", None),
        ([(b"Content-Length", b"3")], b"abc", "3"),
        ([(b"Transfer-Encoding", b"chunked")], b"abc", None),
    ],
)
def test_a_body_has_a_length(pairs: list[tuple[bytes, bytes]], body: bytes, length: str | None) -> None:
    request = make(pairs, body=body)
    flows.give_length(request)
    assert request.headers.get("content-length") == length


def test_an_unknown_encoding_of_an_answer_is_left_alone() -> None:
    assert flows.stream_decoder("") is None
    assert flows.stream_decoder("utf-8") is None
    assert flows.stream_decoder(" GZIP ") is not None
    assert codings.decoder("compress", 10) is None
