# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import copy
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

CHAT = Endpoint(Dialect.CHAT)


def _merger(stream: bool = True, *, include_usage: bool = True) -> Answer:
    return answer_for(CHAT, stream=stream, own_tools=OWN, include_usage=include_usage)


def _raws(given_: list[Spoken], *, stream: bool = True) -> list[bytes]:
    write = openai.chat_stream if stream else openai.chat_json
    return [write(round_, number) for number, round_ in enumerate(given_, 1)]


def _documents(raw: bytes) -> list[dict[str, Any]]:
    return streams.documents_of(Events().feed(raw))


TEXT, THOUGHT = ("text", "Grüße, 世界 😀 one"), ("thinking", "let me see")
OWN_CALL, TOOL = ("own", '{"action": "now"}'), ("tool", '{"cmd": "ls -la"}')

CASES: dict[str, tuple[list[Spoken], str]] = {
    # rounds, finish_reason
    "text+text": ([spoken(TEXT, input=100, output=3), spoken(("text", "two"), input=120, output=5)], "stop"),
    "four texts": ([spoken(("text", word)) for word in ("a", "b b", "c\n", "d")], "stop"),
    "one, with own": ([spoken(TEXT, OWN_CALL)], "stop"),
    "text, own, text in one": ([spoken(TEXT, OWN_CALL, ("text", "behind"))], "stop"),
    "own between rounds": ([spoken(TEXT, OWN_CALL), spoken(("text", "it is noon"))], "stop"),
    "only own, then text": ([spoken(OWN_CALL), spoken(("text", "it is noon"))], "stop"),
    "reasoning, own, reasoning": ([spoken(THOUGHT, OWN_CALL), spoken(THOUGHT, TEXT)], "stop"),
    "reasoning+text twice": ([spoken(THOUGHT, TEXT), spoken(THOUGHT, ("text", "two"))], "stop"),
    "tool in round 2": ([spoken(TEXT), spoken(("text", "now"), TOOL)], "tool_calls"),
    "only a tool in round 2": ([spoken(TEXT), spoken(TOOL)], "tool_calls"),
    "own and tool in round 1": ([spoken(TEXT, OWN_CALL, TOOL)], "tool_calls"),
    "tool, own, tool": ([spoken(TOOL, OWN_CALL, TOOL)], "tool_calls"),
    "own, reasoning, tool in round 2": ([spoken(TEXT), spoken(OWN_CALL, THOUGHT, TOOL)], "tool_calls"),
    "tools of two rounds": ([spoken(TEXT, TOOL), spoken(TOOL, OWN_CALL, TOOL)], "tool_calls"),
    "empty second round": ([spoken(TEXT), spoken()], "stop"),
    "empty first round": ([spoken(), spoken(TEXT)], "stop"),
    "all empty": ([spoken(), spoken()], "stop"),
    "length at the end": ([spoken(TEXT), spoken(("text", "cut"), finish="length")], "length"),
    "length in the middle": ([spoken(TEXT, finish="length"), spoken(("text", "on"))], "stop"),
    "content_filter": ([spoken(TEXT), spoken(finish="content_filter")], "content_filter"),
    "a last own call": ([spoken(TEXT), spoken(OWN_CALL)], "stop"),
    "reason says stop": ([spoken(TEXT), spoken(TOOL, finish="stop")], "tool_calls"),
    "two own at once": ([spoken(OWN_CALL, OWN_CALL), spoken(TEXT)], "stop"),
}  # fmt: skip


def _expected(given_: list[Spoken]) -> dict[str, Any]:
    """The client's message, from the rounds alone."""
    thought = "".join(text for kind, text in given_[0].parts if kind == "thinking")
    calls = [
        call for number, round_ in enumerate(given_, 1) for call in openai.chat_message(round_, number).get("tool_calls", [])
    ]
    calls = [call for call in calls if call["function"]["name"] not in OWN]
    text = "\n\n".join(filter(None, (round_.text for round_ in given_)))
    return {"content": text, "reasoning_content": thought or None, "tool_calls": calls}


def _seen(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": message.get("content") or "",
        "reasoning_content": message.get("reasoning_content"),
        "tool_calls": message.get("tool_calls", []),
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", rounds.WAYS)
def test_m34_one_well_formed_stream(case: str, way: str) -> None:
    given_, finish = CASES[case]
    merger = _merger()
    raw, said = rounds.drive(merger, _raws(given_), rounds.WAYS[way])
    events = Events().feed(raw)
    streams.check_chat(events, usage=True)
    documents = streams.documents_of(events)
    answer = openai.chat_accumulated(documents)
    assert _seen(answer["message"]) == _expected(given_)
    assert answer["message"]["role"] == "assistant"
    assert answer["finish_reason"] == finish
    assert {(one["id"], one["created"], one["model"]) for one in documents} == {("chatcmpl-1", openai.CREATED + 1, "m-1")}
    assert sum("role" in choice["delta"] for one in documents for choice in one["choices"]) == 1
    assert [one.complete for one in said] == [True] * len(given_)
    assert rounds.is_known_again(Dialect.CHAT, said, [answer["message"]])


@pytest.mark.parametrize("case", CASES)
def test_m35_stream_and_json_say_the_same(case: str) -> None:
    given_, finish = CASES[case]
    streaming, whole = _merger(), _merger(stream=False)
    raw, said = rounds.drive(streaming, _raws(given_))
    out, said_whole = rounds.drive(whole, _raws(given_, stream=False))
    answer, merged = openai.chat_accumulated(_documents(raw)), json.loads(out)
    [choice] = merged["choices"]
    assert _seen(choice["message"]) == _seen(answer["message"])
    assert choice["finish_reason"] == finish
    assert (merged["id"], merged["created"], merged["model"]) == ("chatcmpl-1", openai.CREATED + 1, "m-1")
    assert merged["usage"] == answer["usage"]
    output = sum(round_.output for round_ in given_)
    assert merged["usage"] == {
        "prompt_tokens": given_[-1].input,
        "completion_tokens": output,
        "total_tokens": given_[-1].input + output,
        "prompt_tokens_details": {"cached_tokens": 7},
        "completion_tokens_details": {"reasoning_tokens": 2 * len(given_)},
    }
    assert said == said_whole


@pytest.mark.parametrize("case", CASES)
def test_said(case: str) -> None:
    """Each round's `native` is what the model said, our calls and its reasoning included."""
    given_, _ = CASES[case]
    _, said = rounds.drive(_merger(), _raws(given_))
    for number, (round_, one) in enumerate(zip(given_, said, strict=True), 1):
        expected = openai.chat_message(round_, number)
        assert one.native == ((expected,) if round_.text or round_.has_calls else ())
        assert one.text == round_.text
        assert [call.name for call in one.own] == ["clock" for kind, _ in round_.parts if kind == "own"]
        assert [call.arguments for call in one.calls] == [text for kind, text in round_.parts if kind in ("own", "tool")]
        assert (one.id, one.error) == (f"chatcmpl-{number}", None)
        assert one.usage == Usage(round_.input, round_.output)


@pytest.mark.parametrize(
    "parts, word, expected",
    [((TEXT,), "stop", "stop"), ((TEXT,), "length", "length"), ((TEXT,), "content_filter", "content_filter"), ((OWN_CALL,), "tool_calls", "tool_calls"), ((TOOL,), "stop", "tool_calls"), ((TEXT,), "tool_calls", "stop"), ((TEXT,), "insufficient_system_resource", "error")],
)  # fmt: skip
def test_m02_m03_said_finish(parts: Any, word: str, expected: str) -> None:
    for stream in (True, False):
        _, [said] = rounds.drive(_merger(stream), _raws([spoken(*parts, finish=word)], stream=stream))
        assert said.finish == expected


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", ["text", "reasoning", "tools", "empty", "length"])
def test_one_round_is_its_own_bytes(case: str, stream: bool, way: str) -> None:
    given_ = {
        "text": spoken(TEXT),
        "reasoning": spoken(THOUGHT, TEXT),
        "tools": spoken(THOUGHT, TEXT, TOOL, TOOL),
        "empty": spoken(),
        "length": spoken(TEXT, finish="length"),
    }[case]
    raw = _raws([given_], stream=stream)[0]
    merger = _merger(stream)
    assert rounds.drive(merger, [raw], rounds.WAYS[way])[0] == raw


# --- what providers send as well --------------------------------------------------------------------------------------


def _chunks(*deltas: dict[str, Any], finish: str = "stop", number: int = 1) -> list[dict[str, Any]]:
    return [*(openai.chat_chunk(number, delta) for delta in deltas), openai.chat_chunk(number, {}, finish)]


def _call(index: int | None, id: str, name: str, arguments: str) -> dict[str, Any]:
    at = {} if index is None else {"index": index}
    return {**at, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


ROLE = {"role": "assistant", "content": ""}
_LAST = openai.chat_chunk(1, {"content": " one"}, "stop")
_SECOND_CHOICE = {"index": 1, "delta": {"role": "assistant", "content": "other"}, "finish_reason": None}

ODD: dict[str, tuple[bytes, str]] = {
    # one round's bytes, its text
    "crlf": (openai.chat_stream(spoken(THOUGHT, TEXT), 1).replace(b"\n", b"\r\n"), TEXT[1]),
    "openrouter's comments": (b": OPENROUTER PROCESSING\n\n" * 3 + openai.chat_stream(spoken(TEXT), 1).replace(b"\n\n", b"\n\n: OPENROUTER PROCESSING\n\n"), TEXT[1]),
    "bom and comments": (b"\xef\xbb\xbf: hello\n\n" + openai.chat_stream(spoken(TEXT), 1), TEXT[1]),
    "no [DONE]": (openai.sse(list(openai.chat_documents(spoken(TEXT), 1)), done=False), TEXT[1]),
    "no finish reason": (openai.sse([openai.chat_chunk(1, ROLE), openai.chat_chunk(1, {"content": "one"})]), "one"),
    "no last blank line": (openai.chat_stream(spoken(TEXT), 1)[:-1], TEXT[1]),
    "no end of line": (openai.sse(_chunks(ROLE, {"content": "one"}), done=False)[:-2], "one"),
    "cut behind the end": (openai.chat_stream(spoken(TEXT), 1)[:-8], TEXT[1]),
    "content beside the reason": (openai.sse([openai.chat_chunk(1, {**ROLE, "content": "all"}), {**_LAST, "usage": openai.chat_usage(spoken())}]), "all one"),
    "everything in one chunk": (openai.sse([openai.chat_chunk(1, {"role": "assistant", "content": "one"}, "stop")]), "one"),
    "usage beside the reason": (openai.sse([openai.chat_chunk(1, ROLE), openai.chat_chunk(1, {"content": "one"}), openai.chat_chunk(1, {}, "stop", usage=openai.chat_usage(spoken()))]), "one"),
    "usage in every chunk": (openai.sse([openai.chat_chunk(1, ROLE, usage=openai.chat_usage(spoken())), openai.chat_chunk(1, {"content": "one"}, usage=openai.chat_usage(spoken())), openai.chat_chunk(1, {}, "stop", usage=openai.chat_usage(spoken()))]), "one"),
    "reason told twice": (openai.sse([*_chunks(ROLE, {"content": "one"}), openai.chat_chunk(1, {"content": ""}, "stop", usage=openai.chat_usage(spoken()))]), "one"),
    "content behind the reason": (openai.sse([*_chunks(ROLE, {"content": "one"}), openai.chat_chunk(1, {"content": " and"})]), "one and"),
    "empty reasons": (openai.sse([openai.chat_chunk(1, ROLE, ""), openai.chat_chunk(1, {"content": "one"}, ""), openai.chat_chunk(1, {}, "stop")]), "one"),
    "role in every chunk": (openai.sse(_chunks(ROLE, {"role": "assistant", "content": "one"}, {"role": "assistant", "content": " two"})), "one two"),
    "azure's first chunk": (openai.sse([{"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": [{}]}, *_chunks(ROLE, {"content": "one"})]), "one"),
    "two choices": (openai.sse([openai.chat_chunk(1, ROLE), {**openai.chat_chunk(1, {}), "choices": [_SECOND_CHOICE]}, *_chunks({"content": "one"}), {**openai.chat_chunk(1, {}), "choices": [{**_SECOND_CHOICE, "delta": {}, "finish_reason": "stop"}]}]), "one"),
    "two choices in a chunk": (openai.sse([{**openai.chat_chunk(1, {}), "choices": [{"index": 0, "delta": {"role": "assistant", "content": "one"}}, _SECOND_CHOICE]}, {**openai.chat_chunk(1, {}), "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}, {**_SECOND_CHOICE, "delta": {"content": "!"}, "finish_reason": "stop"}]}]), "one"),
    "not JSON": (openai.chat_stream(spoken(TEXT), 1).replace(b"data: [DONE]", b"data: hello\n\ndata: [DONE]"), TEXT[1]),
    "message beside the delta": (openai.sse([{**one, "choices": [{**choice, "message": {"role": "assistant", "content": "one"}} for choice in one["choices"]]} for one in _chunks(ROLE, {"content": "one"})]), "one"),
    "content in parts": (openai.sse(_chunks(ROLE, {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, {"content": [{"type": "text", "text": "o"}]}, {"content": "ne"})), "one"),
    "pretty": (b"".join(b"".join(b"data: " + line + b"\n" for line in json.dumps(one, indent=1).encode().split(b"\n")) + b"\n" for one in _chunks(ROLE, {"content": "one"})), "one"),
}  # fmt: skip


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_round_is_its_own_bytes(case: str, way: str) -> None:
    raw, text = ODD[case]
    out, [said] = rounds.drive(_merger(), [raw], rounds.WAYS[way])
    assert out == _ended(case, raw)
    assert said.complete
    assert said.text == text


def _ended(case: str, raw: bytes) -> bytes:
    """Decision 17: the reason has come, so the answer is over, and the end that is missing behind it is written."""
    end = b"data: [DONE]\n\n"
    match case:
        case "no [DONE]" | "pretty":
            return raw + end
        case "no end of line":
            return raw + b"\n\n" + end
        case "cut behind the end":
            return raw[: raw.rindex(b"data:")] + end
        case _:
            return raw


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_first_round_goes_on(case: str, way: str) -> None:
    raw, text = ODD[case]
    out, _ = rounds.drive(_merger(), [raw, openai.chat_stream(spoken(("text", "two")), 2)], rounds.WAYS[way])
    _check_odd(out, f"{text}\n\ntwo", azure="azure" in case, every_usage="every" in case)


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("case", ODD)
def test_an_odd_second_round_is_merged(case: str, way: str) -> None:
    raw, text = ODD[case]
    out, _ = rounds.drive(_merger(), [openai.chat_stream(spoken(("text", "zero")), 1), raw], rounds.WAYS[way])
    _check_odd(out, f"zero\n\n{text}")
    assert b"\xef\xbb\xbf" not in out
    assert b"other" not in out, "choices beyond the first are never continued"


def _check_odd(out: bytes, text: str, *, azure: bool = False, every_usage: bool = False) -> None:
    events = [event for event in Events().feed(out) if event.data and event.data != b"hello"]
    assert events[-1].data == b"[DONE]"
    documents = streams.documents_of(events)[azure:]
    assert {one["id"] for one in documents} == {"chatcmpl-1"}
    firsts = [choice for one in documents for choice in one["choices"] if choice["index"] == 0]
    told = openai.chat_accumulated(documents)
    assert told["message"]["content"] == text
    reasons = [choice.get("finish_reason") for choice in firsts]
    assert reasons[-1] == "stop"
    assert not any(reasons[:-1])
    assert told["message"]["role"].startswith("assistant")
    if not every_usage:
        assert len([one for one in documents if one.get("usage")]) <= 1


def test_m07_choices_beyond_the_first_pass_and_are_never_continued() -> None:
    first = ODD["two choices"][0]
    second = openai.sse(
        [
            {**one, "choices": [*one["choices"], {**_SECOND_CHOICE, "delta": {"content": "never"}}]}
            for one in _chunks({"content": "two"}, number=2)
        ]
    )
    out, _ = rounds.drive(_merger(), [first, second])
    others = [choice for one in _documents(out) for choice in one["choices"] if choice["index"] == 1]
    assert [choice["delta"].get("content") for choice in others] == ["other", None]
    assert [choice["finish_reason"] for choice in others] == [None, "stop"]


def test_m07_whole() -> None:
    def answer(number: int, *texts: str) -> bytes:
        choices = [
            {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for index, text in enumerate(texts)
        ]
        return json.dumps({"id": f"c{number}", "choices": choices}).encode()

    out, _ = rounds.drive(_merger(False), [answer(1, "a", "b"), answer(2, "c", "d")])
    assert [choice["message"]["content"] for choice in json.loads(out)["choices"]] == ["a\n\nc", "b"]
    assert json.loads(out)["id"] == "c1"


# --- tool calls -------------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, str]], list[str]]] = {
    # deltas of one round, its calls, the ids that the client gets
    "interleaved": (
        [{"tool_calls": [_call(0, "a", "exec_command", "")]}, {"tool_calls": [_call(1, "b", "clock", "")]}, {"tool_calls": [_call(2, "c", "exec_command", "")]}, {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}, {"tool_calls": [{"index": 2, "function": {"arguments": "{2}"}}]}, {"tool_calls": [{"index": 0, "function": {"arguments": "{0}"}}]}],
        [("a", "exec_command", "{0}"), ("b", "clock", "{}"), ("c", "exec_command", "{2}")], ["a", "c"]),
    "several in a chunk": ([{"tool_calls": [_call(0, "a", "clock", "{}"), _call(1, "b", "exec_command", "{1}"), _call(2, "c", "lookup", "{2}")]}], [("a", "clock", "{}"), ("b", "exec_command", "{1}"), ("c", "lookup", "{2}")], ["b"]),
    "beside the role": ([{"role": "assistant", "content": None, "tool_calls": [_call(0, "a", "clock", "{}")]}], [("a", "clock", "{}")], []),
    "beside text": ([{"content": "so", "tool_calls": [_call(0, "a", "clock", "{}")]}], [("a", "clock", "{}")], []),
    "without an index": ([{"tool_calls": [_call(None, "a", "clock", "{}")]}, {"tool_calls": [_call(None, "b", "exec_command", "{1}")]}], [("a", "clock", "{}"), ("b", "exec_command", "{1}")], ["b"]),
    "all at index 0": ([{"tool_calls": [_call(0, "a", "exec_command", "{0}")]}, {"tool_calls": [_call(0, "b", "clock", "{}")]}, {"tool_calls": [_call(0, "c", "exec_command", "{2}")]}], [("a", "exec_command", "{0}"), ("b", "clock", "{}"), ("c", "exec_command", "{2}")], ["a", "c"]),
    "name comes late": ([{"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "", "arguments": ""}}]}, {"tool_calls": [{"index": 0, "function": {"name": "clock"}}]}, {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}], [("a", "clock", "{}")], []),
    "a client's name comes late": ([{"content": "so"}, {"tool_calls": [{"index": 0, "id": "a", "type": "function"}]}, {"tool_calls": [_call(1, "b", "clock", "{}")]}, {"tool_calls": [{"index": 0, "function": {"name": "exec_command", "arguments": "{0}"}}]}], [("a", "exec_command", "{0}"), ("b", "clock", "{}")], ["a"]),
    "name and id repeated": ([{"tool_calls": [_call(0, "a", "exec_command", "{")]}, {"tool_calls": [_call(0, "a", "exec_command", "}")]}], [("a", "exec_command", "{}")], ["a"]),
    "arguments as an object": ([{"tool_calls": [{**_call(0, "a", "clock", ""), "function": {"name": "clock", "arguments": {"a": 1}}}]}], [("a", "clock", '{"a":1}')], []),
    "the reason beside it": ([{"tool_calls": [_call(0, "a", "clock", "{}"), _call(1, "b", "exec_command", "{}")]}], [("a", "clock", "{}"), ("b", "exec_command", "{}")], ["b"]),
}  # fmt: skip


@pytest.mark.parametrize("way", rounds.WAYS)
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("case", CALLS)
def test_d14a_tool_calls(case: str, before: int, way: str) -> None:
    deltas, calls, shown = CALLS[case]
    documents = _chunks(*(deltas if "role" in deltas[0] else [ROLE, *deltas]), finish="tool_calls", number=before + 1)
    if case == "the reason beside it":
        documents[-2]["choices"][0]["finish_reason"] = "tool_calls"
    raws = [*([openai.chat_stream(spoken(("text", "zero")), 1)] * before), openai.sse(documents)]
    merger = _merger()
    out, said = rounds.drive(merger, raws, rounds.WAYS[way])
    assert [(call.id, call.name, call.arguments) for call in said[-1].calls] == calls
    assert list(said[-1].own) == [call for call in said[-1].calls if call.name in OWN]
    written = [call["id"] for call in said[-1].native[0]["tool_calls"]]  # type: ignore[index,union-attr]
    assert written == [id for id, _, _ in calls]
    events = Events().feed(out)
    streams.check_chat(events, usage=bool(before))
    if case == "a client's name comes late":  # its provider's own chunks, once the name has come
        assert b'"id": "a"' in out or b'"id":"a"' in out
        assert b"{0}" in out
    elif case != "name and id repeated" and not (case == "all at index 0" and not before):
        told = openai.chat_accumulated(_named_first(streams.documents_of(events)))
        seen = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in told["message"].get("tool_calls", [])
        ]
        assert seen == [call for call in calls if call[0] in shown]
        assert told["finish_reason"] == ("tool_calls" if shown else "stop")
    assert b"clock" not in out


def _named_first(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of a call whose name came late, as one."""
    for one in documents:
        for choice in one["choices"]:
            entries = choice["delta"].get("tool_calls", [])
            if len(entries) == 2 and entries[0]["index"] == entries[1]["index"]:
                choice["delta"]["tool_calls"] = [{**entries[0], **entries[1]}]
    return documents


@pytest.mark.parametrize("name, shown", [("clock", False), ("exec_command", True)])
@pytest.mark.parametrize("before", [0, 1])
def test_the_old_kind_of_call(name: str, shown: bool, before: int) -> None:
    deltas = [
        {"function_call": {"name": name, "arguments": ""}},
        {"function_call": {"arguments": '{"a"'}},
        {"function_call": {"arguments": ":1}"}},
    ]
    raw = openai.sse(_chunks(ROLE, *deltas, finish="function_call", number=before + 1))
    out, said = rounds.drive(_merger(), [*([openai.chat_stream(spoken(("text", "zero")), 1)] * before), raw])
    assert said[-1].calls == (ToolCall("", name, '{"a":1}'),)
    assert said[-1].own == (() if shown else said[-1].calls)
    assert said[-1].native == ({"role": "assistant", "content": None, "function_call": {"name": name, "arguments": '{"a":1}'}},)
    documents = _documents(out)
    told = "".join(
        choice["delta"].get("function_call", {}).get("arguments", "") for one in documents for choice in one["choices"]
    )
    assert told == ('{"a":1}' if shown else "")
    assert openai.chat_accumulated(documents)["finish_reason"] == ("function_call" if shown else "stop")


def test_a_custom_tool_is_read_like_in_a_history() -> None:
    begun = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "exec_command", "input": ""}}
    raw = openai.sse(
        _chunks(ROLE, {"tool_calls": [begun]}, {"tool_calls": [{"index": 0, "custom": {"input": "ls\n"}}]}, finish="tool_calls")
    )
    out, [said] = rounds.drive(_merger(), [raw])
    assert out == raw
    assert said.calls == (ToolCall("a", "exec_command", '{"input":"ls\\n"}'),)
    assert said.native[0]["tool_calls"] == [{"id": "a", "type": "custom", "custom": {"name": "exec_command", "input": "ls\n"}}]


def test_a_call_without_a_name_is_the_clients() -> None:
    raw = openai.sse(
        _chunks(ROLE, {"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]}, finish="tool_calls")
    )
    assert rounds.drive(_merger(), [raw])[0] == raw
    for given_ in ([raw, openai.chat_stream(spoken(TEXT), 2)], [openai.chat_stream(spoken(TEXT), 1), raw]):
        out, _ = rounds.drive(_merger(), given_)
        entries = [
            entry for one in _documents(out) for choice in one["choices"] for entry in choice["delta"].get("tool_calls", [])
        ]
        assert entries == [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]


# --- what the history needs -------------------------------------------------------------------------------------------


def test_native_keeps_what_is_not_known() -> None:
    """Signed reasoning in one piece, unknown fields, Gemini's signatures on calls; a sound only by its id."""
    details = [
        {"type": "reasoning.text", "text": "a", "index": 0, "format": "x", "signature": None},
        {"type": "reasoning.text", "text": "b", "index": 0},
        {"type": "reasoning.text", "signature": "sig", "index": 0},
        {"type": "reasoning.encrypted", "data": "AAA", "index": 1},
        {"type": "reasoning.encrypted", "data": "BBB", "index": 1},
    ]
    signed = {**_call(0, "a", "clock", "{}"), "extra_content": {"google": {"thought_signature": "s"}}}
    raw = openai.sse(_chunks(
        ROLE, *({"reasoning_details": [one]} for one in details), {"reasoning": "a"}, {"reasoning": "b"}, {"content": "yes", "refusal": None},
        {"annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}]}, {"vendor": {"x": 1}}, {"vendor": {"y": 2}}, {"number": 3},
        {"audio": {"id": "audio_1", "data": "AAAA"}}, {"tool_calls": [signed]}, finish="tool_calls"))  # fmt: skip
    _, [said] = rounds.drive(_merger(), [raw])
    assert said.native == (
        {
            "role": "assistant",
            "content": "yes",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "ab", "index": 0, "format": "x", "signature": "sig"},
                {"type": "reasoning.encrypted", "data": "AAA", "index": 1},
                {"type": "reasoning.encrypted", "data": "BBB", "index": 1},
            ],
            "reasoning": "ab",
            "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}],
            "vendor": {"x": 1, "y": 2},
            "number": 3,
            "audio": {"id": "audio_1"},
            "tool_calls": [{name: value for name, value in signed.items() if name != "index"}],
        },
    )


def test_a_later_rounds_reasoning_is_hidden_and_kept() -> None:
    hidden = [
        {"reasoning_content": "r1"},
        {"reasoning": "r2"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "r3", "index": 0}]},
        {"thinking_blocks": [{"thinking": "r4"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r5"}]}]},
    ]
    raw = openai.sse(_chunks(ROLE, *hidden, {"content": "two"}, {"annotations": [{"url": "u"}]}, number=2))
    merger = _merger()
    out, said = rounds.drive(merger, [openai.chat_stream(spoken(THOUGHT, TEXT), 1), raw])
    for word in (b"r1", b"r2", b"r3", b"r4", b"r5"):
        assert word not in out
        assert word.decode() in json.dumps(said[1].native)
    assert b'"url":"u"' in out


def test_a_refusal_is_no_plain_stop() -> None:
    raw = openai.sse(_chunks({"role": "assistant", "refusal": "I can't"}, {"refusal": " do that"}))
    _, [said] = rounds.drive(_merger(), [raw])
    assert (said.text, said.finish) == ("I can't do that", "content_filter")
    assert said.native == ({"role": "assistant", "content": None, "refusal": "I can't do that"},)


def test_refusals_of_two_rounds() -> None:
    answers = [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": None, "refusal": word}, "finish_reason": "stop"}]}
        for word in ("a", "b")
    ]
    out, _ = rounds.drive(_merger(False), [rounds.dump(one) for one in answers])
    assert json.loads(out)["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": "a\n\nb"}


def test_usage_inside_the_choice() -> None:
    """Moonshot tells it there."""
    raws = []
    for number in (1, 2):
        documents = _chunks(ROLE, {"content": "x"}, number=number)
        documents[-1]["choices"][0]["usage"] = openai.chat_usage(spoken(input=number, output=10))
        raws.append(openai.sse(documents))
    assert rounds.drive(_merger(), raws[:1])[0] == raws[0]
    out, said = rounds.drive(_merger(), raws)
    assert [one.usage for one in said] == [Usage(1, 10), Usage(2, 10)]
    assert _documents(out)[-1]["choices"][0]["usage"]["completion_tokens"] == 20
    assert sum("usage" in choice for one in _documents(out) for choice in one["choices"]) == 1


@pytest.mark.parametrize("text", ["", " \n"])
def test_nothing_said_is_no_history(text: str) -> None:
    for stream in (True, False):
        _, [said] = rounds.drive(_merger(stream), _raws([spoken(THOUGHT, ("text", text))], stream=stream))
        assert said.native == ()


# --- live, and what goes wrong ----------------------------------------------------------------------------------------


def test_m34_live() -> None:
    """Each event leaves as it arrives; nothing but the end waits."""
    merger = _merger()
    merger.begin_round()
    first = [merger.feed(event + b"\n\n") for event in openai.chat_stream(spoken(TEXT), 1).split(b"\n\n")[:-1]]
    assert first[0] == b"", "the role waits for the first content"
    assert all(first[1:-3])
    assert not any(first[-3:])
    merger.end_round()
    merger.begin_round()
    events = openai.chat_stream(spoken(THOUGHT, ("text", "abcdefgh"), OWN_CALL, TOOL), 2).split(b"\n\n")[:-1]
    out = [merger.feed(event + b"\n\n") for event in events]
    texts = [
        choice["delta"]["content"]
        for one in out
        for document in _documents(one)
        for choice in document["choices"]
        if "content" in choice["delta"]
    ]
    assert texts == ["\n\nabcd", "efgh"]
    shown = [bool(one) for one in out]
    assert shown == [False] * 4 + [True, True] + [False] * 6 + [True] * 6 + [False] * 3


@pytest.mark.parametrize("begun", [True, False])
def test_a_last_text_beside_the_reason_leaves_before_the_next_round(begun: bool) -> None:
    merger = _merger()
    out, _ = rounds.feed_round(merger, ODD["content beside the reason"][0])
    assert b" one" not in out
    if begun:
        merger.begin_round()
    [document] = _documents(merger.feed(b""))
    assert merger.feed(b"") == b""
    assert document["choices"][0] == {"index": 0, "delta": {"content": " one"}, "logprobs": None, "finish_reason": None}
    assert document["usage"] is None


def test_a_last_text_beside_the_reason_leaves_with_a_keep_alive() -> None:
    """While a clock is awaited, the client has all of the text."""
    merger = _merger()
    out, _ = rounds.feed_round(merger, ODD["content beside the reason"][0])
    kept = merger.keep_alive()
    assert b" one" in kept
    assert kept.endswith(b": keepalive\n\n")
    events = Events().feed(out + kept + b"".join(merger.finish()))
    documents = streams.documents_of(events)
    assert openai.chat_accumulated(documents)["message"]["content"] == "all one"
    assert documents[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("include_usage", [True, False])
def test_the_usage_chunk_is_for_who_asked(include_usage: bool) -> None:
    raws = _raws([spoken(TEXT), spoken(("text", "two"))])
    for given_ in (raws[:1], raws):
        out, said = rounds.drive(_merger(include_usage=include_usage), given_)
        assert [one.usage.output for one in said] == [10] * len(given_)
        streams.check_chat(Events().feed(out), usage=include_usage)
        assert (b'"choices": []' in out or b'"choices":[]' in out) is include_usage


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
    streams.check_chat(Events().feed(raw), usage=True)
    answer = openai.chat_accumulated(_documents(raw))
    assert answer["message"]["content"] == TEXT[1] + "\n\ntwo"
    assert (answer["usage"]["completion_tokens"], answer["usage"]["prompt_tokens"]) == (8, 9)
    ended, _ = rounds.drive(_merger(), raws[:3], rounds.WAYS[way])
    assert openai.chat_accumulated(_documents(ended)) == openai.chat_accumulated(_documents(raws[0]))


def test_d18_a_first_round_that_broke_before_its_content_leaves_nothing() -> None:
    merger = _merger()
    raws = _raws([spoken(ending="cut"), spoken(ending="error"), spoken(THOUGHT, TEXT)])
    assert rounds.drive(merger, raws)[0] == raws[2]
    assert merger.id == "chatcmpl-3"


@pytest.mark.parametrize("ending", ["cut", "error"])
@pytest.mark.parametrize("before", [0, 1])
def test_d18_a_visible_break_ends_in_an_error(ending: str, before: int) -> None:
    """Also where nobody says so: `finish` never invents a good end."""
    given_ = [*([spoken(TEXT)] * before), spoken(("text", "two"), ending=ending)]
    for end in ("fail", "finish"):
        merger = _merger()
        out, said = b"", None
        for raw in _raws(given_):
            more, said = rounds.feed_round(merger, raw)
            out += more
        assert said is not None
        assert not said.complete
        assert said.text == "two"
        out += merger.fail(502, "It broke.", "UPSTREAM_ERROR") if end == "fail" else b"".join(merger.finish())
        events = Events().feed(out)
        documents = streams.documents_of(events)
        assert documents[-1]["error"]["message"]
        assert not any(choice["finish_reason"] for one in documents[:-1] for choice in one["choices"])
        assert sum("error" in one for one in documents) == 1
        assert b"".join(merger.finish()) == merger.keep_alive() == b""
        assert (merger.fail(500, "x", "x") == b"") is (end == "fail")


def test_h14_a_first_rounds_own_error_is_passed_on_as_it_is() -> None:
    raw = openai.chat_stream(spoken(THOUGHT, TEXT, ending="error"), 1)
    for end in ("fail", "finish"):
        merger = _merger()
        out, said = rounds.feed_round(merger, raw)
        assert said.error is not None
        assert (said.error.status, said.error.message) == (503, "Overloaded")
        out += merger.fail(said.error.status, said.error.message, said.error.code) if end == "fail" else b"".join(merger.finish())
        assert out == raw


@pytest.mark.parametrize(
    "event, status",
    [
        (b'data: {"error": {"message": "m", "code": 429}, "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]}\n\n', 429),
        (b'event: error\ndata: {"message": "m"}\n\n', 502),
        (b'data: {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}\n\n', 529),
        (b'data: {"error_code": 336100, "error_msg": "m"}\n\n', 502),
    ],
)  # fmt: skip
def test_errors_of_many_makes(event: bytes, status: int) -> None:
    for before in (b"", openai.sse([openai.chat_chunk(1, ROLE), openai.chat_chunk(1, {"content": "one"})], done=False)):
        merger = _merger()
        out, said = rounds.feed_round(merger, before + event + b"data: [DONE]\n\n")
        assert said.error is not None
        assert said.error.status == status
        assert out == before
        assert not said.complete


def test_cut_inside_an_event() -> None:
    raw = openai.chat_stream(spoken(TEXT), 1)
    merger = _merger()
    out, said = rounds.feed_round(merger, raw[: raw.index(b'"finish_reason": "stop"') + 5])
    assert not said.complete
    events = Events().feed(out + merger.fail(502, "It broke.", "X"))
    assert json.loads(events[-1].data)["error"]["message"] == "It broke."


def test_keep_alive_at_any_moment() -> None:
    raws = _raws([spoken(THOUGHT, TEXT), spoken(OWN_CALL), spoken(("text", "two"), TOOL)])
    merger = _merger()
    out = [merger.keep_alive()]
    for raw in raws:
        merger.begin_round()
        for chunk in rounds.bytewise(raw):
            out += [merger.feed(chunk), merger.keep_alive()]
        merger.end_round()
        out.append(merger.keep_alive())
    out.append(b"".join(merger.finish()))
    plain, _ = rounds.drive(_merger(), raws)
    assert b"".join(out).replace(b": keepalive\n\n", b"") == plain


def test_noise_is_bounded() -> None:
    """A megabyte of comments where something waits is not kept."""
    merger = _merger()
    merger.begin_round()
    start, rest = openai.chat_stream(spoken(TEXT), 1).split(b"\n\n", 1)
    out = merger.feed(start + b"\n\n")
    noise = b": wait, wait, wait, wait, wait\n\n" * 50_000
    out += b"".join(merger.feed(noise[place : place + 8000]) for place in range(0, len(noise), 8000))
    assert len(out) > len(noise) - (1 << 20) - 10_000
    out += merger.feed(rest) + b"".join(merger.feed(noise[place : place + 8000]) for place in range(0, len(noise), 8000))
    assert len(out) > 2 * len(noise) - (1 << 20) - 10_000
    merger.end_round()
    streams.check_chat([event for event in Events().feed(out + b"".join(merger.finish())) if event.data], usage=True)


def test_long_answers_cost_little() -> None:
    """Memory follows the text, not the events."""
    merger = _merger()
    events = [b"data: " + rounds.dump(openai.chat_chunk(1, {"content": "word "})) + b"\n\n"] * 500
    merger.begin_round()
    tracemalloc.start()
    for _ in range(100):
        merger.feed(b"".join(events))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000, "50,000 events, 12 MB on the wire, 250 KB of text"


@pytest.mark.parametrize("raw", [b"\x00\xff\n\n", b"data: []\n\n", b"data: {}\n\n", b'data: {"choices": 7}\n\n', b'data: {"choices": [7, {"index": "x", "delta": 3}]}\n\n', b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [1, {"index": []}], "function_call": 3, "content": 5}}]}\n\n', b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"name": 5}}]}, "finish_reason": 3}], "usage": []}\n\n', b'data: {"choices": [{"delta": {"content": [1, {"type": 1}], "reasoning_details": [{"type": []}]}}], "id": 5}\n\ndata: [DONE]\n\n'])  # fmt: skip
def test_garbage_never_raises(raw: bytes) -> None:
    for before in ([], _raws([spoken(TEXT)])):
        merger = _merger()
        _, said = rounds.drive(merger, [*before, raw, *_raws([spoken(OWN_CALL, TEXT)])])
        assert said[len(before)].text == ""
        assert isinstance(merger.id, str)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"choices": 5}', b'{"choices": [{"message": 5}]}', b'{"choices": [{"message": {"content": 5, "tool_calls": [1, {}], "function_call": 1}}], "usage": 1}'])  # fmt: skip
def test_garbage_in_json_never_raises(raw: bytes) -> None:
    merger = _merger(False)
    out, said = rounds.drive(merger, [raw])
    assert out == raw if said[0].complete else json.loads(out)["error"]["message"]
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
    events = Events().feed(raw)
    streams.check_chat(events, usage=True)
    answer = openai.chat_accumulated(streams.documents_of(events))
    assert _seen(answer["message"]) == _expected(given_)
    assert answer["finish_reason"] == ("tool_calls" if _expected(given_)["tool_calls"] else "stop")
    assert b'"clock"' not in raw
    out, said_whole = rounds.drive(whole, _raws(given_, stream=False))
    merged = json.loads(out)
    assert _seen(merged["choices"][0]["message"]) == _expected(given_)
    assert merged["usage"] == answer["usage"]
    assert said == said_whole
    if len(given_) == 1 and not said[0].own:
        assert raw == raws[0]


def test_what_a_complete_round_held_back_is_no_content_of_the_next() -> None:
    """A call that never said whose it is waits for the end of its round; the next one breaks off before it has said anything."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    half = {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    deltas: list[tuple[object, str | None]] = [({"role": "assistant", "content": "hi"}, None), (half, None), ({}, "stop")]
    first = [{**head, "choices": [{"index": 0, "delta": one, "finish_reason": reason}]} for one, reason in deltas]
    merger = _merger()
    rounds.feed_round(merger, openai.sse(first))
    waits, said = rounds.feed_round(merger, openai.sse(first[:1]).partition(b"data: [DONE]")[0].replace(b'"hi"', b'""'))
    assert half["tool_calls"] == json.loads(waits.removeprefix(b"data: "))["choices"][0]["delta"]["tool_calls"]
    assert not said.complete
    ended = b"".join(merger.finish())
    assert b'"error"' not in ended
    assert ended.endswith(b"data: [DONE]\n\n")


@given(rounds.random_rounds(most=2), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_chunks_in_any_order(given_: list[Spoken], chance: random.Random, wait: bool) -> None:
    """Lost, repeated and swapped chunks: whatever leaves has one id and one end, and no text is lost."""
    merger, out, texts = _merger(), [], []
    for number, round_ in enumerate(given_, 1):
        documents = list(openai.chat_documents(round_, number))
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(documents))
            match chance.randrange(3):
                case 0:
                    del documents[place]
                case 1:
                    documents.insert(place, documents[place])
                case _:
                    documents.insert(chance.randrange(len(documents)), documents.pop(place))
            documents = documents or list(openai.chat_documents(round_, number))
        raw = openai.sse(documents)
        waits = copy.deepcopy(merger).feed(b"")  # of the round before, which is complete: it leaves as another begins
        more, said = rounds.feed_round(merger, raw)
        assert more.startswith(waits)
        out.append(more + (merger.keep_alive() if wait else b""))
        texts.append(said.text)
        if not said.complete:  # without a reason, half a call is what a broken stream leaves
            ended = b"".join(merger.finish())
            assert (b'"error"' in ended) is (number == 1 or more != waits)
            return
        if len(given_) == 1 and not said.own and not wait:
            promised = b'"finish_reason": "tool_calls"' in raw and not said.calls  # decision 17: a call that was lost is none
            assert promised or more + b"".join(merger.finish()) == raw
            return
    out.append(b"".join(merger.finish()))
    events = [event for event in Events().feed(b"".join(out)) if event.data]
    assert [event.data for event in events].count(b"[DONE]") == 1
    choices = [choice for one in streams.documents_of(events) for choice in one["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == "\n\n".join(filter(None, texts))
    assert len({one["id"] for one in streams.documents_of(events)}) == 1
    reasons = [choice["finish_reason"] for choice in choices]
    assert reasons[-1]
    assert not any(reasons[:-1])
