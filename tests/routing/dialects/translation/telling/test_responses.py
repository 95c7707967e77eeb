from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings

from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation import opaque
from routecodex.routing.dialects.translation.neutral import Media, Seal, Thought, Tokens, ToolUse
from routecodex.routing.dialects.translation.reading.responses import read
from routecodex.routing.values import Dialect, Endpoint, ProviderError
from tests.conftest import LONG
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import streams
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.plain import (
    BlockEnded,
    Broken,
    CallEnded,
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
    hear_whole,
    tell_whole,
)
from tests.routing.dialects.answer.rounds import Spoken
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

RESPONSES = Dialect.RESPONSES


def told(events: list[Event], **rest: Any) -> bytes:
    teller = Teller(spoken.asked(RESPONSES, **rest))
    return b"".join(map(teller.tell, events)) + teller.close()


def response(events: list[Event], **rest: Any) -> dict[str, Any]:
    """The response at the end of a stream that is well-formed."""
    stream = Events().feed(told(events, **rest))
    streams.check_responses(stream)
    return openai.responses_accumulated(streams.documents_of(stream))


def items(events: list[Event], **rest: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = response([START, *events, END], **rest)["output"]
    return found


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_says_what_the_events_say(name: str) -> None:
    events = [START, *ANSWERS[name], END]
    raw = told(events)
    assert response(events)["usage"]["total_tokens"] == 120
    for one_by_one in (False, True):
        said, out = spoken.said_of(raw, RESPONSES, stream=True, one_by_one=one_by_one)
        spoken.check_said(said, events, RESPONSES)
        assert out == raw, "the merger lets it pass as it is"


@pytest.mark.parametrize("name", ANSWERS)
def test_a_whole_answer_is_the_response_that_a_stream_ends_with(name: str) -> None:
    events = [START, *ANSWERS[name], END]
    whole = tell_whole(iter(events), spoken.asked(RESPONSES, stream=False))
    assert json.loads(whole) == response(events)
    spoken.check_said(spoken.said_of(whole, RESPONSES, stream=False)[0], events, RESPONSES)


@given(spoken.ANY)
@settings(max_examples=5_000 if LONG else 50, deadline=None)
def test_any_answer(blocks: list[Event]) -> None:
    events = [START, *blocks, END]
    raw = told(events)
    response(events)
    spoken.check_said(spoken.said_of(raw, RESPONSES, stream=True)[0], events, RESPONSES)
    assert told(events) == raw, "the same answer has the same bytes"
    back = [block for block in folded(heard(Hearer(RESPONSES, "m", "r"), raw)) if block[0] == "call"]
    for given_, heard_ in zip([block for block in folded(events) if block[0] == "call"], back, strict=True):
        assert heard_[1] == given_[1]
        assert json.loads(heard_[3]) == json.loads(given_[3])


KINDS: dict[str, list[str]] = {
    "text": ["message"],
    "nothing": [],
    "two texts": ["message"],
    "thought, text": ["reasoning", "message"],
    "a seal alone": ["reasoning", "message"],
    "thoughts": ["reasoning", "reasoning", "reasoning", "message"],
    "thought, text, calls": ["reasoning", "message", "function_call", "function_call"],
    "thoughts between calls": ["reasoning", "function_call", "reasoning", "function_call", "message"],
    "a sealed call": ["message", "reasoning", "function_call", "function_call"],
    "a sealed text": ["message", "reasoning", "reasoning"],
    "a custom tool": ["custom_tool_call", "function_call"],
    "a picture": ["message", "image_generation_call", "message"],
    "sound": ["message"],
}


@pytest.mark.parametrize("name", KINDS)
def test_what_items_there_are(name: str) -> None:
    output = items(ANSWERS[name])
    assert [item["type"] for item in output] == KINDS[name]
    ids = [item["id"] for item in output]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"(msg|rs|fc|ctc|ig)_[A-Za-z0-9_-]{1,60}", id) and len(id) <= 64 for id in ids)


def test_texts_in_a_row_are_parts_of_one_message() -> None:
    (message,) = items(ANSWERS["two texts"])
    assert [part["text"] for part in message["content"]] == ["a", "bc"]
    assert message["status"] == "completed"


def test_the_events_of_a_text() -> None:
    kinds = [event.name.removeprefix("response.") for event in Events().feed(told([START, *text("a", "b"), END]))]
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_the_events_of_a_thought() -> None:
    documents = streams.documents_of(Events().feed(told([START, *thought("a", "b"), END])))[2:-1]
    assert [one["type"].removeprefix("response.") for one in documents] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert documents[0]["item"]["summary"] == []
    assert [one.get("delta") for one in documents[2:4]] == ["a", "b"]
    assert documents[4]["text"] == "ab"
    assert documents[5]["part"] == {"type": "summary_text", "text": "ab"}
    assert documents[6]["item"]["summary"] == [documents[5]["part"]]
    assert opaque.unwrap(documents[6]["item"]["encrypted_content"]) == SIGNED


def test_text_and_arguments_leave_as_they_come() -> None:
    teller = Teller(spoken.asked(RESPONSES))
    teller.tell(START)
    assert b'"delta":"a"' in teller.tell(TextPiece("a"))
    assert teller.tell(TextPiece("b")).count(b"data:") == 1
    teller.tell(CallStarted("c1", "f"))
    assert teller.tell(CallPiece('{"a')) == b"", "a seal may come with the only piece"
    assert b'"delta":"{\\"a\\":1"' in teller.tell(CallPiece('":1'))
    assert teller.tell(CallPiece("}")).count(b"data:") == 1
    assert teller.tell(CallEnded()).count(b"data:") == 2


def test_a_call_is_what_codex_runs() -> None:
    (done,) = items(call("toolu_1", "mcp__read", '{"p":', '"q"}'))
    assert {name: done[name] for name in ("type", "status", "call_id", "name", "namespace", "arguments")} == {
        "type": "function_call",
        "status": "completed",
        "call_id": "toolu_1",
        "name": "read",
        "namespace": "mcp__files",
        "arguments": '{"p":"q"}',
    }
    (empty,) = items(call("c1", "f"))
    assert empty["arguments"] == "{}"
    assert "namespace" not in empty
    first, second = items(ANSWERS["a call without an id"])
    assert first["call_id"].startswith("call_")
    assert first["call_id"] != second["call_id"]


def test_a_custom_tool_gets_its_text() -> None:
    custom, _ = items(ANSWERS["a custom tool"])
    assert (custom["name"], custom["input"], custom["call_id"]) == ("apply_patch", '*** Begin\n"x" 😀', "c1")
    documents = streams.documents_of(Events().feed(told([START, *ANSWERS["a custom tool"], END])))
    ends = {one["type"]: one for one in documents}
    assert ends["response.custom_tool_call_input.done"]["input"] == custom["input"]
    assert ends["response.custom_tool_call_input.delta"]["delta"] == custom["input"]
    (misused,) = items(ANSWERS["a custom tool misused"])
    assert misused["input"] == "not json"


BUILT_IN = {
    "local_shell": (
        '{"command":["ls","-l"]}',
        "local_shell_call",
        "action",
        {"type": "exec", "env": {}, "command": ["ls", "-l"]},
    ),
    "shell": ('{"commands":["ls"]}', "shell_call", "action", {"commands": ["ls"]}),
    "apply_patch": (
        '{"type":"delete_file","path":"a"}',
        "apply_patch_call",
        "operation",
        {"type": "delete_file", "path": "a"},
    ),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_openais_own_tools_have_items_of_their_own(name: str) -> None:
    arguments, kind, field, action = BUILT_IN[name]
    (item,) = items(call("c1", name, arguments[:5], arguments[5:]), response={"tools": [{"type": name}]})
    assert (item["type"], item["call_id"], item[field]) == (kind, "c1", action)
    (plain,) = items(call("c1", name, arguments))
    assert (plain["type"], plain["name"]) == ("function_call", name), "a client's own tool of that name"


@pytest.mark.parametrize("stream", (True, False))
def test_seals_come_back_to_their_makers(stream: bool) -> None:
    events = [START, *thought("t", "u"), *thought("v"), ThoughtEnded(REDACTED), *text("a"), ThoughtEnded(OF_PART)]
    events += [*call("c1", "f", '{"a":1}', seal=OF_CALL), *call("c2", "g", "{}"), END]
    output = response(events)["output"] if stream else json.loads(tell_whole(events, spoken.asked(RESPONSES)))["output"]
    body = {"model": "m", "input": [{"role": "user", "content": "q"}, *output], "store": False}
    blocks = read(body, Endpoint(RESPONSES)).messages[1].blocks
    assert [(block.text, block.seal) for block in blocks if isinstance(block, Thought)] == [
        ("tu", SIGNED),
        ("v", SIGNED),
        ("", REDACTED),
        ("", OF_PART),
    ]
    assert [(block.id, block.seal) for block in blocks if isinstance(block, ToolUse)] == [("c1", OF_CALL), ("c2", None)]


def test_a_seal_behind_a_text_does_not_cut_it() -> None:
    message, first, second = items(ANSWERS["a sealed text"])
    assert message["content"][0]["text"] == "ab"
    assert [opaque.unwrap(item["encrypted_content"]) for item in (first, second)] == [OF_PART, OF_PART]


def test_a_foreign_seal_is_never_plain() -> None:
    for events in ([START, *thought("t"), END], [START, *call("c1", "f", "{}", seal=OF_CALL), END]):
        for raw in (told(events), tell_whole(events, spoken.asked(RESPONSES))):
            assert opaque.MARK.encode() in raw
            assert b"EuYB" not in raw
            assert b'"c2ln"' not in raw


def test_a_seal_of_this_dialect_is_written_as_it_was() -> None:
    own = Seal(RESPONSES, "openai", {"id": "rs_9", "summary": [], "encrypted_content": "gAAA"})
    whole, alone = items([*thought("t", seal=own), ThoughtEnded(own)])
    assert whole["encrypted_content"] == alone["encrypted_content"] == "gAAA"
    assert [part["text"] for part in whole["summary"]] == ["t"]


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("sound", "no last event of blocks")])
@pytest.mark.parametrize("whole", (True, False))
def test_what_is_told_is_heard_again(name: str, whole: bool) -> None:
    """Seals of others are words in `encrypted_content`; texts in a row, and a text around a seal, are one."""
    events = [START, *ANSWERS[name], END]
    json_ = tell_whole(events, spoken.asked(RESPONSES))
    back = hear_whole(RESPONSES, json_, "m", "r") if whole else heard(Hearer(RESPONSES, "m", "r"), told(events))
    for event in back:
        if isinstance(event, ThoughtEnded) and event.seal is not None:
            assert event.seal.dialect is RESPONSES
            assert opaque.unwrap(str(event.seal.payload["encrypted_content"])) in (SIGNED, REDACTED, OF_CALL, OF_PART)
    wanted = folded(spoken.unsealed([event for event in events if not isinstance(event, BlockEnded)]))
    for block, want in zip(folded(spoken.unsealed(back))[1:-1], wanted[1:-1], strict=True):
        if block[0] == "call":
            known = spoken.TOOLS.get(want[2], spoken.ToolName(want[2]))
            assert block[2] == known.name
            assert block[1] == want[1] or not want[1]
            if known.custom:
                assert json.loads(block[3]) == (json.loads(want[3]) if want[3].startswith("{") else {"input": want[3]})
            else:
                assert block[3] == (want[3] or "{}")
        else:
            assert block == want
    word = "completed"
    assert back[-1] == Finished(word, TOKENS)


def test_a_picture_is_an_item() -> None:
    (item,) = items([MediaShown(PICTURE)])
    assert (item["result"], item["output_format"], item["status"]) == ("aGk=", "png", "completed")
    assert folded(heard(Hearer(RESPONSES, "m", "r"), told([START, MediaShown(PICTURE), END])))[1] == ("media", PICTURE)
    (link,) = items([MediaShown(Media("image", url="https://x/y.png"))])
    assert link["content"][0]["text"] == "[image: https://x/y.png]"


# --- the response object ------------------------------------------------------------------------------------------------

REPEATED = {"instructions": "be", "tools": [{"type": "function", "name": "f"}], "tool_choice": "required", "temperature": 0.3}
REPEATED |= {"metadata": {"a": "b"}, "prompt_cache_key": "k", "status": "nonsense", "output": [1], "id": "resp_evil"}


def test_every_response_object_repeats_the_call() -> None:
    documents = streams.documents_of(Events().feed(told([START, *text("a"), END], response=REPEATED)))
    objects = [one["response"] for one in documents if "response" in one]
    assert [one["status"] for one in objects] == ["in_progress", "in_progress", "completed"]
    for one in objects:
        ours = ("status", "output", "id")
        assert {name: one[name] for name in REPEATED if name not in ours} == {
            name: value for name, value in REPEATED.items() if name not in ours
        }
        assert (one["object"], one["created_at"], one["model"]) == ("response", 1_800_000_000, "client-model")
        assert one["id"] == objects[0]["id"] != "resp_evil"
        assert one["parallel_tool_calls"] is True
    assert [one["usage"] is None for one in objects] == [True, True, False]


def test_usage_is_exact_at_the_end() -> None:
    assert response([START, END])["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 5},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 7},
        "total_tokens": 120,
    }
    assert response([START, Finished("stop")])["usage"]["input_tokens"] == 77, "nobody counted: our own estimate"


ENDS = {
    "end_turn": ("completed", None),
    "tool_use": ("completed", None),
    "max_tokens": ("incomplete", "max_output_tokens"),
    "length": ("incomplete", "max_output_tokens"),
    "refusal": ("incomplete", "content_filter"),
    "SAFETY": ("incomplete", "content_filter"),
    "": ("completed", None),
}


@pytest.mark.parametrize("word", ENDS)
def test_why_it_ended(word: str) -> None:
    status, reason = ENDS[word]
    ended = response([START, *text("a"), Finished(word, TOKENS)])
    assert ended["status"] == status
    assert ended["incomplete_details"] == ({"reason": reason} if reason else None)
    assert ended["error"] is None
    assert response([START, *call("c1", "f", "{}"), Finished(word, TOKENS)])["status"] == status


def test_an_answer_that_ended_with_an_error_failed() -> None:
    raw = told([START, *text("a"), Finished("MALFORMED_FUNCTION_CALL", TOKENS)])
    last = streams.documents_of(Events().feed(raw))[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"] == last["error"]
    assert last["response"]["output"][0]["content"][0]["text"] == "a"
    said, _ = spoken.said_of(raw, RESPONSES, stream=True)
    assert said.error is not None


def test_ids_are_the_providers_or_follow_from_the_rounds() -> None:
    assert response([Started("resp_7", "m"), END])["id"] == "resp_7"
    ids = {response([Started(id, "m"), *text("a"), END])["id"] for id in ("msg_1", "", "chatcmpl-2")}
    assert len(ids) == 1
    assert re.fullmatch(r"resp_[A-Za-z0-9_-]{1,50}", ids.pop())
    assert response([*text("a"), END])["id"] == response([START, END])["id"]
    rounds = {
        response([START, *text("a"), END], id=f"0f3c-1:{suffix}")["output"][0]["id"] for suffix in ("retry", "stop", "hold")
    }
    assert len(rounds) == 3
    long = response([START, *text("a"), END], id="r" * 500)
    assert len(long["output"][0]["id"]) <= 64
    assert response([START, *text("a"), END], id="")["id"].startswith("resp_")


ERROR = ProviderError(529, "Overloaded", "overloaded_error")


def test_a_broken_answer_ends_in_an_error() -> None:
    events = [START, *text("a"), CallStarted("c1", "f"), CallPiece('{"a'), CallPiece('":'), Broken(ERROR)]
    raw = told(events)
    documents = streams.documents_of(Events().feed(raw))
    assert [one["sequence_number"] for one in documents] == list(range(len(documents)))
    assert len({one["response"]["id"] for one in documents if "response" in one}) == 1
    assert documents[-1]["type"] == "response.failed"
    assert documents[-1]["response"]["error"]["message"] == "Overloaded"
    done = [one["item"]["type"] for one in documents if one["type"] == "response.output_item.done"]
    assert done == ["message"], "nobody may run a call that is not whole"
    said, _ = spoken.said_of(raw, RESPONSES, stream=True)
    assert not said.complete
    assert said.error is not None
    assert json.loads(tell_whole(events, spoken.asked(RESPONSES)))["error"]["code"] == "overloaded_error"
    (first,) = streams.documents_of(Events().feed(told([Broken(ERROR)])))
    assert (first["type"], first["sequence_number"]) == ("response.failed", 0)


def test_an_answer_that_never_ended_has_no_end() -> None:
    events = [START, *text("a"), ThoughtPiece("t")]
    assert not spoken.said_of(told(events), RESPONSES, stream=True)[0].complete
    assert "ended without" in json.loads(tell_whole(events, spoken.asked(RESPONSES)))["error"]["message"]


@pytest.mark.parametrize("include_usage", (True, False))
def test_a_chat_providers_answer_as_codex_gets_it(include_usage: bool) -> None:
    round_ = Spoken((("thinking", "let me see"), ("text", "Grüße 😀"), ("tool", '{"cmd": "ls"}'), ("tool", '{"cmd": "pwd"}')))
    raw = openai.chat_stream(round_, 1, usage=include_usage)
    output = response(heard(Hearer(Dialect.CHAT, "glm", "r"), raw))["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "function_call", "function_call"]
    assert [item["arguments"] for item in output[2:]] == ['{"cmd": "ls"}', '{"cmd": "pwd"}']
    body = {"model": "m", "input": [{"role": "user", "content": "q"}, *output], "store": False}
    first = read(body, Endpoint(RESPONSES)).messages[1].blocks[0]
    assert first == Thought("let me see", Seal(Dialect.CHAT, "glm", {"reasoning_content": True}))


# --- as rounds of a turn ------------------------------------------------------------------------------------------------


@given(spoken.ANY, spoken.ANY)
@settings(max_examples=60, deadline=None)
def test_two_rounds_become_one_answer(first: list[Event], second: list[Event]) -> None:
    merger = answer_for(Endpoint(RESPONSES), stream=True)
    out = b""
    for number, blocks in enumerate((first, second)):
        renamed = [
            dataclasses.replace(event, id=f"{event.id}_{number}") if isinstance(event, CallStarted) else event for event in blocks
        ]
        merger.begin_round()
        out += merger.feed(told([START, *renamed, END], id=f"0f3c-1:{number}"))
        assert merger.end_round().complete
    out += b"".join(merger.finish())
    stream = Events().feed(out)
    streams.check_responses(stream)
    openai.responses_accumulated(streams.documents_of(stream))


def test_an_answer_that_we_began_goes_on_in_it() -> None:
    opener = answer_for(Endpoint(RESPONSES), stream=True)
    out = opener.open(id="resp_ours", model="client-model", created=5) + opener.keep_alive()
    opener.begin_round()
    out += opener.feed(told([START, *thought("t"), *text("a"), *call("c1", "f", "{}"), END]))
    opener.end_round()
    documents = streams.documents_of(Events().feed(out + b"".join(opener.finish())))
    assert [one["sequence_number"] for one in documents] == list(range(len(documents)))
    assert {one["response"]["id"] for one in documents if "response" in one} == {"resp_ours"}
    assert [item["type"] for item in documents[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]


def test_nothing_that_a_model_says_breaks_the_encoding() -> None:
    odd = "\ud800 \u2028 \x00 </script>"
    raw = told([START, *text(odd), *call("c1", "f", json.dumps({"a": odd})), Finished("stop", Tokens())])
    assert streams.documents_of(Events().feed(raw))[4]["delta"] == odd
