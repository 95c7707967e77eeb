from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation import opaque
from routecodex.routing.dialects.translation.neutral import Seal, Tokens
from routecodex.routing.dialects.translation.reading.chat import read
from routecodex.routing.values import Dialect, Endpoint, ProviderError
from tests.conftest import LONG
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import streams
from tests.routing.dialects.answer.plain import (
    Broken,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    MediaShown,
    Started,
    Teller,
    TextPiece,
    ThoughtEnded,
    ThoughtPiece,
    tell_whole,
)
from tests.routing.dialects.translation.hearing.listening import folded, heard
from tests.routing.dialects.translation.telling import spoken
from tests.routing.dialects.translation.telling.spoken import (
    ANSWERS,
    END,
    OF_CALL,
    OF_PART,
    PICTURE,
    REDACTED,
    SIGNED,
    START,
    TOKENS,
    call,
    text,
    thought,
)

CHAT = Dialect.CHAT


def told(events: list[Event], **rest: Any) -> bytes:
    teller = Teller(spoken.asked(CHAT, **rest))
    return b"".join(map(teller.tell, events)) + teller.close()


def accumulated(events: list[Event], **rest: Any) -> dict[str, Any]:
    stream = Events().feed(told(events, **rest))
    streams.check_chat(stream, usage=True)
    return openai.chat_accumulated(streams.documents_of(stream))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_says_what_the_events_say(name: str) -> None:
    events = [START, *ANSWERS[name], END]
    raw = told(events)
    streams.check_chat(Events().feed(raw), usage=True)
    for one_by_one in (False, True):
        said, out = spoken.said_of(raw, CHAT, stream=True, one_by_one=one_by_one)
        spoken.check_said(said, events, CHAT)
        assert out == raw, "the merger lets it pass as it is"


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "no last event of blocks"])
def test_a_whole_answer_says_the_same(name: str) -> None:
    events = [START, *ANSWERS[name], END]
    whole = tell_whole(iter(events), spoken.asked(CHAT))
    spoken.check_said(spoken.said_of(whole, CHAT, stream=False)[0], events, CHAT)
    message = json.loads(whole)["choices"][0]["message"]
    shown = accumulated_by_an_sdk(streams.documents_of(Events().feed(told(events))))
    calls = [{name: value for name, value in one.items() if name != "index"} for one in shown.pop("tool_calls", [])]
    assert {name: value for name, value in message.items() if value and name not in ("role", "tool_calls")} == {
        name: value for name, value in shown.items() if value and name != "role"
    }
    assert message.get("tool_calls", []) == calls


@given(spoken.ANY)
@settings(max_examples=5_000 if LONG else 50, deadline=None)
def test_any_answer(blocks: list[Event]) -> None:
    events = [START, *blocks, END]
    raw = told(events)
    streams.check_chat(Events().feed(raw), usage=True)
    spoken.check_said(spoken.said_of(raw, CHAT, stream=True)[0], events, CHAT)
    whole = tell_whole(events, spoken.asked(CHAT))
    spoken.check_said(spoken.said_of(whole, CHAT, stream=False)[0], events, CHAT)
    back = folded(heard(Hearer(CHAT, "m", "r"), raw))
    for given_, heard_ in zip(calls_in(folded(events)), calls_in(back), strict=True):
        assert (heard_[1], heard_[2]) == (given_[1], spoken.TOOLS.get(given_[2], spoken.ToolName(given_[2])).name)
        assert json.loads(heard_[3]) == json.loads(given_[3])
    assert told(events) == raw, "the same answer has the same bytes"


def calls_in(blocks: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [block for block in blocks if block[0] == "call"]


def test_the_bytes_of_a_stream() -> None:
    head = b'data: {"id":"chatcmpl-9","object":"chat.completion.chunk","created":1800000000,"model":"client-model","choices":['
    teller = Teller(spoken.asked(CHAT, include_usage=False))
    first = head + b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n'
    assert teller.tell(Started("chatcmpl-9", "m")) == b"", "nothing has been said"
    piece = head + '{"index":0,"delta":{"content":"ü\\n"},"logprobs":null,"finish_reason":null}]}\n\n'.encode()
    assert teller.tell(TextPiece("ü\n")) == first + piece
    last = head + b'{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n'
    assert teller.tell(END) == last + b"data: [DONE]\n\n"


def test_usage_is_told_only_where_it_was_asked_for() -> None:
    plain = told([START, *text("a"), END], include_usage=False)
    assert b"usage" not in plain
    documents = streams.documents_of(Events().feed(told([START, *text("a"), END])))
    assert [document["usage"] for document in documents[:-1]] == [None] * (len(documents) - 1)
    assert documents[-1]["choices"] == []
    assert documents[-1]["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    uncounted = streams.documents_of(Events().feed(told([START, Finished("stop")])))[-1]["usage"]
    assert (uncounted["prompt_tokens"], uncounted["completion_tokens"]) == (77, 0)
    assert json.loads(tell_whole([START, END], spoken.asked(CHAT, include_usage=False)))["usage"]["total_tokens"] == 120


WORDS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "max_output_tokens": "length",
    "refusal": "content_filter",
    "SAFETY": "content_filter",
    "": "stop",
    "OTHER": "error",
}


@pytest.mark.parametrize("word", WORDS)
def test_why_it_ended(word: str) -> None:
    events = [START, *text("a"), Finished(word, TOKENS)]
    assert accumulated(events)["finish_reason"] == WORDS[word]
    assert json.loads(tell_whole(events, spoken.asked(CHAT)))["choices"][0]["finish_reason"] == WORDS[word]
    with_call = [START, *call("c1", "f", "{}"), Finished(word, TOKENS)]
    assert accumulated(with_call)["finish_reason"] == ("tool_calls" if WORDS[word] == "stop" else WORDS[word])


def test_ids_are_the_providers_or_follow_from_the_rounds() -> None:
    ids = {json.loads(tell_whole([Started(id, "m"), END], spoken.asked(CHAT)))["id"] for id in ("msg_1", "", "resp_2")}
    assert len(ids) == 1
    assert ids.pop().startswith("chatcmpl-")
    assert json.loads(tell_whole([Started("chatcmpl-7", "m"), END], spoken.asked(CHAT)))["id"] == "chatcmpl-7"
    without = streams.documents_of(Events().feed(told([*text("a"), END])))
    assert without[0]["id"] == streams.documents_of(Events().feed(told([START, END])))[0]["id"]
    other = streams.documents_of(Events().feed(told([START, END], id="another")))[0]["id"]
    assert other != without[0]["id"]


def _read_back(message: dict[str, Any]) -> list[Any]:
    """The blocks of the answer when the client sends it back."""
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}, message, {"role": "user", "content": "r"}]}
    return list(read(body, Endpoint(CHAT)).messages[1].blocks)


@pytest.mark.parametrize("whole", (True, False))
def test_seals_come_back_to_their_makers(whole: bool) -> None:
    events = [START, *thought("t", "u"), *thought("v"), ThoughtEnded(REDACTED), *text("a"), ThoughtEnded(OF_PART)]
    events += [*call("c1", "f", '{"a":1}', seal=OF_CALL), END]
    if whole:
        message = json.loads(tell_whole(events, spoken.asked(CHAT)))["choices"][0]["message"]
    else:
        message = accumulated_by_an_sdk(streams.documents_of(Events().feed(told(events))))
    assert message["reasoning_content"] == "tu\n\nv"
    assert [entry["index"] for entry in message["reasoning_details"]] == [0, 1, 2, 3]
    blocks = _read_back(message)
    assert [(block.text, block.seal) for block in blocks if type(block).__name__ == "Thought"] == [
        ("tu", SIGNED),
        ("v", SIGNED),
        ("", REDACTED),
        ("", OF_PART),
    ]
    (use,) = [block for block in blocks if type(block).__name__ == "ToolUse"]
    assert (use.id, use.name, use.arguments, use.seal) == ("c1", "f", '{"a":1}', OF_CALL)


def accumulated_by_an_sdk(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """As the official SDK puts deltas together: lists by the index of their entries."""
    message: dict[str, Any] = {}
    for document in documents:
        for choice in document["choices"]:
            _add(message, choice["delta"])
    return message


def _add(whole: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        old = whole.get(name)
        if name in ("index", "type") or old is None:
            whole[name] = json.loads(json.dumps(value))
        elif isinstance(old, str):
            whole[name] = old + value
        elif isinstance(old, dict):
            _add(old, value)
        else:
            for entry in value:
                if entry["index"] < len(old):
                    _add(old[entry["index"]], entry)
                else:
                    old.append(json.loads(json.dumps(entry)))


def test_a_foreign_seal_is_never_plain() -> None:
    for events in ([START, *thought("t"), END], [START, *call("c1", "f", "{}", seal=OF_CALL), END]):
        for raw in (told(events), tell_whole(events, spoken.asked(CHAT))):
            assert opaque.MARK.encode() in raw
            assert b"EuYB" not in raw
            assert b'"c2ln"' not in raw


def test_seals_of_this_dialect_are_written_as_they_were() -> None:
    details = [{"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1"}]
    own = Seal(CHAT, "openrouter", {"reasoning": True, "reasoning_details": details})
    plain = Seal(CHAT, "deepseek", {"reasoning_content": True})
    google = {"google": {"thought_signature": "c2ln"}}
    of_call = Seal(CHAT, "google", {"for": "call", "extra_content": google})
    events = [START, *thought("t", seal=own), *thought("u", seal=plain), *call("c1", "f", "{}", seal=of_call), END]
    for message in (
        json.loads(tell_whole(events, spoken.asked(CHAT)))["choices"][0]["message"],
        accumulated_by_an_sdk(streams.documents_of(Events().feed(told(events)))),
    ):
        assert message["reasoning_details"] == [{**details[0], "index": 0}]
        assert message["tool_calls"][0]["extra_content"] == google


JOINED = ("two texts", "thoughts", "a sealed text", "sound", "no last event of blocks")
"""What Chat cannot tell apart: texts and thoughts in a row. The others have tests of their own."""
HEARD_AGAIN = [name for name in ANSWERS if name not in JOINED and "custom" not in name and "picture" not in name]


@pytest.mark.parametrize("name", HEARD_AGAIN)
def test_what_is_told_is_heard_again(name: str) -> None:
    """Names are the client's, a later thought has a blank line in front, and seals of others are words in details."""
    events = heard(Hearer(CHAT, "m", "r"), told([START, *ANSWERS[name], END]))
    back, wanted = folded(spoken.unsealed(events))[1:], folded(spoken.unsealed(ANSWERS[name]))
    for block, want in zip(back[:-1], wanted, strict=True):
        if block[0] == "call":
            assert block[1] == want[1] or not want[1]
            assert block[2:] == (spoken.TOOLS.get(want[2], spoken.ToolName(want[2])).name, want[3] or "{}", None)
        else:
            assert (block[0], block[1].removeprefix("\n\n"), *block[2:]) == want
    assert back[-1] == (Finished("tool_calls" if any(block[0] == "call" for block in back) else "stop", TOKENS),)


def test_a_custom_tool_gets_its_text() -> None:
    events = [START, *ANSWERS["a custom tool"], *call("c3", "patch", "not json"), END]
    wanted = [
        {"id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": '*** Begin\n"x" 😀'}},
        {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "c3", "type": "custom", "custom": {"name": "apply_patch", "input": "not json"}},
    ]
    assert json.loads(tell_whole(events, spoken.asked(CHAT)))["choices"][0]["message"]["tool_calls"] == wanted
    message = accumulated_by_an_sdk(streams.documents_of(Events().feed(told(events))))
    assert [{name: value for name, value in one.items() if name != "index"} for one in message["tool_calls"]] == wanted


def test_a_picture_is_an_image_and_not_a_text() -> None:
    wanted = {"index": 0, "type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    events = [START, MediaShown(PICTURE), END]
    assert json.loads(tell_whole(events, spoken.asked(CHAT)))["choices"][0]["message"]["images"] == [wanted]
    assert wanted in streams.documents_of(Events().feed(told(events)))[1]["choices"][0]["delta"]["images"]
    assert folded(heard(Hearer(CHAT, "m", "r"), told(events)))[1] == ("media", PICTURE)


ERROR = ProviderError(529, "Overloaded", "overloaded_error")


def test_a_broken_answer_ends_in_an_error() -> None:
    events = [START, *text("a"), CallStarted("c1", "f"), CallPiece('{"a'), Broken(ERROR)]
    raw = told(events)
    assert b"[DONE]" not in raw
    assert streams.documents_of(Events().feed(raw))[-1]["error"]["message"] == "Overloaded"
    said, _ = spoken.said_of(raw, CHAT, stream=True)
    assert not said.complete
    assert said.error is not None
    assert json.loads(tell_whole(events, spoken.asked(CHAT)))["error"]["code"] == "overloaded_error"
    assert streams.documents_of(Events().feed(told([Broken(ERROR)]))) == [streams.documents_of(Events().feed(raw))[-1]]


def test_an_answer_that_never_ended_has_no_end() -> None:
    events = [START, *text("a"), ThoughtPiece("t")]
    raw = told(events)
    assert b"[DONE]" not in raw
    assert not spoken.said_of(raw, CHAT, stream=True)[0].complete
    assert "ended without" in json.loads(tell_whole(events, spoken.asked(CHAT)))["error"]["message"]


def test_nothing_that_a_model_says_breaks_the_encoding() -> None:
    odd = "\ud800 \u2028 \x00 </script>"
    raw = told([START, *text(odd), *call("c1", "f", json.dumps({"a": odd})), Finished("stop", Tokens())])
    documents = streams.documents_of(Events().feed(raw))
    assert documents[1]["choices"][0]["delta"]["content"] == odd
