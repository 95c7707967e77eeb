"""Answers as frames."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from routecodex.routing.codex.conversation import Past, Post
from routecodex.routing.codex.telling import Telling
from routecodex.routing.errors import BadAnswer

SSE = {"content-type": "text/event-stream; charset=utf-8"}
ITEMS: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs"}, {"type": "message", "id": "msg", "text": "ünï 🎉"}]
EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.output_item.done", "item": ITEMS[0]},
    {"type": "response.output_text.delta", "delta": "ünï 🎉"},
    {"type": "response.output_item.done", "item": ITEMS[1]},
    {"type": "response.completed", "response": {"id": "resp_1", "output": [{"type": "other"}]}},
]


def telling(lane: str | None = None) -> Telling:
    return Telling(Post(b"", (), Past((b'{"n":1}',), "resp_far"), lane))


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n".encode() for one in events)


def read(told: list[bytes]) -> list[Any]:
    return [json.loads(one) for one in told]


@given(some.lists(some.integers(1, 40), max_size=30))
def test_every_event_is_a_frame_however_it_is_cut(sizes: list[int]) -> None:
    one, raw, told, at = telling(), b": hello\n\n" + sse(*EVENTS) + b"data: [DONE]\n\n", [], 0
    told += one.head(200, SSE)
    for size in (*sizes, len(raw)):
        told += one.data(raw[at : at + size]) if raw[at : at + size] else []
        at += size
    told += one.end()
    assert read(told) == EVENTS
    assert one.ended
    assert one.id == "resp_1"
    assert one.past is not None
    assert [json.loads(item) for item in one.past.items] == [{"n": 1}, *ITEMS]
    assert one.past.behind == "resp_far"


def test_items_that_are_told_at_the_end_alone() -> None:
    one = telling()
    one.head(200, SSE)
    one.data(sse({"type": "response.incomplete", "response": {"id": "r", "output": ITEMS}}))
    assert one.past is not None
    assert [json.loads(item) for item in one.past.items[1:]] == ITEMS


@pytest.mark.parametrize(
    "last", [{"type": "response.failed", "response": {"id": "r", "error": {}}}, {"type": "error", "error": {}}]
)
def test_a_failed_turn_leaves_nothing(last: dict[str, Any]) -> None:
    one = telling()
    one.head(200, SSE)
    assert read(one.data(sse(EVENTS[0], last))) == [EVENTS[0], last]
    assert one.ended
    assert one.past is None


def test_an_error_inside_a_stream_takes_the_shape_of_a_frame() -> None:
    one = telling()
    one.head(200, SSE)
    (told,) = read(one.data(sse({"type": "error", "code": "server_error", "message": "sorry", "sequence_number": 3})))
    assert (told["status"], told["error"]["code"], told["error"]["message"]) == (502, "server_error", "sorry")


def test_nothing_follows_the_end() -> None:
    one = telling()
    one.head(200, SSE)
    assert len(one.data(sse(*EVENTS, *EVENTS))) == len(EVENTS)
    assert one.end() == one.broke("late") == []


def test_an_answer_without_an_end_has_none() -> None:
    one = telling()
    one.head(200, SSE)
    one.data(sse(*EVENTS[:-1]))
    assert one.end() == []
    assert one.broke("gone") == []
    assert not one.ended
    assert one.past is None


def test_an_error_instead_of_a_stream() -> None:
    one = telling()
    assert one.head(429, {"content-type": "application/json", "retry-after": "3"}) == []
    assert one.data(b'{"error":{"mess') == one.data(b'age":"slow down"}}') == []
    (told,) = read(one.end())
    assert (told["status"], told["error"]["message"], told["headers"]) == (429, "slow down", {"retry-after": "3"})
    assert one.ended


def test_no_stream_where_one_was_asked_for() -> None:
    one = telling()
    one.head(200, {"content-type": "application/json"})
    one.data(b'{"id":"resp_1"}' + b" " * (3 << 20))
    (told,) = read(one.end())
    assert told["status"] == 502


def test_no_answer_at_all() -> None:
    one = telling()
    (told,) = read(one.broke("nobody there"))
    assert (told["status"], told["error"]["message"]) == (502, "nobody there")
    assert one.ended


def test_lanes() -> None:
    one = telling("a")
    one.head(200, SSE)
    assert {frame["stream_id"] for frame in read(one.data(sse(*EVENTS)))} == {"a"}


def test_events_without_sense_are_left_out() -> None:
    one = telling()
    one.head(200, SSE)
    assert one.data(b"data: {\n\ndata: 5\n\nevent: x\n\ndata: [1]\n\n") == []


def test_an_event_that_never_ends() -> None:
    one = telling()
    one.head(200, SSE)
    for _ in range(15):
        assert one.data(b"x" * (1 << 20)) == []
    with pytest.raises(BadAnswer):
        one.data(b"x" * (2 << 20))
