# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
import random
from base64 import b64encode
from typing import Any

import pytest

from routecodex.routing.dialects.translation import opaque
from routecodex.routing.dialects.translation.neutral import (
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
from routecodex.routing.dialects.translation.reading.chat import read
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.routing.dialects.answer import plain
from tests.routing.dialects.answer.plain import tell_whole
from tests.routing.dialects.calls.recorded import CALLS

CHAT = Endpoint(Dialect.CHAT)
HI = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FUNCTION = {"name": "read", "description": "Reads", "parameters": SCHEMA}


def _read(**body: Any) -> Conversation:
    return read({"model": "m", "messages": [HI], **body}, CHAT)


def _turns(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return _read(messages=list(messages)).messages


def _blocks(*parts: object) -> tuple[object, ...]:
    return _turns({"role": "user", "content": list(parts)})[0].blocks


def _call(id: str, name: str = "read", arguments: object = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


# --- messages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "expected"), [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")]
)
def test_roles(role: str, expected: str) -> None:
    assert _turns({"role": role, "content": "text"}) == (Message(expected, (Text("text"),)),)  # type: ignore[arg-type]


def test_every_message_is_a_turn_and_system_text_stays_where_it_stands() -> None:
    turns = _turns(
        {"role": "system", "content": "rules"},
        HI,
        {"role": "user", "content": "<system-reminder>x</system-reminder>"},
        {"role": "assistant", "content": "ok"},
        {"role": "system", "content": "last"},
    )
    assert [(turn.role, turn.blocks[0].text) for turn in turns] == [  # type: ignore[union-attr]
        ("system", "rules"), ("user", "hi"), ("user", "<system-reminder>x</system-reminder>"), ("assistant", "ok"), ("system", "last"),
    ]  # fmt: skip


TEXT_FILE = b64encode("Grüße\n".encode()).decode()
PARTS: dict[str, tuple[object, object]] = {
    "text": ({"type": "text", "text": "a"}, Text("a")),
    "plain string in a list": ("a", Text("a")),
    "cached": ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, Text("a", cached=True)),
    "OpenAI's mark": ({"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}, Text("a", cached=True)),
    "refusal": ({"type": "refusal", "refusal": "no"}, Text("no")),
    "unknown with text": ({"type": "input_text", "text": "a"}, Text("a")),
    "image, data": ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}, Media("image", "image/png", data="AAAA", detail="low")),
    "image, address": ({"type": "image_url", "image_url": {"url": "https://x/y.png"}}, Media("image", url="https://x/y.png")),
    "image, bare": ({"type": "image_url", "image_url": "https://x/y.png"}, Media("image", url="https://x/y.png")),
    "image, percent-encoded": ({"type": "image_url", "image_url": {"url": "data:image/svg+xml,%3Csvg/%3E"}}, Media("image", "image/svg+xml", data=b64encode(b"<svg/>").decode())),
    "image, cached": ({"type": "image_url", "image_url": "https://x", "cache_control": {"type": "ephemeral"}}, Media("image", url="https://x", cached=True)),
    "mp3": ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}, Media("audio", "audio/mpeg", data="AAAA")),
    "wav": ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, Media("audio", "audio/wav", data="AAAA")),
    "audio, data URL": ({"type": "input_audio", "input_audio": {"data": "data:;base64,AAAA", "format": "wav"}}, Media("audio", "audio/wav", data="AAAA")),
    "video": ({"type": "video_url", "video_url": {"url": "https://x/v.mp4"}}, Media("video", url="https://x/v.mp4")),
    "file, data": ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, Media("file", "application/pdf", data="AAAA", name="a.pdf")),
    "file, bare base64": ({"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}}, Media("file", "application/pdf", data="AAAA", name="a.pdf")),
    "file, id": ({"type": "file", "file": {"file_id": "file-1"}}, Media("file", file_id="file-1")),
    "file, address": ({"type": "file", "file": {"filename": "a.pdf", "file_data": "https://x/a.pdf"}}, Media("file", url="https://x/a.pdf", name="a.pdf")),
    "file, text": ({"type": "file", "file": {"filename": "a.txt", "file_data": f"data:text/plain;base64,{TEXT_FILE}"}}, Media("file", "text/plain", text="Grüße\n", name="a.txt")),
    "file, text by its name": ({"type": "file", "file": {"filename": "a.md", "file_data": TEXT_FILE}}, Media("file", "text/markdown", text="Grüße\n", name="a.md")),
    "file, text that is none": ({"type": "file", "file": {"filename": "a.txt", "file_data": "/w=="}}, Media("file", "text/plain", data="/w==", name="a.txt")),
    "Mistral's thinking": ({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, Thought("hm")),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    part, expected = PARTS[name]
    assert _blocks(part) == (expected,)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "hologram", "url": "x"}, "content part hologram"),
        ({"type": "image_url", "image_url": {}}, "an empty image_url part"),
        (17, "content part without a type"),
    ],
)
def test_what_has_no_place_is_named(part: object, words: str) -> None:
    conversation = _read(messages=[{"role": "user", "content": [part, {"type": "text", "text": "a"}]}])
    assert conversation.messages == (Message("user", (Text("a"),)),)
    assert conversation.others == ((Feature.OTHER, words),)


def test_a_mark_on_a_message_is_its_last_parts() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "cache_control": {}}
    assert _turns({**marked, "cache_control": {"type": "ephemeral"}})[0].blocks == (Text("a"), Text("b", cached=True))


def test_empty_messages_are_no_turns() -> None:
    assert _turns({"role": "user", "content": ""}, {"role": "assistant", "content": None}, HI) == (
        Message("user", (Text("hi"),)),
    )


@pytest.mark.parametrize(
    "body",
    [
        {"model": "m"},
        {"messages": []},
        {"messages": "hi"},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "narrator", "content": "x"}]},
        {"messages": [{"content": "x"}]},
    ],
)
def test_what_means_nothing_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RouteCodexError) as raised:
        read(body, CHAT)
    assert raised.value.status == 400


# --- calls and results --------------------------------------------------------------------------------------------------


def test_parallel_calls_and_their_results() -> None:
    turns = _turns(
        HI,
        {
            "role": "assistant",
            "content": "both",
            "tool_calls": [_call("a", arguments='{"path":"x"}'), _call("b", "list", {"n": 1})],
        },
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": "https://x"}],
        },
        {"role": "user", "content": "go on"},
    )
    assert turns[1:] == (
        Message("assistant", (Text("both"), ToolUse("a", "read", '{"path":"x"}'), ToolUse("b", "list", '{"n":1}'))),
        Message("user", (ToolResult("b", (Text("two"),), name="list"), ToolResult("a", (Text("one"), Media("image", url="https://x")), name="read"))),
        Message("user", (Text("go on"),)),
    )  # fmt: skip


def test_a_result_without_an_id_never_goes_to_an_answered_call() -> None:
    turns = _turns(
        {"role": "assistant", "tool_calls": [_call("a"), _call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "name": "read", "content": "two"},
    )
    assert [block.id for block in turns[1].blocks if isinstance(block, ToolResult)] == ["a", "b"]


def test_a_custom_tools_call_and_result() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    turns = _turns({"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "done"})
    assert turns[0].blocks == (ToolUse("c", "patch", "*** Begin", custom=True),)
    assert turns[1].blocks == (ToolResult("c", (Text("done"),), custom=True, name="patch"),)


def test_the_older_kind_of_calls_gets_ids() -> None:
    asked = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    answered = {"role": "function", "name": "read", "content": "text"}
    turns = _turns(asked, answered, asked, answered)
    ids = [block.id for turn in turns for block in turn.blocks if isinstance(block, ToolUse | ToolResult)]
    assert ids == ["call_read_1", "call_read_1", "call_read_2", "call_read_2"]


def test_ids_that_come_again_are_told_apart() -> None:
    """Some hosts number the calls of every answer from nothing."""
    asked = {"role": "assistant", "content": None, "tool_calls": [_call("call_0")]}
    answered = {"role": "tool", "tool_call_id": "call_0", "content": "text"}
    turns = _turns(asked, answered, asked, answered, {**asked, "tool_calls": [_call("call_0_2")]})
    ids = [block.id for turn in turns for block in turn.blocks if isinstance(block, ToolUse | ToolResult)]
    assert ids == ["call_0", "call_0", "call_0_2", "call_0_2", "call_0_2_2"]


def test_results_without_ids_go_to_the_first_call_that_waits() -> None:
    turns = _turns(
        {"role": "assistant", "tool_calls": [_call("a"), _call("b", "list")]},
        {"role": "tool", "name": "list", "content": "by name"},
        {"role": "tool", "content": "by place"},
        {"role": "tool", "tool_call_id": "z", "content": "nobody's"},
    )
    assert turns[1].blocks == (
        ToolResult("b", (Text("by name"),), name="list"),
        ToolResult("a", (Text("by place"),), name="read"),
        ToolResult("z", (Text("nobody's"),)),
    )


# --- thinking -----------------------------------------------------------------------------------------------------------

CLAUDES = Seal(Dialect.MESSAGES, "anthropic", {"signature": "c2ln"})
OPENAIS = Seal(Dialect.RESPONSES, "openai", {"encrypted_content": "gAAA"})
GEMINIS = Seal(Dialect.GEMINI, "google", {"for": "call", "signature": "c2ln"})
ENTRY = {"type": "reasoning.text", "text": "hm", "signature": "theirs", "index": 0}


def _own(**payload: object) -> Seal:
    return Seal(Dialect.CHAT, "", payload)


THOUGHTS: dict[str, tuple[dict[str, Any], list[Thought]]] = {
    "DeepSeek's": ({"reasoning_content": "hm"}, [Thought("hm", _own(reasoning_content=True))]),
    "OpenRouter's": ({"reasoning": "hm"}, [Thought("hm", _own(reasoning=True))]),
    "both fields": ({"reasoning_content": "hm", "reasoning": "hm"}, [Thought("hm", _own(reasoning_content=True))]),
    "details": ({"reasoning": "hm", "reasoning_details": [ENTRY]}, [Thought("hm", _own(reasoning=True, reasoning_details=[ENTRY]))]),
    "details alone": ({"reasoning_details": [ENTRY]}, [Thought("hm", _own(reasoning_details=[ENTRY]))]),
    "ours": ({"reasoning_content": "hm", "reasoning_details": [{"type": "reasoning.encrypted", "data": opaque.wrap(CLAUDES)}]}, [Thought("hm", CLAUDES)]),
    "ours, with its text": ({"reasoning_content": "a\n\nb", "reasoning_details": [{"type": "reasoning.text", "text": "a", "signature": opaque.wrap(CLAUDES)}, {"type": "reasoning.text", "text": "b", "signature": opaque.wrap(OPENAIS)}]}, [Thought("a", CLAUDES), Thought("b", OPENAIS)]),
    "ours without a text": ({"reasoning_details": [{"type": "reasoning.encrypted", "data": opaque.wrap(OPENAIS)}]}, [Thought("", OPENAIS)]),
    "ours beside the host's": ({"reasoning": "all of it", "reasoning_details": [ENTRY, {"type": "reasoning.encrypted", "data": opaque.wrap(OPENAIS)}]}, [Thought("", OPENAIS), Thought("hm", _own(reasoning=True, reasoning_details=[ENTRY]))]),
    "none": ({"reasoning_content": "", "reasoning_details": []}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", THOUGHTS)
def test_thoughts_come_first(name: str) -> None:
    fields, expected = THOUGHTS[name]
    assert _turns({"role": "assistant", "content": "text", **fields})[0].blocks == (*expected, Text("text"))


def test_what_was_told_is_read_back_sealed() -> None:
    """The client's next call brings what we told it of the last answer."""
    answer = [
        plain.Started("x", "m"),
        plain.ThoughtPiece("first"),
        plain.ThoughtEnded(CLAUDES),
        plain.ThoughtEnded(OPENAIS),
        plain.ThoughtPiece("second"),
        plain.ThoughtEnded(CLAUDES),
        plain.TextPiece("text"),
        plain.CallStarted("call_1", "read"),
        plain.CallPiece('{"path":"x"}'),
        plain.CallEnded(GEMINIS),
        plain.Finished("tool_use"),
    ]
    asked = Asked(CHAT, stream=False, id="r", model="m", created=0, maker="p")
    message = json.loads(tell_whole(answer, asked))["choices"][0]["message"]
    assert _turns(HI, message)[1].blocks == (
        Thought("first", CLAUDES),
        Thought("", OPENAIS),
        Thought("second", CLAUDES),
        Text("text"),
        ToolUse("call_1", "read", '{"path":"x"}', seal=GEMINIS),
    )


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (opaque.wrap(GEMINIS), GEMINIS),
        (opaque.wrap(CLAUDES), CLAUDES),
        ("c2ln", Seal(Dialect.GEMINI, "", {"for": "call", "signature": "c2ln"})),
    ],
)
def test_what_seals_a_call(word: str, expected: Seal) -> None:
    call = {**_call("a"), "extra_content": {"google": {"thought_signature": word}}}
    assert _turns({"role": "assistant", "tool_calls": [call]})[0].blocks == (ToolUse("a", "read", "{}", seal=expected),)


def test_a_refusal_beside_a_text_is_said_as_well() -> None:
    told = {"role": "assistant", "content": "Well.", "refusal": "I will not"}
    assert _turns(told)[0].blocks == (Text("Well."), Text("I will not"))
    assert _turns({**told, "content": "I will not"})[0].blocks == (Text("I will not"),)


def test_other_things_an_assistant_said() -> None:
    conversation = _read(
        messages=[
            {"role": "assistant", "content": None, "refusal": "I will not"},
            {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
            {
                "role": "assistant",
                "content": None,
                "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
            },
        ]
    )
    assert conversation.messages == (
        Message("assistant", (Text("I will not"),)),
        Message("assistant", (Media("image", "image/png", data="AAAA"),)),
    )
    assert conversation.others == ((Feature.AUDIO, "an earlier spoken answer"),)


# --- tools and choice ---------------------------------------------------------------------------------------------------

GRAMMAR = {"type": "custom", "custom": {"name": "patch", "description": "P", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}}}  # fmt: skip
TOOLS: dict[str, tuple[dict[str, Any], Tool]] = {
    "function": ({"tools": [{"type": "function", "function": {**FUNCTION, "strict": True}}]}, Tool("read", "Reads", SCHEMA, strict=True)),
    "cached": ({"tools": [{"type": "function", "function": FUNCTION, "cache_control": {"type": "ephemeral"}}]}, Tool("read", "Reads", SCHEMA, cached=True)),
    "without a schema": ({"tools": [{"type": "function", "function": {"name": "goal"}}]}, Tool("goal")),
    "flat": ({"tools": [{"type": "function", **FUNCTION}]}, Tool("read", "Reads", SCHEMA)),
    "without a type": ({"tools": [FUNCTION]}, Tool("read", "Reads", SCHEMA)),
    "older": ({"functions": [FUNCTION]}, Tool("read", "Reads", SCHEMA)),
    "custom": ({"tools": [GRAMMAR]}, Tool("patch", "P", kind="custom", native=GRAMMAR)),
    "GLM's search": ({"tools": [{"type": "web_search", "web_search": {"enable": True}}]}, Tool("web_search", kind="server", server="web_search", native={"type": "web_search", "web_search": {"enable": True}})),
    "Kimi's search": ({"tools": [{"type": "builtin_function", "function": {"name": "$web_search"}}]}, Tool("$web_search", kind="server", server="web_search", native={"type": "builtin_function", "function": {"name": "$web_search"}})),
    "code": ({"tools": [{"type": "code_interpreter"}]}, Tool("code_interpreter", kind="server", server="code_execution", native={"type": "code_interpreter"})),
    "unknown": ({"tools": [{"type": "teleport"}]}, Tool("teleport", kind="server", native={"type": "teleport"})),
    "OpenAI's search": ({"web_search_options": {"search_context_size": "low"}}, Tool("web_search", kind="server", server="web_search", native={"web_search_options": {"search_context_size": "low"}})),
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_tools(name: str) -> None:
    body, expected = TOOLS[name]
    conversation = _read(**body)
    assert conversation.tools == (expected,)
    assert conversation.others == ()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("tool_choice", None, None),
        ("tool_choice", "auto", Choice()),
        ("tool_choice", "none", Choice("none")),
        ("tool_choice", "required", Choice("required")),
        ("tool_choice", "any", Choice("required")),
        ("tool_choice", {"type": "required"}, Choice("required")),
        ("tool_choice", {"type": "function", "function": {"name": "read"}}, Choice("required", ("read",))),
        ("tool_choice", {"type": "custom", "custom": {"name": "patch"}}, Choice("required", ("patch",))),
        ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "a"}}, {"type": "custom", "custom": {"name": "b"}}]}}, Choice("auto", ("a", "b"))),
        ("tool_choice", {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "a"}}]}}, Choice("required", ("a",))),
        ("function_call", "none", Choice("none")),
        ("function_call", {"name": "read"}, Choice("required", ("read",))),
    ],
)  # fmt: skip
def test_choice(field: str, value: object, expected: Choice | None) -> None:
    conversation = _read(**{field: value})
    assert conversation.choice == expected
    assert conversation.others == ()


def test_an_unknown_choice_is_named() -> None:
    assert _read(tool_choice="perhaps").others == ((Feature.ALLOWED_TOOLS, "perhaps"),)


# --- the other fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"model": "gpt-5"}, {"model": "gpt-5"}),
        ({"stream": True}, {"stream": True}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 6, "max_tokens": 5}, {"max_tokens": 6}),
        ({"max_tokens": 0}, {"max_tokens": None}),
        ({"max_tokens": True}, {"max_tokens": None}),
        ({"temperature": 0, "top_p": 0.5, "top_k": 40}, {"temperature": 0.0, "top_p": 0.5, "top_k": 40}),
        ({"temperature": "hot"}, {"temperature": None}),
        ({"temperature": True, "seed": False}, {"temperature": None, "seed": None}),
        ({"stop": "END"}, {"stops": ("END",)}),
        ({"stop": ["a", "", 3, "b"]}, {"stops": ("a", "b")}),
        ({"seed": 7}, {"seed": 7}),
        ({"random_seed": 7}, {"seed": 7}),
        ({"presence_penalty": 0.5, "frequency_penalty": -1}, {"presence_penalty": 0.5, "frequency_penalty": -1.0}),
        ({"parallel_tool_calls": False}, {"parallel": False}),
        ({"user": "u"}, {"user": "u"}),
        ({"safety_identifier": "s", "user": "u"}, {"user": "s"}),
        ({"response_format": {"type": "text"}}, {"format": None}),
        ({"response_format": {"type": "json_object"}}, {"format": Format()}),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "description": "d", "schema": SCHEMA, "strict": True}}}, {"format": Format(SCHEMA, "n", "d", strict=True)}),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, {"format": Format(SCHEMA)}),
        ({"reasoning_effort": "high"}, {"reasoning": Reasoning(effort="high")}),
        ({"reasoning_effort": "none"}, {"reasoning": Reasoning(on=False, effort="none")}),
        ({"reasoning": {"effort": "low", "exclude": True}}, {"reasoning": Reasoning(effort="low", shown=False)}),
        ({"reasoning": {"max_tokens": 2000, "enabled": True}}, {"reasoning": Reasoning(on=True, budget=2000)}),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, {"reasoning": Reasoning(on=True, budget=4096)}),
        ({"thinking": {"type": "disabled"}}, {"reasoning": Reasoning(on=False)}),
        ({"thinking": {"type": "adaptive"}}, {"reasoning": Reasoning(on=True, adaptive=True)}),
        ({"enable_thinking": True, "thinking_budget": 100}, {"reasoning": Reasoning(on=True, budget=100)}),
        ({"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning": Reasoning(on=False)}),
        ({"extra_body": {"google": {"thinking_config": {"thinking_budget": -1, "include_thoughts": True}}}}, {"reasoning": Reasoning(adaptive=True, shown=True)}),
        ({"extra_body": {"google": {"thinking_config": {"thinking_budget": 0}}}}, {"reasoning": Reasoning(on=False)}),
    ],
)  # fmt: skip
def test_fields(body: dict[str, Any], expected: dict[str, Any]) -> None:
    conversation = _read(**body)
    assert {name: getattr(conversation, name) for name in expected} == expected
    assert conversation.others == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"n": 2}, (Feature.CANDIDATES, "n")),
        ({"logprobs": True}, (Feature.LOGPROBS, "logprobs")),
        ({"metadata": {"a": "b"}}, (Feature.METADATA, "")),
        ({"service_tier": "flex"}, (Feature.SERVICE_TIER, "")),
        ({"store": True}, (Feature.STORED, "store")),
        ({"modalities": ["text", "audio"]}, (Feature.AUDIO, "modalities")),
        ({"logit_bias": {"1": -100}}, (Feature.OTHER, "logit_bias")),
        ({"prediction": {"type": "content", "content": "x"}}, (Feature.OTHER, "prediction")),
        ({"verbosity": "low"}, (Feature.OTHER, "verbosity")),
        ({"preserve_thinking": True}, (Feature.OTHER, "preserve_thinking")),
        ({"plugins": [{"id": "web"}]}, (Feature.SERVER_TOOLS, "plugins")),
        ({"response_format": {"type": "grammar"}}, (Feature.STRUCTURED, "grammar")),
        ({"reasoning_effort": "ultra"}, (Feature.EFFORT, "ultra")),
        ({"messages": [{**HI, "name": "ann"}]}, (Feature.OTHER, "names of who speaks")),
        ({"messages": [HI, {"role": "system", "content": [{"type": "image_url", "image_url": "https://x"}]}]}, (Feature.OTHER, "pictures and files in system messages")),
    ],
)  # fmt: skip
def test_what_the_conversation_has_no_place_for_is_named(body: dict[str, Any], expected: tuple[Feature, str]) -> None:
    assert _read(**body).others == (expected,)


@pytest.mark.parametrize(
    "body",
    [
        {"n": 1},
        {"logprobs": False, "logit_bias": {}, "store": False, "metadata": None},
        {"modalities": ["text"], "service_tier": "auto"},
        {"stream_options": {"include_usage": True}, "prompt_cache_key": "k", "prompt_cache_retention": "24h"},
    ],
)
def test_what_says_nothing_is_not_named(body: dict[str, Any]) -> None:
    assert _read(**body).others == ()


# --- everything ---------------------------------------------------------------------------------------------------------

RECORDED = [request for request, endpoint in CALLS if endpoint.dialect is Dialect.CHAT]


def _texts_of(body: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for message in body["messages"]:
        content = message.get("content")
        found += [content] if isinstance(content, str) else [part["text"] for part in content or [] if "text" in part]
    return [text for text in found if text]


def test_there_are_recorded_calls() -> None:
    assert len(RECORDED) >= 8


@pytest.mark.parametrize("request_", RECORDED, ids=lambda request: request.name)
def test_recorded_calls_lose_no_text_and_no_tool(request_: Any) -> None:
    body = json.loads(request_.raw)
    conversation = read(body, CHAT)
    blocks = [block for turn in conversation.messages for block in turn.blocks]
    blocks = [one for block in blocks for one in (block.blocks if isinstance(block, ToolResult) else (block,))]
    assert [block.text for block in blocks if isinstance(block, Text)] == _texts_of(body)
    assert [tool.name for tool in conversation.tools] == [
        (tool.get("function") or tool)["name"] for tool in body.get("tools", [])
    ]
    assert conversation.stream is body.get("stream", False)
    assert conversation.max_tokens == body.get("max_tokens", body.get("max_completion_tokens"))


WORDS = (
    "messages", "role", "content", "type", "text", "tool_calls", "function", "name", "arguments", "id", "tools", "custom",
    "tool_choice", "stop", "response_format", "reasoning", "thinking", "reasoning_details", "image_url", "file", "url", "n",
    "extra_content", "google", "input_audio", "data", "file_data", "max_tokens", "tool_call_id", "json_schema", "functions",
    "function_call", "user", "assistant", "tool", "system", "audio", "images", "seed", "data:;base64,x", "allowed_tools",
)  # fmt: skip
PLAIN = (None, True, 0, -3, 1.5, 1e300, 1 << 70, "", "x", "\ud800", [], {})


def _noise(chance: random.Random, depth: int) -> object:
    pick = chance.random()
    if depth == 0 or pick < 0.35:
        return chance.choice((*PLAIN, *WORDS))
    if pick < 0.6:
        return [_noise(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(WORDS): _noise(chance, depth - 1) for _ in range(chance.randrange(5))}


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    refused = 0
    for _ in range(300):
        noise = {chance.choice(WORDS): _noise(chance, 3) for _ in range(6)}
        messages = [{word: _noise(chance, 3) for word in chance.sample(WORDS, 8)} for _ in range(3)]
        for message in messages:
            message["role"] = chance.choice(("user", "assistant", "tool", "system", "function"))
            message["content"] = _noise(chance, 3) if chance.random() < 0.5 else "text"
        try:
            conversation = read({**noise, "model": "m", "messages": messages}, CHAT)
        except RouteCodexError:
            refused += 1
            continue
        assert conversation.messages
        assert all(turn.blocks for turn in conversation.messages)
    assert 0 < refused < 300
