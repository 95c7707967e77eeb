"""The content view, as each mitmproxy asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mitmproxy import contentviews, http
from mitmproxy.test import taddons, tflow

from routecodex.addons.window import content_view

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello there"}]}).encode()
ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"good day"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def _flow(path: str = "/v1/messages", spoken: str = "openai-chat") -> http.HTTPFlow:
    flow = tflow.tflow()
    flow.request = http.Request.make("POST", f"https://api.example.com{path}", BODY, {"content-type": "application/json"})
    flow.response = http.Response.make(200, ANSWER, {"content-type": "text/event-stream"})
    flow.metadata["routecodex"] = {"spoken": spoken, "target": "glm.k1.glm-4.7", "why": "force"}
    return flow


def _shown(flow: http.HTTPFlow, message: http.Message) -> tuple[str, str]:
    """What mitmproxy chooses by itself, and the text."""
    modern: Any = getattr(contentviews, "prettify_message", None)
    if modern is not None:
        result = modern(message, flow)
        return result.view_name, result.text
    older: Any = contentviews
    from mitmproxy.contentviews import auto  # type: ignore[attr-defined,unused-ignore]

    name, lines, _ = older.get_message_content_view("auto", message, flow)
    assert auto
    return name, "\n".join("".join(text for _, text in line) for line in lines)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    content_view.register()
    content_view.register()
    with taddons.context() as context:
        context.options.add_option("protobuf_definitions", str, "", "")
        yield


def test_mitmproxy_chooses_it_for_a_call_and_its_answer() -> None:
    flow = _flow()
    name, text = _shown(flow, flow.request)
    assert "Conversation" in name
    assert "hello there" in text
    assert "glm.k1.glm-4.7 · force" in text
    assert flow.response is not None
    name, text = _shown(flow, flow.response)
    assert "Conversation" in name
    assert "good day" in text
    assert "{" not in text


@pytest.mark.parametrize("path", ["/", "/v1/files", "/api/oauth/token"])
def test_it_leaves_everything_else_to_mitmproxy(path: str) -> None:
    flow = _flow(path)
    assert "Conversation" not in _shown(flow, flow.request)[0]


@pytest.mark.parametrize(
    "record", [None, 3, [], {"spoken": 7}, {"spoken": "x", "attempts": {"a": 1}, "usage": [], "rounds": "2"}]
)
def test_a_saved_flow_may_hold_anything(record: object) -> None:
    flow = _flow()
    flow.metadata["routecodex"] = record
    assert flow.response is not None
    assert "hello there" in _shown(flow, flow.request)[1]
    assert _shown(flow, flow.response)[1]


def test_it_is_offered_for_calls_and_answers_of_model_paths_alone() -> None:
    ours, other = _flow(), _flow(path="/v1/files")
    assert content_view.priority(BODY, ours) > 0
    assert [content_view.priority(*given) for given in ((b"", ours), (BODY, other), (BODY, None), (BODY, tflow.ttcpflow()))] == [
        -1
    ] * 4
