"""Chunks and events as a Gemini client's bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.events import Began, Block, Closed, Counted, Done, Ended, Event, Opened, Piece
from routecodex.routing.dialects.answer.gemini import Writer
from routecodex.routing.dialects.answer.machine import Round
from routecodex.routing.dialects.translation.neutral import Seal, Tokens
from routecodex.routing.values import Dialect
from tests.rig.asked import Asked
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.talks import (
    ARRAY,
    CHAT,
    COUNTS,
    ENVELOPE,
    GEMINI,
    Way,
    answer_for,
    as_events,
    called,
    candidate,
    drive,
    read,
    sse,
)

STREAM, WHOLE = Way(GEMINI), Way(GEMINI, False)
FORMS = [STREAM, ARRAY, ENVELOPE]
THOUGHT = Seal(Dialect.MESSAGES, "acme", {"signature": "EuYB"})


def told(*events: Event, way: Way = STREAM, **more: Any) -> list[dict[str, Any]]:
    out = Writer(Asked(way.endpoint, True, "0123", "asked", 1, maker="acme", **more))
    raw = b"".join([out.made(event) for event in (*events, Ended("STOP"), Done())])
    documents = rounds.sse_documents(as_events(way, raw))
    assert all(("response" in one) is way.envelope for one in documents)
    return [one["response"] if way.envelope else one for one in documents]


def parts(*events: Event, **more: Any) -> list[dict[str, Any]]:
    return [part for one in told(*events, **more) for part in one["candidates"][0]["content"]["parts"]]


def foreign(kind: Any, name: str = "", seal: Seal | None = None) -> Block:
    block = Block(kind, {}, id="a" if kind == "call" else "", name=name)
    block.foreign, block.seal = True, seal
    return block


@pytest.mark.parametrize("way", FORMS, ids=str)
def test_what_others_said(way: Way) -> None:
    text = foreign("text")
    events = [Began("chatcmpl-1", "m"), Opened(text), Piece(text, "a"), Piece(text, "b"), Closed(text), Counted(Tokens(5, 3))]
    *pieces, last = told(*events, way=way)
    assert [one["candidates"][0]["content"] for one in pieces] == [
        {"parts": [{"text": piece}], "role": "model"} for piece in "ab"
    ]
    assert last["candidates"] == [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0}]
    assert last["usageMetadata"] == {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}
    assert {(one["responseId"], one["modelVersion"]) for one in (*pieces, last)} == {("chatcmpl-1", "asked")}


def test_a_call_leaves_whole_and_carries_the_thinking_before_it() -> None:
    thought, call = foreign("thought", seal=THOUGHT), foreign("call", "f")
    found = parts(
        *(Opened(thought), Piece(thought, "hm"), Closed(thought)),
        *(Opened(call), Piece(call, '{"x'), Piece(call, '":1}'), Closed(call)),
    )
    assert found[0] == {"text": "hm", "thought": True}
    assert (found[1]["text"], found[1]["thought"], bool(found[1]["thoughtSignature"])) == ("", True, True)
    assert found[2]["functionCall"] == {"id": "a", "name": "f", "args": {"x": 1}}
    assert found[2]["thoughtSignature"] != found[1]["thoughtSignature"]


def test_a_half_call_is_not_told() -> None:
    call = foreign("call", "f")
    assert parts(Opened(call), Piece(call, '{"x')) == [{"text": ""}]


def test_an_answer_that_counted_nothing_has_our_own_count() -> None:
    assert told(estimate=lambda: 7)[-1]["usageMetadata"]["promptTokenCount"] == 7
    assert told(Began("r", "m", Tokens(9)), estimate=lambda: 7)[-1]["usageMetadata"]["promptTokenCount"] == 9


def test_ids_are_made_where_there_are_none_or_the_same() -> None:
    out = Writer(Asked(STREAM.endpoint, True, "0123", "asked", 1, maker="acme"))
    blocks = [foreign("call", "f") for _ in range(2)] + [Block("call", name="f") for _ in range(2)]
    for block in blocks:
        out.name(block)
    ids = [block.id for block in blocks]
    assert ids[0] == "a"
    assert ids[1].startswith("call_")
    assert ids[2:] == ["f#2", "f#3"], "its provider knows it by name and order"


# --- forms ------------------------------------------------------------------------------------------------------------


SAID = [candidate({"text": "Grüße"}), candidate({"text": " 😀"}), candidate(called("f", {}), reason="STOP", usageMetadata=COUNTS)]


def written(way: Way) -> bytes:
    given = [{"response": one, "traceId": "t"} if way.envelope else one for one in SAID]
    return json.dumps(given, indent=1).encode() if way.array else sse(*given)


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("cut", rounds.WAYS)
@pytest.mark.parametrize("spoken", [STREAM, ARRAY], ids=str)
@pytest.mark.parametrize("client", [STREAM, ARRAY, WHOLE], ids=str)
def test_events_and_arrays_for_each_other(client: Way, spoken: Way, cut: str, quiet: bool) -> None:
    raw, _ = drive(answer_for(client, quiet=quiet), [(GEMINI, written(spoken))], rounds.WAYS[cut])
    answer = read(client, raw)
    assert (answer.text, answer.calls, answer.output) == ("Grüße 😀", [("f", {})], 3)
    if client == spoken:
        assert raw == written(spoken)


@pytest.mark.parametrize("client", [*FORMS, WHOLE], ids=str)
def test_a_whole_answer_for_any_form(client: Way) -> None:
    document = candidate({"text": "Hi"}, called("f", {}), reason="STOP", usageMetadata=COUNTS, vendor=1)
    document["candidates"][0]["groundingMetadata"] = {"webSearchQueries": ["q"]}
    raw, [told] = drive(answer_for(client), [(GEMINI, json.dumps(document).encode())])
    answer = read(client, raw)
    assert (answer.text, answer.calls, answer.finish, answer.output) == ("Hi", [("f", {})], "STOP", 3)
    assert raw.count(b"webSearchQueries") == 1
    assert told.native == ({"role": "model", "parts": document["candidates"][0]["content"]["parts"]},)


@pytest.mark.parametrize("client", FORMS, ids=str)
def test_an_array_is_closed_once_whatever_ends_it(client: Way) -> None:
    for raw in (b"[]", b"[", b"", b"data: [DONE]\n\n"):
        out, [told] = drive(answer_for(client), [(GEMINI, raw)])
        assert told.text == ""
        if client.array and out:
            json.loads(out)


def test_done_of_a_stream_closes_an_array() -> None:
    out, _ = drive(answer_for(ARRAY), [(GEMINI, sse(*SAID, b"[DONE]"))])
    assert json.loads(out) == SAID


@pytest.mark.parametrize("client", FORMS, ids=str)
def test_an_error_behind_content(client: Way) -> None:
    error = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}
    given = json.dumps([SAID[0], error]).encode() if client.array else sse(SAID[0], error)
    answer = answer_for(client)
    answer.begin_round()
    out = answer.feed(given)
    said = answer.end_round()
    assert said.error is not None
    raw = out + answer.fail(said.error.status, said.error.message, said.error.code)
    *_, last = rounds.array_documents(raw) if client.array else rounds.sse_documents(raw)
    assert (next(iter(last)), last["error"]["message"]) == ("error", "Overloaded")


# --- what is held -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", FORMS, ids=str)
def test_a_reason_with_every_chunk_leaves_one_piece_behind(client: Way) -> None:
    """Live: each piece leaves with the next, and the bytes are its provider's."""
    given = [candidate({"text": word}, reason="STOP", usageMetadata=COUNTS) for word in "abc"]
    pieces = [sse({"response": one} if client.envelope else one) for one in given]
    if client.array:
        pieces = [b"[" + json.dumps(given[0]).encode(), *(b",\r\n" + json.dumps(one).encode() for one in given[1:])]
    answer = answer_for(client)
    answer.begin_round()
    assert [answer.feed(piece) for piece in pieces] == [b"", *pieces[:-1]]
    assert answer.end_round().text == "abc"
    assert b"".join(answer.finish()) == pieces[-1] + (b"]" if client.array else b"")


def test_for_another_client_only_the_last_reason_counts() -> None:
    for client in (Way(CHAT), Way(Dialect.MESSAGES)):
        given = [candidate({"text": word}, reason="MAX_TOKENS" if word == "c" else "STOP") for word in "abc"]
        raw, [told] = drive(answer_for(client), [(GEMINI, sse(*given))])
        assert (told.text, told.finish) == ("abc", "length")
        assert read(client, raw).text == "abc"


def test_what_our_call_stood_beside_stays() -> None:
    """The chunk's own fields, the other parts, and nothing of the call."""
    document = candidate({"text": "a", "vendor": 1}, called("clock", {}), called("f", {}), reason="STOP", usageMetadata=COUNTS)
    document["candidates"][0]["avgLogprobs"] = -0.1
    raw, [told] = drive(answer_for(STREAM), [(GEMINI, sse(document))])
    documents = rounds.sse_documents(raw)
    assert b"clock" not in raw
    found = [part for one in documents for part in one["candidates"][0]["content"]["parts"] if any(part.values())]
    assert found == [{"text": "a", "vendor": 1}, called("f", {})]
    assert documents[-1]["candidates"][0]["avgLogprobs"] == -0.1
    assert [call.id for call in told.own] == ["clock#0"]


def test_a_later_chunk_has_the_first_ones_id() -> None:
    first, second = (sse(candidate({"text": word}, reason="STOP", responseId=f"r-{word}")) for word in "ab")
    raw, _ = drive(answer_for(STREAM), [(GEMINI, first), (GEMINI, second)])
    assert {one["responseId"] for one in rounds.sse_documents(raw)} == {"r-a"}


def test_a_comment_of_a_later_round_is_left_out() -> None:
    """Google's SDKs break at one."""
    given = b": wait\n\n" + sse(candidate({"text": "a"}), candidate({"text": ""}, reason="STOP"))
    raw, _ = drive(answer_for(STREAM), [(GEMINI, given), (GEMINI, given)])
    assert raw.count(b": wait") == 1
    assert raw.startswith(b": wait")


def test_counts_are_known_while_it_runs() -> None:
    answer = answer_for(STREAM)
    answer.begin_round(Round(GEMINI, "acme"))
    answer.feed(sse(candidate({"text": "hm", "thought": True}, usageMetadata=COUNTS)))
    assert (answer.visible, answer.usage.input, answer.usage.output) == (True, 5, 3)


@pytest.mark.parametrize("client, spoken", [(ARRAY, STREAM), (STREAM, ARRAY)], ids=str)
def test_nothing_passes_unread_into_another_form(client: Way, spoken: Way) -> None:
    texts = [candidate({"text": word}) for word in "abcd"]
    pieces = [sse(one) for one in texts]
    if spoken.array:
        pieces = [(b"," if place else b"[") + json.dumps(one).encode() + b"\n\n" for place, one in enumerate(texts)]
    answer = answer_for(client, quiet=True)
    answer.begin_round()
    out = [answer.feed(piece) for piece in pieces]
    end = candidate({"text": "e"}, reason="STOP", usageMetadata=COUNTS)
    out.append(answer.feed(b"," + json.dumps(end).encode() + b"]" if spoken.array else sse(end)))
    answer.end_round()
    assert read(client, b"".join((*out, *answer.finish()))).text == "abcde"


def test_a_call_that_a_cut_broke_off_is_not_told_though_its_block_ends() -> None:
    call = foreign("call", "f")
    call.half = True
    assert parts(Opened(call), Piece(call, '{"x'), Closed(call)) == [{"text": ""}]
