"""A client whose library reads each delta of a stream as whole calls: Mistral's, whose own models tell them so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.machine import Round
from routecodex.routing.values import Dialect
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.rounds import Spoken, spoken, sse_documents
from tests.routing.dialects.answer.talks import CHAT, MESSAGES, RESPONSES, Way, answer_for, chunk, drive, entry, read, sse

TEXT, THOUGHT = ("text", "Grüße, 世界"), ("thinking", "let me see")
OWN_CALL, TOOL, OTHER = ("own", '{"action": "now"}'), ("tool", '{"cmd": "ls -la"}'), ("tool", '{"cmd": "pwd"}')
CASES: dict[str, list[Spoken]] = {
    "a tool": [spoken(TOOL)],
    "text, then tools": [spoken(THOUGHT, TEXT, TOOL, OTHER)],
    "behind ours": [spoken(TEXT, OWN_CALL), spoken(TOOL)],
    "text alone": [spoken(THOUGHT, TEXT)],
}


def calls_in(raw: bytes) -> list[dict[str, Any]]:
    """As the library reads them: each with a name and arguments, none of which goes on in another delta."""
    choices = [choice for one in sse_documents(raw.replace(b"data: [DONE]\n\n", b"")) for choice in one["choices"]]
    assert all(isinstance(choice["index"], int) and "finish_reason" in choice for choice in choices)
    return [call for choice in choices for call in choice["delta"].get("tool_calls") or ()]


@pytest.mark.parametrize("spoken_by", list(Dialect))
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cut", [rounds.whole, rounds.bytewise], ids=["whole", "byte by byte"])
def test_each_call_comes_in_one_piece(name: str, spoken_by: Dialect, cut: Any) -> None:
    client = Way(CHAT)
    given = [(spoken_by, Way(spoken_by).written(one, number)) for number, one in enumerate(CASES[name], 1)]
    out, said = drive(answer_for(client, whole_calls=True), given, cut)
    usual, _ = drive(answer_for(client), given, cut)
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls_in(out)]
    told = read(client, usual)
    assert calls == told.calls
    assert len({call["index"] for call in calls_in(out)}) == len({call["id"] for call in calls_in(out)}) == len(calls)
    assert read(client, out).text == told.text
    message = openai.chat_accumulated(sse_documents(out.replace(b"data: [DONE]\n\n", b"")))["message"]
    assert rounds.is_known_again(CHAT, said, [message])
    *chunks, last = sse_documents(out.replace(b"data: [DONE]\n\n", b""))
    assert last["choices"][0]["finish_reason"] == ("tool_calls" if calls else "stop")
    assert last["usage"]["total_tokens"] == sse_documents(usual.replace(b"data: [DONE]\n\n", b""))[-1]["usage"]["total_tokens"]
    assert not any(one.get("usage") for one in chunks)


def test_calls_without_arguments_have_some() -> None:
    units = [chunk({"tool_calls": [entry(0, "", "look", "call_1")]}), chunk({}, "tool_calls")]
    out, _ = drive(answer_for(Way(CHAT), whole_calls=True), [(CHAT, sse(*units) + b"data: [DONE]\n\n")])
    assert [call["function"] for call in calls_in(out)] == [{"name": "look", "arguments": "{}"}]


def test_what_its_own_provider_says_leaves_as_it_came() -> None:
    raw = Way(CHAT).written(spoken(TEXT, TOOL), 1)
    answer = answer_for(Way(CHAT), quiet=True, whole_calls=True)
    answer.begin_round(Round(CHAT), exact=True)
    out = answer.feed(raw)
    answer.end_round()
    assert b"".join([out, *answer.finish()]) == raw


@pytest.mark.parametrize("spoken_by", list(Dialect))
def test_a_thought_of_responses_says_how_far_it_is(spoken_by: Dialect) -> None:
    """So does everything else there, for everybody."""
    out, _ = drive(
        answer_for(Way(RESPONSES), whole_calls=True), [(spoken_by, Way(spoken_by).written(spoken(THOUGHT, TEXT, TOOL), 1))]
    )
    told = [one for one in sse_documents(out) if one["type"].startswith("response.output_item.")]
    thoughts = [one for one in told if one["item"]["type"] == "reasoning"]
    assert {one["item"]["status"] for one in thoughts} == {"in_progress", "completed"}
    assert all(one["item"].get("status") for one in told)
    [whole] = [one["response"] for one in sse_documents(out) if one["type"] == "response.completed"]
    assert {one["status"] for one in whole["output"]} == {"completed"}


def test_other_dialects_know_nothing_of_it() -> None:
    given = [(CHAT, Way(CHAT).written(spoken(TEXT, TOOL), 1))]
    assert drive(answer_for(Way(MESSAGES), whole_calls=True), given) == drive(answer_for(Way(MESSAGES)), given)
