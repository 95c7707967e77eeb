"""What frames and upgrades say about headers, and the shape of errors."""

from __future__ import annotations

import json

import pytest

from routecodex.routing.codex import frames

UPGRADE = (
    ("Host", "api.openai.com"),
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "abc"),
    ("sec-websocket-extensions", "permessage-deflate"),
    ("authorization", "***"),
    ("openai-beta", "responses_websockets=2026-02-06, other=1"),
    ("x-codex-turn-metadata", "of the warm-up"),
    ("X-Codex-Window-Id", "old"),
    ("session-id", "s"),
)


def test_an_upgrade_as_a_request() -> None:
    found = frames.post_headers(UPGRADE, (("x-codex-window-id", "new"),))
    assert [pair for pair in found if pair[0] != "openai-beta"] == [
        ("Host", "api.openai.com"),
        ("authorization", "***"),
        ("session-id", "s"),
        ("x-codex-window-id", "new"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
    ]
    assert dict(found)["openai-beta"].strip() == "other=1"


def test_a_beta_of_sockets_alone_goes() -> None:
    assert "openai-beta" not in dict(frames.post_headers((("openai-beta", "responses_websockets=2026-02-06"),), ()))


def test_headers_that_a_frame_carries() -> None:
    found = frames.headers_of(
        {
            "x-codex-turn-metadata": '{"turn_id":"t"}',
            "x-codex-turn-state": "state",
            "ws_request_header_x_openai_internal_codex_responses_lite": "true",
            "ws_request_header_traceparent": "00-1-2-01",
            "x-codex-installation-id": "stays in the body",
            "x-codex-ws-stream-request-start-ms": "1",
            "session_id": "s",
        }
    )
    assert dict(found) == {
        "x-codex-turn-metadata": '{"turn_id":"t"}',
        "x-codex-turn-state": "state",
        "x-openai-internal-codex-responses-lite": "true",
        "traceparent": "00-1-2-01",
    }


@pytest.mark.parametrize(
    "name, value",
    [
        ("ws_request_header_authorization", "Bearer stolen"),
        ("ws_request_header_x_api_key", "stolen"),
        ("ws_request_header_x_goog_api_key", "stolen"),
        ("ws_request_header_content_length", "5"),
        ("ws_request_header_host", "evil.example"),
        ("ws_request_header_x_a\r\nevil", "1"),
        ("ws_request_header_x a", "1"),
        ("x-codex-turn-state", "a\r\nevil: 1"),
        ("x-codex-turn-state", "a\0"),
        ("x-codex-turn-state", "ünï"),
        ("x-codex-turn-state", "\ud800"),
        ("x-codex-turn-state", "a" * 20_000),
        ("x-codex-turn-state", 5),
        ("x-codex-turn-state", None),
    ],
)
def test_headers_that_no_frame_may_carry(name: str, value: object) -> None:
    assert frames.headers_of({name: value}) == ()


def test_an_error_of_a_provider_keeps_its_fields() -> None:
    body = json.dumps({"error": {"type": "usage_limit_reached", "message": "enough", "code": None, "resets_at": 5}}).encode()
    head = {
        "x-codex-primary-used-percent": "100.0",
        "retry-after": "3",
        "set-cookie": "secret",
        "content-type": "application/json",
    }
    told = json.loads(frames.error_of(429, head, body, None))
    assert told == {
        "type": "error",
        "status": 429,
        "error": {"type": "usage_limit_reached", "message": "enough", "code": None, "resets_at": 5},
        "headers": {"x-codex-primary-used-percent": "100.0", "retry-after": "3"},
    }


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"error":"words"}', b'{"error":{"code":5,"message":[1]}}', b"\xff\xfe"]
)
def test_any_error_is_one_that_codex_can_read(body: bytes) -> None:
    """It takes a frame whose code or message is no text for no error at all, and waits."""
    told = json.loads(frames.error_of(503, {}, body, "lane"))
    assert (told["type"], told["status"], told["stream_id"]) == ("error", 503, "lane")
    assert told["error"]["code"] is None
    assert isinstance(told["error"]["message"], str)
    assert told["error"]["message"]


def test_what_http_says_in_its_head() -> None:
    told = frames.metadata({"x-codex-turn-state": "s", "openai-model": "m", "x-request-id": "r", "date": "d"}, None)
    assert told is not None
    assert json.loads(told) == {"type": "response.metadata", "headers": {"x-codex-turn-state": "s", "openai-model": "m"}}
    assert frames.metadata({"date": "d"}, None) is None
