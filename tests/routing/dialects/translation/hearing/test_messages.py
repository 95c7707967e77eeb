from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.translation.neutral import Seal, Tokens
from routecodex.routing.dialects.translation.opaque import wrap
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    hear_whole,
)
from tests.routing.dialects.answer.rounds import spoken
from tests.routing.dialects.translation import coming_down as down

Documents = list[dict[str, Any]]


def _start(usage: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], **rest}
    return {"type": "message_start", "message": {**message, "usage": usage or {"input_tokens": 3, "output_tokens": 1}}}


def _block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> Documents:
    return [_open(index, block), *(_delta(index, delta) for delta in deltas), _stop(index)]


def _open(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def _text(piece: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": piece}


def _json(piece: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": piece}


def _tool(id: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **rest}


def _end(word: str | None = "end_turn", **rest: Any) -> Documents:
    return [
        {"type": "message_delta", "delta": {"stop_reason": word, **rest}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


TEXT = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "title": "t"}]}
CITATION = {"type": "citations_delta", "citation": {"type": "web_search_result_location", "cited_text": "c"}}


def _signed(word: str) -> Seal:
    return Seal(Dialect.MESSAGES, "acme", {"signature": word})


OTHERS = wrap(Seal(Dialect.GEMINI, "else", {"thoughtSignature": "Eg=="}))

CASES: dict[str, tuple[Documents, list[Event]]] = {
    # what stands between the start and the end → its events
    "text": (_block(0, TEXT, _text("Grüße, "), _text("世界")), [TextPiece("Grüße, "), TextPiece("世界")]),
    "text in the start": (_block(0, {"type": "text", "text": "all"}), [TextPiece("all")]),
    "text without anything": (_block(0, TEXT, _text("")), []),
    "pings and what nobody knows": (
        [{"type": "ping"}, *_block(0, TEXT, _text("a"), {"type": "glow_delta", "glow": 1}), {"type": "billing", "error": None}],
        [TextPiece("a")],
    ),
    "citations": (_block(0, TEXT, _text("a"), CITATION, _text("b")), [TextPiece("a"), TextPiece("b")]),
    "two texts": (
        _block(0, TEXT, _text("a")) + _block(1, TEXT, _text("b")),
        [TextPiece("a"), BlockEnded(), TextPiece("b")],
    ),
    "signed thinking": (
        _block(0, THINKING, {"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "Eu+/=="}),
        [ThoughtPiece("hm"), ThoughtEnded(_signed("Eu+/=="))],
    ),
    "thinking that is not shown": (
        _block(0, THINKING, {"type": "signature_delta", "signature": "Eu"}),
        [ThoughtEnded(_signed("Eu"))],
    ),
    "thinking of no signature": (
        _block(0, {"type": "thinking", "thinking": "h"}, {"type": "thinking_delta", "thinking": "m"}),
        [ThoughtPiece("h"), ThoughtPiece("m"), ThoughtEnded()],
    ),
    "thinking of nothing": (_block(0, THINKING), []),
    "somebody's wrapped seal is a signature like any other": (
        _block(0, THINKING, {"type": "signature_delta", "signature": OTHERS}),
        [ThoughtEnded(_signed(OTHERS))],
    ),
    "redacted thinking": (
        _block(0, {"type": "redacted_thinking", "data": "EmwK"}),
        [ThoughtEnded(Seal(Dialect.MESSAGES, "acme", {"data": "EmwK"}))],
    ),
    "a call": (
        _block(0, _tool("t1", "Bash"), _json(""), _json('{"a": "b'), _json('\\n"}')),
        [CallStarted("t1", "Bash"), CallPiece('{"a": "b'), CallPiece('\\n"}'), CallEnded()],
    ),
    "a call without arguments": (_block(0, _tool("t1", "Now"), _json("")), [CallStarted("t1", "Now"), CallEnded()]),
    "a call whose input is in its start": (
        _block(0, _tool("t1", "Bash", input={"a": 12345678901234567890123})),
        [CallStarted("t1", "Bash"), CallPiece('{"a":12345678901234567890123}'), CallEnded()],
    ),
    "input in the start and in deltas": (
        _block(0, _tool("t1", "Bash", input={"a": 0}), _json('{"a": 1}')),
        [CallStarted("t1", "Bash"), CallPiece('{"a": 1}'), CallEnded()],
    ),
    "parallel calls": (
        _block(0, _tool("t1", "A"), _json("{}")) + _block(1, _tool("t2", "B"), _json('{"b":2}')),
        [*down.call("t1", "A", "{}"), *down.call("t2", "B", '{"b":2}')],
    ),
    "interleaved calls": (
        [
            _open(0, _tool("t1", "A")), _open(1, _tool("t2", "B")), _open(2, TEXT), _delta(1, _json('{"b"')),
            _delta(0, _json('{"a"')), _delta(2, _text("x")), _delta(0, _json(":1}")), _stop(1), _delta(2, _text("y")), _stop(0),
            _delta(2, _text("z")), _stop(2),
        ],
        [
            *down.call("t1", "A", '{"a"', ":1}"), CallStarted("t2", "B"), CallPiece('{"b"'), CallEnded(),
            TextPiece("x"), TextPiece("y"), TextPiece("z"),
        ],
    ),
    "a late piece of an interleaved call": (
        [_open(0, _tool("t1", "A")), _open(1, _tool("t2", "B")), _stop(0), _delta(1, _json("{}")), _stop(1)],
        [*down.call("t1", "A"), *down.call("t2", "B", "{}")],
    ),
    "stops that were forgotten": (
        [_open(0, THINKING), _delta(0, {"type": "thinking_delta", "thinking": "hm"}), _open(1, TEXT), _delta(1, _text("a")),
         _open(2, _tool("t1", "A")), _open(3, _tool("t2", "B")), _delta(3, _json("{}"))],
        [*down.thought("hm"), TextPiece("a"), *down.call("t1", "A"), *down.call("t2", "B", "{}")],
    ),
    "one index for all": (
        _block(0, TEXT, _text("a")) + _block(0, _tool("t1", "A"), _json("{}")),
        [TextPiece("a"), *down.call("t1", "A", "{}")],
    ),
    "starts that were forgotten": (
        [_delta(0, {"type": "thinking_delta", "thinking": "hm"}), _stop(0), _delta(1, _text("a")), _delta(2, _json("{}")),
         _stop(1)],
        [*down.thought("hm"), TextPiece("a")],
    ),
    "tools that the provider ran": (
        _block(0, TEXT, _text("a")) + _block(1, SEARCH, _json('{"query": "q"}')) + _block(2, FOUND) + _block(3, TEXT, _text("b")),
        [TextPiece("a"), BlockEnded(), TextPiece("b")],
    ),
    "a kind of block that nobody knows, with text": (
        _block(0, {"type": "poem", "text": "r"}, _text("ose")), [TextPiece("r"), TextPiece("ose")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_a_stream_says(case: str) -> None:
    documents, events = CASES[case]
    heard = down.hear_documents(Dialect.MESSAGES, [_start(), *documents, *_end()])
    assert heard == [Started("msg_1", "m", Tokens(3, 1)), *events, Finished("end_turn", Tokens(3, 9))]


def test_the_name_of_an_event_is_enough() -> None:
    hearer = Hearer(Dialect.MESSAGES, "acme", "round-1")
    documents = [_start(), *_block(0, TEXT, _text("a")), *_end()]
    heard = [event for one in documents for event in hearer.hear(json.dumps({**one, "type": None}).encode(), one["type"])]
    assert heard + hearer.close() == [Started("msg_1", "m", Tokens(3, 1)), TextPiece("a"), Finished("end_turn", Tokens(3, 9))]


COUNTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], Tokens]] = {
    "cached and written": (
        {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7, "output_tokens": 1},
        [{"output_tokens": 88}],
        Tokens(input=117, output=88, cached=100, written=7),
    ),
    "all of it at the end": (
        {"input_tokens": 0, "output_tokens": 0},
        [{"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "output_tokens_details": {"thinking_tokens": 4}}],
        Tokens(input=13, output=5, cached=3, reasoning=4),
    ),
    "null and nothing at the end": (
        {"input_tokens": 10, "cache_read_input_tokens": 3},
        [{"input_tokens": None, "cache_read_input_tokens": 0, "output_tokens": 5}],
        Tokens(input=13, output=5, cached=3),
    ),
    "counts are of all so far": ({"input_tokens": 1}, [{"output_tokens": 5}, {"output_tokens": 9}], Tokens(input=1, output=9)),
    "no numbers": ({"input_tokens": "many"}, [{"output_tokens": -5}, {"output_tokens": True}], Tokens()),
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts(case: str) -> None:
    early, late, tokens = COUNTS[case]
    deltas = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage} for usage in late]
    heard = down.hear_documents(Dialect.MESSAGES, [_start(early), *deltas, {"type": "message_stop"}])
    assert heard[-1] == Finished("end_turn", tokens)


def test_the_stop_sequence_is_told() -> None:
    heard = down.hear_documents(Dialect.MESSAGES, [_start(), *_end("stop_sequence", stop_sequence="\n\nHuman:")])
    assert heard[-1] == Finished("stop_sequence", Tokens(3, 9), "\n\nHuman:")


def test_an_end_without_a_reason() -> None:
    assert down.hear_documents(Dialect.MESSAGES, [_start(), {"type": "message_stop"}])[-1] == Finished("", Tokens(3, 1))
    assert down.hear_documents(Dialect.MESSAGES, [_start(), *_end(None)])[-1] == Finished("", Tokens(3, 9))


def test_a_start_that_was_forgotten() -> None:
    heard = down.hear_documents(Dialect.MESSAGES, [*_block(0, TEXT, _text("a")), {"type": "message_stop"}])
    assert heard[0] == Started("round-1", "")
    assert heard[-1] == Finished("")
    assert sum(isinstance(event, Started) for event in heard) == 1
    assert down.hear_documents(Dialect.MESSAGES, [{"type": "message_stop"}]) == [], "nobody answers"


def test_nothing_is_heard_behind_the_end() -> None:
    documents = [_start(), *_end(), _start(), *_block(0, TEXT, _text("more")), *_end()]
    assert [type(event) for event in down.hear_documents(Dialect.MESSAGES, documents)] == [Started, Finished]


ERRORS = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "authentication_error": 401,
    "invalid_request_error": 400,
}


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_in_the_stream(kind: str) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "so it is"}, "request_id": "req_1"}
    *_, piece, broken = down.hear_documents(Dialect.MESSAGES, [_start(), _open(0, TEXT), _delta(0, _text("a")), error, *_end()])
    assert piece == TextPiece("a")
    assert isinstance(broken, Broken)
    assert (broken.error.status, broken.error.message) == (ERRORS[kind], "so it is")


def test_an_error_of_another_house() -> None:
    (broken,) = down.hear_documents(Dialect.MESSAGES, [{"error": {"code": "1305", "message": "busy"}}])
    assert isinstance(broken, Broken)
    assert (broken.error.status, broken.error.code) == (429, "1305")


CUTS: dict[str, tuple[Documents, list[Event]]] = {
    "in a text": ([_open(0, TEXT), _delta(0, _text("a"))], [TextPiece("a")]),
    "in a call": ([_open(0, _tool("t", "A")), _delta(0, _json('{"a'))], [CallStarted("t", "A"), CallPiece('{"a')]),
    "between blocks": (_block(0, TEXT, _text("a")), [TextPiece("a")]),
    "before the first": ([], []),
}


@pytest.mark.parametrize("case", CUTS)
def test_a_stream_that_breaks_off_has_no_end(case: str) -> None:
    documents, events = CUTS[case]
    assert down.hear_documents(Dialect.MESSAGES, [_start(), *documents]) == [Started("msg_1", "m", Tokens(3, 1)), *events]


def test_a_reason_without_message_stop_is_an_end() -> None:
    """Some proxies never send it behind a call."""
    documents = [_start(), *_block(0, _tool("t", "A"), _json("{}")), _end("tool_use")[0]]
    hearer = Hearer(Dialect.MESSAGES, "acme", "round-1")
    heard = [event for one in documents for event in hearer.hear(json.dumps(one).encode())]
    assert heard[1:] == down.call("t", "A", "{}")
    assert hearer.close() == [Finished("tool_use", Tokens(3, 9))]
    assert hearer.close() == []


@pytest.mark.parametrize(
    "name, raw, pairs", [(n, raw, pairs) for n, d, raw, pairs in streams.provider_streams() if d is Dialect.MESSAGES]
)
def test_bytes_may_be_cut_anywhere(name: str, raw: bytes, pairs: streams.Pairs) -> None:
    hearer = Hearer(Dialect.MESSAGES, "acme", "round-1")
    expected = [event for name_, data in pairs for event in hearer.hear(data, name_)] + hearer.close()
    assert isinstance(expected[-1], Finished)
    for way in rounds.WAYS.values():
        assert down.hear(Dialect.MESSAGES, raw, way) == expected


WHOLES = {
    "all kinds": spoken(
        ("thinking", "hm"), ("text", "Grüße"), ("server", "q"), ("found", "t"), ("tool", '{"a":"é"}'), ("tool", "{}")
    ),
    "nothing": spoken(),
    "cut short": spoken(("text", "a"), finish="max_tokens"),
}


@pytest.mark.parametrize("case", WHOLES)
def test_a_whole_answer_says_what_its_stream_says(case: str) -> None:
    streamed = down.hear(Dialect.MESSAGES, rounds.messages_stream(WHOLES[case], 1))
    whole = hear_whole(Dialect.MESSAGES, rounds.messages_json(WHOLES[case], 1), "acme", "round-1")
    assert _without_counts(whole) == _without_counts(down.joined(streamed))
    assert whole[-1] == streamed[-1]


def _without_counts(events: list[Event]) -> list[Event]:
    """Known at the start of a whole answer already; and no arguments are the same as an empty object."""
    return [Started(e.id, e.model) if isinstance(e, Started) else e for e in events if e != CallPiece("{}")]


def test_what_a_whole_answer_may_be_instead() -> None:
    (overloaded,) = hear_whole(Dialect.MESSAGES, rounds.messages_json(spoken(ending="error"), 1), "acme", "x")
    assert isinstance(overloaded, Broken)
    assert overloaded.error.status == 529
    (page,) = hear_whole(Dialect.MESSAGES, b"<html><title>Sign in</title></html>", "acme", "x")
    assert isinstance(page, Broken)
    assert page.error.code == "NOT_JSON"
    for raw in (b"", b"[]", b"{}", b"no", b'{"type":"message"}', b'{"content":"text"}'):
        assert [type(event) for event in hear_whole(Dialect.MESSAGES, raw, "acme", "x")] == [Broken] * raw.startswith(b"{")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["type", "index", "delta", "content_block", "text", "input", "message", "usage", "stop_reason", "id", "content", "error"]
    ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
_KINDS = st.sampled_from([
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "error",
    "ping",
])  # fmt: skip


@given(st.lists(st.tuples(_KINDS, _JSON, st.integers(0, 3)), max_size=12))
def test_no_document_makes_it_raise(parts: list[tuple[str, Any, int]]) -> None:
    hearer = Hearer(Dialect.MESSAGES, "acme", "round-1")
    heard = []
    for kind, value, index in parts:
        document = {
            "index": index,
            "delta": value,
            "content_block": value,
            "message": value,
            "usage": value,
            "error": value,
            "type": kind,
        }
        heard += hearer.hear(json.dumps(document).encode())
        hear_whole(Dialect.MESSAGES, json.dumps({"content": [value, document], "usage": value}).encode(), "acme", "x")
    heard += hearer.close()
    assert sum(isinstance(event, Finished | Broken) for event in heard) <= 1
