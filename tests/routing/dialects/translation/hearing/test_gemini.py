from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.gemini.arguments import Arguments
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.plain import (
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    MediaShown,
    Started,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    hear_whole,
)
from tests.routing.dialects.answer.rounds import spoken
from tests.routing.dialects.translation import coming_down as down

Part = dict[str, Any]


def _chunk(*parts: Part, **candidate: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **candidate}],
        "modelVersion": "m",
        "responseId": "r",
    }


def _hear(*documents: Any) -> list[Event]:
    return down.hear_documents(Dialect.GEMINI, documents)


def _text(text: str, word: str = "") -> Part:
    return {"text": text, **({"thoughtSignature": word} if word else {})}


def _thought(text: str, word: str = "") -> Part:
    return {**_text(text, word), "thought": True}


def _seal(word: str, place: str = "") -> Seal:
    return Seal(Dialect.GEMINI, "acme", {**({"for": place} if place else {}), "thoughtSignature": word})


def _call(name: str | None = None, *, word: str = "", **rest: Any) -> Part:
    call = {**({"name": name} if name is not None else {}), **rest}
    return {"functionCall": call, **({"thoughtSignature": word} if word else {})}


def _piece(path: str, value: object, *, more: bool = False) -> Part:
    kind = {str: "stringValue", bool: "boolValue", float: "numberValue", int: "numberValue"}.get(type(value), "nullValue")
    return {"jsonPath": path, kind: "NULL_VALUE" if value is None else value, **({"willContinue": True} if more else {})}


CASES: dict[str, tuple[list[list[Part]], list[Event]]] = {
    # the parts of each chunk → their events
    "text": ([[_text("Grüße, ")], [_text("世界")], [_text("")]], [TextPiece("Grüße, "), TextPiece("世界")]),
    "several parts in a chunk": ([[_text("a"), _text("b")]], [TextPiece("a"), TextPiece("b")]),
    "a thought before a text": (
        [[_thought("h")], [_thought("m")], [_text("a")]],
        [ThoughtPiece("h"), ThoughtPiece("m"), ThoughtEnded(), TextPiece("a")],
    ),
    "nothing but a thought": ([[_thought("hm")]], [ThoughtPiece("hm"), ThoughtEnded()]),
    "two signed thoughts": (
        [[_thought("a", "Eg==")], [_thought("b"), _thought("", "Ew==")]],
        [*down.thought("a", seal=_seal("Eg==")), *down.thought("b", seal=_seal("Ew=="))],
    ),
    "a text's signature at its end": (
        [[_text("a")], [_text("b", "Eg==")]], [TextPiece("a"), TextPiece("b"), ThoughtEnded(_seal("Eg==", "part"))],
    ),
    "a text's signature in its middle": (
        [[_text("a", "Eg==")], [_text("b")], [_call("f", args={})]],
        [TextPiece("a"), TextPiece("b"), ThoughtEnded(_seal("Eg==", "part")), *down.call("", "f", "{}")],
    ),
    "two signatures on a text": (
        [[_text("a", "Eg==")], [_text("", "Ew==")]],
        [TextPiece("a"), ThoughtEnded(_seal("Eg==", "part")), ThoughtEnded(_seal("Ew==", "part"))],
    ),
    "a signature on an empty part": ([[_text("a")], [_text("", "Eg==")]], [TextPiece("a"), ThoughtEnded(_seal("Eg==", "part"))]),
    "an empty part behind a thought signs it": (
        [[_thought("hm")], [_text("", "Eg==")]], [ThoughtPiece("hm"), ThoughtEnded(_seal("Eg==", "part"))],
    ),
    "a call": (
        [[_call("Bash", id="c1", args={"a": [1, {"b": "é"}]}, word="Eg==")]],
        down.call("c1", "Bash", '{"a":[1,{"b":"é"}]}', seal=_seal("Eg==", "call")),
    ),
    "parallel calls, the first one signed": (
        [[_call("A", args={"n": 1}, word="Eg=="), _call("B", args={})]],
        [*down.call("", "A", '{"n":1}', seal=_seal("Eg==", "call")), *down.call("", "B", "{}")],
    ),
    "a call of nothing but its name": ([[_call("Now")]], down.call("", "Now", "{}")),
    "a call in snake_case": (
        [[{"function_call": {"name": "A", "args": {}}, "thought_signature": "Eg=="}]],
        down.call("", "A", "{}", seal=_seal("Eg==", "call")),
    ),
    "large numbers stay what they are": (
        [[_call("A", args={"n": 12345678901234567890123})]], down.call("", "A", '{"n":12345678901234567890123}'),
    ),
    "text, thought, call": (
        [[_text("a")], [_thought("hm")], [_call("A", args={})]], [TextPiece("a"), *down.thought("hm"), *down.call("", "A", "{}")],
    ),
    "a call that comes in parts": (
        [
            [_call("W", id="c1", willContinue=True, word="Eg==")],
            [_call(partialArgs=[_piece("$.place", "Bos", more=True)], willContinue=True)],
            [_call(partialArgs=[_piece("$.place", "ton")], willContinue=True)],
            [_call(partialArgs=[_piece("$.days", 3.0), _piece("$.at[0].ok", True)], willContinue=True)],
            [_call(partialArgs=[_piece("$.at[1]['x y']", None)], willContinue=True)],
            [_call()],
            [_text("b")],
        ],
        [
            CallStarted("c1", "W"),
            CallPiece('{"place":"Boston","days":3,"at":[{"ok":true},{"x y":null}]}'),
            CallEnded(_seal("Eg==", "call")),
            TextPiece("b"),
        ],
    ),
    "two calls in parts, the first not ended": (
        [
            [_call("A", willContinue=True)],
            [_call(partialArgs=[_piece("$.a", "x")], willContinue=True)],
            [_call("B", willContinue=True)],
        ],
        [*down.call("", "A", '{"a":"x"}'), *down.call("", "B", "{}")],
    ),
    "a call in parts that a text ends": (
        [[_call("A", willContinue=True)], [_text("b")]], [*down.call("", "A", "{}"), TextPiece("b")],
    ),
    "an end of no call": ([[_call(), _text("a")]], [TextPiece("a")]),
    "a picture": (
        [[_text("see")], [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "thoughtSignature": "Eg=="}]],
        [TextPiece("see"), MediaShown(Media("image", "image/png", "iVBO")), ThoughtEnded(_seal("Eg==", "part"))],
    ),
    "a thought's draft of a picture": ([[{"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "thought": True}]], []),
    "sound by its address": (
        [[{"fileData": {"mimeType": "audio/wav", "fileUri": "https://x/y"}}]],
        [MediaShown(Media("audio", "audio/wav", url="https://x/y"))],
    ),
    "code and what it gave": (
        [
            [_text("run:")],
            [{"executableCode": {"language": "PYTHON", "code": "print(1)"}}],
            [{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}],
            [{"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}],
        ],
        [
            TextPiece("run:"), TextPiece("\n```python\nprint(1)\n```\n"), TextPiece("\n```output\n1\n```\n"),
            TextPiece("\n```output\nOUTCOME_FAILED\nno\n```\n"),
        ],
    ),
    "what nobody knows": ([[{"toolCall": {"id": "s"}}, {"videoMetadata": {}}, {}], [_text("a")]], [TextPiece("a")]),
}  # fmt: skip


@pytest.mark.parametrize("envelope", (False, True))
@pytest.mark.parametrize("case", CASES)
def test_what_a_stream_says(case: str, envelope: bool) -> None:
    contents, events = CASES[case]
    chunks = [_chunk(*parts) for parts in contents]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    chunks[-1]["usageMetadata"] = {"promptTokenCount": 3, "candidatesTokenCount": 9}
    told = Started("r", "m", Tokens(3, 9) if len(chunks) == 1 else None)
    heard = _hear(*({"response": one, "traceId": "t"} for one in chunks) if envelope else chunks)
    assert heard == [told, *events, Finished("STOP", Tokens(3, 9))]


def test_counts() -> None:
    early = {"promptTokenCount": 100, "cachedContentTokenCount": 60}
    late = {"promptTokenCount": 100, "toolUsePromptTokenCount": 19, "candidatesTokenCount": 80, "thoughtsTokenCount": 8}
    heard = _hear({**_chunk(_text("a")), "usageMetadata": early}, {**_chunk(finishReason="STOP"), "usageMetadata": late})
    assert heard[0] == Started("r", "m", Tokens(input=100, cached=60))
    assert heard[-1] == Finished("STOP", Tokens(input=119, output=88, cached=60, reasoning=8))


ENDS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "in a chunk of its own": ([_chunk(_text("a")), {"candidates": [{"finishReason": "MAX_TOKENS"}]}], "MAX_TOKENS"),
    "again": ([_chunk(_text("a"), finishReason="STOP"), _chunk(finishReason="STOP")], "STOP"),
    "with every chunk": ([_chunk(_text("a"), finishReason="STOP"), _chunk(_text("b"), finishReason="SAFETY")], "SAFETY"),
    "counts behind it": ([_chunk(_text("a"), finishReason="STOP"), {"usageMetadata": {"promptTokenCount": 1}}], "STOP"),
    "another candidate": (
        [_chunk(_text("a"), finishReason="STOP"), {"candidates": [{"index": 1, "finishReason": "OTHER"}]}],
        "STOP",
    ),
    "a prompt that was refused": ([{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}], "PROHIBITED_CONTENT"),
    "a prompt that was refused for a new reason": ([{"promptFeedback": {"blockReason": "JAILBREAK"}}], "SAFETY"),
}


@pytest.mark.parametrize("case", ENDS)
def test_the_end_comes_once_and_last(case: str) -> None:
    documents, word = ENDS[case]
    heard = _hear(*documents)
    last = heard.pop()
    assert isinstance(last, Finished)
    assert last.word == word
    assert not any(isinstance(event, Finished) for event in heard)


def test_only_the_first_candidate_is_heard() -> None:
    other = {"content": {"parts": [{"text": "no"}]}, "index": 1}
    chunk = {"candidates": [other, {"content": {"parts": [{"text": "yes"}]}, "index": 0}]}
    assert _hear(chunk)[1:] == [TextPiece("yes")]


def test_a_stream_that_breaks_off_has_no_end() -> None:
    assert _hear(_chunk(_text("a")), _chunk(_thought("hm"))) == [
        Started("r", "m"),
        TextPiece("a"),
        ThoughtPiece("hm"),
        ThoughtEnded(),
    ]
    assert _hear() == []
    begun = _hear(_chunk(_call("A", willContinue=True, args={"a": 1})))
    assert begun == [Started("r", "m")], "nobody may run it"


@pytest.mark.parametrize("envelope", (False, True))
def test_an_error_in_the_stream(envelope: bool) -> None:
    error = {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}
    *_, broken = _hear(_chunk(_text("a")), {"response": error} if envelope else error, _chunk(_text("b"), finishReason="STOP"))
    assert isinstance(broken, Broken)
    assert (broken.error.status, broken.error.code, broken.error.message) == (429, "RESOURCE_EXHAUSTED", "Quota")


def test_ids_of_the_round_where_there_are_none() -> None:
    assert _hear({"candidates": [{"content": {"parts": [{"text": "a"}]}}]})[0] == Started("round-1", "")


@pytest.mark.parametrize(
    "name, raw, pairs", [(n, raw, pairs) for n, d, raw, pairs in streams.provider_streams() if d is Dialect.GEMINI]
)
def test_bytes_may_be_cut_anywhere(name: str, raw: bytes, pairs: streams.Pairs) -> None:
    hearer = Hearer(Dialect.GEMINI, "acme", "round-1")
    expected = [event for name_, data in pairs for event in hearer.hear(data, name_)] + hearer.close()
    assert isinstance(expected[-1], Finished)
    for way in rounds.WAYS.values():
        assert down.hear(Dialect.GEMINI, raw, way) == expected


@pytest.mark.parametrize("name, raw, items", [one for one in streams.array_streams() if one[0].partition("-")[0] != "error"])
def test_the_form_of_an_array(name: str, raw: bytes, items: list[bytes]) -> None:
    expected = down.hear(Dialect.GEMINI, b"".join(b"data: " + item.replace(b"\n", b"") + b"\n\n" for item in items))
    assert isinstance(expected[-1], Finished)
    for way in rounds.WAYS.values():
        assert down.hear(Dialect.GEMINI, raw, way) == expected
    assert down.joined(hear_whole(Dialect.GEMINI, raw, "acme", "round-1")) == down.joined(expected)


WHOLES = {
    "all kinds": spoken(("thinking", "hm"), ("tool", '{"a":"é"}'), ("text", "Grüße"), ("server", "print(1)"), ("tool", "{}")),
    "nothing": spoken(),
    "cut short": spoken(("text", "a"), finish="MAX_TOKENS"),
}


@pytest.mark.parametrize("envelope", (False, True))
@pytest.mark.parametrize("case", WHOLES)
def test_a_whole_answer_says_what_its_stream_says(case: str, envelope: bool) -> None:
    streamed = down.hear(Dialect.GEMINI, rounds.gemini_stream(WHOLES[case], 1, envelope=envelope))
    whole = hear_whole(Dialect.GEMINI, rounds.gemini_json(WHOLES[case], 1, envelope=envelope), "acme", "round-1")
    assert down.joined(whole)[1:] == down.joined(streamed)[1:]


def test_what_a_whole_answer_may_be_instead() -> None:
    (overloaded,) = hear_whole(Dialect.GEMINI, rounds.gemini_json(spoken(ending="error"), 1), "acme", "x")
    assert isinstance(overloaded, Broken)
    assert overloaded.error.status == 503
    (page,) = hear_whole(Dialect.GEMINI, b"<!doctype html><title>Sign in</title>", "acme", "x")
    assert isinstance(page, Broken)
    assert page.error.code == "NOT_JSON"
    (refused,) = hear_whole(Dialect.GEMINI, b'[{"error": {"code": 400, "message": "no"}}]', "acme", "x")
    assert isinstance(refused, Broken)
    assert refused.error.status == 400
    for raw in (b"", b"[]", b"{}", b"no", b'{"models":[]}', b'"a"'):
        broken = [Broken] * raw.startswith(b"{")
        assert [type(event) for event in hear_whole(Dialect.GEMINI, raw, "acme", "x")] == broken
    assert hear_whole(Dialect.GEMINI, json.dumps(_chunk(_text("a"))).encode(), "acme", "x")[-1] == Finished(""), (
        "a whole answer has its end"
    )
    blocked = hear_whole(
        Dialect.GEMINI, b'{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}', "acme", "x"
    )
    assert blocked == [Started("x", "", Tokens(4)), Finished("SAFETY", Tokens(4))]


ARGUMENTS: dict[str, tuple[list[Part], dict[str, Any]]] = {
    "nested": ([_piece("$.a.b[0].c", "x"), _piece("$.a.b[1]", 2.5)], {"a": {"b": [{"c": "x"}, 2.5]}}),
    "quoted names": ([_piece("$['a.b']", "x"), _piece('$["c\\"d"]', "y")], {"a.b": "x", 'c"d': "y"}),
    "two strings side by side": (
        [_piece("$.a", "1", more=True), _piece("$.a", "2", more=True), _piece("$.a", "3"), _piece("$.b", "4")],
        {"a": "123", "b": "4"},
    ),
    "a new value for the same path": ([_piece("$.a", "1"), _piece("$.a", "2")], {"a": "2"}),
    "a list that a far place does not stretch": ([_piece("$.a[999999999]", "x")], {"a": ["x"]}),
    "an object where a value was": ([_piece("$.a", "x"), _piece("$.a.b", 1.0)], {"a": {"b": 1}}),
    "a list where an object was": ([_piece("$.a.b", 1.0), _piece("$.a[0]", 2.0)], {"a": [2]}),
    "paths that cannot be read": (
        [_piece("$..a", "x"), _piece("b", "y"), _piece("$[0]", "z"), _piece("$.c[*]", "w")],
        {".a": "x", "b": "y", "[0]": "z", "c[*]": "w"},
    ),
    "a path that is too deep": ([_piece("$" + ".a" * 65, "x"), _piece("$" + ".b" * 3, "y")], {
        ".".join("a" * 65): "x", "b": {"b": {"b": "y"}}}),
    "no value and no path": ([{"jsonPath": "$.a"}, {"stringValue": "x"}, {}], {}),
}  # fmt: skip


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_by_pieces(case: str) -> None:
    pieces, value = ARGUMENTS[case]
    arguments = Arguments()
    for piece in pieces:
        arguments.add({}, [piece])
    assert arguments.value == value


def test_many_pieces_of_one_string_take_linear_time() -> None:
    arguments = Arguments()
    for _ in range(100_000):
        arguments.add({}, [_piece("$.text", "0123456789", more=True)])
    assert arguments.value == {"text": "0123456789" * 100_000}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["text", "thought", "thoughtSignature", "functionCall", "name", "args", "partialArgs", "willContinue", "jsonPath",
         "stringValue"]
    ), inner, max_size=4),
    max_leaves=14,
)  # fmt: skip


@given(st.lists(_JSON, max_size=8), _JSON)
def test_no_document_makes_it_raise(parts: list[Any], value: Any) -> None:
    hearer = Hearer(Dialect.GEMINI, "acme", "round-1")
    documents = [
        _chunk(*parts, finishReason=value), {"candidates": value, "usageMetadata": value}, {"response": value},
        {"promptFeedback": value}, {"candidates": [{"content": value}]}, value,
    ]  # fmt: skip
    heard = [event for one in documents for event in hearer.hear(json.dumps(one).encode())] + hearer.close()
    assert sum(isinstance(event, Finished | Broken) for event in heard) <= 1
    for one in documents:
        hear_whole(Dialect.GEMINI, json.dumps(one).encode(), "acme", "x")
