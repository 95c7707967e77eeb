"""An answer in another dialect: in either form, whichever was asked for; and what is no answer is an error, never a success."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.stream import WHOLE_BYTES
from routecodex.routing.dialects.finish import Endings
from routecodex.routing.values import Dialect, Endpoint
from tests.rig import wire
from tests.rig.asked import Asked
from tests.rig.reply import ToolUse
from tests.rig.wire import Reply
from tests.routing.dialects.answer import talks
from tests.routing.dialects.answer.abroad import Translation
from tests.system import grammar


def asked(stream: bool, dialect: Dialect = Dialect.MESSAGES, **more: object) -> Asked:
    return Asked(Endpoint(dialect), stream, "3f6c", "asked-model", 1_700_000_000, maker="glm", **more)  # type: ignore[arg-type]


WHOLE = json.dumps(
    {
        "id": "chatcmpl-1",
        "model": "glm",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
).encode()
CHUNK = b'data: {"id":"c1","model":"glm","choices":[{"index":0,"delta":{"role":"assistant","content":"hello"}}]}\n\n'
LAST = b'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
FAILED = b'data: {"error":{"message":"overloaded","type":"server_error","code":529}}\n\n'


def translated(body: bytes, stream: bool, size: int = 10**9) -> tuple[bytes, Translation]:
    translation = Translation(Dialect.CHAT, asked(stream))
    out = b"".join(translation.feed(body[start : start + size]) for start in range(0, len(body), size))
    return out + translation.close(), translation


@pytest.mark.parametrize("size", [1, 7, 10**9])
@pytest.mark.parametrize("body", [WHOLE, CHUNK + LAST, b"\xef\xbb\xbf" + WHOLE], ids=["whole", "stream", "whole with a mark"])
@pytest.mark.parametrize("stream", [True, False])
def test_either_form_is_understood_whichever_was_asked_for(body: bytes, stream: bool, size: int) -> None:
    told, translation = translated(body, stream, size)
    assert translation.error is None
    if stream:
        assert [told.count(word) for word in (b"event: message_start", b'"text":"hello"', b"event: message_stop")] == [1, 1, 1]
    else:
        answer = json.loads(told)
        assert (answer["content"], answer["stop_reason"]) == ([{"type": "text", "text": "hello"}], "end_turn")


@pytest.mark.parametrize("client", [dialect for dialect in Dialect if dialect is not Dialect.GEMINI])
@pytest.mark.parametrize("provider", [dialect for dialect in Dialect if dialect is not Dialect.GEMINI])
def test_a_calls_arguments_come_as_they_are_said(provider: Dialect, client: Dialect) -> None:
    """Not only when it is whole: an editor shows the file while the model writes it. Google's interface alone has whole calls."""
    if provider is client:
        return
    pieces = ['{"text":"', *(f"line {number} " for number in range(20)), '"}']
    said = Reply("", calls=(ToolUse("write", {"text": "".join(pieces[1:-1])}),))
    events = wire.events(said, wire.Asked(provider, "generate", "glm", stream=True))
    translation = Translation(provider, asked(True, client))
    shown = [translation.feed(event) for event in events]
    assert sum(b"line" in piece or b"ine " in piece for piece in shown) >= 10, shown


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_is_kept_for_who_retries(stream: bool) -> None:
    told, translation = translated(FAILED, stream)
    assert translation.error is not None
    assert "overloaded" in translation.error.message
    assert b"message_stop" not in told


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"hello": 1}', b"{", b"null"])
def test_what_is_no_answer_is_an_error(body: bytes, stream: bool) -> None:
    told, translation = translated(body, stream)
    assert b"message_stop" not in told
    assert b'"stop_reason":"end_turn"' not in told
    assert translation.error is not None or not told


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "broken", [CHUNK.replace(b"hello", b"hel\x00lo"), CHUNK[:-4] + b"\n\n"], ids=["a control character", "half of one"]
)
def test_an_event_that_nobody_can_read_is_no_silence(broken: bytes, stream: bool) -> None:
    """A client that hears another dialect never gets it, and would take the rest for all that was said."""
    told, translation = translated(CHUNK + broken + CHUNK + LAST, stream)
    assert translation.error is not None
    assert b"message_stop" not in told
    assert b'"stop_reason":"end_turn"' not in told
    assert translated(CHUNK + b"data: hello\n\n" + LAST, stream)[1].error is None, "a word is not half an object"


def test_nothing_is_nothing() -> None:
    assert translated(b"", True)[0] == b""
    assert translated(b"", False)[0] == b""


def test_a_stream_that_breaks_off_has_no_end() -> None:
    told, _ = translated(CHUNK, True)
    assert b"hello" in told
    assert b"message_stop" not in told


def test_nothing_comes_behind_an_error() -> None:
    told, _ = translated(CHUNK + FAILED + CHUNK + LAST, True)
    assert told.count(b"hello") == 1
    assert told.count(b"event: error") == 1
    assert b"message_stop" not in told


def test_a_document_without_end_is_not_kept() -> None:
    translation = Translation(Dialect.CHAT, asked(False))
    translation.feed(b"{" + b" " * (WHOLE_BYTES - 1))
    assert translation.error is None
    translation.feed(b" ")
    assert translation.error is not None
    assert "64 MiB" in translation.error.message


def test_geminis_array_is_a_stream_as_well() -> None:
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, "finishReason": "STOP"}]}
    translation = Translation(Dialect.GEMINI, asked(True, Dialect.CHAT))
    told = translation.feed(json.dumps([chunk]).encode()) + translation.close()
    assert b'"content":"hello"' in told
    assert told.endswith(b"data: [DONE]\n\n")


def test_the_providers_own_word_is_logged() -> None:
    lines: list[str] = []
    translation = Translation(Dialect.CHAT, asked(True, endings=Endings(log=lines.append)))
    translation.feed(CHUNK + LAST)
    translation.close()
    assert lines == ["openai-chat: 'stop' taken as stop", "anthropic-messages: 'stop' written as end_turn"]


@pytest.mark.parametrize("spoken", list(Dialect))
@pytest.mark.parametrize("client", list(Dialect))
def test_the_rigs_streams_through_all_pairs(spoken: Dialect, client: Dialect) -> None:
    reply = Reply(("Let me ", "look"), thinking="Hm.", calls=(wire.ToolUse("Bash", {"command": "ls"}),))
    for stream in (True, False):
        body = written(reply, spoken, stream)
        translation = Translation(spoken, asked(stream, client))
        told = translation.feed(body) + translation.close()
        assert translation.error is None
        assert b"Let me " in told
        assert b"Bash" in told


def _side_by_side(*texts: str) -> bytes:
    """Blocks of Messages that grow letter by letter, all at once."""
    kinds = {"text": "text_delta", "thinking": "thinking_delta"}
    blocks = list(enumerate(zip(("thinking", "text") * len(texts), texts, strict=False)))
    documents: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": []}}]
    documents += [
        {"type": "content_block_start", "index": at, "content_block": {"type": kind, kind: ""}} for at, (kind, _) in blocks
    ]
    for letter in range(max(map(len, texts))):
        for at, (kind, text) in blocks:
            delta = {"type": kinds[kind], kind: text[letter : letter + 1]}
            documents.append({"type": "content_block_delta", "index": at, "delta": delta})
    documents += [{"type": "content_block_stop", "index": at} for at, _ in blocks]
    documents += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    return talks.sse(*documents, name=True)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", [Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI])
def test_texts_that_grow_side_by_side_are_not_mixed(client: Dialect, stream: bool) -> None:
    translation = Translation(Dialect.MESSAGES, asked(stream, client))
    told = translation.feed(_side_by_side("first thought", "one text", "next", "another")) + translation.close()
    read = grammar.read(client, told, stream)
    assert read.text == "one textanother"
    assert "".join(read.thinking).replace("\n\n", "") == "first thoughtnext"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", list(Dialect))
@pytest.mark.parametrize("spoken", list(Dialect))
def test_no_two_calls_of_an_answer_have_one_id(spoken: Dialect, client: Dialect, stream: bool) -> None:
    if spoken is client:
        return
    reply = Reply(calls=tuple(wire.ToolUse("Bash", {"command": word}, id="call_0") for word in ("ls", "pwd")))
    translation = Translation(spoken, asked(stream, client))
    read = grammar.read(client, translation.feed(written(reply, spoken, stream)) + translation.close(), stream)
    assert read.calls == [("Bash", {"command": "ls"}), ("Bash", {"command": "pwd"})]
    assert len(set(read.ids)) == 2


def written(reply: Reply, spoken: Dialect, stream: bool) -> bytes:
    wanted = wire.Asked(spoken, "generate", "m", stream=stream, number=1)
    return b"".join(wire.events(reply, wanted)) if stream else wire.whole(reply, wanted)
