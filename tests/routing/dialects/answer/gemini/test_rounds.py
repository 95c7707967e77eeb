# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.values import Dialect, Endpoint, Usage
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.rounds import OWN, Spoken, spoken
from tests.routing.turn.test_turn_rounds import Bench

PATHS = {
    "sse": "/v1beta/models/m:streamGenerateContent?alt=sse",
    "array": "/v1beta/models/m:streamGenerateContent",
    "envelope": "/v1internal:streamGenerateContent?alt=sse",
    "json": "/v1beta/models/m:generateContent",
    "envelope-json": "/v1internal:generateContent",
}
STREAMS = ("sse", "array", "envelope")
WHOLES = ("json", "envelope-json")


def _endpoint(form: str) -> Endpoint:
    endpoint = endpoint_of("POST", PATHS[form])
    assert endpoint is not None
    return endpoint


def _merger(form: str = "sse") -> Answer:
    endpoint = _endpoint(form)
    return answer_for(endpoint, stream=endpoint.stream is True, own_tools=OWN)


def _raws(given_: list[Spoken], form: str = "sse") -> list[bytes]:
    return [_raw(round_, number, form) for number, round_ in enumerate(given_, 1)]


def _raw(round_: Spoken, number: int, form: str = "sse") -> bytes:
    if form in WHOLES:
        return rounds.gemini_json(round_, number, envelope=form == "envelope-json")
    return rounds.gemini_stream(round_, number, array=form == "array", envelope=form == "envelope")


def _documents(raw: bytes, form: str = "sse") -> list[dict[str, Any]]:
    documents = rounds.array_documents(raw) if form == "array" else rounds.sse_documents(raw)
    return [one["response"] for one in documents] if form == "envelope" else documents


TEXT, THOUGHT = ("text", "Grüße, 世界 😀 one"), ("thinking", "let me see")
OWN_CALL, TOOL = ("own", '{"action": "now"}'), ("tool", '{"command": "ls -la"}')

CASES: dict[str, tuple[list[Spoken], list[str], str]] = {
    # rounds, the kinds of part that the client sees (pieces of one text as one), finishReason
    "text+text": ([spoken(TEXT, input=100, output=3), spoken(("text", "two"), input=120, output=5)], ["text"], "STOP"),
    "four texts": ([spoken(("text", word)) for word in ("a", "b b", "c\n", "d")], ["text"], "STOP"),
    "text, own, text": ([spoken(TEXT, OWN_CALL, ("text", "behind"))], ["text"], "STOP"),
    "own between rounds": ([spoken(TEXT, OWN_CALL), spoken(("text", "it is noon"))], ["text"], "STOP"),
    "only own, then text": ([spoken(OWN_CALL), spoken(("text", "it is noon"))], ["text"], "STOP"),
    "two own at once": ([spoken(OWN_CALL, OWN_CALL), spoken(TEXT)], ["text"], "STOP"),
    "thinking, own, thinking": ([spoken(THOUGHT, OWN_CALL), spoken(THOUGHT, TEXT)], ["thought", "text"], "STOP"),
    "thinking+text twice": ([spoken(THOUGHT, TEXT), spoken(THOUGHT, ("text", "two"))], ["thought", "text"], "STOP"),
    "tool in round 2": ([spoken(TEXT), spoken(("text", "now"), TOOL)], ["text", "functionCall"], "STOP"),
    "only a tool in round 2": ([spoken(TEXT), spoken(TOOL)], ["text", "functionCall"], "STOP"),
    "own and tool in round 1": ([spoken(TEXT, OWN_CALL, TOOL)], ["text", "functionCall"], "STOP"),
    "tool, own, tool": ([spoken(TOOL, OWN_CALL, TOOL)], ["functionCall", "functionCall"], "STOP"),
    "tool between texts": ([spoken(TEXT), spoken(("text", "b"), TOOL, ("text", "c"))], ["text", "functionCall", "text"], "STOP"),
    "code in round 2": ([spoken(TEXT), spoken(("server", "print(1)"), ("text", "c"))], ["text", "executableCode", "text"], "STOP"),
    "empty second round": ([spoken(TEXT), spoken()], ["text"], "STOP"),
    "empty first round": ([spoken(), spoken(TEXT)], ["text"], "STOP"),
    "all empty": ([spoken(), spoken()], [], "STOP"),
    "max tokens at the end": ([spoken(TEXT), spoken(("text", "cut"), finish="MAX_TOKENS")], ["text"], "MAX_TOKENS"),
    "max tokens in the middle": ([spoken(TEXT, finish="MAX_TOKENS"), spoken(("text", "on"))], ["text"], "STOP"),
    "safety": ([spoken(TEXT), spoken(finish="SAFETY")], ["text"], "SAFETY"),
    "a last own call": ([spoken(TEXT), spoken(OWN_CALL)], ["text"], "STOP"),
}  # fmt: skip


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("form", STREAMS)
@pytest.mark.parametrize("case", CASES)
def test_m34_one_well_formed_stream(case: str, form: str, way: str) -> None:
    given_, kinds, reason = CASES[case]
    merger = _merger(form)
    raw, said = rounds.drive(merger, _raws(given_, form), rounds.WAYS[way])
    documents = _documents(raw, form)
    streams.check_gemini(documents)
    parts = rounds.gemini_accumulated(documents)
    assert [_kind(part) for part in parts] == kinds
    last = documents[-1]
    assert last["candidates"][0]["finishReason"] == reason
    assert {(one["responseId"], one["modelVersion"]) for one in documents} == {("resp-1", "m-1")}
    assert _text(parts) == "\n\n".join(filter(None, (round_.text for round_ in given_)))
    assert last["usageMetadata"]["candidatesTokenCount"] == sum(round_.output for round_ in given_)
    assert last["usageMetadata"]["promptTokenCount"] == given_[-1].input
    assert [one.complete for one in said] == [True] * len(given_)
    assert rounds.is_known_again(Dialect.GEMINI, said, [{"role": "model", "parts": parts}])


@pytest.mark.parametrize("form", WHOLES)
@pytest.mark.parametrize("case", CASES)
def test_m35_stream_and_json_say_the_same(case: str, form: str) -> None:
    given_, _, reason = CASES[case]
    streaming, whole = _merger(), _merger(form)
    raw, said = rounds.drive(streaming, _raws(given_))
    answer, said_whole = rounds.drive(whole, _raws(given_, form))
    documents, merged = _documents(raw), json.loads(answer)
    if form == "envelope-json":
        assert merged["traceId"] == "t-1"
        merged = merged["response"]
    assert merged["vendorField"] == 1
    assert rounds.gemini_accumulated([merged]) == rounds.gemini_accumulated(documents)
    assert merged["candidates"][0]["content"]["parts"]
    assert merged["candidates"][0]["finishReason"] == reason
    assert merged["usageMetadata"] == documents[-1]["usageMetadata"]
    assert (merged["responseId"], merged["modelVersion"]) == ("resp-1", "m-1")
    assert [_comparable(one) for one in said] == [_comparable(one) for one in said_whole]


def test_m35_usage() -> None:
    given_ = [spoken(THOUGHT, TEXT, input=100, output=3), spoken(TEXT, input=120, output=5)]
    merger = _merger()
    raw, said = rounds.drive(merger, _raws(given_))
    counts = {"promptTokenCount": 120, "candidatesTokenCount": 8, "thoughtsTokenCount": 4, "totalTokenCount": 132}
    assert _documents(raw)[-1]["usageMetadata"] == counts
    assert [one.usage for one in said] == [Usage(100, 7), Usage(120, 5)]


@pytest.mark.parametrize("case", CASES)
def test_said(case: str) -> None:
    given_, _, _ = CASES[case]
    _, said = rounds.drive(_merger(), _raws(given_))
    ids: list[str] = []
    for number, (round_, one) in enumerate(zip(given_, said, strict=True), 1):
        parts = rounds.gemini_parts(round_, number)
        assert [dict(item) for item in one.native] == ([{"role": "model", "parts": parts}] if parts else [])
        assert one.text == round_.text
        assert [call.name for call in one.calls] == [
            "clock" if kind == "own" else "Bash" for kind, _ in round_.parts if kind in ("own", "tool")
        ]
        assert [json.loads(call.arguments) for call in one.own] == [
            json.loads(text) for kind, text in round_.parts if kind == "own"
        ]
        assert one.id == f"resp-{number}"
        assert one.error is None
        ids += [call.id for call in one.calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("form", PATHS)
@pytest.mark.parametrize("case", ["text", "thinking", "tool", "empty"])
def test_one_round_is_its_own_bytes(case: str, form: str, way: str) -> None:
    given_ = {
        "text": spoken(TEXT),
        "thinking": spoken(THOUGHT, TEXT, finish="MAX_TOKENS"),
        "tool": spoken(THOUGHT, TEXT, TOOL, TOOL),
        "empty": spoken(),
    }[case]
    raw = _raw(given_, 1, form)
    assert rounds.drive(_merger(form), [raw], rounds.WAYS[way])[0] == raw


def _with_reason_everywhere(raw: bytes) -> bytes:
    return raw.replace(b'"index": 0}', b'"index": 0, "finishReason": "STOP"}')


USAGE = b'data: {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 9}, "responseId": "resp-1", "modelVersion": "m-1"}\r\n\r\n'
ODD: dict[str, bytes] = {
    "lf": rounds.gemini_stream(spoken(THOUGHT, TEXT), 1, end=b"\n"),
    "no last blank line": _raw(spoken(TEXT), 1)[:-2],
    "no last line end at all": _raw(spoken(TEXT), 1)[:-4],
    "a reason with every chunk": _with_reason_everywhere(_raw(spoken(TEXT), 1)),
    "usage in a chunk of its own": _raw(spoken(TEXT), 1) + USAGE,
    "an empty last chunk": _raw(spoken(("text", TEXT[1]), ("text", "")), 1),
    "white space behind": _raw(spoken(TEXT), 1) + b"\n\n",
    "[DONE] behind": _raw(spoken(TEXT), 1) + b"data: [DONE]\n\n",
}  # fmt: skip


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_round_is_its_own_bytes(case: str, way: str) -> None:
    out, said = rounds.drive(_merger(), [ODD[case]], rounds.WAYS[way])
    assert out == ODD[case]
    assert said[0].complete
    assert said[0].text == TEXT[1]


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("place", [0, 1])
def test_an_odd_round_is_merged(case: str, place: int, way: str) -> None:
    given_ = [ODD[case], _raw(spoken(("text", "two")), 2)]
    raw, _ = rounds.drive(_merger(), given_ if place == 0 else given_[::-1], rounds.WAYS[way])
    documents = _documents(raw)
    if place == 1 or case != "a reason with every chunk":
        streams.check_gemini(documents)
    assert documents[-1]["candidates"][0]["finishReason"] == "STOP"
    texts = [TEXT[1], "two"]
    shown = [part for part in rounds.gemini_accumulated(documents) if not part.get("thought")]
    assert _text(shown) == "\n\n".join(texts if place == 0 else texts[::-1])
    if case == "usage in a chunk of its own":
        assert documents[-1]["usageMetadata"]["candidatesTokenCount"] == 19


@pytest.mark.parametrize("form", STREAMS)
def test_m34_live(form: str) -> None:
    """The text beside a reason leaves as soon as another round is on its way, or the client is kept waiting."""
    raw = _raw(spoken(("text", "abc")), 1, form)
    for wait in (False, True):
        merger = _merger(form)
        out, said = rounds.feed_round(merger, raw)
        assert (out, said.text) == (b"", "abc")
        waited = merger.keep_alive() if wait else merger.feed(b"")
        merger.begin_round()
        assert merger.feed(b"") == b""
        assert b"abc" in waited
        assert b"finishReason" not in waited
        assert waited.endswith(b"\n") == (wait or form != "array")


def test_a_wait_costs_nothing_but_the_reasons_place() -> None:
    """Kept alive behind its last chunk, and then over: the reason comes with an empty text."""
    merger = _merger()
    out, _ = rounds.feed_round(merger, _raw(spoken(TEXT), 1))
    documents = _documents(out + merger.keep_alive() + merger.keep_alive() + b"".join(merger.finish()))
    streams.check_gemini(documents)
    assert documents[-1]["candidates"][0]["content"]["parts"] == [{"text": ""}]
    assert _text(rounds.gemini_accumulated(documents)) == TEXT[1]


@pytest.mark.parametrize("form", STREAMS)
def test_keep_alive_at_any_moment(form: str) -> None:
    merger = _merger(form)
    raws = _raws([spoken(THOUGHT, TEXT), spoken(("text", "two"), TOOL)], form)
    out = [merger.keep_alive()]
    for raw in raws:
        merger.begin_round()
        for chunk in rounds.bytewise(raw):
            out += [merger.feed(chunk), merger.keep_alive()]
        merger.end_round()
        out.append(merger.keep_alive())
    out.append(b"".join(merger.finish()))
    documents = _documents(b"".join(out), form)
    streams.check_gemini(documents)
    plain, _ = rounds.drive(_merger(form), raws)
    assert rounds.gemini_accumulated(documents) == rounds.gemini_accumulated(_documents(plain, form))


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("form", STREAMS)
def test_d18_a_broken_later_round_counts_for_nothing(form: str, way: str) -> None:
    merger = _merger(form)
    given_ = [
        spoken(TEXT, output=3),
        spoken(THOUGHT, ending="cut"),
        spoken(THOUGHT, ending="error"),
        spoken(("text", "two"), input=9, output=5),
    ]
    raws = _raws(given_, form)
    raw, said = rounds.drive(merger, raws, rounds.WAYS[way])
    assert [one.complete for one in said] == [True, False, False, True]
    assert [one.error is not None for one in said] == [False, False, True, False]
    documents = _documents(raw, form)
    streams.check_gemini(documents)
    assert _text(rounds.gemini_accumulated(documents)) == TEXT[1] + "\n\ntwo"
    assert documents[-1]["usageMetadata"]["candidatesTokenCount"] == 8
    ended, _ = rounds.drive(_merger(form), raws[:3], rounds.WAYS[way])
    documents = _documents(ended, form)
    streams.check_gemini(documents)
    assert rounds.gemini_accumulated(documents) == rounds.gemini_accumulated(_documents(raws[0], form))
    assert documents[-1]["usageMetadata"]["candidatesTokenCount"] == 3


@pytest.mark.parametrize("form", STREAMS)
@pytest.mark.parametrize("ending", ["cut", "error"])
def test_d18_fail(ending: str, form: str) -> None:
    merger = _merger(form)
    out, said = rounds.feed_round(merger, _raw(spoken(TEXT, ending=ending), 1, form))
    assert not said.complete
    raw = out + merger.fail(502, "It broke.", "UPSTREAM_ERROR")
    documents = rounds.array_documents(raw) if form == "array" else rounds.sse_documents(raw)
    assert documents[-1]["error"]["message"] == "It broke."
    assert next(iter(documents[-1])) == "error"
    assert ["error" in one for one in documents].count(True) == 1


@pytest.mark.parametrize("form", STREAMS)
def test_d18_no_end_is_invented(form: str) -> None:
    """Whoever finishes a broken answer gets an error for it; one that showed nothing leaves the round before it whole."""
    merger = _merger(form)
    out, _ = rounds.drive(merger, _raws([spoken(TEXT), spoken(("text", "and more"), ending="cut")], form))
    documents = rounds.array_documents(out) if form == "array" else rounds.sse_documents(out)
    assert "error" in documents[-1]
    merger = _merger(form)
    out, _ = rounds.drive(merger, _raws([spoken(TEXT, ending="cut")], form))
    documents = rounds.array_documents(out) if form == "array" else rounds.sse_documents(out)
    assert "error" in documents[-1]


@pytest.mark.parametrize("form", STREAMS)
def test_d18_fail_before_anything(form: str) -> None:
    merger = _merger(form)
    merger.begin_round()
    merger.end_round()
    raw = merger.keep_alive() + merger.fail(502, "It broke.", "UPSTREAM_ERROR")
    documents = json.loads(raw) if form == "array" else rounds.sse_documents(raw.lstrip())
    assert [one["error"]["message"] for one in documents] == ["It broke."]


def test_d18_a_first_rounds_own_error_is_passed_on_as_it_is() -> None:
    merger = _merger()
    raw = _raw(spoken(THOUGHT, TEXT, ending="error"), 1)
    out, said = rounds.feed_round(merger, raw)
    assert said.error is not None
    assert (said.error.status, said.error.message) == (503, "Overloaded")
    assert out + merger.fail(said.error.status, said.error.message, said.error.code) == raw


def test_d18_an_array_without_its_end_gets_one() -> None:
    raw = _raw(spoken(TEXT), 1, "array")
    out, said = rounds.drive(_merger("array"), [raw[: raw.rindex(b"]")]])
    assert said[0].complete
    assert json.loads(out) == json.loads(raw)


@pytest.mark.parametrize("form", STREAMS)
def test_an_end_that_never_left_may_still_become_an_error(form: str) -> None:
    """Remembering the turn has failed behind `finish`."""
    for given_ in ([spoken(OWN_CALL)], [spoken(TEXT)], [spoken(("text", "abc")), spoken(TEXT)]):
        merger = _merger(form)
        out = b"".join(rounds.feed_round(merger, raw)[0] for raw in _raws(given_, form))
        b"".join(merger.finish())
        raw = out + merger.fail(500, "It broke.", "X")
        documents = rounds.array_documents(raw) if form == "array" else rounds.sse_documents(raw)
        assert documents[-1]["error"]["message"] == "It broke."


@pytest.mark.parametrize("form", STREAMS)
def test_what_is_cut_off_behind_the_end_is_left_out(form: str) -> None:
    raw = _raw(spoken(TEXT), 1, form)
    cut = raw[: raw.rindex(b"]")] + b',\r\n{"usageMeta' if form == "array" else raw + b'data: {"usageMeta'
    out, said = rounds.drive(_merger(form), [cut])
    assert said[0].complete
    assert _documents(out, form) == _documents(raw, form)


def test_a_blocked_prompt_is_an_end() -> None:
    blocked = b'data: {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}}\r\n\r\n'
    out, said = rounds.drive(_merger(), [blocked])
    assert out == blocked
    assert said[0].complete
    assert said[0].finish == "content_filter"
    raw, _ = rounds.drive(_merger(), [_raw(spoken(TEXT), 1), blocked])
    documents = _documents(raw)
    streams.check_gemini(documents)
    assert documents[-1]["candidates"][0]["finishReason"] == "PROHIBITED_CONTENT"


def test_signatures_keep_their_parts() -> None:
    """A signed text is joined to no other, in the history as in the answer."""
    raw = _raw(spoken(("text", "abcdefghijkl")), 1).replace(
        b'{"text": "abcdef"}', b'{"text": "abcdef", "thoughtSignature": "Eg=="}'
    )
    _, said = rounds.drive(_merger(), [raw])
    assert said[0].native == ({"role": "model", "parts": [{"text": "abcdef", "thoughtSignature": "Eg=="}, {"text": "ghijkl"}]},)


def test_grounding_of_an_earlier_round_is_shown_once() -> None:
    raw = _raw(spoken(TEXT), 1).replace(b'"finishMessage": "done"', b'"groundingMetadata": {"webSearchQueries": ["q"]}')
    out, _ = rounds.drive(_merger(), [raw, _raw(spoken(("text", "two")), 2)])
    assert ["groundingMetadata" in one["candidates"][0] for one in _documents(out)].count(True) == 1
    out, _ = rounds.drive(_merger(), [raw, b""])
    assert ["groundingMetadata" in one["candidates"][0] for one in _documents(out)].count(True) == 1


def test_other_candidates_are_forwarded_from_the_first_round_alone() -> None:
    chunk = {
        "candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}],
        "responseId": "resp-1",
        "modelVersion": "m-1",
    }
    other = b"data: " + rounds.dump(chunk) + b"\r\n\r\n"
    merger = _merger()
    first, said = rounds.feed_round(merger, other + _raw(spoken(TEXT), 1))
    assert first.startswith(other)
    assert said.text == TEXT[1]
    second, said = rounds.feed_round(merger, other + _raw(spoken(("text", "two")), 2))
    assert b"other" not in second + b"".join(merger.finish())
    assert said.text == "two"


@pytest.mark.parametrize("raw", [b"\x00\xff\n\n", b"data: []\n\n", b"data: {}\n\n", b'data: {"candidates": 1}\n\n', b'data: {"candidates": [{"content": {"parts": [1, {"functionCall": 3}, {"functionCall": {"name": []}}]}}]}\n\n', b'data: {"candidates": [{"finishReason": "STOP"}]}\n\n', b'data: {"response": {"candidates": [{"finishReason": 1}]}, "usageMetadata": 1}\n\n'])  # fmt: skip
@pytest.mark.parametrize("form", STREAMS)
def test_garbage_never_raises(raw: bytes, form: str) -> None:
    for first in ([], [_raw(spoken(TEXT), 1, form)]):
        merger = _merger(form)
        _, said = rounds.drive(merger, [*first, raw])
        assert said[-1].text == ""
        assert isinstance(merger.id, str)


@pytest.mark.parametrize("form", WHOLES)
@pytest.mark.parametrize("ending", ["cut", "error"])
def test_json_that_is_no_answer(ending: str, form: str) -> None:
    merger = _merger(form)
    raws = _raws([spoken(TEXT), spoken(TEXT, ending=ending)], form)
    out, said = rounds.drive(merger, raws)
    assert said[1].error is not None
    assert not said[1].complete
    assert out == raws[0]
    assert json.loads(merger.fail(400, "no", "NO"))["error"]["message"] == "no"


@given(rounds.random_rounds(), st.sampled_from(STREAMS), st.integers(0, 99))
@settings(max_examples=200, deadline=None)
def test_m34_any_rounds(given_: list[Spoken], form: str, seed: int) -> None:
    merger, whole = _merger(form), _merger("json")
    raws = _raws(given_, form)
    raw, said = rounds.drive(merger, raws, rounds.randomly(seed))
    assert raw == rounds.drive(_merger(form), raws)[0]
    documents = _documents(raw, form)
    streams.check_gemini(documents)
    parts = rounds.gemini_accumulated(documents)
    assert _text(parts) == "\n\n".join(one.text for one in said if one.text)
    assert not any("functionCall" in part and part["functionCall"]["name"] == "clock" for part in parts)
    merged = json.loads(rounds.drive(whole, _raws(given_, "json"))[0])
    assert rounds.gemini_accumulated([merged]) == parts
    assert merged["usageMetadata"] == documents[-1]["usageMetadata"]
    if len(given_) == 1 and not said[0].own:
        assert raw == raws[0]


_CHUNKS = rounds.gemini_documents(spoken(THOUGHT, TEXT, OWN_CALL, TOOL, ("server", "q"), ("text", "end")), 1)
_CHUNKS += [
    {"error": {"code": 500, "message": "no"}},
    {},
    {"candidates": []},
    {"promptFeedback": {"blockReason": "SAFETY"}},
    {"candidates": [{"finishReason": "STOP"}]},
]


@given(
    st.lists(st.lists(st.sampled_from(_CHUNKS), max_size=15), min_size=1, max_size=3),
    st.sampled_from(["sse", "array"]),
    st.integers(0, 9),
)
@settings(max_examples=200, deadline=None)
def test_any_chunks_in_any_order(given_: list[list[dict[str, Any]]], form: str, seed: int) -> None:
    """A provider may send what it likes: nothing raises, the cuts do not matter, and the end is the end."""
    raws = [
        rounds.dump(chunks) if form == "array" else b"".join(b"data: " + rounds.dump(chunk) + b"\n\n" for chunk in chunks)
        for chunks in given_
    ]
    merger = _merger(form)
    raw, said = rounds.drive(merger, raws, rounds.randomly(seed))
    assert raw == rounds.drive(_merger(form), raws)[0]
    if all(one.complete for one in said):
        documents = _documents(raw, form)
        assert len(raws) == 1 or documents[-1]["candidates"][0]["finishReason"]
        assert _text(rounds.gemini_accumulated([one for one in documents if one.get("candidates")])) == "\n\n".join(
            one.text for one in said if one.complete and one.text
        )


def test_d18_an_error_behind_the_last_chunk_spoils_the_round() -> None:
    """Its text was held and never leaves, nor does its id."""
    broken = _raw(spoken(("text", "abc")), 9) + b'data: {"error": {"code": 500, "message": "no"}}\r\n\r\n'
    merger = _merger()
    raw, said = rounds.drive(merger, [broken, _raw(spoken(OWN_CALL), 2), broken, _raw(spoken(TEXT), 3)])
    assert [one.complete for one in said] == [False, True, False, True]
    documents = _documents(raw)
    assert _text(rounds.gemini_accumulated(documents)) == TEXT[1]
    assert {one["responseId"] for one in documents} == {"resp-2"}
    assert merger.id == "resp-2"


def test_a_wait_pushes_out_no_piece_that_a_reason_stands_beside() -> None:
    """It leaves with the next piece, as it came."""
    merger = _merger()
    merger.begin_round()
    raw = _with_reason_everywhere(_raw(spoken(("text", "abcdefghijkl")), 1))
    first, second = raw.split(b"\r\n\r\n")[:2]
    out = [merger.feed(first + b"\r\n\r\n"), merger.keep_alive(), merger.feed(second + b"\r\n\r\n"), merger.keep_alive()]
    assert merger.end_round().text == "abcdefghijkl"
    assert out == [b"", b"\n", first + b"\r\n\r\n", b"\n"]
    assert b"".join(merger.finish()) == second + b"\r\n\r\n"


def test_noise_behind_the_end_is_bounded() -> None:
    merger = _merger()
    merger.begin_round()
    merger.feed(_raw(spoken(TEXT), 1))
    for _ in range(40):
        merger.feed((b": wait\n\n" + USAGE) * 1000)
    assert merger.end_round().complete
    assert len(b"".join(merger.finish())) < 2 << 20


def test_m34_the_last_text_of_a_round_does_not_wait_for_the_next() -> None:
    """The provider writes it beside its reason, and the next round may be long in coming."""
    bench = Bench(Dialect.GEMINI)
    bench.round("all in one chunk")
    assert b"all in one" in bench.body
    assert b"finishReason" not in bench.body
    assert [type(action).__name__ for action in bench.proceed()] == ["Again"]
    bench.round("two")
    bench.conclude()
    assert bench.text == "all in one chunk\n\ntwo"


def _kind(part: dict[str, Any]) -> str:
    return "thought" if part.get("thought") else next(name for name in part if name != "thoughtSignature")


def _text(parts: list[dict[str, Any]]) -> str:
    return "".join(part.get("text", "") for part in parts if not part.get("thought"))


def _comparable(said: Any) -> Any:
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in said.calls]
    return said.text, calls, [call.id for call in said.own], said.finish, said.usage, said.id, said.native, said.complete
