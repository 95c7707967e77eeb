"""A provider's echo of the key that it was sent, spread over the texts of several events."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

import pytest

from routecodex.routing.dialects.answer.echoes import texts_behind
from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.masking import HOLD_S, SURE
from routecodex.routing.redact import MASK
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer.rounds import sse_documents
from tests.routing.dialects.answer.talks import (
    CHAT,
    COUNTS,
    GEMINI,
    MESSAGES,
    RESPONSES,
    WAYS,
    Way,
    answer_for,
    candidate,
    chunk,
    entry,
    in_part,
    read,
    sse,
)

KEY = "sk-ant-api03-Zm9vYmFyYmF6cXV4"
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def events(dialect: Dialect, pieces: list[str]) -> list[bytes]:
    """A stream of these texts, an event each."""

    def about(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", **more}

    match dialect:
        case Dialect.CHAT:
            told = [chunk({"role": "assistant"}), *(chunk({"content": one}) for one in pieces), chunk({}, "stop")]
            return [sse(one) for one in told] + [b"data: [DONE]\n\n"]
        case Dialect.MESSAGES:
            deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}} for one in pieces]
            told = [
                {
                    "type": "message_start",
                    "message": {"id": "msg_1", "type": "message", "model": "m", "role": "assistant", "usage": USAGE},
                },
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                *deltas,
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
                {"type": "message_stop"},
            ]
            return [sse(one, name=True) for one in told]
        case Dialect.GEMINI:
            return [sse(candidate({"text": one})) for one in pieces] + [
                sse(candidate({"text": ""}, reason="STOP", usageMetadata=COUNTS))
            ]
        case Dialect.RESPONSES:
            at = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
            response = {"id": "resp_1", "object": "response", "model": "m", "status": "in_progress", "output": []}
            response |= {"error": None, "incomplete_details": None}
            # what the end tells again was masked in one piece
            whole = {**part, "text": "".join(pieces).replace(KEY, MASK)}
            done = {**item, "status": "completed", "content": [whole]}
            told = [
                about("created", response=response),
                about("in_progress", response=response),
                about("output_item.added", output_index=0, item=item),
                about("content_part.added", **at, part=part),
                *(about("output_text.delta", **at, delta=one) for one in pieces),
                about("output_text.done", **at, text=whole["text"]),
                about("content_part.done", **at, part=whole),
                about("output_item.done", output_index=0, item=done),
                about("completed", response={**response, "status": "completed", "output": [done], "usage": USAGE}),
            ]
            return [sse({**one, "sequence_number": number}, name=True) for number, one in enumerate(told)]


def begun(client: Way, spoken: Dialect, *, quiet: bool = False) -> Answer:
    answer = answer_for(client, quiet=quiet)
    answer.begin_round(Round(spoken), secrets=(KEY,))
    return answer


def told(answer: Answer, reads: list[bytes]) -> bytes:
    out = [answer.feed(one) for one in reads]
    answer.end_round()
    return b"".join([*out, *answer.finish()])


def cut(size: int) -> list[str]:
    return [KEY[at : at + size] for at in range(0, len(KEY), size)]


@pytest.mark.parametrize("quiet", [False, True], ids=["read", "quiet"])
@pytest.mark.parametrize("spoken", list(Dialect))
@pytest.mark.parametrize("client", [way for way in WAYS if not way.array], ids=str)
@pytest.mark.parametrize("size", [1, 3, 7, 20])
def test_nobody_is_told_a_key_that_is_spread_over_events(client: Way, spoken: Dialect, quiet: bool, size: int) -> None:
    """Nor in reads of several events, where nobody reads them."""
    written = events(spoken, ["Dein", " Schlüssel ist", " ", *cut(size), ", der ist", " ask", "ant."])
    for together in (1, 4):
        reads = [b"".join(written[at : at + together]) for at in range(0, len(written), together)]
        out = told(begun(client, spoken, quiet=quiet), reads)
        assert not any(KEY[at : at + SURE].encode() in out for at in range(len(KEY) - SURE))
        if client.dialect is spoken is RESPONSES and client.stream:
            continue  # what its end tells again was masked as a whole, these few characters with it
        before, _, behind = read(client, out).text.partition(MASK)
        assert behind == ", der ist askant."
        assert before in {f"Dein Schlüssel ist {KEY[:few]}" for few in range(SURE)}


@pytest.mark.parametrize("spoken", list(Dialect))
def test_what_only_begins_like_a_key_is_told_as_it_came(spoken: Dialect) -> None:
    written = events(spoken, ["sk-", "ant-", "api", "0", "4 is", " no key. s", "k"])
    client = Way(spoken)
    for quiet in (False, True):
        assert told(begun(client, spoken, quiet=quiet), written) == b"".join(written)


def test_a_text_waits_for_its_next_piece_and_no_longer() -> None:
    written = events(CHAT, [KEY[:6], KEY[6:10], KEY[10:12]])
    answer = begun(Way(CHAT), CHAT)
    assert KEY[:6].encode() in b"".join([answer.feed(one, 1.0) for one in written[:2]]), "that is nobody's secret yet"
    assert answer.feed(written[2], 1.0) == b""
    assert answer.due == 1.0 + HOLD_S
    assert answer.tick(1.0 + HOLD_S / 2) == b""
    assert answer.tick(1.0 + HOLD_S) == written[2], "it is less than half of one"
    assert answer.due == inf
    assert SURE <= 8


def test_what_waited_too_long_and_is_half_of_it_is_masked() -> None:
    written = events(MESSAGES, [KEY[:6], KEY[6:20], KEY[20:], " end"])
    answer = begun(Way(MESSAGES), MESSAGES)
    out = [answer.feed(one, 1.0) for one in written[:4]]
    out.append(answer.tick(2.0))
    out += [answer.feed(one, 3.0) for one in written[4:]]
    answer.end_round()
    raw = b"".join([*out, *answer.finish()])
    assert KEY[10:].encode() not in raw
    assert read(Way(MESSAGES), raw).text.endswith(f"{MASK} end")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", list(Dialect))
@pytest.mark.parametrize("spoken", [CHAT, GEMINI])
def test_a_key_that_ends_where_the_answer_does(spoken: Dialect, client: Dialect, stream: bool) -> None:
    """In a unit that tells the reason as well; and in one behind a reason, which may not have been the last."""
    for pieces in (["so ", KEY[:12], KEY[12:]], ["so ", KEY[:12], KEY[12:20], KEY[20:]]):
        for reasons in (1, 2):
            ended = [("STOP" if spoken is GEMINI else "stop") if len(pieces) - at <= reasons else "" for at in range(len(pieces))]
            texts = zip(pieces, ended, strict=True)
            if spoken is GEMINI:
                units = [sse(candidate({"text": text}, reason=reason, usageMetadata=COUNTS)) for text, reason in texts]
            else:
                units = [sse(chunk({"content": text}, reason or None)) for text, reason in texts] + [b"data: [DONE]\n\n"]
            out = told(begun(Way(client, stream), spoken), units)
            assert KEY[12:20].encode() not in out
            assert MASK.encode() in out


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", [CHAT, RESPONSES, GEMINI])
def test_a_key_in_a_text_beside_which_another_begins(client: Dialect, stream: bool) -> None:
    def delta(index: int, text: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}

    empty = {"type": "text", "text": ""}
    units = events(MESSAGES, ["so ", KEY[:12], KEY[12:]])
    units.insert(4, sse({"type": "content_block_start", "index": 1, "content_block": empty}, delta(1, "other"), name=True))
    out = told(begun(Way(client, stream), MESSAGES), units)
    assert KEY[12:].encode() not in out
    assert read(Way(client, stream), out).text == f"so {MASK}other"


def test_arguments_are_looked_at_as_well() -> None:
    def entry(text: str, **more: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text, **more.pop("function", {})}, **more}]})

    first = entry("", id="call_1", type="function", function={"name": "read"})
    escaped = KEY.replace("-", "\\u002d")
    for spread in (
        cut(4),
        [escaped],
        *([escaped[at : at + size] for at in range(0, len(escaped), size)] for size in (1, 3, 5, 8)),
    ):
        written = [chunk({"role": "assistant"}), first, *(entry(one) for one in ('{"k": "', *spread, '"}'))]
        raw = [sse(one) for one in (*written, chunk({}, "tool_calls"))] + [b"data: [DONE]\n\n"]
        for client, quiet in itertools.product((Way(CHAT), Way(MESSAGES), Way(RESPONSES), Way(GEMINI)), (False, True)):
            out = told(begun(client, CHAT, quiet=quiet), raw)
            [(name, given)] = read(client, out).calls
            assert (name, given["k"]) in [("read", f"{KEY[:few]}{MASK}") for few in range(SURE)]


@pytest.mark.parametrize("quiet", [False, True], ids=["read", "quiet"])
@pytest.mark.parametrize("size", [3, 9])
@pytest.mark.parametrize("field", ["content", "reasoning_content", "a vendor's own", "arguments"])
def test_a_key_in_another_choice(field: str, size: int, quiet: bool) -> None:
    """Of each its own: what one says goes on in it, whatever the others say in between, or in the same unit."""

    def delta(text: str) -> dict[str, Any]:
        return {"tool_calls": [entry(0, text)]} if field == "arguments" else {field: text}

    for together in (False, True):
        units = [sse(chunk({"role": "assistant", "content": "first"}))]
        for piece in ("so ", *cut(size), " end"):
            one, other = chunk({"content": piece if together else "."}), chunk(delta(piece))
            other["choices"][0]["index"] = 1
            if together:
                units.append(sse({**one, "choices": one["choices"] + other["choices"]}))
            else:
                units += [sse(other), sse(one)]
        units += [sse(chunk({}, "stop")), b"data: [DONE]\n\n"]
        out = told(begun(Way(CHAT), CHAT, quiet=quiet), units)
        others = [
            choice
            for one in sse_documents(out.replace(b"data: [DONE]\n\n", b""))
            for choice in one["choices"]
            if choice["index"] == 1
        ]
        deltas = [choice["delta"] for choice in others]
        text = "".join(
            [each["tool_calls"][0]["function"]["arguments"] if "tool_calls" in each else each[field] for each in deltas]
        )
        assert text in [f"so {KEY[:few]}{MASK} end" for few in range(SURE)]
        assert len(deltas) == len(cut(size)) + 2, "each unit is told, if it says nothing"
        assert KEY[SURE + size :][:SURE].encode() not in out


@pytest.mark.parametrize("quiet", [False, True], ids=["read", "quiet"])
def test_a_key_in_another_candidate(quiet: bool) -> None:
    pieces = ["so ", *cut(5), " end"]
    units = []
    for piece in pieces:
        one = candidate({"text": "."})
        one["candidates"].append({"content": {"parts": [{"text": piece}], "role": "model"}, "index": 1})
        units.append(sse(one))
    units.append(sse(candidate({"text": ""}, reason="STOP", usageMetadata=COUNTS)))
    out = told(begun(Way(GEMINI), GEMINI, quiet=quiet), units)
    others = [one["candidates"][1]["content"]["parts"][0]["text"] for one in sse_documents(out)[:-1]]
    assert "".join(others) == f"so {KEY[:5]}{MASK} end"
    assert read(Way(GEMINI), out).text == "." * len(pieces)


@pytest.mark.parametrize("kind", ["code_interpreter_call_code", "nobody_knows"])
@pytest.mark.parametrize("quiet", [False, True], ids=["read", "quiet"])
def test_a_key_in_what_a_providers_own_tool_says(quiet: bool, kind: str) -> None:
    units = events(RESPONSES, ["hello"])
    pieces = ["so ", *cut(5), " end"]
    grows = {"type": f"response.{kind}.delta", "item_id": "ci_1", "output_index": 0, "sequence_number": 9}
    units[4:4] = [sse({**grows, "delta": piece}, name=True) for piece in pieces]
    out = told(begun(Way(RESPONSES), RESPONSES, quiet=quiet), units)
    told_pieces = [one["delta"] for one in sse_documents(out) if one["type"] == grows["type"]]
    assert "".join(told_pieces) == f"so {KEY[:5]}{MASK} end"
    assert len(told_pieces) == len(pieces)


@pytest.mark.parametrize("client", [Way(GEMINI), Way(GEMINI, stream=False), Way(CHAT)], ids=str)
def test_a_key_in_the_pieces_of_an_argument(client: Way) -> None:
    """Gemini tells a call's arguments one path at a time. What is kept of the call for its history is masked as well."""
    parts = [in_part("$.k", piece) for piece in ("so ", *cut(9))] + [in_part("$.k", " end", goes_on=False), {"functionCall": {}}]
    parts.insert(0, in_part("$.other", "between", goes_on=False))
    begins = {"functionCall": {"name": "read", "willContinue": True}}
    units = [sse(candidate(part)) for part in (begins, *parts)] + [
        sse(candidate({"text": ""}, reason="STOP", usageMetadata=COUNTS))
    ]
    answer = begun(client, GEMINI)
    out = [answer.feed(one) for one in units]
    said = answer.end_round()
    raw = b"".join([*out, *answer.finish()])
    assert KEY[12:20].encode() not in raw
    if client.dialect is GEMINI and client.stream:
        calls = [part.get("functionCall", {}) for one in sse_documents(raw) for part in one["candidates"][0]["content"]["parts"]]
        pieces = [one for call in calls for one in call.get("partialArgs", ())]
        given = {
            path: "".join([one["stringValue"] for one in pieces if one["jsonPath"] == f"$.{path}"]) for path in ("k", "other")
        }
    else:
        [(_, given)] = read(client, raw).calls
    assert given["other"] == "between"
    assert given["k"] in [f"so {KEY[:few]}{MASK} end" for few in range(SURE)]
    assert KEY[12:20] not in str(said)
    assert MASK in said.calls[0].arguments
    assert MASK in str(said.native)


def test_ordinary_texts_still_leave_unread() -> None:
    """And what came before a key is known where they did."""
    written = events(CHAT, ["Ein", " Wort", "s", "k", "a", "t", " und", " noch", " eins", ".", *cut(2)])
    answer = begun(Way(CHAT), CHAT, quiet=True)
    source = answer._source
    unread = 0
    answer.feed(b"".join(written[:2]))
    for one in written[2:12]:
        calm = source.calm
        assert answer.feed(one) == one
        unread += calm and source._newest == one
    assert unread >= 6
    assert b"".join([answer.feed(one) for one in written[12:]]).count(MASK.encode()) == 1


@pytest.mark.parametrize("key", ["k3y-42", "k3y-42x"])
def test_a_short_key(key: str) -> None:
    for pieces in ([key], list(key)):
        answer = answer_for(Way(CHAT))
        answer.begin_round(secrets=(key, "short"))
        text = read(Way(CHAT), told(answer, events(CHAT, ["a", *pieces, " b short"]))).text
        assert text in [f"a{key[:few]}{MASK} b short" for few in range(len(key))]


def test_what_texts_are_read_without_reading_their_events() -> None:
    """Only where each event has one, and nothing is escaped at its end."""
    one, two = b'data: {"text":"a b"}\n\n', b'data: {"text":"c","text":"d"}\n\n'
    assert texts_behind(b'"text":"', one + one) == b"a ba b"
    assert texts_behind(b'"text":"', one + two) is None
    assert texts_behind(b'"text":"', one + b"data: {}\n\n") is None
    assert texts_behind(b'"text":"', b'data: {"text":"a\\"b"}\n\n') is None
