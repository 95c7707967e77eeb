"""What HTTP/1 may carry to either side, and what it may not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import h11
import pytest
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from hypothesis import given
from hypothesis import strategies as st
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


def told(reader: framing.Chunks | ChunkedReader, body: bytes, cuts: list[int]) -> Iterator[bytes | str]:
    """All that somebody hears of a body that comes in these pieces: per piece its data, at last how it ended."""
    buffer = ReceiveBuffer()
    for start, end in pairwise(sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})):
        buffer += body[start:end]
        data = b""
        try:
            while (event := reader(buffer)) is not None:
                if isinstance(event, h11.EndOfMessage):
                    yield from (data, f"ended, {bytes(buffer)!r} is left")
                    return
                data += event.data
        except h11.ProtocolError as error:
            yield from (data, str(error))
            return
        yield data


CHUNK = st.one_of(
    st.binary(min_size=1, max_size=40).map(lambda data: b"%x\r\n%s\r\n" % (len(data), data)),
    st.binary(min_size=1, max_size=20).map(lambda data: b"%04X;name=value\r\n%s\r\n" % (len(data), data)),
    st.sampled_from(
        [
            b"0\r\n\r\n",
            b"0\r\nx-sum: 1\r\n\r\n",
            b"3\r\nabcd\r\n",
            b"3\nabc\r\n",
            b"-1\r\n",
            b"0x1\r\na\r\n",
            b"\r\n",
            b"5 \r\nabcde\r\n",
        ]
    ),
    st.binary(max_size=6),
)


@given(st.lists(CHUNK, max_size=12), st.lists(st.integers(0, 500), max_size=6))
def test_chunks_that_came_together_are_one_piece_and_mean_what_h11_reads(parts: list[bytes], cuts: list[int]) -> None:
    body = b"".join(parts)
    assert [*told(framing.Chunks(ChunkedReader()), body, cuts)] == [*told(ChunkedReader(), body, cuts)]


def test_what_came_together_is_told_once_and_what_spoils_the_rest_comes_behind_it() -> None:
    chunks, buffer = framing.Chunks(ChunkedReader()), ReceiveBuffer()
    buffer += b"1\r\na\r\n2;x\r\nbc\r\n1\r\nd\r\n3\r\nef"
    assert chunks(buffer) == h11.Data(data=b"abcdef")
    assert chunks(buffer) is None
    buffer += b"g\r\n1\r\nh\r\nnone\r\n"
    assert chunks(buffer) == h11.Data(data=b"gh")
    with pytest.raises(h11.ProtocolError, match="illegal chunk header"):
        chunks(buffer)


def test_what_stands_behind_the_last_chunk_is_not_touched() -> None:
    chunks, buffer = framing.Chunks(ChunkedReader()), ReceiveBuffer()
    buffer += b"1\r\na\r\n0\r\nx-sum: 1\r\n\r\nHTTP/1.1 200 OK\r\n"
    assert chunks(buffer) == h11.Data(data=b"a")
    assert chunks(buffer) == h11.EndOfMessage()
    assert chunks.trailers == ((b"x-sum", b"1"),)
    assert bytes(buffer) == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "begun", [b"1;name=", b"5\r\nabcde\r\n1;", b"0\r\nx-sum: ", b"0\r\nx: 1\r\n", b"2\r\nab\r\n0\r\nx: 1\r\ny: "]
)
def test_a_line_of_a_chunk_or_trailers_without_an_end_are_not_kept_for_ever(begun: bytes) -> None:
    chunks, buffer = framing.Chunks(ChunkedReader()), ReceiveBuffer()
    buffer += begun
    while chunks(buffer) is not None:
        pass
    more = b"a: b\r\n" * 999 if begun.endswith(b"\r\n") else b"a" * 5_994
    while len(buffer) + len(more) <= framing.HEAD_BYTES:
        buffer += more
        assert chunks(buffer) is None
    buffer += more
    with pytest.raises(h11.ProtocolError, match="longer than 256 KiB"):
        chunks(buffer)


@pytest.mark.parametrize(
    "begun, rest", [(b"1;n", b"y" * 200_000 + b"\r\na\r\n0\r\n\r\n"), (b"a0000\r\n", b"y" * 0xA0000 + b"\r\n0\r\n\r\n")]
)
def test_a_long_line_that_ends_and_a_long_chunk_pass(begun: bytes, rest: bytes) -> None:
    chunks, buffer = framing.Chunks(ChunkedReader()), ReceiveBuffer()
    said = b""
    for piece in (begun, *(rest[at : at + 65_536] for at in range(0, len(rest), 65_536))):
        buffer += piece
        while (event := chunks(buffer)) is not None and not isinstance(event, h11.EndOfMessage):
            said += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert said in (b"a", b"y" * 0xA0000)
