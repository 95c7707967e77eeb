# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects import failures
from routecodex.routing.dialects.answer.chat import Reader
from routecodex.routing.dialects.answer.stream import Source
from routecodex.routing.dialects.failures import (
    failure_inside,
    failure_of_page,
    read_failure,
    says_error,
    without_empty_error,
)
from routecodex.routing.dialects.waits import read_duration
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.values import ProviderError
from tests.conftest import LONG
from tests.rig.work import assert_linear

NOW = 1_800_000_000.0


def _read(status: int, body: object, headers: dict[str, str] | None = None) -> ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return read_failure(status, headers or {}, raw, now=NOW)


def test_a_word_stands_for_a_status_that_there_is() -> None:
    """What is retried, where, and after how long hangs on it."""
    assert set(failures._STATUS.values()) == {400, 401, 402, 403, 404, 409, 413, 429, 500, 501, 503, 504, 529}
    words = {429: "rate_limit_error rate_limit_exceeded insufficient_quota resource_exhausted throttling 1302 2056"}
    words |= {400: "invalid_request_error invalid_argument 1261", 401: "authentication_error unauthenticated 1001 2049"}
    words |= {402: "billing_error arrearage 1008", 503: "server_is_overloaded slow_down unavailable", 529: "overloaded_error"}
    for status, named in words.items():
        assert [failures._STATUS[word] for word in named.split()] == [status] * len(named.split()), status


def _google(status: int, word: str, *details: dict[str, Any], message: str = "m") -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": word, "details": list(details)}}


@pytest.mark.parametrize(
    "status, body, message, code",
    [
        pytest.param(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded", "overloaded_error", id="messages"),
        pytest.param(401, {"error": {"message": "bad key", "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}}, "bad key", "invalid_api_key", id="openai"),
        pytest.param(400, {"error": {"message": "m", "type": "invalid_request_error", "code": None}}, "m", "invalid_request_error", id="openai-no-code"),
        pytest.param(429, _google(429, "RESOURCE_EXHAUSTED"), "m", "RESOURCE_EXHAUSTED", id="gemini"),
        pytest.param(400, [_google(400, "INVALID_ARGUMENT")], "m", "INVALID_ARGUMENT", id="gemini-array"),
        pytest.param(429, {"error": {"code": "1302", "message": "并发数过高"}}, "并发数过高", "1302", id="glm"),
        pytest.param(400, {"code": "InvalidParameter", "message": "m", "request_id": "r"}, "m", "InvalidParameter", id="dashscope"),
        pytest.param(403, {"error_code": 17, "error_msg": "limit"}, "limit", "17", id="baidu"),
        pytest.param(500, {"code": 500, "msg": "boom", "success": False}, "boom", "HTTP_500", id="glm-anthropic"),
        pytest.param(403, {"code": 30001, "message": "Sorry, your account balance is insufficient", "data": None}, "Sorry, your account balance is insufficient", "30001", id="siliconflow"),
        pytest.param(422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required", "HTTP_422", id="fastapi-list"),
        pytest.param(400, {"detail": "no"}, "no", "HTTP_400", id="fastapi"),
        pytest.param(400, {"detail": {"code": "x", "message": "deep"}}, "deep", "x", id="detail-object"),
        pytest.param(404, {"error": "model not found"}, "model not found", "HTTP_404", id="ollama"),
        pytest.param(400, {"errors": [{"message": "first"}, {"message": "second"}]}, "first", "HTTP_400", id="errors"),
        pytest.param(429, {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "slow down"}}}, "Provider returned error: slow down", "HTTP_429", id="openrouter"),
        pytest.param(200, {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}}, "m", "server_error", id="responses"),
        pytest.param(400, b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"in a stream"}}\n\n', "in a stream", "api_error", id="event-stream"),
        pytest.param(502, b"<html><head><title>502 Bad Gateway</title></head><body><h1>no</h1></body></html>", "502 Bad Gateway", "HTTP_502", id="page"),
        pytest.param(503, b"<p>upstream <b>down</b></p>", "upstream down", "HTTP_503", id="page-without-title"),
        pytest.param(500, b"plain words", "plain words", "HTTP_500", id="text"),
        pytest.param(500, b'"a json string"', "a json string", "HTTP_500", id="json-string"),
        pytest.param(503, b"", "", "HTTP_503", id="H12-empty"),
        pytest.param(429, {"error": {"message": "m"}}, "m", "HTTP_429", id="H12-no-code"),
    ],
)  # fmt: skip
def test_message_and_code(status: int, body: object, message: str, code: str) -> None:
    found = _read(status, body)
    assert (found.status, found.message, found.code, found.network) == (status, message, code, False)


@pytest.mark.parametrize(
    "status, body, headers, quota",
    [
        pytest.param(429, {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}}, {}, True, id="openai"),
        pytest.param(429, {"error": {"message": "Rate limit reached for gpt on tokens per min (TPM)", "type": "tokens", "code": "rate_limit_exceeded"}}, {}, False, id="openai-minute"),
        pytest.param(429, {"error": {"message": "Rate limit reached for gpt on requests per day (RPD)", "code": "rate_limit_exceeded"}}, {}, True, id="openai-day"),
        pytest.param(429, {"error": {"message": "billing hard limit", "code": "billing_hard_limit_reached"}}, {}, True, id="openai-billing"),
        pytest.param(429, {"error": {"type": "usage_limit_reached", "message": "m", "resets_in_seconds": 7}}, {}, True, id="chatgpt"),
        pytest.param(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API"}}, {}, True, id="anthropic"),
        pytest.param(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed your rate limit of 50 requests per minute"}}, {}, False, id="anthropic-minute"),
        pytest.param(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}, {"anthropic-ratelimit-unified-status": "rejected"}, True, id="anthropic-plan"),
        pytest.param(429, {"error": {"code": "1113", "message": "您的账户已欠费，请充值后重试"}}, {}, True, id="glm-1113"),
        pytest.param(429, {"error": {"code": "9999", "message": "余额不足或无可用资源包,请充值。"}}, {}, True, id="glm-text"),
        pytest.param(429, {"error": {"code": "1302", "message": "您当前使用该API的并发数过高"}}, {}, False, id="glm-rate"),
        pytest.param(402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}, {}, True, id="deepseek"),
        pytest.param(402, b"", {}, True, id="any-402"),
        pytest.param(429, {"error": {"type": "exceeded_current_quota_error", "message": "m"}}, {}, True, id="kimi"),
        pytest.param(429, {"error": {"type": "rate_limit_reached_error", "message": "Your account reached max RPM: 3, please try again after 1 seconds"}}, {}, False, id="kimi-minute"),
        pytest.param(400, {"code": "Arrearage", "message": "Access denied"}, {}, True, id="dashscope"),
        pytest.param(403, {"code": 30001, "message": "balance is insufficient"}, {}, True, id="siliconflow"),
        pytest.param(429, _google(429, "RESOURCE_EXHAUSTED", {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}), {}, True, id="gemini-day"),
        pytest.param(403, _google(403, "PERMISSION_DENIED", {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}), {}, True, id="gemini-day, denied"),
        pytest.param(404, _google(404, "NOT_FOUND", {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}), {}, False, id="a 404 is no quota"),
        pytest.param(429, _google(429, "RESOURCE_EXHAUSTED", {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}, message="You exceeded your current quota, please check your plan and billing details"), {}, False, id="gemini-minute"),
        pytest.param(429, _google(429, "RESOURCE_EXHAUSTED", message="You exceeded your current quota"), {}, False, id="gemini-unsaid"),
        pytest.param(429, _google(429, "RESOURCE_EXHAUSTED", {"reason": "QUOTA_EXHAUSTED", "metadata": {"quotaResetDelay": "3h"}}), {}, True, id="code-assist"),
        pytest.param(429, _google(429, "RESOURCE_EXHAUSTED", {"reason": "RATE_LIMIT_EXCEEDED"}), {}, False, id="code-assist-rate"),
        pytest.param(400, {"error": {"message": "invalid text: 'the spending limit per day'"}}, {}, False, id="a user's words in a 400"),
        pytest.param(500, {"error": {"message": "usage limit service down"}}, {}, False, id="a 500 is no quota"),
    ],
)  # fmt: skip
def test_quota_or_rate(status: int, body: object, headers: dict[str, str], quota: bool) -> None:
    assert _read(status, body, headers).quota is quota


_SPENT = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-remaining-tokens": "900"}
_RESETS = {"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "20ms"}


@pytest.mark.parametrize(
    "status, headers, body, wait",
    [
        pytest.param(429, {"retry-after": "12"}, {}, 12.0, id="seconds"),
        pytest.param(503, {"retry-after": "1.5"}, {}, 1.5, id="fraction"),
        pytest.param(429, {"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, {}, 30.0, id="date"),
        pytest.param(429, {"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, {}, 0.0, id="a date gone by"),
        pytest.param(429, {"retry-after-ms": "250", "retry-after": "1"}, {}, 0.25, id="milliseconds first"),
        pytest.param(429, {"retry-after": "-5"}, {}, None, id="negative"),
        pytest.param(429, {"retry-after": "inf"}, {}, None, id="infinite"),
        pytest.param(429, {"retry-after": "soon"}, {}, None, id="words"),
        pytest.param(429, {"retry-after": "9" * 400}, {}, None, id="huge"),
        pytest.param(429, {"retry-after": "999999999"}, {}, 86400.0, id="bounded"),
        pytest.param(429, {**_RESETS, **_SPENT}, {}, 360.0, id="openai: the limit that is used up"),
        pytest.param(429, _RESETS, {}, 360.0, id="openai: nothing said about what remains"),
        pytest.param(429, {**_RESETS, "x-ratelimit-remaining-requests": "5", "x-ratelimit-remaining-tokens": "0"}, {}, 0.02, id="openai: tokens"),
        pytest.param(500, {**_RESETS, **_SPENT}, {}, None, id="every OpenAI answer has reset headers"),
        pytest.param(429, {"anthropic-ratelimit-requests-reset": "2027-01-15T08:00:09Z", "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-tokens-reset": "2027-01-15T09:00:00Z", "anthropic-ratelimit-tokens-remaining": "7"}, {}, 9.0, id="anthropic"),
        pytest.param(429, {"anthropic-ratelimit-unified-reset": "1800000060"}, {}, 60.0, id="anthropic plan: epoch"),
        pytest.param(429, {"x-ratelimit-reset": "1800000005000"}, {}, 5.0, id="epoch in milliseconds"),
        pytest.param(429, {"x-ratelimit-reset": "8"}, {}, 8.0, id="delta"),
        pytest.param(429, {}, {"error": {"metadata": {"headers": {"X-RateLimit-Reset": "1800000005000"}}}}, 5.0, id="openrouter"),
        pytest.param(429, {}, _google(429, "X", {"retryDelay": "12s"}), 12.0, id="RetryInfo"),
        pytest.param(429, {}, _google(429, "X", {"retryDelay": {"seconds": 3, "nanos": 500_000_000}}), 3.5, id="RetryInfo object"),
        pytest.param(429, {}, _google(429, "X", {"metadata": {"quotaResetDelay": "1h2m3.5s"}}), 3723.5, id="quotaResetDelay"),
        pytest.param(429, {}, _google(429, "X", {"metadata": {"quotaResetTimeStamp": "2027-01-15T08:01:00Z"}}), 60.0, id="quotaResetTimeStamp"),
        pytest.param(429, {}, {"error": {"message": "m", "type": "usage_limit_reached", "resets_in_seconds": 77}}, 77.0, id="chatgpt"),
        pytest.param(429, {}, {"error": {"message": "m", "resets_at": 1800000100}}, 100.0, id="chatgpt epoch"),
        pytest.param(429, {}, {"error": {"message": "m", "resets_in_seconds": -5}}, None, id="negative in the body"),
        pytest.param(429, {}, _google(429, "X", {"retryDelay": {"seconds": -3}}), None, id="negative RetryInfo"),
        pytest.param(429, {}, {"error": {"message": "Please try again in 1.234s. Visit x"}}, 1.234, id="text"),
        pytest.param(429, {}, {"error": {"message": "Please try again in 20ms."}}, 0.02, id="text ms"),
        pytest.param(429, {}, {"error": {"message": "Limit hit, try again in 6m30s"}}, 390.0, id="text minutes"),
        pytest.param(429, {}, {"error": {"message": "please try again after 2 seconds"}}, 2.0, id="text words"),
        pytest.param(400, {}, {"error": {"message": "try again in 5s"}}, None, id="no wait for a 400"),
        pytest.param(503, {}, b"", None, id="nothing"),
    ],
)  # fmt: skip
def test_how_long_to_wait(status: int, headers: dict[str, str], body: object, wait: float | None) -> None:
    assert _read(status, body, headers).retry_after_s == pytest.approx(wait)


@pytest.mark.parametrize(
    "text, seconds",
    [("12", 12.0), ("1.5s", 1.5), ("20ms", 0.02), ("6m0s", 360.0), ("1h2m3.5s", 3723.5), ("2 minutes", 120.0), ("1d", 86400.0), ("1 hour, 5 mins", 3900.0)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert read_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "1x", "-3s", "2027-01-15", "1s later", "s"])
def test_what_is_no_duration(text: str) -> None:
    assert read_duration(text) is None


@pytest.mark.parametrize(
    "document, status",
    [
        pytest.param({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, 529, id="F11-overloaded"),
        pytest.param({"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}, 429, id="F11-rate"),
        pytest.param({"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}, 503, id="gemini"),
        pytest.param({"error": {"code": "429", "message": "m"}}, 429, id="a number as text"),
        pytest.param({"error": {"code": "1113", "message": "余额不足"}}, 429, id="glm"),
        pytest.param({"error": {"message": "m", "code": "context_length_exceeded"}}, 400, id="openai"),
        pytest.param({"error": "just words"}, 502, id="text"),
        pytest.param({"error_code": 336000, "error_msg": "m"}, 502, id="baidu"),
        pytest.param({"error_code": 500, "msg": "m"}, 500, id="error_code-msg"),
        pytest.param({"code": 401, "msg": "m", "success": False}, 401, id="code-msg"),
        pytest.param({"code": "Throttling.RateQuota", "message": "m"}, 429, id="dashscope"),
        pytest.param({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, 402, id="minimax"),
        pytest.param({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "m"}}}, 429, id="responses"),
        pytest.param({"type": "error", "code": "server_error", "message": "m", "sequence_number": 2}, 500, id="responses-error"),
    ],
)  # fmt: skip
def test_an_error_where_an_answer_should_be(document: dict[str, Any], status: int) -> None:
    found = failure_inside(document)
    assert found is not None
    assert found.status == status
    assert found.message
    assert found.code


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"error": None},
        {"error": {}},
        {"error": ""},
        {"error": {"message": "", "code": None}, "choices": [{}]},
        {"error": {"code": 0, "message": "success"}, "candidates": [{}]},
        {"error": {"code": "0", "message": "OK", "request_id": "r-1"}},
        {"error": {"message": "", "type": "", "param": None, "code": ""}},
        {"error": {"message": None, "details": [], "metadata": {}}},
        {"type": "response.completed", "response": {"error": {"code": "", "message": ""}}},
        {"code": "Success", "message": "ok"},
        {"error_code": 0, "error_msg": "success"},
        {"choices": [{"delta": {"content": "error"}}]},
        {"base_resp": {"status_code": 0, "status_msg": "success"}, "choices": [{}]},
        {"code": 0, "msg": "ok", "data": {}},
        {"code": 200, "message": "ok"},
        {"message": "hello"},
        {"id": "resp_1", "object": "response", "error": None, "status": "completed"},
    ],
)
def test_no_error(document: dict[str, Any]) -> None:
    assert failure_inside(document) is None


@pytest.mark.parametrize(
    "error",
    [
        "boom",
        {"message": "boom", "code": None},
        {"message": "", "type": "server_error"},
        {"message": "", "code": 500},
        {"code": 1302},
        {"message": "", "details": [{"reason": "QUOTA_EXHAUSTED"}]},
        {"metadata": {"raw": "slow down"}},
        True,
        ["boom"],
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": {"k": {}}}}}}}}}}}},
    ],
)
def test_a_real_error_stays_one(error: object) -> None:
    """R12: whatever stands beside it."""
    assert says_error(error)
    raw = json.dumps({"choices": [{}], "error": error}).encode()
    document = json.loads(raw)
    assert without_empty_error(document) is document
    assert _passed(raw) == (raw, b"data: " + raw + b"\n\n")


EMPTY = ['{"message":"","code":null}', '{"code":0,"message":"success"}', "{}", "[]", '"success"', '{ "message" : "" }', "0.0"]


@pytest.mark.parametrize("error", EMPTY)
@pytest.mark.parametrize("space", ["", " "])
def test_an_empty_error_is_taken_out(error: str, space: str) -> None:
    """R12: official SDKs raise at any truthy error."""
    data = f'{{"id":"x","error":{space}{error},"choices":[]}}'.encode()
    raw = b"id: 7\nevent: message\ndata: " + data + b"\r\n\r\n"
    source = Source(Reader())
    (chunk,) = source.feed(raw)
    if error == "0.0":
        assert chunk.raw == raw
        return
    assert chunk.native == {"id": "x", "choices": []}
    assert chunk.raw == raw.replace(data, dumps(chunk.native))
    assert _passed(data)[0] == dumps(chunk.native)


def test_where_the_field_must_stand_it_is_null() -> None:
    response = {"object": "response", "status": "completed", "output": [], "error": {"code": "", "message": ""}}
    assert without_empty_error(response)["error"] is None
    event = {"type": "response.completed", "response": response}
    assert without_empty_error(event)["response"] == {**response, "error": None}
    envelope = {"response": {"candidates": [], "error": {}}}
    assert without_empty_error(envelope) == {"response": {"candidates": []}}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"choices":[],"error":null}',
        b'{"choices":[],"error":""}',
        b'{"choices":[],"error":false}',
        b'{"type":"error","error":{}}',
        b'{"choices":[{"delta":{"content":"\\"error\\":{}"}}]}',
        b'{"kind":"error","a":{}}',
        b'{"error":{',
        b'[{"error":{}}]',
        b"",
    ],
)
def test_what_needs_no_change_stays_the_very_bytes(raw: bytes) -> None:
    assert _passed(raw) == (b"" if raw.startswith(b"[") else raw, b"data: " + raw + b"\n\n"), "a list is no document"
    (chunk,) = Source(Reader()).feed(b'event: error\ndata: {"error":{}}\n\n')
    assert chunk.raw == b'event: error\ndata: {"error":{}}\n\n'


def _passed(raw: bytes) -> tuple[bytes, bytes]:
    """As a whole document and as an event it comes out of what reads answers."""
    document, stream = Source(Reader()), Source(Reader())
    told = [] if document.feed(raw) else document.close()
    units = list(stream.feed(b"data: " + raw + b"\n\n"))
    return b"".join([one.raw for one in told]), b"".join([one.raw for one in units])


def test_a_page_where_json_should_be() -> None:
    found = failure_of_page(b"\n<!DOCTYPE html><title>Sign in</title>")
    assert found is not None
    assert found.status == 502
    assert "Sign in" in found.message
    assert failure_of_page(b"data") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["error", "code", "message", "msg", "details", "type", "status", "metadata", "headers", "violations", "retryDelay", "seconds", "base_resp", "status_code", "detail", "errors", "response", "resets_at", "raw"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining", "anthropic-ratelimit-requests-reset"]),
    st.text(max_size=40) | st.sampled_from(["nan", "-inf", "1e999", "9" * 5000, "Mon, 99 Foo 99999 99:99:99 +9999", "9999-12-31T23:59:59Z", "1_0"]),
)  # fmt: skip


@given(JSON, HEADERS, st.sampled_from([200, 400, 402, 403, 429, 500, 503, 999]))
@settings(max_examples=5_000 if LONG else 120, deadline=None)
def test_garbage_gives_a_value(value: object, headers: dict[str, str], status: int) -> None:
    _check(read_failure(status, headers, json.dumps(value).encode(), now=NOW))
    if isinstance(value, dict) and (found := failure_inside(value)) is not None:
        _check(found)


@given(st.binary(max_size=300), HEADERS)
@settings(max_examples=200, deadline=None)
def test_any_bytes_give_a_value(raw: bytes, headers: dict[str, str]) -> None:
    _check(read_failure(429, headers, raw, now=NOW))
    failure_of_page(raw)


def _check(found: ProviderError) -> None:
    assert isinstance(found.message, str)
    found.message.encode()
    assert len(found.message) <= 2000
    assert 0 < len(found.code) <= 200
    assert found.retry_after_s is None or 0 <= found.retry_after_s <= 86400


@pytest.mark.parametrize(
    "make",
    [
        lambda size: b'{"error":' * size,
        lambda size: b"[" * size * 5,
        lambda size: b"<script " * size,
        lambda size: b'{"error":{"message":"' + b"try again in 1s " * size + b'"}}',
        lambda size: b'{"error":{"message":"\\ud800 \\u0000 x","code":' + b"9" * (size // 10) + b"}}",
        lambda size: b"data: \n" * size,
    ],
    ids=["deep", "deep-array", "markup", "long", "odd", "lines"],
)
def test_hostile_bodies_are_bounded(make: Callable[[int], bytes]) -> None:
    assert_linear(lambda raw: _check(read_failure(503, {}, raw, now=NOW)), make, 50_000)
