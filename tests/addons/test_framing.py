"""What HTTP/1 may carry to either side, and what it may not."""

from __future__ import annotations

import pytest
from mitmproxy import http

from routecodex.addons import framing


def request(*pairs: tuple[bytes, bytes]) -> http.Request:
    return http.Request("h.example", 443, b"POST", b"https", b"", b"/", b"HTTP/2.0", http.Headers(pairs), b"", None, 0, 0)


def response(status: int, *pairs: tuple[bytes, bytes]) -> http.Response:
    return http.Response(b"HTTP/1.1", status, b"", http.Headers(pairs), b"", None, 0, 0)


@pytest.mark.parametrize(
    "pairs, chunked",
    [
        ((), True),
        (((b"x-one", b"1"),), True),
        (((b"Content-Length", b"3"),), False),
        (((b"Transfer-Encoding", b"chunked"),), False),
    ],
)
def test_a_body_is_framed_once(pairs: tuple[tuple[bytes, bytes], ...], chunked: bool) -> None:
    shown = request(*pairs)
    wired = framing.framed(shown)
    assert wired.headers.fields == (*pairs, *([(b"transfer-encoding", b"chunked")] if chunked else []))
    assert shown.headers.fields == pairs


def test_http2_is_told_nothing_of_frames() -> None:
    kept = ((b"x-one", b"1"), (b"content-length", b"3"))
    shown = response(200, (b"Transfer-Encoding", b"chunked"), kept[0], (b"Connection", b"keep-alive"), kept[1])
    assert framing.unframed(shown).headers.fields == kept
    assert len(shown.headers.fields) == 4
    plain = response(200, *kept)
    assert framing.unframed(plain) is plain


@pytest.mark.parametrize(
    "status, upgrade, answer, interim",
    [
        (0, False, False, False),
        (-1, True, False, False),
        (99, False, False, False),
        (100, False, False, True),
        (100, True, False, True),
        (101, False, False, True),
        (101, True, True, False),
        (102, False, False, True),
        (103, False, False, True),
        (199, False, False, True),
        (200, False, True, False),
        (426, True, True, False),
        (599, False, True, False),
        (600, False, False, False),
        (99999, False, False, False),
    ],
)
def test_what_is_an_answer(status: int, upgrade: bool, answer: bool, interim: bool) -> None:
    asked = request((b"Upgrade", b"websocket")) if upgrade else request()
    assert framing.is_answer(asked, response(status)) is answer
    assert framing.is_interim(asked, response(status)) is interim


@pytest.mark.parametrize(
    "pair, passes",
    [
        ((b"x-checksum", b"abc"), True),
        ((b"Grpc-Status", b"0"), True),
        ((b"x-utf8", "é".encode()), True),
        ((b"content-length", b"5"), False),
        ((b"Transfer-Encoding", b"chunked"), False),
        ((b"connection", b"close"), False),
        ((b"x-bad", b"a\r\nx-more: b"), False),
        ((b"x-bad", b"a\r\n\r\nGET / HTTP/1.1"), False),
        ((b"x-bad\r\nx", b"a"), False),
        ((b"x bad", b"a"), False),
        ((b"", b"a"), False),
        ((b"x-nul", b"\0"), False),
    ],
)
def test_which_trailers_pass(pair: tuple[bytes, bytes], passes: bool) -> None:
    left = framing.passing(http.Headers([pair]))
    assert left.fields == (((pair[0].lower(), pair[1]),) if passes else ())
