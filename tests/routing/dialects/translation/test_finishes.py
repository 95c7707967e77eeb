"""F01-F12: why a provider's answer ended, told in the words of every client, streamed and whole."""

from __future__ import annotations

import json
from itertools import permutations, product
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.finish import Endings
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.answer.own import answer_for
from tests.system.grammar import read, read_whole

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
CLIENTS = {dialect: Endpoint(dialect, stream=True if dialect is GEMINI else None) for dialect in Dialect}
PAIRS = [pytest.param(client, spoken, id=f"{client}-on-{spoken}") for client, spoken in permutations(Dialect, 2)]

Words = tuple[str, str, str, str]
STOP: Words = ("end_turn", "stop", "completed", "STOP")
LENGTH: Words = ("max_tokens", "length", "max_output_tokens", "MAX_TOKENS")
CALLS: Words = ("tool_use", "tool_calls", "completed", "STOP")
FILTER: Words = ("stop_sequence", "content_filter", "content_filter", "SAFETY")
ERROR: Words = ("stop_sequence", "error", "failed", "OTHER")

TABLE: list[tuple[Dialect, str, bool, Words]] = [
    (CHAT, "stop", False, STOP),
    (CHAT, "length", False, LENGTH),
    (CHAT, "tool_calls", True, CALLS),
    (CHAT, "function_call", True, ("tool_use", "function_call", "completed", "STOP")),
    (CHAT, "content_filter", False, FILTER),
    (CHAT, "stop", True, CALLS),
    (CHAT, "tool_calls", False, STOP),
    (CHAT, "eos", False, STOP),
    (CHAT, "model_length", False, LENGTH),
    (CHAT, "sensitive", False, FILTER),
    (CHAT, "insufficient_system_resource", False, ERROR),
    (CHAT, "wibble", False, STOP),
    (CHAT, "結束", True, CALLS),
    (MESSAGES, "end_turn", False, STOP),
    (MESSAGES, "max_tokens", False, LENGTH),
    (MESSAGES, "tool_use", True, CALLS),
    (MESSAGES, "end_turn", True, CALLS),
    (MESSAGES, "stop_sequence", False, ("stop_sequence", "stop", "completed", "STOP")),
    (MESSAGES, "pause_turn", False, ("pause_turn", "stop", "completed", "STOP")),
    (MESSAGES, "refusal", False, ("refusal", "content_filter", "content_filter", "SAFETY")),
    (
        MESSAGES,
        "model_context_window_exceeded",
        False,
        ("model_context_window_exceeded", "length", "max_output_tokens", "MAX_TOKENS"),
    ),
    (MESSAGES, "wibble", False, STOP),
    (RESPONSES, "completed", False, STOP),
    (RESPONSES, "completed", True, CALLS),
    (RESPONSES, "max_output_tokens", False, LENGTH),
    (RESPONSES, "content_filter", False, FILTER),
    (RESPONSES, "wibble", False, STOP),
    (GEMINI, "STOP", False, STOP),
    (GEMINI, "STOP", True, CALLS),
    (GEMINI, "MAX_TOKENS", False, LENGTH),
    (GEMINI, "SAFETY", False, FILTER),
    (GEMINI, "RECITATION", False, ("stop_sequence", "content_filter", "content_filter", "RECITATION")),
    (GEMINI, "MALFORMED_FUNCTION_CALL", False, ("end_turn", "stop", "failed", "MALFORMED_FUNCTION_CALL")),
    (GEMINI, "SOMETHING_NEW", False, STOP),
]
"""Provider, its word, whether it called a tool, and the words of the four clients."""
_COLUMNS = (MESSAGES, CHAT, RESPONSES, GEMINI)
ROWS = [
    pytest.param(spoken, word, calls, client, words[_COLUMNS.index(client)], id=f"{spoken}-{word}{'-calls' * calls}-to-{client}")
    for spoken, word, calls, words in TABLE
    for client in Dialect
    if client is not spoken
]


def answer(spoken: Dialect, word: str | None, *, calls: bool) -> dict[str, Any]:
    """A whole answer that ended with this word; None: it says none."""
    match spoken:
        case Dialect.MESSAGES:
            use = [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}] * calls
            content = [{"type": "text", "text": "so"}, *use]
            head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
            return {**head, "stop_reason": word, "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 2}}
        case Dialect.CHAT:
            use = [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}] * calls
            message = {"role": "assistant", "content": "so", **({"tool_calls": use} if use else {})}
            choice = {"index": 0, "message": message, "finish_reason": word}
            return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        case Dialect.RESPONSES:
            use = [{"type": "function_call", "id": "f1", "call_id": "t1", "name": "f", "arguments": '{"a":1}'}] * calls
            part = {"type": "output_text", "text": "so", "annotations": []}
            item = {"id": "i1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
            head = {"id": "resp_1", "object": "response", "model": "m", "output": [item, *use]}
            if word in (None, "completed"):
                return {**head, "status": word}
            return {**head, "status": "incomplete", "incomplete_details": {"reason": word}}
        case Dialect.GEMINI:
            use = [{"functionCall": {"id": "t1", "name": "f", "args": {"a": 1}}}] * calls
            candidate = {"content": {"parts": [{"text": "so"}, *use], "role": "model"}, "index": 0}
            return {"candidates": [{**candidate, **({"finishReason": word} if word else {})}], "responseId": "r1"}


def stream(spoken: Dialect, word: str | None, *, calls: bool) -> bytes:
    """The same in events: all content at once, then the end."""
    whole = answer(spoken, word, calls=calls)
    match spoken:
        case Dialect.MESSAGES:
            documents = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
            for index, block in enumerate(whole["content"]):
                documents.append({"type": "content_block_start", "index": index, "content_block": block})
                documents.append({"type": "content_block_stop", "index": index})
            documents.append({"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 2}})
            documents.append({"type": "message_stop"})
        case Dialect.CHAT:
            (choice,) = whole["choices"]
            message = dict(choice["message"])
            message["tool_calls"] = [{**one, "index": at} for at, one in enumerate(message.get("tool_calls", []))]
            documents = [{**whole, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}]
            documents.append({**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": word}]})
        case Dialect.RESPONSES:
            event = "completed" if word in (None, "completed") else "incomplete"
            documents = [{"type": f"response.{event}", "response": whole}]
        case Dialect.GEMINI:
            documents = [whole]
    done = b"data: [DONE]\n\n" if spoken is CHAT else b""
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in documents) + done


def asked_by(client: Dialect, *, stream: bool = True, endings: Endings | None = None) -> Asked:
    asked = Asked(CLIENTS[client], stream, "round-1", "asked-model", 1, maker="acme", include_usage=True)
    return asked if endings is None else replace(asked, endings=endings)


def told(asked: Asked, spoken: Dialect, raw: bytes) -> bytes:
    translation = Translation(spoken, asked)
    return translation.feed(raw) + translation.close()


@pytest.mark.parametrize("spoken, word, calls, client, expected", ROWS)
def test_the_table_of_finish_reasons(spoken: Dialect, word: str, calls: bool, client: Dialect, expected: str) -> None:
    """F01, F02, F03, F05, F06: streamed or whole, on either side; F09: the grammar of the reader."""
    raws = (stream(spoken, word, calls=calls), json.dumps(answer(spoken, word, calls=calls)).encode())
    for raw, streamed in product(raws, (True, False)):
        out = read(client, told(asked_by(client, stream=streamed), spoken, raw), streamed)
        assert out.finish == expected
        assert out.text == "so"
        assert out.calls == ([("f", {"a": 1})] if calls else [])


@pytest.mark.parametrize("client, spoken", PAIRS)
@pytest.mark.parametrize("calls", [False, True])
def test_f12_an_end_without_a_reason(client: Dialect, spoken: Dialect, calls: bool) -> None:
    """It is inferred where the stream came to its own end. Gemini has no other end than the reason: without it, it broke off."""
    out = told(asked_by(client), spoken, stream(spoken, None, calls=calls))
    if spoken is GEMINI:
        merger = answer_for(CLIENTS[client], stream=True)
        merger.begin_round()
        merger.feed(out)
        assert not merger.end_round().complete
    else:
        assert read(client, out, True).finish == (CALLS if calls else STOP)[_COLUMNS.index(client)]


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_f08_nothing_came_and_nothing_is_said(client: Dialect, spoken: Dialect) -> None:
    assert told(asked_by(client), spoken, b"") == b""
    assert told(asked_by(client), spoken, b": connected\n\n") == b""


_BROKEN = {
    MESSAGES: {"type": "error", "error": {"type": "overloaded_error", "message": "too much"}},
    CHAT: {"error": {"message": "too much", "type": "server_error", "code": 529}},
    RESPONSES: {"type": "error", "code": "rate_limit_exceeded", "message": "too much", "sequence_number": 1},
    GEMINI: {"error": {"code": 503, "message": "too much", "status": "UNAVAILABLE"}},
}
_STATUS = {MESSAGES: 529, CHAT: 529, RESPONSES: 429, GEMINI: 503}


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_f11_an_error_inside_stays_an_error_with_its_status(client: Dialect, spoken: Dialect) -> None:
    head = b"event: error\n" if spoken in (MESSAGES, RESPONSES) else b""
    raw = head + b"data: " + json.dumps(_BROKEN[spoken]).encode() + b"\n\n"
    translation = Translation(spoken, asked_by(client))
    out = translation.feed(raw) + translation.close()
    assert translation.error is not None
    assert translation.error.status == _STATUS[spoken]
    assert "too much" in out.decode()
    merger = answer_for(CLIENTS[client], stream=True)
    merger.begin_round()
    merger.feed(out)
    said = merger.end_round()
    assert not said.complete
    assert said.error is not None
    assert said.error.message == "too much"


@pytest.mark.parametrize("spoken, word", [(CHAT, "content_filter"), (RESPONSES, "content_filter"), (GEMINI, "SAFETY")])
def test_f02_refusal_by_option(spoken: Dialect, word: str) -> None:
    endings = Endings(content_filter="refusal")
    raw = stream(spoken, word, calls=False)
    assert read(MESSAGES, told(asked_by(MESSAGES, endings=endings), spoken, raw), True).finish == "refusal"
    whole = told(asked_by(MESSAGES, stream=False, endings=endings), spoken, raw)
    assert read_whole(MESSAGES, whole).finish == "refusal"
    if spoken is not CHAT:
        assert read(CHAT, told(asked_by(CHAT, endings=endings), spoken, raw), True).finish == "content_filter"


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_f06_a_word_that_nobody_knows_is_logged(client: Dialect, spoken: Dialect) -> None:
    lines: list[str] = []
    told(asked_by(client, endings=Endings(log=lines.append)), spoken, stream(spoken, "wibble", calls=False))
    assert any("wibble" in line and "unknown" in line for line in lines)
