# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens
from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import streams
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    Hearer,
    Started,
    TextPiece,
    hear_whole,
)
from tests.routing.dialects.answer.rounds import Spoken, spoken
from tests.routing.dialects.translation.hearing.listening import folded, heard, in_three_ways, sse

MAKER = "openai"
Documents = list[dict[str, Any]]
STARTED = ("started", "resp_1", "m-1")
TOKENS = Tokens(100, 10, 7, 0, 2)
TEXT, MORE, THOUGHT = ("text", "Grüße, 世界 😀 one"), ("text", "two"), ("thinking", "let me see")
TOOL, OTHER, CUSTOM = ("tool", '{"cmd": "ls -la"}'), ("tool", '{"cmd": "pwd"}'), ("custom", '*** Begin "Patch"\n😀')
SEARCH, REFUSAL = ("server", "what"), ("refusal", "I can't do that")


def hearer() -> Hearer:
    return Hearer(Dialect.RESPONSES, MAKER, "round-1")


def seal(number: int, text: str, **rest: Any) -> Seal:
    item = {"id": f"rs_1_{number}", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": f"gAAAA1_{number}"}
    return Seal(Dialect.RESPONSES, MAKER, {**item, **rest})


def expected(round_: Spoken) -> list[tuple[Any, ...]]:
    blocks: list[tuple[Any, ...]] = []
    for place, (kind, text) in enumerate(round_.parts):
        match kind:
            case "text" | "refusal":
                blocks.append(("text", text))
            case "thinking":
                blocks.append(("thought", text, seal(place, text)))
            case "custom":
                written = json.dumps({"input": text}, ensure_ascii=False, separators=(",", ":"))
                blocks.append(("call", f"call_1_{place}", "apply_patch", written, None))
            case "tool":
                blocks.append(("call", f"call_1_{place}", "exec_command", text, None))
    word = round_.finish or ("content_filter" if any(kind == "refusal" for kind, _ in round_.parts) else "completed")
    return [STARTED, *blocks, (Finished(word, TOKENS),)]


ROUNDS: dict[str, Spoken] = {
    "text": spoken(TEXT),
    "nothing": spoken(),
    "two messages": spoken(TEXT, MORE),
    "reasoning, text": spoken(THOUGHT, TEXT),
    "reasoning, call": spoken(THOUGHT, TOOL),
    "reasoning again": spoken(THOUGHT, TEXT, ("thinking", "again"), TOOL),
    "two calls": spoken(TEXT, TOOL, OTHER),
    "a custom call": spoken(CUSTOM, TOOL),
    "text behind a call": spoken(TEXT, TOOL, MORE),
    "a search is passed over": spoken(THOUGHT, SEARCH, TEXT),
    "a refusal": spoken(REFUSAL),
    "too long": spoken(TEXT, finish="max_output_tokens"),
    "filtered": spoken(TEXT, finish="content_filter"),
}

_DELTA = (".delta", ".part.added", "_part.added", "part.done", "text.done", "arguments.done", "input.done", "refusal.done")


def _as_sent(documents: Documents) -> Documents:
    return documents


def _without_deltas(documents: Documents) -> Documents:
    return [one for one in documents if not one["type"].endswith(_DELTA)]


def _without_added(documents: Documents) -> Documents:
    return [one for one in documents if not one["type"].endswith((".added", "created", "in_progress"))]


def _without_parts_and_dones(documents: Documents) -> Documents:
    return [
        one
        for one in documents
        if not one["type"].endswith(("part.added", "part.done", "text.done", "arguments.done", "input.done"))
    ]


def _done_items_alone(documents: Documents) -> Documents:
    return [one for one in documents if one["type"].endswith(("item.done", "created")) or "response" in one]


def _only_the_end(documents: Documents) -> Documents:
    return documents[-1:]


def _half_of_every_delta(documents: Documents) -> Documents:
    """The second half of what each item said never came in deltas."""
    seen: dict[Any, int] = {}
    kept = []
    for one in documents:
        if one["type"].endswith(".delta") and "summary" not in one["type"]:
            seen[one["output_index"]] = seen.get(one["output_index"], 0) + 1
            if seen[one["output_index"]] > 2:
                continue
        kept.append(one)
    return kept


def _bare(documents: Documents) -> Documents:
    """Without the fields that loose hosts forget."""
    bare = [
        {
            name: value
            for name, value in one.items()
            if name not in ("sequence_number", "logprobs", "content_index", "summary_index")
        }
        for one in documents
    ]
    for one in bare:
        if "response" in one and one["type"] == "response.completed":
            one["response"] = {name: value for name, value in one["response"].items() if name != "status"}
    return bare


def _in_one_place(documents: Documents) -> Documents:
    """A gateway that has one number for all items."""
    return [one | {"output_index": 0} if "output_index" in one else one for one in documents]


def _done_in_one_place(documents: Documents) -> Documents:
    return _in_one_place(_done_items_alone(documents))


def _calls_at_the_end_alone(documents: Documents) -> Documents:
    """vLLM parses calls out of the whole text."""
    calls = [one["item"]["id"] for one in documents if one["type"].endswith("item.added") and "call_id" in one["item"]]
    return [one for one in documents if "response" in one or one.get("item_id", one.get("item", {}).get("id")) not in calls]


def _numbered_when_announced_alone(documents: Documents) -> Documents:
    return [{name: value for name, value in one.items() if name != "output_index" or "item" in one} for one in documents]


def _first_words_with_the_part(documents: Documents) -> Documents:
    """Some gateway announces a part that has begun already."""
    kept: Documents = []
    for before, one in pairwise([{"type": ""}, *documents]):
        if one["type"] == "response.output_text.delta" and before["type"] == "response.content_part.added":
            kept[-1] = before | {"part": before["part"] | {"text": one["delta"]}}
        else:
            kept.append(one)
    return kept


FORMS: tuple[Callable[[Documents], Documents], ...] = (
    _as_sent, _without_deltas, _without_added, _without_parts_and_dones, _done_items_alone, _only_the_end, _half_of_every_delta, _bare,
    _in_one_place, _done_in_one_place, _numbered_when_announced_alone, _first_words_with_the_part,
)  # fmt: skip


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_is_heard_whatever_its_host_leaves_out(name: str, form: Callable[[Documents], Documents]) -> None:
    documents = form(openai.responses_documents(ROUNDS[name], 1))
    blocks = folded(in_three_ways(hearer, sse(documents, named=True)))
    if not any("response" in one for one in documents[:-1]) and len(documents) > 1:
        assert blocks[0] == ("started", "round-1", ""), "nobody said who answers"
        blocks[0] = STARTED
    assert blocks == expected(ROUNDS[name])


@pytest.mark.parametrize("name", [name for name, round_ in ROUNDS.items() if round_.parts[-1:] != (MORE,)])
def test_calls_that_stand_in_the_last_event_alone_are_heard(name: str) -> None:
    documents = _calls_at_the_end_alone(openai.responses_documents(ROUNDS[name], 1))
    assert folded(in_three_ways(hearer, sse(documents, named=True))) == expected(ROUNDS[name])


def test_calls_that_were_heard_under_other_numbers_and_ids_are_not_heard_again() -> None:
    documents = openai.responses_documents(spoken(THOUGHT, TEXT, TOOL, OTHER), 1)
    *events, last = documents
    behind: Documents = [one | {"output_index": one["output_index"] + 3} if "output_index" in one else one for one in events]
    output = [
        item | ({"call_id": f"another_{item['call_id']}", "id": ""} if "call_id" in item else {})
        for item in last["response"]["output"]
    ]
    told = [*behind, last | {"response": last["response"] | {"output": output}}]
    assert folded(heard(hearer(), sse(told))) == expected(spoken(THOUGHT, TEXT, TOOL, OTHER))
    missing = [one for one in told if one.get("output_index") != 6]
    calls = [block for block in folded(heard(hearer(), sse(missing))) if block[0] == "call"]
    assert [(id, arguments) for _, id, _, arguments, _ in calls] == [("call_1_2", TOOL[1]), ("another_call_1_3", OTHER[1])]


def test_a_call_that_is_done_twice_is_one() -> None:
    """Its own id is another in each event of some hosts; the call's is not."""
    documents = openai.responses_documents(spoken(TEXT, TOOL), 1)
    again = [one for one in documents if one["type"].endswith("item.done")][-1]
    told = [*documents[:-1], again | {"item": again["item"] | {"id": "fc_another"}}, documents[-1]]
    assert folded(heard(hearer(), sse(told))) == expected(spoken(TEXT, TOOL))


def test_a_message_that_stands_in_the_last_event_alone_is_heard() -> None:
    documents = openai.responses_documents(spoken(THOUGHT, TEXT), 1)
    told = [one for one in documents if one.get("output_index") != 1]
    assert folded(heard(hearer(), sse(told))) == expected(spoken(THOUGHT, TEXT))
    unnumbered = [{name: value for name, value in one.items() if name != "output_index"} for one in told]
    assert folded(heard(hearer(), sse(unnumbered))) == expected(spoken(THOUGHT, TEXT))


def test_calls_in_one_place_that_grow_side_by_side() -> None:
    documents = openai.responses_documents(spoken(TOOL, OTHER), 1)
    first, second = ([one | {"output_index": 0} for one in documents if one.get("output_index") == at] for at in (0, 1))
    mixed = [one for pair in zip(first, second, strict=False) for one in pair]
    rest = [*first[len(second) :], *second[len(first) :]]
    assert folded(heard(hearer(), sse([*documents[:2], *mixed, *rest, documents[-1]]))) == expected(spoken(TOOL, OTHER))


@pytest.mark.parametrize("name", ROUNDS)
def test_a_whole_answer_is_the_same(name: str) -> None:
    assert folded(hear_whole(Dialect.RESPONSES, openai.responses_json(ROUNDS[name], 1), MAKER, "r")) == expected(ROUNDS[name])


@pytest.mark.parametrize("name", ROUNDS)
def test_what_breaks_off_is_never_finished_and_runs_nothing(name: str) -> None:
    documents = openai.responses_documents(ROUNDS[name], 1)
    for most in range(len(documents)):
        events = heard(hearer(), sse(documents[:most]))
        assert not any(isinstance(event, Finished) for event in events)
        for _, _, _, arguments, _ in (block for block in folded(events) if block[0] == "call"):
            assert isinstance(json.loads(arguments), dict)


def test_names_of_events_may_stand_outside_or_inside_alone() -> None:
    documents = openai.responses_documents(ROUNDS["reasoning again"], 1)
    inside = sse(documents, done=True)
    outside = b"".join(
        f"event: {one.pop('type')}\n".encode() + b"data: " + json.dumps(one).encode() + b"\n\n" for one in map(dict, documents)
    )
    assert folded(heard(hearer(), inside)) == folded(heard(hearer(), outside)) == expected(ROUNDS["reasoning again"])


@given(st.data())
@settings(max_examples=5_000 if LONG else 50, deadline=None)
def test_items_side_by_side_are_told_one_after_another(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from((TEXT, MORE, THOUGHT, TOOL, OTHER, CUSTOM, SEARCH)), min_size=1, max_size=5))
    documents = openai.responses_documents(spoken(*parts), 1)
    random_ = random.Random(data.draw(st.integers()))
    queues: dict[int, Documents] = {}
    for one in documents[2:-1]:
        queues.setdefault(one["output_index"], []).append(one)
    mixed = [queue.pop(0) for queue in queues.values()]  # items begin in order
    while any(queues.values()):
        mixed.append(random_.choice([queue for queue in queues.values() if queue]).pop(0))
    raw = sse([*documents[:2], *mixed, documents[-1]])
    assert folded(heard(hearer(), raw)) == expected(spoken(*parts))


def test_text_leaves_at_once_and_a_message_behind_another_is_another_text() -> None:
    one = hearer()
    told = [
        one.hear(json.dumps(document).encode())
        for document in openai.responses_documents(spoken(("text", "abcd"), ("text", "ef")), 1)
    ]
    flat: list[Event] = [event for events in [*told, one.close()] for event in events]
    assert told[4] == [TextPiece("abcd")]
    assert flat == [Started("resp_1", "m-1"), TextPiece("abcd"), BlockEnded(), TextPiece("ef"), Finished("completed", TOKENS)]


def _item(kind: str, index: int = 0, **rest: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": {"type": kind, **rest}}


def _added(kind: str, index: int = 0, **rest: Any) -> dict[str, Any]:
    return {**_item(kind, index, **rest), "type": "response.output_item.added"}


def _summary(text: str, part: int, index: int = 0, kind: str = "reasoning_summary_text") -> dict[str, Any]:
    at = {"summary_index": part} if "summary" in kind else {"content_index": part}
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **at}


def blocks(*documents: dict[str, Any]) -> list[tuple[Any, ...]]:
    end = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}
    return folded(in_three_ways(hearer, sse([{"type": "response.created", "response": {"id": "resp_1"}}, *documents, end])))[1:-1]


def test_a_call_ends_with_its_item_and_not_later() -> None:
    one = hearer()
    documents = openai.responses_documents(spoken(TOOL, OTHER), 1)
    told = [[type(event) for event in one.hear(json.dumps(document).encode())] for document in documents]
    ends = [place for place, document in enumerate(documents) if document["type"] == "response.output_item.done"]
    assert [place for place, events in enumerate(told) if CallEnded in events] == ends


def test_the_next_item_leaves_at_once_though_nobody_ends_the_first() -> None:
    one = hearer()
    documents = openai.responses_documents(spoken(TEXT, TOOL, MORE), 1)
    told: list[Event] = []
    for document in documents[:-1]:
        if document["type"] != "response.output_item.done":
            told += one.hear(json.dumps(document).encode())
    assert folded(told)[1:] == [TEXT, ("call", "call_1_1", "exec_command", TOOL[1], None), MORE]


def test_what_no_event_told_is_told_by_the_last_one() -> None:
    documents = [one for one in openai.responses_documents(spoken(THOUGHT, TEXT, TOOL), 1) if not one["type"].endswith("done")]
    short = [one for one in documents if not one["type"].endswith(".delta") or one["delta"] in ("let ", "Grüß")]
    for told in (documents, short):
        assert folded(in_three_ways(hearer, sse(told))) == expected(spoken(THOUGHT, TEXT, TOOL))


def test_parts_of_a_summary_have_a_blank_line_between_them() -> None:
    told = [_summary("a", 0), _summary("b", 0), _summary("c", 1)]
    assert blocks(_added("reasoning"), *told, _item("reasoning", summary=[])) == [("thought", "ab\n\nc", None)]
    summary = [{"type": "summary_text", "text": text} for text in ("ab", "c")]
    whole = {"summary": summary, "encrypted_content": "gAAA", "id": "rs_1", "status": "completed"}
    kept = Seal(Dialect.RESPONSES, MAKER, {"summary": summary, "encrypted_content": "gAAA", "id": "rs_1"})
    assert blocks(_added("reasoning"), _item("reasoning", **whole)) == [("thought", "ab\n\nc", kept)]
    assert blocks(_added("reasoning", encrypted_content="gA"), *told, _item("reasoning", **whole)) == [
        ("thought", "ab\n\nc", kept)
    ]


def test_open_reasoning_is_a_thought_and_goes_back_as_it_came() -> None:
    content = [{"type": "reasoning_text", "text": "ab"}]
    told = [_summary("a", 0, kind="reasoning_text"), _summary("b", 0, kind="reasoning_text")]
    kept = Seal(Dialect.RESPONSES, MAKER, {"summary": [], "id": "rs_1", "content": content})
    assert blocks(_added("reasoning"), *told, _item("reasoning", id="rs_1", summary=[], content=content)) == [
        ("thought", "ab", kept)
    ]


def test_reasoning_without_anything_in_it_is_nothing() -> None:
    assert blocks(_added("reasoning", id="rs_1"), _item("reasoning", id="rs_1", summary=[])) == []
    sealed = Seal(Dialect.RESPONSES, MAKER, {"summary": [], "id": "rs_1", "encrypted_content": "gAAA"})
    assert blocks(_added("reasoning"), _item("reasoning", id="rs_1", summary=[], encrypted_content="gAAA")) == [
        ("thought", "", sealed)
    ]


def test_parts_of_one_message_are_one_text() -> None:
    parts = [
        {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}]},
        {"type": "output_text", "text": "b"},
    ]
    assert blocks(_added("message"), _item("message", content=parts)) == [("text", "ab")]


def test_a_call_whose_name_comes_late() -> None:
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":1}'}
    done = _item("function_call", call_id="c1", name="f", arguments='{"a":1}')
    assert blocks(_added("function_call"), delta, done) == [("call", "c1", "f", '{"a":1}', None)]
    assert blocks(_added("function_call", call_id="c1"), delta, done) == [("call", "c1", "f", '{"a":1}', None)]
    named = {"type": "response.function_call_arguments.done", "output_index": 0, "name": "f", "arguments": '{"a":1}'}
    assert blocks(_added("function_call", call_id="c1"), delta, named) == [("call", "c1", "f", '{"a":1}', None)]
    assert blocks(_item("function_call", id="fc_1", name="f", arguments={"a": 1})) == [("call", "fc_1", "f", '{"a":1}', None)]


def test_items_without_indexes() -> None:
    def bare(document: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in document.items() if name not in ("output_index", "item_id")}

    parts = [TEXT, TOOL, OTHER]
    documents = [bare(one) for one in openai.responses_documents(spoken(*parts), 1)]
    assert folded(heard(hearer(), sse([one for one in documents if "content" not in one["type"]]))) != []
    events = heard(
        hearer(),
        sse(
            [
                bare(_added("function_call", call_id="c1", name="f")),
                bare(_item("function_call", call_id="c1", name="f", arguments="{}")),
                bare(_added("function_call", call_id="c2", name="g")),
                bare(_item("function_call", call_id="c2", name="g", arguments="{}")),
            ]
        ),
    )
    assert [event for event in events if isinstance(event, CallStarted)] == [CallStarted("c1", "f"), CallStarted("c2", "g")]


def test_a_picture_is_shown() -> None:
    done = _item("image_generation_call", id="ig_1", status="completed", result="aGk=", output_format="webp")
    assert blocks(_added("image_generation_call", id="ig_1"), done) == [("media", Media("image", "image/webp", "aGk="))]


BROKEN: dict[str, tuple[dict[str, Any], int, str]] = {
    "failed": ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "Overloaded"}}}, 500, "server_error"),
    "failed, no reason": ({"type": "response.failed", "response": {"status": "failed"}}, 502, "UPSTREAM_ERROR"),
    "cancelled": ({"type": "response.cancelled", "response": {"status": "cancelled"}}, 502, "UPSTREAM_ERROR"),
    "error": ({"type": "error", "code": "rate_limit_exceeded", "message": "Overloaded", "param": None}, 429, "rate_limit_exceeded"),
    "error inside": ({"type": "error", "error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "Overloaded"}}, 400, "context_length_exceeded"),
    "error of no type": ({"error": {"code": 503, "message": "Overloaded"}}, 503, "HTTP_503"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_an_error_breaks_the_stream(name: str) -> None:
    document, status, code = BROKEN[name]
    before = [*openai.responses_documents(spoken(TEXT), 1)[:-1], _added("function_call", 1, call_id="c1", name="f")]
    delta = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a'}
    told = folded(heard(hearer(), sse([*before, delta, document, *openai.responses_documents(spoken(TEXT), 1)])))
    assert told[:-1] == [STARTED, TEXT, ("open call", "c1", "f", '{"a')]
    (end,) = told[-1]
    assert isinstance(end, Broken)
    assert (end.error.status, end.error.code) == (status, code)


WHOLE_ERRORS = (
    b'{"error": {"message": "no"}}',
    b'{"object": "response", "status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []}',
    b'{"object": "response", "status": "failed", "error": null, "output": []}',
    b'{"object": "response", "status": "cancelled", "output": []}',
    b'{"object": "response", "status": "in_progress", "output": []}',
    b"<html><title>no</title></html>",
)


@pytest.mark.parametrize("body", WHOLE_ERRORS)
def test_a_whole_answer_that_is_none(body: bytes) -> None:
    assert [type(event) for event in hear_whole(Dialect.RESPONSES, body, MAKER, "r")] == [Broken]


@pytest.mark.parametrize("body", (b"", b"[]", b"{}", b"nothing", b'{"object": "response", "status": "completed"}'))
def test_no_answer_at_all(body: bytes) -> None:
    assert [type(event) for event in hear_whole(Dialect.RESPONSES, body, MAKER, "r")] == [Broken] * body.startswith(b"{")


def test_nothing_from_outside_raises() -> None:
    kinds = [
        "response." + kind
        for kind in [
            "created",
            "output_item.added",
            "output_item.done",
            "content_part.done",
            "output_text.delta",
            "output_text.done",
            "refusal.done",
            "reasoning_summary_text.delta",
            "reasoning_text.delta",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "custom_tool_call_input.done",
            "completed",
            "incomplete",
            "failed",
        ]
    ]
    fields = [
        "output_index",
        "item_id",
        "item",
        "content_index",
        "summary_index",
        "delta",
        "text",
        "part",
        "response",
        "output",
        "usage",
        "status",
        "arguments",
        "input",
        "name",
        "call_id",
        "id",
        "type",
        "content",
        "summary",
        "encrypted_content",
        "refusal",
        "result",
    ]
    words = st.sampled_from(
        ["message", "reasoning", "function_call", "custom_tool_call", "output_text", "refusal", "image_generation_call", "f"]
    )
    json_like = st.recursive(
        st.none() | st.integers(0, 3) | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(fields), inner, max_size=6),
        max_leaves=15,
    )
    document = st.builds(
        lambda kind, rest: {**rest, "type": kind},
        st.sampled_from(kinds),
        st.dictionaries(st.sampled_from(fields), json_like, max_size=6),
    )

    @given(st.lists(document, max_size=6))
    @settings(max_examples=5_000 if LONG else 133, deadline=None)
    def nothing_raises(documents: Documents) -> None:
        folded(heard(hearer(), sse(documents)))
        for one in documents:
            folded(hear_whole(Dialect.RESPONSES, json.dumps({**one, "output": [one]}).encode(), MAKER, "r"))

    nothing_raises()


RECORDED = [(name, raw) for name, dialect, raw, _ in streams.provider_streams() if dialect is Dialect.RESPONSES]


@pytest.mark.parametrize("name, raw", RECORDED)
def test_every_form_of_an_event_stream(name: str, raw: bytes) -> None:
    assert folded(in_three_ways(hearer, raw)) == [
        ("started", "resp_1", ""),
        ("text", streams.WORDS),
        (Finished("completed", Tokens(119, 88, 100)),),
    ]
