# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer import machine
from routecodex.routing.dialects.answer.events import Failed
from routecodex.routing.dialects.answer.responses import write as responses_write
from routecodex.routing.dialects.failures import failure_of_page
from routecodex.routing.dialects.fields import read_object
from routecodex.routing.dialects.finish import is_whole_call
from routecodex.routing.dialects.sse import ArrayItems, Events, headers_for
from routecodex.routing.values import Answer, Dialect, Endpoint, FinishReason, ProviderError, ToolCall, Usage
from tests.routing.dialects.answer import streams
from tests.routing.dialects.answer.own import answer_for, write_answer, write_error_event, write_stream

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
ALL = list(Dialect)
ABOUT: dict[str, Any] = {"id": "resp_1", "model": "m-1", "created": 1_800_000_000}
KEEP_ALIVES = {
    dialect: [answer_for(Endpoint(dialect, stream=True), stream=True).keep_alive()]
    for dialect in (MESSAGES, CHAT, RESPONSES, GEMINI)
}
"""Before the answer has begun, and (Responses) behind its beginning."""
KEEP_ALIVES[RESPONSES].append(responses_write.write_keep_alive(**ABOUT, sequence=3))

_ARGUMENTS = st.sampled_from(["", "{}", '{"a": [1, {"b": "é\\n"}]}', '{"n": 12345678901234567890}', "[1]", "not json", '{"a":'])
_CALLS = st.lists(st.builds(ToolCall, st.sampled_from(["call_1", "b"]), st.text(min_size=1, max_size=8), _ARGUMENTS), max_size=5)
_FINISH: st.SearchStrategy[FinishReason] = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error"])
_USAGE = st.builds(Usage, st.integers(0, 10**9), st.integers(0, 10**9))
ANSWERS = st.builds(Answer, st.text(max_size=400), _CALLS.map(tuple), _FINISH, _USAGE).filter(
    # nobody may run half a call of an answer that was cut
    lambda one: one.finish in ("stop", "tool_calls") or all(is_whole_call(call.arguments or "{}") for call in one.calls)
)


def error_in(dialect: Dialect, data: bytes, *, whole: bool = False) -> ProviderError | None:
    """What the first event's data, or the whole body of a 200, is instead of an answer."""
    document = read_object(data)
    if document is None:
        return failure_of_page(data)
    reader = machine.reader_of(dialect)
    events = reader.read_whole(document) if whole else reader.read(document)
    return next((event.error for event in events if isinstance(event, Failed)), None)


def _json(raw: bytes) -> Any:
    return json.loads(raw)


def _object(text: str) -> dict[str, Any]:
    """What a dialect that wants an object makes of a tool's arguments."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": text}


# --- what is written ----------------------------------------------------------------------------------------------------


@given(ANSWERS, st.booleans())
@settings(max_examples=80, deadline=None)
def test_r05_messages_stream(answer: Answer, usage: bool) -> None:
    raw = b"".join(write_stream(MESSAGES, answer, **ABOUT, include_usage=usage))
    events = streams.in_three_ways(Events, raw, cuts=1)
    streams.check_messages(events)
    documents = streams.documents_of(events)
    deltas = [document["delta"] for document in documents if document["type"] == "content_block_delta"]
    starts = [document["content_block"] for document in documents if document["type"] == "content_block_start"]
    assert "".join(delta.get("text", "") for delta in deltas) == answer.text
    tools = [(start["id"], start["name"]) for start in starts if start["type"] == "tool_use"]
    assert tools == [(call.id, call.name) for call in answer.calls]
    given_ = [json.loads(delta["partial_json"]) for delta in deltas if delta["type"] == "input_json_delta"]
    assert given_ == [_object(call.arguments) for call in answer.calls]
    whole = _json(write_answer(MESSAGES, answer, **ABOUT))
    assert whole["stop_reason"] == documents[-2]["delta"]["stop_reason"]
    assert [block["input"] for block in whole["content"] if block["type"] == "tool_use"] == given_
    assert "".join(block.get("text", "") for block in whole["content"]) == answer.text
    assert (whole["stop_reason"] == "tool_use") == (
        answer.finish == "tool_calls" or (bool(answer.calls) and answer.finish == "stop")
    )


@given(ANSWERS, st.booleans())
@settings(max_examples=80, deadline=None)
def test_r05_chat_stream(answer: Answer, usage: bool) -> None:
    raw = b"".join(write_stream(CHAT, answer, **ABOUT, include_usage=usage))
    events = streams.in_three_ways(Events, raw, cuts=1)
    streams.check_chat(events, usage=usage)
    choices = [document["choices"][0] for document in streams.documents_of(events) if document["choices"]]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == answer.text
    calls: dict[int, list[str]] = {}
    for call in (call for choice in choices for call in choice["delta"].get("tool_calls", [])):
        found = calls.setdefault(call["index"], ["", "", ""])
        for place, value in enumerate((call.get("id", ""), call["function"].get("name", ""), call["function"]["arguments"])):
            found[place] += value
    assert [tuple(call) for call in calls.values()] == [(call.id, call.name, call.arguments or "{}") for call in answer.calls]
    whole = _json(write_answer(CHAT, answer, **ABOUT))
    assert whole["choices"][0]["finish_reason"] == choices[-1]["finish_reason"]
    assert whole["choices"][0]["message"]["content"] == (answer.text or None)
    assert len(whole["choices"][0]["message"].get("tool_calls", [])) == len(answer.calls)
    assert whole["usage"]["total_tokens"] == answer.usage.input + answer.usage.output


@given(ANSWERS)
@settings(max_examples=80, deadline=None)
def test_r05_responses_stream(answer: Answer) -> None:
    raw = b"".join(write_stream(RESPONSES, answer, **ABOUT))
    events = streams.in_three_ways(Events, raw, cuts=1)
    streams.check_responses(events)
    documents = streams.documents_of(events)
    assert "".join(document["delta"] for document in documents if document["type"] == "response.output_text.delta") == answer.text
    items = documents[-1]["response"]["output"]
    calls = [(item["call_id"], item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]
    assert calls == [(call.id, call.name, call.arguments or "{}") for call in answer.calls]
    assert len({item["id"] for item in items}) == len(items)
    assert _json(write_answer(RESPONSES, answer, **ABOUT)) == documents[-1]["response"]


@given(ANSWERS, st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_r05_gemini_stream(answer: Answer, envelope: bool, array: bool) -> None:
    pieces = write_stream(GEMINI, answer, **ABOUT, envelope=envelope, json_array=array)
    raw = b"".join(pieces)
    documents = streams.documents_of(streams.in_three_ways(ArrayItems if array else Events, raw, cuts=1))
    if array:
        assert json.loads(raw) == documents
    documents = [document["response"] if envelope else document for document in documents]
    streams.check_gemini(documents)
    parts = [part for document in documents for part in document["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts) == answer.text
    calls = [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    assert calls == [(call.name, _object(call.arguments)) for call in answer.calls]
    whole = _json(write_answer(GEMINI, answer, **ABOUT, envelope=envelope))
    whole = whole["response"] if envelope else whole
    assert (whole["responseId"], whole["modelVersion"]) == (ABOUT["id"], ABOUT["model"])
    assert whole["candidates"][0]["finishReason"] == documents[-1]["candidates"][0]["finishReason"]
    assert whole["usageMetadata"] == documents[-1]["usageMetadata"]


@given(ANSWERS)
@settings(max_examples=60, deadline=None)
def test_what_we_write_we_read(answer: Answer) -> None:
    """Its usage is found in the JSON and in the stream, and it is no error (but for an answer that is one)."""
    for dialect in ALL:
        whole = write_answer(dialect, answer, **ABOUT)
        assert (error_in(dialect, whole) is not None) == (dialect is RESPONSES and answer.finish == "error")
        stream = b"".join(write_stream(dialect, answer, **ABOUT, include_usage=True))
        for raw in (whole, stream) if answer.finish != "error" else ():
            heard = answer_for(Endpoint(dialect), stream=raw is stream, quiet=True)
            heard.begin_round()
            heard.feed(raw)
            assert heard.end_round().usage == answer.usage


def test_an_answer_without_words_has_no_empty_text_block() -> None:
    assert _json(write_answer(MESSAGES, Answer(), **ABOUT))["content"] == []


def test_long_text_comes_in_a_bounded_number_of_pieces() -> None:
    for dialect in ALL:
        assert len(write_stream(dialect, Answer("x" * 1_000_000), **ABOUT)) < 120


def test_lone_surrogates_are_written_as_escapes() -> None:
    answer = Answer("a\ud800b", (ToolCall("c", "n", '{"a":"\\ud800"}'), ToolCall("d", "n", "\ud800")))
    for dialect in ALL:
        assert b"\\ud800" in write_answer(dialect, answer, **ABOUT)
        assert b"\\ud800" in b"".join(write_stream(dialect, answer, **ABOUT))


# --- errors -------------------------------------------------------------------------------------------------------------

DETAILS = {"provider": "glm", "attempts": 2}


@pytest.mark.parametrize(
    "dialect, status, expected",
    [
        pytest.param(MESSAGES, 400, {"type": "invalid_request_error", "message": "no", "code": "C", "details": DETAILS}, id="messages"),
        pytest.param(CHAT, 400, {"type": "invalid_request_error", "message": "no", "code": "C", "param": None, "details": DETAILS}, id="chat"),
        pytest.param(RESPONSES, 502, {"type": "server_error", "message": "no", "code": "C", "param": None, "details": DETAILS}, id="responses"),
        pytest.param(RESPONSES, 499, {"type": "invalid_request_error", "message": "no", "code": "C", "param": None, "details": DETAILS}, id="responses-the-last-of-the-clients"),
        pytest.param(RESPONSES, 500, {"type": "server_error", "message": "no", "code": "C", "param": None, "details": DETAILS}, id="responses-the-first-of-the-servers"),
        pytest.param(GEMINI, 429, {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "C", "domain": "routecodex", "metadata": {"provider": "glm", "attempts": "2"}}]}, id="gemini"),
    ],
)  # fmt: skip
def test_an_error_has_its_dialects_shape(dialect: Dialect, status: int, expected: dict[str, Any]) -> None:
    body = _json(machine.write_error(dialect, status, "no", "C", DETAILS))
    assert body.pop("error") == expected
    assert body == ({"type": "error"} if dialect is MESSAGES else {})


def test_an_error_for_a_client_that_reads_an_array_is_an_array() -> None:
    [item] = _json(machine.write_error(GEMINI, 400, "no", "C", json_array=True))
    assert item["error"]["message"] == "no"


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 429, 500, 502, 503, 504, 529])
def test_an_error_is_read_as_what_it_was_written(dialect: Dialect, status: int) -> None:
    found = error_in(dialect, machine.write_error(dialect, status, "no 不", "C"), whole=True)
    assert found is not None
    assert "no 不" in found.message
    event = Events().feed(write_error_event(dialect, status, "no 不", "C"))[0]
    inside = error_in(dialect, event.data)
    assert inside is not None
    assert inside.message == "no 不"
    assert not machine.is_content(dialect, event.data)


def test_an_error_event_is_named_as_its_dialect_names_it() -> None:
    names = [Events().feed(write_error_event(dialect, 502, "m", "C"))[0].name for dialect in ALL]
    assert names == ["error", "", "response.failed", ""]


def test_google_finds_the_error_first() -> None:
    assert write_error_event(GEMINI, 502, "m", "C").startswith(b'data: {"error":')
    array = answer_for(Endpoint(GEMINI, stream=True, json_array=True), stream=True)
    array.begin_round()
    began = array.feed(b'[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}')
    assert _json(began + array.fail(502, "m", "C"))[1]["error"]["code"] == 502


@pytest.mark.parametrize(
    "status, code, told",
    [
        (400, "PROVIDER_NOT_AVAILABLE", "invalid_prompt"),
        (429, "X", "rate_limit_exceeded"),
        (502, "X", "server_error"),
        (400, "context_length_exceeded", "context_length_exceeded"),
        (429, "insufficient_quota", "insufficient_quota"),
    ],
)
def test_codex_is_told_a_code_that_it_knows(status: int, code: str, told: str) -> None:
    [event] = Events().feed(responses_write.write_error_event(status, "m", code, id="resp_9", sequence=7))
    body = _json(event.data)
    assert body["response"]["error"] == {"code": told, "message": "m"}
    assert (body["response"]["id"], body["sequence_number"], body["error"]["code"]) == ("resp_9", 7, code)


@pytest.mark.parametrize(
    "dialect, data, status",
    [
        pytest.param(MESSAGES, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, 529, id="F11-messages"),
        pytest.param(MESSAGES, {"code": 500, "msg": "404 NOT_FOUND", "success": False}, 500, id="glm-messages"),
        pytest.param(CHAT, {"error": {"message": "m", "code": 503}}, 503, id="chat"),
        pytest.param(CHAT, {"error": {"message": "m", "code": 429}, "choices": [{"finish_reason": "error"}]}, 429, id="openrouter"),
        pytest.param(CHAT, {"error_code": 336100, "error_msg": "busy"}, 502, id="baidu"),
        pytest.param(RESPONSES, {"type": "error", "code": "server_error", "message": "m"}, 500, id="responses"),
        pytest.param(RESPONSES, {"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}}, 429, id="failed"),
        pytest.param(RESPONSES, {"object": "response", "status": "failed", "error": {"code": "server_error", "message": "m"}}, 500, id="failed-whole"),
        pytest.param(GEMINI, {"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}, 503, id="gemini"),
        pytest.param(GEMINI, {"response": {"error": {"code": 429, "message": "m"}}}, 429, id="code-assist"),
    ],
)  # fmt: skip
def test_an_error_inside_a_200(dialect: Dialect, data: object, status: int) -> None:
    raw = json.dumps(data).encode()
    found = [error for error in (error_in(dialect, raw), error_in(dialect, raw, whole=True)) if error is not None]
    assert found
    assert {error.status for error in found} == {status}


@pytest.mark.parametrize("dialect", ALL)
def test_nothing_of_a_good_stream_is_an_error(dialect: Dialect) -> None:
    for _, data in streams.EVENTS[dialect]:
        assert error_in(dialect, data) is None
    page = error_in(dialect, b"<!doctype html><title>Log in</title>")
    assert page is not None
    assert page.status == 502


# --- what a stream says ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect, before", [(MESSAGES, 2), (CHAT, 1), (RESPONSES, 2), (GEMINI, 0)])
def test_where_the_answer_begins(dialect: Dialect, before: int) -> None:
    carries = [machine.is_content(dialect, data) for _, data in streams.EVENTS[dialect]]
    assert carries[: before + 1] == [False] * before + [True]


@pytest.mark.parametrize(
    "dialect, data, expected",
    [
        (MESSAGES, b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}', True),
        (MESSAGES, b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}', True),
        (MESSAGES, b'{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{"}}', True),
        (MESSAGES, b'{"type":"ping"}', False),
        (MESSAGES, b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}', False),
        (MESSAGES, b'{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"a":1}}}', True),
        (MESSAGES, b'{"type":"content_block_delta","index":0,"delta":[]}', False),
        (CHAT, b'{"choices":[],"prompt_filter_results":[{}]}', False),
        (CHAT, b'{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[]}}]}', False),
        (CHAT, b'{"choices":[{"delta":{"reasoning_content":"hm"}}]}', True),
        (CHAT, b'{"choices":[{"delta":{},"finish_reason":"stop"}]}', True),
        (CHAT, b'{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}', True),
        (CHAT, b"[DONE]", True),
        (RESPONSES, b'{"type":"response.queued"}', False),
        (RESPONSES, b'{"type":"response.output_text.delta","delta":""}', False),
        (RESPONSES, b'{"type":"response.output_text.delta","delta":"a"}', True),
        (RESPONSES, b'{"type":"codex.rate_limits"}', False),
        (RESPONSES, b'{"type":"response.output_item.added","item":{"type":"reasoning"}}', True),
        (RESPONSES, b'{"type":"response.completed"}', True),
        (GEMINI, b'{"usageMetadata":{"promptTokenCount":1}}', False),
        (GEMINI, b'{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"}}]}', False),
        (GEMINI, b'{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]}}]}', True),
        (GEMINI, b'{"response":{"candidates":[{"finishReason":"STOP"}]}}', True),
        (GEMINI, b'{"promptFeedback":{"blockReason":"SAFETY"}}', True),
    ],
)
def test_what_is_content(dialect: Dialect, data: bytes, expected: bool) -> None:
    assert machine.is_content(dialect, data) is expected


@given(st.sampled_from(ALL), st.binary(max_size=200), st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_garbage_gives_a_value(dialect: Dialect, raw: bytes, seed: int) -> None:
    good = streams.EVENTS[dialect][seed % len(streams.EVENTS[dialect])][1]
    place = random.Random(seed).randrange(len(good))
    for data in (raw, good[:place] + raw + good[place:], good[:place]):
        error_in(dialect, data)
        error_in(dialect, data, whole=True)
        machine.is_content(dialect, data)


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize(
    "raw",
    [
        b'{"usage":' * 100_000,
        b'"usage":{"prompt_tokens":1e999,"input_tokens":-5,"output_tokens":true,"completion_tokens":NaN}',
        b'{"choices":[1],"candidates":{"a":1},"type":["x"],"error":[[]],"response":7,"usage":[],"usageMetadata":""}',
        b'{"choices":[{"delta":[]}],"candidates":[{"content":{"parts":[null]}}],"type":{},"promptFeedback":[]}',
        b"[" * 100_000,
    ],
    ids=["deep", "numbers", "types", "inner types", "arrays"],
)
def test_hostile_json_gives_a_value(dialect: Dialect, raw: bytes) -> None:
    error_in(dialect, raw)
    error_in(dialect, raw, whole=True)
    assert machine.is_content(dialect, raw) is False


# --- keeping a stream open ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ALL)
def test_keep_alives_change_nothing(dialect: Dialect) -> None:
    """Decision 22: between any two events, and none of them is content."""
    stream = write_stream(dialect, Answer("hello " * 20), **ABOUT)
    for alive in KEEP_ALIVES[dialect]:
        plain, kept = Events().feed(b"".join(stream)), Events().feed(alive.join(stream))
        answered = [event for event in kept if event.name not in ("ping", "response.in_progress") and event.data]
        assert answered == [event for event in plain if event.name != "response.in_progress"]
        assert not any(machine.is_content(dialect, event.data) for event in Events().feed(alive))


def test_keep_alives_are_what_real_clients_bear() -> None:
    assert KEEP_ALIVES[MESSAGES][0].startswith(b"event: ping\ndata: {")
    assert KEEP_ALIVES[CHAT][0].startswith(b": ")
    assert KEEP_ALIVES[GEMINI][0].strip() == b"", "comments break Google's SDKs"
    [event] = Events().feed(responses_write.write_keep_alive(**ABOUT, sequence=4))
    body = _json(event.data)
    assert (event.name, body["response"]["id"], body["sequence_number"]) == ("response.in_progress", "resp_1", 4)


def test_a_newline_keeps_an_array_open_too() -> None:
    pieces = write_stream(GEMINI, Answer("hello " * 20), **ABOUT, json_array=True)
    assert _json(b"\n" + KEEP_ALIVES[GEMINI][0].join(pieces)) == _json(b"".join(pieces))


def test_headers_say_what_the_body_is() -> None:
    assert headers_for(True)["content-type"].startswith("text/event-stream")
    assert headers_for(True, json_array=True) == headers_for(False) == {"content-type": "application/json"}
