"""Responses alone: numbers, what is told again, who begins, what a history holds."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.dialects.answer.responses.read import Reader
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.neutral import ToolName
from routecodex.routing.values import Endpoint, ToolCall
from tests.rig.asked import Asked
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.rounds import spoken
from tests.routing.dialects.answer.said_in import content_of, read
from tests.routing.dialects.answer.talks import CHAT, MESSAGES, RESPONSES, WRITTEN, Way, answer_for, chunk, drive, entry, sse
from tests.system import grammar

TEXT = spoken(("text", "Hello"))


def documents(raw: bytes) -> list[dict[str, Any]]:
    return streams.documents_of(Events().feed(raw))


def numbers(raw: bytes) -> list[int]:
    return [one["sequence_number"] for one in documents(raw)]


def part(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "item_id": "msg_1", "output_index": 0, "content_index": index, **more}


# --- the reader -------------------------------------------------------------------------------------------------------------


def test_what_is_told_again_says_nothing_new() -> None:
    said = read(Reader(), *openai.responses_documents(TEXT, 1))
    assert [word for word in said if word.startswith("text:")] == ["text:", "text:Hell", "text:o"]
    assert said[-6:] == ["Closing", "Closing", "Closed text", "Counted 100 10", "Ended completed", "Done"]


def test_a_second_part_is_no_text_told_twice() -> None:
    given = [
        part(0, "output_text.delta", delta="same"),
        part(0, "output_text.done", text="same"),
        part(1, "output_text.delta", delta="same"),
        part(1, "output_text.done", text="same"),
    ]
    assert content_of(Reader(), *given).text == "samesame"


def test_a_part_that_its_host_counts_twice_is_one() -> None:
    item = {"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": "same", "annotations": []}]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    assert content_of(Reader(), part(1, "output_text.delta", delta="same"), done).text == "same"


def test_unknown_events_pass_and_know_their_items() -> None:
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"id": "x_1", "type": "x_call"}}
    said = read(Reader(), added, {"type": "response.x_call.doing", "output_index": 0}, {"type": "codex.rate_limits"})
    assert said == ["Opened trace", "Extra trace"]
    assert read(Reader(), {"type": "response.unheard_of"}) == ["Field "]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_answer_in_the_background_is_not_gone_on_with(status: str) -> None:
    raw = rounds.dump({**openai.responses_whole(spoken(), 1), "status": status})
    out, [said] = drive(answer_for(Way(RESPONSES, False)), [(RESPONSES, raw)])
    assert out == raw
    assert said.finish == "error"


def test_calls_of_openais_own_tools_are_read_and_never_ours() -> None:
    item = {"id": "lsh_1", "type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}, "status": "completed"}
    raw = rounds.dump({**openai.responses_whole(spoken(), 1), "output": [item]})
    asked = Asked(Endpoint(RESPONSES), False, "0", "m", 1, maker="acme")
    out, [said] = drive(Answer(asked, own=frozenset({"local_shell"})), [(RESPONSES, raw)])
    assert said.calls == (ToolCall("c", "local_shell", '{"command":["ls"]}'),)
    assert said.own == ()
    assert out == raw


# --- numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("way", rounds.WAYS)
def test_the_error_that_ends_a_broken_stream_has_the_next_number(way: str, quiet: bool) -> None:
    raw = openai.responses_stream(spoken(("text", "Hello " * 30), ending="cut"), 1)
    answer = answer_for(Way(RESPONSES), quiet=quiet)
    out, [said] = drive(answer, [(RESPONSES, raw)], rounds.WAYS[way])
    assert not said.complete
    assert out.startswith(raw)
    assert numbers(out) == list(range(len(numbers(out))))
    assert documents(out)[-1]["type"] == "response.failed"
    assert documents(out)[-1]["response"]["id"] == "resp_1"


def test_a_providers_number_that_begins_elsewhere_goes_on() -> None:
    given = [{**one, "sequence_number": 7 + place} for place, one in enumerate(openai.responses_documents(TEXT, 1))]
    raw = b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in given)
    out, _ = drive(answer_for(Way(RESPONSES)), [(RESPONSES, raw), (RESPONSES, openai.responses_stream(TEXT, 2))])
    assert numbers(out) == list(range(7, 7 + len(numbers(out))))


# --- who begins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [Way(CHAT), Way(CHAT, False), Way(MESSAGES), Way(RESPONSES), Way(RESPONSES, False)], ids=str)
def test_an_answer_begun_by_us_goes_on_as_anybodys(one: Way) -> None:
    answer = answer_for(Way(RESPONSES))
    begun = answer.open(id="resp_ours", model="asked", created=7) + answer.keep_alive()
    out, _ = drive(answer, [(one.dialect, WRITTEN[one.dialect, one.stream](TEXT, 1))])
    told = grammar.read(RESPONSES, begun + out, True)
    assert (told.text, told.id, answer.id) == ("Hello", "resp_ours", "resp_ours")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_round_that_was_silent_so_long_that_we_began_its_answer(quiet: bool) -> None:
    """What its text comes to is told four times at the end, whether anybody takes part or not."""
    raw = openai.responses_stream(spoken(("text", "Hello " * 20)), 1)
    answer, at = answer_for(Way(RESPONSES), quiet=quiet), raw.index(b"event: response.output_item.added")
    answer.begin_round(Round(RESPONSES, "acme"))
    out = answer.feed(raw[:at]) + answer.open(id="resp_ours", model="asked", created=7) + answer.keep_alive()
    out += b"".join(answer.feed(raw[place : place + 1]) for place in range(at, len(raw)))
    answer.end_round()
    assert grammar.read(RESPONSES, out + b"".join(answer.finish()), True).text == "Hello " * 20


@pytest.mark.parametrize("way", [Way(CHAT), Way(MESSAGES), Way(RESPONSES, False)], ids=str)
def test_others_need_no_beginning(way: Way) -> None:
    assert answer_for(way).open(id="x", model="m", created=1) == b""


# --- custom tools ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_a_custom_tool_for_a_client_that_knows_functions(stream: bool) -> None:
    raw = openai.responses_stream(spoken(("custom", 'ls "\n')), 1)
    for client in (Way(CHAT, stream), Way(MESSAGES, stream)):
        out, [said] = drive(answer_for(client), [(RESPONSES, raw)])
        assert grammar.read(client.dialect, out, stream).calls == [("apply_patch", {"input": 'ls "\n'})]
        assert said.calls[0].name == "apply_patch"


@pytest.mark.parametrize("stream", [True, False])
def test_a_function_for_a_client_that_knows_free_text(stream: bool) -> None:
    answer = answer_for(Way(RESPONSES, stream))
    answer.begin_round(Round(CHAT, "acme", {"patch": ToolName("apply_patch", custom=True)}))
    call = entry(0, '{"input": "*** Begin\\n"}', "patch", "a")
    out = answer.feed(sse(chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls"), b"[DONE]"))
    answer.end_round()
    out += b"".join(answer.finish())
    response = documents(out)[-1]["response"] if stream else json.loads(out)
    [item] = response["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** Begin\n")


# --- what is kept ----------------------------------------------------------------------------------------------------------

_LONG = "w" * 2_000_000


def _long_events() -> list[bytes]:
    events = []
    for one in openai.responses_documents(spoken(("text", "abcd")), 1):
        if one["type"].endswith("text.delta"):
            events += [{**one, "delta": _LONG[at : at + 1000]} for at in range(0, len(_LONG), 1000)]
        else:
            events.append(json.loads(json.dumps(one).replace('"abcd"', json.dumps(_LONG))))
    return [openai.named_sse([{**one, "sequence_number": number}]) for number, one in enumerate(events)]


@pytest.mark.parametrize("times, most", [(1, 4 << 20), (2, 6 << 20)])
def test_a_long_text_is_kept_once_and_its_end_is_made_in_pieces(times: int, most: int) -> None:
    """It stands in four closing events, and they are held until it is known what follows."""
    events = _long_events()
    answer = answer_for(Way(RESPONSES))
    tracemalloc.start()
    for _ in range(times):
        answer.begin_round()
        for event in events:
            answer.feed(event)
        answer.end_round()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    size = sum(map(len, answer.finish()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 4 * times * len(_LONG)
    assert held < most
    assert peak < most + (1 << 20)
