# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.sse import Events
from routecodex.routing.values import Dialect, Endpoint, ToolCall, Usage
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import rounds, streams
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.rounds import OWN, Spoken, spoken

RESPONSES = Endpoint(Dialect.RESPONSES)


def _merger(stream: bool = True) -> Answer:
    return answer_for(RESPONSES, stream=stream, own_tools=OWN)


def _raws(given_: list[Spoken], *, stream: bool = True) -> list[bytes]:
    write = openai.responses_stream if stream else openai.responses_json
    return [write(round_, number) for number, round_ in enumerate(given_, 1)]


def _documents(raw: bytes) -> list[dict[str, Any]]:
    return streams.documents_of(Events().feed(raw))


def _told(raw: bytes) -> dict[str, Any]:
    """The response at the end of a well-formed stream."""
    events = Events().feed(raw)
    streams.check_responses(events)
    return openai.responses_accumulated(streams.documents_of(events))


TEXT, THOUGHT = ("text", "Grüße, 世界 😀 one"), ("thinking", "let me see")
OWN_CALL, TOOL = ("own", '{"action": "now"}'), ("tool", '{"cmd": "ls -la"}')
SEARCH, CUSTOM, REFUSAL = ("server", "what"), ("custom", "*** Begin Patch"), ("refusal", "I can't do that")
MESSAGE, CALL = "message", "function_call"

CASES: dict[str, tuple[list[Spoken], list[str], str]] = {
    # rounds, the types of items that the client sees, status
    "text+text": ([spoken(TEXT, input=100, output=3), spoken(("text", "two"), input=120, output=5)], [MESSAGE], "completed"),
    "four texts": ([spoken(("text", word)) for word in ("a", "b b", "c\n", "d")], [MESSAGE], "completed"),
    "one, with own": ([spoken(TEXT, OWN_CALL)], [MESSAGE], "completed"),
    "text, own, text in one": ([spoken(TEXT, OWN_CALL, ("text", "behind"))], [MESSAGE], "completed"),
    "own between rounds": ([spoken(TEXT, OWN_CALL), spoken(("text", "it is noon"))], [MESSAGE], "completed"),
    "only own, then text": ([spoken(OWN_CALL), spoken(("text", "it is noon"))], [MESSAGE], "completed"),
    "reasoning, own, reasoning": ([spoken(THOUGHT, OWN_CALL), spoken(THOUGHT, TEXT)], ["reasoning", MESSAGE], "completed"),
    "reasoning+text twice": ([spoken(THOUGHT, TEXT), spoken(THOUGHT, ("text", "two"))], ["reasoning", MESSAGE], "completed"),
    "tool in round 2": ([spoken(TEXT), spoken(("text", "now"), TOOL)], [MESSAGE, CALL], "completed"),
    "only a tool in round 2": ([spoken(TEXT), spoken(TOOL)], [MESSAGE, CALL], "completed"),
    "own and tool in round 1": ([spoken(TEXT, OWN_CALL, TOOL)], [MESSAGE, CALL], "completed"),
    "tool, own, custom": ([spoken(TOOL, OWN_CALL, CUSTOM)], [CALL, "custom_tool_call"], "completed"),
    "own, reasoning, tool in round 2": ([spoken(TEXT), spoken(OWN_CALL, THOUGHT, TOOL)], [MESSAGE, CALL], "completed"),
    "text behind a tool": ([spoken(TEXT, TOOL), spoken(("text", "two"))], [MESSAGE, CALL, MESSAGE], "completed"),
    "tool between texts": ([spoken(TEXT), spoken(("text", "b"), TOOL, ("text", "c"))], [MESSAGE, CALL, MESSAGE], "completed"),
    "two messages in round 1": ([spoken(TEXT, ("text", "b")), spoken(("text", "c"))], [MESSAGE, MESSAGE], "completed"),
    "two messages in round 2": ([spoken(TEXT), spoken(("text", "b"), ("text", "c"))], [MESSAGE], "completed"),
    "search in round 1": ([spoken(THOUGHT, SEARCH, TEXT), spoken(("text", "two"))], ["reasoning", "web_search_call", MESSAGE], "completed"),
    "search in round 2": ([spoken(TEXT), spoken(THOUGHT, SEARCH, ("text", "two"))], [MESSAGE], "completed"),
    "reasoning behind text": ([spoken(TEXT, THOUGHT), spoken(("text", "two"))], [MESSAGE, "reasoning", MESSAGE], "completed"),
    "refusal in round 2": ([spoken(TEXT), spoken(REFUSAL)], [MESSAGE], "completed"),
    "refusal, then text": ([spoken(REFUSAL), spoken(("text", "two"))], [MESSAGE], "completed"),
    "empty second round": ([spoken(TEXT), spoken()], [MESSAGE], "completed"),
    "empty first round": ([spoken(), spoken(TEXT)], [MESSAGE], "completed"),
    "all empty": ([spoken(), spoken()], [], "completed"),
    "length at the end": ([spoken(TEXT), spoken(("text", "cut"), finish="max_output_tokens")], [MESSAGE], "incomplete"),
    "length in the middle": ([spoken(TEXT, finish="max_output_tokens"), spoken(("text", "on"))], [MESSAGE], "completed"),
    "content_filter": ([spoken(TEXT), spoken(finish="content_filter")], [MESSAGE], "incomplete"),
    "a last own call": ([spoken(TEXT), spoken(OWN_CALL)], [MESSAGE], "completed"),
    "two own at once": ([spoken(OWN_CALL, OWN_CALL), spoken(TEXT)], [MESSAGE], "completed"),
}  # fmt: skip


def _text(given_: list[Spoken]) -> str:
    return "\n\n".join(filter(None, (round_.text for round_ in given_)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", rounds.WAYS)
def test_m34_one_well_formed_stream(case: str, way: str) -> None:
    given_, kinds, status = CASES[case]
    merger = _merger()
    raw, said = rounds.drive(merger, _raws(given_), rounds.WAYS[way])
    response = _told(raw)
    assert [item["type"] for item in response["output"]] == kinds
    assert (response["status"], response["id"], response["created_at"]) == (status, "resp_1", openai.CREATED + 1)
    assert (response["model"], response["vendor_field"]) == ("m-1", len(given_))
    assert bool(response["incomplete_details"]) is (status == "incomplete")
    assert openai.output_text(response) == _text(given_)
    assert [one.complete for one in said] == [True] * len(given_)
    assert rounds.is_known_again(Dialect.RESPONSES, said, response["output"])


@pytest.mark.parametrize("case", CASES)
def test_m35_stream_and_json_say_the_same(case: str) -> None:
    given_, _, _ = CASES[case]
    streaming, whole = _merger(), _merger(stream=False)
    raw, said = rounds.drive(streaming, _raws(given_))
    out, said_whole = rounds.drive(whole, _raws(given_, stream=False))
    response, merged = _documents(raw)[-1]["response"], json.loads(out)
    assert merged == response
    output = sum(round_.output for round_ in given_)
    assert merged["usage"] == {
        "input_tokens": given_[-1].input,
        "input_tokens_details": {"cached_tokens": 7},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 2 * len(given_)},
        "total_tokens": given_[-1].input + output,
    }
    assert said == said_whole


@pytest.mark.parametrize("case", CASES)
def test_said(case: str) -> None:
    """Each round's `native` is what the model put out, our calls and its reasoning included. A refusal is text."""
    given_, _, _ = CASES[case]
    _, said = rounds.drive(_merger(), _raws(given_))
    for number, (round_, one) in enumerate(zip(given_, said, strict=True), 1):
        assert list(one.native) == openai.responses_items(round_, number)
        assert one.text == "".join(text for kind, text in round_.parts if kind in ("text", "refusal"))
        assert [call.name for call in one.own] == ["clock" for kind, _ in round_.parts if kind == "own"]
        assert [call.arguments for call in one.calls] == [
            json.dumps({"input": text}, separators=(",", ":")) if kind == "custom" else text
            for kind, text in round_.parts
            if kind in ("own", "tool", "custom")
        ]
        assert (one.id, one.error) == (f"resp_{number}", None)
        assert one.usage == Usage(round_.input, round_.output)


@pytest.mark.parametrize(
    "parts, word, expected",
    [((TEXT,), None, "stop"), ((TEXT,), "max_output_tokens", "length"), ((TEXT,), "content_filter", "content_filter"), ((OWN_CALL,), None, "tool_calls"), ((TEXT, TOOL), None, "tool_calls"), ((CUSTOM,), None, "tool_calls"), ((REFUSAL,), None, "content_filter"), ((), None, "stop")],
)  # fmt: skip
def test_m06_said_finish(parts: Any, word: str | None, expected: str) -> None:
    for stream in (True, False):
        _, [said] = rounds.drive(_merger(stream), _raws([spoken(*parts, finish=word)], stream=stream))
        assert said.finish == expected


ONE: dict[str, Spoken] = {
    "text": spoken(TEXT),
    "reasoning": spoken(THOUGHT, TEXT),
    "tools": spoken(THOUGHT, TEXT, TOOL, CUSTOM),
    "messages": spoken(TEXT, TEXT),
    "search": spoken(THOUGHT, SEARCH, THOUGHT, TEXT),
    "refusal": spoken(REFUSAL),
    "empty": spoken(),
    "length": spoken(TEXT, finish="max_output_tokens"),
}


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", ONE)
def test_one_round_is_its_own_bytes(case: str, stream: bool, way: str) -> None:
    raw = _raws([ONE[case]], stream=stream)[0]
    merger = _merger(stream)
    assert rounds.drive(merger, [raw], rounds.WAYS[way])[0] == raw


# --- what providers send as well --------------------------------------------------------------------------------------


def _without(raw_documents: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [one for one in raw_documents if one["type"].removeprefix("response.") not in kinds]


def _of(*parts: tuple[str, str], number: int = 1) -> list[dict[str, Any]]:
    return openai.responses_documents(spoken(*parts), number)


def _unnumbered(documents: list[dict[str, Any]]) -> bytes:
    return b"".join(b"event: " + one["type"].encode() + b"\ndata: " + rounds.dump(one) + b"\n\n" for one in documents)


_PLAIN = openai.responses_stream(spoken(TEXT), 1)

ODD: dict[str, bytes] = {
    "crlf": openai.named_sse(_of(THOUGHT, TEXT), end=b"\r\n"),
    "comments": _PLAIN.replace(b"\n\n", b"\n\n: keep-alive\n\n"),
    "bom": b"\xef\xbb\xbf: hello\n\n" + _PLAIN,
    "no event names": b"".join(line + b"\n" for line in _PLAIN.split(b"\n")[:-1] if not line.startswith(b"event:")),
    "no sequence numbers": _unnumbered(_of(TEXT)),
    "[DONE] behind": _PLAIN + b"data: [DONE]\n\n",
    "no last blank line": _PLAIN[:-1],
    "no end of line": _PLAIN[:-2],
    "unknown events": _PLAIN.replace(b"event: response.output_text.done", b'event: codex.rate_limits\ndata: {"type": "codex.rate_limits", "x": 1}\n\nevent: response.output_text.done').replace(b"event: response.completed", b'event: codex.rate_limits\ndata: {"type": "codex.rate_limits", "x": 2}\n\nevent: response.completed'),
    "not JSON": _PLAIN.replace(b"event: response.completed", b"data: hello\n\nevent: response.completed"),
    "no deltas": openai.named_sse(_without(_of(TEXT), "output_text.delta")),
    "no dones of parts": openai.named_sse(_without(_of(TEXT), "output_text.done", "content_part.done")),
    "no dones at all": openai.named_sse(_without(_of(TEXT), "output_text.done", "content_part.done", "output_item.done")),
    "no parts": openai.named_sse(_without(_of(TEXT), "content_part.added", "content_part.done", "output_text.done")),
    "only items": openai.named_sse(_without(_of(TEXT), "content_part.added", "content_part.done", "output_text.done", "output_text.delta")),
    "only done items": openai.named_sse(_without(_of(TEXT), "output_item.added", "content_part.added", "content_part.done", "output_text.done", "output_text.delta")),
    "only the end": openai.named_sse(_without(_of(TEXT), "output_item.added", "output_item.done", "content_part.added", "content_part.done", "output_text.done", "output_text.delta")),
    "no announcements": openai.named_sse(_without(_of(TEXT), "output_item.added", "content_part.added")),
    "queued": openai.named_sse([{"type": "response.queued", "response": openai.responses_head(1)}, *_of(TEXT)]),
    "numbers from one": b"".join(b"event: " + one["type"].encode() + b"\ndata: " + rounds.dump({**one, "sequence_number": number}) + b"\n\n" for number, one in enumerate(_of(TEXT), 1)),
}  # fmt: skip


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_round_is_its_own_bytes(case: str, way: str) -> None:
    out, [said] = rounds.drive(_merger(), [ODD[case]], rounds.WAYS[way])
    assert out == ODD[case]
    assert said.complete
    assert said.text == TEXT[1]


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_first_round_goes_on(case: str, way: str) -> None:
    out, _ = rounds.drive(_merger(), [ODD[case], openai.responses_stream(spoken(("text", "two")), 2)], rounds.WAYS[way])
    events = [event for event in Events().feed(out) if event.data and event.data not in (b"hello", b"[DONE]")]
    documents = [one for one in streams.documents_of(events) if one["type"] != "codex.rate_limits"]
    kinds = [one["type"] for one in documents]
    assert kinds.count("response.created") == kinds.count("response.completed") == 1
    assert kinds[-1] == "response.completed"
    assert openai.output_text(documents[-1]["response"]) == TEXT[1] + "\n\ntwo"
    assert documents[-1]["response"]["id"] == "resp_1"
    assert len({event.name for event in events} & {""}) == (case == "no event names")
    numbers = [one.get("sequence_number") for one in documents]
    assert (
        numbers == [None] * len(numbers)
        if case == "no sequence numbers"
        else [number - numbers[0] for number in numbers] == list(range(len(numbers)))
    )
    if case not in ("no parts", "only items", "only done items", "only the end", "no announcements"):
        response = openai.responses_accumulated(documents)
        assert len(response["output"]) == 1 + (case == "crlf")


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_second_round_is_merged(case: str, way: str) -> None:
    """What a provider forgets is told in its place."""
    out, _ = rounds.drive(_merger(), [openai.responses_stream(spoken(("text", "zero")), 1), ODD[case]], rounds.WAYS[way])
    events = [event for event in Events().feed(out) if event.data and b"codex.rate_limits" not in event.data]
    if case not in ("no event names", "queued"):
        streams.check_responses(events)
    response = openai.responses_accumulated(streams.documents_of(events))
    assert openai.output_text(response) == "zero\n\n" + TEXT[1]
    assert b"data: hello" not in out
    assert b"\xef\xbb\xbf" not in out
    assert b"[DONE]" not in out


@pytest.mark.parametrize("case", sorted(ODD.keys() - {"no event names", "queued", "unknown events", "crlf"}))
def test_an_odd_second_round_behind_a_tool(case: str) -> None:
    """Where nothing is open, a message of its own is told whole."""
    out, _ = rounds.drive(_merger(), [openai.responses_stream(spoken(("text", "zero"), TOOL), 1), ODD[case]])
    response = _told(b"".join(event.raw for event in Events().feed(out) if event.data))
    assert [item["type"] for item in response["output"]] == [MESSAGE, CALL, MESSAGE]
    assert openai.output_text(response) == "zero\n\n" + TEXT[1]


# --- tool calls -------------------------------------------------------------------------------------------------------


def _late_name(name: str, number: int) -> list[dict[str, Any]]:
    """A call whose name is told with its end alone."""
    documents = _of(("own", '{"a": 1}'), TOOL, number=number)
    for one in documents:
        if one["type"] == "response.output_item.added" and one["output_index"] == 0:
            one["item"] = {**one["item"], "name": ""}
        if one["type"] == "response.output_item.done" and one["output_index"] == 0:
            one["item"] = {**one["item"], "name": name}
    return documents


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("name, shown", [("clock", 1), ("exec_command", 2)])
@pytest.mark.parametrize("before", [0, 1])
def test_a_name_that_comes_late(name: str, shown: int, before: int, way: str) -> None:
    raw = openai.named_sse(_late_name(name, before + 1))
    out, said = rounds.drive(_merger(), [*_raws([spoken(TEXT)] * before), raw], rounds.WAYS[way])
    assert [call.name for call in said[-1].calls] == [name, "exec_command"]
    assert len(said[-1].own) == 2 - shown
    documents = _documents(out)
    calls = [item for item in documents[-1]["response"]["output"] if item["type"] == CALL]
    if before or name == "clock":
        streams.check_responses(Events().feed(out))
        assert len(calls) == shown
        assert b"clock" not in out
        deltas = [one for one in documents if one["type"] == "response.function_call_arguments.delta"]
        assert len({one["output_index"] for one in deltas}) == shown
    else:
        assert out == raw


@pytest.mark.parametrize("before", [0, 1])
def test_a_text_behind_a_name_that_never_comes_is_not_lost(before: int) -> None:
    documents = [one for one in _late_name("", before + 1) if one.get("output_index") != 1][:-2]
    item = openai.responses_item(("text", "words"), before + 1, 1)
    raw = openai.named_sse([*documents, *list(openai._item_documents(item, 1))[:-3]])
    merger = _merger()
    out = b"".join(rounds.feed_round(merger, one)[0] for one in [*_raws([spoken(TEXT)] * before), raw])
    told = _documents(out + merger.fail(502, "It broke.", "X"))
    words = "".join(one["delta"] for one in told if one["type"] == "response.output_text.delta")
    assert words.endswith("words") is bool(before), "nothing was visible yet: then only the error is told"
    assert told[-1]["type"] == "response.failed"


def test_open_models_reasoning_has_parts_too() -> None:
    """The same events as a message's, in an item that is none."""

    def raw(number: int) -> bytes:
        thought = {
            "id": f"rs_{number}",
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "hmm"}],
        }
        at = {"item_id": thought["id"], "output_index": 0, "content_index": 0}
        part = thought["content"][0]  # type: ignore[index]
        events = [
            {"type": "response.output_item.added", "output_index": 0, "item": {**thought, "content": []}},
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            {"type": "response.reasoning_text.delta", **at, "delta": "hmm"},
            {"type": "response.output_text.annotation.added", **at, "annotation_index": 0, "annotation": {}},
            {"type": "response.reasoning_text.done", **at, "text": "hmm"},
            {"type": "response.content_part.done", **at, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": thought},
        ]
        item = openai.responses_item(("text", "word"), number, 1)
        whole = {**openai.responses_whole(spoken(), number), "output": [thought, item]}
        documents = [*_of(number=number)[:2], *events, *openai._item_documents(item, 1)]
        return openai.named_sse([*documents, {"type": "response.completed", "response": whole}])

    assert rounds.drive(_merger(), [raw(1)])[0] == raw(1)
    out, said = rounds.drive(_merger(), [raw(1), raw(2)])
    events = Events().feed(out)
    streams.check_responses(events)
    assert sum(event.name == "response.reasoning_text.delta" for event in events) == 1
    response = streams.documents_of(events)[-1]["response"]
    assert [item["type"] for item in response["output"]] == ["reasoning", MESSAGE]
    assert openai.output_text(response) == "word\n\nword"
    assert said[1].native[0]["content"] == [{"type": "reasoning_text", "text": "hmm"}]


def test_the_text_beside_the_items_is_the_whole_text() -> None:
    answers = [
        {**openai.responses_whole(spoken(("text", word)), number), "output_text": word} for number, word in ((1, "a"), (2, "b"))
    ]
    out, _ = rounds.drive(_merger(False), [rounds.dump(one) for one in answers])
    assert json.loads(out)["output_text"] == "a\n\nb"


def test_a_call_of_ours_that_only_the_end_tells() -> None:
    kinds = ["output_item.added", "output_item.done", "function_call_arguments.delta", "function_call_arguments.done"]
    raw = openai.named_sse(_without(_of(OWN_CALL), *kinds))
    out, [said] = rounds.drive(_merger(), [raw])
    assert [call.name for call in said.own] == ["clock"]
    assert _told(out)["output"] == []


def test_a_name_that_only_the_end_tells() -> None:
    """The call is ours: it is run, and the client does not see it."""
    documents = _late_name("", 1)
    raw = openai.named_sse([one for one in documents if one["type"] != "response.output_item.done" or one["output_index"]])
    second = openai.responses_stream(spoken(("text", "two")), 2)
    for given_ in ([raw], [raw, second], [*_raws([spoken(TEXT)]), raw]):
        out, said = rounds.drive(_merger(), given_)
        assert [call.name for one in said for call in one.own] == ["clock"]
        assert [item["name"] for item in _told(out)["output"] if item["type"] == CALL] == ["exec_command"]
    assert rounds.drive(_merger(), [second])[0] == second, "nothing of one answer is left behind for another"


def test_arguments_that_come_with_the_done_event_alone() -> None:
    documents = [one for one in _of(OWN_CALL) if one["type"] != "response.function_call_arguments.delta"]
    for one in documents:
        if one["type"] == "response.output_item.done":
            one["item"] = {**one["item"], "arguments": ""}
    _, [said] = rounds.drive(_merger(), [openai.named_sse(documents)])
    assert said.own == (ToolCall("call_1_0", "clock", OWN_CALL[1]),)
    assert said.native[0]["arguments"] == OWN_CALL[1]


def test_a_call_that_is_never_done_is_whole_all_the_same() -> None:
    documents = _without(_of(TEXT, TOOL, number=2), "output_item.done")
    out, said = rounds.drive(_merger(), [*_raws([spoken(TEXT)]), openai.named_sse(documents)])
    output = _documents(out)[-1]["response"]["output"]
    assert [item["type"] for item in output] == [MESSAGE, CALL]
    assert output[1]["arguments"] == TOOL[1] == said[1].calls[0].arguments


def test_a_tool_of_another_namespace_is_not_ours() -> None:
    def raw(namespace: str | None) -> bytes:
        documents = _of(OWN_CALL)
        for one in documents:
            if "item" in one:
                one["item"] = {**one["item"], "namespace": namespace}
        return openai.named_sse(documents)

    for namespace, own in ((None, 1), ("functions", 1), ("mcp__x", 0)):
        out, [said] = rounds.drive(_merger(), [raw(namespace)])
        assert len(said.own) == own
        assert (b"clock" in out) is not own or not own


def test_d14a_only_our_tools_are_withheld() -> None:
    merger = _merger()
    merger.begin_round()
    events = openai.responses_stream(spoken(OWN_CALL, TOOL), 1).split(b"\n\n")[:-1]
    out = [merger.feed(event + b"\n\n") for event in events]
    done = next(number for number, event in enumerate(events) if b'"output_index": 1' in event and b"output_item.done" in event)
    assert b'"output_index":0' in out[done]
    assert b"response.output_item.done" in out[done]
    assert b"clock" not in b"".join(out)


def test_ids_that_come_again_are_told_apart() -> None:
    """Some providers name the items of every answer alike."""
    first, second = _of(TEXT, TOOL), json.loads(json.dumps(_of(("text", "two"), TOOL)).replace("call_1", "call_2"))
    response = _told(rounds.drive(_merger(), [openai.named_sse(first), openai.named_sse(second)])[0])
    assert [item["id"] for item in response["output"]] == ["msg_1_0", "fc_1_1", "msg_1_0_2", "fc_1_1_2"]


# --- what the history needs -------------------------------------------------------------------------------------------


def _stored(documents: list[dict[str, Any]], store: bool | None) -> bytes:
    changed = json.loads(json.dumps(documents).replace('"store": true', f'"store": {json.dumps(store)}'))
    return openai.named_sse(changed)


@pytest.mark.parametrize("store, ids", [(True, True), (None, True), (False, False)])
def test_native_names_only_what_is_stored(store: bool | None, ids: bool) -> None:
    """An id that a provider would look for in vain makes it refuse the call; encrypted reasoning needs none."""
    merger = _merger()
    _, [said] = rounds.drive(merger, [_stored(_of(THOUGHT, SEARCH, TEXT, OWN_CALL, CUSTOM), store)])
    expected = openai.responses_items(spoken(THOUGHT, SEARCH, TEXT, OWN_CALL, CUSTOM), 1)
    if not ids:
        expected = [{name: value for name, value in item.items() if name != "id"} for item in expected]
    assert list(said.native) == expected


@pytest.mark.parametrize(
    "rest, store, kept",
    [({"encrypted_content": None}, False, False), ({"encrypted_content": None}, True, True), ({"encrypted_content": None, "content": [{"type": "reasoning_text", "text": "hm"}]}, False, True)],
)  # fmt: skip
def test_bare_reasoning_is_left_out_where_nothing_is_stored(rest: dict[str, Any], store: bool, kept: bool) -> None:
    whole = {**openai.responses_whole(spoken(THOUGHT, TEXT), 1), "store": store}
    whole["output"][0] |= {**rest, "status": None}
    _, [said] = rounds.drive(_merger(False), [rounds.dump(whole)])
    assert [item["type"] for item in said.native] == (["reasoning", MESSAGE] if kept else [MESSAGE])
    assert "status" not in said.native[0] or not kept
    assert None not in said.native[0].values()


def test_annotations_and_probabilities_stay_with_their_text() -> None:
    def raw(number: int, word: str) -> bytes:
        item = openai.responses_item(("text", word), number, 0)
        cite = {"type": "url_citation", "url": f"u{number}", "start_index": 0, "end_index": len(word)}
        item["content"][0] |= {"annotations": [cite], "logprobs": [{"token": word}]}
        documents = [*_of(number=number)[:2], *openai._item_documents(item, 0)]
        at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        place = next(place for place, one in enumerate(documents) if one["type"] == "response.output_text.done")
        documents.insert(
            place, {"type": "response.output_text.annotation.added", **at, "annotation_index": 0, "annotation": cite}
        )
        whole = {**openai.responses_whole(spoken(), number), "output": [item]}
        return openai.named_sse([*documents, {"type": "response.completed", "response": whole}])

    merger = _merger()
    out, said = rounds.drive(merger, [raw(1, "one"), raw(2, "twelve")])
    response = _told(out)
    [part] = response["output"][0]["content"]
    assert part["text"] == "one\n\ntwelve"
    assert [(cite["start_index"], cite["end_index"]) for cite in part["annotations"]] == [(0, 3), (5, 11)]
    assert part["logprobs"] == [{"token": "one"}, {"token": "twelve"}]
    added = [one for one in _documents(out) if one["type"] == "response.output_text.annotation.added"]
    assert [one["annotation_index"] for one in added] == [0, 1]
    assert [one["annotation"] for one in added] == part["annotations"]
    assert said[1].native[0]["content"][0]["annotations"][0]["start_index"] == 0  # type: ignore[index]


def test_the_phase_of_a_text_is_the_last_ones() -> None:
    def raw(number: int, phase: str) -> bytes:
        documents = _of(("text", "x"), number=number)
        for one in documents:
            if "item" in one:
                one["item"] = {**one["item"], "phase": phase}
        return openai.named_sse(documents)

    response = _told(rounds.drive(_merger(), [raw(1, "commentary"), raw(2, "final_answer")])[0])
    assert [item["phase"] for item in response["output"]] == ["final_answer"]


def test_parts_of_one_message() -> None:
    """Text, refusal, text: each keeps its place, and a later text goes on in the last."""
    item = openai.responses_item(("text", "a"), 1, 0)
    item["content"] += [
        {"type": "refusal", "refusal": "no"},
        {"type": "output_text", "text": "b", "annotations": [], "logprobs": []},
    ]
    documents = [*_of()[:2], *openai._item_documents(item, 0)]
    whole = {**openai.responses_whole(spoken(), 1), "output": [item]}
    raw = openai.named_sse([*documents, {"type": "response.completed", "response": whole}])
    assert rounds.drive(_merger(), [raw])[0] == raw
    response = _told(rounds.drive(_merger(), [raw, *_raws([spoken(), spoken(("text", "c"))])[1:]])[0])
    parts = [part.get("text", part.get("refusal")) for part in response["output"][0]["content"]]
    assert parts == ["a", "no", "b\n\nc"]


# --- live, and what goes wrong ----------------------------------------------------------------------------------------


def test_m34_live() -> None:
    """Each event leaves as it arrives; nothing but the end waits, and a later text goes on in the open part."""
    merger = _merger()
    merger.begin_round()
    first = [merger.feed(event + b"\n\n") for event in openai.responses_stream(spoken(TEXT), 1).split(b"\n\n")[:-1]]
    assert [bool(one) for one in first] == [False, False] + [True] * (len(first) - 6) + [False] * 4
    assert first[2].startswith(b"event: response.created")
    merger.end_round()
    merger.begin_round()
    events = openai.responses_stream(spoken(THOUGHT, ("text", "abcdefgh"), TOOL), 2).split(b"\n\n")[:-1]
    out = [_documents(merger.feed(event + b"\n\n")) for event in events]
    deltas = [one for documents in out for one in documents if one["type"] == "response.output_text.delta"]
    assert [one["delta"] for one in deltas] == ["\n\nabcd", "efgh"]
    assert {(one["item_id"], one["output_index"], one["content_index"]) for one in deltas} == {("msg_1_0", 0, 0)}
    starts = [documents for documents in out if any(one["type"] == "response.output_item.added" for one in documents)]
    assert [[one["type"].removeprefix("response.") for one in documents] for documents in starts] == [
        ["output_text.done", "content_part.done", "output_item.done", "output_item.added"]
    ]
    assert starts[0][0]["text"] == TEXT[1] + "\n\nabcdefgh"
    assert starts[0][-1]["output_index"] == 1


def test_m34_what_a_vendor_says_beside_a_later_text_stays() -> None:
    """OpenAI pads each delta (`obfuscation`)."""
    documents = _documents(openai.responses_stream(spoken(("text", "abcdefghijkl")), 2))
    padded = [{**one, "obfuscation": "xYz"} if "delta" in one else one for one in documents]
    out, _ = rounds.drive(_merger(), [*_raws([spoken(TEXT)]), openai.named_sse(padded)])
    assert openai.output_text(_told(out)) == TEXT[1] + "\n\nabcdefghijkl"
    later = [one for one in _documents(out) if "obfuscation" in one]
    assert [one["delta"] for one in later] == ["\n\nabcd", "efgh", "ijkl"]
    assert {(one["item_id"], one["output_index"], one["content_index"]) for one in later} == {("msg_1_0", 0, 0)}


def test_an_event_of_another_item_may_drive_out_what_closes_a_message() -> None:
    """A late event of a search passes; the message is closed then, and a later text begins another."""
    documents = _of(SEARCH, TEXT)
    late = next(one for one in documents if one["type"] == "response.web_search_call.completed")
    documents.remove(late)
    documents.insert(-1, late)
    raw = openai.named_sse(documents)
    assert rounds.drive(_merger(), [raw])[0] == raw
    out, _ = rounds.drive(_merger(), [raw, *_raws([spoken(), spoken(("text", "two"))])[1:]])
    response = openai.responses_accumulated(_documents(out))
    assert [item["type"] for item in response["output"]] == ["web_search_call", MESSAGE, MESSAGE]
    assert openai.output_text(response) == TEXT[1] + "\n\ntwo"


@pytest.mark.parametrize("way", rounds.WAYS)
def test_d18_a_broken_later_round_counts_for_nothing(way: str) -> None:
    given_ = [
        spoken(TEXT, output=3),
        spoken(THOUGHT, ending="cut"),
        spoken(THOUGHT, ending="error"),
        spoken(OWN_CALL, ending="cut"),
        spoken(("text", "two"), input=9, output=5),
    ]
    raws = _raws(given_)
    merger = _merger()
    raw, said = rounds.drive(merger, raws, rounds.WAYS[way])
    assert [one.complete for one in said] == [True, False, False, False, True]
    assert [one.error is not None for one in said] == [False, False, True, False, False]
    response = _told(raw)
    assert openai.output_text(response) == TEXT[1] + "\n\ntwo"
    assert (response["usage"]["output_tokens"], response["usage"]["input_tokens"]) == (8, 9)
    ended = _told(rounds.drive(_merger(), raws[:3], rounds.WAYS[way])[0])
    assert ended == _told(raws[0])


def test_d18_a_first_round_that_broke_before_its_content_leaves_nothing() -> None:
    merger = _merger()
    raws = _raws([spoken(ending="cut"), spoken(ending="error"), spoken(THOUGHT, TEXT)])
    assert rounds.drive(merger, raws)[0] == raws[2]
    assert merger.id == "resp_3"


@pytest.mark.parametrize("ending", ["cut", "error"])
@pytest.mark.parametrize("before", [0, 1])
def test_d18_a_visible_break_ends_in_an_error(ending: str, before: int) -> None:
    given_ = [*([spoken(TEXT)] * before), spoken(("text", "two"), ending=ending)]
    for end in ("fail", "finish"):
        if (end, ending, before) == ("finish", "error", 0):
            continue  # the provider's own
        merger = _merger()
        out, said = b"", None
        for raw in _raws(given_):
            more, said = rounds.feed_round(merger, raw)
            out += more
        assert said is not None
        assert not said.complete
        assert said.text == "two"
        out += merger.fail(502, "It broke.", "UPSTREAM_ERROR") if end == "fail" else b"".join(merger.finish())
        documents = _documents(out)
        assert [one["sequence_number"] for one in documents] == list(range(len(documents)))
        assert documents[-1]["type"] == "response.failed"
        assert documents[-1]["response"]["id"] == "resp_1"
        assert sum("completed" in one["type"] for one in documents) == 0
        assert b"".join(merger.finish()) == merger.keep_alive() == b""
        assert (merger.fail(500, "x", "x") == b"") is (end == "fail")


@pytest.mark.parametrize("kind", ["failed", "error", "bare"])
def test_h14_a_first_rounds_own_error_is_passed_on_as_it_is(kind: str) -> None:
    raw = openai.responses_stream(spoken(THOUGHT, TEXT, ending="error"), 1)
    if kind == "error":
        raw = (
            raw[: raw.index(b"event: response.failed")]
            + b'event: error\ndata: {"type": "error", "code": "server_error", "message": "Overloaded"}\n\n'
        )
    if kind == "bare":
        raw = (
            raw[: raw.index(b"event: response.failed")]
            + b'data: {"error": {"code": "server_error", "message": "Overloaded"}}\n\n'
        )
    for end in ("fail", "finish"):
        merger = _merger()
        out, said = rounds.feed_round(merger, raw)
        assert said.error is not None
        assert (said.error.status, said.error.message) == (500, "Overloaded")
        out += merger.fail(said.error.status, said.error.message, said.error.code) if end == "fail" else b"".join(merger.finish())
        assert out == raw


def test_cut_inside_an_event() -> None:
    raw = _PLAIN
    merger = _merger()
    out, said = rounds.feed_round(merger, raw[: raw.index(b'"status": "completed"') + 5])
    assert not said.complete
    assert _documents(out + merger.fail(502, "It broke.", "X"))[-1]["error"]["message"] == "It broke."


def test_keep_alive_at_any_moment() -> None:
    """Official helpers refuse events before response.created, and another id; numbers go on without a gap."""
    raws = _raws([spoken(THOUGHT, TEXT), spoken(OWN_CALL), spoken(("text", "two"), TOOL)])
    merger = _merger()
    out = [merger.keep_alive()]
    assert out[0].startswith(b": ")
    for raw in raws:
        merger.begin_round()
        for chunk in rounds.bytewise(raw):
            out += [merger.feed(chunk), merger.keep_alive()]
        merger.end_round()
        out.append(merger.keep_alive())
    out.append(b"".join(merger.finish()))
    events = [event for event in Events().feed(b"".join(out)) if event.data]
    streams.check_responses(events)
    documents = streams.documents_of(events)
    alive = [one for one in documents if one["type"] == "response.in_progress"]
    assert len(alive) > 1000
    assert {one["response"]["id"] for one in alive} == {"resp_1"}
    plain = rounds.drive(_merger(), raws)[0]
    assert openai.responses_accumulated(documents) == _told(plain)


def test_keep_alive_while_our_tool_runs_is_an_event() -> None:
    """Nothing has been shown yet, but Codex's timer has to be reset all the same."""
    merger = _merger()
    out, _ = rounds.feed_round(merger, openai.responses_stream(spoken(OWN_CALL), 1))
    events = [event.name for event in Events().feed(out + merger.keep_alive())]
    assert events == ["response.created", "response.in_progress", "response.in_progress"]


# --- begun by us ------------------------------------------------------------------------------------------------------


def _begun() -> tuple[Answer, bytes]:
    merger = _merger()
    return merger, merger.open(id="resp_ours", model="asked", created=7) + merger.keep_alive()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", rounds.WAYS)
def test_decision_22_an_answer_begun_by_us_goes_on_as_its_providers(case: str, way: str) -> None:
    """A provider's own beginning is swallowed; but for who it is, the client is told the same."""
    given_ = CASES[case][0]
    merger, begun = _begun()
    out, said = rounds.drive(merger, _raws(given_), rounds.WAYS[way])
    told, plain = _told(begun + out), rounds.drive(_merger(), _raws(given_))
    assert told == {**_told(plain[0]), "id": "resp_ours", "created_at": 7}
    assert [event.name for event in Events().feed(begun)] == ["response.created", "response.in_progress"]
    assert (out.count(b"response.created"), out.count(b"response.in_progress")) == (0, 0)
    assert [one.id for one in said] == [f"resp_{number}" for number in range(1, len(given_) + 1)]
    assert merger.id == "resp_ours"


def test_begun_by_us_and_kept_alive_at_any_moment() -> None:
    raws = _raws([spoken(THOUGHT, TEXT), spoken(OWN_CALL), spoken(("text", "two"), TOOL)])
    merger, begun = _begun()
    out = [begun]
    for raw in raws:
        merger.begin_round()
        for chunk in rounds.bytewise(raw):
            out += [merger.feed(chunk), merger.keep_alive()]
        merger.end_round()
        out.append(merger.keep_alive())
    told = _told(b"".join((*out, b"".join(merger.finish()))))
    assert told == {**_told(rounds.drive(_merger(), raws)[0]), "id": "resp_ours", "created_at": 7}


def test_begun_by_us_before_a_provider_that_gives_no_numbers() -> None:
    documents = [{name: value for name, value in one.items() if name != "sequence_number"} for one in _of(TEXT, TOOL)]
    merger, begun = _begun()
    out, _ = rounds.drive(merger, [openai.named_sse(documents)])
    assert [item["type"] for item in _told(begun + out)["output"]] == [MESSAGE, CALL]


@pytest.mark.parametrize("share", [None, 0.3, 0.7])
def test_begun_by_us_and_then_an_error(share: float | None) -> None:
    merger, begun = _begun()
    if share is not None:
        begun += rounds.feed_round(merger, _PLAIN[: int(len(_PLAIN) * share)])[0]
    documents = _documents(begun + merger.fail(502, "It broke.", "UPSTREAM_ERROR"))
    assert [one["sequence_number"] for one in documents] == list(range(len(documents)))
    assert documents[-1]["type"] == "response.failed"
    assert {one["response"]["id"] for one in documents if "response" in one} == {"resp_ours"}
    assert merger.keep_alive() == b""


def test_a_long_text_is_held_however_long() -> None:
    raw = openai.responses_stream(spoken(("text", "word " * 50_000)), 1)
    assert rounds.drive(_merger(), [raw])[0] == raw


def test_noise_is_bounded() -> None:
    merger = _merger()
    merger.begin_round()
    cut = _PLAIN.index(b"event: response.completed")
    out = merger.feed(_PLAIN[:cut])
    noise = b": wait, wait, wait, wait, wait\n\n" * 50_000
    out += b"".join(merger.feed(noise[place : place + 8000]) for place in range(0, len(noise), 8000))
    assert len(out) > len(noise) - (1 << 20) - 10_000
    out += merger.feed(_PLAIN[cut:])
    merger.end_round()
    assert (
        openai.output_text(_told(b"".join(event.raw for event in Events().feed(out + b"".join(merger.finish())) if event.data)))
        == TEXT[1]
    )


def test_long_answers_cost_little() -> None:
    """Memory follows the text, not the events."""
    merger = _merger()
    documents = openai.responses_documents(spoken(("text", "word ")), 1)
    merger.begin_round()
    merger.feed(openai.named_sse(documents[:4]))
    delta = openai.named_sse([documents[4]])
    tracemalloc.start()
    for _ in range(100):
        merger.feed(delta * 500)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000, "50,000 events, 10 MB on the wire, 200 KB of text"


GARBAGE = [
    b"data: " + b"x" * (17 << 20),
    b"\x00\xff\n\n",
    b"data: []\n\n",
    b"data: {}\n\n",
    b'data: {"type": ["x"]}\n\n',
    b'data: {"type": "response.output_item.added", "item": 5}\n\n',
    b'data: {"type": "response.output_item.done", "output_index": "x", "item": {"type": 5, "content": 7}}\n\n',
    b'data: {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": 5}\n\n',
    b'data: {"type": "response.output_item.added", "output_index": [1], "item": {"type": "message"}}\n\n',
    b'data: {"type": "response.content_part.done", "output_index": 0, "content_index": {}, "part": {"type": []}}\n\n',
    b'data: {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": 5, "annotation_index": "x"}\n\n',
    b'data: {"type": "response.completed", "response": 5}\n\n',
    b'data: {"type": "response.completed", "sequence_number": "x", "response": {"output": [1, {"type": 5}, {"type": "message", "role": 5, "content": 5}, {"type": "function_call", "name": 5, "arguments": 5}], "usage": [], "status": 5}}\n\n',
    b'data: {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call"}}\n\ndata: {"type": "response.completed"}\n\n',
]  # fmt: skip


@pytest.mark.parametrize("raw", GARBAGE)
def test_garbage_never_raises(raw: bytes) -> None:
    for before in ([], _raws([spoken(TEXT)])):
        merger = _merger()
        _, said = rounds.drive(merger, [*before, raw, *_raws([spoken(OWN_CALL, TEXT)])])
        assert said[len(before)].text == ""
        assert isinstance(merger.id, str)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"object": "response", "status": "completed", "output": 5}', b'{"object": "response", "output": [1, {"type": 5}, {"type": "message", "content": [5, {"type": []}]}], "usage": 1, "status": []}'])  # fmt: skip
def test_garbage_in_json_never_raises(raw: bytes) -> None:
    """What can be read at all passes; what is no answer ends in an error of the client's dialect."""
    merger = _merger(False)
    out, said = rounds.drive(merger, [raw])
    assert out == raw if said[0].complete else json.loads(out)["error"]["message"]
    assert said[0].complete is (b"message" in raw)
    assert said[0].text == ""
    rounds.drive(merger, [raw, *_raws([spoken(TEXT)], stream=False)])
    assert isinstance(merger.id, str)


@pytest.mark.parametrize("ending", ["cut", "error"])
def test_json_that_is_no_answer(ending: str) -> None:
    merger = _merger(stream=False)
    raws = _raws([spoken(TEXT), spoken(TEXT, ending=ending)], stream=False)
    out, said = rounds.drive(merger, raws)
    assert said[1].error is not None
    assert not said[1].complete
    assert out == raws[0]
    assert json.loads(merger.fail(400, "no", "NO"))["error"]["message"] == "no"
    assert json.loads(merger.keep_alive() + out) == json.loads(raws[0])


@given(rounds.random_rounds(), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_m34_any_rounds(given_: list[Spoken], seed: int) -> None:
    merger, whole = _merger(), _merger(stream=False)
    raws = _raws(given_)
    raw, said = rounds.drive(merger, raws, rounds.randomly(seed))
    assert raw == rounds.drive(_merger(), raws)[0]
    response = _told(raw)
    assert openai.output_text(response) == _text(given_)
    assert b'"clock"' not in raw
    out, said_whole = rounds.drive(whole, _raws(given_, stream=False))
    assert json.loads(out) == response
    assert said == said_whole
    if len(given_) == 1 and not said[0].own:
        assert raw == raws[0]


@given(rounds.random_rounds(most=2), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_events_in_any_order(given_: list[Spoken], chance: random.Random, wait: bool) -> None:
    """Lost, repeated and swapped events: whatever leaves has one start, one end, and numbers without a gap."""
    merger, out, owns = _merger(), [], False
    for number, round_ in enumerate(given_, 1):
        documents = openai.responses_documents(round_, number)
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(documents))
            match chance.randrange(3):
                case 0:
                    del documents[place]
                case 1:
                    documents.insert(place, documents[place])
                case _:
                    documents.insert(chance.randrange(len(documents)), documents.pop(place))
            documents = documents or openai.responses_documents(round_, number)
        raw = openai.named_sse(documents)
        more, said = rounds.feed_round(merger, raw)
        out.append(more + (merger.keep_alive() if wait else b""))
        if not said.complete:
            out.append(merger.fail(502, "It broke.", "X"))
            break
        owns = owns or bool(said.own)
        if len(given_) == 1 and not said.own and not wait:
            end = (
                next(place for place, one in enumerate(documents) if one["type"] in ("response.completed", "response.incomplete"))
                + 1
            )
            whole = more + b"".join(merger.finish())
            assert whole.startswith(openai.named_sse(documents[:end])), "nothing is read behind the end"
            assert whole == raw or end < len(documents)
            return
    out.append(b"".join(merger.finish()))
    told = [one for one in _documents(b"".join(out)) if one["type"] != "response.in_progress"]
    if owns or wait or len(given_) > 1:
        numbers = [one["sequence_number"] for one in _documents(b"".join(out))]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    kinds = [one["type"] for one in told]
    assert len({one["response"]["id"] for one in told if "response" in one}) == 1
    assert sum(kind in ("response.completed", "response.failed") for kind in kinds) == 1
    assert kinds[-1] in ("response.completed", "response.failed")
