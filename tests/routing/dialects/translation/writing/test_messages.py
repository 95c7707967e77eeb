"""Conversations as Messages calls."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.dialects.translation import opaque
from routecodex.routing.dialects.translation.neutral import (
    Block,
    Choice,
    Conversation,
    Feature,
    Format,
    Media,
    Message,
    Reasoning,
    Seal,
    Text,
    Thought,
    Tool,
    ToolName,
    ToolResult,
    ToolUse,
    Written,
)
from routecodex.routing.dialects.translation.reading.messages import read
from routecodex.routing.dialects.translation.writing.messages import write
from routecodex.routing.dialects.translation.writing.messages_models import DEFAULT_MAX_TOKENS, traits_of
from routecodex.routing.dialects.translation.writing.messages_schema import strict_schema, tool_schema
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint
from tests.conftest import LONG
from tests.routing.dialects.calls.recorded import CALLS

NEW, OLD, MIDDLE, ALWAYS, OTHER = "claude-opus-5-5", "claude-sonnet-4-5", "claude-opus-4-6", "claude-fable-5-1", "glm-4.7"
MODELS = [NEW, OLD, MIDDLE, ALWAYS, OTHER, "claude-3-5-haiku-latest", "claude-sonnet-5", "claude-opus-4-20250514"]
MARK = {"cache_control": {"type": "ephemeral"}}
HI = Message("user", (Text("hi"),))


def user(*blocks: Block | str) -> Message:
    return Message("user", tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def assistant(*blocks: Block | str) -> Message:
    return Message("assistant", tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def system(*texts: str) -> Message:
    return Message("system", tuple(Text(text) for text in texts))


def written(*turns: Message, model: str = NEW, maker: str = "anthropic", session: str = "", **fields: Any) -> Written:
    return write(Conversation("asked", False, turns or (HI,), **fields), model=model, session=session, maker=maker)


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def messages(*turns: Message, **fields: Any) -> list[Any]:
    """The messages without marks; a single text is written as itself."""
    found = unmarked(written(*turns, **fields).body["messages"])
    for message in found:
        content = message["content"]
        if len(content) == 1 and content[0]["type"] == "text":
            message["content"] = content[0]["text"]
    return [(message["role"], message["content"]) for message in found]


def left_out(found: Written) -> dict[Feature, list[str]]:
    return found.left_out.found


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


# --- the whole --------------------------------------------------------------------------------------------------------


def test_a_whole_call() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    found = written(
        system("Be kind.", " "),
        user("read it"),
        assistant("Reading.", ToolUse("c1", "read", '{"path":"a"}'), ToolUse("c2", "read", "")),
        user(
            ToolResult("c2", (Text("empty"),), error=True),
            ToolResult("c1", (Text("A"), Media("image", data="iVBORw0="))),
            "well?",
        ),
        tools=(Tool("read", "Reads.", schema), Tool("stop")),
        choice=Choice("auto"),
        parallel=False,
        max_tokens=100,
        stops=("END", " "),
        temperature=0.5,
        user="someone",
    )
    assert found.body == {
        "model": NEW,
        "max_tokens": 100,
        "stream": False,
        "tools": [
            {"name": "read", "input_schema": schema, "description": "Reads."},
            {"name": "stop", "input_schema": {"type": "object", "properties": {}}, **MARK},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "system": [{**text("Be kind."), **MARK}],
        "messages": [
            {"role": "user", "content": [{**text("read it"), **MARK}]},
            {
                "role": "assistant",
                "content": [
                    text("Reading."),
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "c2", "name": "read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c2", "is_error": True, "content": "empty"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [
                            text("A"),
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}},
                        ],
                    },
                    {**text("well?"), **MARK},
                ],
            },
        ],
        "stop_sequences": ["END"],
    }
    assert set(left_out(found)) == {Feature.TEMPERATURE, Feature.STOPS, Feature.METADATA}
    assert found.tools == {}


def test_marks_stand_on_tools_system_and_the_last_two_of_the_user() -> None:
    found = written(
        system("a", "b"), user("1"), assistant("2"), user("3", "4"), assistant("5"), user("6"), tools=(Tool("f"), Tool("g"))
    ).body
    assert orjson.dumps(found).count(b"cache_control") == 4
    assert [block.get("cache_control") for block in found["messages"][2]["content"]] == [None, {"type": "ephemeral"}]  # type: ignore[index]
    assert "cache_control" not in found["messages"][0]["content"][0]  # type: ignore[index]


def test_the_client_s_own_marks_are_not_repeated() -> None:
    marked = tuple(Message("user" if index % 2 == 0 else "assistant", (Text("x", cached=True),)) for index in range(9))
    assert orjson.dumps(written(*marked, tools=(Tool("f", cached=True),)).body).count(b"cache_control") == 3


@pytest.mark.parametrize(("who", "sent"), [("sess-1", {"user_id": "sess-1"}), ("Mrs. Miller", None), ("", None)])
def test_the_user_is_sent_only_as_the_session(who: str, sent: object) -> None:
    found = written(user=who, session="sess-1")
    assert found.body.get("metadata") == sent
    assert (Feature.METADATA in left_out(found)) == (who == "Mrs. Miller")


def test_what_the_reader_met_is_named() -> None:
    found = written(others=((Feature.LOGPROBS, "5"), (Feature.OTHER, "safety_identifier")), seed=1, presence_penalty=0.0)
    assert left_out(found) == {Feature.LOGPROBS: ["5"], Feature.OTHER: ["safety_identifier"], Feature.SEED: []}
    assert Feature.PENALTIES in left_out(written(frequency_penalty=0.1))


def test_no_message_at_all_is_refused() -> None:
    with pytest.raises(BadCall, match="no message"):
        write(Conversation("m", False, ()), model=NEW, session="", maker="x")


# --- who speaks when --------------------------------------------------------------------------------------------------

USE, RESULT = ToolUse("c", "f", "{}"), ToolResult("c", (Text("r"),), name="f")
WIRE_USE = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
WIRE_RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "r"}
MISSING = {"type": "tool_result", "tool_use_id": "c", "content": "(The result of this call is missing.)"}

ORDERS: list[tuple[str, list[Message], list[tuple[str, Any]]]] = [
    ("neighbours are joined", [user("a"), user("b")], [("user", [text("a"), text("b")])]),
    ("the user begins", [assistant("hello"), user("hi")], [("user", "continue"), ("assistant", "hello"), ("user", "hi")]),
    ("only instructions", [system("do it")], [("user", "continue")]),
    ("white space is nobody's turn", [user("a"), assistant(" \n"), user("b")], [("user", [text("a"), text("b")])]),
    ("thinking alone is no turn", [user("a"), assistant(Thought("hm")), user("b")], [("user", [text("a"), text("b")])]),
    (
        "results first",
        [user("a"), assistant(USE), user("b"), user(RESULT)],
        [("user", "a"), ("assistant", [WIRE_USE]), ("user", [WIRE_RESULT, text("b")])],
    ),
    (
        "a missing result is said to be missing",
        [user("a"), assistant(USE), user("b")],
        [("user", "a"), ("assistant", [WIRE_USE]), ("user", [MISSING, text("b")])],
    ),
    ("even at the end", [user("a"), assistant(USE)], [("user", "a"), ("assistant", [WIRE_USE]), ("user", [MISSING])]),
    (
        "a result without its call is told",
        [user("a"), assistant("b"), user(replace(RESULT, error=True))],
        [("user", "a"), ("assistant", "b"), ("user", "An earlier call of f (c) failed with:\nr")],
    ),
    (
        "and one that comes too late",
        [user("a"), assistant(USE), user("b"), assistant("c"), user(RESULT)],
        [
            ("user", "a"),
            ("assistant", [WIRE_USE]),
            ("user", [MISSING, text("b")]),
            ("assistant", "c"),
            ("user", "An earlier call of f (c) brought:\nr"),
        ],
    ),
    (
        "blocks on the wrong side are told",
        [user("a", USE), assistant("b", RESULT), user("c")],
        [
            ("user", [text("a"), text("f was used: {}")]),
            ("assistant", [text("b"), text("An earlier call of f (c) brought:\nr")]),
            ("user", "c"),
        ],
    ),
    (
        "calls of one answer in pieces",
        [user("a"), assistant(USE), assistant("b"), user(RESULT)],
        [("user", "a"), ("assistant", [WIRE_USE, text("b")]), ("user", [WIRE_RESULT])],
    ),
]


@pytest.mark.parametrize(("turns", "expected"), [order[1:] for order in ORDERS], ids=[order[0] for order in ORDERS])
def test_who_speaks_when(turns: list[Message], expected: list[tuple[str, Any]]) -> None:
    assert messages(*turns) == expected


REMINDED = text("<system-reminder>\nnow\n</system-reminder>")
NOW = system("now")
MID: list[tuple[list[Message], list[tuple[str, Any]], list[tuple[str, Any]]]] = [
    (
        [user("a"), NOW],
        [("user", "a"), ("system", "now")],
        [("user", [text("a"), REMINDED])],
    ),
    (
        [user("a"), NOW, assistant("b"), user("c")],
        [("user", "a"), ("system", "now"), ("assistant", "b"), ("user", "c")],
        [("user", [text("a"), REMINDED]), ("assistant", "b"), ("user", "c")],
    ),
    (
        [user("a"), NOW, system("then"), assistant("b"), user("c")],
        [("user", "a"), ("system", [text("now"), text("then")]), ("assistant", "b"), ("user", "c")],
        [
            ("user", [text("a"), REMINDED, text("<system-reminder>\nthen\n</system-reminder>")]),
            ("assistant", "b"),
            ("user", "c"),
        ],
    ),
    (
        [user("a"), NOW, user("b")],
        [("user", [text("a"), REMINDED, text("b")])],
        [("user", [text("a"), REMINDED, text("b")])],
    ),
    (
        [user("a"), assistant(USE), NOW, user(RESULT)],
        [("user", "a"), ("assistant", [WIRE_USE]), ("user", [WIRE_RESULT, REMINDED])],
        [("user", "a"), ("assistant", [WIRE_USE]), ("user", [WIRE_RESULT, REMINDED])],
    ),
    (
        [user("a"), assistant(USE), NOW, assistant("b"), user(RESULT)],
        [("user", "a"), ("assistant", [WIRE_USE, text("b")]), ("user", [WIRE_RESULT, REMINDED])],
        [("user", "a"), ("assistant", [WIRE_USE, text("b")]), ("user", [WIRE_RESULT, REMINDED])],
    ),
    (
        [user("a"), assistant("b"), NOW, assistant("c"), user("d")],
        [("user", "a"), ("assistant", "b"), ("user", REMINDED["text"]), ("assistant", "c"), ("user", "d")],
        [("user", "a"), ("assistant", "b"), ("user", REMINDED["text"]), ("assistant", "c"), ("user", "d")],
    ),
]


@pytest.mark.parametrize(("turns", "listens", "does_not"), MID)
def test_a_system_turn_in_the_middle(
    turns: list[Message], listens: list[tuple[str, Any]], does_not: list[tuple[str, Any]]
) -> None:
    assert messages(*turns, model=NEW) == listens
    assert messages(*turns, model=OLD) == messages(*turns, model=OTHER) == does_not


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_that_the_client_began(model: str) -> None:
    found = messages(user("a"), assistant("It is \n"), model=model)
    if traits_of(model).prefill:
        assert found == [("user", "a"), ("assistant", "It is")]
    else:
        assert found == [("user", "a"), ("assistant", "It is \n"), ("user", "continue")]


def test_one_that_thinks_or_keeps_to_a_schema_goes_on_with_nothing() -> None:
    wanted = Format({"type": "object", "properties": {"a": {"type": "string"}}})
    for fields in ({"reasoning": Reasoning(on=True)}, {"format": wanted}):
        assert messages(user("a"), assistant("It"), model=OLD, **fields)[-1] == ("user", "continue")


# --- thinking of the past ---------------------------------------------------------------------------------------------

OWN, MINE = Seal(Dialect.MESSAGES, "anthropic", {"signature": "s"}), Seal(Dialect.MESSAGES, "", {"signature": "s"})
THOUGHTS: list[tuple[Thought, dict[str, Any] | None]] = [
    (Thought("hm", OWN), {"type": "thinking", "thinking": "hm", "signature": "s"}),
    (Thought("", MINE), {"type": "thinking", "thinking": "", "signature": "s"}),
    (Thought("", Seal(Dialect.MESSAGES, "", {"data": "d"})), {"type": "redacted_thinking", "data": "d"}),
    (Thought("hm", Seal(Dialect.MESSAGES, "another", {"signature": "s"})), None),
    (Thought("hm", Seal(Dialect.GEMINI, "", {"signature": "s"})), None),
    (Thought("hm", Seal(Dialect.MESSAGES, "", {"other": "s"})), None),
    (Thought("hm"), None),
]


@pytest.mark.parametrize(("thought", "wire"), THOUGHTS)
def test_thinking_goes_back_to_its_maker_alone(thought: Thought, wire: dict[str, Any] | None) -> None:
    found = written(user("a"), assistant(thought, "b"), user("c"))
    content = found.body["messages"][1]["content"]  # type: ignore[index]
    assert content == ([wire] if wire else []) + [text("b")]
    assert (Feature.THOUGHTS in left_out(found)) == (wire is None)
    assert wire is not None or b"hm" not in orjson.dumps(found.body)


def test_no_answer_ends_in_thinking() -> None:
    found = written(user("a"), assistant("b", Thought("hm", OWN)), user("c"))
    assert found.body["messages"][1]["content"] == [text("b")]  # type: ignore[index]
    assert Feature.THOUGHTS in left_out(found)


def test_the_seal_of_a_call_is_not_sent() -> None:
    sealed = replace(USE, seal=Seal(Dialect.GEMINI, "google", {"signature": "secret"}))
    found = written(user("a"), assistant(sealed), user(RESULT))
    assert found.body["messages"][1]["content"] == [WIRE_USE]  # type: ignore[index]
    assert Feature.THOUGHTS in left_out(found)


# --- thinking that is wanted ------------------------------------------------------------------------------------------

ON = Reasoning(on=True)
WISHES: list[tuple[str, Reasoning, dict[str, Any], set[Feature]]] = [
    (NEW, Reasoning(), {}, set()),
    (NEW, ON, {"thinking": {"type": "adaptive"}}, set()),
    (NEW, Reasoning(effort="xhigh"), {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, set()),
    (
        NEW,
        Reasoning(effort="minimal", shown=True),
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        {Feature.EFFORT},
    ),
    (
        NEW,
        Reasoning(on=True, budget=9_000, shown=False),
        {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}},
        {Feature.BUDGET},
    ),
    (NEW, Reasoning(on=True, budget=-1), {"thinking": {"type": "adaptive"}}, set()),
    (NEW, Reasoning(on=False), {"thinking": {"type": "disabled"}}, set()),
    (NEW, Reasoning(effort="none"), {"thinking": {"type": "disabled"}}, set()),
    (NEW, Reasoning(budget=0), {"thinking": {"type": "disabled"}}, set()),
    (
        NEW,
        Reasoning(on=False, effort="max"),
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
        {Feature.EFFORT},
    ),
    (ALWAYS, Reasoning(on=False), {"output_config": {"effort": "low"}}, {Feature.EFFORT}),
    (
        MIDDLE,
        Reasoning(effort="xhigh"),
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        {Feature.EFFORT},
    ),
    (OLD, ON, {"thinking": {"type": "enabled", "budget_tokens": 8_192}}, set()),
    (OLD, Reasoning(effort="high"), {"thinking": {"type": "enabled", "budget_tokens": 16_384}}, set()),
    (
        OLD,
        Reasoning(on=True, budget=4_000, shown=True),
        {"thinking": {"type": "enabled", "budget_tokens": 4_000, "display": "summarized"}},
        set(),
    ),
    (OLD, Reasoning(on=True, budget=100), {"thinking": {"type": "enabled", "budget_tokens": 1_024}}, {Feature.BUDGET}),
    (OLD, Reasoning(on=False), {"thinking": {"type": "disabled"}}, set()),
    (
        "claude-opus-4-5",
        Reasoning(effort="max"),
        {"thinking": {"type": "enabled", "budget_tokens": 31_999}, "output_config": {"effort": "high"}},
        {Feature.EFFORT},
    ),
    ("claude-3-5-haiku-latest", ON, {}, {Feature.EFFORT}),
    (OTHER, Reasoning(effort="low", shown=True), {"thinking": {"type": "enabled", "budget_tokens": 2_048}}, set()),
]


@pytest.mark.parametrize(("model", "wanted", "expected", "named"), WISHES)
def test_thinking_that_is_wanted(model: str, wanted: Reasoning, expected: dict[str, Any], named: set[Feature]) -> None:
    found = written(model=model, reasoning=wanted)
    assert {name: found.body[name] for name in ("thinking", "output_config") if name in found.body} == expected
    assert set(left_out(found)) == named


@pytest.mark.parametrize(
    ("max_tokens", "effort", "budget"),
    [(4_000, "high", 3_000), (1_025, "high", 1_024), (20_000, "high", 16_384), (1_024, "high", None), (500, "low", None)],
)
def test_a_budget_is_always_less_than_the_answer(max_tokens: int, effort: Any, budget: int | None) -> None:
    found = written(model=OLD, max_tokens=max_tokens, reasoning=Reasoning(effort=effort))
    assert found.body["max_tokens"] == max_tokens
    assert found.body.get("thinking") == (budget and {"type": "enabled", "budget_tokens": budget})
    assert (Feature.EFFORT in left_out(found)) == (budget is None)


def test_a_limit_that_the_model_does_not_have_is_named() -> None:
    found = written(model="claude-3-haiku-20240307", max_tokens=64_000)
    assert found.body["max_tokens"] == 4_096
    assert found.left_out.found == {Feature.OTHER: ["a limit of 64000 tokens: 4096 is the model's"]}
    assert written(model="claude-3-haiku-20240307", max_tokens=4_096).left_out.found == {}
    assert written(model="claude-3-haiku-20240307").left_out.found == {}, "nobody asked for more"


def test_max_tokens_without_a_limit_holds_budget_and_answer() -> None:
    assert written(model=OLD).body["max_tokens"] == DEFAULT_MAX_TOKENS
    assert written(model=OLD, reasoning=Reasoning(effort="high")).body["max_tokens"] == DEFAULT_MAX_TOKENS + 16_384
    assert written(model="claude-3-haiku-20240307").body["max_tokens"] == 4_096
    assert written(model=OLD, max_tokens=1_000_000).body["max_tokens"] == 64_000
    assert written(model=OTHER, max_tokens=1_000_000).body["max_tokens"] == 1_000_000


def test_a_turn_that_another_model_began_is_ended_without_thinking() -> None:
    wish = {"reasoning": Reasoning(on=True, budget=2_000)}
    foreign = [user("a"), assistant("b", USE), user(RESULT)]
    found = written(*foreign, model=OLD, **wish)
    assert found.body["thinking"] == {"type": "disabled"}
    assert Feature.EFFORT in left_out(found)
    enabled = {"type": "enabled", "budget_tokens": 2_000}
    own = [
        user("a"),
        assistant(Thought("hm", MINE), USE),
        user(RESULT),
        assistant(replace(USE, id="d")),
        user(ToolResult("d", ())),
    ]
    assert written(*own, model=OLD, **wish).body["thinking"] == enabled
    assert written(*foreign, assistant("done"), user("next"), model=OLD, **wish).body["thinking"] == enabled
    assert written(*foreign, model=OTHER, **wish).body["thinking"] == enabled
    assert written(*foreign, model=NEW, **wish).body["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize("model", [NEW, OLD, MIDDLE])
def test_a_forced_call_beats_thinking(model: str) -> None:
    found = written(model=model, reasoning=ON, tools=(Tool("f"),), choice=Choice("required"))
    assert found.body["tool_choice"] == {"type": "any"}
    assert found.body["thinking"] == {"type": "disabled"}
    assert Feature.EFFORT in left_out(found)
    free = written(model=model, reasoning=ON, tools=(Tool("f"),), choice=Choice("auto"))
    assert free.body["thinking"] != {"type": "disabled"}


# --- sampling ---------------------------------------------------------------------------------------------------------

SAMPLING: list[tuple[str, dict[str, Any], dict[str, Any], set[Feature]]] = [
    (NEW, {"temperature": 0.2, "top_p": 0.9, "top_k": 5}, {}, {Feature.TEMPERATURE, Feature.OTHER, Feature.TOP_K}),
    (NEW, {"temperature": 1.0, "top_p": 1.0}, {}, set()),
    (OLD, {"temperature": 0.2, "top_k": 5}, {"temperature": 0.2, "top_k": 5}, set()),
    (OLD, {"temperature": 1.7}, {"temperature": 1.0}, {Feature.TEMPERATURE}),
    (OLD, {"temperature": 0.2, "top_p": 0.9}, {"temperature": 0.2}, {Feature.OTHER}),
    (OLD, {"top_p": 0.9}, {"top_p": 0.9}, set()),
    (OLD, {"temperature": 1.0, "top_p": 0.9}, {"top_p": 0.9}, set()),
    (
        OLD,
        {"temperature": 0.2, "top_p": 0.9, "top_k": 5, "reasoning": ON},
        {},
        {Feature.TEMPERATURE, Feature.OTHER, Feature.TOP_K},
    ),
    (OLD, {"temperature": 0.2, "reasoning": Reasoning(on=False)}, {"temperature": 0.2}, set()),
    (OTHER, {"temperature": 0.2, "top_p": 0.9, "reasoning": ON}, {"temperature": 0.2, "top_p": 0.9}, set()),
]


@pytest.mark.parametrize(("model", "fields", "expected", "named"), SAMPLING)
def test_sampling(model: str, fields: dict[str, Any], expected: dict[str, Any], named: set[Feature]) -> None:
    found = written(model=model, **fields)
    assert {name: found.body[name] for name in ("temperature", "top_p", "top_k") if name in found.body} == expected
    assert set(left_out(found)) == named


# --- tools ------------------------------------------------------------------------------------------------------------


def names(found: Written) -> list[str]:
    return [tool["name"] for tool in found.body.get("tools", [])]  # type: ignore[attr-defined]


CHOICES: list[tuple[str, Choice | None, bool | None, dict[str, Any] | None, list[str], bool]] = [
    (NEW, None, None, None, ["f", "g", "h"], False),
    (NEW, None, True, None, ["f", "g", "h"], False),
    (NEW, None, False, {"type": "auto", "disable_parallel_tool_use": True}, ["f", "g", "h"], False),
    (NEW, Choice("auto"), None, {"type": "auto"}, ["f", "g", "h"], False),
    (NEW, Choice("none"), False, {"type": "none"}, ["f", "g", "h"], False),
    (NEW, Choice("required"), False, {"type": "any", "disable_parallel_tool_use": True}, ["f", "g", "h"], False),
    (NEW, Choice("required", ("g",)), None, {"type": "tool", "name": "g"}, ["f", "g", "h"], False),
    (NEW, Choice("required", ("g", "h")), None, {"type": "any"}, ["g", "h"], False),
    (NEW, Choice("auto", ("g",)), None, {"type": "auto"}, ["g"], False),
    (NEW, Choice("required", ("unknown",)), None, {"type": "auto"}, ["f", "g", "h"], True),
    (ALWAYS, Choice("required", ("g",)), None, {"type": "auto"}, ["g"], True),
]


@pytest.mark.parametrize(("model", "choice", "parallel", "expected", "declared", "named"), CHOICES)
def test_which_tools_to_call(
    model: str, choice: Choice | None, parallel: bool | None, expected: dict[str, Any] | None, declared: list[str], named: bool
) -> None:
    found = written(model=model, tools=(Tool("f"), Tool("g"), Tool("h")), choice=choice, parallel=parallel)
    assert found.body.get("tool_choice") == expected
    assert names(found) == declared
    assert (Feature.ALLOWED_TOOLS in left_out(found)) == named


def test_no_tools_no_choice() -> None:
    found = written(choice=Choice("required", ("f",)), parallel=False)
    assert "tools" not in found.body
    assert "tool_choice" not in found.body
    assert Feature.ALLOWED_TOOLS in left_out(found)


def test_calls_of_the_past_have_their_tools_declared() -> None:
    found = written(user("a"), assistant(USE, replace(USE, id="d")), user(RESULT), choice=Choice("auto"))
    assert unmarked(found.body["tools"]) == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    assert found.body["tool_choice"] == {"type": "none"}


def test_names_that_are_not_allowed() -> None:
    long = "x" * 200
    found = written(
        user("a"),
        assistant(ToolUse("1", "look", "{}", namespace="mcp__eyes__"), ToolUse("2", "a.b", "{}"), ToolUse("3", long, "{}")),
        tools=(Tool("look", namespace="mcp__eyes__"), Tool("a.b"), Tool(long), Tool("look"), Tool("look", "again")),
        choice=Choice("required", ("a.b",)),
    )
    sent = names(found)
    assert [found.tools.get(name, ToolName(name)) for name in sent] == [
        ToolName("look", "mcp__eyes__"),
        ToolName("a.b"),
        ToolName(long),
        ToolName("look"),
    ]
    assert sent[0] == "mcp__eyes__look"
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) for name in sent)
    assert [block["name"] for block in found.body["messages"][1]["content"]] == sent[:3]  # type: ignore[index]
    assert found.body["tool_choice"] == {"type": "tool", "name": sent[1]}
    assert "look" not in found.tools


def test_names_that_collide() -> None:
    web = Tool("search", kind="server", server="web_search")
    found = written(tools=(Tool("b", namespace="a"), Tool("a__b"), Tool("web_search"), web))
    sent = names(found)
    assert len(set(sent)) == 4
    assert [found.tools.get(name, ToolName(name)) for name in sent] == [
        ToolName("b", "a"),
        ToolName("a__b"),
        ToolName("web_search"),
        ToolName("web_search"),
    ]
    assert sent[3] == "web_search" != sent[2]


def test_a_tool_that_takes_free_text() -> None:
    patch = Tool("patch", "Patches.", kind="custom", native={"type": "custom", "name": "patch", "format": {"syntax": "lark"}})
    use = ToolUse("c", "patch", '*** not "json"', custom=True)
    found = written(user("a"), assistant(use), user(replace(RESULT, custom=True)), tools=(patch,))
    (tool,) = found.body["tools"]  # type: ignore[misc]
    assert tool["input_schema"]["required"] == ["input"]
    assert tool["description"] == 'Patches.\n\nIts input is described so: {"format":{"syntax":"lark"}}'
    assert found.tools == {"patch": ToolName("patch", custom=True)}
    assert found.body["messages"][1]["content"][0]["input"] == {"input": '*** not "json"'}  # type: ignore[index]


SERVED: list[tuple[Tool, dict[str, Any] | None, bool]] = [
    (Tool("web_search", kind="server", server="web_search"), {"type": "web_search_20250305", "name": "web_search"}, False),
    (
        Tool("", kind="server", server="web_search", native={"type": "web_search", "filters": {}}),
        {"type": "web_search_20250305", "name": "web_search"},
        True,
    ),
    (Tool("x", kind="server", server="web_fetch"), {"type": "web_fetch_20250910", "name": "web_fetch"}, False),
    (Tool("x", kind="server", server="code_execution"), {"type": "code_execution_20250825", "name": "code_execution"}, False),
    (
        Tool(
            "web_search",
            kind="server",
            server="web_search",
            native={"type": "web_search_20260318", "name": "web_search", "max_uses": 1},
        ),
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 1},
        False,
    ),
    (
        Tool("bash", "d", {"type": "object"}, native={"type": "bash_20250124", "name": "bash"}),
        {"type": "bash_20250124", "name": "bash"},
        False,
    ),
    (Tool("find", kind="server", server="file_search", native={"type": "file_search"}), None, True),
    (Tool("draw", kind="server", server="image_generation"), None, True),
    (Tool("use", kind="server", server="computer"), None, True),
]


@pytest.mark.parametrize(("tool", "wire", "named"), SERVED)
def test_tools_that_the_provider_runs(tool: Tool, wire: dict[str, Any] | None, named: bool) -> None:
    found = written(tools=(tool,))
    assert unmarked(found.body.get("tools")) == (wire and [wire])
    assert (Feature.SERVER_TOOLS in left_out(found)) == named
    assert found.tools == {}, "its calls are told under the name that the client gave it, as calls of that kind"


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", "call|fc_1", "ä", "x" * 300, "functions.read:0", "ok-1"])
def test_ids_of_calls_and_results_agree(id: str) -> None:
    def sent() -> tuple[str, str]:
        content = [
            message["content"][0]
            for message in written(user("a"), assistant(replace(USE, id=id)), user(replace(RESULT, id=id))).body["messages"]  # type: ignore[attr-defined]
        ]
        return content[1]["id"], content[2]["tool_use_id"]

    call, result = sent()
    assert call == result
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call)
    assert sent() == (call, result)
    assert (call == id) == (id == "ok-1")


def test_ids_that_a_provider_used_again() -> None:
    calls, results = (
        [replace(USE, arguments=f'{{"n":{n}}}') for n in range(3)],
        [ToolResult("c", (Text(str(n)),)) for n in range(3)],
    )
    found = messages(user("a"), assistant(calls[0]), user(results[0]), assistant(*calls[1:]), user(*results[1:]))
    pairs = {
        block["id"]: block["input"]["n"]
        for _, content in found
        if isinstance(content, list)
        for block in content
        if "id" in block
    }
    answers = {
        block["tool_use_id"]: int(block["content"])
        for _, content in found
        if isinstance(content, list)
        for block in content
        if "tool_use_id" in block
    }
    assert len(pairs) == 3
    assert pairs == answers


# --- pictures and files -----------------------------------------------------------------------------------------------


def encoded(words: str) -> str:
    return b64encode(words.encode()).decode()


def base64(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": data}


MEDIA: list[tuple[Media, dict[str, Any] | None, Feature | None]] = [
    (Media("image", "image/png", data="iVBORw"), {"type": "image", "source": base64("image/png", "iVBORw")}, None),
    (Media("image", "image/png", data="/9j/4A"), {"type": "image", "source": base64("image/jpeg", "/9j/4A")}, None),
    (Media("image", "image/jpg", data="AAAA"), {"type": "image", "source": base64("image/jpeg", "AAAA")}, None),
    (Media("image", data="UklGRg"), {"type": "image", "source": base64("image/webp", "UklGRg")}, None),
    (Media("image", url="data:image/gif;base64,R0lGOD"), {"type": "image", "source": base64("image/gif", "R0lGOD")}, None),
    (Media("image", url="https://x/a"), {"type": "image", "source": {"type": "url", "url": "https://x/a"}}, None),
    (
        Media("image", url="https://x/a", detail="low"),
        {"type": "image", "source": {"type": "url", "url": "https://x/a"}},
        Feature.IMAGE_DETAIL,
    ),
    (Media("image", file_id="file_1"), {"type": "image", "source": {"type": "file", "file_id": "file_1"}}, None),
    (Media("image", file_id="file-1"), None, Feature.FILE_LINKS),
    (Media("image", url="gs://bucket/a"), None, Feature.IMAGE_LINKS),
    (Media("image", "image/bmp", data="Qk0="), None, Feature.FILES),
    (
        Media("file", "application/pdf", data="JVBERi0", name="a.pdf"),
        {"type": "document", "source": base64("application/pdf", "JVBERi0"), "title": "a.pdf"},
        None,
    ),
    (Media("file", "image/png", data="iVBORw"), {"type": "image", "source": base64("image/png", "iVBORw")}, None),
    (
        Media("file", "text/plain", text="words"),
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        None,
    ),
    (
        Media("file", "application/json", data=encoded('{"ä":1}')),
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": '{"ä":1}'}},
        None,
    ),
    (Media("file", "text/plain", data="/////w=="), None, Feature.FILES),
    (Media("file", "text/plain", data="not base64"), None, Feature.FILES),
    (Media("file", "application/msword", data="0M8R", name="a.doc"), None, Feature.FILES),
    (Media("file", url="https://x/a.pdf"), {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}}, None),
    (Media("file", "text/csv", url="https://x/a.csv"), None, Feature.FILE_LINKS),
    (Media("file", file_id="file_2"), {"type": "document", "source": {"type": "file", "file_id": "file_2"}}, None),
    (Media("file", file_id="file-2"), None, Feature.FILE_LINKS),
    (Media("audio", "audio/wav", data="AAAA"), None, Feature.AUDIO),
    (Media("video", "video/mp4", url="https://x/v"), None, Feature.VIDEO),
]


@pytest.mark.parametrize(("media", "wire", "named"), MEDIA)
def test_pictures_and_files(media: Media, wire: dict[str, Any] | None, named: Feature | None) -> None:
    found = written(user(media, "look"))
    (block, look) = unmarked(found.body["messages"])[0]["content"]
    assert look == text("look")
    assert set(left_out(found)) == ({named} if named else set())
    if wire:
        assert block == wire
    else:
        assert block["type"] == "text"
        assert block["text"].startswith(f"(Here stood a{'n' if media.kind in ('image', 'audio') else ''} {media.kind}")


PNG = Media("image", data="iVBORw")
WIRE_PNG = {"type": "image", "source": base64("image/png", "iVBORw")}


def test_a_failed_result_shows_its_picture_beside_itself() -> None:
    found = messages(user("a"), assistant(USE), user(ToolResult("c", (Text("no"), PNG), error=True, name="f"), "b"))
    assert found[-1] == (
        "user",
        [
            {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no"},
            text("This belongs to the failed call of f:"),
            WIRE_PNG,
            text("b"),
        ],
    )


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (ToolResult("c", ()), ""),
        (ToolResult("c", (Text(" "),)), ""),
        (ToolResult("c", (), error=True), "(It failed and said nothing.)"),
        (ToolResult("c", (PNG,), error=True), "(See below.)"),
        (ToolResult("c", (Text("a"), Text("b"))), [text("a"), text("b")]),
    ],
)
def test_results_of_few_words(result: ToolResult, content: object) -> None:
    assert messages(user("a"), assistant(USE), user(result))[-1][1][0]["content"] == content


def test_what_the_assistant_painted_is_shown_by_the_user() -> None:
    found = written(user("paint"), assistant("Here:", PNG), user("thanks"))
    assert unmarked(found.body["messages"])[1:] == [
        {"role": "assistant", "content": [text("Here:")]},
        {"role": "user", "content": [text("This is what the assistant made:"), WIRE_PNG, text("thanks")]},
    ]
    assert Feature.ASSISTANT_MEDIA in left_out(found)


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_of_a_painting_alone_keeps_its_turn(model: str) -> None:
    """Behind a system message the API takes nothing but the assistant."""
    found = written(user("paint"), system("Be quick."), assistant(PNG), model=model)
    legal(found.body)
    assert "(What the assistant made here is shown in the next message.)" in said(found.body)


# --- schemas ----------------------------------------------------------------------------------------------------------

STRING = {"type": "string"}
CLOSED = {"type": "object", "properties": {"a": STRING}, "required": ["a"], "additionalProperties": False}


def test_structured_output() -> None:
    assert written(format=Format(CLOSED)).body["output_config"] == {"format": {"type": "json_schema", "schema": CLOSED}}
    described = written(format=Format(CLOSED, description="What is told.")).body["output_config"]
    assert described == {"format": {"type": "json_schema", "schema": {**CLOSED, "description": "What is told."}}}


@pytest.mark.parametrize(
    ("model", "wanted"),
    [(NEW, Format()), (OTHER, Format(CLOSED)), (NEW, Format({"type": "object", "additionalProperties": STRING}))],
)
def test_what_cannot_be_held_to_is_asked_for(model: str, wanted: Format) -> None:
    found = written(system("Be kind."), HI, model=model, format=wanted)
    assert "output_config" not in found.body
    first, asked = unmarked(found.body["system"])
    assert first == text("Be kind.")
    assert asked["text"].startswith("Answer with one JSON object")
    assert wanted.schema is None or json.dumps(wanted.schema, separators=(",", ":")) in asked["text"]
    assert Feature.STRUCTURED in left_out(found)


EXACT: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
    (CLOSED, CLOSED),
    (
        {"type": "object", "properties": {"a": STRING}},
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": False},
    ),
    ({"type": "object"}, None),
    ({"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}}, None),
    ({"type": "integer", "minimum": 1, "description": "n"}, {"type": "integer", "description": "n\n(minimum: 1)"}),
    ({"type": ["string", "null"]}, {"anyOf": [STRING, {"type": "null"}]}),
    ({"oneOf": [STRING, {"type": "null"}]}, {"anyOf": [STRING, {"type": "null"}]}),
    ({"enum": [1, 2], "type": "integer"}, {"enum": [1, 2]}),
    ({"enum": [{"a": 1}], "type": "string"}, {"type": "string", "description": '(enum: [{"a":1}])'}),
    ({"const": "x"}, {"const": "x"}),
    ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
    ({"type": "string", "format": "color", "pattern": "^#"}, {"type": "string", "description": "(format: color, pattern: ^#)"}),
    (
        {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3},
        {"type": "array", "items": STRING, "minItems": 1, "description": "(maxItems: 3)"},
    ),
    ({"type": "array"}, None),
    ({}, None),
    (
        {"$schema": "s", "type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": CLOSED}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "additionalProperties": False, "$defs": {"A": CLOSED}},
    ),
    ({"type": "object", "properties": {"a": {"$ref": "https://x"}}}, None),
    (
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/A"}},
            "definitions": {"A": {"type": "array", "items": {"$ref": "#/definitions/A"}}},
        },
        None,
    ),
]


@pytest.mark.parametrize(("schema", "exact"), EXACT)
def test_schemas_that_are_kept_to(schema: dict[str, Any], exact: dict[str, Any] | None) -> None:
    before = json.dumps(schema)
    assert strict_schema(schema) == exact
    assert json.dumps(schema) == before


TOOL_SCHEMAS: list[tuple[dict[str, Any] | None, dict[str, Any], bool]] = [
    (None, {"type": "object", "properties": {}}, False),
    (CLOSED, CLOSED, False),
    ({"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}, False),
    (
        {"type": "object", "properties": {"a": STRING}, "anyOf": [{"required": ["a"]}]},
        {"type": "object", "properties": {"a": STRING}},
        True,
    ),
    (
        {"oneOf": [{"type": "object", "properties": {"a": STRING}}, {"type": "object", "properties": {"b": STRING}}]},
        {"type": "object", "properties": {"a": STRING, "b": STRING}},
        True,
    ),
    (
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": STRING}}}},
        {"type": "object", "properties": {"a": STRING}, "$defs": {"A": {"type": "object", "properties": {"a": STRING}}}},
        False,
    ),
    (
        {"type": "object", "properties": {"a b": STRING, "c": STRING}, "required": ["a b", "c"]},
        {"type": "object", "properties": {"c": STRING}, "required": ["c"]},
        True,
    ),
]


@pytest.mark.parametrize(("schema", "expected", "lost"), TOOL_SCHEMAS)
def test_schemas_of_tools(schema: dict[str, Any] | None, expected: dict[str, Any], lost: bool) -> None:
    wire, words = tool_schema(schema)
    assert wire == expected
    assert bool(words) == lost
    found = written(tools=(Tool("f", "Does.", schema),))
    assert (Feature.SCHEMA in left_out(found)) == lost
    assert (words in found.body["tools"][0]["description"]) or not lost  # type: ignore[index]


def test_strict_tools() -> None:
    tools = tuple(Tool(f"f{n}", "", {"type": "object", "properties": {"a": STRING}}, strict=True) for n in range(22))
    found = written(tools=tools)
    wires: Any = found.body["tools"]
    assert [wire.get("strict") for wire in wires] == [True] * 20 + [None] * 2
    assert wires[0]["input_schema"]["additionalProperties"] is False
    assert left_out(found) == {Feature.STRICT: ["f20", "f21"]}
    assert Feature.STRICT in left_out(written(tools=tools[:1], model=OTHER))
    loose = written(tools=(Tool("f", "", {"type": "object", "properties": {}, "additionalProperties": True}, strict=True),))
    assert "strict" not in loose.body["tools"][0]  # type: ignore[index]
    assert left_out(written(tools=(Tool("f", strict=False),))) == {}


# --- models -----------------------------------------------------------------------------------------------------------

TRAITS: list[tuple[str, str]] = [
    ("claude-opus-5-5", "adaptive system prefill=no sampling=no most=128000"),
    ("claude-opus-4-8", "adaptive system prefill=no sampling=no most=128000"),
    ("claude-opus-4-8@20260528", "adaptive prefill=no sampling=no most=128000"),
    ("us.anthropic.claude-opus-4-8-v1:0", "adaptive prefill=no sampling=no most=128000"),
    ("anthropic/claude-4.7-opus", "adaptive prefill=no sampling=no most=128000"),
    ("claude-sonnet-5", "adaptive prefill=no sampling=no most=128000"),
    ("claude-sonnet-5-5", "adaptive system prefill=no sampling=no most=128000"),
    ("claude-haiku-5-5", "adaptive prefill=no sampling=no most=128000"),
    ("claude-fable-5", "adaptive system prefill=no sampling=no off=no forced=no most=128000"),
    ("claude-mythos-preview", "adaptive prefill=no sampling=no off=no forced=no most=128000"),
    ("claude-opus-4-6", "adaptive budget prefill=no most=128000"),
    ("claude-sonnet-4-6", "adaptive budget prefill=no most=64000"),
    ("claude-opus-4-5-20251101", "budget most=64000"),
    ("claude-sonnet-4-5-20250929", "budget most=64000"),
    ("claude-haiku-4-5", "budget most=64000"),
    ("claude-opus-4-1-20250805", "budget most=32000"),
    ("claude-opus-4-20250514", "budget format=no most=32000"),
    ("claude-sonnet-4-0", "budget format=no most=64000"),
    ("claude-3-7-sonnet-latest", "budget format=no most=64000"),
    ("claude-3-5-haiku-20241022", "format=no most=8192"),
    ("claude-3-haiku-20240307", "format=no most=4096"),
    ("claude-2.1", "adaptive prefill=no sampling=no most=128000"),
    ("claude-next", "adaptive prefill=no sampling=no most=128000"),
    ("glm-4.7", "budget format=no most=0"),
]


@pytest.mark.parametrize(("model", "expected"), TRAITS)
def test_what_a_model_takes(model: str, expected: str) -> None:
    traits = traits_of(model)
    has = [name for name in ("adaptive", "budget", "system") if getattr(traits, name)]
    lacks = [f"{name}=no" for name in ("prefill", "sampling", "off", "format", "forced") if not getattr(traits, name)]
    assert set(expected.split()) == {*has, *lacks, f"most={traits.most}"}


# --- there and back ---------------------------------------------------------------------------------------------------

RECORDED = [
    pytest.param(json.loads(request.raw), id=request.name)
    for request, endpoint in CALLS
    if endpoint.dialect is Dialect.MESSAGES and endpoint.action == "generate"
]


def bare(conversation: Conversation) -> Conversation:
    """Without what is meant to differ: marks, the user, a limit and thinking in the model's own terms, what has no place; who
    says several things in a row says them in one turn."""

    def plain(block: Block) -> Block:
        return block if isinstance(block, Thought) else replace(block, cached=False)

    turns = tuple(
        Message(role, tuple(plain(block) for turn in run for block in turn.blocks))
        for role, run in groupby(conversation.messages, lambda turn: turn.role)
    )
    tools = tuple(
        replace(tool, cached=False, schema=tool.schema or {"type": "object", "properties": {}}) for tool in conversation.tools
    )
    return replace(conversation, messages=turns, tools=tools, user="", others=(), reasoning=Reasoning(), temperature=None)


@pytest.mark.parametrize("body", RECORDED)
def test_a_recorded_call_is_the_same_again(body: dict[str, Any]) -> None:
    endpoint = Endpoint(Dialect.MESSAGES)
    conversation = read(body, endpoint)
    clean = replace(conversation, tools=tuple(tool for tool in conversation.tools if re.fullmatch(r"[\w-]+", tool.name)))
    found = write(clean, model=clean.model if "opus" in clean.model else NEW, session="", maker="anthropic")
    again = read(found.body, endpoint)
    expected = bare(clean)
    assert replace(bare(again), model=expected.model) == expected
    assert (again.reasoning.effort, again.reasoning.adaptive) == (clean.reasoning.effort, clean.reasoning.adaptive) or (
        clean.reasoning.budget is not None or not clean.reasoning.adaptive
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("body", RECORDED)
def test_the_same_history_is_written_to_the_same_bytes(body: dict[str, Any], model: str) -> None:
    conversation = read(body, Endpoint(Dialect.MESSAGES))
    once = orjson.dumps(write(conversation, model=model, session="s", maker="x").body)
    assert once == orjson.dumps(write(read(body, Endpoint(Dialect.MESSAGES)), model=model, session="s", maker="x").body)
    longer = replace(conversation, messages=(*conversation.messages, assistant("ok"), user("more")))
    before: Any = unmarked(orjson.loads(once))
    after: Any = unmarked(write(longer, model=model, session="s", maker="x").body)
    assert after["messages"][: len(before["messages"])] == before["messages"]
    assert (after.get("system"), after.get("tools")) == (before.get("system"), before.get("tools"))


def test_what_was_sealed_here_comes_back_through_a_stranger() -> None:
    word = opaque.wrap(OWN)
    back = opaque.unwrap(word)
    assert messages(user("a"), assistant(Thought("hm", back), "b"), user("c"))[1][1][0]["signature"] == "s"


# --- anything at all --------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["", " ", "\n", "hm", "ä \ud800", "hello there ", "<system-reminder>"])
IDS = st.sampled_from(["", "a", "a", "b.c", "x" * 70, "ä"])
TEXTS = st.builds(Text, WORDS)
PICTURES = st.sampled_from([PNG, Media("file", text="words"), Media("audio", data="AA"), Media("image", url="ftp://x")])
SEALS = st.sampled_from(
    [None, OWN, MINE, Seal(Dialect.GEMINI, "", {"signature": "z"}), Seal(Dialect.MESSAGES, "", {"data": "d"})]
)
THINKING = st.builds(Thought, WORDS, SEALS)
USES = st.builds(ToolUse, IDS, IDS, st.sampled_from(["", "{}", "[1]", '{"a":', '{"a":1}']), st.booleans(), IDS, SEALS)
RESULTS = st.builds(ToolResult, IDS, st.lists(TEXTS | PICTURES, max_size=3).map(tuple), st.booleans())
TURNS = st.one_of(
    st.builds(Message, st.just("system"), st.lists(TEXTS | PICTURES, max_size=2).map(tuple)),
    st.builds(Message, st.just("user"), st.lists(TEXTS | PICTURES | RESULTS, max_size=4).map(tuple)),
    st.builds(Message, st.just("assistant"), st.lists(TEXTS | PICTURES | THINKING | USES, max_size=4).map(tuple)),
)
TOOLS = st.builds(
    Tool, IDS, WORDS, st.none() | st.just(CLOSED), st.none() | st.booleans(), st.sampled_from(["function", "custom"])
)
EFFORTS = st.sampled_from([None, "none", "minimal", "low", "medium", "high", "xhigh", "max"])
CONVERSATIONS = st.builds(
    Conversation,
    st.just("m"),
    st.booleans(),
    st.lists(TURNS, min_size=1, max_size=8).map(tuple),
    tools=st.lists(TOOLS, max_size=3).map(tuple),
    choice=st.none() | st.builds(Choice, st.sampled_from(["auto", "none", "required"]), st.lists(IDS, max_size=2).map(tuple)),
    parallel=st.none() | st.booleans(),
    max_tokens=st.none() | st.integers(1, 200_000),
    temperature=st.none() | st.floats(-1, 3),
    reasoning=st.builds(Reasoning, st.none() | st.booleans(), EFFORTS, st.none() | st.integers(-1, 100_000)),
    format=st.none() | st.sampled_from([Format(), Format(CLOSED)]),
)


def legal(body: dict[str, Any]) -> None:
    """What the API refuses, as far as it can be told from the body alone."""
    found = body["messages"]
    sides = [message for message in found if message["role"] != "system"]
    assert [message["role"] for message in sides] == ["user" if n % 2 == 0 else "assistant" for n in range(len(sides))]
    for before, message in pairwise(found):
        assert message["role"] != "system" or before["role"] == "user"
        assert before["role"] != "system" or message["role"] == "assistant"
    open_ids: list[str] = []
    seen: set[str] = set()
    for message in sides:
        content = message["content"]
        kinds = [block["type"] for block in content]
        assert content
        assert all(block["text"].strip() for block in content if block["type"] == "text")
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        assert sorted(answered) == sorted(open_ids)
        assert kinds[: len(answered)] == ["tool_result"] * len(answered)
        open_ids = [block["id"] for block in content if block["type"] == "tool_use"]
        assert len({*open_ids}) == len(open_ids)
        assert not seen & {*open_ids}
        seen |= {*open_ids}
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id) for id in open_ids)
        if message["role"] == "assistant":
            assert kinds[-1] not in ("thinking", "redacted_thinking")
            assert not {"image", "document", "tool_result"} & {*kinds}
        for block in content:
            if block["type"] == "tool_result" and block.get("is_error"):
                assert isinstance(block["content"], str) or {inner["type"] for inner in block["content"]} == {"text"}
                assert block["content"]
    if found[-1]["role"] == "assistant":
        assert found[-1]["content"][-1].get("text", "x") == found[-1]["content"][-1].get("text", "x").rstrip()
    tools = body.get("tools", [])
    assert len({tool["name"] for tool in tools}) == len(tools)
    assert tools or not seen
    assert "tool_choice" not in body or tools
    assert json.dumps(body).count('"cache_control"') <= 4
    thinking = body.get("thinking", {})
    if thinking.get("type") == "enabled":
        assert 1024 <= thinking["budget_tokens"] < body["max_tokens"]
    if thinking.get("type") in ("enabled", "adaptive"):
        assert body.get("tool_choice", {}).get("type") not in ("any", "tool")
        assert "claude" not in body["model"] or "temperature" not in body


def said(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        yield from (
            value for key, value in body.items() if key in ("text", "content", "data", "input") and isinstance(value, str)
        )
        body = list(body.values())
    for inner in body if isinstance(body, list) else ():
        yield from said(inner)


@settings(max_examples=5_000 if LONG else 133, deadline=None)
@given(CONVERSATIONS, st.sampled_from(MODELS))
def test_whatever_was_meant_is_written_legally(conversation: Conversation, model: str) -> None:
    body: Any = write(conversation, model=model, session="", maker="anthropic").body
    legal(body)
    everything = "\n".join(said(body))
    for turn in conversation.messages:
        for block in turn.blocks:
            inner = block.blocks if isinstance(block, ToolResult) else (block,)
            assert all(part.text.strip() in everything for part in inner if isinstance(part, Text))
