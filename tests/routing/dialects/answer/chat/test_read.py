"""What a Chat document says, however loosely its host speaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.chat.history import history
from routecodex.routing.dialects.answer.chat.read import Reader
from routecodex.routing.dialects.answer.said import Content
from tests.routing.dialects.answer.said_in import content_of, read, words
from tests.routing.dialects.answer.talks import chunk, entry

ROLE = {"role": "assistant"}

SAYS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "text": (
        [chunk({**ROLE, "content": ""}), chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop")],
        ["Began", "Field role", "Field content", "Opened text", "text:a", "text:b", "Ended stop"],
    ),
    "everything in one chunk": (
        [chunk({**ROLE, "content": "a"}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 2})],
        ["Began", "Field role", "Opened text", "text:a", "Counted 3 2", "Ended stop"],
    ),
    "thoughts stand before the text, whichever is written first": (
        [chunk({"content": "a", "reasoning_content": "hm"})],
        ["Began", "Opened thought", "thought:hm", "Opened text", "text:a"],
    ),
    "the same thought in two fields": (
        [chunk({"reasoning": "hm", "reasoning_content": "hm"})],
        ["Began", "Field reasoning", "Opened thought", "thought:hm"],
    ),
    "details with their text": (
        [chunk({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]})],
        ["Began", "Opened thought", "thought:hm"],
    ),
    "details beside a plain field": (
        [chunk({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}], "reasoning": "hm"})],
        ["Began", "Opened thought", "Extra thought", "thought:hm"],
    ),
    "content in parts": (
        [chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]})],
        ["Began", "Opened thought", "thought:hm", "Opened text", "text:a"],
    ),
    "a picture": (
        [chunk({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]})],
        ["Began", "Opened media"],
    ),
    "a refusal": ([chunk({"refusal": "no"})], ["Began", "Opened text", "text:no"]),
    "another choice": (
        [{**chunk({}), "choices": [{"index": 1, "delta": {"content": "b"}}]}],
        ["Began", "Aside"],
    ),
    "usage on the choice": (
        [{**chunk({}), "choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 1, "completion_tokens": 2}}]}],
        ["Began", "Counted 1 2"],
    ),
    "nothing": ([{"choices": []}], ["Field "]),
    "an error": ([{"error": {"message": "no", "code": 503}}], ["Failed 503"]),
    "an error beside a good chunk": ([chunk({"content": "a"}, error={"message": ""})], ["Began", "Opened text", "text:a"]),
}


@pytest.mark.parametrize("case", SAYS)
def test_says(case: str) -> None:
    documents, expected = SAYS[case]
    assert read(Reader(), *documents) == expected


CALLS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "interleaved": (
        [[entry(0, "", "f", "a")], [entry(1, "", "g", "b")], [entry(0, "[0]")], [entry(1, "[1]")]],
        [("a", "f", "[0]"), ("b", "g", "[1]")],
    ),
    "without an index": (
        [[entry(None, "[0]", "f", "a")], [entry(None, "[1]", "g", "b")]],
        [("a", "f", "[0]"), ("b", "g", "[1]")],
    ),
    "all on one index, with ids": (
        [[entry(0, '{"x":1}', "f", "a")], [entry(0, '{"x":2}', "f", "b")]],
        [("a", "f", '{"x":1}'), ("b", "f", '{"x":2}')],
    ),
    "all on one index, without ids": (
        [[entry(0, '{"x":1}', "f")], [entry(0, '{"x":2}', "g")]],
        [("", "f", '{"x":1}'), ("", "g", '{"x":2}')],
    ),
    "all on one index, without ids, in pieces": (
        [[entry(0, "", "f")], [entry(0, '{"x":1}')], [entry(0, "", "g")], [entry(0, '{"x":2}')]],
        [("", "f", '{"x":1}'), ("", "g", '{"x":2}')],
    ),
    "name and id repeated": ([[entry(0, "{", "f", "a")], [entry(0, "}", "f", "a")]], [("a", "f", "{}")]),
    "name and id late": ([[entry(0, "")], [entry(0, "", "f")], [entry(0, "{}", "", "a")]], [("a", "f", "{}")]),
    "arguments as an object": (
        [[{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]],
        [("a", "f", '{"x":1}')],
    ),
    "a custom tool": (
        [
            [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "l"}}],
            [{"index": 0, "custom": {"input": "s"}}],
        ],
        [("a", "f", '{"input":"ls"}')],
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls(case: str) -> None:
    """In what is said, and in the history: both know each call by its own id, name and arguments."""
    deltas, expected = CALLS[case]
    content = content_of(Reader(), *(chunk({"tool_calls": entries}) for entries in deltas))
    assert [(call.id, call.name, call.arguments) for _, call in content.calls] == expected
    told = history(content)[0]["tool_calls"]
    assert isinstance(told, list)
    for one, (id, name, arguments) in zip(told, expected, strict=True):
        kind = one["type"] if "custom" in one else "function"
        body = one[kind]
        written = {"input": body["input"]} if kind == "custom" else json.loads(body["arguments"])
        assert (one["id"], body["name"]) == (id, name)
        assert written == json.loads(arguments)


def test_calls_that_a_repeated_message_alone_tells() -> None:
    calls = [entry(None, '{"x":1}', "f", "a"), entry(None, '{"x":2}', "g", "b")]
    message = {"role": "assistant", "content": "so", "tool_calls": calls}
    last = chunk({}, "tool_calls")
    last["choices"][0]["message"] = message
    content = content_of(Reader(), chunk({"content": "so"}), last)
    assert content.text == "so"
    assert [(call.id, call.name, call.arguments) for _, call in content.calls] == [("a", "f", '{"x":1}'), ("b", "g", '{"x":2}')]
    told = content_of(Reader(), chunk({"content": "so"}), *(chunk({"tool_calls": [one]}) for one in calls), last)
    assert [call.id for _, call in told.calls] == ["a", "b"]


def test_a_whole_answer_says_what_its_stream_says() -> None:
    message = {"role": "assistant", "content": "a", "reasoning": "hm", "tool_calls": [entry(None, "{}", "f", "a")]}
    whole = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    told = words(Reader().read_whole(whole))
    assert [one for one in told if not one.startswith("Field")] == [
        "Began",
        "Opened thought",
        "thought:hm",
        "Opened text",
        "text:a",
        "Opened call",
        "call:{}",
        "Ended tool_calls",
        "Done",
    ]


@pytest.mark.parametrize("document", [{}, {"choices": 5}, {"choices": [{"message": 5}]}, {"choices": [5]}, {"error": "no"}])
def test_what_is_no_answer_has_failed(document: dict[str, Any]) -> None:
    told = words(Reader().read_whole(document))
    assert len(told) == 1
    assert told[0].startswith("Failed")


def test_what_a_provider_needs_to_get_a_thought_back() -> None:
    reader = Reader("acme")
    content = content_of(
        reader,
        chunk({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]}),
    )
    seal = next(iter(content.blocks)).seal
    assert seal is not None
    details = [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "sig"}]
    assert seal.payload == {"reasoning": True, "reasoning_details": details}
    assert history(content) == (), "a history holds no message of thinking alone"


def test_fields_that_nobody_knows_are_kept_for_the_history() -> None:
    content = content_of(Reader(), chunk({"content": "a", "vendor": {"x": 1}}), chunk({"vendor": {"y": 2}, "number": 3}))
    assert history(content) == ({"role": "assistant", "content": "a", "vendor": {"x": 1, "y": 2}, "number": 3},)
    assert isinstance(content, Content)
