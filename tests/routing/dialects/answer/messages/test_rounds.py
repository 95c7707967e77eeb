# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.join import HELD_BYTES
from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.dialects.finish import Endings
from routecodex.routing.dialects.sse import Events
from routecodex.routing.values import Dialect, Endpoint, Usage
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.rounds import OWN, Spoken, spoken
from tests.system import grammar


def _endpoint() -> Endpoint:
    endpoint = endpoint_of("POST", "/v1/messages")
    assert endpoint is not None
    return endpoint


def _merger(stream: bool = True) -> Answer:
    return answer_for(_endpoint(), stream=stream, own_tools=OWN)


def _raws(given_: list[Spoken], *, stream: bool = True) -> list[bytes]:
    write = rounds.messages_stream if stream else rounds.messages_json
    return [write(round_, number) for number, round_ in enumerate(given_, 1)]


TEXT, THOUGHT = ("text", "Grüße, 世界 😀 one"), ("thinking", "let me see")
OWN_CALL, TOOL = ("own", '{"action": "now"}'), ("tool", '{"command": "ls -la"}')

CASES: dict[str, tuple[list[Spoken], list[str], str]] = {
    # rounds, the kinds of block that the client sees, stop_reason
    "text+text": ([spoken(TEXT, input=100, output=3), spoken(("text", "two"), input=120, output=5)], ["text"], "end_turn"),
    "four texts": ([spoken(("text", word)) for word in ("a", "b b", "c\n", "d")], ["text"], "end_turn"),
    "text, own, text": ([spoken(TEXT, OWN_CALL, ("text", "behind"))], ["text"], "end_turn"),
    "own between rounds": ([spoken(TEXT, OWN_CALL), spoken(("text", "it is noon"))], ["text"], "end_turn"),
    "only own, then text": ([spoken(OWN_CALL), spoken(("text", "it is noon"))], ["text"], "end_turn"),
    "thinking, own, thinking": ([spoken(THOUGHT, OWN_CALL), spoken(THOUGHT, TEXT)], ["thinking", "text"], "end_turn"),
    "thinking+text twice": ([spoken(THOUGHT, TEXT), spoken(THOUGHT, ("text", "two"))], ["thinking", "text"], "end_turn"),
    "tool in round 2": ([spoken(TEXT), spoken(("text", "now"), TOOL)], ["text", "tool_use"], "tool_use"),
    "only a tool in round 2": ([spoken(TEXT), spoken(TOOL)], ["text", "tool_use"], "tool_use"),
    "own and tool in round 1": ([spoken(TEXT, OWN_CALL, TOOL)], ["text", "tool_use"], "tool_use"),
    "tool, own, tool": ([spoken(TOOL, OWN_CALL, TOOL)], ["tool_use", "tool_use"], "tool_use"),
    "own, thinking, tool in round 2": ([spoken(TEXT), spoken(OWN_CALL, THOUGHT, TOOL)], ["text", "tool_use"], "tool_use"),
    "tool between texts": ([spoken(TEXT), spoken(("text", "b"), TOOL, ("text", "c"))], ["text", "tool_use", "text"], "tool_use"),
    "empty second round": ([spoken(TEXT), spoken()], ["text"], "end_turn"),
    "empty first round": ([spoken(), spoken(TEXT)], ["text"], "end_turn"),
    "all empty": ([spoken(), spoken()], [], "end_turn"),
    "max_tokens at the end": ([spoken(TEXT), spoken(("text", "cut"), finish="max_tokens")], ["text"], "max_tokens"),
    "max_tokens in the middle": ([spoken(TEXT, finish="max_tokens"), spoken(("text", "on"))], ["text"], "end_turn"),
    "refusal": ([spoken(TEXT), spoken(finish="refusal")], ["text"], "refusal"),
    "a last own call": ([spoken(TEXT), spoken(OWN_CALL)], ["text"], "end_turn"),
    "reason says end_turn": ([spoken(TEXT), spoken(TOOL, finish="end_turn")], ["text", "tool_use"], "tool_use"),
    "search in round 1": ([spoken(TEXT, ("server", "q"), ("found", "t")), spoken(("text", "so"))], ["text", "server_tool_use", "web_search_tool_result", "text"], "end_turn"),
    "search in round 2": ([spoken(TEXT), spoken(("text", "let me"), ("server", "q"), ("found", "t"), ("text", "so"))], ["text", "server_tool_use", "web_search_tool_result", "text"], "end_turn"),
    "cited texts": ([spoken(("text", "a"), ("text", "b")), spoken(("text", "c"), ("text", "d"))], ["text", "text"], "end_turn"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", rounds.WAYS)
def test_m34_one_well_formed_stream(case: str, way: str) -> None:
    given_, kinds, stop_reason = CASES[case]
    merger = _merger()
    raw, said = rounds.drive(merger, _raws(given_), rounds.WAYS[way])
    streams.check_messages(Events().feed(raw))
    message = rounds.accumulated(rounds.sse_documents(raw))
    assert [block["type"] for block in message["content"]] == kinds
    assert message["stop_reason"] == stop_reason
    assert (message["id"], message["model"]) == ("msg_1", "m-1")
    assert _text(message) == "\n\n".join(filter(None, (round_.text for round_ in given_)))
    assert [one.complete for one in said] == [True] * len(given_)
    assert rounds.is_known_again(Dialect.MESSAGES, said, [{"role": "assistant", "content": message["content"]}])


@pytest.mark.parametrize("case", CASES)
def test_m35_stream_and_json_say_the_same(case: str) -> None:
    given_, _, stop_reason = CASES[case]
    streaming, whole = _merger(), _merger(stream=False)
    raw, said = rounds.drive(streaming, _raws(given_))
    answer, said_whole = rounds.drive(whole, _raws(given_, stream=False))
    message, merged = rounds.accumulated(rounds.sse_documents(raw)), json.loads(answer)
    assert merged["content"] == message["content"]
    assert merged["stop_reason"] == stop_reason
    assert merged["usage"] == message["usage"]
    assert merged["usage"]["output_tokens"] == sum(round_.output for round_ in given_)
    assert merged["usage"]["input_tokens"] == given_[-1].input
    assert (merged["id"], merged["model"]) == ("msg_1", "m-1")
    assert [_comparable(one) for one in said] == [_comparable(one) for one in said_whole]


@pytest.mark.parametrize("case", CASES)
def test_said(case: str) -> None:
    """What the model said stands in each round's `native` as it said it, our calls and its thinking included."""
    given_, _, _ = CASES[case]
    _, said = rounds.drive(_merger(), _raws(given_))
    for number, (round_, one) in enumerate(zip(given_, said, strict=True), 1):
        blocks = rounds.messages_blocks(round_, number)
        assert [dict(item) for item in one.native] == ([{"role": "assistant", "content": blocks}] if blocks else [])
        assert one.text == round_.text
        assert [call.name for call in one.calls] == [
            "clock" if kind == "own" else "Bash" for kind, _ in round_.parts if kind in ("own", "tool")
        ]
        assert [json.loads(call.arguments) for call in one.own] == [
            json.loads(text) for kind, text in round_.parts if kind == "own"
        ]
        assert one.id == f"msg_{number}"
        assert one.usage == Usage(round_.input + 10, round_.output)
        assert one.error is None


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", ["text", "thinking", "tool", "texts", "search", "empty"])
def test_one_round_is_its_own_bytes(case: str, stream: bool, way: str) -> None:
    given_ = {
        "text": spoken(TEXT),
        "thinking": spoken(THOUGHT, TEXT),
        "tool": spoken(THOUGHT, TEXT, TOOL, TOOL),
        "texts": spoken(TEXT, TEXT, finish="stop_sequence"),
        "search": spoken(TEXT, ("server", "q"), ("found", "t"), TEXT),
        "empty": spoken(),
    }[case]
    raw = _raws([given_], stream=stream)[0]
    assert rounds.drive(_merger(stream), [raw], rounds.WAYS[way])[0] == raw


ODD: dict[str, bytes] = {
    "crlf": rounds.messages_stream(spoken(THOUGHT, TEXT), 1).replace(b"\n", b"\r\n"),
    "no last blank line": rounds.messages_stream(spoken(TEXT), 1)[:-1],
    "bom and comments": b"\xef\xbb\xbf: hello\n\n" + rounds.messages_stream(spoken(TEXT), 1).replace(b"event: message_delta", b": wait\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: message_delta"),
    "[DONE] behind": rounds.messages_stream(spoken(TEXT), 1) + b"data: [DONE]\n\n",
    "no event names": b"".join(line + b"\n" for line in rounds.messages_stream(spoken(TEXT, TOOL), 1).split(b"\n")[:-1] if not line.startswith(b"event:")),
    "unknown event and block": rounds.messages_stream(spoken(TEXT), 1).replace(b'"type": "text", "text": ""', b'"type": "odd", "text": ""').replace(b"event: message_delta", b"event: vendor\ndata: {\"type\": \"vendor\"}\n\nevent: message_delta"),
    "reason in the middle": rounds.messages_stream(spoken(TEXT, TOOL), 1).replace(b"event: content_block_start\ndata: {\"type\": \"content_block_start\", \"index\": 1", b"event: message_delta\ndata: {\"type\": \"message_delta\", \"delta\": {\"stop_reason\": \"tool_use\"}, \"usage\": {}}\n\nevent: content_block_start\ndata: {\"type\": \"content_block_start\", \"index\": 1"),
    "no block starts and stops": b"".join(block + b"\n\n" for block in rounds.messages_stream(spoken(TEXT), 1).split(b"\n\n")[:-1] if b"content_block_st" not in block),
    "stop behind the delta": rounds.messages_stream(spoken(TEXT), 1).replace(b"event: content_block_stop\ndata: {\"type\": \"content_block_stop\", \"index\": 0}\n\n", b"").replace(b"event: message_stop", b"event: content_block_stop\ndata: {\"type\": \"content_block_stop\", \"index\": 0}\n\nevent: message_stop"),
    "indexes from 3": rounds.messages_stream(spoken(TEXT), 1).replace(b'"index": 0', b'"index": 3'),
    "not JSON": rounds.messages_stream(spoken(TEXT), 1).replace(b'data: {"type": "ping"}', b"data: ping"),
}  # fmt: skip


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_round_is_its_own_bytes(case: str, way: str) -> None:
    raw = ODD[case]
    out, said = rounds.drive(_merger(), [raw], rounds.WAYS[way])
    assert out == raw
    assert said[0].complete
    if case != "unknown event and block":
        assert said[0].text == TEXT[1]


@pytest.mark.parametrize("case", sorted(ODD.keys() - {"reason in the middle", "no event names", "no block starts and stops"}))
def test_an_odd_first_round_goes_on(case: str) -> None:
    second = rounds.messages_stream(spoken(("text", "two")), 2)
    raw, _ = rounds.drive(_merger(), [ODD[case], second])
    documents = [one for one in _documents(raw) if one["type"] != "vendor"]
    kinds = [one["type"] for one in documents if one["type"] != "ping"]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    texts = [one["delta"]["text"] for one in documents if one["type"] == "content_block_delta" and "text" in one["delta"]]
    assert "".join(texts) == TEXT[1] + "\n\ntwo"


@pytest.mark.parametrize("case", sorted(ODD.keys() - {"[DONE] behind"}))
def test_an_odd_second_round_is_merged(case: str) -> None:
    raw, _ = rounds.drive(_merger(), [rounds.messages_stream(spoken(("text", "one")), 1), ODD[case]])
    documents = [one for one in _documents(raw) if one["type"] != "vendor"]
    texts = [one["delta"]["text"] for one in documents if one["type"] == "content_block_delta" and "text" in one["delta"]]
    assert "".join(texts) == "one\n\n" + TEXT[1]
    assert [one["type"] for one in documents].count("message_stop") == 1
    assert documents[-1]["type"] == "message_stop"
    assert b"\xef\xbb\xbf" not in raw


@pytest.mark.parametrize("before", [spoken(TEXT), spoken(TEXT, OWN_CALL)], ids=["a text", "our call"])
def test_the_input_of_a_later_rounds_call_may_stand_where_it_begins(before: Spoken) -> None:
    start = {"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": {"command": "ls"}}
    told = [
        {"type": "message_start", "message": {"id": "msg_2", "model": "m", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    second = b"".join(b"event: %s\ndata: %s\n\n" % (str(one["type"]).encode(), rounds.dump(one)) for one in told)
    raw, _ = rounds.drive(_merger(), [rounds.messages_stream(before, 1), second])
    assert grammar.read_stream(Dialect.MESSAGES, raw).calls == [("Bash", {"command": "ls"})]


def test_m34_live() -> None:
    """A later text goes on at once, under the first round's still open block; nothing but the end waits."""
    merger = _merger()
    first, _ = rounds.feed_round(merger, rounds.messages_stream(spoken(TEXT), 1))
    assert b"content_block_stop" not in first
    assert b"message_delta" not in first
    merger.begin_round()
    events = rounds.messages_stream(spoken(THOUGHT, ("text", "abcdefgh"), TOOL), 2).split(b"\n\n")
    out = [merger.feed(event + b"\n\n") for event in events[:-1]]
    shown = [rounds.sse_documents(one) for one in out]
    texts = [one for documents in shown for one in documents if one.get("delta", {}).get("type") == "text_delta"]
    assert [one["delta"]["text"] for one in texts] == ["\n\nabcd", "efgh"]
    assert {one["index"] for one in texts} == {0}
    starts = [documents for documents in shown if any(one["type"] == "content_block_start" for one in documents)]
    assert [[one["type"] for one in documents] for documents in starts] == [["content_block_stop", "content_block_start"]]
    assert starts[0][1]["index"] == 1
    assert out[-1] == out[-2] == b""


def test_d14a_only_our_tools_are_withheld() -> None:
    """A client's tool is whole at its block's end, before the round is over; a call of ours never shows."""
    merger = _merger()
    merger.begin_round()
    events = rounds.messages_stream(spoken(OWN_CALL, TOOL), 1).split(b"\n\n")
    out = [merger.feed(event + b"\n\n") for event in events[:-1]]
    assert b'"index":0' in out[-3]
    assert b"content_block_stop" in out[-3]
    assert b"clock" not in b"".join(out)
    assert b"toolu_1_0" not in b"".join(out)


@pytest.mark.parametrize("way", rounds.WAYS)
def test_d18_a_broken_later_round_counts_for_nothing(way: str) -> None:
    """A round that showed nothing and broke may be followed by another, or by the end of the round before it."""
    merger = _merger()
    raws = _raws(
        [
            spoken(TEXT, output=3),
            spoken(THOUGHT, ending="cut"),
            spoken(THOUGHT, ending="error"),
            spoken(("text", "two"), input=9, output=5),
        ]
    )
    raw, said = rounds.drive(merger, raws, rounds.WAYS[way])
    assert [one.complete for one in said] == [True, False, False, True]
    assert [one.error is not None for one in said] == [False, False, True, False]
    streams.check_messages(Events().feed(raw))
    message = rounds.accumulated(rounds.sse_documents(raw))
    assert _text(message) == TEXT[1] + "\n\ntwo"
    assert (message["usage"]["output_tokens"], message["usage"]["input_tokens"]) == (8, 9)
    ended, _ = rounds.drive(_merger(), raws[:3], rounds.WAYS[way])
    assert rounds.accumulated(rounds.sse_documents(ended)) == rounds.accumulated(rounds.sse_documents(raws[0]))


def test_d18_a_first_round_that_broke_before_its_content_leaves_nothing() -> None:
    merger = _merger()
    raws = _raws([spoken(ending="cut"), spoken(TEXT)])
    assert rounds.drive(merger, raws)[0] == raws[1]
    assert merger.id == "msg_2"


@pytest.mark.parametrize("ending", ["cut", "error"])
def test_d18_fail(ending: str) -> None:
    merger = _merger()
    out, said = rounds.feed_round(merger, rounds.messages_stream(spoken(TEXT, ending=ending), 1))
    assert not said.complete
    assert said.text == TEXT[1]
    documents = rounds.sse_documents(out + merger.fail(502, "It broke.", "UPSTREAM_ERROR"))
    assert documents[-1] == {"type": "error", "error": {"type": "api_error", "message": "It broke.", "code": "UPSTREAM_ERROR"}}
    assert [one["type"] for one in documents].count("error") == 1


def test_d18_a_first_rounds_own_error_is_passed_on_as_it_is() -> None:
    merger = _merger()
    raw = rounds.messages_stream(spoken(THOUGHT, TEXT, ending="error"), 1)
    out, said = rounds.feed_round(merger, raw)
    assert said.error is not None
    assert (said.error.status, said.error.message) == (529, "Overloaded")
    assert out + merger.fail(said.error.status, said.error.message, said.error.code) == raw


@pytest.mark.parametrize("given_", [[spoken(TEXT, ending="cut")], [spoken(TEXT), spoken(("text", "and more"), ending="cut")]])
def test_d18_no_end_is_invented(given_: list[Spoken]) -> None:
    """Whoever finishes a broken answer gets an error for it."""
    out, _ = rounds.drive(_merger(), _raws(given_))
    documents = rounds.sse_documents(out)
    assert documents[-1]["type"] == "error"
    assert "message_stop" not in [one["type"] for one in documents]


def test_what_is_cut_off_behind_the_end_is_left_out() -> None:
    raw = rounds.messages_stream(spoken(TEXT), 1)
    assert rounds.drive(_merger(), [raw + b'event: ping\ndata: {"ty'])[0] == raw


def test_d18_cut_inside_an_event() -> None:
    merger = _merger()
    raw = rounds.messages_stream(spoken(TEXT), 1)
    out, said = rounds.feed_round(merger, raw[: raw.index(b"message_delta") + 60])
    assert not said.complete
    documents = rounds.sse_documents(out + merger.fail(502, "It broke.", "X"))
    assert documents[-1]["type"] == "error"


def test_keep_alive_at_any_moment() -> None:
    merger = _merger()
    raws = _raws([spoken(THOUGHT, TEXT), spoken(("text", "two"), TOOL)])
    out = [merger.keep_alive()]
    for raw in raws:
        merger.begin_round()
        for chunk in rounds.bytewise(raw):
            out += [merger.feed(chunk), merger.keep_alive()]
        merger.end_round()
        out.append(merger.keep_alive())
    out.append(b"".join(merger.finish()))
    documents = [one for one in rounds.sse_documents(b"".join(out)) if one["type"] != "ping"]
    plain, _ = rounds.drive(_merger(), raws)
    assert documents == [one for one in rounds.sse_documents(plain) if one["type"] != "ping"]


def test_the_last_rounds_ending_is_kept() -> None:
    last = rounds.messages_stream(spoken(("text", "two"), finish="refusal", output=5), 2).replace(
        b'"stop_details": null', b'"stop_details": {"why": "x"}'
    )
    raw, _ = rounds.drive(_merger(), [rounds.messages_stream(spoken(TEXT, output=3), 1), last])
    delta, stop = rounds.sse_documents(raw)[-2:]
    assert delta["delta"] == {"stop_reason": "refusal", "stop_sequence": None, "stop_details": {"why": "x"}}
    assert delta["vendor_field"] == 2
    assert delta["usage"] == {
        "input_tokens": 100,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 7,
        "output_tokens": 8,
    }
    assert stop == {"type": "message_stop", "vendor_metrics": {"n": 2}}


def test_citations_stay_with_the_text() -> None:
    cite = b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": %d}}}\n\nevent: content_block_stop'
    raws = [
        rounds.messages_stream(spoken(("text", word)), number).replace(b"event: content_block_stop", cite % number)
        for number, word in ((1, "a"), (2, "b"))
    ]
    merger = _merger()
    raw, said = rounds.drive(merger, raws)
    block = {"type": "text", "text": "a\n\nb", "citations": [{"n": 1}, {"n": 2}]}
    assert rounds.accumulated(rounds.sse_documents(raw))["content"] == [block]
    assert said[1].native[0]["content"] == [{"type": "text", "text": "b", "citations": [{"n": 2}]}]


def test_a_later_rounds_block_keeps_its_own_fields() -> None:
    empty, own = b'"text": ""}', b'"text": "", "citations": []}'
    later = rounds.messages_stream(spoken(("text", "let me"), ("server", "q"), ("found", "t"), ("text", "so")), 2)
    head, _, tail = later.rpartition(empty)
    assert head, later
    raw, _ = rounds.drive(_merger(), [rounds.messages_stream(spoken(TEXT), 1), head + own + tail])
    begun = [one["content_block"] for one in rounds.sse_documents(raw) if one["type"] == "content_block_start"]
    assert begun[-1] == {"type": "text", "text": "", "citations": []}


def test_a_call_that_was_cut_off_keeps_its_words() -> None:
    raw = rounds.messages_stream(spoken(("own", '{"a": "bcd"}'), finish="max_tokens"), 1).replace(b'd\\"}', b"")
    _, said = rounds.feed_round(_merger(), raw)
    assert said.own[0].arguments == '{"a": "bc'


def test_white_space_alone_is_no_history() -> None:
    _, said = rounds.feed_round(_merger(), rounds.messages_stream(spoken(("text", " \n")), 1))
    assert said.text == " \n"
    assert said.native == ()


def test_noise_behind_a_held_stop_is_bounded() -> None:
    merger = _merger()
    merger.begin_round()
    raw = rounds.messages_stream(spoken(TEXT), 1)
    merger.feed(raw[: raw.index(b"event: message_delta")])
    noise = b": wait\n\n" * 200_000
    assert len(merger.feed(noise)) > len(noise) - HELD_BYTES - 100_000


@pytest.mark.parametrize("raw", [b"\x00\xff\n\n", b"data: []\n\n", b"data: {}\n\n", b'data: {"type": 1}\n\n', b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": "x", "delta": 3}\n\n', b'data: {"type": "content_block_start"}\n\n', b'data: {"type": "message_delta", "delta": 7, "usage": []}\n\ndata: {"type": "message_stop"}\n\n'])  # fmt: skip
def test_garbage_never_raises(raw: bytes) -> None:
    for first in ([], [rounds.messages_stream(spoken(TEXT), 1)]):
        merger = _merger()
        _, said = rounds.drive(merger, [*first, raw])
        assert said[-1].text == ""
        assert isinstance(merger.id, str)


@pytest.mark.parametrize("ending", ["cut", "error"])
def test_json_that_is_no_answer(ending: str) -> None:
    merger = _merger(stream=False)
    raws = _raws([spoken(TEXT), spoken(TEXT, ending=ending)], stream=False)
    out, said = rounds.drive(merger, raws)
    assert said[1].error is not None
    assert not said[1].complete
    assert out == raws[0]
    assert json.loads(merger.fail(400, "no", "NO"))["error"]["message"] == "no"
    assert json.loads(merger.keep_alive() + out) == json.loads(raws[0])


@given(rounds.random_rounds(), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_m34_any_rounds(given_: list[Spoken], seed: int) -> None:
    merger, whole = _merger(), _merger(stream=False)
    raws = _raws(given_)
    raw, said = rounds.drive(merger, raws, rounds.randomly(seed))
    assert raw == rounds.drive(_merger(), raws)[0]
    streams.check_messages(Events().feed(raw))
    message = rounds.accumulated(rounds.sse_documents(raw))
    assert _text(message) == "\n\n".join(one.text for one in said if one.text)
    assert b'"clock"' not in raw
    merged = json.loads(rounds.drive(whole, _raws(given_, stream=False))[0])
    assert merged["content"] == message["content"]
    assert merged["usage"] == message["usage"]
    assert (
        merged["stop_reason"]
        == message["stop_reason"]
        == ("tool_use" if any(block["type"] == "tool_use" for block in message["content"]) else "end_turn")
    )
    if len(given_) == 1 and not said[0].own:
        assert raw == raws[0]


_EVENTS = rounds.sse_documents(rounds.messages_stream(spoken(THOUGHT, TEXT, OWN_CALL, TOOL, ("server", "q"), ("found", "t")), 1))
_EVENTS += [
    {"type": "error", "error": {"message": "no"}},
    {"type": "vendor"},
    {},
    {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "x"}},
]


@given(st.lists(st.lists(st.sampled_from(_EVENTS), max_size=25), min_size=1, max_size=3), st.integers(0, 9))
@settings(max_examples=200, deadline=None)
def test_any_events_in_any_order(given_: list[list[dict[str, Any]]], seed: int) -> None:
    """A provider may send what it likes: nothing raises, the cuts do not matter, and there is one end and no second start."""
    raws = [b"".join(b"data: " + rounds.dump(event) + b"\n\n" for event in events) for events in given_]
    merger = _merger()
    raw, said = rounds.drive(merger, raws, rounds.randomly(seed))
    assert raw == rounds.drive(_merger(), raws)[0]
    if len(raws) > 1 and all(one.complete for one in said):
        kinds = [one.get("type") for one in rounds.sse_documents(raw)]
        assert kinds[-1] == "message_stop"
        assert kinds.count("message_stop") == 1
        assert kinds.count("message_start") <= max(1, sum(event.get("type") == "message_start" for event in given_[0]))


def _text(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def _comparable(said: Any) -> Any:
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in said.calls]
    return said.text, calls, [call.id for call in said.own], said.finish, said.usage, said.id, said.native, said.complete


def _documents(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in Events().feed(raw) if event.data.startswith(b"{")]


NEVER = Endings("never")


def _never() -> Answer:
    return answer_for(_endpoint(), stream=True, own_tools=OWN, endings=NEVER)


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize(
    "given_",
    [[spoken(TEXT, TOOL)], [spoken(OWN_CALL, TOOL)], [spoken(TEXT), spoken(("text", "two"), TOOL)]],
    ids=["as it came", "a call of ours", "two rounds"],
)
def test_d17_no_message_stop_behind_a_call_where_somebody_asks_for_that(way: str, given_: list[Spoken]) -> None:
    """All else stays as it is."""
    raws = _raws(given_)
    usual, _ = rounds.drive(_merger(), raws, rounds.WAYS[way])
    never, _ = rounds.drive(_never(), raws, rounds.WAYS[way])
    stop = usual[usual.index(b"event: message_stop") :]
    assert [one["type"] for one in rounds.sse_documents(stop)] == ["message_stop"]
    assert never == usual.removesuffix(stop)


@pytest.mark.parametrize("behind", [b"", b"\n", b"\n\n", b"\n\n: and a comment\n\n"])
def test_d17_nor_where_its_own_end_is_odd(behind: bytes) -> None:
    raw = rounds.messages_stream(spoken(TEXT, TOOL), 1).rstrip(b"\n")
    never, (said,) = rounds.drive(_never(), [raw + behind])
    assert said.complete
    kept = behind.lstrip(b"\n")  # only `message_stop` itself is taken out
    assert never == raw[: raw.index(b"event: message_stop")] + kept


@pytest.mark.parametrize("given_", [[spoken(TEXT)], [spoken(OWN_CALL), spoken(TEXT)], [spoken(TEXT), spoken(("text", "two"))]])
def test_d17_message_stop_behind_everything_else(given_: list[Spoken]) -> None:
    raws = _raws(given_)
    assert rounds.drive(_never(), raws)[0] == rounds.drive(_merger(), raws)[0]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("chosen", ["stop_sequence", "refusal"])
def test_d17_what_content_filter_becomes(stream: bool, chosen: Literal["stop_sequence", "refusal"]) -> None:
    given_ = [spoken(TEXT), spoken(("text", "two"), finish="content_filter")]
    make = rounds.messages_stream if stream else rounds.messages_json
    merger = answer_for(_endpoint(), stream=stream, endings=Endings(content_filter=chosen))
    raw, said = rounds.drive(merger, [make(one, number) for number, one in enumerate(given_, 1)])
    message = rounds.accumulated(rounds.sse_documents(raw)) if stream else json.loads(raw)
    assert (message["stop_reason"], said[1].finish) == (chosen, "content_filter")
