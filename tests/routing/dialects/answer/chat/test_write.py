"""Chunks and events as a Chat client's bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.chat import Reader, Whole, Writer
from routecodex.routing.dialects.answer.events import Block, Chunk, Closed, Counted, Ended, Event, Opened, Piece
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens, ToolName
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer.talks import CHAT, chunk, entry, sse


def writer(**more: Any) -> Writer:
    return Writer(Asked(Endpoint(CHAT), True, "0123", "asked", 1, maker="acme", **more))


def given(document: dict[str, Any], reader: Reader | None = None) -> Chunk:
    return Chunk(sse(document), document, (reader or Reader()).read(document), CHAT)


def documents(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in Events().feed(raw) if event.data != b"[DONE]"]


def deltas(raw: bytes) -> list[dict[str, Any]]:
    return [one["choices"][0]["delta"] for one in documents(raw) if one["choices"]]


def test_what_still_says_what_it_said_leaves_as_it_came() -> None:
    for document in (chunk({"role": "assistant", "content": "a"}), chunk({"tool_calls": [entry(3, "{}", "f", "a")]})):
        one = given(document)
        assert writer().write(one) == one.raw


def test_a_changed_chunk_keeps_its_frame() -> None:
    document = chunk({"content": "a", "vendor": 1}, logprobs_of_the_vendor=[1])
    document["choices"][0]["logprobs"] = {"content": [0.5]}
    one = given(document)
    events = [Piece(event.block, "\n\na") if type(event) is Piece else event for event in one.events]
    [told] = documents(writer().write(one.changed(events)))
    assert told["logprobs_of_the_vendor"] == [1]
    assert told["choices"][0]["logprobs"] == {"content": [0.5]}
    assert told["choices"][0]["delta"] == {"role": "assistant", "content": "\n\na", "vendor": 1}


def test_bytes_that_pass_advance_the_places() -> None:
    reader, out = Reader(), writer()
    out.write(given(chunk({"tool_calls": [entry(0, "{}", "f", "a")]}), reader))
    one = given(chunk({"tool_calls": [entry(0, "{}", "g", "b")]}), reader)
    out.altered = True
    assert deltas(out.write(one))[0]["tool_calls"][0]["index"] == 1


def test_a_later_head_is_the_answers_own() -> None:
    out = writer()
    out.write(given(chunk({"role": "assistant", "content": "a"})))
    out.altered = True
    later = {**chunk({"role": "assistant", "content": "b"}), "id": "chatcmpl-other", "created": 77}
    [told] = documents(out.write(given(later)))
    assert (told["id"], told["created"], told["choices"][0]["delta"]) == ("chatcmpl-9", 9, {"content": "b"})


def test_usage_is_for_those_who_asked() -> None:
    counts = {**chunk({}), "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    assert writer().write(given(counts)) == b""
    assert writer(include_usage=True).write(given(counts)) == sse(counts)


def foreign(kind: Any, name: str = "") -> Block:
    block = Block(kind, {}, id="a" if kind == "call" else "", name=name)
    block.foreign = True
    return block


MADE: dict[str, tuple[list[Event], list[dict[str, Any]]]] = {}
_TEXT, _THOUGHT, _CALL, _PICTURE = foreign("text"), foreign("thought"), foreign("call", "f"), foreign("media")
_THOUGHT.seal = Seal(Dialect.MESSAGES, "acme", {"signature": "x"})
_PICTURE.media = Media("image", "image/png", "iVBO")
MADE["a text"] = ([Opened(_TEXT), Piece(_TEXT, "a")], [{"role": "assistant", "content": ""}, {"content": "a"}])
MADE["a call without arguments"] = (
    [Opened(_CALL), Closed(_CALL)],
    [
        {"role": "assistant", "content": ""},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ],
)
MADE["a picture"] = (
    [Opened(_PICTURE)],
    [
        {"role": "assistant", "content": ""},
        {"images": [{"index": 0, "type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]},
    ],
)


@pytest.mark.parametrize("case", MADE)
def test_made(case: str) -> None:
    events, expected = MADE[case]
    out = writer()
    assert deltas(b"".join(map(out.made, events))) == expected


def test_a_sealed_thought_of_another_dialect() -> None:
    out = writer()
    told = deltas(b"".join(map(out.made, [Opened(_THOUGHT), Piece(_THOUGHT, "hm"), Closed(_THOUGHT)])))
    assert told[1] == {"reasoning_content": "hm"}
    [detail] = told[2]["reasoning_details"]
    assert (detail["type"], detail["text"], detail["index"]) == ("reasoning.text", "hm", 0)


@pytest.mark.parametrize("pieces", [['{"input": "ls"}'], ['{"input":', '"ls"}']])
def test_a_custom_tool_is_told_when_it_is_whole(pieces: list[str]) -> None:
    out, call = writer(), foreign("call", "shell")
    out.begin_round({"shell": ToolName("sh", custom=True)})
    out.name(call)
    events: list[Event] = [Opened(call), *(Piece(call, piece) for piece in pieces), Closed(call)]
    told = deltas(b"".join(map(out.made, events)))
    assert [one["tool_calls"] for one in told if "tool_calls" in one] == [
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]
    ]


def test_the_end_of_a_foreign_answer() -> None:
    out = writer(include_usage=True)
    raw = b"".join(map(out.made, [Counted(Tokens(input=5, output=3, cached=2)), Ended("length")]))
    *_, last, counts = documents(raw)
    assert last["choices"][0]["finish_reason"] == "length"
    assert counts["choices"] == []
    assert (counts["usage"]["prompt_tokens"], counts["usage"]["prompt_tokens_details"]) == (5, {"cached_tokens": 2})


def test_other_choices_of_a_stream_are_put_together_for_json() -> None:
    out, reader = Whole(Asked(Endpoint(CHAT), False, "0123", "asked", 1, maker="acme")), Reader()
    for text in ("a", "b"):
        document = chunk({"content": text})
        document["choices"].append({"index": 1, "delta": {"content": text.upper()}})
        out.write(given(document, reader))
    last = chunk({}, "stop")
    last["choices"].append({"index": 1, "delta": {}, "finish_reason": "length"})
    out.write(given(last, reader))
    told = json.loads(b"".join(out.finish()))
    assert [(one["index"], one["message"]["content"], one["finish_reason"]) for one in told["choices"]] == [
        (0, "ab", "stop"),
        (1, "AB", "length"),
    ]
