"""Answers of our own in chains of Responses: their ids lead on to the answer before, and to no provider."""

from __future__ import annotations

import json
import uuid

import pytest

from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.calls.following import begun_id, own_id, pass_over_ours
from routecodex.routing.values import Answer, Dialect, Endpoint, ToolCall
from tests.routing.dialects.answer.own import write_answer

CALL_ID = "7e55502d-78e3-4bc0-8deb-299cc7a8305c"
RESPONSES = Endpoint(Dialect.RESPONSES)


BEGUN = {begun_id(CALL_ID): "resp_theirs"}


def follows(previous: str | None) -> dict[str, object]:
    """The body that goes on where a client says that it follows this answer."""
    given = {"model": "m", "input": "hello"} | ({"previous_response_id": previous} if previous is not None else {})
    call = read_call(json.dumps(given).encode(), RESPONSES)
    pass_over_ours(call, BEGUN.get)
    body = json.loads(for_target(call, "", foreign=False))
    assert body.get("previous_response_id") == call.previous_id
    assert isinstance(body, dict)
    return body


@pytest.mark.parametrize(
    "previous, goes_on",
    [
        (None, None),
        ("resp_068a", "resp_068a"),
        (own_id(CALL_ID, None), None),
        (own_id(CALL_ID, "resp_068a"), "resp_068a"),
        (own_id(CALL_ID, "resp.with.dots"), "resp.with.dots"),
        ("resp_routecodex_short", "resp_routecodex_short"),
        pytest.param(begun_id(CALL_ID), "resp_theirs", id="begun by us"),
        pytest.param(own_id(CALL_ID, begun_id(CALL_ID)), "resp_theirs", id="ours, behind one that was begun by us"),
        pytest.param(begun_id("0-0"), begun_id("0-0"), id="begun by us and forgotten: the provider will say so"),
    ],
)
def test_an_answer_of_ours_is_passed_over(previous: str | None, goes_on: str | None) -> None:
    assert follows(previous).get("previous_response_id") == goes_on


def test_a_call_that_follows_a_real_answer_keeps_its_bytes() -> None:
    raw = b'{ "model": "m",  "previous_response_id": "resp_1", "input": "hello" }'
    call = read_call(raw, RESPONSES)
    pass_over_ours(call)
    assert for_target(call, "", foreign=False) == raw


def test_ids_do_not_grow_with_the_chain() -> None:
    """Our next answer follows the real one that was passed over to, not our last."""
    id = own_id(CALL_ID, "resp_068a")
    for _ in range(100):
        id = own_id(str(uuid.uuid4()), str(follows(id)["previous_response_id"]))
    assert len(id) == len(own_id(CALL_ID, "resp_068a"))


def test_an_id_too_long_to_carry_is_left_out() -> None:
    assert follows(own_id(CALL_ID, "r" * 10_000)).get("previous_response_id") is None


def test_ids_of_items_are_as_short_as_openai_takes_them() -> None:
    answer = Answer("text", (ToolCall("call_1", "read", "{}"),))
    id = own_id(CALL_ID, "resp_" + "0" * 48)
    body = json.loads(write_answer(Dialect.RESPONSES, answer, id=id, model="m", created=0))
    assert body["id"] == id
    assert all(len(item["id"]) <= 64 for item in body["output"])


def test_the_target_that_made_an_answer_is_told_its_id_and_nobody_else() -> None:
    call = read_call(b'{"model":"m","previous_response_id":"resp_1","input":"hello","user":"me"}', RESPONSES)
    assert json.loads(for_target(call, "m", foreign=True)) == {"model": "m", "input": "hello"}
    own = json.loads(for_target(call, "m", foreign=True, own=("resp_1",)))
    assert own == {"model": "m", "previous_response_id": "resp_1", "input": "hello"}
