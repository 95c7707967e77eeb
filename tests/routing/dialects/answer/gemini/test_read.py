"""What a document of Gemini's says."""

from __future__ import annotations

from typing import Any

import pytest

from routecodex.routing.dialects.answer.events import Block, Counted, Event, Opened, Piece
from routecodex.routing.dialects.answer.gemini.abroad import Abroad, Reader
from routecodex.routing.dialects.answer.gemini.history import history
from routecodex.routing.dialects.answer.said import Content
from tests.routing.dialects.answer.said_in import read, words
from tests.routing.dialects.answer.talks import COUNTS, called, candidate, in_part

SIGNED = {"thoughtSignature": "c2ln"}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
START = candidate({"text": "a"}, usageMetadata=COUNTS)


def opened(events: list[Event]) -> list[Block]:
    return [event.block for event in events if type(event) is Opened]


def content_of(*documents: dict[str, Any], reader: Reader | None = None) -> Content:
    content, reader = Content(apart=True), reader or Reader()
    for document in documents:
        content.add(reader.read(document))
    return content


@pytest.mark.parametrize("wrap", [False, True], ids=["plain", "envelope"])
def test_pieces_of_one_text(wrap: bool) -> None:
    documents = [START, candidate({"text": "b"}, usageMetadata=COUNTS), candidate({"text": "c"}, reason="STOP")]
    given = [{"response": one, "traceId": "t"} if wrap else one for one in documents]
    assert read(Reader(), *given) == [
        *("Began", "Opened text", "text:a", "Counted 5 3"),
        "text:b",
        *("text:c", "Counted 5 3", "Ended STOP"),
    ]


def test_a_piece_of_what_is_open_is_the_only_event() -> None:
    """It is nearly all of a stream: whoever merges it takes no second look."""
    for part in ({"text": "a"}, {"text": "a", "thought": True}):
        reader = Reader()
        first = opened(reader.read(candidate(part, usageMetadata=COUNTS)))
        [event] = reader.read(candidate(part, usageMetadata={**COUNTS, "candidatesTokenCount": 4}))
        assert type(event) is Piece
        assert [event.block] == first


def test_counts_are_read_when_somebody_asks() -> None:
    content, reader = Content(), Reader()
    for number in range(3):
        counts = {**COUNTS, "candidatesTokenCount": number, "thoughtsTokenCount": 2}
        content.add(reader.read(candidate({"text": "a"}, usageMetadata=counts)))
    assert (content.usage.input, content.usage.output) == (5, 4)


@pytest.mark.parametrize(
    "document",
    [
        {},
        candidate(),
        candidate({"text": ""}),
        candidate({"functionCall": {}}),
        {"candidates": 1},
        {"candidates": [{"content": {"parts": [1, {}]}}]},
    ],
)
def test_what_says_nothing_is_the_first_rounds_alone(document: dict[str, Any]) -> None:
    reader = Reader()
    reader.read(START)
    assert words(reader.read(document)) == ["Field "]


def test_thoughts_texts_calls_and_pictures_are_blocks() -> None:
    document = candidate({"text": "hm", "thought": True}, {"text": "so"}, called("f", {"x": 1}), PICTURE, {"text": "!"})
    assert read(Reader(), document) == [
        *("Began", "Opened thought", "thought:hm", "Opened text", "text:so"),
        *("Opened call", 'call:{"x":1}', "Closed call", "Opened media", "Opened text", "text:!"),
    ]


def test_a_call_beside_a_text_in_one_part_is_a_call() -> None:
    """A gateway that leaves no field of a part out."""
    empty = {"text": "", **called("f", {"x": 1}), **SIGNED}
    assert read(Reader(), candidate(empty)) == ["Began", "Opened call", 'call:{"x":1}', "Closed call"]
    [item] = history(content_of(candidate(empty)))
    assert item["parts"] == [{**called("f", {"x": 1}), **SIGNED}]
    both = candidate({"text": "so", **called("f", {"x": 1})})
    assert read(Reader(), both) == ["Began", "Opened text", "text:so", "Opened call", 'call:{"x":1}', "Closed call"]
    assert read(Reader(), candidate({"text": "so", "functionCall": {}})) == ["Began", "Opened text", "text:so"]


def test_arguments_in_parts_are_one_call() -> None:
    begun = candidate({"functionCall": {"name": "f", "id": "1", "willContinue": True}, **SIGNED})
    ended = [begun, candidate(in_part("$.x", "a ")), candidate(in_part("$.x", "b")), candidate({"functionCall": {}})]
    content = content_of(*ended)
    assert [(call.id, call.name, call.arguments) for _, call in content.calls] == [("1", "f", '{"x":"a b"}')]
    [item] = history(content)
    assert item["parts"] == [{"functionCall": {"name": "f", "id": "1", "args": {"x": "a b"}}, **SIGNED}]


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "MALFORMED_FUNCTION_CALL"])
def test_a_call_that_a_cut_broke_off_is_half(reason: str) -> None:
    content = content_of(
        candidate({"text": "so"}),
        candidate({"functionCall": {"name": "f", "willContinue": True}}),
        candidate(in_part("$.x", "a "), reason=reason),
    )
    [(block, _)] = content.calls
    content.settle()
    assert block.half
    assert content.holds_calls is None
    assert history(content) == ({"role": "model", "parts": [{"text": "so"}]},)


def test_a_reason_may_come_again() -> None:
    reader = Reader()
    document = candidate({"text": "a"}, reason="STOP")
    ends = [event for _ in range(2) for event in reader.read(document) if getattr(event, "finish_reason", "")]
    assert [event.final for event in ends] == [False, False]  # type: ignore[attr-defined]


@pytest.mark.parametrize("word, taken", [("SAFETY", "SAFETY"), ("OTHER", "OTHER"), ("NEW_WORD", "SAFETY")])
def test_a_blocked_prompt_is_an_end(word: str, taken: str) -> None:
    assert read(Reader(), {"promptFeedback": {"blockReason": word}}) == ["Began", f"Ended {taken}"]


def test_what_google_found_is_content_beside_the_text() -> None:
    document = candidate({"text": "so"})
    document["candidates"][0] |= {"groundingMetadata": {"webSearchQueries": ["q"]}, "safetyRatings": [1]}
    content = content_of(document)
    assert [(field.name, field.says) for field in content.fields] == [("groundingMetadata", True)]


def test_another_candidate_stands_aside() -> None:
    other = {"index": 1, "content": {"parts": [{"text": "no"}]}}
    document = candidate({"text": "so"})
    document["candidates"].insert(0, other)
    content = content_of(document)
    assert (content.text, content.asides) == ("so", [other])


@pytest.mark.parametrize("wrap", [False, True])
def test_errors(wrap: bool) -> None:
    error = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}
    document: dict[str, Any] = {"response": error} if wrap else error
    assert read(Reader(), document) == ["Failed 503"]
    assert words(Reader().read_whole(document)) == ["Failed 503"]
    assert words(Reader().read_whole({"models": []})) == ["Failed 502"]
    assert words(Reader().read_word(b"[DONE]")) == ["Done"]
    assert words(Reader().read_word(b"x")) == ["Field "]


def test_a_whole_answer() -> None:
    document = candidate({"text": "so"}, called("f", {}), reason="STOP", usageMetadata=COUNTS)
    said = words(Reader().read_whole(document))
    assert said[:3] == ["Began", "Opened text", "text:so"]
    assert said[-3:] == ["Counted 5 3", "Ended STOP", "Done"]


# --- signatures -------------------------------------------------------------------------------------------------------


PARTS: dict[str, list[dict[str, Any]]] = {
    "on the first piece of a text": [{"text": "a", **SIGNED}, {"text": "b"}],
    "on one in the middle": [{"text": "a"}, {"text": "b", **SIGNED}, {"text": "c"}],
    "alone behind a text": [{"text": "a"}, {"text": "", **SIGNED}],
    "alone": [{"text": "", **SIGNED}],
    "on a thought": [{"text": "hm", "thought": True, **SIGNED}, {"text": "hm", "thought": True}, {"text": "a"}],
    "alone behind a thought": [{"text": "hm", "thought": True}, {"text": "", "thought": True, **SIGNED}, {"text": "a"}],
    "of a text behind a thought": [{"text": "hm", "thought": True}, {"text": "", **SIGNED}, {"text": "a"}],
    "on calls": [{**called("f", {}), **SIGNED}, called("g", {"x": 1})],
    "on a picture and on code": [{**PICTURE, **SIGNED}, {**CODE, **SIGNED}, {"text": "a"}],
    "on a draft": [{**PICTURE, "thought": True, **SIGNED}],
    "beside a vendor's field": [{"text": "a", "vendor": 1}, {"text": "b", "vendor": 2}],
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("case", PARTS)
def test_the_history_has_every_part_where_it_stood(case: str, together: bool) -> None:
    parts = PARTS[case]
    documents = [candidate(*parts)] if together else [candidate(part) for part in parts]
    assert history(content_of(*documents, candidate(reason="STOP"))) == ({"role": "model", "parts": parts},)


def test_pieces_between_are_one_part() -> None:
    content = content_of(*(candidate({"text": piece}) for piece in "abc"), candidate({"text": "d", **SIGNED}))
    content.add(Reader().read(candidate({"text": "x", "thought": True})))
    assert history(content)[0]["parts"][:2] == [{"text": "abc"}, {"text": "d", **SIGNED}]


def test_abroad_the_seal_of_a_text_stands_behind_all_of_it() -> None:
    reader = Abroad("acme")
    said = [*reader.read(candidate({"text": "a", **SIGNED})), *reader.read(candidate({"text": "b"}, reason="STOP"))]
    assert words(said) == [
        *("Began", "Opened text", "text:a", "text:b"),
        *("Opened thought", "Closed thought", "Ended STOP"),
    ]
    seal = opened(said)[1].seal
    assert seal is not None
    assert (seal.maker, dict(seal.payload)) == ("acme", {"for": "part", **SIGNED})


def test_abroad_what_googles_tools_did_is_told_in_words() -> None:
    parts = ({"text": "a"}, CODE, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}, {"text": "b"})
    assert content_of(candidate(*parts), reader=Abroad()).text == "a\n```python\n1\n```\n\n```output\n2\n```\nb"
    at_home = content_of(candidate(*parts))
    assert at_home.text == "ab"
    assert history(at_home) == ({"role": "model", "parts": list(parts)},)


def test_counted_is_the_same_object_as_it_grows() -> None:
    reader = Reader()
    [counted] = [event for event in reader.read(START) if type(event) is Counted]
    reader.read(candidate({"text": "b"}, usageMetadata={**COUNTS, "candidatesTokenCount": 9}))
    assert counted.tokens.output == 9
