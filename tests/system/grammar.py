"""What a client is allowed to receive: each dialect's stream and whole answer, read strictly, and what they say.

1. One start and one end, nothing behind the end; indexes and numbers without a gap; one id; nothing open at the end.
2. Keep-alives may stand between two events, in the one form that every recorded client of the dialect survives.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from routecodex.routing.values import Dialect

Document = dict[str, Any]


@dataclass
class Told:
    """An answer as its client holds it."""

    text: str = ""
    thinking: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    """Names and arguments."""
    ids: list[str] = field(default_factory=list)
    """Of the calls."""
    texts: int = 0
    """How many text blocks, message items, or (Chat, Gemini) answers with text there are."""
    finish: str = ""
    input: int = 0
    output: int = 0
    id: str = ""
    cited: list[tuple[str, str]] = field(default_factory=list)
    """Addresses of sources, each with the text that rests on it (Messages: with what the source says)."""
    ran: list[Document] = field(default_factory=list)
    """What tools of the provider's did."""
    alive: int = 0
    """Keep-alives."""


@dataclass(frozen=True)
class Event:
    name: str
    data: str
    comment: bool = False


def read_stream(dialect: Dialect, body: bytes, *, json_array: bool = False) -> Told:
    """AssertionError where a client could stumble."""
    if json_array:
        items = json.loads(body)
        return _gemini(items, Told())
    told = Told()
    events = _events(body, told, blank_lines=dialect is Dialect.GEMINI)
    if dialect is not Dialect.CHAT:
        assert not any(event.comment for event in events) or dialect is Dialect.RESPONSES, "a comment"
    return _STREAMS[dialect](events, told)


def _events(body: bytes, told: Told, *, blank_lines: bool) -> list[Event]:
    """Whole events alone; `\\n` between two of them counts as a keep-alive."""
    text = body.decode().replace("\r\n", "\n")
    assert text.endswith("\n\n") or not text
    events: list[Event] = []
    block: list[str] = []
    for next_line in text.split("\n")[:-1]:
        if next_line:
            block.append(next_line)
            continue
        if not block:
            assert blank_lines, "a blank line too many"
            told.alive += 1
            continue
        fields: dict[str, str] = {}
        for line in block:
            name, colon, value = line.partition(":")
            assert colon, f"no field: {line[:80]}"
            assert name in ("event", "data", ""), line[:80]
            assert name not in fields, f"twice in one event: {line[:80]}"
            fields[name] = value.removeprefix(" ")
        if "data" not in fields:
            assert set(fields) == {""}, f"an event without data: {block}"
            told.alive += 1
        block.clear()
        events.append(Event(fields.get("event", ""), fields.get("data", ""), "data" not in fields))
    return events


# ---- Messages ----


def _messages(events: list[Event], told: Told) -> Told:
    documents = [json.loads(event.data) for event in events]
    assert [event.name for event in events] == [document["type"] for document in documents]
    spoken = [document for document in documents if document["type"] != "ping"]
    told.alive += len(documents) - len(spoken)
    kinds = [document["type"] for document in spoken]
    assert kinds[0] == "message_start", kinds[:3]
    assert kinds[-2:] == ["message_delta", "message_stop"], kinds[-3:]
    assert documents[-1]["type"] == "message_stop"
    assert kinds.count("message_start") == kinds.count("message_delta") == kinds.count("message_stop") == 1
    blocks: list[Document] = []
    is_open = False
    for document in spoken[1:-2]:
        match document["type"]:
            case "content_block_start":
                assert not is_open
                assert document["index"] == len(blocks)
                blocks.append(dict(document["content_block"]) | {"written": ""})
                is_open = True
            case "content_block_delta":
                assert is_open
                assert document["index"] == len(blocks) - 1
                _grow(blocks[-1], document["delta"])
            case "content_block_stop":
                assert is_open
                assert document["index"] == len(blocks) - 1
                is_open = False
            case kind:
                raise AssertionError(kind)
    assert not is_open
    message, end = spoken[0]["message"], spoken[-2]
    told.id, told.finish = message["id"], end["delta"]["stop_reason"]
    told.output = end["usage"]["output_tokens"]
    told.input = end["usage"].get("input_tokens", message["usage"]["input_tokens"])
    return _from_blocks(blocks, told)


def _grow(block: Document, delta: Document) -> None:
    kind = delta["type"]
    if kind == "citations_delta":
        assert block["type"] == "text"
        block["citations"] = [*block.get("citations", ()), delta["citation"]]
        return
    expected = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking", "input_json_delta": "tool_use"}
    assert block["type"] in (expected[kind], *(_SERVED if kind == "input_json_delta" else ())), f"{kind} in {block['type']}"
    name = {"input_json_delta": "partial_json"}.get(kind, kind.removesuffix("_delta"))
    into = "written" if kind == "input_json_delta" else name
    block[into] = block.get(into, "") + delta[name]


_SERVED = ("server_tool_use", "mcp_tool_use")


def _from_blocks(blocks: list[Document], told: Told) -> Told:
    for block in blocks:
        match block["type"]:
            case "text":
                assert block["text"], "an empty text block"
                told.text += block["text"]
                told.texts += 1
                told.cited += [(one["url"], one["cited_text"]) for one in block.get("citations") or ()]
            case "thinking":
                told.thinking.append(block["thinking"])
                told.signatures.append(block["signature"])
            case "tool_use":
                told.calls.append((block["name"], json.loads(block["written"]) if block.get("written") else block["input"]))
                told.ids.append(block["id"])
            case "server_tool_use" | "mcp_tool_use":
                assert not told.ran or "content" in told.ran[-1]
                told.ran.append({**block, "input": json.loads(block["written"]) if block.get("written") else block["input"]})
            case kind if kind.endswith("_tool_result"):
                assert block["tool_use_id"] == told.ran[-1]["id"]
                told.ran[-1] |= {"content": block["content"], "failed": block.get("is_error", False)}
            case kind:
                raise AssertionError(kind)
    return told


def _messages_whole(document: Document) -> Told:
    assert document["type"] == "message"
    usage = document["usage"]
    told = Told(finish=document["stop_reason"], input=usage["input_tokens"], output=usage["output_tokens"], id=document["id"])
    return _from_blocks(document["content"], told)


# ---- Chat Completions ----


def _chat(events: list[Event], told: Told) -> Told:
    spoken = [event for event in events if not event.comment]
    assert events[-1].data == "[DONE]"
    documents = [json.loads(event.data) for event in spoken[:-1]]
    (told.id,) = {document["id"] for document in documents}
    assert len({(document["model"], document["created"]) for document in documents}) == 1
    if not documents[-1]["choices"]:
        usage = documents.pop()["usage"]
        told.input, told.output = usage["prompt_tokens"], usage["completion_tokens"]
    calls: list[Document] = []
    mine = []
    for document in documents:
        assert document["object"] == "chat.completion.chunk"
        mine += [choice for choice in document["choices"] if choice["index"] == 0]
    assert mine[0]["delta"].get("role") == "assistant"
    assert not any("role" in choice["delta"] for choice in mine[1:])
    reasons = [choice["finish_reason"] for choice in mine]
    assert reasons[-1]
    assert not any(reasons[:-1])
    told.finish = reasons[-1]
    for choice in mine:
        told.text += choice["delta"].get("content") or ""
        told.thinking += [choice["delta"]["reasoning_content"]] if choice["delta"].get("reasoning_content") else []
        for entry in choice["delta"].get("tool_calls", ()):
            assert entry["index"] <= len(calls)
            if entry["index"] == len(calls):
                calls.append({"id": entry["id"], "name": entry["function"]["name"], "written": ""})
            calls[entry["index"]]["written"] += entry["function"]["arguments"]
    told.cited = [_cited(one["url_citation"], told.text) for choice in mine for one in choice["delta"].get("annotations", ())]
    told.thinking = ["".join(told.thinking)] if told.thinking else []
    told.calls = [(call["name"], json.loads(call["written"])) for call in calls]
    told.ids = [call["id"] for call in calls]
    told.texts = 1 if told.text else 0
    return told


def _chat_whole(document: Document) -> Told:
    assert document["object"] == "chat.completion"
    choice = next(choice for choice in document["choices"] if choice["index"] == 0)
    message, usage = choice["message"], document["usage"]
    calls = message.get("tool_calls") or []
    return Told(
        text=message["content"] or "",
        thinking=[message["reasoning_content"]] if message.get("reasoning_content") else [],
        calls=[(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls],
        ids=[call["id"] for call in calls],
        texts=1 if message["content"] else 0,
        cited=[_cited(one["url_citation"], message["content"]) for one in message.get("annotations") or ()],
        finish=choice["finish_reason"],
        input=usage["prompt_tokens"],
        output=usage["completion_tokens"],
        id=document["id"],
    )


def _cited(source: Document, text: str) -> tuple[str, str]:
    start, end = source["start_index"], source["end_index"]
    assert 0 <= start < end <= len(text)
    return source["url"], text[start:end]


# ---- Responses ----


def _responses(events: list[Event], told: Told) -> Told:
    documents = [json.loads(event.data) for event in events if not event.comment]
    assert [event.name for event in events if not event.comment] == [document["type"] for document in documents]
    assert not events[-1].comment
    assert [document["sequence_number"] for document in documents] == list(range(len(documents)))
    kinds = [document["type"].removeprefix("response.") for document in documents]
    assert kinds[:2] == ["created", "in_progress"], kinds[:2]
    assert kinds.count("created") == 1
    told.alive += kinds.count("in_progress") - 1
    assert [kind for kind in kinds if kind in ("completed", "incomplete", "failed")] == kinds[-1:]
    (told.id,) = {document["response"]["id"] for document in documents if "response" in document}
    open_items: dict[int, Document] = {}
    done: list[Document] = []
    texts: dict[tuple[int, int], str] = {}
    arguments: dict[int, str] = {}
    sources: list[Document] = []
    for kind, document in zip(kinds, documents, strict=True):
        index = document.get("output_index")
        if kind == "output_item.added":
            assert not open_items, "two items are open"
            assert index == len(done)
            open_items[index] = document["item"]
        elif kind == "output_item.done":
            assert open_items.pop(index)["id"] == document["item"]["id"]
            done.append(document["item"])
        elif index is not None:
            assert document["item_id"] == open_items[index]["id"]
            if kind == "output_text.annotation.added":
                assert document["annotation_index"] >= 0
                sources.append(document["annotation"])
                continue
            _responses_part(kind, document, texts, arguments)
    assert not open_items
    response = documents[-1]["response"]
    assert response["output"] == done
    for (index, place), text in texts.items():
        if done[index]["type"] == "message":
            assert done[index]["content"][place]["text"] == text
    parts = [part for item in done if item["type"] == "message" for part in item["content"]]
    assert all(source in (part.get("annotations") or ()) for source in sources for part in parts[:1]) or len(parts) > 1
    for index, written in arguments.items():
        assert done[index]["arguments"] == written
    return _from_items(response, told)


def _responses_part(kind: str, document: Document, texts: dict[tuple[int, int], str], arguments: dict[int, str]) -> None:
    place = (document["output_index"], document.get("content_index", -1))
    match kind:
        case "content_part.added":
            assert place not in texts
            texts[place] = ""
        case "output_text.delta":
            texts[place] += document["delta"]
        case "output_text.done":
            assert texts[place] == document["text"]
        case "content_part.done":
            assert texts[place] == document["part"]["text"]
        case "function_call_arguments.delta":
            arguments[place[0]] = arguments.get(place[0], "") + document["delta"]
        case "function_call_arguments.done":
            assert arguments[place[0]] == document["arguments"]
        case _:
            assert kind.startswith("reasoning_summary"), kind


def _from_items(response: Document, told: Told) -> Told:
    for item in response["output"]:
        match item["type"]:
            case "message":
                told.text += "".join(part["text"] for part in item["content"])
                told.texts += 1
                told.cited += [_cited(one, part["text"]) for part in item["content"] for one in part.get("annotations") or ()]
                assert item["status"] == "completed"
            case "function_call":
                told.calls.append((item["name"], json.loads(item["arguments"])))
                told.ids.append(item["call_id"])
            case "reasoning":
                told.thinking.append("".join(part["text"] for part in item["summary"]))
                told.signatures += [item["encrypted_content"]] if "encrypted_content" in item else []
            case "web_search_call" | "code_interpreter_call" | "mcp_call":
                assert item["status"] in ("completed", "failed")
                told.ran.append(item)
            case kind:
                raise AssertionError(kind)
    usage = response["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    told.input, told.output = usage["input_tokens"], usage["output_tokens"]
    told.finish = (response["incomplete_details"] or {}).get("reason") or response["status"]
    return told


def _responses_whole(document: Document) -> Told:
    assert document["object"] == "response"
    return _from_items(document, Told(id=document["id"]))


# ---- Gemini ----


def _gemini(documents: list[Document], told: Told) -> Told:
    documents = [document.get("response", document) for document in documents]
    candidates = [document["candidates"][0] for document in documents]
    assert [bool(candidate.get("finishReason")) for candidate in candidates] == [False] * (len(candidates) - 1) + [True]
    (told.id,) = {document["responseId"] for document in documents}
    for candidate in candidates:
        assert candidate["content"]["parts"], "no part"
        assert candidate["content"]["role"] == "model"
        for part in candidate["content"]["parts"]:
            if "functionCall" in part:
                told.calls.append((part["functionCall"]["name"], part["functionCall"]["args"]))
                told.ids.append(part["functionCall"].get("id", ""))
                told.signatures += [part["thoughtSignature"]] if "thoughtSignature" in part else []
            elif part.get("thought"):
                told.thinking.append(part["text"])
            else:
                told.text += part["text"]
    told.thinking = ["".join(told.thinking)] if told.thinking else []
    told.texts = 1 if told.text else 0
    usage = documents[-1]["usageMetadata"]
    told.finish = candidates[-1]["finishReason"]
    told.input, told.output = usage["promptTokenCount"], usage["candidatesTokenCount"]
    return told


def _gemini_stream(events: list[Event], told: Told) -> Told:
    assert not any(event.name for event in events)
    return _gemini([json.loads(event.data) for event in events], told)


_STREAMS: dict[Dialect, Callable[[list[Event], Told], Told]] = {
    Dialect.MESSAGES: _messages,
    Dialect.CHAT: _chat,
    Dialect.RESPONSES: _responses,
    Dialect.GEMINI: _gemini_stream,
}
_WHOLE: dict[Dialect, Callable[[Document], Told]] = {
    Dialect.MESSAGES: _messages_whole,
    Dialect.CHAT: _chat_whole,
    Dialect.RESPONSES: _responses_whole,
    Dialect.GEMINI: lambda document: _gemini([document], Told()),
}


def read_whole(dialect: Dialect, body: bytes) -> Told:
    """White space in front of JSON means nothing."""
    told = _WHOLE[dialect](json.loads(body))
    told.alive = len(body) - len(body.lstrip())
    return told


def read(dialect: Dialect, body: bytes, stream: bool) -> Told:
    return read_stream(dialect, body) if stream else read_whole(dialect, body)


# ---- an answer that ends in an error ----


def error_at_end(dialect: Dialect, body: bytes, stream: bool) -> tuple[str, str]:
    """What was said before the error, and the error's message. AssertionError where there is none, or anything behind it."""
    if not stream:
        error = json.loads(body)["error"]
        return "", str(error["message"])
    events = [event for event in _events(body, Told(), blank_lines=True) if not event.comment]
    *before, last = [json.loads(event.data) for event in events if event.data != "[DONE]"]
    assert not any("error" in document and document["error"] for document in before)
    match dialect:
        case Dialect.RESPONSES:
            assert last["type"] in ("response.failed", "error"), last
            error = last["response"]["error"] if last["type"] == "response.failed" else last
            said = "".join(document["delta"] for document in before if document["type"] == "response.output_text.delta")
            assert not any(document["type"] == "response.completed" for document in before)
        case Dialect.MESSAGES:
            assert events[-1].name == last["type"] == "error"
            error = last["error"]
            deltas = [document["delta"] for document in before if document["type"] == "content_block_delta"]
            said = "".join(delta.get("text", "") for delta in deltas)
            assert not any(document["type"] == "message_stop" for document in before)
        case Dialect.CHAT:
            error = last["error"]
            choices = [choice for document in before for choice in document["choices"] if choice["index"] == 0]
            said = "".join(choice["delta"].get("content") or "" for choice in choices)
            assert not any(choice["finish_reason"] for choice in choices)
        case Dialect.GEMINI:
            error = last["error"]
            parts = [part for document in before for part in document["candidates"][0]["content"]["parts"]]
            said = "".join(part.get("text", "") for part in parts)
            assert not any(document["candidates"][0].get("finishReason") for document in before)
    return said, str(error["message"])
