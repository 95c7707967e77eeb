# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import base64
from itertools import pairwise
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
from routecodex.routing.dialects.translation.reading.gemini import read
from routecodex.routing.dialects.translation.writing.gemini import write
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.calls.recorded import CALLS

OLD, NEW = "gemini-2.5-flash", "gemini-3.8-flash"
ENDPOINT = Endpoint(Dialect.GEMINI, model=NEW, stream=True)
SKIP = "skip_thought_signature_validator"
HI = Message("user", (Text("hi"),))
F = Tool("f", "does", {"type": "object", "properties": {"a": {"type": "string"}}})
SEARCH = Tool("web_search", kind="server", server="web_search", native={"type": "web_search_20250305", "name": "web_search"})


def written(*turns: Message, model: str = NEW, **fields: Any) -> Written:
    return write(Conversation("m", True, turns or (HI,), **fields), model=model, session="s", maker="google")


def contents(*turns: Message, model: str = NEW) -> list[tuple[str, list[Any]]]:
    found: Any = written(*turns, model=model).body["contents"]
    return [(content["role"], content["parts"]) for content in found]


def config(model: str = NEW, **fields: Any) -> dict[str, Any]:
    found: Any = written(model=model, **fields).body.get("generationConfig", {})
    return dict(found)


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def model_(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def call(id: str = "1", name: str = "f", arguments: str = "{}", **fields: Any) -> ToolUse:
    return ToolUse(id, name, arguments, **fields)


def result(id: str = "1", text: str = "ok", **fields: Any) -> ToolResult:
    return ToolResult(id, (Text(text),) if text else (), **fields)


def called(id: str = "1", name: str = "f", args: Any = None, signature: str = "") -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"id": id, "name": name, "args": args or {}}}
    return {**part, "thoughtSignature": signature} if signature else part


def answered(id: str = "1", name: str = "f", output: str = "ok", key: str = "output") -> dict[str, Any]:
    return {"functionResponse": {"id": id, "name": name, "response": {key: output}}}


def own(word: str, place: str = "", maker: str = "google") -> Seal:
    return Seal(Dialect.GEMINI, maker, {**({"for": place} if place else {}), "thoughtSignature": word})


MISSING = "The result of this call is missing."

# --- turns -----------------------------------------------------------------------------------------------------------------

TURNS: dict[str, tuple[list[Message], list[tuple[str, list[Any]]]]] = {
    "text": ([HI], [("user", [{"text": "hi"}])]),
    "neighbours": ([HI, user(Text("there")), model_(Text("a")), model_(Text("b")), HI], [("user", [{"text": "hi"}, {"text": "there"}]), ("model", [{"text": "a"}, {"text": "b"}]), ("user", [{"text": "hi"}])]),
    "empty text": ([user(Text(""), Text("hi")), model_(Text("")), HI], [("user", [{"text": "hi"}, {"text": "hi"}])]),
    "the model first": ([model_(Text("hello")), HI], [("user", [{"text": "(The conversation begins with your own message.)"}]), ("model", [{"text": "hello"}]), ("user", [{"text": "hi"}])]),
    "instructions in the middle": ([HI, Message("system", (Text("be brief"),)), model_(Text("a")), Message("system", (Text("x"),))], [("user", [{"text": "hi"}, {"text": "<system>\nbe brief\n</system>"}]), ("model", [{"text": "a"}]), ("user", [{"text": "<system>\nx\n</system>"}])]),
    "call and result": ([HI, model_(Text("a"), call(arguments='{"x":1}')), user(result())], [("user", [{"text": "hi"}]), ("model", [{"text": "a"}, called(args={"x": 1}, signature=SKIP)]), ("user", [answered()])]),
    "results in the order of the calls": ([HI, model_(call("1"), call("2", "g")), user(result("2", "b"), result("1", "a"))], [("user", [{"text": "hi"}]), ("model", [called("1", signature=SKIP), called("2", "g")]), ("user", [answered("1", output="a"), answered("2", "g", output="b")])]),
    "text before the results": ([HI, model_(call()), user(Text("now"), result())], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(), {"text": "now"}])]),
    "instructions between call and result": ([HI, model_(call()), Message("system", (Text("x"),)), user(result())], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(), {"text": "<system>\nx\n</system>"}])]),
    "an error": ([HI, model_(call()), user(result(text="no", error=True))], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output="no", key="error")])]),
    "a result of nothing": ([HI, model_(call()), user(result(text=""))], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output="")])]),
    "several texts in a result": ([HI, model_(call()), user(ToolResult("1", (Text("a"), Text("b"))))], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output="a\nb")])]),
    "a missing result": ([HI, model_(call("1"), call("2", "g")), user(result("2"))], [("user", [{"text": "hi"}]), ("model", [called("1", signature=SKIP), called("2", "g")]), ("user", [answered("1", output=MISSING, key="error"), answered("2", "g")])]),
    "no results at the end": ([HI, model_(call())], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output=MISSING, key="error")])]),
    "a late result": ([HI, model_(call()), user(Text("wait")), model_(Text("yes")), user(result())], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(), {"text": "wait"}]), ("model", [{"text": "yes"}]), ("user", [{"text": "Continue exactly where your last message ends."}])]),
    "a result without a call": ([user(result("9", "x", name="g")), user(result("8", "y", error=True))], [("user", [{"text": "Result of the tool g:\nx"}, {"text": "Result of the tool 8 (failed):\ny"}])]),
    "a call that the user makes": ([HI, user(call(arguments='{"a":1}'))], [("user", [{"text": "hi"}, {"text": 'Call of the tool f: {"a":1}'}])]),
    "a result before its call": ([user(result("1", "early", name="f")), model_(call()), user(result("1", "late"))], [("user", [{"text": "Result of the tool f:\nearly"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output="late")])]),
    "the same id again": ([HI, model_(call()), user(result(text="a")), model_(call()), user(result(text="b"))], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output="a")]), ("model", [called(signature=SKIP)]), ("user", [answered(output="b")])]),
    "two results of one call": ([HI, model_(call()), user(result(text="a"), result(text="b", name="f"))], [("user", [{"text": "hi"}]), ("model", [called(signature=SKIP)]), ("user", [answered(output="a"), {"text": "Result of the tool f:\nb"}])]),
    "free text for a tool": ([HI, model_(call(arguments="*** patch", custom=True)), user(result(custom=True))], [("user", [{"text": "hi"}]), ("model", [called(args={"input": "*** patch"}, signature=SKIP)]), ("user", [answered()])]),
    "arguments that are none": ([HI, model_(call(arguments="[1]")), user(result())], [("user", [{"text": "hi"}]), ("model", [called(args={"arguments": "[1]"}, signature=SKIP)]), ("user", [answered()])]),
    "no id": ([HI, model_(call("")), user(result(""))], [("user", [{"text": "hi"}]), ("model", [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SKIP}]), ("user", [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}])]),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNS)
def test_turns(name: str) -> None:
    turns, expected = TURNS[name]
    assert contents(*turns) == expected


def test_instructions_stand_apart() -> None:
    turns = (Message("system", (Text("a"), Text(""))), Message("system", (Text("b"),)), HI)
    body = written(*turns).body
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]},
    }


def test_instructions_alone_are_said_by_the_user() -> None:
    assert written(Message("system", (Text("a"),))).body == {"contents": [{"role": "user", "parts": [{"text": "a"}]}]}


def test_a_picture_in_the_instructions_is_named() -> None:
    left_out = written(Message("system", (Text("a"), Media("image", "image/png", data="iVBO"))), HI).left_out
    assert left_out.found == {Feature.FILES: ["in the instructions"]}


@pytest.mark.parametrize("turns", [(user(Text("")),), (Message("system", ()),), (model_(Thought("hm")),)])
def test_nothing_to_say_is_refused(turns: tuple[Message, ...]) -> None:
    with pytest.raises(BadCall, match="no message"):
        written(*turns)


@pytest.mark.parametrize(("model", "goes_on"), [(OLD, False), ("gemini-2.0-flash", False), (NEW, True), ("claude-x", False)])
def test_an_answer_that_was_begun(model: str, goes_on: bool) -> None:
    roles = [role for role, _ in contents(HI, model_(Text("{")), model=model)]
    assert roles == ["user", "model", "user"] if goes_on else ["user", "model"]


# --- signatures ------------------------------------------------------------------------------------------------------------

SIGNED: dict[str, tuple[list[Block], list[dict[str, Any]], bool]] = {
    # blocks of the model's turn, its parts, and whether thoughts were left out
    "our own call": ([call(seal=own("c2ln", "call"))], [called(signature="c2ln")], False),
    "of an unknown maker": ([call(seal=own("c2ln", "call", maker=""))], [called(signature="c2ln")], False),
    "another key's": ([call(seal=own("c2ln", "call", maker="other"))], [called(signature=SKIP)], True),
    "another dialect's": ([call(seal=Seal(Dialect.CHAT, "google", {"thoughtSignature": "c2ln"}))], [called(signature=SKIP)], True),
    "only the first of several": ([call("1", seal=own("c2ln", "call")), call("2"), call("3")], [called("1", signature="c2ln"), called("2"), called("3")], False),
    "only the second": ([call("1"), call("2", seal=own("c2ln", "call"))], [called("1", signature=SKIP), called("2", signature="c2ln")], False),
    "a thought of ours": ([Thought("hm", own("c2ln")), Text("a")], [{"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, {"text": "a"}], False),
    "a thought of ours without text": ([Thought("", own("c2ln")), Text("a")], [{"text": "", "thought": True, "thoughtSignature": "c2ln"}, {"text": "a"}], False),
    "a foreign thought": ([Thought("hm", Seal(Dialect.MESSAGES, "anthropic", {"signature": "x"})), Text("a")], [{"text": "a"}], True),
    "nobody's thought": ([Thought("hm"), Text("a")], [{"text": "a"}], True),
    "a signed text": ([Text("a"), Thought("", own("c2ln", "part"))], [{"text": "a", "thoughtSignature": "c2ln"}], False),
    "a text signed twice": ([Text("a"), Thought("", own("c2ln", "part")), Thought("", own("bW9yZQ", "part"))], [{"text": "a", "thoughtSignature": "c2ln"}, {"text": "", "thoughtSignature": "bW9yZQ"}], False),
    "a signature before its text": ([Thought("", own("c2ln", "part")), Text("b"), Text("c")], [{"text": "b", "thoughtSignature": "c2ln"}, {"text": "c"}], False),
    "a signature before a call": ([Thought("", own("c2ln", "part")), call()], [{"text": "", "thoughtSignature": "c2ln"}, called(signature=SKIP)], False),
    "a signature of nothing": ([Text("a"), call(), Thought("", own("c2ln", "part"))], [{"text": "a"}, called(signature=SKIP), {"text": "", "thoughtSignature": "c2ln"}], False),
    "a thought that an empty part signed": ([Text("a"), Thought("hm", own("c2ln", "part"))], [{"text": "a"}, {"text": "hm", "thought": True, "thoughtSignature": "c2ln"}], False),
    "a signed picture": ([Media("image", "image/png", data="iVBO"), Thought("", own("c2ln", "part"))], [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "thoughtSignature": "c2ln"}], False),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNED)
def test_signatures(name: str) -> None:
    blocks, expected, lost = SIGNED[name]
    results = [result(block.id) for block in blocks if isinstance(block, ToolUse)]
    out = written(HI, model_(*blocks), user(*results, Text("go on")))
    found: Any = out.body["contents"]
    assert found[1]["parts"] == expected
    assert (Feature.THOUGHTS in out.left_out.found) == lost


@pytest.mark.parametrize("name", [name for name, (_, _, lost) in SIGNED.items() if lost])
def test_no_foreign_thought_is_sent_in_any_form(name: str) -> None:
    blocks, _, _ = SIGNED[name]
    sent = orjson.dumps(written(HI, model_(*blocks), HI).body)
    assert b"hm" not in sent
    assert b"c2ln" not in sent


@pytest.mark.parametrize("role", ["user", "system"])
def test_only_the_model_thinks(role: Any) -> None:
    out = written(HI, model_(Text("a")), Message(role, (Thought("hm", own("c2ln")),)), model_(Text("b")), HI)
    assert [content["role"] for content in contents_in(out)] == ["user", "model", "user"]
    assert list(out.left_out.found) == [Feature.THOUGHTS]


def contents_in(out: Written) -> list[Any]:
    found: Any = out.body["contents"]
    return list(found)


def test_a_thought_that_nobody_signed_is_named_so() -> None:
    assert written(HI, model_(Thought("hm"), Text("a")), HI).left_out.found == {Feature.THOUGHTS: ["unsigned"]}


@pytest.mark.parametrize(("model", "wanted"), [(OLD, False), ("gemini-2.5-pro", False), ("gemini-3-pro-preview", True), ("gemini-4-argon", True), ("google/gemini-3.1-pro", True), ("gemini-flash-latest", True), ("claude-sonnet-4-5", False)])  # fmt: skip
def test_who_wants_a_word_for_a_missing_signature(model: str, wanted: bool) -> None:
    part = contents(HI, model_(call()), user(result()), model=model)[1][1][0]
    assert part.get("thoughtSignature") == (SKIP if wanted else None)


def test_the_word_is_base64_of_its_own() -> None:
    assert len(base64.b64decode(SKIP, altchars=b"-_", validate=True)) == 24


# --- media -----------------------------------------------------------------------------------------------------------------

PNG = Media("image", "image/png", data="iVBO")
PNG_PART = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


MEDIA: dict[str, tuple[Media, list[dict[str, Any]], dict[Feature, list[str]]]] = {
    "a picture": (PNG, [PNG_PART], {}),
    "a misspelled type": (Media("image", "image/JPG", data="/9j/"), [{"inlineData": {"mimeType": "image/jpeg", "data": "/9j/"}}], {}),
    "a picture of a kind that it refuses": (Media("image", "image/gif", data="R0lG"), [{"text": "[image (image/gif): could not be passed on]"}], {Feature.FILES: ["image/gif"]}),
    "detail": (replace(PNG, detail="high"), [PNG_PART], {Feature.IMAGE_DETAIL: ["high"]}),
    "any detail": (replace(PNG, detail="auto"), [PNG_PART], {}),
    "sound": (Media("audio", "audio/x-wav", data="UklG"), [{"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}], {}),
    "a file": (Media("file", "application/pdf", data="JVBE", name="a.pdf"), [{"text": "[file: a.pdf]"}, {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}}], {}),
    "a text": (Media("file", "text/markdown", text="# Grüße"), [{"inlineData": {"mimeType": "text/plain", "data": b64("# Grüße")}}], {}),
    "a text as bytes": (Media("file", "application/json; charset=utf-8", data=b64("{}")), [{"inlineData": {"mimeType": "text/plain", "data": b64("{}")}}], {}),
    "a text that is none": (Media("file", "application/json", data="/w=="), [{"text": "[file (application/json): could not be passed on]"}], {Feature.FILES: ["application/json"]}),
    "an archive": (Media("file", "application/zip", data="UEsD", name="a.zip"), [{"text": "[file a.zip (application/zip): could not be passed on]"}], {Feature.FILES: ["application/zip"]}),
    "nothing": (Media("file"), [{"text": "[file (file): could not be passed on]"}], {Feature.FILES: ["file"]}),
    "an address": (Media("image", url="https://x.test/a.webp?b=c.d"), [{"fileData": {"mimeType": "image/webp", "fileUri": "https://x.test/a.webp?b=c.d"}}], {}),
    "an address without an ending": (Media("file", url="https://x.test/a"), [{"fileData": {"mimeType": "application/pdf", "fileUri": "https://x.test/a"}}], {}),
    "an address with its type": (Media("video", "video/webm", url="https://x.test/a"), [{"fileData": {"mimeType": "video/webm", "fileUri": "https://x.test/a"}}], {}),
    "an address of this machine": (Media("image", url="file:///etc/passwd"), [{"text": "[image (file): could not be passed on]"}], {Feature.FILE_LINKS: ["file"]}),
    "a file of Google's": (Media("file", "application/pdf", file_id="https://generativelanguage.googleapis.com/v1beta/files/a"), [{"fileData": {"mimeType": "application/pdf", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}}], {}),
    "a file of somebody else's": (Media("file", file_id="file_011"), [{"text": "[file (a file that another provider keeps): could not be passed on]"}], {Feature.FILE_LINKS: ["a file that another provider keeps"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", MEDIA)
def test_media(name: str) -> None:
    media, expected, lost = MEDIA[name]
    out = written(user(media))
    assert out.body["contents"] == [{"role": "user", "parts": expected}]
    assert out.left_out.found == lost
    assert contents(HI, model_(media), HI)[1] == ("model", expected)


PDF = Media("file", "application/pdf", data="JVBE", name="a.pdf")
LINK = Media("image", "image/png", url="https://x.test/a.png")
GIF = Media("image", "image/gif", data="R0lG")
RESULT = ToolResult("1", (Text("see"), PNG, PDF, LINK, GIF))


def test_media_stand_inside_a_result() -> None:
    (_, parts) = contents(HI, model_(call()), user(RESULT, Text("now")))[2]
    assert parts == [
        {
            "functionResponse": {
                "id": "1",
                "name": "f",
                "response": {"output": "see\n[file: a.pdf]\n[image (image/gif): could not be passed on]"},
                "parts": [PNG_PART, {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}}],
            }
        },
        {"text": "From the result of f (1):"},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://x.test/a.png"}},
        {"text": "now"},
    ]


def test_media_stand_behind_all_results_for_older_models() -> None:
    turns = (HI, model_(call(), call("2", "g")), user(ToolResult("1", (Text("see"), PNG)), result("2", "b"), Text("now")))
    assert contents(*turns, model=OLD)[2][1] == [
        answered("1", output="see"),
        answered("2", "g", output="b"),
        {"text": "From the result of f (1):"},
        PNG_PART,
        {"text": "now"},
    ]


def test_a_result_without_a_call_keeps_its_picture() -> None:
    assert contents(user(ToolResult("1", (Text("see"), PNG), name="f")))[0][1] == [
        {"text": "Result of the tool f:\nsee"},
        PNG_PART,
    ]


# --- tools -----------------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
DECLARED = {"name": "f", "description": "does", "parameters": SCHEMA}


def tools(*given_: Tool, **fields: Any) -> tuple[Any, Written]:
    out = written(tools=given_, **fields)
    return out.body.get("tools"), out


def test_functions() -> None:
    declared, out = tools(F, Tool("g"), Tool("h", schema={"type": "object", "properties": {}}))
    assert declared == [{"functionDeclarations": [DECLARED, {"name": "g"}, {"name": "h"}]}]
    assert (out.left_out.found, out.tools) == ({}, {})


RULE = {"syntax": "lark", "definition": 'start: "a"'}


@pytest.mark.parametrize(
    "native",
    [{"format": {"type": "grammar", **RULE}}, {"custom": {"format": {"type": "grammar", "grammar": RULE}}}],
    ids=["Responses", "Chat"],
)
def test_free_text_tools_are_functions_of_one_field(native: dict[str, Any]) -> None:
    declared, out = tools(Tool("patch", "edits", kind="custom", native={"type": "custom", **native}))
    (function,) = declared[0]["functionDeclarations"]
    field = function["parameters"]["properties"]["input"]
    assert (function["name"], function["parameters"]["required"], field["type"]) == ("patch", ["input"], "STRING")
    assert field["description"].endswith('It must match this lark grammar:\nstart: "a"')
    assert out.tools == {"patch": ToolName("patch", custom=True)}


NAMES: dict[str, tuple[str, str, str | None]] = {
    # name, namespace, as it is sent (None: made fitting)
    "plain": ("f", "", "f"),
    "all letters that are allowed": ("_a.b:c-d9", "", "_a.b:c-d9"),
    "64 letters": ("a" * 64, "", "a" * 64),
    "a figure first": ("1password", "", "_1password"),
    "a figure alone": ("1", "", "_1"),
    "65 letters": ("a" * 65, "", None),
    "spaces": ("my tool", "", None),
    "another alphabet": ("工具", "", None),
    "a namespace": ("read", "files", "files__read"),
    "a namespace that ends so": ("read", "mcp__files__", "mcp__files__read"),
    "nothing": ("", "", None),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tools(name: str) -> None:
    given_, namespace, expected = NAMES[name]
    declared, out = tools(Tool(given_, namespace=namespace))
    (function,) = declared[0]["functionDeclarations"]
    sent = function["name"]
    assert sent == expected or expected is None
    assert len(sent) <= 64
    assert sent.isascii()
    assert sent[0].isalpha() or sent[0] == "_"
    assert set(sent) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-")
    assert out.tools == ({} if (sent, "") == (given_, namespace) else {sent: ToolName(given_, namespace)})


def test_a_tool_has_one_name_everywhere() -> None:
    odd = "my tool/" * 10
    turns = (HI, model_(call(name=odd), call("2", "read", namespace="files")), user(result(), result("2")))
    out = written(*turns, tools=(Tool(odd), Tool("read", namespace="files")), choice=Choice("required", (odd, "read")))
    body: Any = out.body
    (functions,) = [tool["functionDeclarations"] for tool in body["tools"]]
    sent = [function["name"] for function in functions]
    assert [part["functionCall"]["name"] for part in body["contents"][1]["parts"]] == sent
    assert [part["functionResponse"]["name"] for part in body["contents"][2]["parts"]] == sent
    assert body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == sent
    assert out.tools == {sent[0]: ToolName(odd), sent[1]: ToolName("read", "files")}


def test_two_tools_never_share_a_name() -> None:
    declared, out = tools(Tool("1"), Tool("_1"), Tool("b", namespace="a"), Tool("a__b"))
    sent = [function["name"] for function in declared[0]["functionDeclarations"]]
    assert len(set(sent)) == 4
    back = [out.tools.get(name, ToolName(name)) for name in sent]
    assert back == [ToolName("1"), ToolName("_1"), ToolName("b", "a"), ToolName("a__b")]


SERVED: dict[str, tuple[list[Tool], Any, dict[Feature, list[str]]]] = {
    "search": ([SEARCH], [{"googleSearch": {}}], {}),
    "search twice": ([SEARCH, SEARCH], [{"googleSearch": {}}], {}),
    "fetch and code": ([Tool("a", kind="server", server="web_fetch"), Tool("b", kind="server", server="code_execution")], [{"urlContext": {}}, {"codeExecution": {}}], {}),
    "options": ([replace(SEARCH, native={**SEARCH.native, "max_uses": 3, "allowed_domains": []})], [{"googleSearch": {}}], {Feature.SERVER_TOOLS: ["max_uses of web_search"]}),
    "its own": ([Tool("googleMaps", kind="server", native={"googleMaps": {"enableWidget": True}})], [{"googleMaps": {"enableWidget": True}}], {}),
    "what it has not": ([Tool("image_generation", kind="server", server="image_generation")], None, {Feature.SERVER_TOOLS: ["image_generation"]}),
    "beside functions": ([F, SEARCH], [{"functionDeclarations": [DECLARED]}], {Feature.SERVER_TOOLS: ["web_search beside functions"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", SERVED)
def test_tools_that_the_provider_runs(name: str) -> None:
    given_, expected, lost = SERVED[name]
    declared, out = tools(*given_)
    assert declared == expected
    assert out.left_out.found == lost


CHOICES: dict[str, tuple[Choice, tuple[Tool, ...], dict[str, Any] | None]] = {
    "auto": (Choice("auto"), (F,), None),
    "none": (Choice("none"), (F,), {"mode": "NONE"}),
    "none of none": (Choice("none"), (), None),
    "required": (Choice("required"), (F,), {"mode": "ANY"}),
    "one": (Choice("required", ("f",)), (F, Tool("g")), {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    "some, if any": (Choice("auto", ("f",)), (F, Tool("g")), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}),
    "a tool that the provider runs": (Choice("required", ("web_search",)), (SEARCH,), None),
    "a tool that was left out": (Choice("required", ("web_search",)), (F, SEARCH), None),
    "required, and the provider runs it": (Choice("required"), (SEARCH,), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name: str) -> None:
    choice, given_, expected = CHOICES[name]
    _, out = tools(*given_, choice=choice)
    assert out.body.get("toolConfig") == (expected and {"functionCallingConfig": expected})
    demanded = choice.mode == "required" and expected is None
    assert (Feature.ALLOWED_TOOLS in out.left_out.found) == demanded


@pytest.mark.parametrize(
    ("choice", "given_"), [(Choice("required", ("g",)), (F,)), (Choice("required"), ()), (Choice("auto", ("g",)), (F,))]
)
def test_a_demand_that_nothing_can_meet_is_refused(choice: Choice, given_: tuple[Tool, ...]) -> None:
    with pytest.raises(BadCall, match="demands"):
        tools(*given_, choice=choice)


# --- configuration -----------------------------------------------------------------------------------------------------------


def test_configuration() -> None:
    fields = {"max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stops": ("a", ""), "seed": 7}
    assert config(**fields) == {
        "maxOutputTokens": 100,
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 40,
        "stopSequences": ["a"],
        "seed": 7,
    }
    assert written(**fields).left_out.found == {}
    assert "generationConfig" not in written().body


LIMITS: dict[str, tuple[str, dict[str, Any], dict[str, Any], Feature | None]] = {
    "temperature too high": (NEW, {"temperature": 3}, {"temperature": 2.0}, Feature.TEMPERATURE),
    "temperature too low": (NEW, {"temperature": -1.0}, {"temperature": 0.0}, Feature.TEMPERATURE),
    "top_k of nothing": (NEW, {"top_k": 0}, {}, Feature.TOP_K),
    "a large seed": (NEW, {"seed": 2**31}, {}, Feature.SEED),
    "many stops": (NEW, {"stops": tuple("abcdef")}, {"stopSequences": list("abcde")}, Feature.MANY_STOPS),
    "too much output": (NEW, {"max_tokens": 10**6}, {"maxOutputTokens": 65536}, Feature.OTHER),
    "too much output for an old model": ("gemini-2.0-flash", {"max_tokens": 10**6}, {"maxOutputTokens": 8192}, Feature.OTHER),
    "much output for a model without a name": ("claude-x", {"max_tokens": 10**6}, {"maxOutputTokens": 10**6}, None),
    "much output for the next generation": ("gemini-4-argon", {"max_tokens": 10**6}, {"maxOutputTokens": 10**6}, None),
    "no output": (NEW, {"max_tokens": 0}, {}, None),
    "penalties": (NEW, {"presence_penalty": 0.5}, {}, Feature.PENALTIES),
    "penalties of nothing": (NEW, {"presence_penalty": 0.0, "frequency_penalty": 0.0}, {}, None),
    "penalties for an old model": ("gemini-2.0-flash", {"presence_penalty": 0.5, "frequency_penalty": -0.5}, {"presencePenalty": 0.5, "frequencyPenalty": -0.5}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    model, fields, expected, lost = LIMITS[name]
    assert config(model, **fields) == expected
    assert set(written(model=model, **fields).left_out.found) == ({lost} if lost else set())


OFF, ADAPTIVE = Reasoning(on=False), Reasoning(on=True, adaptive=True)
PRO, LITE, OLDEST, PRO3, FIXED = (
    "gemini-2.5-pro",
    "gemini-2.5-flash-lite",
    "gemini-2.0-flash",
    "gemini-3-pro-preview",
    "gemini-3-pro-high",
)


def effort(word: Any, **fields: Any) -> Reasoning:
    return Reasoning(on=True, effort=word, **fields)


def budget(tokens: int, **fields: Any) -> Reasoning:
    return Reasoning(on=tokens > 0, budget=tokens, **fields)


THINKING: list[tuple[str, Reasoning, dict[str, Any] | None, Feature | None]] = [
    # before 2.5 nobody thinks
    (OLDEST, effort("high"), None, Feature.EFFORT),
    (OLDEST, budget(1000, shown=True), None, Feature.BUDGET),
    (OLDEST, ADAPTIVE, None, Feature.EFFORT),
    (OLDEST, OFF, None, None),
    ("claude-x", effort("low"), None, Feature.EFFORT),
    ("gemini-2.5-flash-image", effort("low"), None, Feature.EFFORT),
    # 2.5 has a budget
    (OLD, Reasoning(), None, None),
    (OLD, OFF, {"thinkingBudget": 0}, None),
    (OLD, effort("none"), {"thinkingBudget": 0}, None),
    (OLD, effort("minimal"), {"thinkingBudget": 1024}, None),
    (OLD, effort("low"), {"thinkingBudget": 1024}, None),
    (OLD, effort("medium"), {"thinkingBudget": 8192}, None),
    (OLD, effort("high"), {"thinkingBudget": 24576}, None),
    (OLD, effort("max"), {"thinkingBudget": 24576}, None),
    (PRO, effort("xhigh"), {"thinkingBudget": 32768}, None),
    (PRO, OFF, {"thinkingBudget": 128}, Feature.EFFORT),
    (PRO, budget(100), {"thinkingBudget": 128}, Feature.BUDGET),
    (PRO, budget(10**6), {"thinkingBudget": 32768}, Feature.BUDGET),
    (LITE, budget(100), {"thinkingBudget": 512}, Feature.BUDGET),
    (LITE, budget(0), {"thinkingBudget": 0}, None),
    (OLD, budget(5000, effort="high"), {"thinkingBudget": 5000}, None),
    (OLD, ADAPTIVE, {"thinkingBudget": -1}, None),
    (OLD, Reasoning(on=True), {"thinkingBudget": -1}, None),
    (OLD, Reasoning(on=True, adaptive=True, effort="medium"), {"thinkingBudget": 8192}, None),
    (OLD, Reasoning(shown=True), {"includeThoughts": True}, None),
    (OLD, Reasoning(on=False, shown=True), {"thinkingBudget": 0, "includeThoughts": False}, None),
    # from 3 on it is a level
    (NEW, Reasoning(), None, None),
    (NEW, effort("low"), {"thinkingLevel": "LOW"}, None),
    (NEW, effort("minimal"), {"thinkingLevel": "LOW"}, Feature.EFFORT),
    (NEW, effort("xhigh"), {"thinkingLevel": "HIGH"}, Feature.EFFORT),
    (NEW, OFF, {"thinkingLevel": "LOW"}, Feature.EFFORT),
    (NEW, ADAPTIVE, None, None),
    (NEW, Reasoning(on=True, effort="high", adaptive=True, shown=True), {"thinkingLevel": "HIGH", "includeThoughts": True}, None),
    (NEW, budget(1024), {"thinkingLevel": "LOW"}, Feature.BUDGET),
    (NEW, budget(8192), {"thinkingLevel": "MEDIUM"}, Feature.BUDGET),
    (NEW, budget(32000), {"thinkingLevel": "HIGH"}, Feature.BUDGET),
    (NEW, Reasoning(shown=False), {"includeThoughts": False}, None),
    ("gemini-3.5-flash", effort("minimal"), {"thinkingLevel": "MINIMAL"}, None),
    ("gemini-3-flash-preview", OFF, {"thinkingLevel": "MINIMAL"}, Feature.EFFORT),
    ("gemini-3.7-flash-lite", effort("minimal"), {"thinkingLevel": "MINIMAL"}, None),
    ("gemini-flash-latest", effort("minimal"), {"thinkingLevel": "LOW"}, Feature.EFFORT),
    ("gemini-3.1-pro-preview", effort("medium"), {"thinkingLevel": "MEDIUM"}, None),
    (PRO3, effort("medium"), {"thinkingLevel": "HIGH"}, Feature.EFFORT),
    (PRO3, effort("low"), {"thinkingLevel": "LOW"}, None),
    (FIXED, effort("low", shown=True), {"includeThoughts": True}, Feature.EFFORT),
    ("gemini-4-argon", effort("high"), {"thinkingLevel": "HIGH"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("model", "reasoning", "expected", "lost"), THINKING)
def test_thinking(model: str, reasoning: Reasoning, expected: dict[str, Any] | None, lost: Feature | None) -> None:
    assert config(model, reasoning=reasoning).get("thinkingConfig") == expected
    assert set(written(model=model, reasoning=reasoning).left_out.found) == ({lost} if lost else set())


ANSWER = Format({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False})
SENT = {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}}}


def test_structured_output() -> None:
    assert config(format=Format()) == {"responseMimeType": "application/json"}
    described = replace(ANSWER, description="What is told.")
    assert config(format=described)["responseSchema"]["description"] == "What is told."
    own = replace(described, schema={**(ANSWER.schema or {}), "description": "Its own."})
    assert config(format=own)["responseSchema"]["description"] == "Its own."
    for model in (OLD, NEW):
        assert config(model, format=ANSWER) == SENT
    assert config(NEW, format=ANSWER, tools=(F,)) == SENT


@pytest.mark.parametrize(("form", "rule"), [(ANSWER, '"additionalProperties":false'), (Format(), "JSON alone")])
def test_structured_output_beside_tools_is_asked_for_in_words(form: Format, rule: str) -> None:
    out = written(Message("system", (Text("be kind"),)), HI, model=OLD, format=form, tools=(F,))
    body: Any = out.body
    kind, asked = body["systemInstruction"]["parts"]
    assert kind == {"text": "be kind"}
    assert rule in asked["text"]
    assert "generationConfig" not in body
    assert list(out.left_out.found) == [Feature.STRUCTURED]


def test_what_cannot_be_said_is_named() -> None:
    out = write(
        Conversation(
            "m",
            True,
            (user(Text("hi", cached=True)),),
            tools=(replace(F, strict=True, cached=True),),
            parallel=False,
            user="somebody",
            format=Format(strict=True),
            others=((Feature.CONTEXT_MANAGEMENT, "edits"), (Feature.STORED, "")),
        ),
        model=NEW,
        session="s",
        maker="google",
    )
    assert set(out.left_out.found) == {
        Feature.CONTEXT_MANAGEMENT,
        Feature.STORED,
        Feature.STRICT,
        Feature.CACHE_MARKS,
        Feature.PARALLEL,
        Feature.METADATA,
    }
    assert b"somebody" not in orjson.dumps(out.body)


def test_marks_on_calls_and_results_are_named() -> None:
    turns = (HI, model_(call(cached=True)), user(result()))
    assert Feature.CACHE_MARKS in written(*turns).left_out.found
    turns = (HI, model_(call()), user(result(cached=True)))
    assert Feature.CACHE_MARKS in written(*turns).left_out.found


# --- there and back ----------------------------------------------------------------------------------------------------------


def test_what_is_written_reads_as_it_was() -> None:
    whole = Conversation(
        NEW,
        True,
        (
            Message("system", (Text("be kind"),)),
            user(
                Text("look"), PNG, Media("file", "text/plain", text="ü"), Media("image", "image/png", url="https://x.test/a.png")
            ),
            model_(
                Thought("hm", own("c2ln", maker="")),
                Text("so"),
                Thought("", own("dGV4dA", "part", maker="")),
                call("1", "f", '{"a":"ü"}', seal=own("Y2FsbA", "call", maker="")),
                call("2", "g"),
            ),
            user(ToolResult("1", (Text("x"), PNG), name="f"), ToolResult("2", (Text("no"),), error=True, name="g"), Text("go")),
        ),
        tools=(F, Tool("g")),
        choice=Choice("required", ("f", "g")),
        max_tokens=100,
        temperature=0.5,
        top_p=0.5,
        top_k=3,
        stops=("a", "b"),
        seed=1,
        reasoning=Reasoning(on=True, effort="high", shown=True),
        format=Format({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}),
    )
    assert read(write(whole, model=NEW, session="", maker="google").body, ENDPOINT) == whole


RECORDED = [(request.name, request.raw, endpoint) for request, endpoint in CALLS if endpoint.dialect is Dialect.GEMINI]


@pytest.mark.parametrize(("name", "raw", "endpoint"), RECORDED, ids=[name for name, *_ in RECORDED])
def test_recorded_calls_come_back(name: str, raw: bytes, endpoint: Endpoint) -> None:
    body = orjson.loads(raw)
    asked = read(body["request"] if endpoint.envelope else body, endpoint)
    out = write(asked, model=NEW, session="", maker="google")
    again = read(out.body, endpoint)
    merged = [block for turn in asked.messages for block in turn.blocks]
    assert [block for turn in again.messages for block in turn.blocks] == merged
    assert (again.max_tokens, again.temperature, again.reasoning) == (asked.max_tokens, asked.temperature, asked.reasoning)
    assert len(again.tools) == len(asked.tools)
    assert _illegal(out.body) == []


# --- whatever comes ------------------------------------------------------------------------------------------------------------


def _illegal(body: Any) -> list[str]:
    """What Google would refuse about the turns."""
    found = []
    roles = [content["role"] for content in body["contents"]]
    if roles[0] != "user" or any(one == other for one, other in pairwise(roles)):
        found.append(f"roles {roles}")
    calls: list[tuple[Any, Any]] = []
    for content in body["contents"]:
        if not content["parts"] or any(part.get("text") == "" and len(part) == 1 for part in content["parts"]):
            found.append("an empty content")
        answers = [_key(part["functionResponse"]) for part in content["parts"] if "functionResponse" in part]
        if content["role"] == "user":
            found += [] if answers == calls else [f"{answers} to {calls}"]
            calls = []
        else:
            found += ["answers of the model"] if answers else []
            calls = [_key(part["functionCall"]) for part in content["parts"] if "functionCall" in part]
    return [*found, "unanswered"] if calls else found


def _key(call_: Any) -> tuple[Any, Any]:
    return call_.get("id"), call_["name"]


def test_the_judge_of_turns_sees_mistakes() -> None:
    def content(role: str, *parts: Any) -> dict[str, Any]:
        return {"role": role, "parts": list(parts)}

    hi = content("user", {"text": "hi"})
    for bad in (
        [content("model", {"text": "a"})],
        [hi, hi],
        [hi, content("model")],
        [hi, content("model", {"text": ""})],
        [hi, content("model", called())],
        [hi, content("model", called()), hi],
        [hi, content("model", called(), called("2")), content("user", answered("2"), answered())],
        [content("user", answered())],
    ):
        assert _illegal({"contents": bad})
    assert not _illegal({"contents": [hi, content("model", called()), content("user", answered())]})


IDS = st.sampled_from(["1", "2", "3", ""])
TEXTS = st.builds(Text, st.sampled_from(["", "a", "b"]), st.booleans())
MEDIAS = st.sampled_from([PNG, PDF, LINK, GIF])
SEALS = st.sampled_from([None, own("c2ln"), own("c2ln", "part"), own("c2ln", "call", "other"), Seal(Dialect.CHAT, "", {})])
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    TEXTS,
    MEDIAS,
    st.builds(Thought, st.sampled_from(["", "hm"]), SEALS),
    st.builds(ToolUse, IDS, st.sampled_from(["f", "g h", ""]), st.sampled_from(["{}", '{"a":1}', "x"]), st.booleans(), st.sampled_from(["", "n"]), SEALS),
    st.builds(ToolResult, IDS, st.lists(TEXTS | MEDIAS, max_size=2).map(tuple), st.booleans()),
)  # fmt: skip
SIDES = st.sampled_from(["system", "user", "assistant"])
MANY_TURNS = st.lists(st.builds(Message, SIDES, st.lists(BLOCKS, max_size=4).map(tuple)), max_size=7)
MODELS = st.sampled_from([OLD, NEW, PRO3, OLDEST, "claude-x"])


@given(MANY_TURNS, MODELS)
def test_every_conversation_becomes_a_legal_one(turns: list[Message], model: str) -> None:
    asked = Conversation("m", True, tuple(turns))
    try:
        body = write(asked, model=model, session="", maker="google").body
    except BadCall:
        return
    assert _illegal(body) == []
    assert body == write(asked, model=model, session="other", maker="google").body
    read(body, ENDPOINT)


def test_no_words_are_lost() -> None:
    turns = (
        Message("system", (Text("one"),)),
        user(Text("two"), result("9", "three")),
        Message("system", (Text("four"),)),
        model_(Text("five"), call(arguments='{"k":"six"}')),
        user(ToolResult("1", (Text("seven"), Text("eight"))), Text("nine")),
    )
    for model in (OLD, NEW):
        sent = orjson.dumps(written(*turns, model=model).body)
        assert all(word.encode() in sent for word in "one two three four five six seven eight nine".split())  # noqa: SIM905


@given(st.lists(st.sampled_from(["text", "tool"]), min_size=1, max_size=6), MODELS)
def test_a_longer_history_begins_with_the_shorter(kinds: list[str], model: str) -> None:
    turns: list[Message] = [Message("system", (Text("be kind"),))]
    before: list[Any] = []
    for number, kind in enumerate(kinds):
        answer = call(str(number)) if kind == "tool" else Text(f"a{number}")
        reply = result(str(number)) if kind == "tool" else Text(f"u{number}")
        turns += [user(Text("go")), model_(answer), user(reply)] if number == 0 else [model_(answer), user(reply)]
        now = [orjson.dumps(content) for content in contents_in(written(*turns, model=model))]
        assert now[: len(before)] == before
        before = now
