"""Credentials come off a message and go on again as they were."""

from __future__ import annotations

import time
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import http
from mitmproxy.test.tflow import tflow

from routecodex.addons import sealing
from routecodex.routing import headers as fields

SECRET_NAMES = [
    "authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "helicone-auth",
    "x-portkey-api-key", "cf-aig-authorization", "ocp-apim-subscription-key", "x-amz-security-token", "sec-websocket-protocol",
]  # fmt: skip
names = st.sampled_from([*SECRET_NAMES, *map(str.title, SECRET_NAMES), "X-Api-Key", "accept", "X-Other", "user-agent"])
values = st.one_of(
    st.sampled_from([b"", fields.MASK.encode(), b"Bearer sk-1", "schlüssel".encode(), b"\xff\xfe"]),
    st.binary(min_size=8, max_size=30).filter(lambda value: not set(value) & set(b"\r\n\0")),
)
queries = st.lists(
    st.tuples(
        st.sampled_from(["key", "KEY", "%6Bey", "api_key", "access_token", "oauth_token", "alt", "monkey", "key2"]),
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
    sealed = sealing.seal(request)
    shown = bytes(request.headers) + request.path.encode()
    for name, value in request.headers.fields:
        assert name.decode().lower() not in SECRET_NAMES or value == b"***"
    for name, value in parse_qsl(request.path.partition("?")[2], keep_blank_values=True):
        assert name.lower() not in ("key", "api_key", "access_token", "oauth_token") or value == "***"
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
        ("/x?key=a#key=b", "/x?key=***#key=***"),
        ("/x?%6Bey=a&oauth%5ftoken=b;c&x=1;key=d", "/x?%6Bey=***&oauth%5ftoken=***&x=1;key=***"),
        ("/x?key=", "/x?key=***"),
    ],
)
def test_credentials_in_a_query(path: str, shown: str) -> None:
    request = make([], path)
    sealed = sealing.seal(request)
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
    assert sealing.seal(make(pairs, path)).credential == credential


def test_addresses_in_headers_are_masked_in_part() -> None:
    request = make([(b"Referer", b"https://x.example/cb?code=once&state=1#access_token=t"), (b"x", b"?key=1")])
    sealed = sealing.seal(request)
    assert request.headers["referer"] == "https://x.example/cb?code=***&state=1#access_token=***"
    assert request.headers["x"] == "?key=1"
    assert sealed.wire(request).headers["referer"].endswith("?code=once&state=1#access_token=t")


def test_the_head_of_an_answer() -> None:
    pairs = ((b"Set-Cookie", b"a=1"), (b"content-type", b"x"), (b"set-cookie", b"***"), (b"x-ratelimit-limit-tokens", b"9"))
    flow = tflow(resp=http.Response.make(200, b"", http.Headers(pairs)))
    assert flow.response is not None
    came = flow.response.headers.fields
    backs = sealing.Backs({flow})
    for _ in range(2):  # whoever seals twice loses nothing
        backs.seal(flow, flow.response)
        assert flow.response.headers.get_all("set-cookie") == ["***", "***"]
        assert flow.response.headers["x-ratelimit-limit-tokens"] == "9"
        assert backs.wire(flow, flow.response).headers.fields == came


def test_an_answer_is_sealed_at_the_latest_when_it_leaves_and_only_one_of_ours() -> None:
    ours, other = (tflow(resp=http.Response.make(200, b"", {"set-cookie": "a=1"})) for _ in range(2))
    backs = sealing.Backs({ours})
    for flow, shown in ((ours, "***"), (other, "a=1")):
        assert flow.response is not None
        assert backs.wire(flow, flow.response).headers["set-cookie"] == "a=1"
        assert flow.response.headers["set-cookie"] == shown


def test_only_a_body_that_has_left_is_masked() -> None:
    body = b'{"access_token": "secret-1", "max_tokens": 3}'
    response = http.Response.make(200, body)
    sealing.seal_stored(response)
    assert response.raw_content == body
    response.stream = True
    sealing.seal_stored(response)
    assert response.raw_content == b'{"access_token": "***", "max_tokens": 3}'
    sealing.seal_stored(None)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_a_packed_body_is_masked_unpacked(coding: str) -> None:
    response = http.Response.make(200, b'{"access_token": "secret-1"}', {"content-encoding": coding})
    response.stream = True
    sealing.seal_stored(response)
    assert response.content == b'{"access_token": "***"}'
    assert "content-encoding" not in response.headers


def test_what_cannot_be_unpacked_or_becomes_too_much_shows_nothing() -> None:
    bomb = http.Response.make(200, b" " * (17 << 20), {"content-encoding": "gzip"})
    damaged = http.Response.make(200, b"", {"content-encoding": "gzip"})
    damaged.raw_content = b"no gzip at all"
    for response, left in ((bomb, None), (damaged, b"no gzip at all")):
        response.stream = True
        sealing.seal_stored(response)
        assert response.raw_content == left


def test_trailers_of_a_request_hold_no_credential() -> None:
    request = make([])
    sealing.seal_trailers(request)
    assert request.trailers is None
    request.trailers = http.Headers([(b"Authorization", b"Bearer secret"), (b"x-checksum", b"abc")])
    sealing.seal_trailers(request)
    assert request.trailers.fields == ((b"Authorization", b"***"), (b"x-checksum", b"abc"))


def test_a_key_may_be_a_headers_name() -> None:
    response = http.Response.make(200, b"", http.Headers([(b"x-echo-key-1234567-89", b"key-1234567-89")]))
    sealing.mask_echoes(response, ("key-1234567-89",))
    assert response.headers.fields[0] == (b"x-echo-***", b"***")
