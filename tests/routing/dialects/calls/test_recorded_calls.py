"""Real clients' calls: read, sent on untouched byte for byte, edited in one place and nowhere else."""

import copy
import json
from contextlib import suppress

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.calls import bare, edit_texts, for_target, inner_body, read_call
from routecodex.routing.dialects.translation.going_up import translate
from routecodex.routing.dialects.translation.neutral import LeftOut
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint, JsonObject, Text
from tests.routing.dialects.calls.recorded import CALLS, FOLDER, Recorded

by_call = pytest.mark.parametrize("recorded, endpoint", [pytest.param(*pair, id=pair[0].name) for pair in CALLS])


def test_all_recordings_are_here() -> None:
    assert len(CALLS) >= 50
    assert {endpoint.dialect for _, endpoint in CALLS} == set(Dialect)


@by_call
def test_a_call_that_nobody_changed_is_its_own_bytes(recorded: Recorded, endpoint: Endpoint) -> None:
    """X06"""
    call = read_call(recorded.raw, endpoint)
    assert call.messages
    assert for_target(call, "", foreign=False) is recorded.raw
    assert for_target(call, call.model, foreign=False) is recorded.raw
    edit_texts(call, {(m.index, p.slot): p.text for m in call.messages for p in m.parts if isinstance(p, Text)})
    assert not call.changed
    assert for_target(call, "", foreign=False) is recorded.raw


@by_call
def test_one_edit_changes_one_value(recorded: Recorded, endpoint: Endpoint) -> None:
    call = read_call(recorded.raw, endpoint)
    message = next(m for m in call.messages if m.role == "user" and any(isinstance(p, Text) for p in m.parts))
    part = [p for p in message.parts if isinstance(p, Text)][-1]
    edit_texts(call, {(message.index, part.slot): "something else «ü»"})

    expected = json.loads(recorded.raw)
    items = _conversation(expected, endpoint)
    if isinstance(items, str):
        expected["input"] = "something else «ü»"
    else:
        item, key = items[message.index], "parts" if endpoint.dialect is Dialect.GEMINI else "content"
        if part.slot == -1:
            item[key] = "something else «ü»"
        else:
            item[key][part.slot]["text"] = "something else «ü»"
    sent = json.loads(for_target(call, "", foreign=False))
    assert sent == expected
    assert _key_order(sent) == _key_order(expected)
    assert "something else «ü»" in call.messages[message.index].text
    again = read_call(for_target(call, "", foreign=False), endpoint)
    assert again.messages == call.messages


@by_call
def test_another_model_changes_the_model_alone(recorded: Recorded, endpoint: Endpoint) -> None:
    call = read_call(recorded.raw, endpoint)
    sent = for_target(call, "another-model", foreign=False)
    expected = json.loads(recorded.raw)
    if "model" in expected:
        expected["model"] = "another-model"
        assert json.loads(sent) == expected
    else:
        assert sent is recorded.raw


@by_call
def test_the_same_call_is_always_written_alike(recorded: Recorded, endpoint: Endpoint) -> None:
    """R17"""
    written = {for_target(read_call(recorded.raw, endpoint), "m", foreign=True) for _ in range(3)}
    assert len(written) == 1
    call = read_call(recorded.raw, endpoint)
    before = copy.deepcopy(call.body)
    for_target(call, "m", foreign=True)
    for dialect in set(Dialect) - {endpoint.dialect}:
        there = replace(call, body=bare(call, "m", (), LeftOut()), endpoint=replace(endpoint, envelope=False))
        with suppress(BadCall):
            translate(inner_body(there), there.endpoint, dialect, model="m", stream=True, session="s", maker="p")
    assert call.body == before


@by_call
def test_views_are_in_wire_order(recorded: Recorded, endpoint: Endpoint) -> None:
    call = read_call(recorded.raw, endpoint)
    assert [message.index for message in call.messages] == list(range(len(call.messages)))
    items = _conversation(call.body, endpoint)
    assert isinstance(items, str) or len(items) == len(call.messages)
    assert inner_body(call) is (call.body["request"] if endpoint.envelope else call.body)


def test_websocket_frames_read_as_calls() -> None:
    for file in sorted(FOLDER.glob("codex/*-ws-*.json")):
        call = read_call(file.read_bytes(), Endpoint(Dialect.RESPONSES))
        assert for_target(call, "", foreign=False) == file.read_bytes()


def _conversation(body: JsonObject, endpoint: Endpoint) -> list:
    inner = body["request"] if endpoint.envelope else body
    key = {Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}.get(endpoint.dialect, "messages")
    return inner[key]


def _key_order(value: object) -> object:
    if isinstance(value, dict):
        return [(key, _key_order(child)) for key, child in value.items()]
    return [_key_order(child) for child in value] if isinstance(value, list) else None
