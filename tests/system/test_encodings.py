"""R13: whatever a body is packed in, it is read and edited where it must be, and passes as it came where it need not be."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import brotli
import pytest

from routecodex.routing.codings import zstd
from routecodex.routing.values import Dialect
from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, call
from tests.rig.wire import Reply
from tests.system.tool import CREDENTIALS, HOSTS, Tool, text_of, write

pytestmark = pytest.mark.system

ANTHROPIC = "https://api.anthropic.com"


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _zstd_without_size(data: bytes) -> bytes:
    """As streaming clients write it: the frame does not say how long it will be."""
    packer = zstd.ZstdCompressor()
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip of two members": ("gzip", lambda data: gzip.compress(data[:40]) + gzip.compress(data[40:])),
    "GZIP": ("GZIP", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its header": ("deflate", _raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd.compress),
    "zstd as a stream": ("zstd", _zstd_without_size),
    "gzip, then zstd": ("gzip, zstd", lambda data: zstd.compress(gzip.compress(data))),
    "zstd of two frames": ("zstd", lambda data: zstd.compress(data[:40]) + zstd.compress(data[40:])),
}


def written(text: str, *, stream: bool = False) -> bytes:
    body = {"model": "claude-x", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": text}]}
    return json.dumps(body, indent=2).encode()


def send(tool: Tool, packed: bytes, coding: str) -> Answer:
    headers = [CREDENTIALS[Dialect.MESSAGES], ("content-encoding", coding)]
    return call(ANTHROPIC, "/v1/messages", packed, proxy=tool.proxy, headers=headers)


# ---- requests ----


@pytest.mark.parametrize("name", PACKERS)
def test_a_request_that_needs_no_edit_passes_as_it_was_packed(tool: Tool, name: str) -> None:
    coding, pack = PACKERS[name]
    packed = pack(written("héllo there " * 20))
    assert send(tool, packed, coding).status == 200
    (received,) = tool.received
    assert received.wire_body == packed
    assert received.header("content-encoding") == coding
    assert received.header("content-length") == str(len(packed))


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("tag", ["<**six.m**>", "<**#glm**>"], ids=["to another host", "to the same host"])
def test_a_request_that_is_edited_is_unpacked(tool: Tool, name: str, tag: str) -> None:
    coding, pack = PACKERS[name]
    answer = send(tool, pack(written(f"{tag} héllo there " + "x " * 50)), coding)
    assert answer.status == 200
    (received,) = tool.received
    assert received.header("content-encoding") is None
    assert received.body == received.wire_body
    assert "héllo there" in received.body.decode()
    assert b"<**" not in received.body
    assert received.host == ("six.example" if "six" in tag else "api.anthropic.com")


@pytest.mark.parametrize(
    "packed, coding",
    [
        pytest.param(b"not gzip at all", "gzip", id="not what it says"),
        pytest.param(gzip.compress(written("hello there " * 50))[:-30], "gzip", id="cut short"),
        pytest.param(brotli.compress(written("hello there " * 50))[:-3], "br", id="cut short, br"),
        pytest.param(zstd.compress(written("hello " * 9))[:-9], "zstd", id="cut short, zstd"),
        pytest.param(b"\x00", "deflate", id="one byte"),
        pytest.param(b"", "br", id="nothing"),
        pytest.param(written("hello"), "exotic", id="unknown"),
        pytest.param(gzip.compress(written("hello")), "exotic, gzip", id="one of two unknown"),
        pytest.param(gzip.compress(gzip.compress(gzip.compress(written("hello")))), "gzip, gzip, gzip", id="three times"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(tool: Tool, packed: bytes, coding: str) -> None:
    """Its tags could not be read: it must not go on."""
    answer = send(tool, packed, coding)
    assert answer.status == 400
    assert answer.json["type"] == "error"
    assert answer.header("x-should-retry") == "false"
    assert tool.received == []


# ---- answers ----

CODINGS = ("gzip", "br", "zstd", "deflate")
LONG_TEXT = " ".join(f"wörd{n}" for n in range(300))


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_an_answer_is_unpacked(tool: Tool, coding: str, dialect: Dialect, stream: bool) -> None:
    """It was asked for unpacked, but not every provider listens. In odd packets, so that nothing is whole when it comes."""
    tool.dialect = dialect
    packets = 13 if stream else 0
    tool.provider.enqueue(Behaviour(reply=Reply(LONG_TEXT), encoding=coding, bytes_per_packet=packets))  # type: ignore[arg-type]
    answer = tool.ask("<**six.m**> hello" if stream else "hello", stream=stream, headers=(("accept-encoding", "gzip, br, zstd"),))
    assert answer.status == 200
    assert answer.ended == "complete"
    assert answer.header("content-encoding") is None
    assert text_of(dialect, answer.body, stream) == LONG_TEXT
    assert tool.received[0].header("accept-encoding") == "identity"


@pytest.mark.parametrize("coding", CODINGS)
def test_it_is_unpacked_as_it_streams(tool: Tool, coding: str) -> None:
    """Not at the end: a word is shown as soon as it is there."""
    reply = Reply(tuple(f"word{n} " for n in range(8)))
    tool.provider.enqueue(Behaviour(reply=reply, encoding=coding, delay_s=0.03))  # type: ignore[arg-type]
    answer = tool.ask("hello", stream=True)
    assert len(answer.chunks) >= 8
    assert answer.chunks[0][0] < answer.chunks[-1][0] - 0.1


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_a_packed_error_fails_over(tool: Tool, coding: str, stream: bool) -> None:
    """The error is found inside its packing, and the next answer is unpacked anew."""
    errors = [Behaviour(status=529, error="busy", encoding=coding), Behaviour(error="overloaded", encoding=coding)]  # type: ignore[arg-type]
    if stream:
        errors.append(Behaviour(error="overloaded", error_after=0, encoding=coding, bytes_per_packet=5))  # type: ignore[arg-type]
    other = CODINGS[CODINGS.index(coding) - 1]
    tool.provider.enqueue(*errors, Behaviour(reply=Reply(LONG_TEXT), encoding=other))  # type: ignore[arg-type]
    answer = tool.ask("<**six.m**> hello", stream=stream)
    assert answer.status == 200
    assert text_of(Dialect.MESSAGES, answer.body, stream) == LONG_TEXT
    assert len(tool.received) == len(errors) + 1


@pytest.mark.parametrize("coding", CODINGS)
def test_a_packed_error_of_origin_is_readable(tool: Tool, coding: str) -> None:
    tool.provider.enqueue(Behaviour(status=401, error="your token is old", encoding=coding))  # type: ignore[arg-type]
    answer = tool.ask("hello")
    assert answer.status == 401
    assert answer.header("content-encoding") is None
    assert answer.json["error"]["message"] == "your token is old"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("claims", CODINGS)
def test_an_answer_that_is_not_packed_as_it_says_is_no_answer(tool: Tool, claims: str, stream: bool) -> None:
    tool.provider.enqueue(Behaviour(claims=claims))
    answer = tool.ask("<**six.m**> hello", stream=stream)
    assert answer.status == 200
    assert text_of(Dialect.MESSAGES, answer.body, stream) == "m was asked: hello"
    assert len(tool.received) == 2


def test_an_answer_whose_encoding_nobody_knows_is_taken_as_it_is(tool: Tool) -> None:
    """Some servers name the character set there."""
    tool.provider.enqueue(Behaviour(claims="utf-8"))
    assert text_of(Dialect.MESSAGES, tool.ask("<**six.m**> hello").body, False) == "m was asked: hello"
    assert len(tool.received) == 1


@pytest.mark.parametrize("packed", [_raw_deflate, zlib.compress])
def test_both_kinds_of_deflate(tool: Tool, packed: Callable[[bytes], bytes]) -> None:
    body = b'{"type":"message","role":"assistant","content":[{"type":"text","text":"flat"}],"stop_reason":"end_turn","usage":{}}'
    tool.provider.enqueue(Behaviour(body=packed(body), claims="deflate", bytes_per_packet=9, framing="chunked"), path="/messages")
    answer = tool.ask("hello")
    assert answer.status == 200
    assert answer.json["content"][0]["text"] == "flat"


def test_gzip_of_two_members(tool: Tool) -> None:
    """As some servers flush: each part a member of its own."""
    body = (
        b'{"type":"message","role":"assistant","content":[{"type":"text","text":"twofold"}],"stop_reason":"end_turn","usage":{}}'
    )
    packed = gzip.compress(body[:30]) + gzip.compress(body[30:])
    tool.provider.enqueue(Behaviour(body=packed, claims="gzip", bytes_per_packet=9, framing="chunked"), path="/messages")
    answer = tool.ask("hello")
    assert answer.status == 200
    assert answer.json["content"][0]["text"] == "twofold"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_an_answer_packed_twice(tool: Tool, stream: bool) -> None:
    tool.provider.enqueue(
        Behaviour(
            reply=Reply(LONG_TEXT),
            edit=lambda parts: [gzip.compress(b"".join(parts))],
            encoding="br",
            claims="gzip, br",
            bytes_per_packet=9,
        )
    )
    answer = tool.ask("hello", stream=stream)
    assert answer.header("content-encoding") is None
    assert text_of(Dialect.MESSAGES, answer.body, stream) == LONG_TEXT


@pytest.mark.parametrize("coding", CODINGS)
def test_other_paths_keep_their_packing(tool: Tool, coding: str) -> None:
    body = b'{"files": [' + b"1," * 500 + b"1]}"
    tool.provider.always(Behaviour(body=body, encoding=coding), path="/v1/files")  # type: ignore[arg-type]
    answer = call(ANTHROPIC, "/v1/files", b"", method="GET", proxy=tool.proxy, headers={"accept-encoding": coding})
    assert answer.header("content-encoding") == coding
    unpack = {
        "gzip": gzip.decompress,
        "deflate": zlib.decompress,
        "br": brotli.decompress,
        "zstd": zstd.decompress,
    }
    assert unpack[coding](answer.body) == body
    assert tool.received[0].header("accept-encoding") == coding


# ---- the dialects' other ways of being asked ----


@pytest.mark.parametrize("coding", CODINGS)
def test_a_json_array_stream_is_unpacked(tool: Tool, coding: str) -> None:
    """Gemini's stream without `alt=sse`."""
    path, body = write(Dialect.GEMINI, "gemini-x", [("user", "<**six.m**> hello")], True)
    tool.provider.enqueue(Behaviour(reply=Reply(LONG_TEXT), encoding=coding, bytes_per_packet=11))  # type: ignore[arg-type]
    answer = call(HOSTS[Dialect.GEMINI], path.partition("?")[0], body, proxy=tool.proxy, headers=[CREDENTIALS[Dialect.GEMINI]])
    assert answer.status == 200
    parts = [part["text"] for item in answer.json for part in item["candidates"][0]["content"].get("parts", ())]
    assert "".join(parts) == LONG_TEXT
