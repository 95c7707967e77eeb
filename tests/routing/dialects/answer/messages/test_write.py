"""Chunks and events as a Messages client's bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.events import Block, Chunk, Closed, Counted, Done, Ended, Event, Opened, Piece
from routecodex.routing.dialects.answer.messages import Reader, Writer
from routecodex.routing.dialects.finish import Endings
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer.rounds import accumulated
from tests.routing.dialects.answer.talks import MESSAGES, sse


def writer(**more: Any) -> Writer:
    return Writer(Asked(Endpoint(MESSAGES), True, "0123", "asked", 1, maker="acme", **more))


def told(*events: Event, **more: Any) -> list[dict[str, Any]]:
    out = writer(**more)
    raw = b"".join([out.made(event) for event in events])
    return [json.loads(event.data) for event in Events().feed(raw)]


def foreign(kind: Any, name: str = "") -> Block:
    block = Block(kind, {}, id="a" if kind == "call" else "", name=name)
    block.foreign = True
    return block


def blocks(*events: Event) -> list[dict[str, Any]]:
    return accumulated(told(*events))["content"]  # type: ignore[no-any-return]


def test_a_block_at_another_index_is_written_with_it() -> None:
    reader, out = Reader(), writer()
    out.altered = True
    for index, place in ((4, 0), (7, 1)):
        document = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": "", "vendor": 1}}
        one = Chunk(sse(document, name=True), document, reader.read(document), MESSAGES, "content_block_start")
        [event] = Events().feed(out.write(one))
        assert json.loads(event.data) == {**document, "index": place}


def test_one_at_its_own_index_leaves_as_it_came() -> None:
    reader, out = Reader(), writer()
    document = {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}
    raw = sse(document, name=True)
    assert out.write(Chunk(raw, document, reader.read(document), MESSAGES, "content_block_start")) == raw


def test_arguments_leave_as_they_come() -> None:
    call = foreign("call", "f")
    documents = told(Opened(call), Piece(call, '{"a'), Piece(call, '":'), Piece(call, "1}"), Closed(call))
    assert [one["type"] for one in documents] == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 2,
        "content_block_stop",
    ]
    assert "".join(one["delta"]["partial_json"] for one in documents[2:4]) == '{"a":1}'


@pytest.mark.parametrize("arguments, given", [("", {}), ("null", {}), ("[1]", {"arguments": "[1]"}), ("ls", {"arguments": "ls"})])
def test_arguments_that_are_no_object_are_made_one(arguments: str, given: dict[str, Any]) -> None:
    call = foreign("call", "f")
    assert blocks(Opened(call), Piece(call, arguments[:1]), Piece(call, arguments[1:]), Closed(call))[0]["input"] == given


def test_a_seal_stands_before_its_call() -> None:
    call = foreign("call", "f")
    call.seal = Seal(Dialect.GEMINI, "acme", {"thoughtSignature": "x"})
    kinds = [block["type"] for block in blocks(Opened(call), Piece(call, "{}"), Closed(call))]
    assert kinds == ["thinking", "tool_use"]


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_seal_behind_the_last_text_is_left_out(goes_on: bool) -> None:
    text, thought, more = foreign("text"), foreign("thought"), foreign("text")
    thought.seal = Seal(Dialect.GEMINI, "acme", {"thoughtSignature": "x"})
    events: list[Event] = [Opened(text), Piece(text, "a"), Closed(text), Opened(thought), Closed(thought)]
    behind: list[Event] = [Opened(more), Piece(more, "b"), Closed(more)] if goes_on else []
    assert [block["type"] for block in blocks(*events, *behind)] == (["text", "thinking", "text"] if goes_on else ["text"])


def test_a_picture_is_told() -> None:
    picture = foreign("media")
    picture.media = Media("image", "image/png", "iVBO")
    assert blocks(Opened(picture)) == [{"type": "text", "text": "[image: image/png]\n\n"}]


@pytest.mark.parametrize("pieces", [['{"a'], ['{"a', '":']])
def test_half_a_call_at_the_limit_ends_as_a_block_if_it_has_begun(pieces: list[str]) -> None:
    call = foreign("call", "f")
    call.half = True
    documents = told(
        Opened(call), *(Piece(call, piece) for piece in pieces), Closed(call), Counted(Tokens(output=2)), Ended("max_tokens")
    )
    kinds = [one["type"] for one in documents[1:]]
    assert kinds == [*["content_block_start", "content_block_delta", "content_block_stop"] * (len(pieces) - 1), "message_delta"]
    assert documents[-1]["usage"]["output_tokens"] == 2


def test_message_stop_is_a_persons_choice() -> None:
    never = Endings(message_stop="never")
    assert told(Ended("tool_use"), Done(), endings=never)[-1]["type"] == "message_delta"
    assert told(Ended("end_turn"), Done(), endings=never)[-1]["type"] == "message_stop"
