"""R14: a call that the answer broke off in, on every provider, told to every client: the reason stays, and nobody runs it."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from routecodex.routing.dialects.sse import Events
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.translation.test_finishes import LENGTH, asked_by, told
from tests.system.grammar import read, read_whole

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
_COLUMNS = (MESSAGES, CHAT, RESPONSES, GEMINI)
HALF = '{"path": "/etc/pas'
WORDS = dict(zip(_COLUMNS, LENGTH, strict=True))


def _sse(*documents: Any) -> bytes:
    return b"".join(b"data: " + (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n\n" for one in documents)


def _chat(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "model": "m", "created": 1, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _chat_call(written: str, **more: Any) -> dict[str, Any]:
    return _chat({"tool_calls": [{"index": 0, **more, "function": {"arguments": written, **({"name": "read"} if more else {})}}]})


def _responses_item(status: str, written: str) -> dict[str, Any]:
    return {"id": "fc_1", "type": "function_call", "status": status, "call_id": "t1", "name": "read", "arguments": written}


HEAD = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 3}}
USE = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
STREAMS: dict[Dialect, bytes] = {
    CHAT: _sse(
        _chat({"role": "assistant", "content": "so"}),
        _chat_call("", id="t1"),
        _chat_call(HALF[:9]),
        _chat_call(HALF[9:]),
        _chat({}, "length"),
        b"[DONE]",
    ),
    MESSAGES: _sse(
        {"type": "message_start", "message": HEAD},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "so"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": USE},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": HALF[:9]}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": HALF[9:]}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ),
    RESPONSES: _sse(
        {"type": "response.created", "response": {"id": "resp_1", "object": "response", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m1", "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "so"},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "id": "m1", "content": []}},
        {"type": "response.output_item.added", "output_index": 1, "item": _responses_item("in_progress", "")},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": HALF[:9]},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": HALF[9:]},
        {"type": "response.output_item.done", "output_index": 1, "item": _responses_item("incomplete", HALF)},
        {
            "type": "response.incomplete",
            "response": {
                "id": "resp_1",
                "object": "response",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [],
            },
        },
    ),
    GEMINI: _sse(
        {"candidates": [{"content": {"parts": [{"text": "so"}], "role": "model"}, "index": 0}], "responseId": "r"},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "read", "willContinue": True}}]}, "index": 0}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {
                                "functionCall": {
                                    "partialArgs": [{"jsonPath": "$.path", "stringValue": "/etc/pas", "willContinue": True}],
                                    "willContinue": True,
                                }
                            }
                        ]
                    },
                    "finishReason": "MAX_TOKENS",
                    "index": 0,
                }
            ]
        },
    ),
}
PAIRS = [pytest.param(client, spoken, id=f"{client}-on-{spoken}") for client, spoken in permutations(Dialect, 2)]


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_whole_answer_does_not_hold_it(client: Dialect, spoken: Dialect) -> None:
    out = told(asked_by(client, stream=False), spoken, STREAMS[spoken])
    if client is RESPONSES:  # its own form: the item says that it is incomplete
        items = json.loads(out)["output"]
        assert [item["status"] for item in items if item["type"] == "function_call"] in ([], ["incomplete"])
        assert json.loads(out)["incomplete_details"] == {"reason": "max_output_tokens"}
        return
    answer = read_whole(client, out)
    assert (answer.text, answer.calls, answer.finish) == ("so", [], WORDS[client])


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_stream_never_says_that_it_is_whole(client: Dialect, spoken: Dialect) -> None:
    raw = told(asked_by(client), spoken, STREAMS[spoken])
    documents = [json.loads(event.data) for event in Events().feed(raw) if event.data and event.data != b"[DONE]"]
    text = json.dumps(documents)
    match client:
        case Dialect.MESSAGES:
            written = "".join(d["delta"]["partial_json"] for d in documents if "partial_json" in d.get("delta", {}))
            assert HALF.startswith(written)
            assert documents[-2]["delta"]["stop_reason"] == "max_tokens"
            started = [d["index"] for d in documents if d["type"] == "content_block_start"]
            assert started == [d["index"] for d in documents if d["type"] == "content_block_stop"]
        case Dialect.CHAT:
            assert documents[-2]["choices"][0]["finish_reason"] == "length"
        case Dialect.RESPONSES:
            assert documents[-1]["type"] == "response.incomplete"
            assert "function_call_arguments.done" not in text
            assert not any(
                d["item"]["status"] == "completed" for d in documents if d.get("item", {}).get("type") == "function_call"
            )
        case Dialect.GEMINI:
            assert "functionCall" not in text
            assert read(client, raw, True).finish == "MAX_TOKENS"


def _without_reason() -> bytes:
    return _sse(_chat({"role": "assistant"}), _chat_call("", id="t1"), _chat_call(HALF), b"[DONE]")


@pytest.mark.parametrize("client", [MESSAGES, RESPONSES, GEMINI])
@pytest.mark.parametrize("streamed", [True, False])
def test_done_without_a_reason_behind_half_a_call_is_a_broken_stream(client: Dialect, streamed: bool) -> None:
    translation = Translation(CHAT, asked_by(client, stream=streamed))
    out = translation.feed(_without_reason()) + translation.close()
    assert translation.error is not None
    assert translation.error.status == 502
    assert b"error" in out


@pytest.mark.parametrize("client", [MESSAGES, RESPONSES, GEMINI])
def test_a_whole_call_at_the_limit_is_told_and_the_reason_stays(client: Dialect) -> None:
    raw = _sse(_chat({"role": "assistant", "content": "so"}), _chat_call('{"a":1}', id="t1"), _chat({}, "length"), b"[DONE]")
    answer = read(client, told(asked_by(client), CHAT, raw), True)
    assert answer.calls == [("read", {"a": 1})]
    assert answer.finish == WORDS[client]


@pytest.mark.parametrize("client", [MESSAGES, RESPONSES, GEMINI])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_call_that_was_cut_right_behind_its_name_is_no_call_without_arguments(client: Dialect, streamed: bool) -> None:
    """One that another stands behind is: its tool has no parameters."""
    second = {"index": 1, "id": "t2", "function": {"name": "list", "arguments": ""}}
    begun = [_chat({"role": "assistant", "content": "so"}), _chat_call("", id="t1")]
    for more, known in (([], []), ([_chat({"tool_calls": [second]})], [("read", {})])):
        raw = told(asked_by(client, stream=streamed), CHAT, _sse(*begun, *more, _chat({}, "length"), b"[DONE]"))
        answer = read(client, raw, streamed)
        assert (answer.text, answer.calls, answer.finish) == ("so", known, WORDS[client])


@pytest.mark.parametrize("client", [MESSAGES, RESPONSES, GEMINI])
@pytest.mark.parametrize("reason", ["length", None])
def test_two_calls_side_by_side_one_of_them_half(client: Dialect, reason: str | None) -> None:
    """The half one began first; what is told of the other one is whole."""
    first = {"index": 0, "id": "t1", "function": {"name": "read", "arguments": HALF}}
    second = {"index": 1, "id": "t2", "function": {"name": "list", "arguments": "{}"}}
    raw = _sse(
        _chat({"role": "assistant", "content": "so"}), _chat({"tool_calls": [first, second]}), _chat({}, reason), b"[DONE]"
    )
    translation = Translation(CHAT, asked_by(client, stream=False))
    out = translation.feed(raw) + translation.close()
    if reason is None:
        assert translation.error is not None
        return
    if client is not RESPONSES:
        answer = read_whole(client, out)
        assert answer.calls in ([], [("list", {})])
        assert answer.finish == WORDS[client]
    assert b"pas" not in out or client is RESPONSES
