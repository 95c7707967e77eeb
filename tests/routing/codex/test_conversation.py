"""Frames as whole requests, and what is kept between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from routecodex.routing.codex.conversation import KEPT, Conversation, Past, Post, Told

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
LIMIT = 1 << 20


def ask(conversation: Conversation, frame: object) -> Post | Told:
    return conversation.ask(frame if isinstance(frame, str) else json.dumps(frame), new_id="resp_warm", now=7)


def post(conversation: Conversation, frame: object) -> tuple[Post, dict[str, Any]]:
    asked = ask(conversation, frame)
    assert isinstance(asked, Post)
    body = json.loads(asked.body)
    assert isinstance(body, dict)
    return asked, body


def error(asked: Post | Told) -> dict[str, Any]:
    assert isinstance(asked, Told)
    (frame,) = [json.loads(one) for one in asked.frames]
    assert frame["type"] == "error"
    return {"status": frame["status"]} | frame["error"]


def create(*items: object, **more: object) -> dict[str, object]:
    return {"type": "response.create", "model": "m", "store": False, "input": list(items), **more}


def recorded(name: str) -> dict[str, Any]:
    frame = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    assert isinstance(frame, dict)
    return frame


def test_what_codex_sends_becomes_what_it_would_have_posted() -> None:
    conversation = Conversation(LIMIT)
    warm, turn = recorded("04-responses-ws-warmup-frame.json"), recorded("05-responses-ws-turn-frame.json")
    told = ask(conversation, warm)
    assert isinstance(told, Told)
    assert [json.loads(frame)["type"] for frame in told.frames] == ["response.created", "response.completed"]
    completed = json.loads(told.frames[-1])["response"]
    assert (completed["id"], completed["status"], completed["output"], completed["usage"]["total_tokens"]) == (
        "resp_warm",
        "completed",
        [],
        0,
    )
    asked, body = post(conversation, turn | {"previous_response_id": "resp_warm"})
    assert body["input"] == warm["input"] + turn["input"]
    left_out = {"type", "generate", "previous_response_id", "input"}
    assert {name: body[name] for name in body if name != "input"} == {
        name: turn[name] for name in turn if name not in left_out
    } | {"stream": True}
    assert dict(asked.headers)["x-codex-window-id"] == turn["client_metadata"]["x-codex-window-id"]


def test_a_turn_goes_on_from_what_was_kept() -> None:
    conversation = Conversation(LIMIT)
    first, body = post(conversation, create({"n": 1}))
    assert body == {"model": "m", "store": False, "stream": True, "input": [{"n": 1}]}
    conversation.keep("resp_1", Past((*first.past.items, b'{"n":2}')))
    _, body = post(conversation, create({"n": 3}, previous_response_id="resp_1"))
    assert body["input"] == [{"n": 1}, {"n": 2}, {"n": 3}]
    _, again = post(conversation, create({"n": 4}, previous_response_id="resp_1"))
    assert again["input"] == [{"n": 1}, {"n": 2}, {"n": 4}], "another branch from the same place"
    _, anew = post(conversation, create({"n": 5}))
    assert anew["input"] == [{"n": 5}]


@pytest.mark.parametrize("more", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_warm_ups(more: dict[str, object]) -> None:
    conversation = Conversation(LIMIT)
    assert isinstance(ask(conversation, create({"n": 1}, **more)), Told)
    _, body = post(conversation, create(previous_response_id="resp_warm"))
    assert body["input"] == [{"n": 1}]
    assert "prewarm" not in json.dumps(body)


def test_a_text_as_input() -> None:
    _, body = post(Conversation(LIMIT), create(input="hello"))
    assert body["input"] == [{"type": "message", "role": "user", "content": "hello"}]


def test_a_response_that_its_provider_keeps_is_gone_on_from_there() -> None:
    conversation = Conversation(LIMIT)
    asked, body = post(conversation, create({"n": 1}, store=True, previous_response_id="resp_far"))
    assert (body["previous_response_id"], body["input"]) == ("resp_far", [{"n": 1}])
    conversation.keep("resp_near", Past((*asked.past.items, b'{"n":2}'), asked.past.behind))
    _, body = post(conversation, create({"n": 3}, previous_response_id="resp_near"))
    assert (body["previous_response_id"], body["input"]) == ("resp_far", [{"n": 1}, {"n": 2}, {"n": 3}])


def test_a_response_that_nobody_keeps() -> None:
    told = error(ask(Conversation(LIMIT), create(previous_response_id="resp_gone")))
    assert (told["status"], told["code"]) == (400, "previous_response_not_found")
    assert error(ask(Conversation(LIMIT), create(previous_response_id=5, store=True)))["code"] == "previous_response_not_found"


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        "5",
        "null",
        '"' + "\ud800" + '"',
        "{}",
        '{"type":"response.append"}',
        create(input={"n": 1}),
        create(input=7),
    ],
)
def test_frames_that_are_none(frame: object) -> None:
    told = error(ask(Conversation(LIMIT), frame))
    assert (told["status"], told["code"]) == (400, "BAD_REQUEST")


def test_only_the_newest_are_kept() -> None:
    conversation = Conversation(LIMIT)
    for number in range(KEPT + 1):
        conversation.keep(f"resp_{number}", Past((b"1",)))
    assert error(ask(conversation, create(previous_response_id="resp_0")))["code"] == "previous_response_not_found"
    for number in range(1, KEPT + 1):
        post(conversation, create(previous_response_id=f"resp_{number}"))


def test_no_more_than_twice_a_request_is_kept() -> None:
    conversation = Conversation(100)
    for number in range(4):
        conversation.keep(f"resp_{number}", Past((b"%d" % number * 90,)))
        assert conversation.size <= 200
    post(conversation, create(previous_response_id="resp_3"))
    conversation.keep("resp_huge", Past((b"1" * 101,)))
    assert conversation.size <= 200
    assert error(ask(conversation, create(previous_response_id="resp_huge")))["code"] == "previous_response_not_found"


def test_what_responses_share_counts_once() -> None:
    conversation, item = Conversation(100), b"1" * 80
    for number in range(KEPT):
        conversation.keep(f"resp_{number}", Past((item, b"%d" % number)))
    assert conversation.size == 80 + KEPT


def test_a_request_that_grew_too_large() -> None:
    conversation = Conversation(100)
    conversation.keep("resp_1", Past((b"1" * 99,)))
    told = error(ask(conversation, create({"n": 1}, previous_response_id="resp_1")))
    assert (told["status"], told["code"]) == (413, "REQUEST_TOO_LARGE")


def test_errors_name_their_lane() -> None:
    asked = ask(Conversation(LIMIT), create(stream_id="a", previous_response_id="resp_gone"))
    assert isinstance(asked, Told)
    assert json.loads(asked.frames[0])["stream_id"] == "a"


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = some.sampled_from(
    ["type", "input", "previous_response_id", "generate", "stream_id", "store", "client_metadata", "prompt_cache_options", "x"]
)


@given(some.dictionaries(names, json_values))
def test_whatever_comes_there_is_a_request_or_an_answer(frame: dict[str, Any]) -> None:
    asked = ask(Conversation(LIMIT), {"type": "response.create"} | frame)
    if isinstance(asked, Post):
        body = json.loads(asked.body)
        given_items = frame.get("input") or []
        assert len(body["input"]) == (1 if isinstance(given_items, str) else len(given_items))
    else:
        assert all(json.loads(one) for one in asked.frames)
