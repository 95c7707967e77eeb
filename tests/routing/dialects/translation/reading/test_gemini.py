# ruff: noqa: E501 (one row of a table is one line)
from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
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
    ToolResult,
    ToolUse,
)
from routecodex.routing.dialects.translation.reading.gemini import read
from routecodex.routing.dialects.translation.reading.gemini_schema import json_schema
from routecodex.routing.errors import BadCall, RouteCodexError
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.calls.recorded import CALLS

GEMINI = Endpoint(Dialect.GEMINI, model="gemini-3-flash", stream=True)
RECORDED = [(request.name, request.raw, endpoint) for request, endpoint in CALLS if endpoint.dialect is Dialect.GEMINI]


def said(*parts: object, role: str | None = "user") -> dict[str, object]:
    return {"contents": [{"parts": list(parts), **({"role": role} if role else {})}]}


def conversation(**fields: object) -> Conversation:
    return read({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **fields}, GEMINI)


def blocks(*parts: object, role: str | None = "user") -> tuple[Block, ...]:
    (turn,) = read(said(*parts, role=role), GEMINI).messages
    return turn.blocks


def sealed(word: str, place: str = "") -> Seal:
    return Seal(Dialect.GEMINI, "", {**({"for": place} if place else {}), "thoughtSignature": word})


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PARTS: dict[str, tuple[list[Any], tuple[Block, ...]]] = {
    "text": ([{"text": "hi"}], (Text("hi"),)),
    "empty text": ([{"text": ""}, {"text": "x"}], (Text("x"),)),
    "a plain string": (["hi"], (Text("hi"),)),
    "a thought": ([{"text": "hm", "thought": True}], (Thought("hm"),)),
    "a signed thought": ([{"text": "hm", "thought": True, "thoughtSignature": "c2ln"}], (Thought("hm", sealed("c2ln")),)),
    "a seal without a thought": ([{"text": "", "thought": True, "thought_signature": "c2ln"}], (Thought("", sealed("c2ln")),)),
    "an empty thought": ([{"text": "", "thought": True}, {"text": "x"}], (Text("x"),)),
    "a signed text": ([{"text": "hi", "thoughtSignature": "c2ln"}], (Text("hi"), Thought("", sealed("c2ln", "part")))),
    "a signature after the text": ([{"text": "hi"}, {"text": "", "thoughtSignature": "c2ln"}], (Text("hi"), Thought("", sealed("c2ln", "part")))),
    "a picture": ([{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}], (Media("image", "image/png", data="iVBO"),)),
    "a picture in the other alphabet": ([{"inline_data": {"mime_type": "image/png", "data": "-_8="}}], (Media("image", "image/png", data="+/8="),)),
    "a signed picture": ([{"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "thoughtSignature": "c2ln"}], (Media("image", "image/png", data="iVBO"), Thought("", sealed("c2ln", "part")))),
    "sound": ([{"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}], (Media("audio", "audio/wav", data="UklG"),)),
    "a named file": ([{"inlineData": {"mimeType": "application/pdf", "data": "JVBE", "displayName": "a.pdf"}}], (Media("file", "application/pdf", data="JVBE", name="a.pdf"),)),
    "a text file": ([{"inlineData": {"mimeType": "text/plain", "data": b64("Grüße")}}], (Media("file", "text/plain", text="Grüße"),)),
    "a text file that is none": ([{"inlineData": {"mimeType": "text/plain", "data": "/w=="}}], (Media("file", "text/plain", data="/w=="),)),
    "a file by address": ([{"fileData": {"fileUri": "https://x.test/a.png?b=1"}}], (Media("image", "image/png", url="https://x.test/a.png?b=1"),)),
    "a video by address": ([{"file_data": {"file_uri": "https://x.test/v", "mime_type": "video/mp4"}}], (Media("video", "video/mp4", url="https://x.test/v"),)),
    "a file that Google keeps": ([{"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc", "mimeType": "application/pdf"}}], (Media("file", "application/pdf", file_id="https://generativelanguage.googleapis.com/v1beta/files/abc"),)),
    "a file in a bucket": ([{"fileData": {"fileUri": "gs://b/a.mp3", "mimeType": "audio/mpeg"}}], (Media("audio", "audio/mpeg", file_id="gs://b/a.mp3"),)),
    "code that ran": ([{"executableCode": {"language": "PYTHON", "code": "print(1)"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}], (Text("```python\nprint(1)\n```"), Text("```output\n1\n```"))),
    "code that failed": ([{"code_execution_result": {"outcome": "OUTCOME_FAILED", "output": "no"}}], (Text("```output\nOUTCOME_FAILED\nno\n```"),)),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    parts, expected = PARTS[name]
    assert blocks(*parts) == expected


@pytest.mark.parametrize(
    "word",
    ["skip_thought_signature_validator", b64("skip_thought_signature_validator"), "context_engineering_is_the_way_to_go"],
)
def test_the_word_for_no_signature_is_no_signature(word: str) -> None:
    (call,) = blocks({"functionCall": {"id": "1", "name": "f"}, "thoughtSignature": word}, role="model")
    assert call == ToolUse("1", "f", "{}")


@pytest.mark.parametrize("spelled", ["plain", "for addresses"])
def test_a_seal_that_we_wrapped_comes_out_again(spelled: str) -> None:
    foreign = Seal(Dialect.MESSAGES, "anthropic", {"signature": "ÿ>?~" * 9})
    word = opaque.wrap(foreign)
    assert "+" in word or "/" in word
    if spelled == "for addresses":  # what Google's SDK for Python makes of it
        word = word.translate(str.maketrans("+/", "-_"))
    assert blocks({"text": "hm", "thought": True, "thoughtSignature": word}, role="model") == (Thought("hm", foreign),)
    (call,) = blocks({"functionCall": {"id": "1", "name": "f"}, "thoughtSignature": word}, role="model")
    assert isinstance(call, ToolUse)
    assert call.seal == foreign


def test_two_things_in_one_part_are_both_read() -> None:
    """A client that leaves no field of a part out."""
    call, result = (
        {"functionCall": {"name": "f", "args": {"x": 1}}},
        {"functionResponse": {"name": "f", "response": {"output": "o"}}},
    )
    contents = [{"role": "model", "parts": [{"text": "", **call}]}, {"role": "user", "parts": [{"text": "so", **result}]}]
    messages = read({"contents": contents}, GEMINI).messages
    assert [message.blocks for message in messages] == [
        (ToolUse("f_1", "f", '{"x":1}'),),
        (ToolResult("f_1", (Text("o"),), name="f"), Text("so")),
    ]


def test_a_result_that_is_told_twice_is_one() -> None:
    """A session that Gemini CLI takes up again holds every result twice."""

    def answer(output: str) -> dict[str, Any]:
        return {"functionResponse": {"id": "1", "name": "f", "response": {"output": output}}}

    body = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f"}}]},
            {"role": "user", "parts": [answer("a")]},
            {"role": "user", "parts": [answer("a"), {"text": "go on"}]},
            {"role": "user", "parts": [answer("b")]},
        ]
    }
    said = [block for turn in read(body, GEMINI).messages for block in turn.blocks]
    result = ToolResult("1", (Text("a"),), name="f")
    assert said == [ToolUse("1", "f", "{}"), result, Text("go on"), replace(result, blocks=(Text("b"),))]


def test_a_turn_with_tools() -> None:
    body = {
        "contents": [
            {"parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "f", "args": {"b": 1, "a": "ü"}}, "thoughtSignature": "c2ln"},
                    {"function_call": {"name": "f"}},
                    {"functionCall": {"id": "x", "name": "g", "args": {}}},
                ],
            },
            {
                "role": "function",
                "parts": [
                    {"text": "by the way"},
                    {"functionResponse": {"id": "x", "name": "g", "response": {"error": "no"}}},
                    {"functionResponse": {"name": "f", "response": {"output": "one"}}},
                    {"function_response": {"name": "f", "response": {"result": {"n": 2}}}},
                ],
            },
        ]
    }
    assert read(body, GEMINI).messages == (
        Message("user", (Text("go"),)),
        Message(
            "assistant",
            (
                ToolUse("f_1", "f", '{"b":1,"a":"ü"}', seal=sealed("c2ln", "call")),
                ToolUse("f_2", "f", "{}"),
                ToolUse("x", "g", "{}"),
            ),
        ),
        Message(
            "user",
            (
                ToolResult("x", (Text("no"),), error=True, name="g"),
                ToolResult("f_1", (Text("one"),), name="f"),
                ToolResult("f_2", (Text('{"n":2}'),), name="f"),
                Text("by the way"),
            ),
        ),
    )


def _ids(turns: tuple[Message, ...]) -> list[tuple[str, str]]:
    found = [block for turn in turns for block in turn.blocks if isinstance(block, ToolUse | ToolResult)]
    return [("call" if isinstance(block, ToolUse) else "result", block.id) for block in found]


def _exchange(call: dict[str, object], result: dict[str, object]) -> list[dict[str, object]]:
    return [
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": {"response": {"output": "x"}, **result}}]},
    ]


F: dict[str, object] = {"name": "f"}
IDS: dict[str, tuple[list[dict[str, object]], list[tuple[str, str]]]] = {
    "none at all": (_exchange(F, F) + _exchange(F, F), [("call", "f_1"), ("result", "f_1"), ("call", "f_2"), ("result", "f_2")]),
    "given": (_exchange({"id": "a", "name": "f"}, {"id": "a", "name": "f"}), [("call", "a"), ("result", "a")]),
    "only the call's": (_exchange({"id": "a", "name": "f"}, F), [("call", "a"), ("result", "a")]),
    "only the result's": (_exchange(F, {"id": "a", "name": "f"}), [("call", "f_1"), ("result", "f_1")]),
    "the same twice": (_exchange({"id": "f", "name": "f"}, {"id": "f", "name": "f"}) * 2, [("call", "f"), ("result", "f"), ("call", "f_2"), ("result", "f_2")]),
    "of another call": (_exchange({"id": "a", "name": "f"}, {"id": "b", "name": "f"}), [("call", "a"), ("result", "b")]),
    "a result alone": (_exchange(F, {"name": "g"}), [("call", "f_1"), ("result", "g_result_1")]),
}  # fmt: skip


@pytest.mark.parametrize("name", IDS)
def test_ids_of_calls_and_results(name: str) -> None:
    contents, expected = IDS[name]
    assert _ids(read({"contents": contents}, GEMINI).messages) == expected


def test_a_longer_history_keeps_the_ids_of_the_shorter() -> None:
    history = _exchange(F, F) + _exchange({"name": "g"}, {"name": "g"})
    shorter = _ids(read({"contents": history}, GEMINI).messages)
    assert _ids(read({"contents": history + _exchange(F, F)}, GEMINI).messages)[: len(shorter)] == shorter


ANSWERS: dict[str, tuple[object, tuple[Text | Media, ...], bool]] = {
    "output": ({"output": "x"}, (Text("x"),), False),
    "nothing": ({}, (), False),
    "an empty output": ({"output": ""}, (), False),
    "result": ({"result": "x"}, (Text("x"),), False),
    "a number": ({"result": 3}, (Text("3"),), False),
    "a list": ({"output": [1, "a"]}, (Text('[1,"a"]'),), False),
    "error": ({"error": "no"}, (Text("no"),), True),
    "an error with its code": ({"error": {"code": 4}}, (Text('{"code":4}'),), True),
    "output and no error": ({"output": "x", "error": None}, (Text('{"output":"x","error":null}'),), False),
    "output and an error": ({"output": "x", "error": "y"}, (Text('{"output":"x","error":"y"}'),), True),
    "its own fields": ({"temperature": 3}, (Text('{"temperature":3}'),), False),
    "no object": ("plain", (Text("plain"),), False),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_tools(name: str) -> None:
    response, expected, error = ANSWERS[name]
    assert blocks({"functionResponse": {"name": "f", "id": "1", "response": response}}) == (
        ToolResult("1", expected, error=error, name="f"),
    )


def test_pictures_inside_a_result() -> None:
    parts = [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}, {"fileData": {"fileUri": "https://x.test/a.pdf"}}, {}, 3]
    (result,) = blocks({"functionResponse": {"id": "1", "name": "f", "response": {"output": "x"}, "parts": parts}})
    assert result == ToolResult(
        "1",
        (Text("x"), Media("image", "image/png", data="iVBO"), Media("file", "application/pdf", url="https://x.test/a.pdf")),
        name="f",
    )


def test_what_stands_beside_a_picture_of_a_result_is_named() -> None:
    shown = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}, "mediaResolution": {"level": "LOW"}}
    result = {"functionResponse": {"id": "1", "name": "f", "response": {"output": "x"}, "parts": [shown]}}
    assert read(said(result), GEMINI).others == ((Feature.IMAGE_DETAIL, "mediaResolution"),)


def test_a_message_without_a_role_is_the_models_if_it_calls_tools() -> None:
    (turn,) = read(said({"functionCall": {"name": "f"}}, role=None), GEMINI).messages
    assert turn.role == "assistant"


def test_results_in_a_models_message_are_the_users() -> None:
    body = said({"functionCall": {"name": "f"}}, {"functionResponse": {"name": "f", "response": {}}}, role="model")
    assert read(body, GEMINI).messages == (
        Message("assistant", (ToolUse("f_1", "f", "{}"),)),
        Message("user", (ToolResult("f_1", (), name="f"),)),
    )


SYSTEMS: dict[str, tuple[object, tuple[Text, ...]]] = {
    "a string": ("Be kind.", (Text("Be kind."),)),
    "a content": ({"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}, (Text("a"), Text("b"))),
    "one part of a content": ({"parts": {"text": "a"}}, (Text("a"),)),
    "a part": ({"text": "a"}, (Text("a"),)),
    "parts": ([{"text": "a"}, "b"], (Text("a"), Text("b"))),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("field", ["systemInstruction", "system_instruction"])
def test_instructions(name: str, field: str) -> None:
    given, expected = SYSTEMS[name]
    assert conversation(**{field: given}).messages == (Message("system", expected), Message("user", (Text("hi"),)))


@pytest.mark.parametrize("given", ["", {}, [], None, {"parts": []}, 7])
def test_no_instructions(given: object) -> None:
    assert conversation(systemInstruction=given).messages == (Message("user", (Text("hi"),)),)


def test_the_model_and_the_form_come_from_the_path() -> None:
    body = {**said({"text": "hi"}), "model": "models/b"}
    assert (read(body, GEMINI).model, read(body, GEMINI).stream) == ("gemini-3-flash", True)
    plain = read(body, Endpoint(Dialect.GEMINI, envelope=True, stream=False))
    assert (plain.model, plain.stream) == ("b", False)


def test_a_call_for_a_count() -> None:
    body = {"generateContentRequest": {"model": "models/m", "contents": said({"text": "hi"})["contents"]}}
    read_ = read(body, Endpoint(Dialect.GEMINI, action="count"))
    assert (read_.messages, read_.model) == ((Message("user", (Text("hi"),)),), "m")


# --- tools ---------------------------------------------------------------------------------------------------------------


def test_tools() -> None:
    parameters = {"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": True}}, "required": ["type"]}
    schema = {"type": "object", "properties": {"type": {"type": ["string", "null"]}}, "required": ["type"]}
    given = [
        {"functionDeclarations": [{"name": "f", "description": "does", "parameters": parameters}, {"name": "g", "response": {}}]},
        {"function_declarations": [{"name": "h", "parameters_json_schema": {"type": "object"}, "response": {"type": "STRING"}}]},
        {"googleSearch": {}, "url_context": {}, "codeExecution": None},
        {"fileSearch": {"fileSearchStoreNames": ["a"]}},
        {"googleMaps": {}},
        {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
    ]
    read_ = conversation(tools=given)
    assert read_.tools == (
        Tool("f", "does", schema),
        Tool("g"),
        Tool("h", schema={"type": "object"}),
        Tool("googleSearch", kind="server", server="web_search", native={"googleSearch": {}}),
        Tool("urlContext", kind="server", server="web_fetch", native={"urlContext": {}}),
        Tool("fileSearch", kind="server", server="file_search", native={"fileSearch": {"fileSearchStoreNames": ["a"]}}),
        Tool("googleMaps", kind="server", native={"googleMaps": {}}),
        Tool("computerUse", kind="server", server="computer", native={"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}),
    )
    assert read_.others == ((Feature.OTHER, "response of h"),)
    assert conversation(tools=given[0]).tools == read_.tools[:2]


CHOICES: dict[str, tuple[dict[str, Any], Choice | None]] = {
    "auto": ({"mode": "AUTO"}, Choice("auto")),
    "in small letters": ({"mode": "any"}, Choice("required")),
    "any": ({"mode": "ANY", "allowedFunctionNames": ["f"]}, Choice("required", ("f",))),
    "any, the other spelling": ({"mode": "ANY", "allowed_function_names": ["f", 3, ""]}, Choice("required", ("f",))),
    "none": ({"mode": "NONE"}, Choice("none")),
    "validated": ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, Choice("auto", ("f",))),
    "unspecified": ({"mode": "MODE_UNSPECIFIED"}, None),
    "nothing": ({}, None),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name: str) -> None:
    config, expected = CHOICES[name]
    assert conversation(toolConfig={"functionCallingConfig": config}).choice == expected
    assert conversation(tool_config={"function_calling_config": config}).choice == expected


# --- configuration -------------------------------------------------------------------------------------------------------


def test_configuration() -> None:
    config = {
        "maxOutputTokens": 100,
        "temperature": 1,
        "topP": 0.5,
        "topK": 40.0,
        "stopSequences": ["a", "", "b", 3],
        "seed": 7,
        "presencePenalty": 0.25,
        "frequencyPenalty": -1,
        "candidateCount": 1,
        "responseModalities": ["Text"],
    }
    snake = {"max_output_tokens": "100", "temperature": "1", "top_p": 0.5, "top_k": "40", "stop_sequences": ["a", "b"], "seed": 7}
    for read_ in (conversation(generationConfig=config), conversation(generation_config=snake)):
        assert (read_.max_tokens, read_.temperature, read_.top_p, read_.top_k) == (100, 1.0, 0.5, 40)
        assert (read_.stops, read_.seed, read_.others) == (("a", "b"), 7, ())
    read_ = conversation(generationConfig=config)
    assert (read_.presence_penalty, read_.frequency_penalty) == (0.25, -1.0)


@pytest.mark.parametrize("value", [True, "many", [], {}, "", "9" * 30, 1e300])
def test_numbers_that_are_none(value: object) -> None:
    config = {"maxOutputTokens": value, "topK": value, "seed": value}
    read_ = conversation(generationConfig=config)
    assert (read_.max_tokens, read_.top_k, read_.seed) == (None, None, None)


SCHEMA = {"type": "OBJECT", "properties": {"a": {"type": "INTEGER"}}}
PLAIN = {"type": "object", "properties": {"a": {"type": "integer"}}}
FORMATS: dict[str, tuple[dict[str, Any], Format | None]] = {
    "none": ({}, None),
    "text": ({"responseMimeType": "text/plain"}, None),
    "json": ({"responseMimeType": "application/json"}, Format()),
    "schema": ({"responseMimeType": "application/json", "responseSchema": SCHEMA}, Format(PLAIN)),
    "json schema": ({"response_mime_type": "application/json", "response_json_schema": PLAIN}, Format(PLAIN)),
    "an older name": ({"responseMimeType": "application/json", "_responseJsonSchema": SCHEMA}, Format(PLAIN)),
    "a schema alone": ({"responseSchema": SCHEMA}, Format(PLAIN)),
    "response format": ({"responseFormat": [{"text": {"mimeType": "APPLICATION_JSON", "jsonSchema": PLAIN}}]}, Format(PLAIN)),
    "response format, one": ({"responseFormat": {"text": {"mimeType": "application/json"}}}, Format()),
    "one word of a list": ({"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a"]}}, None),
}


@pytest.mark.parametrize("name", FORMATS)
def test_structured_output(name: str) -> None:
    config, expected = FORMATS[name]
    assert conversation(generationConfig=config).format == expected


REASONINGS: dict[str, tuple[dict[str, Any], Reasoning]] = {
    "nothing": ({}, Reasoning()),
    "off": ({"thinkingBudget": 0}, Reasoning(on=False, budget=0)),
    "its own choice": ({"thinkingBudget": -1, "includeThoughts": True}, Reasoning(on=True, adaptive=True, shown=True)),
    "a budget": ({"thinking_budget": 512, "include_thoughts": False}, Reasoning(on=True, budget=512, shown=False)),
    "a level": ({"thinkingLevel": "HIGH"}, Reasoning(on=True, effort="high")),
    "a level in small letters": ({"thinking_level": "minimal"}, Reasoning(on=True, effort="minimal")),
    "no level": ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, Reasoning()),
    "shown alone": ({"includeThoughts": True}, Reasoning(shown=True)),
}


@pytest.mark.parametrize("name", REASONINGS)
def test_reasoning(name: str) -> None:
    config, expected = REASONINGS[name]
    assert conversation(generationConfig={"thinkingConfig": config}).reasoning == expected


def test_what_has_no_place_is_named() -> None:
    read_ = read(
        {
            **said(
                {"fileData": {"fileUri": "https://x.test/v.mp4"}, "videoMetadata": {"fps": 1}},
                {"text": "a", "mediaResolution": {"level": "LOW"}, "partMetadata": {"x": 1}},
                {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}},
                {"executableCode": {"code": "1"}},
            ),
            "safety_settings": [{"category": "X"}],
            "labels": {"team": "a"},
            "store": False,
            "serviceTier": "flex",
            "toolConfig": {"retrievalConfig": {"languageCode": "de"}},
            "session_id": "s",
            "newThing": {"a": 1},
            "generationConfig": {
                "candidateCount": 2,
                "responseLogprobs": True,
                "logprobs": 5,
                "mediaResolution": "MEDIA_RESOLUTION_LOW",
                "speechConfig": {"voice": "a"},
                "responseModalities": ["TEXT", "IMAGE"],
                "imageConfig": {"aspectRatio": "1:1"},
                "responseFormat": {"image": {"mimeType": "image/png"}},
            },
        },
        GEMINI,
    )
    assert set(read_.others) == {
        (Feature.VIDEO, "videoMetadata"),
        (Feature.IMAGE_DETAIL, "mediaResolution"),
        (Feature.OTHER, "partMetadata"),
        (Feature.SERVER_RESULTS, "toolCall"),
        (Feature.SERVER_RESULTS, "code execution as text"),
        (Feature.SAFETY, "safetySettings"),
        (Feature.METADATA, "labels"),
        (Feature.SERVICE_TIER, "serviceTier"),
        (Feature.OTHER, "retrievalConfig"),
        (Feature.OTHER, "newThing"),
        (Feature.CANDIDATES, "candidateCount"),
        (Feature.LOGPROBS, "responseLogprobs"),
        (Feature.LOGPROBS, "logprobs"),
        (Feature.AUDIO, "speechConfig"),
        (Feature.OTHER, "responseModalities"),
        (Feature.OTHER, "imageConfig"),
        (Feature.OTHER, "responseFormat image"),
    }


MEANINGLESS: dict[str, tuple[dict[str, Any], str]] = {
    "no contents": ({}, "`contents` is not a list"),
    "contents of another kind": ({"contents": "hi"}, "`contents` is not a list"),
    "contents of texts": ({"contents": ["hi"]}, "`contents` is not a list"),
    "no message": ({"contents": []}, "`contents` holds nothing"),
    "empty messages": ({"contents": [{"role": "user", "parts": [{"text": ""}]}]}, "`contents` holds nothing"),
    "a cache of Google's": ({"cachedContent": "cachedContents/a", **said({"text": "hi"})}, "`cachedContent` names"),
}


@pytest.mark.parametrize("name", MEANINGLESS)
def test_the_meaningless_is_refused(name: str) -> None:
    body, message = MEANINGLESS[name]
    with pytest.raises(BadCall, match=message) as refused:
        read(body, GEMINI)
    assert refused.value.status == 400


# --- schemas -------------------------------------------------------------------------------------------------------------

SCHEMAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "capitals": ({"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"type": "NUMBER"}}}}, {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}),
    "a property named like a keyword": ({"type": "OBJECT", "properties": {"type": {"type": "STRING"}, "nullable": {"type": "BOOLEAN"}, "any_of": {"type": "STRING"}}}, {"type": "object", "properties": {"type": {"type": "string"}, "nullable": {"type": "boolean"}, "any_of": {"type": "string"}}}),
    "unspecified": ({"type": "TYPE_UNSPECIFIED"}, {}),
    "nullable": ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
    "not nullable": ({"type": "STRING", "nullable": False}, {"type": "string"}),
    "nullable words": ({"type": "STRING", "format": "enum", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
    "nullable types": ({"type": ["STRING", "null"], "nullable": True}, {"type": ["string", "null"]}),
    "nullable alternatives": ({"any_of": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    "nullable without a type": ({"description": "x", "nullable": True}, {"anyOf": [{"description": "x"}, {"type": "null"}]}),
    "counts as text": ({"type": "STRING", "minLength": "1", "max_length": "20"}, {"type": "string", "minLength": 1, "maxLength": 20}),
    "order": ({"type": "OBJECT", "properties": {"a": {}, "b": {}, "c": {}}, "propertyOrdering": ["c", "b", "z"]}, {"type": "object", "properties": {"c": {}, "b": {}, "a": {}}}),
    "an example": ({"type": "STRING", "example": "x"}, {"type": "string", "examples": ["x"]}),
    "definitions": ({"defs": {"A": {"type": "STRING"}}, "type": "ARRAY", "items": {"ref": "#/defs/A"}}, {"$defs": {"A": {"type": "string"}}, "type": "array", "items": {"$ref": "#/$defs/A"}}),
    "free fields": ({"type": "OBJECT", "additionalProperties": {"type": "STRING"}}, {"type": "object", "additionalProperties": {"type": "string"}}),
    "a default that reads like a schema": ({"type": "OBJECT", "default": {"type": "STRING", "min_items": "1"}}, {"type": "object", "default": {"type": "STRING", "min_items": "1"}}),
    "words are kept": ({"type": "STRING", "enum": ["STRING", "OBJECT"], "default": "STRING"}, {"type": "string", "enum": ["STRING", "OBJECT"], "default": "STRING"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas(name: str) -> None:
    given_, expected = SCHEMAS[name]
    before = orjson.dumps(given_)
    assert orjson.dumps(json_schema(given_)) == orjson.dumps(expected)
    assert orjson.dumps(given_) == before
    assert json_schema(expected) == expected


# --- recorded and random ---------------------------------------------------------------------------------------------------


def _texts(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["text"]} if isinstance(value.get("text"), str) else set()
        return own.union(*(_texts(one) for one in value.values()))
    return set().union(*(_texts(one) for one in value)) if isinstance(value, list) else set()


@pytest.mark.parametrize(("name", "raw", "endpoint"), RECORDED, ids=[name for name, *_ in RECORDED])
def test_recorded_calls_lose_no_text(name: str, raw: bytes, endpoint: Endpoint) -> None:
    body = orjson.loads(raw)
    inner = body["request"] if endpoint.envelope else body
    read_ = read(inner, endpoint)
    kept = {block.text for turn in read_.messages for block in turn.blocks if isinstance(block, Text)}
    assert _texts(inner) - {""} <= kept
    declared = [one["name"] for tool in inner.get("tools", []) for one in tool["functionDeclarations"]]
    assert [tool.name for tool in read_.tools] == declared
    assert read_.others in ((), ((Feature.SAFETY, "safetySettings"),))


def test_the_recorded_call_with_a_result() -> None:
    raw, endpoint = next((raw, endpoint) for name, raw, endpoint in RECORDED if "function-response" in name)
    _, asked, called, answered = read(orjson.loads(raw), endpoint).messages
    assert (asked.role, called.role, answered.role) == ("user", "assistant", "user")
    (use,) = [block for block in called.blocks if isinstance(block, ToolUse)]
    (result,) = answered.blocks
    assert isinstance(result, ToolResult)
    assert (use.name, use.seal, result.name) == ("run_shell_command", None, "run_shell_command")
    assert use.id == result.id == "run_shell_command_1794990016558_0"


FIELDS = """contents parts role text thought thoughtSignature functionCall functionResponse inlineData fileData name id args
    response mimeType data fileUri tools functionDeclarations parameters type properties items nullable enum anyOf toolConfig
    functionCallingConfig mode allowedFunctionNames generationConfig responseSchema thinkingConfig thinkingBudget topK
    systemInstruction generateContentRequest executableCode googleSearch responseFormat"""
KEYS = st.sampled_from(FIELDS.split())
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@given(st.dictionaries(KEYS, JSON, max_size=6), st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=4))
def test_anything_is_read_or_refused(body: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    for given_ in (body, {**body, "contents": [{"role": "model", "parts": parts}, {"parts": [{"text": "x"}]}]}):
        try:
            read_ = read(given_, GEMINI)
        except RouteCodexError:
            continue
        assert read_.messages
        assert all(turn.blocks for turn in read_.messages)


def test_one_message_that_is_no_list_is_one() -> None:
    assert read({"contents": {"role": "user", "parts": [{"text": "hi"}]}}, GEMINI) == read(said({"text": "hi"}), GEMINI)


@pytest.mark.parametrize(
    ("said_so", "number"), [("0.5", 0.5), (1, 1.0), ("warm", None), (True, None), ("1e400", None), (10**400, None)]
)
def test_a_number_that_is_none_is_left_out(said_so: object, number: float | None) -> None:
    assert conversation(generationConfig={"temperature": said_so}).temperature == number
