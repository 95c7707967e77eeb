# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from typing import Any

import orjson
import pytest
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
from routecodex.routing.dialects.translation.reading.chat import read
from routecodex.routing.dialects.translation.writing.chat import write
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.calls.recorded import CALLS

CHAT = Endpoint(Dialect.CHAT)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = Tool("read", "Reads", SCHEMA)
HI = Message("user", (Text("hi"),))


def _talk(*turns: Message, **fields: Any) -> Conversation:
    return Conversation(model="theirs", stream=fields.pop("stream", False), messages=turns or (HI,), **fields)


def _write(*turns: Message, model: str = "m", maker: str = "mine", session: str = "", **fields: Any) -> Written:
    return write(_talk(*turns, **fields), model=model, session=session, maker=maker)


def _messages(*turns: Message, **fields: Any) -> Any:
    return _write(*turns, **fields).body["messages"]


def _user(*blocks: Block | str) -> Message:
    return Message("user", tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def _model(*blocks: Block | str) -> Message:
    return replace(_user(*blocks), role="assistant")


def _system(text: str) -> Message:
    return Message("system", (Text(text),))


def _use(id: str, name: str = "read", arguments: str = "{}", **fields: Any) -> ToolUse:
    return ToolUse(id, name, arguments, **fields)


def _result(id: str, text: str = "text", **fields: Any) -> ToolResult:
    return ToolResult(id, (Text(text),) if text else (), **fields)


def _called(id: str, name: str = "read", arguments: str = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _told(id: str, content: str = "text") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


# --- messages -----------------------------------------------------------------------------------------------------------

PICTURE = Media("image", "image/png", data="AAAA")
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
AB = [{"role": "assistant", "content": None, "tool_calls": [_called("a"), _called("b")]}]
MESSAGES: dict[str, tuple[list[Message], list[dict[str, Any]]]] = {
    "plain": ([_system("s"), HI, _model("yes"), _user("go")], [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "go"}]),
    "instructions are one message": ([_system("a"), Message("system", (Text("b"), Text("c"))), HI], [{"role": "system", "content": "a\n\nb\n\nc"}, {"role": "user", "content": "hi"}]),
    "a late system turn": ([HI, _model("yes"), _system("s"), _user("go")], [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}, {"role": "system", "content": "s"}, {"role": "user", "content": "go"}]),
    "texts are joined": ([_user("a", "b")], [{"role": "user", "content": "a\n\nb"}]),
    "empty texts go": ([_user("", "a", ""), _model(""), _user("")], [{"role": "user", "content": "a"}]),
    "a picture": ([_user("see", PICTURE)], [{"role": "user", "content": [{"type": "text", "text": "see"}, SHOWN]}]),
    "calls in parallel": ([_model("both", _use("a"), _use("b")), _user(_result("a", "1"), _result("b", "2"))], [{"role": "assistant", "content": "both", "tool_calls": [_called("a"), _called("b")]}, _told("a", "1"), _told("b", "2")]),
    "calls of neighbouring turns": ([_model(_use("a")), _model(_use("b")), _user(_result("a"), _result("b"))], [*AB, _told("a"), _told("b")]),
    "results in the order of the calls": ([_model(_use("a"), _use("b")), _user(_result("b", "2"), _result("a", "1"))], [*AB, _told("a", "1"), _told("b", "2")]),
    "text behind results": ([_model(_use("a")), _user(_result("a"), "go on")], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a"), {"role": "user", "content": "go on"}]),
    "text before results": ([_model(_use("a")), _user("wait"), _user(_result("a"))], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a"), {"role": "user", "content": "wait"}]),
    "a system turn before results": ([_model(_use("a")), _system("s"), _user(_result("a"))], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a"), {"role": "system", "content": "s"}]),
    "a late result": ([_model(_use("a")), _user("x"), _model("y"), _user(_result("a"))], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a"), {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]),
    "no result": ([_model(_use("a"), _use("b")), _user(_result("b"))], [*AB, _told("a", "No result of this call is known."), _told("b")]),
    "no call": ([_user(_result("z", name="read"), "go")], [{"role": "user", "content": "The result of read of an earlier call:\ntext\n\ngo"}]),
    "a result before its call": ([_user(_result("a", "early")), _model(_use("a")), _user(_result("a", "late"))], [{"role": "user", "content": "The result of an earlier call:\nearly"}, {"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a", "late")]),
    "two results of one call": ([_model(_use("a")), _user(_result("a", "1"), _result("a", "2"))], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a", "1"), {"role": "user", "content": "The result of an earlier call:\n2"}]),
    "one id in two answers": ([_model(_use("a")), _user(_result("a", "1")), _model(_use("a")), _user(_result("a", "2"))], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a", "1"), {"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a", "2")]),
    "a tool that says nothing": ([_model(_use("a")), _user(_result("a", ""))], [{"role": "assistant", "content": None, "tool_calls": [_called("a")]}, _told("a", "(no output)")]),
    "a tool that failed": ([_model(_use("a"), _use("b")), _user(_result("a", "no such file", error=True), _result("b", "", error=True))], [*AB, _told("a", "Error: no such file"), _told("b", "Error: the tool failed and said nothing")]),
    "a tool that says that it failed": ([_model(_use("a"), _use("b")), _user(_result("a", "ERROR: no", error=True), _result("b", "<tool_use_error>x</tool_use_error>", error=True))], [*AB, _told("a", "ERROR: no"), _told("b", "<tool_use_error>x</tool_use_error>")]),
    "pictures in results": (
        [_model(_use("a"), _use("b")), _user(ToolResult("a", (Text("1"), PICTURE)), ToolResult("b", (PICTURE, PICTURE), error=True), "go")],
        [
            *AB,
            _told("a", "1\n[1 attachment: see the message behind the results]"),
            _told("b", "Error: [2 attachments: see the message behind the results]"),
            {"role": "user", "content": [{"type": "text", "text": "From the result of read (call a):"}, SHOWN, {"type": "text", "text": "From the result of read (call b):"}, SHOWN, SHOWN]},
            {"role": "user", "content": "go"},
        ],
    ),
    "arguments as they were written": ([_model(_use("a", arguments='{ "path" : 1.0 }'), _use("b", arguments=""))], [{"role": "assistant", "content": None, "tool_calls": [_called("a", arguments='{ "path" : 1.0 }'), _called("b", arguments="{}")]}, _told("a", "No result of this call is known."), _told("b", "No result of this call is known.")]),
    "arguments that are no object": ([_model(_use("a", arguments='{"path": "x'))], [{"role": "assistant", "content": None, "tool_calls": [_called("a", arguments='{"arguments":"{\\"path\\": \\"x"}')]}, _told("a", "No result of this call is known.")]),
    "a picture of the model's own": ([_user("draw"), _model("here", PICTURE)], [{"role": "user", "content": "draw"}, {"role": "assistant", "content": "here\n\n[Here stood a picture, which could not be passed on]"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    turns, expected = MESSAGES[name]
    assert _messages(*turns) == expected


def test_nothing_to_say_is_refused() -> None:
    with pytest.raises(BadCall):
        _write(_user(""), _model(Thought("hm")))


# --- ids and names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "model", "id", "expected"),
    [
        ("openai", "gpt-5", "call_" + "a" * 24, "call_" + "a" * 24),
        ("mine", "m", "toolu_01.x/y", r"toolu_01xy_\w{8}"),
        ("mine", "m", "a" * 41, r"a{31}_\w{8}"),
        ("mine", "m", "", r"_\w{8}"),
        ("kimi", "kimi-k2.5", "functions.read:0", r"functions\.read:0"),
        ("mistral", "devstral-latest", "toolu_01", r"[a-zA-Z0-9]{9}"),
        ("mistral", "devstral-latest", "abc", r"[a-zA-Z0-9]{9}"),
        ("mistral", "devstral-latest", "abcDEF123", "abcDEF123"),
        ("vllm", "mistralai/Pixtral-12B", "call_1", r"[a-zA-Z0-9]{9}"),
    ],
)
def test_ids_of_calls_and_results(maker: str, model: str, id: str, expected: str) -> None:
    call, result = _messages(_model(_use(id)), _user(_result(id)), maker=maker, model=model)[:2]
    assert re.fullmatch(expected, call["tool_calls"][0]["id"])
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]


def test_names_that_the_dialect_forbids() -> None:
    long, dotted, spaced = Tool("x" * 70), Tool("files.read"), Tool("search", namespace="mcp__web")
    used = (ToolUse("a", "files.read", "{}"), ToolUse("b", "search", "{}", namespace="mcp__web"), ToolUse("c", "g one", "{}"))
    written = _write(HI, _model(*used), tools=(long, dotted, spaced, READ))
    body: Any = written.body
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert names[2:] == ["mcp__web__search", "read"]
    assert written.tools == {
        names[0]: ToolName("x" * 70),
        names[1]: ToolName("files.read"),
        "mcp__web__search": ToolName("search", "mcp__web"),
    }
    called = [call["function"]["name"] for call in body["messages"][1]["tool_calls"]]
    assert called[:2] == names[1:3]
    assert re.fullmatch(r"gone_\w{8}", called[2])


def test_two_tools_never_share_a_name() -> None:
    written = _write(tools=(Tool("a__b"), Tool("b", namespace="a"), Tool("b", namespace="a__")))
    body: Any = written.body
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert len(set(names)) == 3
    assert {written.tools[name].namespace for name in names[1:]} == {"a", "a__"}


# --- tools and choice ---------------------------------------------------------------------------------------------------

EMPTY = {"type": "object", "properties": {}}
PATCH = Tool(
    "patch",
    "P",
    kind="custom",
    native={"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}},
)
DECLARED: dict[str, tuple[Tool, str, dict[str, Any]]] = {
    "function": (READ, "m", {"type": "function", "function": {"name": "read", "description": "Reads", "parameters": SCHEMA}}),
    "strict where the client asked": (replace(READ, strict=True), "m", {"type": "function", "function": {"name": "read", "description": "Reads", "parameters": SCHEMA, "strict": True}}),
    "no schema": (Tool("goal"), "m", {"type": "function", "function": {"name": "goal", "parameters": EMPTY}}),
    "no properties": (Tool("goal", schema={"type": "object"}), "m", {"type": "function", "function": {"name": "goal", "parameters": EMPTY}}),
    "no object": (Tool("goal", schema={"$ref": "#/x"}), "m", {"type": "function", "function": {"name": "goal", "parameters": {"$ref": "#/x", **EMPTY}}}),
    "alternatives at the top": (Tool("goal", schema={**SCHEMA, "oneOf": []}), "m", {"type": "function", "function": {"name": "goal", "parameters": {**SCHEMA, "oneOf": []}}}),
    "alternatives at the top, OpenAI": (Tool("goal", schema={**SCHEMA, "oneOf": []}), "gpt-4o", {"type": "function", "function": {"name": "goal", "parameters": SCHEMA}}),
    "custom, OpenAI": (PATCH, "gpt-5", {"type": "custom", "custom": {"name": "patch", "description": "P", "format": {"type": "grammar", "grammar": {"definition": "start: X", "syntax": "lark"}}}}),
    "custom as Chat declares it": (replace(PATCH, native={"type": "custom", "custom": {"name": "patch", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}}}), "gpt-5", {"type": "custom", "custom": {"name": "patch", "description": "P", "format": {"type": "grammar", "grammar": {"definition": "a+", "syntax": "regex"}}}}),
    "free custom, OpenAI": (replace(PATCH, native={}), "gpt-5", {"type": "custom", "custom": {"name": "patch", "description": "P"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARED)
def test_declarations(name: str) -> None:
    tool, model, expected = DECLARED[name]
    written = _write(tools=(tool,), model=model)
    assert written.body["tools"] == [expected]
    assert (Feature.SCHEMA in written.left_out.found) == (name == "alternatives at the top, OpenAI")


def test_a_custom_tool_is_a_function_elsewhere() -> None:
    history = (HI, _model(_use("a", "patch", 'raw "text"', custom=True)), _user(_result("a", custom=True)))
    written = _write(*history, tools=(PATCH,), model="gpt-4o")
    body: Any = written.body
    function = body["tools"][0]["function"]
    assert function["parameters"]["required"] == ["input"]
    assert "start: X" in function["description"]
    assert body["messages"][1]["tool_calls"][0] == _called("a", "patch", '{"input":"raw \\"text\\""}')
    assert written.tools == {"patch": ToolName("patch", custom=True)}
    assert Feature.STRICT in written.left_out.found


def test_a_custom_tool_is_one_for_openais_newer_models() -> None:
    written = _write(HI, _model(_use("a", "patch", "raw", custom=True)), tools=(PATCH,), model="gpt-5", maker="openai")
    body: Any = written.body
    assert body["messages"][1]["tool_calls"] == [{"id": "a", "type": "custom", "custom": {"name": "patch", "input": "raw"}}]
    assert written.tools == {"patch": ToolName("patch", custom=True)}
    assert not written.left_out.found


TOOLS = (READ, Tool("list"), Tool("web_search", kind="server", server="web_search"), PATCH)
NAMED = {"type": "function", "function": {"name": "read"}}
CHOICES: dict[str, tuple[Choice, str, object, list[str]]] = {
    # choice, model, tool_choice, names of the tools
    "auto": (Choice(), "m", "auto", ["read", "list", "patch"]),
    "none": (Choice("none"), "m", "none", ["read", "list", "patch"]),
    "required": (Choice("required"), "m", "required", ["read", "list", "patch"]),
    "one": (Choice("required", ("read",)), "m", NAMED, ["read", "list", "patch"]),
    "one custom": (Choice("required", ("patch",)), "gpt-5", {"type": "custom", "custom": {"name": "patch"}}, ["read", "list", "patch"]),
    "one custom elsewhere": (Choice("required", ("patch",)), "m", {"type": "function", "function": {"name": "patch"}}, ["read", "list", "patch"]),
    "some": (Choice("required", ("read", "list")), "m", "required", ["read", "list"]),
    "perhaps one": (Choice("auto", ("list",)), "m", "auto", ["list"]),
    "some, OpenAI": (Choice("auto", ("read", "patch")), "gpt-5", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED, {"type": "custom", "custom": {"name": "patch"}}]}}, ["read", "list", "patch"]),
    "unknown": (Choice("required", ("web_search",)), "m", "auto", ["read", "list", "patch"]),
    "one known": (Choice("required", ("web_search", "read")), "m", NAMED, ["read", "list", "patch"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name: str) -> None:
    choice, model, expected, names = CHOICES[name]
    written = _write(tools=TOOLS, choice=choice, model=model)
    body: Any = written.body
    assert body["tool_choice"] == expected
    assert [tool[tool["type"]]["name"] for tool in body["tools"]] == names
    assert (Feature.ALLOWED_TOOLS in written.left_out.found) == ("web_search" in choice.named)
    assert written.left_out.found[Feature.SERVER_TOOLS] == ["web_search"]


def test_without_tools_there_is_no_choice() -> None:
    body = _write(tools=TOOLS[2:3], choice=Choice("required"), parallel=False).body
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


@pytest.mark.parametrize(("model", "said"), [("m", True), ("gpt-5", True), ("o3", False), ("openai/o4-mini", False)])
def test_the_parallel_flag(model: str, said: bool) -> None:
    written = _write(tools=(READ,), parallel=False, model=model)
    assert written.body.get("parallel_tool_calls") == (False if said else None)
    assert (Feature.PARALLEL in written.left_out.found) is not said


# --- media --------------------------------------------------------------------------------------------------------------

PDF = Media("file", "application/pdf", data="AAAA", name="a.pdf")
MEDIA: dict[str, tuple[str, str, Media, dict[str, Any] | None, Feature | None]] = {
    # maker, model, what, as a part (None: a line in its place), what is named
    "picture": ("openai", "gpt-5", replace(PICTURE, detail="high"), {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "high"}}, None),
    "picture by address": ("openai", "gpt-5", Media("image", url="https://x"), {"type": "image_url", "image_url": {"url": "https://x"}}, None),
    "picture of a detail of its own": ("openai", "gpt-5", replace(PICTURE, detail="ultra_high"), SHOWN, Feature.IMAGE_DETAIL),
    "picture by id": ("openai", "gpt-5", Media("image", file_id="file_1"), None, Feature.FILE_LINKS),
    "picture for DeepSeek": ("deepseek", "deepseek-v4-pro", PICTURE, None, Feature.OTHER),
    "wav": ("openai", "gpt-5", Media("audio", "audio/wav", data="AAAA"), {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, None),
    "ogg": ("openai", "gpt-5", Media("audio", "audio/ogg", data="AAAA"), None, Feature.AUDIO),
    "video": ("openai", "gpt-5", Media("video", "video/mp4", data="AAAA"), None, Feature.VIDEO),
    "video for Qwen": ("qwen", "qwen3-vl", Media("video", url="https://x"), {"type": "video_url", "video_url": {"url": "https://x"}}, None),
    "PDF": ("openai", "gpt-5", PDF, {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, None),
    "PDF without a name": ("openai", "gpt-5", replace(PDF, name=""), {"type": "file", "file": {"filename": "file.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, None),
    "PDF for Mistral": ("mistral", "mistral-large-latest", PDF, {"type": "document_url", "document_url": "data:application/pdf;base64,AAAA", "document_name": "a.pdf"}, None),
    "PDF for DeepSeek": ("deepseek", "deepseek-v4-pro", PDF, None, Feature.FILES),
    "PDF by address": ("openai", "gpt-5", Media("file", url="https://x/a.pdf"), None, Feature.FILE_LINKS),
    "PDF by address, OpenRouter": ("openrouter", "x/y", Media("file", url="https://x/a.pdf", name="a.pdf"), {"type": "file", "file": {"filename": "a.pdf", "file_data": "https://x/a.pdf"}}, None),
    "file by id": ("openai", "gpt-5", Media("file", file_id="file-1"), {"type": "file", "file": {"file_id": "file-1"}}, None),
    "file by another's id": ("openai", "gpt-5", Media("file", file_id="file_011C"), None, Feature.FILE_LINKS),
    "file by id elsewhere": ("mine", "m", Media("file", file_id="file-1"), None, Feature.FILE_LINKS),
    "file that is a picture": ("mine", "m", Media("file", "image/png", data="AAAA"), SHOWN, None),
    "text file": ("deepseek", "deepseek-v4-pro", Media("file", "text/plain", text="body", name="a.txt"), {"type": "text", "text": "File a.txt:\nbody"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", MEDIA)
def test_media(name: str) -> None:
    maker, model, media, expected, feature = MEDIA[name]
    written = _write(_user(PICTURE if maker != "deepseek" else "see", media), maker=maker, model=model)
    messages: Any = written.body["messages"]
    content = messages[0]["content"]
    if maker == "deepseek":
        assert content == "see\n\n" + (expected["text"] if expected else content[5:])
        assert expected or content[5:].startswith("[Here stood a ")
    else:
        assert content[1] == (expected or {"type": "text", "text": content[1].get("text")})
    assert list(written.left_out.found) == ([feature] if feature else [])


# --- thinking -----------------------------------------------------------------------------------------------------------


def _own(maker: str = "deepseek", **payload: object) -> Seal:
    return Seal(Dialect.CHAT, maker, payload)


DETAILS = [{"type": "reasoning.encrypted", "data": "theirs", "index": 0}]
THOUGHTS: dict[str, tuple[str, list[Thought], dict[str, Any], bool]] = {
    # maker, thoughts, fields of the message, whether anything is left out
    "own": ("glm", [Thought("hm", _own("glm", reasoning_content=True))], {"reasoning_content": "hm"}, False),
    "own, of an unknown maker": ("glm", [Thought("hm", _own("", reasoning_content=True))], {"reasoning_content": "hm"}, False),
    "own, another field": ("openrouter", [Thought("hm", _own("openrouter", reasoning=True))], {"reasoning": "hm"}, False),
    "own, with details": ("openrouter", [Thought("hm", _own("openrouter", reasoning=True, reasoning_details=DETAILS))], {"reasoning": "hm", "reasoning_details": DETAILS}, False),
    "own, details alone": ("openrouter", [Thought("", _own("openrouter", reasoning_details=DETAILS))], {"reasoning_details": DETAILS}, False),
    "two": ("glm", [Thought("a", _own("glm")), Thought("b", _own("glm"))], {"reasoning_content": "a\n\nb"}, False),
    "another maker's": ("glm", [Thought("hm", _own("kimi", reasoning_content=True))], {}, True),
    "another dialect's": ("glm", [Thought("hm", Seal(Dialect.MESSAGES, "glm", {"signature": "x"}))], {}, True),
    "nobody's": ("glm", [Thought("hm")], {}, True),
    "own and another's": ("glm", [Thought("a", _own("glm")), Thought("b")], {"reasoning_content": "a"}, True),
    "own, of a host that refuses it": ("groq", [Thought("hm", _own("groq", reasoning=True))], {}, True),
    "none, of a host that misses it": ("deepseek", [], {"reasoning_content": " "}, False),
    "another's, of a host that misses it": ("deepseek", [Thought("hm")], {"reasoning_content": " "}, True),
    "own, of a host that misses it": ("deepseek", [Thought("hm", _own("deepseek"))], {"reasoning_content": "hm"}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", THOUGHTS)
def test_thoughts_go_to_their_maker_alone(name: str) -> None:
    maker, thoughts, fields, left_out = THOUGHTS[name]
    written = _write(HI, _model(*thoughts, "text"), HI, maker=maker)
    messages: Any = written.body["messages"]
    assert messages[1] == {"role": "assistant", "content": "text", **fields}
    assert (Feature.THOUGHTS in written.left_out.found) is left_out


def test_a_host_that_does_not_think_misses_nothing() -> None:
    assert _messages(HI, _model("text"), HI, maker="deepseek", reasoning=Reasoning(on=False))[1] == {
        "role": "assistant",
        "content": "text",
    }


def test_what_seals_a_call_goes_to_its_maker_alone() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    seal = Seal(Dialect.CHAT, "google", {"for": "call", "extra_content": extra})
    turns = (HI, _model(_use("a", seal=seal)))
    own = _write(*turns, maker="google", model="gemini-3-pro")
    messages: Any = own.body["messages"]
    assert messages[1]["tool_calls"] == [{**_called("a"), "extra_content": extra}]
    assert not own.left_out.found
    other = _write(*turns, maker="mine")
    messages = other.body["messages"]
    assert messages[1]["tool_calls"] == [_called("a")]
    assert Feature.THOUGHTS in other.left_out.found


TOOLED = {"tools": (READ,)}
HIGH, OFF, ON, BUDGET = Reasoning(effort="high"), Reasoning(on=False), Reasoning(on=True), Reasoning(on=True, budget=4096)
REASONING: list[tuple[str, str, Reasoning, dict[str, Any], dict[str, Any], str]] = [
    # maker, model, what the client asked, other fields, what is sent, what is named
    ("openai", "gpt-5", Reasoning(), {}, {}, ""),
    ("openai", "gpt-5", HIGH, {}, {"reasoning_effort": "high"}, ""),
    ("openai", "gpt-5", ON, {}, {}, ""),
    ("openai", "gpt-5", BUDGET, {}, {"reasoning_effort": "medium"}, "budget of reasoning (4096 as medium)"),
    ("openai", "gpt-5", Reasoning(budget=31999), {}, {"reasoning_effort": "high"}, "budget of reasoning (31999 as high)"),
    ("openai", "gpt-5", OFF, {}, {"reasoning_effort": "minimal"}, "effort of reasoning (none as minimal)"),
    ("openai", "gpt-5-mini", Reasoning(effort="max"), {}, {"reasoning_effort": "high"}, "effort of reasoning (max as high)"),
    ("openai", "o3", Reasoning(effort="minimal"), {}, {"reasoning_effort": "low"}, "effort of reasoning (minimal as low)"),
    ("openai", "gpt-5.1", OFF, {}, {"reasoning_effort": "none"}, ""),
    ("openai", "gpt-5.2", Reasoning(effort="xhigh"), {}, {"reasoning_effort": "xhigh"}, ""),
    ("openai", "gpt-5.6-sol", Reasoning(effort="max"), {}, {"reasoning_effort": "max"}, ""),
    ("openai", "gpt-5.6-sol", HIGH, TOOLED, {"reasoning_effort": "none"}, "effort of reasoning (with tools the model thinks in Responses only)"),
    ("openai", "gpt-5.6-sol", OFF, TOOLED, {"reasoning_effort": "none"}, ""),
    ("openai", "gpt-5", HIGH, TOOLED, {"reasoning_effort": "high"}, ""),
    ("openai", "gpt-4o", HIGH, {}, {}, "effort of reasoning (high)"),
    ("openai", "gpt-4o", OFF, {}, {}, ""),
    ("openrouter", "openai/gpt-5.6", Reasoning(effort="max"), TOOLED, {"reasoning": {"effort": "xhigh"}}, "effort of reasoning (max as xhigh)"),
    ("openrouter", "a/b", BUDGET, {}, {"reasoning": {"max_tokens": 4096}}, ""),
    ("openrouter", "a/b", ON, {}, {"reasoning": {"enabled": True}}, ""),
    ("openrouter", "a/b", OFF, {}, {"reasoning": {"enabled": False}}, ""),
    ("deepseek", "deepseek-v4-pro", HIGH, {}, {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, ""),
    ("deepseek", "deepseek-v4-pro", OFF, {}, {"thinking": {"type": "disabled"}}, ""),
    ("glm", "glm-4.7", HIGH, {}, {"thinking": {"type": "enabled"}}, "effort of reasoning (high)"),
    ("glm", "glm-4.7", BUDGET, {}, {"thinking": {"type": "enabled"}}, "budget of reasoning (4096)"),
    ("glm", "glm-4.7", OFF, {}, {"thinking": {"type": "disabled"}}, ""),
    ("kimi", "kimi-k2.5", ON, {}, {"thinking": {"type": "enabled"}}, ""),
    ("kimi", "kimi-k3", Reasoning(effort="medium"), {}, {"reasoning_effort": "high"}, "effort of reasoning (medium as high)"),
    ("kimi", "moonshot-v1-8k", ON, {}, {}, "effort of reasoning (thinking on)"),
    ("dashscope", "qwen3-max", BUDGET, {"stream": True}, {"enable_thinking": True, "thinking_budget": 4096}, ""),
    ("dashscope", "qwen3-max", BUDGET, {}, {}, "budget of reasoning (4096)"),
    ("dashscope", "qwen3-max", OFF, {}, {"enable_thinking": False}, ""),
    ("minimax", "MiniMax-M3", HIGH, {}, {"thinking": {"type": "adaptive"}}, "effort of reasoning (high)"),
    ("google", "gemini-3-pro", Reasoning(effort="xhigh"), {}, {"reasoning_effort": "high"}, "effort of reasoning (xhigh as high)"),
    ("google", "gemini-3-pro", OFF, {}, {"reasoning_effort": "minimal"}, "effort of reasoning (none as minimal)"),
    ("google", "gemini-2.5-flash", OFF, {}, {"reasoning_effort": "none"}, ""),
    ("groq", "openai/gpt-oss-120b", HIGH, {}, {"reasoning_effort": "high"}, ""),
    ("groq", "llama-3.3", HIGH, {}, {}, "effort of reasoning (high)"),
    ("ollama", "gpt-oss:20b", Reasoning(effort="max"), {}, {"reasoning_effort": "high"}, "effort of reasoning (max as high)"),
    ("ollama", "qwen2.5-coder:7b", HIGH, {}, {}, "effort of reasoning (high)"),
    ("mine", "glm-5", OFF, {}, {"thinking": {"type": "disabled"}}, ""),
]  # fmt: skip
_THINKING = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget")


@pytest.mark.parametrize(("maker", "model", "reasoning", "fields", "expected", "named"), REASONING)
def test_how_much_to_think(
    maker: str, model: str, reasoning: Reasoning, fields: dict[str, Any], expected: dict[str, Any], named: str
) -> None:
    written = _write(maker=maker, model=model, reasoning=reasoning, **fields)
    assert {name: value for name, value in written.body.items() if name in _THINKING} == expected
    assert str(written.left_out) == named


# --- the other fields ---------------------------------------------------------------------------------------------------

FIELDS: list[tuple[str, str, dict[str, Any], dict[str, Any], str]] = [
    # maker, model, the conversation's, what is sent, what is named
    ("mine", "m", {"max_tokens": 9}, {"max_tokens": 9}, ""),
    ("openai", "gpt-5", {"max_tokens": 9}, {"max_completion_tokens": 9}, ""),
    ("azure", "gpt-35-turbo", {"max_tokens": 9}, {"max_tokens": 9}, ""),
    ("azure", "o3", {"max_tokens": 9}, {"max_completion_tokens": 9}, ""),
    ("openai", "gpt-6.1-sol", {"max_tokens": 9}, {"max_completion_tokens": 9}, ""),
    ("openai", "gpt-4o", {"max_tokens": 9}, {"max_tokens": 9}, ""),
    ("openai", "gpt-4o-mini", {"max_tokens": 128_000}, {"max_tokens": 16384}, "fields that only its own dialect knows (a limit of 128000 tokens: 16384 is the model's)"),
    ("openrouter", "openai/o3", {"max_tokens": 128_000}, {"max_completion_tokens": 100000}, "fields that only its own dialect knows (a limit of 128000 tokens: 100000 is the model's)"),
    ("openai", "gpt-5.1", {"max_tokens": 128_000}, {"max_completion_tokens": 128000}, ""),
    ("mine", "gpt-oss", {"max_tokens": 128_000}, {"max_tokens": 128000}, ""),
    ("glm", "glm-4.7", {"max_tokens": 128_000}, {"max_tokens": 128000}, ""),
    ("groq", "openai/gpt-oss-120b", {"max_tokens": 9}, {"max_tokens": 9}, ""),
    ("mine", "m", {"temperature": 0.0, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}, ""),
    ("mine", "m", {"temperature": 3.0}, {"temperature": 2.0}, "temperature out of its range (3)"),
    ("openai", "gpt-5", {"temperature": 1.0}, {"temperature": 1.0}, ""),
    ("openai", "gpt-5", {"temperature": 0.0}, {}, "temperature out of its range (0: the model takes 1 alone)"),
    ("openai", "gpt-5-chat-latest", {"temperature": 0.0}, {"temperature": 0.0}, ""),
    ("openai", "gpt-5", {"top_p": 0.9}, {}, "temperature out of its range (top_p)"),
    ("mine", "m", {"top_k": 5}, {}, "top_k"),
    ("openrouter", "a/b", {"top_k": 5}, {"top_k": 5}, ""),
    ("mine", "m", {"seed": 5}, {"seed": 5}, ""),
    ("mistral", "mistral-large-latest", {"seed": 5}, {"random_seed": 5}, ""),
    ("google", "gemini-3-pro", {"seed": 5}, {}, "seed"),
    ("mine", "m", {"presence_penalty": 0.5, "frequency_penalty": 0.0}, {"presence_penalty": 0.5, "frequency_penalty": 0.0}, ""),
    ("openai", "gpt-5", {"presence_penalty": 0.5, "frequency_penalty": 0.0}, {}, "presence and frequency penalties (presence_penalty)"),
    ("mine", "m", {"stops": ("a",)}, {"stop": ["a"]}, ""),
    ("mine", "m", {"stops": tuple("abcdef")}, {"stop": ["a", "b", "c", "d"]}, "more stop sequences than it takes (e, f)"),
    ("glm", "glm-4.7", {"stops": ("a", "b")}, {"stop": ["a"]}, "more stop sequences than it takes (b)"),
    ("deepseek", "deepseek-v4-pro", {"stops": tuple("abcdef")}, {"stop": list("abcdef")}, ""),
    ("openai", "gpt-5", {"stops": ("a",)}, {}, "stop sequences"),
    ("openai", "gpt-5.1", {"stops": ("a",), "temperature": 0.0, "reasoning": OFF}, {"stop": ["a"], "temperature": 0.0, "reasoning_effort": "none"}, ""),
    ("mine", "m", {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}, ""),
    ("mistral", "mistral-large-latest", {"stream": True}, {"stream": True}, ""),
    ("mine", "m", {"format": Format(SCHEMA)}, {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}}, ""),
    ("mine", "m", {"format": Format(SCHEMA, "my name", "d", strict=True)}, {"response_format": {"type": "json_schema", "json_schema": {"name": "myname_sqdldSuP", "description": "d", "schema": SCHEMA, "strict": True}}}, ""),
    ("mine", "m", {"others": ((Feature.METADATA, ""), (Feature.OTHER, "verbosity"))}, {}, "metadata, fields that only its own dialect knows (verbosity)"),
    ("mine", "m", {"user": "somebody"}, {}, "metadata (user)"),
]  # fmt: skip


@pytest.mark.parametrize(("maker", "model", "fields", "expected", "named"), FIELDS)
def test_fields(maker: str, model: str, fields: dict[str, Any], expected: dict[str, Any], named: str) -> None:
    written = _write(maker=maker, model=model, **fields)
    assert written.body == {"model": model, "messages": [{"role": "user", "content": "hi"}], **expected}
    assert str(written.left_out) == named


@pytest.mark.parametrize(
    ("maker", "model", "session", "key"),
    [
        ("openai", "gpt-5", "sess-1", "sess-1"),
        ("mine", "m", "sess-1", "sess-1"),
        ("mine", "m", "", None),
        ("groq", "llama", "sess-1", None),
        ("cerebras", "llama", "sess-1", None),
        ("my-gemini", "x", "sess-1", None),
        ("mine", "gemini-3-pro", "sess-1", None),
    ],
)
def test_the_session_is_the_key_of_the_cache(maker: str, model: str, session: str, key: str | None) -> None:
    written = _write(maker=maker, model=model, session=session, user=session)
    assert written.body.get("prompt_cache_key") == key
    assert not written.left_out.found


def test_a_long_session_is_cut_to_what_the_key_may_be() -> None:
    key = str(_write(session="s" * 200).body["prompt_cache_key"])
    assert len(key) == 64
    assert key != _write(session="s" * 201).body["prompt_cache_key"]


def test_json_mode_says_json() -> None:
    """OpenAI refuses JSON mode where no message speaks of it."""
    assert "JSON" in _messages(_system("s"), HI, format=Format())[0]["content"]
    assert _messages(_user("as json, please"), format=Format()) == [{"role": "user", "content": "as json, please"}]


@pytest.mark.parametrize(("maker", "model"), [("deepseek", "deepseek-v4-pro"), ("glm", "glm-4.7")])
def test_a_schema_is_told_where_it_cannot_be_demanded(maker: str, model: str) -> None:
    written = _write(_system("s"), HI, format=Format(SCHEMA), maker=maker, model=model)
    messages: Any = written.body["messages"]
    assert written.body["response_format"] == {"type": "json_object"}
    assert messages[0]["content"].startswith("s\n\n")
    assert messages[0]["content"].endswith(orjson.dumps(SCHEMA).decode())
    assert str(written.left_out) == "structured output (the schema is told, not enforced)"


@pytest.mark.parametrize(
    "turn",
    [
        Message("system", (Text("a", cached=True),)),
        _user(Text("a", cached=True)),
        _user(replace(PICTURE, cached=True)),
        _user(_result("a", cached=True)),
    ],
)
def test_cache_marks_are_named(turn: Message) -> None:
    assert Feature.CACHE_MARKS in _write(turn, HI).left_out.found
    assert Feature.CACHE_MARKS in _write(HI, tools=(replace(READ, cached=True),)).left_out.found


def test_an_unfinished_answer_is_named() -> None:
    assert str(_write(HI, _model("The answer is")).left_out) == (
        "fields that only its own dialect knows (going on with the assistant's last message)"
    )


# --- hosts that want another order --------------------------------------------------------------------------------------


def test_mistrals_order() -> None:
    turns = (_system("s"), HI, _user(PICTURE), _model(_use("a")), _system("late"), _user(_result("a"), "go"), _model("It is"))
    messages = _messages(*turns, maker="mistral", model="mistral-large-latest")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user", "assistant"]
    assert messages[1]["content"] == [{"type": "text", "text": "hi"}, SHOWN]
    assert messages[5]["content"] == "<system-reminder>\nlate\n</system-reminder>\n\ngo"
    assert messages[6] == {"role": "assistant", "content": "It is", "prefix": True}
    assert not _write(*turns, maker="mistral", model="mistral-large-latest").left_out.found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("late", "<system-reminder>\nlate\n</system-reminder>"),
        ("<system-reminder>x</system-reminder>", "<system-reminder>x</system-reminder>"),
    ],
)
def test_late_system_turns_where_they_are_refused(text: str, expected: str) -> None:
    assert _messages(HI, _system(text), maker="minimax", model="MiniMax-M3")[1] == {"role": "user", "content": expected}


def test_google_wants_the_name_of_the_tool() -> None:
    messages = _messages(HI, _model(_use("a")), _user(_result("a")), maker="google", model="gemini-3-pro")
    assert messages[2] == {"role": "tool", "tool_call_id": "a", "name": "read", "content": "text"}


# --- laws ---------------------------------------------------------------------------------------------------------------

HOSTS = [("openai", "gpt-5"), ("mine", "m"), ("mistral", "devstral-latest"), ("deepseek", "deepseek-v4-pro"), ("google", "gemini-3-pro"),
         ("minimax", "MiniMax-M3"), ("openrouter", "a/b")]  # fmt: skip


def _some_turns(chance: random.Random) -> list[Message]:
    turns: list[Message] = []
    for number in range(chance.randrange(1, 12)):
        text = Text(f"text-{number}")
        calls = [
            _use(chance.choice(("a", "b", f"call.{number}", f"{number}" * 50)), chance.choice(("read", "x.y")))
            for _ in range(chance.randrange(3))
        ]
        results = [
            _result(chance.choice(("a", "b", f"call.{number - 1}")), f"result-{number}-{place}", error=chance.random() < 0.3)
            for place in range(chance.randrange(3))
        ]
        media = [PICTURE] if chance.random() < 0.3 else []
        turns.append(
            chance.choice(
                (
                    _model(Thought("hm"), text, *calls),
                    _model(*calls),
                    _user(*results, text, *media),
                    Message("user", tuple(results)),
                    Message("system", (text,)),
                )
            )
        )
    return turns  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_what_is_written_is_legal_and_whole(seed: int) -> None:
    chance = random.Random(seed)
    for maker, model in HOSTS:
        turns = _some_turns(chance)
        try:
            written = _write(*turns, maker=maker, model=model, tools=(READ, Tool("x.y")))
        except BadCall:
            assert not any(isinstance(block, Text | ToolUse | ToolResult | Media) for turn in turns for block in turn.blocks)
            continue
        messages: Any = written.body["messages"]
        waiting: list[str] = []
        for message in messages:
            assert (message["role"] == "tool") == bool(waiting)
            if waiting:
                assert message["tool_call_id"] == waiting.pop(0)
            assert message["content"] or message.get("tool_calls")
            waiting = [call["id"] for call in message.get("tool_calls", ())] or waiting
        assert not waiting
        whole = orjson.dumps(messages).decode()
        for turn in turns:
            for block in turn.blocks:
                for text in (block, *(block.blocks if isinstance(block, ToolResult) else ())):
                    assert not isinstance(text, Text) or text.text in whole
        assert "hm" not in whole
        if maker == "mistral":
            roles = [message["role"] for message in messages]
            assert not [pair for pair in pairwise(roles) if pair in (("user", "user"), ("tool", "user"))]
            assert "system" not in roles[1:]


@pytest.mark.parametrize("seed", range(10))
def test_a_longer_history_begins_with_the_same_bytes(seed: int) -> None:
    """What the provider has in its cache is found again: nothing that was sent changes when the conversation goes on."""
    chance = random.Random(seed)
    turns: list[Message] = [_system("rules")]
    before = b""
    for number in range(12):
        calls = [_use(f"toolu_{number}_{place}") for place in range(chance.randrange(3))]
        turns += [_user(f"question {number}", PICTURE), _model(Thought("hm"), f"answer {number}", *calls)]
        if calls:
            turns.append(Message("user", tuple(ToolResult(call.id, (Text("one"), PICTURE)) for call in calls)))
        else:
            turns.append(_user("more"))
        written = orjson.dumps(_write(*turns, tools=(READ,)).body["messages"])
        assert written == orjson.dumps(_write(*turns, tools=(READ,)).body["messages"])
        assert written.startswith(before)
        before = written[:-1]


ROUND_TRIPS = [
    _talk(_system("s"), HI, _model("yes"), _user("go", PICTURE), stream=True),
    _talk(HI, _model("t", _use("a", arguments='{"path":"x"}'), _use("b")), Message("user", (_result("a", name="read"), _result("b", name="read"))), tools=(READ, replace(READ, name="list", strict=False))),
    _talk(HI, _model(Thought("hm", _own("", reasoning_content=True)), "text"), HI, max_tokens=5, temperature=0.5, top_p=0.5, seed=1),
    _talk(HI, _model(Thought("hm", _own("", reasoning=True, reasoning_details=DETAILS)), _use("a")), Message("user", (_result("a", name="read"),))),
    _talk(_user("json"), format=Format(SCHEMA, "n", "d", strict=True), stops=("a", "b"), presence_penalty=0.5, frequency_penalty=0.25),
    _talk(_user("see", Media("image", url="https://x", detail="low"), PDF, Media("audio", "audio/mpeg", data="AAAA"))),
    _talk(HI, tools=(READ,), choice=Choice("required", ("read",)), parallel=False),
    _talk(HI, tools=(READ,), choice=Choice("none"), parallel=True),
]  # fmt: skip


@pytest.mark.parametrize("conversation", ROUND_TRIPS, ids=lambda conversation: str(len(conversation.messages)))
def test_what_was_written_is_read_as_it_was(conversation: Conversation) -> None:
    written = write(conversation, model="theirs", session="", maker="mine")
    assert not written.left_out.found
    assert read(json.loads(orjson.dumps(written.body)), CHAT) == conversation


def test_openais_own_round_trip() -> None:
    conversation = _talk(HI, _model(_use("c", "patch", "raw", custom=True)), Message("user", (_result("c", name="patch", custom=True),)),
                         tools=(READ, PATCH), choice=Choice("auto", ("read", "patch")), reasoning=HIGH, max_tokens=7)  # fmt: skip
    conversation = replace(conversation, model="gpt-5")
    again = read(json.loads(orjson.dumps(write(conversation, model="gpt-5", session="s", maker="openai").body)), CHAT)
    assert replace(again, tools=()) == replace(conversation, tools=())
    assert [replace(tool, native={}) for tool in again.tools] == [READ, replace(PATCH, native={})]


RECORDED = [request for request, endpoint in CALLS if endpoint.dialect is Dialect.CHAT]


@pytest.mark.parametrize("request_", RECORDED, ids=lambda request: request.name)
@pytest.mark.parametrize(("maker", "model"), HOSTS)
def test_recorded_calls_lose_no_text(request_: Any, maker: str, model: str) -> None:
    conversation = read(json.loads(request_.raw), CHAT)
    written = write(conversation, model=model, session="s", maker=maker)
    messages: Any = written.body["messages"]
    texts = [message["content"] for message in messages]
    for turn in conversation.messages:
        for block in turn.blocks:
            told = [block] if isinstance(block, Text) else block.blocks if isinstance(block, ToolResult) else []
            assert all(any(one.text in text for text in texts if isinstance(text, str)) for one in told if isinstance(one, Text))
    tools: Any = written.body.get("tools", [])
    names = [written.tools[name].name if (name := tool["function"]["name"]) in written.tools else name for tool in tools]
    assert names == [tool.name for tool in conversation.tools]
