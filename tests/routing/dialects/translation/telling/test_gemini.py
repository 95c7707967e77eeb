from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from routecodex.routing.dialects.translation import opaque
from routecodex.routing.dialects.translation.neutral import Media, Seal, Tokens, ToolName
from routecodex.routing.values import Dialect, Endpoint, ProviderError
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    CallEnded,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    MediaShown,
    Started,
    Teller,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
)
from tests.routing.dialects.answer.rounds import Spoken, spoken
from tests.routing.dialects.translation import coming_down as down
from tests.routing.dialects.translation.coming_down import ARRAY, ENVELOPE, GEMINI, asked, call, thought, whole

FORMS = {"sse": GEMINI, "array": ARRAY, "envelope": ENVELOPE}
OWN = Seal(Dialect.GEMINI, "acme", {"thoughtSignature": "Eg=="})
ON_CALL = Seal(Dialect.GEMINI, "acme", {"for": "call", "thoughtSignature": "Ew=="})
ON_TEXT = Seal(Dialect.GEMINI, "acme", {"for": "part", "thoughtSignature": "FA=="})
FOREIGN = Seal(Dialect.MESSAGES, "acme", {"signature": "Eu+/=="})

Part = dict[str, Any]


def _call(id: str, name: str, *, seal: str = "", **args: Any) -> Part:
    part: Part = {"functionCall": {"id": id, "name": name, "args": args}}
    return {**part, "thoughtSignature": seal} if seal else part


def _thought(text: str, seal: str = "") -> Part:
    return {"text": text, "thought": True, **({"thoughtSignature": seal} if seal else {})}


CASES: dict[str, tuple[list[Event], list[Part], str]] = {
    # events → the parts of a whole answer, and why it ended
    "text": (whole(TextPiece("Grüße, "), TextPiece(""), TextPiece("世界")), [{"text": "Grüße, 世界"}], "STOP"),
    "nothing": (whole(), [{"text": ""}], "STOP"),
    "two texts": (whole(TextPiece("a"), BlockEnded(), TextPiece("b")), [{"text": "a"}, {"text": "b"}], "STOP"),
    "a thought nobody signed": (whole(thought("hm"), TextPiece("a")), [_thought("hm"), {"text": "a"}], "STOP"),
    "two thoughts": (whole(thought("a"), thought("b")), [_thought("a"), _thought("b")], "STOP"),
    "a thought of this dialect": (
        whole(ThoughtPiece("h"), ThoughtPiece("m"), ThoughtEnded(OWN), TextPiece("a")),
        [_thought("hm", "Eg=="), {"text": "a"}],
        "STOP",
    ),
    "a foreign seal": (whole(thought("hm", seal=FOREIGN)), [_thought("hm", opaque.wrap(FOREIGN))], "STOP"),
    "a seal without a thought": (
        whole(ThoughtEnded(FOREIGN), TextPiece("a")), [_thought("", opaque.wrap(FOREIGN)), {"text": "a"}], "STOP",
    ),
    "a seal of a text of this dialect": (
        whole(TextPiece("a"), ThoughtEnded(ON_TEXT)), [{"text": "a"}, {"text": "", "thoughtSignature": "FA=="}], "STOP",
    ),
    "parallel calls": (
        whole(TextPiece("a"), call("t1", "A", '{"a":', '"é"}', seal=ON_CALL), call("t2", "B", "{}"), word="tool_calls"),
        [{"text": "a"}, _call("t1", "A", a="é", seal="Ew=="), _call("t2", "B")],
        "STOP",
    ),
    "no arguments": (whole(call("t1", "A"), call("t2", "B", ""), call("t3", "C", "null")), [
        _call("t1", "A"), _call("t2", "B"), _call("t3", "C")], "STOP"),
    "arguments that are no object": (whole(call("t1", "A", "[1,", "2]")), [_call("t1", "A", arguments="[1,2]")], "STOP"),
    "arguments that are not JSON": (whole(call("t1", "A", "ls -la")), [_call("t1", "A", arguments="ls -la")], "STOP"),
    "a call that the end ends": (whole(CallStarted("t1", "A"), CallPiece('{"a":1}')), [_call("t1", "A", a=1)], "STOP"),
    "a call that a text ends": (whole(CallStarted("t1", "A"), TextPiece("a")), [_call("t1", "A"), {"text": "a"}], "STOP"),
    "a call that a call ends": (whole(CallStarted("t1", "A"), call("t2", "B")), [_call("t1", "A"), _call("t2", "B")], "STOP"),
    "pieces of no call": (whole(CallPiece("{}"), CallEnded(), TextPiece("a")), [{"text": "a"}], "STOP"),
    "a picture": (
        whole(TextPiece("see"), MediaShown(Media("image", "image/png", "iVBO"))),
        [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}],
        "STOP",
    ),
    "a picture by its address": (
        whole(MediaShown(Media("image", url="https://x/y"))), [{"fileData": {"fileUri": "https://x/y"}}], "STOP",
    ),
    "max tokens": (whole(TextPiece("a"), word="max_tokens"), [{"text": "a"}], "MAX_TOKENS"),
    "a refusal": (whole(TextPiece("a"), word="refusal"), [{"text": "a"}], "SAFETY"),
    "a word of its own": (whole(TextPiece("a"), word="RECITATION"), [{"text": "a"}], "RECITATION"),
    "no word": (whole(TextPiece("a"), word=""), [{"text": "a"}], "STOP"),
}  # fmt: skip


def _inner(document: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    return document["response"] if endpoint.envelope else document


def _chunks(events: list[Event], endpoint: Endpoint, **rest: Any) -> list[dict[str, Any]]:
    raw = down.tell(events, asked(endpoint, **rest))
    return [_inner(one, endpoint) for one in down.documents_of(endpoint, raw)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_what_the_client_holds(case: str, form: str) -> None:
    events, parts, reason = CASES[case]
    endpoint = FORMS[form]
    raw = down.tell(events, asked(endpoint))
    documents = [_inner(one, endpoint) for one in down.documents_of(endpoint, raw)]
    streams.check_gemini(documents)
    assert documents[-1]["candidates"][0]["finishReason"] == reason
    assert {(one["responseId"], one["modelVersion"]) for one in documents} == {("id-1", "asked-model")}
    assert _text(rounds.gemini_accumulated(documents)) == _text(parts)
    said = down.said(endpoint, raw)
    assert said.complete
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(one.id, one.name, json.loads(one.arguments)) for one in said.calls] == [
        (c["id"], c["name"], c["args"]) for c in calls
    ]
    assert _words(rounds.gemini_accumulated(documents)) == _words(parts)


def _text(parts: list[Part]) -> list[str]:
    return ["".join(part.get("text", "") for part in parts if bool(part.get("thought")) is thought) for thought in (False, True)]


def _words(parts: list[Part]) -> list[str]:
    return [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_whole_answer(case: str, form: str) -> None:
    events, parts, reason = CASES[case]
    endpoint = FORMS[form]
    answer = _inner(down.tell_whole(events, asked(endpoint, stream=False)), endpoint)
    assert answer["candidates"] == [{"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}]
    last = _chunks(events, endpoint)[-1]
    assert {**answer, "candidates": None} == {**last, "candidates": None}


def test_a_call_leaves_whole_at_its_end() -> None:
    teller = Teller(asked(GEMINI))
    pieces = [teller.tell(event) for event in [Started("i", "m"), *call("t1", "A", '{"a":', "1}", seal=FOREIGN)]]
    assert pieces[:-1] == [b""] * 4
    (document,) = rounds.sse_documents(pieces[-1])
    assert document["candidates"][0]["content"]["parts"] == [_call("t1", "A", a=1, seal=opaque.wrap(FOREIGN))]


def test_only_the_last_chunk_has_the_counts() -> None:
    tokens = Tokens(input=117, output=88, cached=100, written=7, reasoning=30)
    *before, last = _chunks(whole(TextPiece("a"), TextPiece("b"), tokens=tokens), GEMINI)
    assert not any("usageMetadata" in one for one in before)
    assert last["usageMetadata"] == {
        "promptTokenCount": 117,
        "cachedContentTokenCount": 100,
        "candidatesTokenCount": 58,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 205,
    }
    started = [Started("i", "m", Tokens(input=5, output=2)), TextPiece("a"), Finished("stop")]
    assert _chunks(started, GEMINI, estimate=lambda: 9)[-1]["usageMetadata"]["promptTokenCount"] == 5
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 0, "totalTokenCount": 9}
    assert _chunks(whole(TextPiece("a")), GEMINI, estimate=lambda: 9)[-1]["usageMetadata"] == counts


def test_ids_are_made_where_there_are_none_and_always_the_same() -> None:
    events = [Started("", ""), *call("", "A"), *call("", "A"), *call("c", "A"), *call("c", "A"), Finished("")]
    first, again = (down.tell_whole(events, asked(GEMINI)) for _ in range(2))
    assert first == again
    ids = [part["functionCall"]["id"] for part in first["candidates"][0]["content"]["parts"]]
    assert len(set(ids)) == 4
    assert ids[2] == "c"
    assert first["responseId"]
    assert first["responseId"] != down.tell_whole(events, asked(GEMINI, id="round-2"))["responseId"]
    streamed = [part["functionCall"]["id"] for one in _chunks(events, GEMINI) for part in _parts(one) if "functionCall" in part]
    assert streamed == ids


def _parts(document: dict[str, Any]) -> list[Part]:
    parts: list[Part] = document["candidates"][0]["content"]["parts"]
    return parts


def test_tools_have_the_names_that_the_client_knows() -> None:
    tools = {"mcp_long_1a2b": ToolName("mcp.long")}
    answer = down.tell_whole(whole(call("t1", "mcp_long_1a2b"), call("t2", "Other")), asked(GEMINI, tools=tools))
    assert [part["functionCall"]["name"] for part in _parts(answer)] == ["mcp.long", "Other"]


@pytest.mark.parametrize("form", FORMS)
def test_an_error_ends_the_stream(form: str) -> None:
    endpoint = FORMS[form]
    broken = Broken(ProviderError(429, "so it is", "BUSY"))
    raw = down.tell([Started("i", "m"), TextPiece("a"), broken, TextPiece("b"), Finished("stop")], asked(endpoint))
    documents = down.documents_of(endpoint, raw)
    assert list(documents[-1]) == ["error"]
    assert documents[-1]["error"]["code"] == 429
    said = down.said(endpoint, raw)
    assert not said.complete
    assert said.text == "a"
    assert said.error is not None
    assert (said.error.status, said.error.message) == (429, "so it is")
    (alone,) = down.documents_of(endpoint, down.tell([Started("i", "m"), broken], asked(endpoint)))
    assert alone["error"]["message"] == "so it is"
    assert (
        down.tell_whole([Started("i", "m"), TextPiece("a"), broken], asked(endpoint))["error"]["status"] == "RESOURCE_EXHAUSTED"
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_breaks_off_gets_no_end(form: str) -> None:
    raw = down.tell([Started("i", "m"), TextPiece("a"), CallStarted("t", "A"), CallPiece('{"a')], asked(FORMS[form]))
    said = down.said(FORMS[form], raw)
    assert (said.complete, said.calls, said.text) == (False, (), "a")
    assert b'"error"' in raw
    assert down.tell_whole([Started("i", "m"), TextPiece("a")], asked(FORMS[form]))["error"]["code"] == 502


def test_nothing_is_told_behind_the_end() -> None:
    teller = Teller(asked(GEMINI))
    assert b"".join(map(teller.tell, whole(TextPiece("a"))))
    assert [teller.tell(event) for event in whole(TextPiece("a"), call("t", "A"))] == [b""] * 5


# --- through the other dialect, and through our own merger -----------------------------------------------------------------

ROUNDS: dict[str, Spoken] = {
    "text": spoken(("text", "Grüße, 世界 😀")),
    "thinking and text": spoken(("thinking", "let me see"), ("text", "so"), input=7, output=3),
    "two calls": spoken(("thinking", "hm"), ("text", "now"), ("tool", '{"command":"ls"}'), ("tool", '{"a":[1,{"b":"é\\n"}]}')),
    "a call alone": spoken(("tool", "{}")),
    "nothing": spoken(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ROUNDS)
@pytest.mark.parametrize("provider", [Dialect.MESSAGES, Dialect.GEMINI])
def test_our_merger_reads_what_the_provider_said(provider: Dialect, case: str, form: str) -> None:
    round_, endpoint = ROUNDS[case], FORMS[form]
    raw = rounds.messages_stream(round_, 1) if provider is Dialect.MESSAGES else rounds.gemini_stream(round_, 1)
    there = down.said(down.MESSAGES if provider is Dialect.MESSAGES else GEMINI, raw)
    events = down.hear(provider, raw)
    told = down.tell(events, asked(endpoint))
    for way in rounds.WAYS.values():
        here = down.said(endpoint, told, way)
        assert (here.text, here.finish, here.usage, here.complete) == (there.text, there.finish, there.usage, True)
        assert [(one.name, one.arguments) for one in here.calls] == [(one.name, one.arguments) for one in there.calls]
    answer = json.dumps(down.tell_whole(events, asked(endpoint, stream=False))).encode()
    json_ = down.said(endpoint, answer, stream=False)
    assert (json_.text, json_.finish, json_.usage) == (there.text, there.finish, there.usage)
    assert [(one.name, one.arguments) for one in json_.calls] == [(one.name, one.arguments) for one in there.calls]


@given(rounds.random_rounds(most=1))
def test_an_answer_of_its_own_dialect_comes_out_the_same(given_: list[Spoken]) -> None:
    (round_,) = given_
    events = down.hear(Dialect.GEMINI, rounds.gemini_stream(round_, 1))
    for endpoint in FORMS.values():
        raw = down.tell(events, asked(endpoint))
        back = down.hear(Dialect.GEMINI, raw)
        assert [_nameless(event) for event in down.joined(back)[1:]] == [_nameless(event) for event in down.joined(events)[1:]]
        streams.check_gemini([_inner(one, endpoint) for one in down.documents_of(endpoint, raw)])


def _nameless(event: Event) -> Event:
    """A call without an id got one."""
    return CallStarted("", event.name) if isinstance(event, CallStarted) else event


@pytest.mark.parametrize("form", FORMS)
@given(events=down.ANY_EVENTS)
def test_whatever_comes_the_stream_is_well_formed(form: str, events: list[Event]) -> None:
    raw = down.tell([*events, Finished("stop")], asked(FORMS[form]))
    documents = [_inner(one, FORMS[form]) for one in down.documents_of(FORMS[form], raw)]
    assert [bool(one["candidates"][0].get("finishReason")) for one in documents] == [False] * (len(documents) - 1) + [True]
    said = down.said(FORMS[form], raw)
    assert said.complete
    assert said.text == "".join(event.text for event in events if isinstance(event, TextPiece))
    assert len({one.id for one in said.calls}) == sum(isinstance(event, CallStarted) for event in events)
    answer = down.tell_whole([*events, Finished("stop")], asked(FORMS[form]))
    assert len(_parts(_inner(answer, FORMS[form]))) >= 1
