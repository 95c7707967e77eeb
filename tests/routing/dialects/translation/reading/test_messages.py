"""Messages calls as they were meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.calls.editing import DEEPEST
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
    ToolResult,
    ToolUse,
)
from routecodex.routing.dialects.translation.reading.messages import read
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint
from tests.conftest import LONG
from tests.routing.dialects.calls.recorded import CALLS

GENERATE, COUNT = Endpoint(Dialect.MESSAGES), Endpoint(Dialect.MESSAGES, action="count")
RECORDED = [
    pytest.param(json.loads(request.raw), endpoint, id=request.name)
    for request, endpoint in CALLS
    if endpoint.dialect is Dialect.MESSAGES
]
MARK = {"cache_control": {"type": "ephemeral"}}
HI = {"role": "user", "content": "hi"}


def call(*messages: object, **fields: object) -> Conversation:
    return read({"model": "m", "max_tokens": 9, "messages": list(messages or [HI]), **fields}, GENERATE)


def blocks(*parts: object, role: str = "user") -> tuple[Block, ...]:
    (turn,) = call({"role": role, "content": list(parts)}).messages
    assert turn.role == role
    return turn.blocks


def features(conversation: Conversation) -> set[Feature]:
    return {feature for feature, _ in conversation.others}


# --- blocks -----------------------------------------------------------------------------------------------------------


def document(source: object, **fields: object) -> dict[str, object]:
    return {"type": "document", "source": source, **fields}


def image(**source: object) -> dict[str, object]:
    return {"type": "image", "source": source}


PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}

USER_BLOCKS: list[tuple[dict[str, object], list[Block]]] = [
    ({"type": "text", "text": "hi"}, [Text("hi")]),
    ({"type": "text", "text": "hi", **MARK}, [Text("hi", cached=True)]),
    (image(type="base64", media_type="image/png", data="iVBOR"), [Media("image", media_type="image/png", data="iVBOR")]),
    (image(type="url", url="https://x/y.png") | MARK, [Media("image", url="https://x/y.png", cached=True)]),
    (image(type="file", file_id="file_1"), [Media("image", file_id="file_1")]),
    (document(PDF, title="a.pdf"), [Media("file", media_type="application/pdf", data="JVBERi0=", name="a.pdf")]),
    (
        document({"type": "text", "media_type": "text/plain", "data": "words"}),
        [Media("file", media_type="text/plain", text="words")],
    ),
    (document({"type": "url", "url": "https://x/a.pdf"}), [Media("file", media_type="application/pdf", url="https://x/a.pdf")]),
    (document({"type": "file", "file_id": "file_2"}), [Media("file", file_id="file_2")]),
    (document({"type": "content", "content": "words"}), [Media("file", media_type="text/plain", text="words")]),
    (
        document(
            {"type": "content", "content": [{"type": "text", "text": "page"}, image(type="url", url="https://x")]},
            title="book",
            context="found in a drawer",
        ),
        [Text("About the document book: found in a drawer"), Text("book:"), Text("page"), Media("image", url="https://x")],
    ),
    (
        {"type": "search_result", "title": "T", "source": "https://x", "content": [{"type": "text", "text": "found"}]},
        [Text("T\nhttps://x\nfound")],
    ),
    ({"type": "container_upload", "file_id": "file_3"}, [Media("file", file_id="file_3")]),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": "done", "is_error": False, **MARK},
        [ToolResult("t", (Text("done"),), cached=True)],
    ),
    ({"type": "tool_result", "tool_use_id": "t"}, [ToolResult("t", ())]),
    (
        {
            "type": "tool_result",
            "tool_use_id": "t",
            "is_error": True,
            "content": [{"type": "text", "text": "no"}, image(type="base64", media_type="image/gif", data="R0"), document(PDF)],
        },
        [
            ToolResult(
                "t",
                (
                    Text("no"),
                    Media("image", media_type="image/gif", data="R0"),
                    Media("file", media_type="application/pdf", data="JVBERi0="),
                ),
                error=True,
            )
        ],
    ),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "Edit"}]},
        [ToolResult("t", (Text("Tool found: Edit"),))],
    ),
]


LEFT_OUT: list[tuple[dict[str, object], list[Block], tuple[Feature, str]]] = [
    (image(type="hologram"), [], (Feature.FILES, "picture of an unknown source")),
    (
        document({"type": "hologram"}, title="a", context="from afar"),
        [Text("About the document a: from afar")],
        (Feature.FILES, "document of an unknown source"),
    ),
    (
        document({"type": "text", "data": "words"}, context="from afar", citations={"enabled": True}),
        [Text("About the document that follows: from afar"), Media("file", media_type="text/plain", text="words")],
        (Feature.CITATIONS, ""),
    ),
    (
        {"type": "compaction", "content": "what was said", "encrypted_content": "c2ln"},
        [Text("what was said")],
        (Feature.CONTEXT_MANAGEMENT, "seal of a summary"),
    ),
]


@pytest.mark.parametrize(("wire", "neutral", "named"), LEFT_OUT)
def test_what_of_it_no_other_dialect_holds_is_named(
    wire: dict[str, object], neutral: list[Block], named: tuple[Feature, str]
) -> None:
    found = call({"role": "user", "content": [{"type": "text", "text": "hi"}, wire]})
    assert list(found.messages[0].blocks) == [Text("hi"), *neutral]
    assert found.others == (named,)


@pytest.mark.parametrize(("wire", "neutral"), USER_BLOCKS)
def test_what_a_user_says(wire: dict[str, object], neutral: list[Block]) -> None:
    assert list(blocks(wire)) == neutral


ASSISTANT_BLOCKS: list[tuple[dict[str, object], list[Block]]] = [
    (
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        [Thought("hm", Seal(Dialect.MESSAGES, "", {"signature": "sig"}))],
    ),
    ({"type": "thinking", "thinking": "", "signature": "sig"}, [Thought("", Seal(Dialect.MESSAGES, "", {"signature": "sig"}))]),
    ({"type": "thinking", "thinking": "hm", "signature": ""}, [Thought("hm")]),
    ({"type": "redacted_thinking", "data": "xx"}, [Thought("", Seal(Dialect.MESSAGES, "", {"data": "xx"}))]),
    ({"type": "tool_use", "id": "t", "name": "Bash", "input": {"a": [1, "ä"]}}, [ToolUse("t", "Bash", '{"a":[1,"ä"]}')]),
    ({"type": "tool_use", "id": "t", "name": "Bash", "input": {}, **MARK}, [ToolUse("t", "Bash", "{}", cached=True)]),
    ({"type": "compaction", "content": "what was before"}, [Text("what was before")]),
]


@pytest.mark.parametrize(("wire", "neutral"), ASSISTANT_BLOCKS)
def test_what_the_assistant_says(wire: dict[str, object], neutral: list[Block]) -> None:
    assert list(blocks(wire, role="assistant")) == neutral


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "compaction", "content": None},
        {"type": "from_the_future", "payload": 1},
        "",
        7,
    ],
)
def test_what_says_nothing_is_no_block(wire: object) -> None:
    assert blocks(wire, {"type": "text", "text": "end"}, role="assistant") == (Text("end"),)


def test_an_unknown_block_is_named_and_its_text_kept() -> None:
    found = call({"role": "user", "content": [{"type": "new", "text": "words"}, {"type": "newer"}]})
    assert found.messages == (Message("user", (Text("words"),)),)
    assert found.others == ((Feature.OTHER, "newer block"),)


def test_results_know_their_tool_and_stand_first() -> None:
    found = call(
        HI,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "reminder"},
                {"type": "tool_result", "tool_use_id": "t1", "content": "a"},
                {"type": "tool_result", "tool_use_id": "lost", "content": "b"},
            ],
        },
    )
    assert found.messages[2].blocks == (
        ToolResult("t1", (Text("a"),), name="Read"),
        ToolResult("lost", (Text("b"),)),
        Text("reminder"),
    )


# --- seals ------------------------------------------------------------------------------------------------------------

THOUGHT = Seal(Dialect.RESPONSES, "openai", {"encrypted_content": "gAAA"})
CALL = Seal(Dialect.GEMINI, "google", {"for": "call", "signature": "c2ln"})


def test_a_wrapped_seal_is_itself_again() -> None:
    assert blocks(
        {"type": "thinking", "thinking": "hm", "signature": opaque.wrap(THOUGHT)},
        {"type": "redacted_thinking", "data": opaque.wrap(THOUGHT)},
        role="assistant",
    ) == (Thought("hm", THOUGHT), Thought("", THOUGHT))


def test_the_seal_of_a_call_goes_back_to_the_call() -> None:
    sealed = {"type": "thinking", "thinking": "", "signature": opaque.wrap(CALL)}
    calls = [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in "ab"]
    assert blocks(calls[0], sealed, calls[1], role="assistant") == (
        ToolUse("a", "f", "{}"),
        ToolUse("b", "f", "{}", seal=CALL),
    )
    assert blocks({**sealed, "thinking": "aloud"}, {"type": "text", "text": "x"}, calls[0], role="assistant") == (
        Thought("aloud"),
        Text("x"),
        ToolUse("a", "f", "{}", seal=CALL),
    )


# --- tools that the provider ran --------------------------------------------------------------------------------------


def served(name: str, given: object, result: object, kind: str = "") -> list[dict[str, object]]:
    return [
        {"type": "server_tool_use", "id": "s", "name": name, "input": given},
        {"type": f"{kind or name}_tool_result", "tool_use_id": "s", "content": result},
    ]


SERVED: list[tuple[list[dict[str, object]], str]] = [
    (
        served(
            "web_search",
            {"query": "weather"},
            [{"type": "web_search_result", "title": "Sun", "url": "https://s", "encrypted_content": "EqSECRET"}],
        ),
        "web_search was used for weather. It brought:\n- Sun (https://s)",
    ),
    (
        served("web_search", {"query": "x"}, {"type": "web_search_tool_result_error", "error_code": "too_many_requests"}),
        "web_search was used for x. It brought:\nan error: too_many_requests",
    ),
    (
        served(
            "web_fetch",
            {"url": "https://s"},
            {
                "type": "web_fetch_result",
                "url": "https://s",
                "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "It shines."}},
            },
        ),
        "web_fetch was used for https://s. It brought:\nhttps://s\nIt shines.",
    ),
    (
        served(
            "bash_code_execution",
            {"command": "ls"},
            {"type": "bash_code_execution_result", "stdout": "a\n", "stderr": "oh", "return_code": 1, "content": []},
        ),
        "bash_code_execution was used for ls. It brought:\na\n\noh",
    ),
    (
        served(
            "tool_search_tool_regex",
            {"pattern": "edit", "limit": 3},
            {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "Edit"}]},
            "tool_search",
        ),
        'tool_search_tool_regex was used for {"pattern":"edit","limit":3}. It brought:\n- Edit',
    ),
    (
        [
            {"type": "mcp_tool_use", "id": "m", "name": "look", "server_name": "eyes", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "m", "content": [{"type": "text", "text": "dark"}]},
        ],
        "look of eyes was used. It brought:\ndark",
    ),
    (served("web_search", {"query": "x"}, [])[:1], "web_search was used for x. No result is known."),
    (served("web_search", {}, [])[1:], "A tool was used. It brought:\nnothing"),
]


@pytest.mark.parametrize(("parts", "told"), SERVED)
def test_what_a_tool_of_the_providers_brought_is_told(parts: list[dict[str, object]], told: str) -> None:
    found = call({"role": "assistant", "content": parts})
    assert found.messages[0].blocks == (Text(told),)
    assert features(found) == {Feature.SERVER_RESULTS}
    assert "SECRET" not in repr(found)


def test_a_very_long_result_is_cut_and_says_so() -> None:
    (block,) = blocks(*served("web_search", {"query": "x"}, [{"text": "a" * 30_000}]), role="assistant")
    assert isinstance(block, Text)
    assert len(block.text) < 20_200
    assert block.text.endswith("(cut: 10000 more characters)")


# --- system -----------------------------------------------------------------------------------------------------------

BILLING = "x-anthropic-billing-header: cc_version=2; cch=1;"


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("Be kind.", (Text("Be kind."),)),
        (f"{BILLING}\nBe kind.", (Text("Be kind."),)),
        (
            [{"type": "text", "text": BILLING}, {"type": "text", "text": "Be kind.", **MARK}],
            (Text("Be kind.", cached=True),),
        ),
    ],
)
def test_instructions(system: object, expected: tuple[Block, ...]) -> None:
    found = call(system=system)
    assert found.messages == (Message("system", expected), Message("user", (Text("hi"),)))
    assert "cch" not in repr(found.messages)


@pytest.mark.parametrize("system", [None, "", [], [{"type": "text", "text": BILLING}], BILLING])
def test_no_instructions(system: object) -> None:
    assert call(system=system).messages == (Message("user", (Text("hi"),)),)


def test_system_messages_stand_where_they_were_said() -> None:
    found = call(HI, {"role": "system", "content": "be quick"}, {"role": "assistant", "content": "ok"}, HI)
    assert [turn.role for turn in found.messages] == ["user", "system", "assistant", "user"]
    assert found.messages[1].blocks == (Text("be quick"),)


def test_a_system_message_for_one_turn_is_gone_in_the_next() -> None:
    once = {"role": "system", "content": "just now", "clear_at": "next_user_message"}
    assert [turn.role for turn in call(HI, once).messages] == ["user", "system"]
    assert [turn.role for turn in call(HI, once, {"role": "assistant", "content": "ok"}, HI).messages] == [
        "user",
        "assistant",
        "user",
    ]


# --- the wishes -------------------------------------------------------------------------------------------------------

WISHES: list[tuple[dict[str, object], Reasoning]] = [
    ({}, Reasoning()),
    ({"thinking": {"type": "disabled"}}, Reasoning(on=False)),
    ({"thinking": {"type": "between_tools"}}, Reasoning(on=False)),
    ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, Reasoning(on=True, budget=2048)),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "summarized"}},
        Reasoning(on=True, budget=2048, shown=True),
    ),
    ({"thinking": {"type": "adaptive", "display": "omitted"}}, Reasoning(on=True, adaptive=True, shown=False)),
    ({"output_config": {"effort": "xhigh"}}, Reasoning(effort="xhigh")),
    ({"output_config": {"effort": "enormous"}}, Reasoning()),
    ({"thinking": 3, "output_config": []}, Reasoning()),
]


@pytest.mark.parametrize(("fields", "expected"), WISHES)
def test_thinking(fields: dict[str, object], expected: Reasoning) -> None:
    assert call(**fields).reasoning == expected


def test_the_effort_of_this_turn_beats_that_of_the_call() -> None:
    system = {"role": "system", "content": "x", "output_config": {"effort": "low"}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}
    answer = {"role": "assistant", "content": "ok"}
    whole = {"output_config": {"effort": "max"}}
    assert call(HI, system, **whole).reasoning.effort == "low"
    assert call(HI, system, answer, result, **whole).reasoning.effort == "low"
    assert call(HI, system, answer, HI, **whole).reasoning.effort == "max"


@pytest.mark.parametrize(
    ("raw", "choice", "parallel"),
    [
        (None, None, None),
        ({"type": "auto"}, Choice("auto"), None),
        ({"type": "any", "disable_parallel_tool_use": True}, Choice("required"), False),
        ({"type": "tool", "name": "f", "disable_parallel_tool_use": False}, Choice("required", ("f",)), True),
        ({"type": "none"}, Choice("none"), None),
        ({"type": "unheard of"}, None, None),
    ],
)
def test_which_tools_to_call(raw: object, choice: Choice | None, parallel: bool | None) -> None:
    found = call(tool_choice=raw)
    assert (found.choice, found.parallel) == (choice, parallel)


def test_limits_and_sampling() -> None:
    found = call(temperature=0, top_p=0.5, top_k=40, stop_sequences=["END", 3], stream=True, metadata={"user_id": "u"})
    assert (found.model, found.stream, found.max_tokens) == ("m", True, 9)
    assert (found.temperature, found.top_p, found.top_k, found.stops, found.user) == (0.0, 0.5, 40, ("END",), "u")
    odd = call(temperature="warm", top_p=True, top_k=-1, stop_sequences="END", stream="yes", metadata=1, max_tokens=10**400)
    assert (odd.temperature, odd.top_p, odd.top_k, odd.stops, odd.stream, odd.max_tokens) == (None, None, None, (), False, None)
    assert call(temperature=10**400).temperature is None


@pytest.mark.parametrize("place", ["output_config", "output_format"])
def test_structured_output(place: str) -> None:
    wanted = {"type": "json_schema", "schema": {"type": "object"}}
    assert call(**{place: {"format": wanted} if place == "output_config" else wanted}).format == Format({"type": "object"})


def test_what_has_no_place_is_named() -> None:
    found = call(
        {"role": "user", "content": [{"type": "text", "text": "x", "citations": [{"type": "char_location"}]}]},
        context_management={"edits": []},
        container="c",
        mcp_servers=[{"url": "https://m"}],
        service_tier="auto",
        cache_control={"type": "ephemeral"},
        diagnostics=None,
        speed="fast",
        output_config={"task_budget": {"total": 1}},
    )
    assert set(found.others) == {
        (Feature.CITATIONS, ""),
        (Feature.CONTEXT_MANAGEMENT, ""),
        (Feature.OTHER, "container"),
        (Feature.SERVER_TOOLS, ""),
        (Feature.SERVICE_TIER, ""),
        (Feature.CACHE_MARKS, ""),
        (Feature.OTHER, "speed"),
        (Feature.OTHER, "task_budget"),
    }


@pytest.mark.parametrize("on", [True, False])
def test_citations_that_are_wanted_are_named(on: bool) -> None:
    wanted = {"citations": {"enabled": on}}
    found = {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "x"}], **wanted}
    for part in (document(PDF, **wanted), found):
        assert features(call({"role": "user", "content": [part]})) == ({Feature.CITATIONS} if on else set())


# --- tools ------------------------------------------------------------------------------------------------------------


def test_tools() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    web = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    tools = call(
        tools=[
            {"name": "f", "description": "does f", "input_schema": schema, "strict": True, "eager_input_streaming": True},
            {"type": "custom", "name": "g", **MARK},
            {**web, **MARK},
            {"type": "code_execution_20260521", "name": "code_execution"},
            {"type": "computer_toolset_20260801"},
            {"type": "mcp_toolset", "mcp_server_name": "m"},
            "rubbish",
        ]
    ).tools
    assert tools == (
        Tool("f", "does f", schema, strict=True),
        Tool("g", cached=True),
        Tool("web_search", kind="server", server="web_search", native=web, cached=True),
        Tool(
            "code_execution",
            kind="server",
            server="code_execution",
            native={"type": "code_execution_20260521", "name": "code_execution"},
        ),
        Tool("computer_toolset_20260801", kind="server", server="computer", native={"type": "computer_toolset_20260801"}),
        Tool("mcp_toolset", kind="server", native={"type": "mcp_toolset", "mcp_server_name": "m"}),
    )


@pytest.mark.parametrize("kind", ["bash_20250124", "text_editor_20250728", "text_editor_20250124", "memory_20250818"])
def test_a_tool_that_the_client_runs_is_a_function_to_others(kind: str) -> None:
    (tool,) = call(tools=[{"type": kind, "name": "n"}]).tools
    assert (tool.kind, tool.name, tool.native) == ("function", "n", {"type": kind, "name": "n"})
    assert tool.description
    assert isinstance(tool.schema, dict)
    assert "command" in tool.schema["properties"]  # type: ignore[operator]


def change(kind: str, tool: object) -> dict[str, object]:
    return {"role": "system", "content": [{"type": f"tool_{kind}", "tool": tool}]}


def reference(name: str) -> dict[str, object]:
    return {"type": "tool_reference", "name": name}


def test_tools_change_on_the_way() -> None:
    new = {"type": "tool_definition", "definition": {"name": "new", "description": "late"}}
    folded = {"role": "assistant", "content": [{"type": "compaction", "content": "x", "tool_changes": []}]}
    folded["content"][0]["tool_changes"] = change("removal", reference("c"))["content"]  # type: ignore[index]
    found = call(
        HI,
        change("removal", reference("a")),
        change("removal", reference("b")),
        change("addition", new),
        change("addition", reference("a")),
        change("addition", reference("unknown")),
        change("removal", {"type": "mcp_tool_reference"}),
        folded,
        HI,
        tools=[{"name": name} for name in "abc"],
    )
    assert sorted(tool.name for tool in found.tools) == ["a", "new"]
    assert [turn.role for turn in found.messages] == ["user", "assistant", "user"]
    assert found.others == ()


# --- recorded calls ---------------------------------------------------------------------------------------------------


def texts(value: object) -> Iterator[str]:
    """Every text that somebody said in the recorded body."""
    if isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, dict):
        yield from texts(value.get("content"))
        if isinstance(value.get("text"), str):
            yield value["text"]
        if isinstance(value.get("input"), dict):
            yield json.dumps(value["input"], separators=(",", ":"), ensure_ascii=False)
    elif isinstance(value, str):
        yield value


def heard(blocks: tuple[Block, ...]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text() | Thought():
                yield block.text
            case ToolUse():
                yield block.arguments
            case ToolResult():
                yield from heard(block.blocks)


@pytest.mark.parametrize(("body", "endpoint"), RECORDED)
def test_a_recorded_call_loses_no_text(body: dict[str, Any], endpoint: Endpoint) -> None:
    found = read(body, endpoint)
    said = [text for text in (*texts(body.get("system")), *texts(body["messages"])) if not text.startswith("x-anthropic-billing")]
    assert sorted(text for turn in found.messages for text in heard(turn.blocks)) == sorted(said)
    assert [tool.name for tool in found.tools] == [tool["name"] for tool in body.get("tools", [])]
    assert found.max_tokens == body.get("max_tokens")
    assert found.reasoning.effort == body.get("output_config", {}).get("effort")
    assert (found.format is not None) == ("format" in body.get("output_config", {}))
    assert Feature.OTHER not in {feature for feature, what in found.others if what.endswith("block")}


def test_a_recorded_tool_hop_of_claude_code() -> None:
    body = next(json.loads(request.raw) for request, _ in CALLS if request.name == "claude-code/05-messages-tool-result-turn")
    found = read(body, GENERATE)
    assert [turn.role for turn in found.messages] == ["system", "user", "system", "assistant", "user"]
    assert [len(turn.blocks) for turn in found.messages] == [3, 2, 1, 2, 1]
    assert found.messages[-1].blocks == (
        ToolResult("toolu_lab718f8ef14b584015", (Text("LAB_TOOL_OUTPUT"),), name="Bash", cached=True),
    )
    assert found.reasoning == Reasoning(on=True, effort="medium", adaptive=True, shown=False)
    assert features(found) == {Feature.METADATA, Feature.CONTEXT_MANAGEMENT, Feature.OTHER}
    assert json.loads(found.user)["session_id"]


# --- what cannot be read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages"),
        ({"messages": [{"role": "user", "content": 7}]}, "content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"messages": [HI], "max_tokens": 0}, "max_tokens"),
    ],
)
def test_refused(body: dict[str, object], why: str) -> None:
    with pytest.raises(BadCall, match=why) as refusal:
        read(body, GENERATE)
    assert refusal.value.status == 400


def test_counting_needs_no_limit() -> None:
    assert read({"messages": [HI], "max_tokens": 0}, COUNT).max_tokens == 0


NAMES = (
    "type role content text id name input tool_use_id source data url title messages system tools tool thinking signature"
    " output_config effort format schema definition tool_changes cache_control budget_tokens citations is_error"
)
KINDS = (
    "user assistant system text image document thinking redacted_thinking tool_use tool_result server_tool_use base64 content"
    " web_search_tool_result mcp_tool_result compaction tool_addition tool_removal bash_20250124 enabled json_schema \ud800"
)
KEYS, WORDS = st.sampled_from(NAMES.split()), st.sampled_from(KINDS.split())
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=30)


@settings(max_examples=5_000 if LONG else 80, deadline=None)
@given(st.dictionaries(KEYS, VALUES), st.lists(st.dictionaries(KEYS, VALUES), max_size=4))
def test_any_json_is_read_or_refused(body: dict[str, object], messages: list[dict[str, object]]) -> None:
    for message in messages:
        message["role"] = "assistant" if len(message) % 2 else "user"
    for value in (body, {**body, "messages": messages}):
        try:
            found = read(value, GENERATE)
        except BadCall:
            continue
        assert isinstance(found, Conversation)


def test_deep_nesting_is_read() -> None:
    source: dict[str, object] = {"type": "text", "data": "deep"}
    for _ in range(DEEPEST // 4):
        source = {"type": "content", "content": [document(source)]}
    assert blocks(document(source)) == (Media("file", media_type="text/plain", text="deep"),)
