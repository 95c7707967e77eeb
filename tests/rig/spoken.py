"""The four dialects as providers write them: whole answers and event streams, one function of each kind per dialect."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from routecodex.routing.values import Dialect
from tests.rig.reply import Asked, Reply, cut, data, sse

# ---- Messages ----

_MESSAGES_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _messages_usage(reply: Reply, output: int) -> dict[str, Any]:
    return {
        "input_tokens": reply.input_tokens - reply.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def _messages_blocks(reply: Reply, asked: Asked) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": reply.signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.joined})
    for index, call in enumerate(reply.calls):
        identity = call.id or f"toolu_01Rig{asked.number:08d}{index:04d}"
        blocks.append({"type": "tool_use", "id": identity, "name": call.name, "input": call.arguments})
    return blocks


def _messages_head(reply: Reply, asked: Asked) -> dict[str, Any]:
    identity = reply.id or f"msg_01Rig{asked.number:012d}"
    return {"id": identity, "type": "message", "role": "assistant", "model": reply.model or asked.model or "claude-sonnet-4-5"}


def _messages_whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    return _messages_head(reply, asked) | {
        "content": _messages_blocks(reply, asked),
        "stop_reason": _MESSAGES_STOP[reply.ending],
        "stop_sequence": None,
        "usage": _messages_usage(reply, reply.tokens),
    }


def _messages_deltas(block: dict[str, Any], reply: Reply) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"])]
            return {"type": "thinking", "thinking": "", "signature": ""}, [
                *deltas,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in reply.pieces]
        case _:
            written = json.dumps(block["input"], ensure_ascii=False)
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *cut(written)]]


def _messages_events(reply: Reply, asked: Asked) -> Iterator[bytes]:
    start = _messages_head(reply, asked) | {"content": [], "stop_reason": None, "stop_sequence": None}
    yield sse({"type": "message_start", "message": start | {"usage": _messages_usage(reply, 1)}})
    for index, block in enumerate(_messages_blocks(reply, asked)):
        opening, deltas = _messages_deltas(block, reply)
        yield sse({"type": "content_block_start", "index": index, "content_block": opening})
        if index == 0:
            yield sse({"type": "ping"})
        for delta in deltas:
            yield sse({"type": "content_block_delta", "index": index, "delta": delta})
        yield sse({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": _MESSAGES_STOP[reply.ending], "stop_sequence": None}
    yield sse({"type": "message_delta", "delta": ending, "usage": {"output_tokens": reply.tokens}})
    yield sse({"type": "message_stop"})


# ---- Chat Completions ----


def _chat_usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": reply.input_tokens + reply.tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _chat_calls(reply: Reply, asked: Asked) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id or f"call_Rig{asked.number:08d}{index:04d}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.json},
        }
        for index, call in enumerate(reply.calls)
    ]


def _chat_head(reply: Reply, asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": reply.id or f"chatcmpl-Rig{asked.number:012d}",
        "object": kind,
        "created": 1763400000,
        "model": reply.model or asked.model or "gpt-5",
        "service_tier": "default",
        "system_fingerprint": "fp_rig0000000",
    }


def _chat_whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.joined or None, "refusal": None, "annotations": []}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = _chat_calls(reply, asked)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.ending}
    return _chat_head(reply, asked, "chat.completion") | {"choices": [choice], "usage": _chat_usage(reply)}


def _chat_events(reply: Reply, asked: Asked) -> Iterator[bytes]:
    head = _chat_head(reply, asked, "chat.completion.chunk")
    last = {"usage": None} if asked.usage_chunk else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return data(head | {"choices": [choice]} | last)

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in cut(reply.thinking):
        yield chunk({"reasoning_content": piece})
    if reply.text:
        for piece in reply.pieces:
            yield chunk({"content": piece})
    whole = asked.model.startswith("mistral")  # whose own library reads nothing else
    for index, call in enumerate(_chat_calls(reply, asked)):
        if whole:
            yield chunk({"tool_calls": [{"index": index, **call}]})
            continue
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
        for piece in cut(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, reply.ending)
    if asked.usage_chunk:
        yield data(head | {"choices": [], "usage": _chat_usage(reply)})
    yield b"data: [DONE]\n\n"


# ---- Responses ----


def _responses_items(reply: Reply, asked: Asked) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.thinking:
        items.append(
            {
                "id": f"rs_Rig{asked.number:08d}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": reply.thinking}],
                "encrypted_content": reply.signature,
            }
        )
    if reply.text:
        content = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.joined}
        identity = f"msg_Rig{asked.number:08d}"
        items.append({"id": identity, "type": "message", "status": "completed", "role": "assistant", "content": [content]})
    for index, call in enumerate(reply.calls):
        items.append(
            {
                "id": f"fc_Rig{asked.number:08d}{index:04d}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.id or f"call_Rig{asked.number:08d}{index:04d}",
                "name": call.name,
                "arguments": call.json,
            }
        )
    return items


def responses_head(reply: Reply, asked: Asked) -> dict[str, Any]:
    return {
        "id": reply.id or f"resp_Rig{asked.number:012d}",
        "object": "response",
        "created_at": 1763400000,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": reply.model or asked.model or "gpt-5",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        "metadata": {},
    }


def _responses_whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    usage = {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens},
        "output_tokens": reply.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.tokens,
    }
    cut_short = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.ending)
    return responses_head(reply, asked) | {
        "status": "incomplete" if cut_short else "completed",
        "incomplete_details": {"reason": cut_short} if cut_short else None,
        "output": _responses_items(reply, asked),
        "usage": usage,
    }


def _responses_item_events(item: dict[str, Any], index: int, reply: Reply) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            empty, part = {"type": "summary_text", "text": ""}, item["summary"][0]
            where = place | {"summary_index": 0}
            yield {"type": "response.output_item.added", "output_index": index, "item": item | {"summary": []}}
            yield {"type": "response.reasoning_summary_part.added"} | where | {"part": empty}
            for piece in cut(part["text"]):
                yield {"type": "response.reasoning_summary_text.delta"} | where | {"delta": piece}
            yield {"type": "response.reasoning_summary_text.done"} | where | {"text": part["text"]}
            yield {"type": "response.reasoning_summary_part.done"} | where | {"part": part}
        case "message":
            part = item["content"][0]
            where = place | {"content_index": 0}
            opening = item | {"status": "in_progress", "content": []}
            yield {"type": "response.output_item.added", "output_index": index, "item": opening}
            yield {"type": "response.content_part.added"} | where | {"part": part | {"text": ""}}
            for piece in reply.pieces:
                yield {"type": "response.output_text.delta"} | where | {"delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done"} | where | {"text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done"} | where | {"part": part}
        case _:
            opening = item | {"status": "in_progress", "arguments": ""}
            yield {"type": "response.output_item.added", "output_index": index, "item": opening}
            for piece in cut(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta"} | place | {"delta": piece}
            yield {"type": "response.function_call_arguments.done"} | place | {"arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _responses_events(reply: Reply, asked: Asked) -> Iterator[bytes]:
    def all_events() -> Iterator[dict[str, Any]]:
        head, whole = responses_head(reply, asked), _responses_whole(reply, asked)
        yield {"type": "response.created", "response": head}
        yield {"type": "response.in_progress", "response": head}
        for index, item in enumerate(whole["output"]):
            yield from _responses_item_events(item, index, reply)
        yield {"type": f"response.{whole['status']}", "response": whole}

    for number, event in enumerate(all_events()):
        yield sse({"type": event["type"], "sequence_number": number} | event)


# ---- Gemini ----

_GEMINI_STOP = {"stop": "STOP", "length": "MAX_TOKENS", "tool_calls": "STOP", "content_filter": "SAFETY"}


def _gemini_call_parts(reply: Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for index, call in enumerate(reply.calls):
        function: dict[str, Any] = {"name": call.name, "args": call.arguments}
        if call.id:
            function["id"] = call.id
        # Google signs the first of several parallel calls only.
        parts.append({"functionCall": function} | ({"thoughtSignature": reply.signature} if index == 0 else {}))
    return parts


def _gemini_chunk(reply: Reply, asked: Asked, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    usage = {"promptTokenCount": reply.input_tokens, "totalTokenCount": reply.input_tokens}
    if reply.cached_tokens:
        usage["cachedContentTokenCount"] = reply.cached_tokens
    if last:
        candidate["finishReason"] = _GEMINI_STOP[reply.ending]
        usage |= {"candidatesTokenCount": reply.tokens, "totalTokenCount": reply.input_tokens + reply.tokens}
    chunk = {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": reply.model or asked.model or "gemini-3-pro",
        "responseId": reply.id or f"Rig{asked.number:012d}",
    }
    return {"response": chunk, "traceId": f"{asked.number:016x}"} if asked.envelope else chunk


def _gemini_whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.joined})
    return _gemini_chunk(reply, asked, parts + _gemini_call_parts(reply), last=True)


def _gemini_events(reply: Reply, asked: Asked) -> Iterator[bytes]:
    groups: list[list[dict[str, Any]]] = [[{"text": piece, "thought": True}] for piece in cut(reply.thinking, 24)]
    if reply.text:
        groups += [[{"text": piece}] for piece in reply.pieces]
    if calls := _gemini_call_parts(reply):
        groups.append(calls)
    groups = groups or [[{"text": ""}]]
    for index, parts in enumerate(groups):
        chunk = _gemini_chunk(reply, asked, parts, last=index == len(groups) - 1)
        yield gemini_frame(chunk, asked, first=index == 0)
    if asked.json_array:
        yield b"]"


def gemini_frame(chunk: object, asked: Asked, *, first: bool) -> bytes:
    """Google ends its lines with CR LF; without `alt=sse` the stream is one JSON array, an element at a time."""
    if not asked.json_array:
        return data(chunk, b"\r\n")
    return (b"[" if first else b",\r\n") + json.dumps(chunk, indent=2).encode()


WHOLE: dict[Dialect, Callable[[Reply, Asked], dict[str, Any]]] = {
    Dialect.MESSAGES: _messages_whole,
    Dialect.CHAT: _chat_whole,
    Dialect.RESPONSES: _responses_whole,
    Dialect.GEMINI: _gemini_whole,
}
EVENTS: dict[Dialect, Callable[[Reply, Asked], Iterator[bytes]]] = {
    Dialect.MESSAGES: _messages_events,
    Dialect.CHAT: _chat_events,
    Dialect.RESPONSES: _responses_events,
    Dialect.GEMINI: _gemini_events,
}
