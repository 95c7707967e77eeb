"""OpenAI Responses: neutral words as a call that the API takes."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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
from routecodex.routing.dialects.translation.reading.responses import read
from routecodex.routing.dialects.translation.writing.responses import write
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.calls.recorded import CALLS

HERE = Endpoint(Dialect.RESPONSES)
MAKER = "openai"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = Message("user", (Text("hello"),))
SEAL = Seal(Dialect.RESPONSES, MAKER, {"summary": [], "id": "rs_1", "encrypted_content": "gAAAA"})


def said(*turns: Message, **fields: Any) -> Conversation:
    return Conversation(model="client-model", stream=True, messages=turns or (HELLO,), **fields)


def written(*turns: Message, model: str = "gpt-5", session: str = "", **fields: Any) -> Written:
    return write(said(*turns, **fields), model=model, session=session, maker=MAKER)


def items(*turns: Message) -> Any:
    return written(*turns).body["input"]


def assistant(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


# --- the whole --------------------------------------------------------------------------------------------------------


def test_the_least_call() -> None:
    result = written()
    assert result.body == {
        "model": "gpt-5",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }
    assert not result.left_out.found
    assert result.tools == {}


def test_the_session_is_the_cache_key_and_never_too_long() -> None:
    assert written(session="s" * 64).body["prompt_cache_key"] == "s" * 64
    keys = {str(written(session="s" * length).body["prompt_cache_key"]) for length in (65, 66)}
    assert len(keys) == 2
    assert all(re.fullmatch(r"\w{24}", key) for key in keys)


def test_leading_system_turns_are_the_instructions_and_later_ones_developer_messages() -> None:
    body = written(
        Message("system", (Text("one"), Text("two"))),
        Message("system", (Text("three"), Text("  "))),
        HELLO,
        Message("system", (Text("four"),)),
    ).body
    assert body["instructions"] == "one\n\ntwo\n\nthree"
    assert body["input"][1:] == [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "four"}]}]


def test_instructions_alone_are_a_developer_message() -> None:
    body = written(Message("system", (Text("say hi"),))).body
    assert "instructions" not in body
    assert body["input"] == [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "say hi"}]}]


def test_instructions_that_show_a_picture_are_a_developer_message() -> None:
    body = written(
        Message("system", (Text("one"),)), Message("system", (Text("see"), Media("image", "image/png", data="iVBO"))), HELLO
    ).body
    assert body["instructions"] == "one"
    assert [item["role"] for item in body["input"]] == ["developer", "user"]


def test_a_call_that_says_nothing_is_refused() -> None:
    with pytest.raises(BadCall, match="says nothing"):
        written(user(Text(" ")))


def test_limits_and_what_the_dialect_has_no_word_for() -> None:
    result = written(
        user(Text("hello", cached=True)),
        model="a-model-of-somebody",
        max_tokens=3,
        temperature=3.0,
        top_p=0.5,
        top_k=4,
        stops=("x",),
        seed=1,
        presence_penalty=0.5,
        user="somebody",
        others=((Feature.SAFETY, "settings"),),
    )
    assert (result.body["max_output_tokens"], result.body["temperature"], result.body["top_p"]) == (16, 2, 0.5)
    assert set(result.left_out.found) == {
        Feature.TOP_K, Feature.STOPS, Feature.SEED, Feature.PENALTIES, Feature.CACHE_MARKS, Feature.METADATA, Feature.SAFETY,
    }  # fmt: skip
    assert not {"user", "safety_identifier", "metadata"} & set(result.body)


def test_the_session_as_the_user_is_no_loss() -> None:
    assert not written(user(Text("hello")), session="s1").left_out.found
    assert not write(said(user=("s1")), model="gpt-5", session="s1", maker=MAKER).left_out.found


def test_marks_inside_results_and_on_tools_are_named() -> None:
    inside = written(assistant(ToolUse("c", "a", "{}")), user(ToolResult("c", (Text("x", cached=True),))))
    assert set(inside.left_out.found) == {Feature.CACHE_MARKS}
    assert set(written(tools=(Tool("a", cached=True),)).left_out.found) == {Feature.CACHE_MARKS}


def test_formats() -> None:
    body = written(format=Format(SCHEMA, "an answer", "d", True)).body
    assert re.fullmatch(r"ananswer_\w{8}", body["text"]["format"].pop("name"))  # type: ignore[index]
    assert body["text"] == {"format": {"type": "json_schema", "schema": SCHEMA, "description": "d", "strict": True}}
    assert written(format=Format(SCHEMA)).body["text"] == {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}


def test_plain_json_is_asked_for_in_words_too() -> None:
    body = written(format=Format()).body
    assert body["text"] == {"format": {"type": "json_object"}}
    assert "JSON" in str(body["input"][0])  # type: ignore[index]
    assert body["input"][1:] == written().body["input"]  # type: ignore[index]


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "media, part",
    [
        (
            Media("image", "image/png", data="iVBO", detail="high"),
            {"type": "input_image", "detail": "high", "image_url": "data:image/png;base64,iVBO"},
        ),
        (
            Media("image", url="https://x.test/a.png"),
            {"type": "input_image", "detail": "auto", "image_url": "https://x.test/a.png"},
        ),
        (Media("image", file_id="file-1"), {"type": "input_image", "detail": "auto", "file_id": "file-1"}),
        (
            Media("file", "application/pdf", data="JVBE"),
            {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        ),
        (
            Media("file", "application/pdf", data="JVBE", name="a.pdf"),
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        ),
        (Media("file", url="https://x.test/a.pdf"), {"type": "input_file", "file_url": "https://x.test/a.pdf"}),
        (Media("file", file_id="file-2"), {"type": "input_file", "file_id": "file-2"}),
        (Media("file", "text/plain", text="hi", name="a.txt"), {"type": "input_text", "text": "a.txt:\nhi"}),
    ],
)
def test_pictures_and_files(media: Media, part: dict[str, object]) -> None:
    result = written(user(media, Text("?")))
    assert result.body["input"][0]["content"][0] == part  # type: ignore[index]
    assert not result.left_out.found
    output = items(assistant(ToolUse("c", "a", "{}")), user(ToolResult("c", (media, Text("?")))))[1]["output"]
    assert output == (f"{part['text']}\n?" if "text" in part else [part, {"type": "input_text", "text": "?"}])


@pytest.mark.parametrize(
    "media, feature",
    [
        (Media("audio", "audio/wav", data="UklG"), Feature.AUDIO),
        (Media("video", url="https://x.test/v"), Feature.VIDEO),
        (Media("image", file_id="file_of_another"), Feature.FILE_LINKS),
        (Media("image", url="gs://bucket/a.png"), Feature.IMAGE_LINKS),
        (Media("file", url="gs://bucket/a.pdf", name="a.pdf"), Feature.FILE_LINKS),
    ],
)
def test_what_cannot_be_shown_is_said_to_have_been_there(media: Media, feature: Feature) -> None:
    result = written(user(media))
    (part,) = result.body["input"][0]["content"]  # type: ignore[index]
    assert part["type"] == "input_text"
    assert f"stood a {media.kind}" in part["text"]
    assert media.name in part["text"]
    assert set(result.left_out.found) == {feature}


def test_a_detail_nobody_knows_is_named() -> None:
    result = written(user(Media("image", url="https://x.test/a", detail="ultra")))
    assert result.body["input"][0]["content"][0]["detail"] == "auto"  # type: ignore[index]
    assert set(result.left_out.found) == {Feature.IMAGE_DETAIL}


# --- the assistant ----------------------------------------------------------------------------------------------------


def test_texts_in_a_row_are_parts_of_one_message_with_an_id_of_its_own() -> None:
    found = items(HELLO, assistant(Text("a"), Text(""), Text("b")), HELLO, assistant(Text("a"), Text("b")), HELLO)
    first, second = found[1], found[3]
    assert [part["text"] for part in first["content"]] == ["a", "b"]
    assert first["content"][0] == {"type": "output_text", "text": "a", "annotations": []}
    assert {name: first[name] for name in ("type", "role", "status")} == {
        "type": "message",
        "role": "assistant",
        "status": "completed",
    }
    assert first["id"] != second["id"]
    assert all(re.fullmatch(r"msg_\w{24}", item["id"]) for item in (first, second))


def test_own_thoughts_come_back_with_their_seal() -> None:
    result = written(
        HELLO, assistant(Thought("hm", SEAL), Text("a"), Thought("", replace(SEAL, maker="")), ToolUse("c", "a", "{}"))
    )
    found: Any = result.body["input"]
    assert [item["type"] for item in found[1:]] == ["reasoning", "message", "reasoning", "function_call", "function_call_output"]
    assert found[1] == {"type": "reasoning", "summary": [], "id": "rs_1", "encrypted_content": "gAAAA"}
    assert not result.left_out.found


@pytest.mark.parametrize(
    "seal",
    [
        None,
        replace(SEAL, maker="another"),
        replace(SEAL, dialect=Dialect.MESSAGES),
        replace(SEAL, payload={"summary": [{"type": "summary_text", "text": "secret"}], "id": "rs_1"}),
    ],
)
def test_thoughts_of_others_are_left_out_whole(seal: Seal | None) -> None:
    result = written(HELLO, assistant(Thought("secret", seal), Text("a")), HELLO)
    assert "secret" not in str(result.body)
    assert [item["type"] for item in result.body["input"]] == ["message"] * 3  # type: ignore[attr-defined]
    assert set(result.left_out.found) == {Feature.THOUGHTS}


def test_an_answer_does_not_end_in_reasoning() -> None:
    result = written(HELLO, assistant(Text("a"), Thought("", SEAL)), assistant(Thought("", SEAL)), HELLO)
    assert [item["type"] for item in result.body["input"]] == ["message"] * 3  # type: ignore[attr-defined]
    assert set(result.left_out.found) == {Feature.THOUGHTS}


def test_a_compacted_history_comes_back_to_its_maker() -> None:
    seal = Seal(Dialect.RESPONSES, "", {"type": "compaction", "id": "cmp_1", "encrypted_content": "g"})
    assert items(assistant(Thought("", seal)), HELLO)[0] == {"type": "compaction", "id": "cmp_1", "encrypted_content": "g"}


def test_what_the_dialect_cannot_say_of_an_answer() -> None:
    result = written(
        HELLO,
        assistant(Media("image", data="iVBO"), ToolUse("c", "a", "", seal=Seal(Dialect.GEMINI, "google", {"for": "call"}))),
        assistant(Text("so far")),
    )
    assert {Feature.ASSISTANT_MEDIA, Feature.THOUGHTS, Feature.OTHER} == set(result.left_out.found)
    assert result.left_out.found[Feature.OTHER] == ["an answer already begun"]
    assert result.body["input"][1]["arguments"] == "{}"  # type: ignore[index]


# --- calls and results ------------------------------------------------------------------------------------------------


def test_parallel_calls_and_their_results() -> None:
    assert items(
        HELLO,
        assistant(ToolUse("c1", "a", '{"x": 1}'), ToolUse("c2", "patch", "*** Begin", custom=True)),
        user(ToolResult("c2", (Text("two"), Text("lines"))), ToolResult("c1", ()), Text("and now?")),
    )[1:] == [
        {"type": "function_call", "call_id": "c1", "name": "a", "arguments": '{"x": 1}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "two\nlines"},
        {"type": "function_call_output", "call_id": "c1", "output": ""},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]},
    ]


def test_a_failed_result_says_so_in_words() -> None:
    call = assistant(ToolUse("c", "a", "{}"))
    picture = Media("image", url="https://x.test/a")
    assert items(call, user(ToolResult("c", (Text("no"),), error=True)))[1]["output"] == "The call failed:\nno"
    output = items(call, user(ToolResult("c", (picture,), error=True)))[1]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]


def test_a_missing_result_is_said_to_be_missing_before_the_next_answer() -> None:
    found = items(
        assistant(ToolUse("c1", "a", "{}"), ToolUse("c2", "a", "{}")),
        user(ToolResult("c1", (Text("x"),)), Text("go on")),
        assistant(Text("ok")),
        HELLO,
    )
    assert [item["type"] for item in found] == [
        "function_call",
        "function_call",
        "function_call_output",
        "message",
        "function_call_output",
        "message",
        "message",
    ]
    assert found[4] == {"type": "function_call_output", "call_id": "c2", "output": "(The result of this call is missing.)"}


def test_a_result_may_come_after_the_model_has_gone_on_speaking() -> None:
    found = items(
        assistant(ToolUse("c1", "a", "{}")), assistant(Text("wait")), user(Text("hm")), user(ToolResult("c1", (Text("x"),)))
    )
    assert [item.get("output") for item in found if item["type"] == "function_call_output"] == ["x"]


def test_a_result_without_its_call_is_told_by_the_user() -> None:
    (item,) = items(user(ToolResult("c9", (Text("x"), Media("image", url="https://x.test/a")), name="look"), Text("?")))
    assert [part.get("text") for part in item["content"]] == ["An earlier call of look (c9) brought:", "x", None, "?"]


def test_ids_that_come_again_are_told_apart_and_long_ones_fit() -> None:
    long = "call_" + "x" * 80
    turns = [turn for _ in range(3) for turn in (assistant(ToolUse("0", "a", "{}")), user(ToolResult("0", (Text("x"),))))]
    found = items(
        *turns, assistant(ToolUse(long, "a", "{}"), ToolUse("", "a", "{}")), user(ToolResult("", ()), ToolResult(long, ()))
    )
    called = [item["call_id"] for item in found if item["type"] == "function_call"]
    answered = [item["call_id"] for item in found if item["type"] == "function_call_output"]
    assert len(set(called)) == 5
    assert sorted(called) == sorted(answered)
    assert called[0] == "0"
    assert all(0 < len(id) <= 64 for id in called)
    assert "missing" not in str(found)


# --- tools ------------------------------------------------------------------------------------------------------------


def test_functions_always_say_whether_they_are_strict() -> None:
    assert written(tools=(Tool("a", "does a", SCHEMA), Tool("b", strict=True))).body["tools"] == [
        {"type": "function", "name": "a", "description": "does a", "parameters": SCHEMA, "strict": False},
        {"type": "function", "name": "b", "parameters": {"type": "object", "properties": {}}, "strict": True},
    ]


@pytest.mark.parametrize(
    "schema, parameters, lost",
    [
        ({"properties": {"a": {}}}, {"properties": {"a": {}}, "type": "object"}, False),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, {"type": "object", "properties": {}}, True),
        ({"type": "array", "items": {}}, {"type": "object", "items": {}, "properties": {}}, True),
    ],
)
def test_schemas_are_objects(schema: Any, parameters: Any, lost: bool) -> None:
    result = written(tools=(Tool("a", "", schema),))
    assert result.body["tools"][0]["parameters"] == parameters  # type: ignore[index]
    assert (Feature.SCHEMA in result.left_out.found) is lost


def test_names_fit_and_can_be_found_again() -> None:
    tools = (
        Tool("clock__sleep"),
        Tool("sleep", namespace="clock"),
        Tool("find", namespace="mcp__docs__"),
        Tool("päth.look"),
        Tool("x" * 70),
        Tool("plain"),
    )
    calls = tuple(ToolUse(str(place), tool.name, "{}", namespace=tool.namespace) for place, tool in enumerate(tools))
    result = written(HELLO, assistant(*calls), tools=tools)
    sent = [tool["name"] for tool in result.body["tools"]]  # type: ignore[attr-defined]
    assert sent == [item["name"] for item in result.body["input"] if item["type"] == "function_call"]  # type: ignore[attr-defined]
    assert len(set(sent)) == len(tools)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in sent)
    assert (sent[0], sent[2], sent[5]) == ("clock__sleep", "mcp__docs__find", "plain")
    assert set(result.tools) == {*sent[1:5]}
    assert result.tools[sent[1]] == ToolName("sleep", "clock")
    assert result.tools[sent[3]] == ToolName("päth.look")


def test_free_text_tools_keep_their_grammar() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
    own = Tool("patch", "edits", kind="custom", native={"type": "custom", "name": "patch", "format": grammar})
    chats = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
    other = Tool("write", kind="custom", native={"type": "custom", "custom": {"name": "write", "format": chats}})
    free = Tool("free", kind="custom", native={"type": "custom", "custom": {"name": "free", "format": {"type": "text"}}})
    odd = Tool("odd", kind="custom", native={"type": "custom", "custom": {"name": "odd", "format": {"type": "grammar"}}})
    result = written(tools=(own, other, free, odd, Tool("plain", kind="custom")))
    assert result.body["tools"] == [
        {"type": "custom", "name": "patch", "description": "edits", "format": grammar},
        {"type": "custom", "name": "write", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
        {"type": "custom", "name": "free", "format": {"type": "text"}},
        {"type": "custom", "name": "odd", "format": {"type": "text"}},
        {"type": "custom", "name": "plain", "format": {"type": "text"}},
    ]
    assert result.tools == {name: ToolName(name, custom=True) for name in ("patch", "write", "free", "odd", "plain")}
    assert result.left_out.found == {Feature.OTHER: ["form of the input of odd"]}


def test_tools_that_the_provider_runs() -> None:
    result = written(
        tools=(
            Tool("web_search", kind="server", server="web_search", native={"type": "web_search_20250305", "max_uses": 3}),
            Tool("code_execution", kind="server", server="code_execution", native={"type": "code_execution_20250825"}),
            Tool("googleSearch", kind="server", server="web_search", native={"googleSearch": {}}),
            Tool("web_fetch", kind="server", server="web_fetch"),
            Tool("docs", kind="server", native={"type": "mcp", "server_label": "docs"}),
        )
    )
    assert result.body["tools"] == [
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "mcp", "server_label": "docs"},
    ]
    assert result.left_out.found == {Feature.SERVER_TOOLS: ["settings of web_search: max_uses", "web_fetch"]}


@pytest.mark.parametrize(
    "choice, chosen",
    [
        (None, None),
        (Choice(), "auto"),
        (Choice("none"), "none"),
        (Choice("required"), "required"),
        (Choice("required", ("a",)), {"type": "function", "name": "a"}),
        (Choice("required", ("now",)), {"type": "function", "name": "clock__now"}),
        (Choice("required", ("patch",)), {"type": "custom", "name": "patch"}),
        (
            Choice("required", ("web_search",)),
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]},
        ),
        (
            Choice("auto", ("a", "patch")),
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "a"}, {"type": "custom", "name": "patch"}],
            },
        ),
        (Choice("required", ("gone",)), "auto"),
    ],
)
def test_choices(choice: Choice | None, chosen: object) -> None:
    tools = (
        Tool("a"),
        Tool("now", namespace="clock"),
        Tool("patch", kind="custom"),
        Tool("web_search", kind="server", server="web_search"),
    )
    result = written(tools=tools, choice=choice, parallel=False)
    assert result.body.get("tool_choice") == chosen
    assert result.body["parallel_tool_calls"] is False
    assert (Feature.ALLOWED_TOOLS in result.left_out.found) is (choice is not None and "gone" in choice.named)


def test_without_tools_there_is_nothing_to_choose() -> None:
    result = written(choice=Choice("required"), parallel=True)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(result.body)
    assert set(result.left_out.found) == {Feature.ALLOWED_TOOLS}


# --- how much to think ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, wanted, said, left",
    [
        ("gpt-5", Reasoning(), None, None),
        ("gpt-5", Reasoning(on=True), None, None),
        ("gpt-5", Reasoning(on=True, effort="high", shown=True), {"effort": "high", "summary": "auto"}, None),
        ("gpt-5", Reasoning(shown=True), {"summary": "auto"}, None),
        ("gpt-5", Reasoning(on=True, effort="max"), {"effort": "high"}, Feature.EFFORT),
        ("gpt-5", Reasoning(on=False, effort="none"), {"effort": "minimal"}, Feature.EFFORT),
        ("openai/gpt-5-mini", Reasoning(on=False), {"effort": "minimal"}, None),
        ("gpt-5-codex", Reasoning(on=True, effort="minimal"), {"effort": "low"}, Feature.EFFORT),
        ("gpt-5.1", Reasoning(on=False, shown=True), {"effort": "none"}, None),
        ("gpt-5.1-codex-max", Reasoning(on=True, effort="xhigh"), {"effort": "xhigh"}, None),
        ("gpt-5.2", Reasoning(on=True, effort="xhigh"), {"effort": "xhigh"}, None),
        ("o3", Reasoning(on=False, effort="high"), {"effort": "low"}, None),
        ("gpt-6.1-sol", Reasoning(on=True, effort="max"), {"effort": "max"}, None),
        ("gpt-6.1-sol", Reasoning(on=False), {"effort": "low"}, None),
        ("gpt-4.1", Reasoning(on=True, effort="high"), None, Feature.EFFORT),
        ("gpt-4.1", Reasoning(on=False), None, None),
        ("gpt-5-chat-latest", Reasoning(shown=True), None, None),
        ("glm-4.7", Reasoning(on=True, effort="max"), {"effort": "max"}, None),
        ("glm-4.7", Reasoning(on=False), None, Feature.EFFORT),
        ("gpt-5", Reasoning(on=True, budget=1024), {"effort": "low"}, Feature.BUDGET),
        ("gpt-5", Reasoning(on=True, budget=8192), {"effort": "medium"}, Feature.BUDGET),
        ("gpt-5", Reasoning(on=True, budget=31999), {"effort": "high"}, Feature.BUDGET),
        ("gpt-5", Reasoning(on=True, budget=4000, effort="low"), {"effort": "low"}, None),
        ("gpt-5", Reasoning(on=True, budget=-1), None, None),
    ],
)
def test_reasoning(model: str, wanted: Reasoning, said: object, left: Feature | None) -> None:
    result = written(model=model, reasoning=wanted)
    assert result.body.get("reasoning") == said
    assert set(result.left_out.found) == ({left} if left else set())


def test_sealed_reasoning_is_asked_for_where_there_may_be_some() -> None:
    may = {
        (model, wanted.effort): "include" in written(model=model, reasoning=wanted).body
        for model in ("gpt-5.1", "gpt-4.1", "glm-4.7")
        for wanted in (Reasoning(), Reasoning(on=False, effort="none"))
    }
    assert may == {
        ("gpt-5.1", None): True,
        ("gpt-5.1", "none"): False,
        ("gpt-4.1", None): False,
        ("gpt-4.1", "none"): False,
        ("glm-4.7", None): True,
        ("glm-4.7", "none"): False,
    }


@pytest.mark.parametrize("model, taken", [("gpt-5", False), ("o4-mini", False), ("gpt-4.1", True), ("glm-4.7", True)])
def test_models_that_reason_take_no_temperature(model: str, taken: bool) -> None:
    result = written(model=model, temperature=0.0, top_p=0.5)
    assert ({"temperature", "top_p"} <= set(result.body)) is taken
    assert (Feature.TEMPERATURE in result.left_out.found) is not taken


# --- there and back ---------------------------------------------------------------------------------------------------

FULL = said(
    Message("system", (Text("be kind"),)),
    user(Text("look"), Media("image", "image/png", data="iVBO", detail="low")),
    assistant(
        Thought("", replace(SEAL, maker="")),
        Text("I look."),
        Text("Twice."),
        ToolUse("c1", "weather", '{"city": "Bern"}'),
        ToolUse("c2", "patch", "*** Begin", custom=True),
    ),
    user(
        ToolResult("c1", (Text("see"), Media("image", url="https://x.test/a", detail="auto")), name="weather"),
        ToolResult("c2", (Text("done"),), custom=True, name="patch"),
        Text("and?"),
    ),
    Message("system", (Text("be brief"),)),
    user(Media("file", "application/pdf", data="JVBE", name="a.pdf"), Media("file", url="https://x.test/b.pdf")),
    tools=(
        Tool("weather", "w", SCHEMA, False),
        Tool(
            "patch",
            "p",
            kind="custom",
            native={"type": "custom", "name": "patch", "description": "p", "format": {"type": "text"}},
        ),
        Tool("web_search", kind="server", server="web_search", native={"type": "web_search"}),
    ),
    choice=Choice("auto", ("weather", "patch")),
    parallel=False,
    max_tokens=100,
    temperature=0.5,
    top_p=0.25,
    reasoning=Reasoning(on=True, effort="low", shown=True),
    format=Format(SCHEMA, "out", "d", True),
)


def test_what_is_written_reads_as_what_was_said() -> None:
    result = write(FULL, model="a-model-of-somebody", session="", maker=MAKER)
    assert not result.left_out.found
    assert read(result.body, HERE) == replace(FULL, model="a-model-of-somebody")


@pytest.mark.parametrize(
    "name, raw",
    [
        (recorded.name, recorded.raw)
        for recorded, at in CALLS
        if at.dialect is Dialect.RESPONSES and b"compaction_trigger" not in recorded.raw
    ],
)
def test_recorded_calls_read_as_before_once_they_are_written(name: str, raw: bytes) -> None:
    first = read(orjson.loads(raw), HERE)
    again = read(write(first, model=first.model, session="", maker=MAKER).body, HERE)
    # instructions are one text; what stands in a namespace is a name of its own; a form for tools is always said
    assert _texts(again) == _texts(first)
    others = [[turn for turn in one.messages if turn.role != "system"] for one in (again, first)]
    assert others[0] == others[1]
    assert [tool.schema for tool in again.tools] == [tool.schema for tool in first.tools]
    same = ("choice", "parallel", "max_tokens", "reasoning", "format", "stream", "model")
    assert [getattr(again, field) for field in same] == [
        getattr(first, field) if first.tools or field not in ("choice", "parallel") else None for field in same
    ]


def _texts(conversation: Conversation) -> str:
    blocks = [block for turn in conversation.messages for block in turn.blocks]
    return "\n\n".join(block.text for block in blocks if isinstance(block, Text))


# --- any conversation -------------------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "", "ü", "x" * 90])
NAMES = st.sampled_from(["look", "a.b", "x" * 80])
TEXTS = st.builds(Text, st.sampled_from(["", " ", "one", "two"]))
MEDIA = st.sampled_from([Media("image", "image/png", data="iVBO"), Media("audio", data="U"), Media("file", url="gs://x")])
SEALS = st.sampled_from([None, SEAL, replace(SEAL, maker="other"), Seal(Dialect.GEMINI, "", {"thoughtSignature": "x"})])
ASSISTANT = st.lists(
    TEXTS | MEDIA | st.builds(Thought, st.just("secret"), SEALS) | st.builds(ToolUse, IDS, NAMES, st.just("{}"), st.booleans()),
    max_size=5,
).map(lambda blocks: assistant(*blocks))
USER = st.lists(TEXTS | MEDIA | st.builds(ToolResult, IDS, st.tuples(TEXTS), st.booleans()), max_size=5).map(
    lambda blocks: user(*blocks)
)
SYSTEM = TEXTS.map(lambda text: Message("system", (text,)))
TURNS = st.lists(ASSISTANT | USER | SYSTEM, max_size=8)


@given(TURNS)
def test_any_conversation_is_a_legal_input(turns: list[Message]) -> None:
    result = written(HELLO, *turns)
    found: Any = result.body["input"]
    called = [item["call_id"] for item in found if item["type"] in ("function_call", "custom_tool_call")]
    answered = [(item["type"], item["call_id"]) for item in found if item["type"].endswith("_output")]
    kinds = {item["call_id"]: f"{item['type']}_output" for item in found if item["type"].endswith("_call")}
    assert len(set(called)) == len(called)
    assert sorted(called) == sorted(id for _, id in answered)
    assert all(kinds[id] == kind for kind, id in answered)
    assert all(0 < len(id) <= 64 for id in called)
    ids = [item["id"] for item in found if item.get("role") == "assistant"]
    assert len(set(ids)) == len(ids)
    assert all(item["content"] for item in found if item["type"] == "message")
    assert all(part.get("text", "x").strip() for item in found if item["type"] == "message" for part in item["content"])
    for place, item in enumerate(found):
        if item["type"] == "reasoning":
            assert found[place + 1]["type"] in ("reasoning", "function_call", "custom_tool_call", "message")
            assert found[place + 1].get("role") in (None, "assistant")
        if item["type"].endswith("_output"):
            assert item["call_id"] in [earlier.get("call_id") for earlier in found[:place]]
    assert orjson.dumps(result.body) == orjson.dumps(written(HELLO, *turns).body)


@given(TURNS, TURNS)
def test_a_history_that_grows_keeps_its_bytes(turns: list[Message], more: list[Message]) -> None:
    """Up to the last word of the user's, behind which calls cannot wait for results any more."""
    short: Any = written(*turns, HELLO, assistant(Text("yes")), HELLO).body
    long: Any = written(*turns, HELLO, assistant(Text("yes")), HELLO, *more).body
    assert long["input"][: len(short["input"])] == short["input"]
    assert long.get("instructions") == short.get("instructions")
