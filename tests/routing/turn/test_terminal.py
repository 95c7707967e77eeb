"""Where a stream ends, and what of it may leave before: in four dialects, however it is written and cut."""

from __future__ import annotations

import json
import random

import pytest

from routecodex.routing.dialects import answers
from routecodex.routing.dialects.sse import LIMIT, ArrayItems, Events
from routecodex.routing.errors import BadAnswer
from routecodex.routing.turn.terminal import TERMINAL, Passage
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.work import assert_linear
from tests.routing.dialects.answers.streams import array_streams, provider_streams

STREAMS = {name: (Endpoint(dialect), raw) for name, dialect, raw, _ in provider_streams()}
STREAMS |= {
    f"array-{name}": (Endpoint(Dialect.GEMINI, json_array=True), raw)
    for name, raw, _ in array_streams()
    if not name.startswith("error")
}
ARRAY = Endpoint(Dialect.GEMINI, json_array=True)


def through(endpoint: Endpoint, *chunks: bytes) -> tuple[bytes, bool]:
    """What left of a stream that is over, and whether it was complete."""
    passage = Passage(endpoint)
    out = b"".join(passage.feed(chunk) for chunk in chunks)
    return out + passage.close(), passage.complete


@pytest.mark.parametrize("name", STREAMS)
def test_a_complete_stream_passes_byte_for_byte_wherever_it_is_cut(name: str) -> None:
    endpoint, raw = STREAMS[name]
    assert through(endpoint, raw) == (raw, True)
    assert through(endpoint, *(raw[at : at + 1] for at in range(len(raw)))) == (raw, True)
    for seed in range(5):
        chance, chunks, place = random.Random(seed), [], 0
        while place < len(raw):
            size = chance.choice((0, 1, 2, 3, 7, 40, 300, 3000))
            chunks.append(raw[place : place + size])
            place += size
        assert through(endpoint, *chunks) == (raw, True)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_cut_off_passes_whole_events_and_is_complete_only_with_its_last_one(name: str) -> None:
    endpoint, raw = STREAMS[name]
    for cut in sorted(
        {*random.Random(name).sample(range(len(raw)), k=min(80, len(raw))), *range(max(0, len(raw) - 60), len(raw))}
    ):
        passage = Passage(endpoint)
        out = passage.feed(raw[:cut])
        assert raw.startswith(out)
        assert endpoint.json_array or not out.strip() or out.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        tail = passage.close()
        assert tail in (b"", raw[len(out) : cut], raw[len(out) : cut] + b"\n\n")
        assert passage.complete is _has_ended(endpoint, raw[:cut])


def _has_ended(endpoint: Endpoint, raw: bytes) -> bool:
    """Whether a whole terminal event is in there, read as a client reads it, but for a missing blank line."""
    reader = ArrayItems() if endpoint.json_array else Events()
    events = [*reader.feed(raw), *([] if endpoint.json_array else reader.close())]
    if endpoint.json_array and not b"".join(event.raw for event in events).rstrip().endswith(b"]"):
        return False
    return any(_ends(endpoint.dialect, event.data) for event in events)


def _ends(dialect: Dialect, data: bytes) -> bool:
    if data.strip() == b"[DONE]":
        return True
    try:
        document = json.loads(data)
    except ValueError:
        return False
    match dialect:
        case Dialect.MESSAGES:
            return bool(document["type"] == "message_stop")
        case Dialect.CHAT:
            return any(choice.get("finish_reason") for choice in document["choices"])
        case Dialect.RESPONSES:
            return bool(document["type"] == "response.completed")
        case Dialect.GEMINI:
            document = document.get("response", document)
            return any("finishReason" in candidate for candidate in document["candidates"])


TERMINALS = [
    pytest.param(Dialect.MESSAGES, 'event: message_stop\ndata: {"type":"message_stop"}\n\n', id="messages"),
    pytest.param(Dialect.MESSAGES, 'data: { "type" : "message_stop" }\n\n', id="messages-spaces"),
    pytest.param(
        Dialect.MESSAGES, 'data: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n', id="messages-error"
    ),
    pytest.param(
        Dialect.MESSAGES, 'event: error\ndata: {"error":{"message":"m"},"type":"error"}\n\n', id="messages-error-by-name"
    ),
    pytest.param(Dialect.MESSAGES, ': ping\nevent: error\r\ndata: {"error":{}}\r\n\r\n', id="messages-error-behind-a-comment"),
    pytest.param(Dialect.CHAT, "data: [DONE]\n\n", id="chat"),
    pytest.param(Dialect.CHAT, "data:[DONE]\r\n\r\n", id="chat-no-space"),
    pytest.param(Dialect.CHAT, 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', id="chat-reason"),
    pytest.param(Dialect.CHAT, 'data: {"error":{"message":"m"}}\n\n', id="chat-error"),
    pytest.param(Dialect.CHAT, 'data: {"error":"m"}\n\n', id="chat-error-text"),
    *[
        pytest.param(Dialect.RESPONSES, f'data: {{"type":"response.{end}","response":{{}}}}\n\n', id=f"responses-{end}")
        for end in ("completed", "incomplete", "failed", "cancelled")
    ],
    pytest.param(Dialect.RESPONSES, 'data: {"type":"error","code":"server_error"}\n\n', id="responses-error"),
    pytest.param(Dialect.GEMINI, 'data: {"candidates":[{"content":{},"finishReason":"STOP"}]}\n\n', id="gemini"),
    pytest.param(Dialect.GEMINI, 'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n', id="gemini-blocked"),
    pytest.param(Dialect.GEMINI, 'data: {"error":{"code":503}}\n\n', id="gemini-error"),
]


@pytest.mark.parametrize("dialect, event", TERMINALS)
def test_what_ends_a_stream(dialect: Dialect, event: str) -> None:
    before = b": hello\n\n"
    for cut in range(len(event)):
        raw = event.encode()
        assert through(Endpoint(dialect), before + raw[:cut], raw[cut:]) == (before + raw, True)


@pytest.mark.parametrize(
    "raw",
    [
        b'[{"error":{"code":503}}]',
        b'[{"candidates":[]},\r\n{"error":{"code":503}}\n]\n',
        b'[{"candidates":[{"finishReason":"STOP"}]}\n]',
    ],
)
def test_what_ends_an_array(raw: bytes) -> None:
    for cut in range(len(raw)):
        assert through(ARRAY, raw[:cut], raw[cut:]) == (raw, True)
    assert not through(ARRAY, raw[: raw.rindex(b"]")])[1], "an array that is not closed is not complete"


SAID = "\n\ndata: [DONE]\n\nevent: error\n\n" + json.dumps(
    {"type": "message_stop", "finish_reason": "stop", "error": {}, "finishReason": "STOP"}
)
"""Everything that ends a stream, as a model may say it."""


@pytest.mark.parametrize(
    "dialect, document",
    [
        pytest.param(
            Dialect.MESSAGES, {"type": "content_block_delta", "delta": {"type": "text_delta", "text": SAID}}, id="messages"
        ),
        pytest.param(
            Dialect.MESSAGES,
            {"type": "content_block_delta", "delta": {"partial_json": json.dumps({"a": SAID})}},
            id="messages-call",
        ),
        pytest.param(
            Dialect.MESSAGES,
            {"type": "content_block_start", "content_block": {"type": "x", "content": {"type": "error"}}},
            id="messages-inner-error",
        ),
        pytest.param(Dialect.CHAT, {"choices": [{"delta": {"content": SAID}, "finish_reason": None}], "error": None}, id="chat"),
        pytest.param(Dialect.RESPONSES, {"type": "response.output_text.delta", "delta": SAID}, id="responses"),
        pytest.param(
            Dialect.RESPONSES,
            {"type": "response.created", "response": {"error": None, "tools": [{"type": "error"}]}},
            id="responses-inner",
        ),
        pytest.param(Dialect.GEMINI, {"candidates": [{"content": {"parts": [{"text": SAID}]}}]}, id="gemini"),
        pytest.param(
            Dialect.GEMINI,
            {"candidates": [{"content": {"parts": [{"functionCall": {"args": {"a": [{"error": "b"}]}}}]}}]},
            id="gemini-args",
        ),
    ],
)
def test_what_a_model_says_ends_nothing(dialect: Dialect, document: dict[str, object]) -> None:
    compact = json.dumps(document, separators=(",", ":")).encode()
    for data in (compact, json.dumps(document).encode()):
        raw = b"data: " + data + b"\n\n"
        assert through(Endpoint(dialect), raw) == (raw, False)
    if dialect is Dialect.GEMINI:
        assert not through(ARRAY, b"[" + compact + b"]")[1]


def test_an_array_that_is_none_is_refused() -> None:
    passage = Passage(ARRAY)
    with pytest.raises(BadAnswer):
        passage.feed(b'data: {"candidates":[]}\n\n')


def test_the_error_we_write_ends_a_stream_too() -> None:
    for dialect in Dialect:
        ours = answers.write_error_event(dialect, 502, "m", "C")
        assert TERMINAL[dialect].search(ours) is not None


def test_a_stream_without_blank_lines_is_not_kept_for_ever() -> None:
    passage = Passage(Endpoint(Dialect.CHAT))
    piece = b"x" * (1 << 20)
    out = sum(len(passage.feed(piece)) for _ in range((LIMIT >> 20) + 2))
    assert out >= LIMIT


def test_work_grows_with_the_bytes() -> None:
    """Up to 64 KiB in one event, byte by byte, and a MiB of small events in one chunk."""

    def work(size: int) -> None:
        passage = Passage(Endpoint(Dialect.MESSAGES))
        for _ in range(size):
            passage.feed(b"a")
        passage.feed(b"\n\n" + b'event: a\ndata: {"type":"ping"}\n\n' * (size // 2))

    assert_linear(work, int, 16 << 10)
