"""One answer of rounds in any dialect and form, read as strictly as a client may read it."""

from __future__ import annotations

import dataclasses
import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.machine import Round
from routecodex.routing.dialects.translation.neutral import ToolName
from routecodex.routing.errors import BadAnswer
from routecodex.routing.values import Dialect, ToolCall
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.rounds import Spoken, spoken
from tests.routing.dialects.answer.talks import (
    ARRAY,
    CHAT,
    COUNTS,
    ENVELOPE,
    FINISH,
    GEMINI,
    MESSAGES,
    RESPONSES,
    WAYS,
    WRITTEN,
    Way,
    answer_for,
    called,
    candidate,
    chunk,
    drive,
    entry,
    error_at_end,
    in_part,
    read,
    sse,
)
from tests.rows import covering
from tests.system import grammar

ONE = spoken(("thinking", "hm"), ("text", "Grüße 😀"), input=100, output=10)
TWO = spoken(("thinking", "aha"), ("text", "zwei"), ("tool", '{"a": 1}'), input=120, output=7)
ASKS_US = spoken(("text", "Grüße 😀"), ("own", '{"action": "now"}'), input=100, output=10)


def said(way: Way, round_: Spoken, number: int) -> tuple[Dialect, bytes]:
    return way.dialect, way.written(round_, number)


def counted(way: Way, round_: Spoken, client: Way) -> int:
    """Its output as a client sees it: Gemini tells apart what thinking cost."""
    if client.dialect is GEMINI:
        return round_.output - (2 if way.dialect in (CHAT, RESPONSES) else 0)
    return round_.output + (4 if way.dialect is GEMINI and any(kind == "thinking" for kind, _ in round_.parts) else 0)


@pytest.mark.parametrize("first", [ONE, ASKS_US], ids=["text", "our call"])
@pytest.mark.parametrize("number, client, one, two", [(number, *three) for number, three in enumerate(covering(WAYS))], ids=str)
def test_two_rounds_of_any_kind_are_one_answer(number: int, client: Way, one: Way, two: Way, first: Spoken) -> None:
    cut = list(rounds.WAYS.values())[(number + (first is ONE)) % len(rounds.WAYS)]
    raw, told = drive(answer_for(client), [said(one, first, 1), said(two, TWO, 2)], cut)
    answer = read(client, raw)
    assert answer.text == "Grüße 😀\n\nzwei"
    assert answer.texts == 1
    assert [arguments for _, arguments in answer.calls] == [{"a": 1}]
    assert answer.finish == FINISH[client.dialect]["tool"]
    assert answer.output == counted(one, first, client) + counted(two, TWO, client)
    assert b"clock" not in raw
    assert b"aha" not in raw, "a later round's thought is kept for the history"
    lost = client.dialect is RESPONSES and two.dialect is GEMINI
    assert ("aha" in json.dumps(told[1].native, ensure_ascii=False)) is not lost, "a thought that nobody signed is no input item"
    assert [bool(one.own) for one in told] == [first is ASKS_US, False]


@pytest.mark.parametrize("cut", rounds.WAYS)
@pytest.mark.parametrize("way", [*WAYS, ENVELOPE], ids=str)
def test_one_round_that_fits_is_its_own_bytes(way: Way, cut: str) -> None:
    for round_ in (ONE, TWO, spoken(("text", "cut"), finish=FINISH[way.dialect]["length"])):
        dialect, raw = said(way, round_, 1)
        for quiet in (False, True):
            assert drive(answer_for(way, quiet=quiet), [(dialect, raw)], rounds.WAYS[cut])[0] == raw


def as_told(way: Way, round_: Spoken) -> Spoken:
    """Gemini's clients are told in words what its tools did, or have parts of their own for it; a whole answer has a part."""
    kept = [part for part in round_.parts if part[0] in ("text", "thinking", "own", "tool")]
    return dataclasses.replace(round_, parts=tuple(kept) or (("text", "ok"),)) if way.dialect is GEMINI else round_


@given(rounds.random_rounds(), st.data())
@settings(max_examples=150)
def test_any_rounds_in_any_mixture(given_: list[Spoken], data: st.DataObject) -> None:
    client = data.draw(st.sampled_from(WAYS))
    ways = [data.draw(st.sampled_from(WAYS)) for _ in given_]
    given_ = [as_told(way, one) for way, one in zip(ways, given_, strict=True)]
    raws = [said(way, round_, number) for number, (way, round_) in enumerate(zip(ways, given_, strict=True), 1)]
    raw, _ = drive(answer_for(client), raws, rounds.randomly(data.draw(st.integers(0, 9))))
    assert raw == drive(answer_for(client), raws)[0]
    answer = read(client, raw)
    assert answer.text == "\n\n".join(one.text for one in given_ if one.text)
    assert b'"clock"' not in raw


@pytest.mark.parametrize("before", [spoken(), spoken(("text", "zero"))], ids=["nothing", "a text"])
@pytest.mark.parametrize("client, way", list(product(WAYS, WAYS)), ids=lambda way: str(way))
def test_two_texts_of_a_later_round_go_on_in_one_that_is_not_over(client: Way, way: Way, before: Spoken) -> None:
    both = spoken(("text", "one"), ("text", "two"))
    raw, _ = drive(answer_for(client), [said(Way(CHAT), before, 1), said(way, both, 2), said(Way(CHAT), spoken(), 3)])
    assert read(client, raw).text == "\n\n".join(filter(None, (before.text, "onetwo")))


@pytest.mark.parametrize("client", [way for way in WAYS if not way.stream], ids=str)
def test_texts_of_rounds_at_home_between_two_abroad_stay_in_their_order(client: Way) -> None:
    """All of them leave at the end, and those at home as they came."""
    abroad = [way for way in WAYS if way.dialect is not client.dialect and not way.array]
    for first, last in product(abroad, abroad):
        texts = spoken(("text", "one"), ("text", "two"), ("text", "three"))
        home = Way(client.dialect)
        raw, _ = drive(answer_for(client), [said(first, texts, 1), said(home, spoken(("text", "home")), 2), said(last, texts, 3)])
        assert read(client, raw).text == "onetwothree\n\nhome\n\nonetwothree", (first, last)


# --- breaks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["cut", "error"])
@pytest.mark.parametrize("client, one", list(product(WAYS, WAYS)), ids=lambda way: str(way))
def test_d18_a_round_that_breaks_is_no_success(client: Way, one: Way, ending: str) -> None:
    raw, [told] = drive(answer_for(client), [said(one, spoken(("text", "half of it"), ending=ending), 1)])
    assert not told.complete
    before, message = error_at_end(client, raw)
    assert "half of it".startswith(before)
    assert message


@pytest.mark.parametrize("client, one, two", covering(WAYS), ids=str)
def test_d18_a_later_round_that_breaks_before_it_showed_anything_never_was(client: Way, one: Way, two: Way) -> None:
    broken = said(two, spoken(("thinking", "not shown"), ending="error"), 2)
    raw, told = drive(answer_for(client), [said(one, ONE, 1), broken])
    assert [one.complete for one in told] == [True, False]
    answer = read(client, raw)
    assert (answer.text, answer.finish) == ("Grüße 😀", FINISH[client.dialect]["stop"])


@pytest.mark.parametrize("client, one", list(product(WAYS, WAYS)), ids=lambda way: str(way))
def test_a_first_round_that_showed_nothing_makes_place_for_another(client: Way, one: Way) -> None:
    begun = {
        CHAT: chunk({"role": "assistant"}),
        MESSAGES: {"type": "message_start", "message": {"id": "msg_gone"}},
        RESPONSES: {"type": "response.created", "sequence_number": 0, "response": {"id": "msg_gone"}},
        GEMINI: {"responseId": "msg_gone", "usageMetadata": {"promptTokenCount": 5}},
    }[one.dialect]
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    raw, _ = drive(answer_for(client), [(one.dialect, sse(begun, busy)), said(one, ONE, 2)])
    assert read(client, raw).text == "Grüße 😀"
    assert b"Overloaded" not in raw
    assert b"msg_gone" not in raw


@pytest.mark.parametrize(
    "client, one", [(one, two) for one, two in product(WAYS, WAYS) if not one.stream and two.stream], ids=str
)
def test_who_waits_for_json_is_told_nothing_of_a_round_that_broke(client: Way, one: Way) -> None:
    """Whatever of it came: another attempt takes its place, or the answer ends as the round before it did."""
    half = one.written(spoken(("text", "half of it"), ("tool", "{}"), ending="cut"), 1)
    for before, behind in product([[], [spoken(("text", "first"))]], [[], [spoken(("text", "whole"))]]):
        if not (before or behind):
            continue
        answer, out = answer_for(client), b""
        for raw in [*(one.written(round_, 1) for round_ in before), half, *(one.written(round_, 2) for round_ in behind)]:
            answer.begin_round(Round(one.dialect, "acme"))
            out += answer.feed(raw)
            answer.end_round()
        told = read(client, out + b"".join(answer.finish()))
        assert (told.text, told.calls) == ("\n\n".join(round_.text for round_ in (*before, *behind)), [])


def test_an_end_is_written_once() -> None:
    for client in WAYS:
        answer = answer_for(client)
        drive(answer, [said(client, ONE, 1)])
        assert list(answer.finish()) == []
        assert b"late" in answer.fail(500, "late", "X"), "what `finish` gave may never have left"
        assert answer.fail(500, "late", "X") == b""
        assert answer.keep_alive() == b""


@pytest.mark.parametrize("reason", [True, False])
@pytest.mark.parametrize("client, one", list(product(WAYS, [Way(CHAT), Way(MESSAGES)])), ids=lambda way: str(way))
def test_d17_an_answer_is_over_when_its_reason_has_come(client: Way, one: Way, reason: bool) -> None:
    raw = said(one, spoken(("text", "hello")), 1)[1]
    last = {CHAT: b"data: [DONE]", MESSAGES: b"event: message_stop"}[one.dialect]
    cut = (
        raw[: raw.index(last)]
        if reason
        else raw[: raw.index({CHAT: b'"finish_reason": "', MESSAGES: b"event: message_d"}[one.dialect])]
    )
    out, [told] = drive(answer_for(client), [(one.dialect, cut)])
    assert told.complete is reason
    if reason:
        assert read(client, out).text == "hello"
    else:
        assert error_at_end(client, out)


def test_keep_alives_stand_between_events() -> None:
    for client, one in product([Way(CHAT), Way(MESSAGES), Way(GEMINI), ARRAY, ENVELOPE], WAYS):
        answer = answer_for(client)
        dialect, raw = said(one, TWO, 1)
        answer.begin_round(Round(dialect))
        out = [answer.feed(raw[place : place + 7]) + answer.keep_alive() for place in range(0, len(raw), 7)]
        answer.end_round()
        told = read(client, b"".join((*out, answer.keep_alive(), *answer.finish())))
        assert told.text == "zwei"
        assert told.alive > 3 or client.array


def test_a_document_without_end_is_an_error_of_its_round() -> None:
    answer = answer_for(Way(CHAT, False))
    answer.begin_round()
    for _ in range(66):
        answer.feed(b"{" + b" " * (1 << 20))
    assert not answer.end_round().complete
    assert answer.error is not None
    assert "64 MiB" in answer.error.message
    assert isinstance(BadAnswer("x"), Exception)


# --- the drift: what several readers had come to say differently, through every path -----------------------------------------

DRIFT: dict[str, tuple[Dialect, bytes, dict[str, Any]]] = {
    # whose stream, its bytes, what every client is told
    "two calls on one index, with ids": (
        CHAT,
        sse(
            chunk({"role": "assistant", "tool_calls": [entry(0, '{"x":1}', "f", "a")]}),
            chunk({"tool_calls": [entry(0, '{"x":2}', "g", "b")]}),
            chunk({}, "tool_calls"),
            b"[DONE]",
        ),
        {"calls": [("f", {"x": 1}), ("g", {"x": 2})], "finish": "tool"},
    ),
    "two calls on one index, without ids": (
        CHAT,
        sse(
            chunk({"role": "assistant", "tool_calls": [entry(0, '{"x":1}', "f")]}),
            chunk({"tool_calls": [entry(0, '{"x":2}', "g")]}),
            chunk({}, "tool_calls"),
            b"[DONE]",
        ),
        {"calls": [("f", {"x": 1}), ("g", {"x": 2})], "finish": "tool", "no_ids": True},
    ),
    "usage in x_groq": (
        CHAT,
        sse(
            chunk({"role": "assistant", "content": "hi"}),
            chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 5, "completion_tokens": 3}}),
            b"[DONE]",
        ),
        {"text": "hi", "finish": "stop", "output": 3},
    ),
    "a call, and a plain stop": (
        CHAT,
        sse(chunk({"role": "assistant", "tool_calls": [entry(0, "{}", "f", "a")]}), chunk({}, "stop"), b"[DONE]"),
        {"calls": [("f", {})], "finish": "tool"},
    ),
    "a call, and end_turn": (
        MESSAGES,
        sse(
            {
                "type": "message_start",
                "message": {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [],
                    "stop_reason": None,
                    "usage": {"input_tokens": 5, "output_tokens": 1},
                },
            },
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            },
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
            name=True,
        ),
        {"calls": [("f", {})], "finish": "tool", "output": 3},
    ),
    "tool_calls, and no call": (
        CHAT,
        sse(chunk({"role": "assistant", "content": "hi"}), chunk({}, "tool_calls"), b"[DONE]"),
        {"text": "hi", "finish": "stop"},
    ),
    "half a call at the limit": (
        CHAT,
        sse(
            chunk({"role": "assistant", "content": "so", "tool_calls": [entry(0, '{"x', "f", "a")]}),
            chunk({}, "length"),
            b"[DONE]",
        ),
        {"text": "so", "finish": "length"},
    ),
    "the reason beside the content": (
        CHAT,
        sse(chunk({"role": "assistant", "content": "hi"}, "stop"), b"[DONE]"),
        {"text": "hi", "finish": "stop"},
    ),
    "calls without ids, and a reason with every chunk": (
        GEMINI,
        sse(
            candidate({"text": "so "}, reason="STOP"),
            candidate({"text": "it is"}, reason="STOP"),
            candidate(called("f", {"x": 1}), called("f", {"x": 2}), reason="STOP", usageMetadata=COUNTS),
        ),
        {"text": "so it is", "calls": [("f", {"x": 1}), ("f", {"x": 2})], "finish": "tool", "output": 3, "raw": True},
    ),
    "a call in parts, and counts behind the reason": (
        GEMINI,
        sse(
            candidate({"functionCall": {"name": "f", "willContinue": True}}),
            candidate(in_part("$.x", "a ")),
            candidate(in_part("$.x", "b", goes_on=False)),
            candidate({"functionCall": {}}, reason="STOP"),
            {"usageMetadata": COUNTS, "responseId": "r-9", "modelVersion": "m"},
        ),
        {"calls": [("f", {"x": "a b"})], "finish": "tool", "output": 3, "raw": True},
    ),
    "signatures on a text, on a call and alone": (
        GEMINI,
        sse(
            candidate({"text": "so", "thoughtSignature": "c2ln"}),
            candidate({"text": " on"}, {"text": "", "thoughtSignature": "c2lo"}),
            candidate(called("f", {}, thoughtSignature="c2lp"), reason="STOP", usageMetadata=COUNTS),
        ),
        {"text": "so on", "calls": [("f", {})], "finish": "tool"},
    ),
    "an unknown reason beside the last text": (
        GEMINI,
        sse(candidate({"text": "hi"}), candidate({"text": "!"}, reason="MYSTERY")),
        {"text": "hi!", "finish": "stop", "raw": True, "word": "MYSTERY"},
    ),
    "an empty error beside it": (
        CHAT,
        sse(
            chunk({"role": "assistant", "content": "hi"}, error={}),
            chunk({}, "stop", error={"message": "", "code": 0}),
            b"[DONE]",
        ),
        {"text": "hi", "finish": "stop"},
    ),
}


@pytest.mark.parametrize("before", [False, True], ids=["alone", "behind another round"])
@pytest.mark.parametrize("client", WAYS, ids=str)
@pytest.mark.parametrize("case", DRIFT)
def test_every_path_says_the_same(case: str, client: Way, before: bool) -> None:
    dialect, raw, expected = DRIFT[case]
    first = [said(Way(dialect), spoken(("text", "zero"), output=0), 1)] if before else []
    told_bytes, told = drive(answer_for(client), [*first, (dialect, raw)])
    if "half a call" in case and (client.stream or client.dialect is dialect):
        assert FINISH[client.dialect]["length"].encode() in told_bytes
        return
    if client in (Way(GEMINI), ARRAY) and dialect is GEMINI and expected.get("raw") and (not before or "in parts" in case):
        return  # parts and reasons as its provider gave them
    if client == Way(dialect) and (expected.get("no_ids") or (not before and ("one index" in case or "x_groq" in case))):
        return  # its provider's own bytes
    answer = read(client, told_bytes)
    assert answer.text == "\n\n".join(filter(None, ("zero" if before else "", expected.get("text", ""))))
    assert answer.calls == expected.get("calls", [])
    stays = client.dialect is dialect and not before
    assert answer.finish == ((stays and expected.get("word")) or FINISH[client.dialect][expected["finish"]])
    assert answer.output == expected.get("output", answer.output)
    assert "half" in case or [(call.name, json.loads(call.arguments)) for call in told[-1].calls] == expected.get("calls", [])
    assert told[-1].usage.output == expected.get("output", told[-1].usage.output)


@pytest.mark.parametrize("client", WAYS, ids=str)
def test_our_call_without_an_id_gets_one(client: Way) -> None:
    raw = sse(chunk({"role": "assistant", "tool_calls": [entry(0, "{}", "clock")]}), chunk({}, "tool_calls"), b"[DONE]")
    _, [told] = drive(answer_for(client), [(CHAT, raw)])
    assert told.own[0].id
    assert told.own[0].id in json.dumps(told.native)


@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_that_was_sent_under_another_name_has_the_clients(stream: bool) -> None:
    answer = answer_for(Way(MESSAGES, stream))
    answer.begin_round(Round(CHAT, "acme", {"clock_2": ToolName("clock"), "f_2": ToolName("f.long")}))
    raw = sse(
        chunk({"role": "assistant", "tool_calls": [entry(0, "{}", "clock_2", "a"), entry(1, "{}", "f_2", "b")]}),
        chunk({}, "tool_calls"),
        b"[DONE]",
    )
    out = answer.feed(raw)
    told = answer.end_round()
    assert told.own == (ToolCall("a", "clock", "{}"),)
    answered = grammar.read(MESSAGES, b"".join((out, *answer.finish())), stream)
    assert answered.calls == [("f.long", {})]


def test_a_custom_tool_for_a_client_that_knows_functions_alone() -> None:
    begun = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "shell", "input": 'ls "'}}
    more = {"index": 0, "custom": {"input": "\n"}}
    raw = sse(
        chunk({"role": "assistant", "tool_calls": [begun]}), chunk({"tool_calls": [more]}), chunk({}, "tool_calls"), b"[DONE]"
    )
    for stream in (True, False):
        out, [told] = drive(answer_for(Way(MESSAGES, stream)), [(CHAT, raw)])
        assert grammar.read(MESSAGES, out, stream).calls == [("shell", {"input": 'ls "\n'})]
        assert json.loads(told.calls[0].arguments) == {"input": 'ls "\n'}


def test_what_is_exact_keeps_its_wrong_reason() -> None:
    raw = DRIFT["a call, and a plain stop"][1]
    answer = answer_for(Way(CHAT))
    assert drive(answer, [(CHAT, raw)])[0] != raw
    assert drive(answer_for(Way(CHAT)), [(CHAT, raw)], exact=True)[0] == raw


def test_nothing_is_read_behind_the_end() -> None:
    raw = WRITTEN[CHAT, True](ONE, 1)
    out, [told] = drive(answer_for(Way(MESSAGES)), [(CHAT, raw + raw)])
    assert told.text == "Grüße 😀"
    assert grammar.read(MESSAGES, out, True).text == "Grüße 😀"


@pytest.mark.parametrize("client", [Way(dialect) for dialect in Dialect], ids=str)
@pytest.mark.parametrize("spoken, end", [(CHAT, b"data: [DONE]"), (MESSAGES, b"event: message_stop")], ids=["chat", "messages"])
def test_an_answer_has_ended_when_its_reason_has_come(client: Way, spoken: Dialect, end: bytes) -> None:
    """And not before, whoever asks."""
    raw = WRITTEN[spoken, True](ONE, 1)
    whole, [full] = drive(answer_for(client), [(spoken, raw)])
    cut, [told] = drive(answer_for(client), [(spoken, raw[: raw.index(end)])])
    assert (read(client, cut), told.complete, told.finish) == (read(client, whole), True, full.finish)
    broken, [half] = drive(answer_for(client), [(spoken, raw[: raw.rindex(FINISH[spoken]["stop"].encode())])])
    assert not half.complete
    assert error_at_end(client, broken)


@pytest.mark.parametrize("client", WAYS, ids=str)
def test_nothing_at_all_is_no_answer(client: Way) -> None:
    for dialect in Dialect:
        out, [told] = drive(answer_for(client), [(dialect, b"")])
        assert not told.complete
        assert error_at_end(client, out)
