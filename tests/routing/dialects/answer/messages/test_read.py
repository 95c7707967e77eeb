"""What a Messages document says, and what stays of it in a history."""

from __future__ import annotations

from typing import Any

import pytest

from routecodex.routing.dialects.answer.messages.history import history
from routecodex.routing.dialects.answer.messages.read import Reader
from routecodex.routing.values import JsonObject
from tests.routing.dialects.answer.said_in import content_of, read, words


def start(index: int, **block: Any) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **rest: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **rest}}


def stop(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


SAYS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "a text": (
        [start(0, type="text", text=""), delta(0, "text_delta", text="a"), stop(0)],
        ["Opened text", "text:a", "Closed text"],
    ),
    "a text that is all in its start": ([start(0, type="text", text="a")], ["Opened text", "text:a"]),
    "a thought and its signature": (
        [
            start(0, type="thinking", thinking=""),
            delta(0, "thinking_delta", thinking="hm"),
            delta(0, "signature_delta", signature="s"),
        ],
        ["Opened thought", "thought:hm", "Extra thought"],
    ),
    "a call": (
        [start(1, type="tool_use", id="t", name="f", input={}), delta(1, "input_json_delta", partial_json="{}"), stop(1)],
        ["Opened call", "call:{}", "Closed call"],
    ),
    "a call with its input in its start": (
        [start(1, type="tool_use", id="t", name="f", input={"a": 1}), {"type": "content_block_stop", "index": 1}],
        ["Opened call", 'call:{"a":1}', "Closed call"],
    ),
    "a call that the provider runs": ([start(0, type="server_tool_use", id="s", name="web_search", input={})], ["Opened trace"]),
    "a call that a provider's program makes": (
        [start(0, type="tool_use", id="s", name="f", input={}, caller={"type": "code_execution_20250825", "tool_id": "s"})],
        ["Opened trace"],
    ),
    "what nobody knows, with a text": (
        [start(0, type="odd", text=""), delta(0, "text_delta", text="a")],
        ["Opened text", "text:a"],
    ),
    "a delta whose block was never started": ([delta(3, "text_delta", text="a")], ["Opened text", "text:a"]),
    "a block that begins again where one is open": (
        [start(0, type="text", text=""), start(0, type="text", text="")],
        ["Opened text", "Closed text", "Opened text"],
    ),
    "the end": (
        [
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ],
        ["Counted 0 3", "Ended end_turn", "Done"],
    ),
    "counts alone": ([{"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}}], ["Counted 0 3"]),
    "an error": ([{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}], ["Failed 529"]),
    "ping": ([{"type": "ping"}], []),
}


@pytest.mark.parametrize("case", SAYS)
def test_says(case: str) -> None:
    documents, expected = SAYS[case]
    assert read(Reader(), *documents) == expected


def test_counts_are_of_all_so_far() -> None:
    reader = Reader()
    content = content_of(
        reader,
        {
            "type": "message_start",
            "message": {"id": "m", "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1}},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 0, "output_tokens": 0}},
    )
    assert (content.usage.input, content.usage.output) == (8, 0)


def test_a_whole_message_says_what_its_stream_says() -> None:
    told = words(
        Reader().read_whole(
            {
                "id": "m",
                "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}],
                "stop_reason": "tool_use",
            }
        )
    )
    assert told == ["Began", "Opened text", "text:a", "Closed text", "Opened call", "Closed call", "Ended tool_use", "Done"]


@pytest.mark.parametrize("document", [{}, {"content": 5}, {"content": [], "error": {"message": "no"}}, {"type": "error"}])
def test_what_is_no_answer_has_failed(document: dict[str, Any]) -> None:
    told = words(Reader().read_whole(document))
    assert len(told) == 1
    assert told[0].startswith("Failed")


def test_the_history_keeps_signatures_citations_and_what_is_not_known() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "title": "t"}]}
    content = content_of(
        Reader(),
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="sig"),
        stop(0),
        start(1, type="server_tool_use", id="s", name="web_search", input={}),
        delta(1, "input_json_delta", partial_json='{"query":"q"}'),
        stop(1),
        start(2, **found),
        stop(2),
        start(3, type="text", text=""),
        delta(3, "citations_delta", citation={"title": "t"}),
        delta(3, "text_delta", text="a"),
        stop(3),
        start(4, type="tool_use", id="t", name="f", input={}),
        stop(4),
        start(5, type="text", text="  "),
    )
    assert history(content) == (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
                found,
                {"type": "text", "text": "a", "citations": [{"title": "t"}]},
                {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            ],
        },
    )
