"""The time's text, and where a call takes a text of ours: at its very end, in legal roles, once, and not where it would cost."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from routecodex.routing.clock.moment import moment_at
from routecodex.routing.clock.time_tag import tag_text, takes_tag, takes_texts, without_tag
from routecodex.routing.dialects.calls import for_target, read_call
from routecodex.routing.dialects.calls.ending import with_texts
from routecodex.routing.dialects.calls.replacing import raw_items
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.dialects.estimate import estimate_tokens
from routecodex.routing.router.features import read_features
from routecodex.routing.values import Call, Caller, Dialect, Endpoint, Kind

FIXTURES = Path(__file__).parents[2] / "fixtures"
MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
KEYS = {MESSAGES: "messages", CHAT: "messages", RESPONSES: "input", GEMINI: "contents"}
CALLER = Caller("tester", Kind.MAIN)
MARK = {"cache_control": {"type": "ephemeral"}}
TAG = tag_text(moment_at(1_800_000_000_123, -42, "Asia/Shanghai"))

Items = list[dict[str, Any]]


def call_of(dialect: Dialect, items: Any, **fields: Any) -> Call:
    body = {"model": "m", **fields, KEYS[dialect]: items}
    return read_call(json.dumps(body).encode(), Endpoint(dialect, model="m" if dialect is GEMINI else None))


def sent(call: Call) -> Any:
    return json.loads(for_target(call, "", foreign=False))


def said(text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def blocks(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(parts)}


def text(words: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    return {"type": kind, "text": words, **more}


def part(words: str) -> dict[str, Any]:
    return {"text": words}


USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "function": {"name": "Bash", "arguments": "{}"}}]}
ANSWERED = {"role": "tool", "tool_call_id": "t1", "content": "done"}
ASKS = {"type": "function_call", "call_id": "t1", "name": "Bash", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "t1", "output": "done"}
FUNCTION = {"functionCall": {"name": "Bash", "args": {}}}
RESPONSE = {"functionResponse": {"name": "Bash", "response": {"output": "done"}}}


def test_the_seeds_format() -> None:
    assert TAG.startswith("[Time/Date]: utc=`2027-01-15T08:00:00.123Z` local=`2027-01-15 ")
    assert TAG.endswith("` tz=`Asia/Shanghai` nowMs=`1800000000123` ntpOffsetMs=`-42`")
    assert "\n" not in TAG


# ---- where the texts go ----

PLACES: dict[str, tuple[Dialect, Any, Items]] = {
    "messages, a string": (MESSAGES, [said("hi")], [blocks(text("hi"), text("one"), text("two"))]),
    "messages, behind the last cache mark": (
        MESSAGES,
        [blocks(text("hi", **MARK))],
        [blocks(text("hi", **MARK), text("one"), text("two"))],
    ),
    "messages, results of tools first": (
        MESSAGES,
        [said("go"), blocks(USE, role="assistant"), blocks({**RESULT, **MARK})],
        [said("go"), blocks(USE, role="assistant"), blocks({**RESULT, **MARK}, text("one"), text("two"))],
    ),
    "messages, a system item at the end": (
        MESSAGES,
        [said("hi"), blocks(text("env", **MARK), role="system")],
        [said("hi"), blocks(text("env", **MARK), role="system"), blocks(text("one"), text("two"))],
    ),
    "chat, a string stays one": (CHAT, [said("hi")], [said("hi\n\none\n\ntwo")]),
    "chat, parts": (CHAT, [blocks(text("hi"))], [blocks(text("hi"), text("one"), text("two"))]),
    "chat, an empty string": (CHAT, [said("")], [said("one\n\ntwo")]),
    "chat, behind a tool": (CHAT, [said("go"), CALLED, ANSWERED], [said("go"), CALLED, ANSWERED, said("one\n\ntwo")]),
    "chat, a system message at the end": (
        CHAT,
        [said("hi"), said("s", "system")],
        [said("hi"), said("s", "system"), said("one\n\ntwo")],
    ),
    "chat, fields that tell of the content": (
        CHAT,
        [blocks(text("hi")) | {"x_parts": [1]}],
        [blocks(text("hi")) | {"x_parts": [1]}, said("one\n\ntwo")],
    ),
    "responses, parts": (
        RESPONSES,
        [{"type": "message", **blocks(text("hi", "input_text"))}],
        [{"type": "message", **blocks(*(text(words, "input_text") for words in ("hi", "one", "two")))}],
    ),
    "responses, one string": (RESPONSES, "hi", [{"type": "message", **said("hi\n\none\n\ntwo")}]),
    "responses, behind a tool": (
        RESPONSES,
        [said("go"), ASKS, OUTPUT],
        [said("go"), ASKS, OUTPUT, {"type": "message", **blocks(text("one\n\ntwo", "input_text"))}],
    ),
    "responses, what Codex knows of each part": (
        RESPONSES,
        [{"type": "message", **blocks(text("hi", "input_text")), "internal_chat_message_metadata_passthrough": {"x": [1]}}],
        [
            {"type": "message", **blocks(text("hi", "input_text")), "internal_chat_message_metadata_passthrough": {"x": [1]}},
            {"type": "message", **blocks(text("one\n\ntwo", "input_text"))},
        ],
    ),
    "gemini": (
        GEMINI,
        [{"role": "user", "parts": [part("hi")]}],
        [{"role": "user", "parts": [part("hi"), part("one"), part("two")]}],
    ),
    "gemini, responses of functions first": (
        GEMINI,
        [{"role": "user", "parts": [part("go")]}, {"role": "model", "parts": [FUNCTION]}, {"role": "user", "parts": [RESPONSE]}],
        [
            {"role": "user", "parts": [part("go")]},
            {"role": "model", "parts": [FUNCTION]},
            {"role": "user", "parts": [RESPONSE, part("one"), part("two")]},
        ],
    ),
    "gemini, the older role of functions": (
        GEMINI,
        [{"role": "model", "parts": [FUNCTION]}, {"role": "function", "parts": [RESPONSE]}],
        [
            {"role": "model", "parts": [FUNCTION]},
            {"role": "function", "parts": [RESPONSE]},
            {"role": "user", "parts": [part("one"), part("two")]},
        ],
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_c28_places(name: str) -> None:
    dialect, items, expected = PLACES[name]
    call = call_of(dialect, items)
    before = copy.deepcopy(call.body)
    grown = with_texts(call, ["one", "two"])
    assert sent(grown)[KEYS[dialect]] == expected
    assert (call.body, call.changed) == (before, False), "the call that was given is never written to"
    assert [message.index for message in grown.messages] == list(range(len(expected)))
    assert grown.messages == read_call(json.dumps(sent(grown)).encode(), call.endpoint).messages, "the views tell the truth"
    assert for_target(with_texts(call, ["one", "two"]), "", foreign=False) == for_target(grown, "", foreign=False)


@pytest.mark.parametrize("name", PLACES)
def test_read_without_it(name: str) -> None:
    """Where an answer depends on what was typed."""
    dialect, items, _ = PLACES[name]
    read = without_tag(with_texts(call_of(dialect, items), ["one", TAG]))
    words = "\n".join(message.text for message in read.messages)
    assert "one" in words
    assert "[Time/Date]" not in words


# ---- where there is no place ----

CLOSED: dict[str, tuple[Dialect, Items]] = {
    "an answer to be gone on with": (MESSAGES, [said("hi"), said("{", "assistant")]),
    "… behind which a system item stands": (MESSAGES, [said("hi"), said("{", "assistant"), said("s", "system")]),
    "a call that nobody has answered": (CHAT, [said("go"), CALLED]),
    "an item of the model's": (RESPONSES, [said("go"), ASKS]),
    "gemini's own words": (GEMINI, [{"role": "user", "parts": [part("hi")]}, {"role": "model", "parts": [part("{")]}]),
    "instructions alone": (CHAT, [said("s", "system")]),
    "nothing": (RESPONSES, []),
}


@pytest.mark.parametrize("name", CLOSED)
def test_no_place(name: str) -> None:
    dialect, items = CLOSED[name]
    call = call_of(dialect, items)
    assert not takes_texts(call)
    assert not takes_tag(call)


# ---- thinking ----

THINKING = {"type": "thinking", "thinking": "hm", "signature": "s"}
HOPS: dict[Dialect, Items] = {
    MESSAGES: [said("go"), blocks(USE, role="assistant"), blocks(RESULT)],
    CHAT: [said("go"), CALLED, ANSWERED],
    RESPONSES: [said("go"), ASKS, OUTPUT],
    GEMINI: [
        {"role": "user", "parts": [part("go")]},
        {"role": "model", "parts": [FUNCTION]},
        {"role": "user", "parts": [RESPONSE]},
    ],
}
ON: list[tuple[Dialect, dict[str, Any]]] = [
    (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    (MESSAGES, {"thinking": {"type": "adaptive"}}),
    (CHAT, {"reasoning_effort": "low"}),
    (CHAT, {"thinking": {"type": "enabled"}}),
    (CHAT, {"enable_thinking": True}),
    (CHAT, {"chat_template_kwargs": {"enable_thinking": True}}),
    (CHAT, {"reasoning": {"effort": "high"}}),
    (CHAT, {"reasoning": {"max_tokens": 2000}}),
    (RESPONSES, {"reasoning": {"effort": "minimal"}}),
    (RESPONSES, {"reasoning": {"summary": "auto"}}),
    (RESPONSES, {"previous_response_id": "resp_1"}),
    (RESPONSES, {"conversation": "conv_1"}),
    (GEMINI, {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}),
    (GEMINI, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}),
    (GEMINI, {"generation_config": {"thinking_config": {"include_thoughts": True}}}),
]
OFF: list[tuple[Dialect, dict[str, Any]]] = [
    *((dialect, {}) for dialect in Dialect),
    (MESSAGES, {"thinking": {"type": "disabled"}}),
    (CHAT, {"reasoning_effort": "none"}),
    (CHAT, {"thinking": {"type": "disabled"}}),
    (CHAT, {"enable_thinking": False}),
    (CHAT, {"reasoning": {"enabled": False, "effort": "high"}}),
    (RESPONSES, {"reasoning": {"effort": "none"}}),
    (RESPONSES, {"reasoning": {"effort": "none"}, "previous_response_id": "resp_1"}),
    (GEMINI, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
]


@pytest.mark.parametrize("dialect, fields", ON, ids=str)
def test_19_thinking_is_asked_for(dialect: Dialect, fields: dict[str, Any]) -> None:
    assert not takes_tag(call_of(dialect, HOPS[dialect], **fields))
    assert takes_tag(call_of(dialect, HOPS[dialect][:1], **fields)), "what a person said is no hop"
    assert takes_texts(call_of(dialect, HOPS[dialect], **fields)), "a reminder would come too late"


@pytest.mark.parametrize("dialect, fields", OFF, ids=str)
def test_19_no_thinking(dialect: Dialect, fields: dict[str, Any]) -> None:
    assert takes_tag(call_of(dialect, HOPS[dialect], **fields))


THOUGHT: dict[str, tuple[Dialect, Items]] = {
    "messages": (MESSAGES, [said("go"), blocks(THINKING, USE, role="assistant"), blocks(RESULT)]),
    "messages, two hops ago": (
        MESSAGES,
        [said("go"), blocks(THINKING, USE, role="assistant"), blocks(RESULT), blocks(USE, role="assistant"), blocks(RESULT)],
    ),
    "messages, a system item behind": (
        MESSAGES,
        [said("go"), blocks(THINKING, USE, role="assistant"), blocks(RESULT), said("s", "system")],
    ),
    "chat": (CHAT, [said("go"), {**CALLED, "reasoning_content": "hm"}, ANSWERED]),
    "responses": (RESPONSES, [said("go"), {"type": "reasoning", "summary": [], "encrypted_content": "x"}, ASKS, OUTPUT]),
    "gemini, a thought": (
        GEMINI,
        [
            {"role": "user", "parts": [part("go")]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}, FUNCTION]},
            {"role": "user", "parts": [RESPONSE]},
        ],
    ),
    "gemini, a signed call": (
        GEMINI,
        [
            {"role": "user", "parts": [part("go")]},
            {"role": "model", "parts": [{**FUNCTION, "thoughtSignature": "s"}]},
            {"role": "user", "parts": [RESPONSE]},
        ],
    ),
}


@pytest.mark.parametrize("name", THOUGHT)
def test_19_the_model_has_thought_without_being_asked(name: str) -> None:
    assert not takes_tag(call_of(*THOUGHT[name]))


LOST: dict[str, Items] = {
    "it thought before the person spoke again": [
        said("go"),
        blocks(THINKING, text("done"), role="assistant"),
        said("again"),
        blocks(USE, role="assistant"),
        blocks(RESULT),
    ],
    "a text of the client's stands beside the results": [
        said("go"),
        blocks(THINKING, USE, role="assistant"),
        blocks(RESULT, text("<system-reminder>x</system-reminder>")),
    ],
    "the person speaks beside the results": [said("go"), blocks(THINKING, USE, role="assistant"), blocks(RESULT, text("stop"))],
}


@pytest.mark.parametrize("name", LOST)
def test_19_thoughts_that_are_lost_anyway(name: str) -> None:
    assert takes_tag(call_of(MESSAGES, LOST[name]))


# ---- recorded calls of real tools ----

RECORDED = [path for path in sorted(FIXTURES.rglob("*.json")) if "side" not in path.name]


def recorded(path: Path) -> Call | None:
    found = json.loads(path.read_bytes())
    endpoint = endpoint_of(found.get("method", ""), found.get("path", ""))
    body = found.get("body")
    if endpoint is None or endpoint.action != "generate" or not isinstance(body, dict):
        return None
    return read_call(json.dumps(body, ensure_ascii=False).encode(), endpoint)


def test_recorded_calls_are_there() -> None:
    found = [call for path in RECORDED if (call := recorded(path)) is not None]
    assert {call.endpoint.dialect for call in found} == set(Dialect)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_19_behind_every_cache_mark_of_a_real_tool(path: Path) -> None:
    call = recorded(path)
    if call is None or not takes_texts(call):
        return
    before, after = raw_items(call), raw_items(with_texts(call, [TAG]))
    *earlier, last = after
    assert earlier == before[: len(earlier)]
    parts = last.get("content", last.get("parts"))
    if isinstance(parts, str):
        assert parts.endswith(TAG)
        return
    assert isinstance(parts, list)
    *kept, tag = parts
    assert tag.keys() <= {"type", "text"}
    assert tag["text"] == TAG
    own = before[-1].get("content", before[-1].get("parts")) if len(after) == len(before) else []
    assert kept == ([{"type": "text", "text": own}] if isinstance(own, str) else own)


@pytest.mark.parametrize("dialect", list(Dialect), ids=str)
def test_c29_the_router_would_be_misled(dialect: Dialect) -> None:
    """Why the desk never shows it the edited call: a text behind results reads as if somebody had typed it."""
    call = call_of(dialect, HOPS[dialect])
    grown = with_texts(call, [TAG])
    assert read_features(call, CALLER, estimate_tokens(call)).tool_hop
    assert not read_features(grown, CALLER, estimate_tokens(grown)).tool_hop
