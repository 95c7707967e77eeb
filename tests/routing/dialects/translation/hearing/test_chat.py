# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens
from routecodex.routing.values import Dialect
from tests.conftest import LONG
from tests.routing.dialects.answer import streams
from tests.routing.dialects.answer.plain import (
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    Started,
    TextPiece,
    hear_whole,
)
from tests.routing.dialects.translation.hearing.listening import folded, heard, in_three_ways, sse

MAKER = "glm"
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
STARTED = ("started", "chatcmpl-1", "m-1")
WORDS = "Grüße, 世界 😀"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **rest: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {**HEAD, "choices": [choice], **rest}


def entry(
    index: int | None, id: str | None = None, name: str | None = None, arguments: Any = None, **rest: Any
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    told = {"index": index, "id": id, "function": function, **rest}
    return {key: value for key, value in told.items() if value is not None}


def calls(*entries: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries), **rest})


def counted(**usage: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [], "usage": usage}


def seal(**payload: Any) -> Seal:
    return Seal(Dialect.CHAT, MAKER, payload)


def hearer() -> Hearer:
    return Hearer(Dialect.CHAT, MAKER, "round-1")


def hear(*documents: dict[str, Any], done: bool = True) -> list[tuple[Any, ...]]:
    return folded(in_three_ways(hearer, sse(documents, done=done)))


ROLE = chunk({"role": "assistant", "content": ""})
STOP, CALLED = chunk({}, "stop"), chunk({}, "tool_calls")
THOUGHT = seal(reasoning_content=True)
GOOGLE = {"google": {"thought_signature": "c2ln"}}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "gAAA", "index": 1, "format": "openai-responses-v1"}

CASES: dict[str, tuple[list[dict[str, Any]], list[tuple[Any, ...]], str]] = {
    # chunks, blocks, finish reason
    "text": ([ROLE, chunk({"content": WORDS}), chunk({"content": " b"}), STOP], [("text", WORDS + " b")], "stop"),
    "the end with a text": ([chunk({"content": "a"}, "length")], [("text", "a")], "length"),
    "nothing": ([ROLE, STOP], [], "stop"),
    "no reason but [DONE]": ([chunk({"content": "a"})], [("text", "a")], ""),
    "text behind the reason": ([chunk({"content": "a"}, "stop"), chunk({"content": "b"})], [("text", "ab")], "stop"),
    "content as parts": ([chunk({"content": [{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}]}), STOP], [("text", "a")], "stop"),
    "thinking as a part": ([chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]}), chunk({"content": "a"}), STOP], [("thought", "t", None), ("text", "a")], "stop"),
    "think tags stay text": ([chunk({"content": "<think>t</think>a"}), STOP], [("text", "<think>t</think>a")], "stop"),
    "a refusal": ([chunk({"refusal": "I "}), chunk({"refusal": "can't"}), STOP], [("text", "I can't")], "content_filter"),
    "a second choice": ([chunk({"content": "a"}), {**HEAD, "choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "length"}]}, STOP], [("text", "a")], "stop"),
    "the whole message again at the end": ([chunk({"content": "a"}), {**HEAD, "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "a"}}]}], [("text", "a")], "stop"),
    "a message instead of a delta": ([{**HEAD, "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "a"}}]}], [("text", "a")], "stop"),
    "no index": ([{**HEAD, "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}], [("text", "a")], "stop"),
    "reasoning": ([chunk({"reasoning_content": "let "}), chunk({"reasoning_content": "me"}), chunk({"content": "a"}), STOP], [("thought", "let me", THOUGHT), ("text", "a")], "stop"),
    "reasoning alone": ([chunk({"reasoning_content": "t"}), STOP], [("thought", "t", THOUGHT)], "stop"),
    "reasoning under another name": ([chunk({"reasoning": "t", "content": ""}), chunk({"content": "a"}), STOP], [("thought", "t", seal(reasoning=True)), ("text", "a")], "stop"),
    "reasoning in both fields": ([chunk({"reasoning_content": "t", "reasoning": "t"}), chunk({"content": "a"}), STOP], [("thought", "t", THOUGHT), ("text", "a")], "stop"),
    "reasoning, text, reasoning, text": ([chunk({"reasoning_content": "t"}), chunk({"content": "a"}), chunk({"reasoning_content": "u"}), chunk({"content": "b"}), STOP], [("thought", "t", THOUGHT), ("text", "a"), ("thought", "u", THOUGHT), ("text", "b")], "stop"),
    "reasoning and text in one delta": ([chunk({"reasoning_content": "t", "content": "a"}), STOP], [("thought", "t", THOUGHT), ("text", "a")], "stop"),
    "details, sealed": (
        [chunk({"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}]}), chunk({"reasoning": "u", "reasoning_details": [{"type": "reasoning.text", "text": "u", "index": 0}]}), chunk({"reasoning_details": [{"type": "reasoning.text", "signature": "sig", "index": 0}]}), chunk({"content": "a"}), STOP],
        [("thought", "tu", seal(reasoning=True, reasoning_details=[{"type": "reasoning.text", "text": "tu", "signature": "sig", "index": 0}])), ("text", "a")], "stop",
    ),
    "details, not sealed": ([chunk({"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}]}), chunk({"content": "a"}), STOP], [("thought", "t", seal(reasoning=True)), ("text", "a")], "stop"),
    "details alone": ([chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "t", "index": 0}]}), chunk({"content": "a"}), STOP], [("thought", "t", seal(reasoning_details=[{"type": "reasoning.summary", "summary": "t", "index": 0}])), ("text", "a")], "stop"),
    "encrypted alone": ([chunk({"reasoning_details": [ENCRYPTED]}), chunk({"content": "a"}), STOP], [("thought", "", seal(reasoning_details=[ENCRYPTED])), ("text", "a")], "stop"),
    "encrypted, too late": ([chunk({"content": "a"}), chunk({"reasoning_details": [ENCRYPTED]}), chunk({"content": "b"}), STOP], [("text", "ab"), ("thought", "", seal(reasoning_details=[ENCRYPTED]))], "stop"),
    "a picture": ([chunk({"content": "see"}), chunk({"images": [{"type": "image_url", "image_url": {"url": "data:image/webp;base64,aGk="}}]}), STOP], [("text", "see"), ("media", Media("image", "image/webp", "aGk="))], "stop"),
    "a call": ([ROLE, calls(entry(0, "c1", "f", "", type="function")), calls(entry(0, None, None, '{"a"')), calls(entry(0, None, None, ":1}")), CALLED], [("call", "c1", "f", '{"a":1}', None)], "tool_calls"),
    "a call at once": ([calls(entry(0, "c1", "f", '{"a":1}')), CALLED], [("call", "c1", "f", '{"a":1}', None)], "tool_calls"),
    "a call without arguments": ([calls(entry(0, "c1", "f")), CALLED], [("call", "c1", "f", "", None)], "tool_calls"),
    "arguments as an object": ([calls(entry(0, "c1", "f", {"a": [1, "ü"]})), CALLED], [("call", "c1", "f", '{"a":[1,"ü"]}', None)], "tool_calls"),
    "id and name again and again": ([calls(entry(0, "c1", "f", '{"a"')), calls(entry(0, "c1", "f", ":1}")), calls(entry(0, "c1", "f", "")), CALLED], [("call", "c1", "f", '{"a":1}', None)], "tool_calls"),
    "name and id late": ([calls(entry(0, None, None, '{"a"')), calls(entry(0, None, "f", ":")), calls(entry(0, "c1", None, "1}")), CALLED], [("call", "c1", "f", '{"a":1}', None)], "tool_calls"),
    "an id late, the name again": ([calls(entry(0, None, "f", '{"a":')), calls(entry(0, "c1", "f", "1}")), CALLED], [("call", "c1", "f", '{"a":1}', None)], "tool_calls"),
    "no id": ([calls(entry(0, None, "f", '{"a":')), calls(entry(0, None, None, "1}")), CALLED], [("call", "", "f", '{"a":1}', None)], "tool_calls"),
    "no name": ([calls(entry(0, "c1", None, "{}")), CALLED], [], "tool_calls"),
    "two calls": ([calls(entry(0, "c1", "f", "")), calls(entry(0, arguments='{"a":1}')), calls(entry(1, "c2", "g", "")), calls(entry(1, arguments="{}")), CALLED], [("call", "c1", "f", '{"a":1}', None), ("call", "c2", "g", "{}", None)], "tool_calls"),
    "two calls in one delta, one index": ([calls(entry(0, "c1", "f", '{"a":1}'), entry(0, "c2", "f", '{"a":2}')), CALLED], [("call", "c1", "f", '{"a":1}', None), ("call", "c2", "f", '{"a":2}', None)], "tool_calls"),
    "two calls, no index, no ids": ([calls(entry(None, None, "f", '{"a":1}'), entry(None, None, "f", '{"a":2}')), CALLED], [("call", "", "f", '{"a":1}', None), ("call", "", "f", '{"a":2}', None)], "tool_calls"),
    "two calls, one index, no ids": ([calls(entry(0, None, "f", '{"a":1}')), calls(entry(0, None, "g", '{"a":2}')), CALLED], [("call", "", "f", '{"a":1}', None), ("call", "", "g", '{"a":2}', None)], "tool_calls"),
    "calls side by side": ([calls(entry(0, "c1", "f", "")), calls(entry(1, "c2", "g", "")), calls(entry(1, arguments='{"b"')), calls(entry(0, arguments='{"a"')), calls(entry(1, arguments=":2}")), calls(entry(0, arguments=":1}")), CALLED], [("call", "c1", "f", '{"a":1}', None), ("call", "c2", "g", '{"b":2}', None)], "tool_calls"),
    "an empty piece behind the end": ([calls(entry(0, "c1", "f", "{}")), chunk({"content": "a"}), calls(entry(0, "c1", "f", "")), CALLED], [("call", "c1", "f", "{}", None), ("text", "a")], "tool_calls"),
    "text inside a call": ([calls(entry(0, "c1", "f", '{"a"')), chunk({"content": "x"}), calls(entry(0, arguments=":1}")), chunk({"content": "y"}), CALLED], [("call", "c1", "f", '{"a":1}', None), ("text", "xy")], "tool_calls"),
    "the old kind": ([chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": "{}"}}), chunk({}, "function_call")], [("call", "", "f", "{}", None)], "function_call"),
    "a custom call": ([calls({"index": 0, "id": "c1", "type": "custom", "custom": {"name": "p", "input": 'a "b"\n'}}), calls({"index": 0, "custom": {"input": "😀"}}), CALLED], [("call", "c1", "p", '{"input":"a \\"b\\"\\n😀"}', None)], "tool_calls"),
    "a sealed call": ([calls(entry(0, "c1", "f", '{"a"', extra_content=GOOGLE)), calls(entry(0, arguments=":1}")), CALLED], [("call", "c1", "f", '{"a":1}', seal(**{"for": "call", "extra_content": GOOGLE}))], "tool_calls"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("done", (True, False))
def test_a_stream_is_heard(name: str, done: bool) -> None:
    chunks, blocks, word = CASES[name]
    if not done and not word:
        assert not isinstance(heard(hearer(), sse(chunks))[-1], Finished), "neither a reason nor [DONE]"
        return
    assert hear(*chunks, done=done) == [STARTED, *blocks, (Finished(word),)]


@pytest.mark.parametrize("name", CASES)
def test_what_breaks_off_is_never_finished_and_runs_nothing(name: str) -> None:
    chunks = CASES[name][0]
    for most in range(len(chunks)):
        if any(choice["finish_reason"] for document in chunks[:most] for choice in document["choices"]):
            continue
        events = heard(hearer(), sse(chunks[:most]))
        blocks = folded(events)
        assert not any(isinstance(event, Finished) for event in events)
        for _, _, _, arguments, _ in (block for block in blocks if block[0] == "call"):
            assert isinstance(json.loads(arguments), dict)


def test_text_leaves_at_once_and_so_does_the_first_call() -> None:
    one = hearer()
    assert one.hear(json.dumps(ROLE).encode()) == [Started("chatcmpl-1", "m-1")]
    assert one.hear(json.dumps(chunk({"content": "a"})).encode()) == [TextPiece("a")]
    assert one.hear(json.dumps(calls(entry(0, "c1", "f", ""))).encode()) == [CallStarted("c1", "f")]
    assert one.hear(json.dumps(calls(entry(0, arguments='{"a":'))).encode()) == [CallPiece('{"a":')]
    assert one.hear(json.dumps(calls(entry(1, "c2", "g", "{"))).encode()) == []
    assert one.hear(json.dumps(calls(entry(0, arguments="1}"))).encode()) == [
        CallPiece("1}"),
        CallEnded(),
        CallStarted("c2", "g"),
        CallPiece("{"),
    ]


@given(st.data())
@settings(max_examples=5_000 if LONG else 66, deadline=None)
def test_calls_in_any_order_keep_their_arguments(data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=3), min_size=1, max_size=4)
    )
    random_ = random.Random(data.draw(st.integers()))
    waiting: dict[int, list[dict[str, Any]]] = {}
    for index, value in enumerate(texts):
        text = json.dumps(value)
        cuts = sorted(random_.sample(range(len(text) + 1), k=min(3, len(text))))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        waiting[index] = [entry(index, f"c{index}", "f", ""), *(entry(index, arguments=piece) for piece in pieces)]
    chunks = [ROLE]
    while waiting:
        index = random_.choice(list(waiting))
        told = [waiting[index].pop(0)]
        if not waiting[index]:
            del waiting[index]
        chunks.append(calls(*told))
    blocks = folded(heard(hearer(), sse([*chunks, CALLED], done=True)))
    found = {block[1]: json.loads(block[3]) for block in blocks if block[0] == "call"}
    assert found == {f"c{index}": value for index, value in enumerate(texts)}


USAGES: dict[str, tuple[dict[str, Any], Tokens]] = {
    "openai": ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 7}}, Tokens(100, 20, 40, 0, 7)),
    "openrouter": ({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 30}}, Tokens(100, 20, 0, 30)),
    "deepseek": ({"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, Tokens(100, 20, 64)),
    "moonshot": ({"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 10}, Tokens(100, 20, 10)),
    "xai": ({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 150, "completion_tokens_details": {"reasoning_tokens": 30}}, Tokens(100, 50, 0, 0, 30)),
    "nonsense": ({"prompt_tokens": -1, "completion_tokens": "many", "prompt_tokens_details": 3}, Tokens()),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGES)
def test_usage_is_found_wherever_it_stands(name: str) -> None:
    usage, tokens = USAGES[name]
    end = (Finished("stop", tokens),)
    text = chunk({"content": "a"})
    in_choice = {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]}
    for documents in (
        [text, STOP, counted(**usage)],
        [text, {**STOP, "usage": usage}],
        [{**text, "usage": {"prompt_tokens": 1}}, {**STOP, "usage": usage}, {**HEAD, "choices": [], "usage": None}],
        [text, in_choice],
        [text, {**STOP, "x_groq": {"usage": usage}}],
    ):
        for done in (True, False):
            assert hear(*documents, done=done) == [STARTED, ("text", "a"), end]


def test_the_start_tells_what_it_knows() -> None:
    first = {**chunk({"content": "a"}), "usage": {"prompt_tokens": 9, "completion_tokens": 0}}
    assert hearer().hear(json.dumps(first).encode())[0] == Started("chatcmpl-1", "m-1", Tokens(9, 0))
    nameless = {"choices": [{"index": 0, "delta": {"content": "a"}}]}
    assert hearer().hear(json.dumps(nameless).encode())[0] == Started("round-1", "")


def test_azure_begins_with_a_chunk_of_nobody() -> None:
    filters = {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": []}
    assert hear(filters, ROLE, chunk({"content": "a"}), STOP) == [STARTED, ("text", "a"), (Finished("stop"),)]


ERRORS: dict[str, tuple[dict[str, Any], int]] = {
    "an error": ({"error": {"message": "Overloaded", "code": 503}}, 503),
    "beside choices": ({**chunk({"content": ""}, "error"), "error": {"message": "Overloaded", "code": 502}}, 502),
    "in a choice": ({**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"message": "Overloaded", "code": 504}}]}, 504),
    "minimax": ({"id": "x", "choices": None, "base_resp": {"status_code": 1008, "status_msg": "Overloaded"}}, 402),
    "groq": ({**HEAD, "choices": [], "x_groq": {"id": "req_1", "error": "Overloaded"}}, 502),
    "of a type": ({"type": "error", "message": "Overloaded", "code": "rate_limit_exceeded"}, 429),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_stream_breaks_it(name: str) -> None:
    document, status = ERRORS[name]
    blocks = hear(ROLE, chunk({"content": "a"}), calls(entry(0, "c1", "f", '{"a"')), document, chunk({"content": "b"}), STOP)
    assert blocks[:3] == [STARTED, ("text", "a"), ("open call", "c1", "f", '{"a"')]
    (end,) = blocks[3]
    assert isinstance(end, Broken)
    assert (end.error.status, end.error.message) == (status, "Overloaded")
    assert len(blocks) == 4


def test_an_event_named_error_is_one() -> None:
    (end,) = hearer().hear(b'{"what": "ever"}', "error")
    assert isinstance(end, Broken)
    assert end.error.status == 502


def test_what_waits_is_told_when_the_stream_breaks_off() -> None:
    whole, cut = entry(1, "c2", "g", "{}"), entry(2, "c3", "h", '{"a')
    held = [calls(entry(0, "c1", None, '{"a')), chunk({"content": "text"}), calls(whole), calls(cut)]
    assert folded(heard(hearer(), sse(held))) == [STARTED, ("text", "text"), ("call", "c2", "g", "{}", None)]


FIELDS = [
    "index",
    "delta",
    "message",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "name",
    "id",
    "type",
    "text",
    "usage",
    "error",
    "reasoning_details",
    "custom",
    "input",
    "url",
    "reasoning_content",
    "images",
    "image_url",
    "finish_reason",
    "function_call",
    "refusal",
    "extra_content",
]


def test_bytes_that_say_nothing_are_passed_over() -> None:
    one = hearer()
    for data in (
        b"",
        b"not json",
        b"[]",
        b"3",
        b'{"choices": 3}',
        b'{"choices": [3, null, {"delta": 3}]}',
        b'{"choices": [{"delta": {"tool_calls": [1, {"function": 3, "index": []}]}}]}',
    ):
        assert all(isinstance(event, Started) for event in one.hear(data))
    json_like = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
        max_leaves=20,
    )

    @given(st.lists(st.builds(lambda choice: {"choices": [choice]}, json_like), max_size=4))
    @settings(max_examples=5_000 if LONG else 100, deadline=None)
    def nothing_raises(documents: list[dict[str, Any]]) -> None:
        folded(heard(hearer(), sse(documents, done=True)))
        for document in documents:
            folded(hear_whole(Dialect.CHAT, json.dumps(document).encode(), MAKER, "r"))

    nothing_raises()


@pytest.mark.parametrize(
    "name, raw", [(name, raw) for name, dialect, raw, _ in streams.provider_streams() if dialect is Dialect.CHAT]
)
def test_every_form_of_an_event_stream(name: str, raw: bytes) -> None:
    blocks = folded(in_three_ways(hearer, raw))
    arguments = '{"a": "' + streams.WORDS + '"}'
    text = streams.WORDS + "\n\ndata: not an event\n\n"
    assert blocks == [
        ("started", "c", "m"),
        ("thought", streams.WORDS, THOUGHT),
        ("text", text),
        ("call", "t", "n", arguments, None),
        (Finished("tool_calls", Tokens(119, 88, 100)),),
    ]


# --- whole answers ------------------------------------------------------------------------------------------------------


def whole(message: dict[str, Any], finish: str | None = "stop", **rest: Any) -> list[tuple[Any, ...]]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    document = {**HEAD, "object": "chat.completion", "choices": [choice], **rest}
    return folded(hear_whole(Dialect.CHAT, json.dumps(document).encode(), MAKER, "round-1"))


def test_a_whole_answer() -> None:
    called = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    message = {"content": "a", "reasoning_content": "t", "refusal": None, "tool_calls": called}
    assert whole(message, "tool_calls", usage=usage) == [
        STARTED,
        ("thought", "t", THOUGHT),
        ("text", "a"),
        ("call", "c1", "f", "{}", None),
        ("call", "c1", "f", '{"a":1}', None),
        (Finished("tool_calls", Tokens(3, 4)),),
    ]  # fmt: skip
    assert whole({"content": None}) == [STARTED, (Finished("stop"),)]
    assert whole({"content": "a"}, None) == [STARTED, ("text", "a"), (Finished(""),)]
    assert whole({"refusal": "no"}) == [STARTED, ("text", "no"), (Finished("content_filter"),)]
    assert whole({"function_call": {"name": "f", "arguments": "{}"}}, "function_call")[1] == ("call", "", "f", "{}", None)


def test_a_stop_sequence_is_told_where_the_host_tells_it() -> None:
    for field, value, stop in (
        ("stop_reason", "###", "###"),
        ("matched_stop", "END", "END"),
        ("stop_reason", "end_turn", ""),
        ("stop_reason", 7, ""),
    ):
        document = {**HEAD, "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop", field: value}]}
        assert hear_whole(Dialect.CHAT, json.dumps(document).encode(), MAKER, "r")[-1] == Finished("stop", None, stop)


@pytest.mark.parametrize(
    "body",
    (
        b"",
        b"[]",
        b"{}",
        b"nothing",
        b'{"choices": []}',
        b'{"choices": [{"index": 0}]}',
        b'{"id": "x", "object": "chat.completion"}',
    ),
)
def test_no_answer_at_all(body: bytes) -> None:
    assert [type(event) for event in hear_whole(Dialect.CHAT, body, MAKER, "r")] == [Broken] * body.startswith(b"{")


@pytest.mark.parametrize(
    "body", (b'{"error": {"message": "no"}}', b"<html><title>no</title></html>", b'{"code": 1113, "message": "no"}')
)
def test_an_error_where_an_answer_should_be(body: bytes) -> None:
    events: list[Event] = hear_whole(Dialect.CHAT, body, MAKER, "r")
    assert [type(event) for event in events] == [Broken]
