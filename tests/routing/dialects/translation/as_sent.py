"""Calls as a provider of each dialect reads them: its own shape, its own rules, without our readers.

AssertionError where a provider would refuse the call: roles in the wrong order, results that are not where they belong, ids and
names that do not fit, empty texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from routecodex.routing.values import Dialect

Document = dict[str, Any]


@dataclass
class Sent:
    said: list[tuple[str, str]] = field(default_factory=list)
    """(role, text) in their order; results are not among them."""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    """(id, name, arguments); a custom tool's text is the field `input` of an object."""
    results: list[tuple[str, str, bool]] = field(default_factory=list)
    """(id of the call, text, it says that it failed)."""
    media: list[str] = field(default_factory=list)
    """What pictures and files hold: base64 or address."""
    tools: dict[str, str] = field(default_factory=dict)
    """Names and what describes them."""
    mode: str = "auto"
    callable: set[str] = field(default_factory=set)
    """The tools that may be called."""


def read_sent(body: Document, target: Dialect) -> Sent:
    sent = _READERS[target](body)
    for _, name, _ in sent.calls:
        assert _NAMES[target].fullmatch(name), name
    for name in sent.tools:
        assert _NAMES[target].fullmatch(name), name
    return sent


_NAMES = {
    Dialect.MESSAGES: re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    Dialect.CHAT: re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    Dialect.RESPONSES: re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    Dialect.GEMINI: re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
}


def _declare(sent: Sent, name: str, description: str) -> None:
    assert name not in sent.tools, f"{name} is declared twice"
    sent.tools[name] = description


# --- Messages ---------------------------------------------------------------------------------------------------------

_MESSAGES_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _messages(body: Document) -> Sent:
    sent = Sent()
    for block in body.get("system", []):
        sent.said.append(("system", _filled(block["text"])))
    waiting: list[str] = []
    before = ""
    for message in body["messages"]:
        role, content = message["role"], message["content"]
        assert role != before, "neighbours of one role"
        assert before or role == "user", "the user begins"
        assert content, "an empty message"
        assert role == "user" or not waiting, "calls without results"
        called: list[str] = []
        for place, block in enumerate(content):
            if block["type"] == "tool_result":
                assert role == "user"
                assert all(one["type"] == "tool_result" for one in content[:place]), "results come first"
                assert block["tool_use_id"] in waiting, "a result without its call"
                waiting.remove(block["tool_use_id"])
                _messages_result(block, sent)
            elif block["type"] == "tool_use":
                assert role == "assistant"
                called.append(block["id"])
                assert _MESSAGES_ID.fullmatch(block["id"])
                sent.calls.append((block["id"], block["name"], block["input"]))
            elif block["type"] == "text":
                sent.said.append((role, _filled(block["text"])))
            elif block["type"] not in ("thinking", "redacted_thinking"):
                assert role == "user"
                sent.media.append(_messages_media(block))
        assert not waiting, "calls without results"
        waiting, before = called, role
    assert not waiting, "calls without results"
    ids = [id for id, _, _ in sent.calls]
    assert len(set(ids)) == len(ids), "ids of calls are unique"
    for tool in body.get("tools", []):
        _declare(sent, tool["name"], tool.get("description", ""))
        assert tool["input_schema"]["type"] == "object"
    choice = body.get("tool_choice", {"type": "auto"})
    sent.mode = {"any": "required", "tool": "required"}.get(choice["type"], choice["type"])
    sent.callable = {choice["name"]} if choice["type"] == "tool" else set(sent.tools)
    return sent


def _filled(text: str) -> str:
    assert text.strip(), "an empty text"
    return text


def _messages_result(block: Document, sent: Sent) -> None:
    content = block["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [part["text"] for part in parts if part["type"] == "text"]
    sent.media += [_messages_media(part) for part in parts if part["type"] != "text"]
    assert not block.get("is_error") or len(texts) == len(parts), "a failed result holds text alone"
    sent.results.append((block["tool_use_id"], "\n".join(texts), block.get("is_error", False)))


def _messages_media(block: Document) -> str:
    source = block["source"]
    return str(source.get("data") or source.get("url"))


# --- Chat -------------------------------------------------------------------------------------------------------------

_CHAT_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,40}")


def _chat(body: Document) -> Sent:
    sent = Sent()
    waiting: list[str] = []
    for message in body["messages"]:
        role, content = message["role"], message["content"]
        if role == "tool":
            assert message["tool_call_id"] == waiting.pop(0), "results stand behind their calls, in order"
            assert isinstance(content, str)
            failed = content.lower().startswith("error")
            sent.results.append((message["tool_call_id"], content, failed))
            continue
        assert not waiting, "calls without results"
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        assert parts or message.get("tool_calls"), "an empty message"
        for part in parts:
            if part["type"] == "text":
                sent.said.append((role, part["text"]))
            else:
                assert role == "user"
                sent.media.append(_chat_media(part))
        for call in message.get("tool_calls", []):
            waiting.append(call["id"])
            assert _CHAT_ID.fullmatch(call["id"])
            written = call[call["type"]]
            arguments = json.loads(written["arguments"]) if "arguments" in written else {"input": written["input"]}
            assert isinstance(arguments, dict)
            sent.calls.append((call["id"], written["name"], arguments))
        assert len(set(waiting)) == len(waiting), "ids of one message's calls are unique"
    assert not waiting, "calls without results"
    for tool in body.get("tools", []):
        declared = tool[tool["type"]]
        _declare(sent, declared["name"], declared.get("description", ""))
    _openai_choice(body.get("tool_choice", "auto"), sent)
    return sent


def _openai_choice(choice: Any, sent: Sent) -> None:
    sent.callable = set(sent.tools)
    if isinstance(choice, str):
        sent.mode = choice
        return
    sent.mode = "required"
    if choice["type"] == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        sent.mode = allowed["mode"]
        sent.callable = {str(one.get(one["type"], one)["name"]) for one in allowed["tools"]}
    else:
        sent.callable = {choice.get(choice["type"], choice)["name"]}
    assert sent.callable <= set(sent.tools)


def _chat_media(part: Document) -> str:
    url = part.get("document_url") or part.get("file", {}).get("file_data") or part["image_url"]["url"]
    return str(url).rpartition(";base64,")[2]


# --- Responses --------------------------------------------------------------------------------------------------------

_RESPONSES_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")


def _responses(body: Document) -> Sent:
    sent = Sent()
    if "instructions" in body:
        sent.said.append(("system", body["instructions"]))
    called: dict[str, str] = {}
    answered: set[str] = set()
    for item in body["input"]:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    if part["type"] in ("input_text", "output_text"):
                        sent.said.append((item["role"].replace("developer", "system"), _filled(part["text"])))
                    else:
                        assert item["role"] == "user"
                        sent.media.append(_responses_media(part))
            case "function_call" | "custom_tool_call" as kind:
                assert item["call_id"] not in called, "ids of calls are unique"
                assert _RESPONSES_ID.fullmatch(item["call_id"])
                called[item["call_id"]] = f"{kind}_output"
                arguments = json.loads(item["arguments"]) if "arguments" in item else {"input": item["input"]}
                sent.calls.append((item["call_id"], item["name"], arguments))
            case "function_call_output" | "custom_tool_call_output" as kind:
                assert called[item["call_id"]] == kind, "the output is of another kind than its call"
                assert item["call_id"] not in answered
                answered.add(item["call_id"])
                _responses_output(item, sent)
            case kind:
                assert kind == "reasoning", kind
    assert answered == set(called), "every call has its output"
    for tool in body.get("tools", []):
        _declare(sent, tool["name"], tool.get("description", ""))
    _openai_choice(body.get("tool_choice", "auto"), sent)
    return sent


def _responses_output(item: Document, sent: Sent) -> None:
    output = item["output"]
    parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    text = "\n".join(part["text"] for part in parts if part["type"] == "input_text")
    sent.media += [_responses_media(part) for part in parts if part["type"] != "input_text"]
    sent.results.append((item["call_id"], text, text.startswith("The call failed")))


def _responses_media(part: Document) -> str:
    return str(part.get("image_url") or part.get("file_data") or part.get("file_url")).rpartition(";base64,")[2]


# --- Gemini -----------------------------------------------------------------------------------------------------------


def _gemini(body: Document) -> Sent:
    sent = Sent()
    for part in body.get("systemInstruction", {}).get("parts", []):
        sent.said.append(("system", part["text"]))
    waiting: list[tuple[str, str]] = []
    before = ""
    for content in body["contents"]:
        role, parts = content["role"], content["parts"]
        assert role in ("user", "model")
        assert role != before, "neighbours of one role"
        assert before or role == "user", "the user begins"
        assert parts
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert [(one.get("id", ""), one["name"]) for one in answers] == waiting, "one answer for each call, in order"
        waiting = []
        for part in parts:
            _gemini_part(part, "assistant" if role == "model" else "user", sent)
            if "functionCall" in part:
                assert role == "model"
                waiting.append((part["functionCall"].get("id", ""), part["functionCall"]["name"]))
        before = role
    assert not waiting, "calls without answers"
    for tool in body.get("tools", []):
        for declared in tool["functionDeclarations"]:
            _declare(sent, declared["name"], declared.get("description", ""))
    config = body.get("toolConfig", {}).get("functionCallingConfig", {"mode": "AUTO"})
    sent.mode = {"ANY": "required", "NONE": "none"}.get(config["mode"], "auto")
    sent.callable = set(config.get("allowedFunctionNames", sent.tools))
    assert sent.callable <= set(sent.tools)
    return sent


def _gemini_part(part: Document, role: str, sent: Sent) -> None:
    if "functionCall" in part:
        call = part["functionCall"]
        sent.calls.append((call.get("id", ""), call["name"], call["args"]))
    elif "functionResponse" in part:
        answer = part["functionResponse"]
        (key, text), *none = answer["response"].items()
        assert not none
        sent.results.append((answer.get("id", ""), text, key == "error"))
        sent.media += [_gemini_media(one) for one in answer.get("parts", [])]
    elif "text" in part:
        if not part.get("thought"):
            sent.said.append((role, part["text"]))
    else:
        sent.media.append(_gemini_media(part))


def _gemini_media(part: Document) -> str:
    return str(part["inlineData"]["data"] if "inlineData" in part else part["fileData"]["fileUri"])


_READERS: Mapping[Dialect, Callable[[Document], Sent]] = {
    Dialect.MESSAGES: _messages,
    Dialect.CHAT: _chat,
    Dialect.RESPONSES: _responses,
    Dialect.GEMINI: _gemini,
}
