"""OpenAI Responses: what a client's call says, in neutral words."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from routecodex.routing.dialects.translation.reading.responses import read
from routecodex.routing.errors import BadCall, RouteCodexError
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.calls.recorded import CALLS

HERE = Endpoint(Dialect.RESPONSES)
RECORDED = [(recorded.name, json.loads(recorded.raw)) for recorded, at in CALLS if at.dialect is Dialect.RESPONSES]
PDF = b64encode(b"%PDF-1.7 small").decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def call(*items: object, **fields: object) -> dict[str, Any]:
    return {"model": "gpt-5", "input": list(items), **fields}


def user(*content: object) -> dict[str, object]:
    return {"type": "message", "role": "user", "content": list(content)}


def said(text: str) -> dict[str, object]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def used(id: str, name: str = "look", arguments: str = "{}", **fields: object) -> dict[str, object]:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, **fields}


def brought(id: str, output: object) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": id, "output": output}


def turns(*items: object, **fields: object) -> list[tuple[str, list[Block]]]:
    return [(turn.role, list(turn.blocks)) for turn in read(call(*items, **fields), HERE).messages]


def tools(*declared: object) -> tuple[Tool, ...]:
    return read(call("hi", tools=list(declared)) | {"input": "hi"}, HERE).tools


def named(conversation: Conversation) -> set[tuple[Feature, str]]:
    return set(conversation.others)


# --- turns ------------------------------------------------------------------------------------------------------------


def test_an_input_of_one_text_is_one_user_turn() -> None:
    conversation = read({"model": "gpt-5", "input": "hello", "instructions": "be kind", "stream": True}, HERE)
    assert conversation == Conversation(
        model="gpt-5", stream=True, messages=(Message("system", (Text("be kind"),)), Message("user", (Text("hello"),)))
    )


def test_developer_and_system_messages_are_system_turns_where_they_stand() -> None:
    assert turns(
        {"role": "developer", "content": "one"},
        {"role": "system", "content": [{"type": "input_text", "text": "two"}]},
        user({"type": "input_text", "text": "hi"}),
        {"type": "message", "role": "developer", "content": "three"},
    ) == [("system", [Text("one")]), ("system", [Text("two")]), ("user", [Text("hi")]), ("system", [Text("three")])]


def test_what_the_model_said_in_a_row_is_one_turn_and_so_are_its_results_with_the_text_behind_them() -> None:
    found = turns(
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        said("I look."),
        used("c1", arguments='{"a": 1}'),
        used("c2", "find"),
        brought("c1", "one"),
        brought("c2", [{"type": "input_text", "text": "two"}]),
        {"role": "user", "content": "and now?"},
        {"role": "user", "content": "well?"},
        said("Done."),
    )
    seal = Seal(Dialect.RESPONSES, "", {"summary": [], "id": "rs_1", "encrypted_content": "gAAAA"})
    assert found == [
        ("user", [Text("go")]),
        (
            "assistant",
            [Thought("", seal), Text("I look."), ToolUse("c1", "look", '{"a": 1}'), ToolUse("c2", "find", "{}")],
        ),
        (
            "user",
            [ToolResult("c1", (Text("one"),), name="look"), ToolResult("c2", (Text("two"),), name="find"), Text("and now?")],
        ),
        ("user", [Text("well?")]),
        ("assistant", [Text("Done.")]),
    ]


def test_a_refusal_is_text_and_empty_text_is_nothing() -> None:
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    empty = user({"type": "input_text", "text": ""})
    assert turns({"role": "user", "content": "go"}, refused, empty, {"role": "user", "content": ""}) == [
        ("user", [Text("go")]),
        ("assistant", [Text("no")]),
    ]


def test_a_role_nobody_knows_is_the_users_and_named() -> None:
    conversation = read(call({"role": "critic", "content": "hm"}), HERE)
    assert conversation.messages == (Message("user", (Text("hm"),)),)
    assert named(conversation) == {(Feature.OTHER, "role critic")}


def test_messages_between_agents_say_who_wrote_them() -> None:
    item = {
        "type": "agent_message",
        "author": "/root",
        "recipient": "/root/tester",
        "content": [{"type": "input_text", "text": "look there"}, {"type": "encrypted_content", "encrypted_content": "g"}],
    }
    conversation = read(call(item), HERE)
    assert conversation.messages == (Message("user", (Text("Message from /root to /root/tester:"), Text("look there"))),)
    assert named(conversation) == {(Feature.OTHER, "sealed parts, which only their maker can read")}


def test_an_item_nobody_knows_is_named_and_its_text_is_kept() -> None:
    conversation = read(call({"type": "novelty", "content": [{"type": "input_text", "text": "hi"}]}, {"type": "empty"}), HERE)
    assert conversation.messages == (Message("user", (Text("hi"),)),)
    assert named(conversation) == {(Feature.OTHER, "item novelty"), (Feature.OTHER, "item empty")}


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part, media",
    [
        (
            {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "high"},
            Media("image", "image/png", data="iVBO", detail="high"),
        ),
        ({"type": "input_image", "image_url": "https://x.test/a.png"}, Media("image", url="https://x.test/a.png")),
        ({"type": "input_image", "image_url": {"url": "https://x.test/a"}}, Media("image", url="https://x.test/a")),
        ({"type": "input_image", "file_id": "file-1", "detail": "auto"}, Media("image", file_id="file-1", detail="auto")),
        ({"type": "input_image", "image_url": "data:,a%20b"}, Media("image", data=b64encode(b"a b").decode())),
        (
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
            Media("file", "application/pdf", data=PDF, name="a.pdf"),
        ),
        ({"type": "input_file", "filename": "a.PDF", "file_data": PDF}, Media("file", "application/pdf", data=PDF, name="a.PDF")),
        ({"type": "input_file", "file_data": PDF}, Media("file", "application/pdf", data=PDF)),
        ({"type": "input_file", "file_url": "https://x.test/a.pdf"}, Media("file", url="https://x.test/a.pdf")),
        ({"type": "input_file", "file_id": "file-2"}, Media("file", file_id="file-2")),
        ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}}, Media("audio", "audio/mp3", data="UklG")),
        (
            {"type": "input_audio", "input_audio": {"data": "data:;base64,UklG", "format": "mp3"}},
            Media("audio", "audio/mp3", data="UklG"),
        ),
        (
            {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}},
            Text("hi", cached=True),
        ),
    ],
)
def test_parts(part: dict[str, object], media: Media | Text) -> None:
    assert turns(user(part)) == [("user", [media])]
    assert turns(used("c"), brought("c", [part]))[1] == ("user", [ToolResult("c", (media,), name="look")])


def test_parts_that_are_not_known_are_named() -> None:
    conversation = read(call(user({"type": "hologram"}, {"type": "input_image"}, "plain", 5)), HERE)
    assert conversation.messages == (Message("user", (Text("plain"),)),)
    assert named(conversation) == {
        (Feature.OTHER, "part hologram"),
        (Feature.OTHER, "part input_image"),
        (Feature.OTHER, "part of no type"),
    }


def test_citations_are_named() -> None:
    cited = said("see there")
    cited["content"][0]["annotations"] = [{"type": "url_citation", "url": "https://x.test"}]  # type: ignore[index]
    assert (Feature.CITATIONS, "") in named(read(call(cited), HERE))


# --- reasoning --------------------------------------------------------------------------------------------------------


def test_a_sealed_thought_keeps_what_its_maker_needs() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        "content": None,
        "encrypted_content": "gAAAA",
        "status": None,
    }
    payload = {"summary": item["summary"], "id": "rs_1", "encrypted_content": "gAAAA"}
    assert turns(item, said("x"))[0][1][0] == Thought("a\n\nb", Seal(Dialect.RESPONSES, "", payload))


def test_a_thought_that_nobody_sealed_is_its_own_text() -> None:
    raw = {"type": "reasoning", "summary": [{"text": "short"}], "content": [{"type": "reasoning_text", "text": "long"}]}
    assert turns(raw, {"type": "reasoning", "id": "rs_2", "summary": []}, said("x")) == [
        ("assistant", [Thought("long"), Text("x")])
    ]


def test_a_foreign_seal_comes_back_as_what_it_was() -> None:
    seal = Seal(Dialect.MESSAGES, "anthropic", {"signature": "EqQB"})
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": opaque.wrap(seal)}
    assert turns(item, said("x"))[0] == ("assistant", [Thought("hm", seal), Text("x")])


def test_a_seal_of_a_call_belongs_to_the_call_behind_it() -> None:
    seal = Seal(Dialect.GEMINI, "google", {"for": "call", "thoughtSignature": "abc"})
    item = {"type": "reasoning", "summary": [], "encrypted_content": opaque.wrap(seal)}
    found = turns(said("I look."), item, used("c1"), used("c2"))
    assert found == [
        ("assistant", [Text("I look."), ToolUse("c1", "look", "{}", seal=seal), ToolUse("c2", "look", "{}")]),
    ]
    # one that has lost its call seals no other
    assert turns(item, {"role": "user", "content": "hi"}, used("c1"))[1] == ("assistant", [ToolUse("c1", "look", "{}")])


def test_a_compacted_history_is_a_seal_without_words_and_named() -> None:
    conversation = read(
        call({"type": "compaction", "id": "cmp_1", "encrypted_content": "g"}, {"role": "user", "content": "hi"}), HERE
    )
    payload = {"type": "compaction", "encrypted_content": "g", "id": "cmp_1"}
    assert conversation.messages[0] == Message("assistant", (Thought("", Seal(Dialect.RESPONSES, "", payload)),))
    assert named(conversation) == {(Feature.OTHER, "compacted history, which only its maker can read")}


# --- calls and results ------------------------------------------------------------------------------------------------


def test_free_text_calls_and_their_results() -> None:
    found = turns(
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done"},
    )
    assert found == [
        ("assistant", [ToolUse("c1", "apply_patch", "*** Begin Patch", custom=True)]),
        ("user", [ToolResult("c1", (Text("Done"),), custom=True, name="apply_patch")]),
    ]


def test_calls_in_a_namespace() -> None:
    found = turns(used("c1", "sleep", namespace="clock"), used("c2", "wait", namespace="functions"))
    assert found == [("assistant", [ToolUse("c1", "sleep", "{}", namespace="clock"), ToolUse("c2", "wait", "{}")])]


@pytest.mark.parametrize(
    "asked, answered, use, blocks, error",
    [
        (
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "c",
                "action": {"type": "exec", "command": ["ls"], "env": {}, "user": None},
            },
            {"type": "local_shell_call_output", "id": "c", "output": "a.py"},
            ToolUse("c", "local_shell", '{"command":["ls"]}'),
            (Text("a.py"),),
            False,
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls", "no"]}},
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [
                    {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                    {"stdout": "", "stderr": "no: not found", "outcome": {"type": "exit", "exit_code": 127}},
                    {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
                ],
            },
            ToolUse("c", "shell", '{"commands":["ls","no"]}'),
            (Text("a.py\nno: not found\n(exit code 127)\n(timed out)"),),
            False,
        ),
        (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed"},
            ToolUse("c", "apply_patch", '{"type":"delete_file","path":"a"}'),
            (Text("The patch failed."),),
            True,
        ),
        (
            {"type": "computer_call", "id": "cu", "call_id": "c", "action": {"type": "screenshot"}},
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": "https://x.test/s"},
            },
            ToolUse("c", "computer", '{"type":"screenshot"}'),
            (Media("image", url="https://x.test/s"),),
            False,
        ),
    ],
)
def test_the_tools_of_openai_itself(asked: Any, answered: Any, use: ToolUse, blocks: Any, error: bool) -> None:
    assert turns(asked, answered) == [
        ("assistant", [use]),
        ("user", [ToolResult("c", blocks, error, name=use.name)]),
    ]


def test_results_without_an_id_belong_to_the_oldest_call_that_waits() -> None:
    found = turns(
        used("c1"),
        used("c2", "find"),
        {"type": "function_call_output", "name": "find", "output": "two"},
        {"type": "function_call_output", "output": {"one": 1}},
    )
    assert found[1] == (
        "user",
        [ToolResult("c2", (Text("two"),), name="find"), ToolResult("c1", (Text('{"one":1}'),), name="look")],
    )


def test_calls_without_ids_and_with_arguments_of_other_forms() -> None:
    found = turns(
        {"type": "function_call", "id": "fc_1", "name": "a", "arguments": {"x": 1}},
        {"type": "function_call", "name": "b", "arguments": ""},
    )
    assert found == [("assistant", [ToolUse("fc_1", "a", '{"x":1}'), ToolUse("call_1", "b", "{}")])]


def test_what_the_providers_own_tools_brought_is_named_but_a_picture_is_kept() -> None:
    conversation = read(
        call(
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "x"}},
            {"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []},
            {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "iVBORw0KGgo="},
            {"type": "image_generation_call", "id": "ih", "status": "failed", "result": None},
        ),
        HERE,
    )
    assert conversation.messages == (Message("assistant", (Media("image", "image/png", data="iVBORw0KGgo="),)),)
    assert named(conversation) == {
        (Feature.SERVER_RESULTS, kind) for kind in ("web_search_call", "mcp_list_tools", "image_generation_call")
    }


# --- tools ------------------------------------------------------------------------------------------------------------


def test_functions_and_free_text_tools() -> None:
    patch = {"type": "custom", "name": "apply_patch", "description": "edits", "format": {"type": "grammar", "syntax": "lark"}}
    assert tools(
        {"type": "function", "name": "weather", "description": "w", "parameters": SCHEMA, "strict": True},
        {"type": "function", "name": "plain", "parameters": None},
        {"type": "function", "function": {"name": "chat", "parameters": SCHEMA}},
        patch,
    ) == (
        Tool("weather", "w", SCHEMA, True),
        Tool("plain"),
        Tool("chat", "", SCHEMA),
        Tool("apply_patch", "edits", kind="custom", native=patch),
    )


def test_tools_inside_the_input_and_in_namespaces() -> None:
    carried = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [
            {"type": "namespace", "name": "functions", "description": "", "tools": [{"type": "custom", "name": "exec"}]},
            {
                "type": "namespace",
                "name": "clock",
                "description": "Waiting.",
                "tools": [
                    {"type": "function", "name": "sleep", "description": "Sleeps.", "parameters": SCHEMA},
                    {"type": "function", "name": "now", "parameters": SCHEMA},
                ],
            },
        ],
    }
    conversation = read(call(carried, {"role": "user", "content": "hi"}, tools=[{"type": "function", "name": "sleep"}]), HERE)
    assert conversation.messages == (Message("user", (Text("hi"),)),)
    assert conversation.tools == (
        Tool("sleep"),
        Tool("exec", kind="custom", native={"type": "custom", "name": "exec"}),
        Tool("sleep", "Tools of `clock`: Waiting.\n\nSleeps.", SCHEMA, namespace="clock"),
        Tool("now", "", SCHEMA, namespace="clock"),
    )


def test_a_tool_declared_again_keeps_its_place_and_takes_its_new_form() -> None:
    first, again = ({"type": "function", "name": "a", "description": text} for text in ("old", "new"))
    assert [(tool.name, tool.description) for tool in tools(first, {"type": "function", "name": "b"}, again)] == [
        ("a", "new"),
        ("b", ""),
    ]


def test_tools_that_a_search_found_are_declared() -> None:
    found = {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function", "name": "deep", "parameters": SCHEMA}]}
    conversation = read(call({"type": "tool_search_call", "call_id": "c", "arguments": {"query": "deep"}}, found), HERE)
    assert conversation.tools == (Tool("deep", "", SCHEMA),)
    assert conversation.messages[1].blocks == (ToolResult("c", (Text("Found tools: deep"),), name="tool_search"),)


@pytest.mark.parametrize(
    "native, name, server",
    [
        ({"type": "web_search", "filters": {"allowed_domains": ["x.test"]}}, "web_search", "web_search"),
        ({"type": "web_search_preview_2025_03_11"}, "web_search_preview_2025_03_11", "web_search"),
        ({"type": "file_search", "vector_store_ids": ["vs"]}, "file_search", "file_search"),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, "code_interpreter", "code_execution"),
        ({"type": "image_generation"}, "image_generation", "image_generation"),
        ({"type": "computer_use_preview", "display_width": 1}, "computer_use_preview", "computer"),
        ({"type": "mcp", "server_label": "docs", "server_url": "https://x.test"}, "docs", ""),
        ({"type": "shell", "environment": {"type": "container_auto"}}, "shell", "code_execution"),
    ],
)
def test_tools_that_the_provider_runs(native: dict[str, object], name: str, server: Any) -> None:
    assert tools(native) == (Tool(name, kind="server", server=server, native=native),)


@pytest.mark.parametrize("kind", ["local_shell", "shell", "apply_patch"])
def test_tools_of_openai_that_the_client_runs_are_functions(kind: str) -> None:
    (tool,) = tools({"type": kind})
    assert (tool.name, tool.kind, tool.native) == (kind, "function", {"type": kind})
    assert tool.schema is not None
    assert set(tool.schema["required"]) <= set(tool.schema["properties"])  # type: ignore[call-overload, arg-type]


def test_what_is_no_tool_is_named() -> None:
    body = {
        "input": "hi",
        "tools": [{"name": "x"}, {"type": "function"}, 5, {"type": "function", "name": "y", "output_schema": {"a": 1}}],
    }
    conversation = read(body, HERE)
    assert conversation.tools == (Tool("y"),)
    assert named(conversation) == {
        (Feature.OTHER, "tool x of no type"),
        (Feature.OTHER, "tool  of no type"),
        (Feature.OTHER, "tool without a name"),
        (Feature.OTHER, "output_schema of tools"),
    }


@pytest.mark.parametrize(
    "given, choice",
    [
        (None, None),
        ("auto", Choice()),
        ("none", Choice("none")),
        ("required", Choice("required")),
        ({"type": "function", "name": "a"}, Choice("required", ("a",))),
        ({"type": "function", "function": {"name": "a"}}, Choice("required", ("a",))),
        ({"type": "custom", "name": "c"}, Choice("required", ("c",))),
        ({"type": "web_search_preview"}, Choice("required", ("web_search",))),
        ({"type": "mcp", "server_label": "docs", "name": "find"}, Choice("required", ("docs",))),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "a"}, {"type": "web_search"}]},
            Choice("auto", ("a", "web_search")),
        ),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "namespace", "name": "n"}]},
            Choice("required", ("inner",)),
        ),
    ],
)
def test_choices(given: object, choice: Choice | None) -> None:
    declared = [
        {"type": "function", "name": "a"},
        {"type": "custom", "name": "c"},
        {"type": "web_search"},
        {"type": "mcp", "server_label": "docs"},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "inner"}]},
    ]
    assert read({"input": "hi", "tools": declared, "tool_choice": given}, HERE).choice == choice


@pytest.mark.parametrize("given", ["sometimes", 5, {"type": "programmatic_tool_calling"}])
def test_a_choice_nobody_knows_is_named(given: object) -> None:
    conversation = read({"input": "hi", "tool_choice": given}, HERE)
    assert conversation.choice is None
    assert named(conversation) == {(Feature.OTHER, "tool_choice")}


# --- settings ---------------------------------------------------------------------------------------------------------


def test_settings() -> None:
    form = {"type": "json_schema", "name": "out", "schema": SCHEMA, "strict": True, "description": "d"}
    conversation = read(
        {
            "model": "gpt-5",
            "input": "hi",
            "parallel_tool_calls": False,
            "max_output_tokens": 500,
            "temperature": 0.5,
            "top_p": 0.9,
            "reasoning": {"effort": "high", "summary": "auto"},
            "text": {"format": form},
            "safety_identifier": "me",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "truncation": "disabled",
            "service_tier": "auto",
            "prompt_cache_key": "k",
            "metadata": {},
            "client_metadata": None,
            "context_management": [],
        },
        HERE,
    )
    assert conversation == Conversation(
        model="gpt-5",
        stream=False,
        messages=(Message("user", (Text("hi"),)),),
        parallel=False,
        max_tokens=500,
        temperature=0.5,
        top_p=0.9,
        reasoning=Reasoning(on=True, effort="high", shown=True),
        format=Format(SCHEMA, "out", "d", True),
        user="me",
    )


@pytest.mark.parametrize(
    "given, reasoning",
    [
        ({}, Reasoning()),
        ({"summary": "detailed"}, Reasoning(shown=True)),
        ({"effort": "none"}, Reasoning(on=False, effort="none")),
        ({"effort": "minimal", "summary": None}, Reasoning(on=True, effort="minimal")),
    ],
)
def test_reasoning(given: dict[str, object], reasoning: Reasoning) -> None:
    assert read({"input": "hi", "reasoning": given}, HERE).reasoning == reasoning


def test_plain_json_and_formats_nobody_knows() -> None:
    assert read({"input": "hi", "text": {"format": {"type": "json_object"}}}, HERE).format == Format()
    conversation = read({"input": "hi", "text": {"format": {"type": "xml"}}}, HERE)
    assert conversation.format is None
    assert named(conversation) == {(Feature.STRUCTURED, "xml")}


def test_settings_that_change_inside_the_input_are_those_that_hold_at_its_end() -> None:
    changes = [
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"type": "configuration_update", "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
        {"type": "configuration_update", "reasoning": {"effort": "high"}},
    ]
    conversation = read(
        call({"role": "user", "content": "hi"}, *changes, reasoning={"effort": "medium", "summary": "auto"}), HERE
    )
    assert conversation.reasoning == Reasoning(on=True, effort="high", shown=True)
    assert conversation.format == Format(SCHEMA, "n")


def test_what_has_no_place_is_named_once() -> None:
    conversation = read(
        {
            "input": "hi",
            "metadata": {"a": "b"},
            "client_metadata": {"session": "x"},
            "store": True,
            "background": True,
            "truncation": "auto",
            "service_tier": "flex",
            "top_logprobs": 3,
            "include": ["message.output_text.logprobs", "file_search_call.results"],
            "max_tool_calls": 3,
            "text": {"verbosity": "low"},
            "reasoning": {"context": "all_turns", "effort": "colossal"},
            "prompt_cache_retention": "24h",
            "moderation": {"model": "m"},
            "novelty": 1,
            "nothing": None,
        },
        HERE,
    )
    assert list(conversation.others) == [
        (Feature.METADATA, "metadata"),
        (Feature.METADATA, "client_metadata"),
        (Feature.STORED, "store"),
        (Feature.STORED, "background"),
        (Feature.CONTEXT_MANAGEMENT, "truncation"),
        (Feature.SERVICE_TIER, "service_tier"),
        (Feature.LOGPROBS, "top_logprobs"),
        (Feature.OTHER, "max_tool_calls"),
        (Feature.CACHE_MARKS, "prompt_cache_retention"),
        (Feature.SAFETY, "moderation"),
        (Feature.OTHER, "novelty"),
        (Feature.LOGPROBS, "include message.output_text.logprobs"),
        (Feature.OTHER, "include file_search_call.results"),
        (Feature.OTHER, "reasoning.context"),
        (Feature.EFFORT, "colossal"),
        (Feature.OTHER, "text.verbosity"),
    ]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, words",
    [
        ({"input": "hi", "previous_response_id": "resp_1"}, ("previous_response_id", "`input`", "store: false")),
        ({"input": "hi", "conversation": {"id": "conv_1"}}, ("conversation", "start a new conversation")),
        ({"prompt": {"id": "pmpt_1"}}, ("prompt", "stored prompt")),
        (call({"type": "item_reference", "id": "msg_1"}), ("input[0]", "msg_1", "store: false")),
        (call({"id": "fc_1"}), ("input[0]", "fc_1")),
        (call({"role": "user", "content": "hi"}, {"type": "compaction_trigger"}), ("input[1]", "compaction_trigger", "Route")),
        ({"model": "gpt-5"}, ("says nothing",)),
        ({"input": [], "instructions": ""}, ("says nothing",)),
        ({"input": "hi", "instructions": [{"role": "developer", "content": "Be kind."}]}, ("`instructions`",)),
        ({"input": 5}, ("`input`",)),
        ({"input": ["hi"]}, ("`input`",)),
        (call({"role": "user", "content": 5}), ("input[0].content",)),
    ],
)
def test_what_cannot_be_translated_is_refused_with_words_that_help(body: dict[str, object], words: tuple[str, ...]) -> None:
    with pytest.raises(BadCall) as refused:
        read(body, HERE)
    assert refused.value.status == 400
    assert all(word in refused.value.message for word in words), refused.value.message


def test_reasoning_that_is_kept_elsewhere_is_left_out() -> None:
    conversation = read(call({"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "hi"}), HERE)
    assert conversation.messages == (Message("user", (Text("hi"),)),)
    assert named(conversation) == {(Feature.THOUGHTS, "kept at another provider")}


# --- recorded and random ----------------------------------------------------------------------------------------------


def _texts_of(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for entry in value for text in _texts_of(entry)]
    if isinstance(value, dict):
        own = [value[name] for name in ("text", "output", "arguments") if isinstance(value.get(name), str)]
        content = value.get("content")
        return own + ([content] if isinstance(content, str) else _texts_of(content))
    return []


@pytest.mark.parametrize("name, body", RECORDED)
def test_recorded_calls_lose_no_text(name: str, body: dict[str, Any]) -> None:
    if body["input"][-1:] and "compaction_trigger" in str(body["input"][-1]):
        with pytest.raises(BadCall, match="compaction_trigger"):
            read(body, HERE)
        return
    conversation = read(body, HERE)
    said = str(conversation.messages)
    given = [body["input"]] if isinstance(body["input"], str) else _texts_of(body["input"])
    assert given
    assert all(repr(text)[1:-1] in said for text in given)
    assert len(conversation.tools) == str(body).count("'parameters'") + str(body).count("'type': 'custom'")


def test_codex_declares_its_tools_in_the_input() -> None:
    (body,) = (body for name, body in RECORDED if "lite-shape" in name)
    conversation = read(body, HERE)
    assert [(tool.namespace, tool.name, tool.kind) for tool in conversation.tools] == [
        ("", "exec", "custom"),
        ("", "wait", "function"),
        ("clock", "sleep", "function"),
    ]
    assert [turn.role for turn in conversation.messages] == ["system"] * 4 + ["user"] * 2
    assert conversation.choice == Choice()
    assert conversation.parallel is False


KINDS = [
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
    "local_shell_call", "shell_call_output", "apply_patch_call_output", "computer_call", "computer_call_output",
    "tool_search_output", "additional_tools", "configuration_update", "image_generation_call", "compaction", "agent_message",
    "item_reference", "novelty", "input_text", "input_image", "input_file", "input_audio", "namespace", "custom", "function",
    "allowed_tools", "json_schema", "mcp",
]  # fmt: skip
FIELDS = [
    "role", "content", "input", "tools", "name", "text", "call_id", "id", "output", "summary", "action", "namespace",
    "encrypted_content", "arguments", "image_url", "file_data", "format", "tool_choice", "include", "reasoning", "effort",
    "result", "status", "parameters", "operation", "author", "recipient",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([*KINDS, "user", "data:,x"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(
            lambda kind, rest: {"type": kind, **rest}, st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), inner)
        )
    ),
    max_leaves=25,
)
ITEMS = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6), st.lists(ITEMS, max_size=8))
def test_no_body_raises_anything_but_a_refusal(body: dict[str, object], items: list[object]) -> None:
    for tried in (body, {**body, "input": items}, {"input": "hi", "tools": items, "tool_choice": body}):
        try:
            conversation = read(tried, HERE)
        except RouteCodexError:
            continue
        assert conversation.messages
        assert all(turn.blocks for turn in conversation.messages)
