"""Rounds as providers of OpenAI's two interfaces send them, and what a client makes of the output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.routing.dialects.answer.rounds import Spoken, dump, pieces

CREATED = 1_800_000_000


def _named(kind: str) -> str:
    return "clock" if kind == "own" else "exec_command"


# --- Chat -------------------------------------------------------------------------------------------------------------


def _chat_word(round_: Spoken) -> str:
    return round_.finish or ("tool_calls" if round_.has_calls else "stop")


def chat_usage(round_: Spoken) -> dict[str, Any]:
    return {
        "prompt_tokens": round_.input,
        "completion_tokens": round_.output,
        "total_tokens": round_.input + round_.output,
        "prompt_tokens_details": {"cached_tokens": 7},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }


def _chat_head(number: int, kind: str) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{number}", "object": kind, "created": CREATED + number, "model": f"m-{number}"}
    return {**head, "system_fingerprint": f"fp_{number}"}


def _chat_calls(round_: Spoken, number: int) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{number}_{index}", "type": "function", "function": {"name": _named(kind), "arguments": text}}
        for index, (kind, text) in enumerate(part for part in round_.parts if part[0] in ("own", "tool"))
    ]


def chat_message(round_: Spoken, number: int) -> dict[str, Any]:
    """What a round's answer is in the history."""
    thought = "".join(text for kind, text in round_.parts if kind == "thinking")
    message: dict[str, Any] = {"role": "assistant", "content": round_.text or None}
    if thought:
        message["reasoning_content"] = thought
    if calls := _chat_calls(round_, number):
        message["tool_calls"] = calls
    return message


def chat_json(round_: Spoken, number: int) -> bytes:
    if round_.ending == "error":
        return dump({"error": {"message": "Overloaded", "code": 503}})
    message = {**chat_message(round_, number), "refusal": None, "annotations": []}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_word(round_)}
    whole = dump({**_chat_head(number, "chat.completion"), "choices": [choice], "usage": chat_usage(round_)})
    return whole if round_.ending == "whole" else whole[:-3]


def chat_chunk(number: int, delta: dict[str, Any], finish: str | None = None, **rest: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_chat_head(number, "chat.completion.chunk"), "choices": [choice], **rest}


def chat_documents(round_: Spoken, number: int, *, usage: bool = True) -> Iterator[dict[str, Any]]:
    rest = {"usage": None} if usage else {}
    yield chat_chunk(number, {"role": "assistant", "content": "", "refusal": None}, **rest)
    calls = iter(enumerate(_chat_calls(round_, number)))
    for kind, text in round_.parts:
        if kind in ("own", "tool"):
            index, call = next(calls)
            begun = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
            yield chat_chunk(number, {"tool_calls": [begun]}, **rest)
            for piece in pieces(text):
                yield chat_chunk(number, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, **rest)
        else:
            name = "content" if kind == "text" else "reasoning_content"
            for piece in pieces(text):
                yield chat_chunk(number, {name: piece}, **rest)
    if round_.ending == "error":
        yield {"error": {"message": "Overloaded", "code": 503}}
    if round_.ending != "whole":
        return
    yield chat_chunk(number, {}, _chat_word(round_), **rest)
    if usage:
        yield {**_chat_head(number, "chat.completion.chunk"), "choices": [], "usage": chat_usage(round_)}


def sse(documents: list[dict[str, Any]], *, done: bool = True, end: bytes = b"\n") -> bytes:
    """Events without names, as Chat has them."""
    events = [b"data: " + dump(one) + end * 2 for one in documents]
    return b"".join(events) + (b"data: [DONE]" + end * 2 if done else b"")


def chat_stream(round_: Spoken, number: int, *, usage: bool = True) -> bytes:
    return sse(list(chat_documents(round_, number, usage=usage)), done=round_.ending == "whole")


def chat_accumulated(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """The first choice as SDKs put it together, with the whole answer's usage beside it."""
    message: dict[str, Any] = {}
    calls: list[dict[str, Any]] = []
    whole: dict[str, Any] = {"usage": None, "finish_reason": None}
    for one in documents:
        whole["usage"] = one.get("usage") or whole["usage"]
        for choice in one["choices"]:
            if choice["index"]:
                continue
            for name, value in choice["delta"].items():
                if name == "content" and isinstance(value, list):
                    value = "".join(part["text"] for part in value if part["type"] == "text")
                if name == "tool_calls":
                    for entry in value:
                        _grow_call(calls, entry)
                elif isinstance(value, str):
                    message[name] = message.get(name, "") + value
                else:
                    message.setdefault(name, value)
            whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]
    return {**whole, "message": {**message, **({"tool_calls": calls} if calls else {})}}


def _grow_call(calls: list[dict[str, Any]], entry: dict[str, Any]) -> None:
    index = entry["index"]
    assert index <= len(calls), "an index was left out"
    if index == len(calls):
        assert entry["id"]
        assert entry["function"]["name"]
        calls.append({"id": entry["id"], "type": entry["type"], "function": dict(entry["function"])})
    else:
        calls[index]["function"]["arguments"] += entry["function"]["arguments"]


# --- Responses --------------------------------------------------------------------------------------------------------


def responses_usage(round_: Spoken) -> dict[str, Any]:
    return {
        "input_tokens": round_.input,
        "input_tokens_details": {"cached_tokens": 7},
        "output_tokens": round_.output,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": round_.input + round_.output,
    }


def responses_item(part: tuple[str, str], number: int, index: int) -> dict[str, Any]:
    kind, text = part
    stem = f"{number}_{index}"
    match kind:
        case "text":
            content = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
            return {"id": f"msg_{stem}", "type": "message", "status": "completed", "role": "assistant", "content": [content]}
        case "refusal":
            content = {"type": "refusal", "refusal": text}
            return {"id": f"msg_{stem}", "type": "message", "status": "completed", "role": "assistant", "content": [content]}
        case "thinking":
            summary = [{"type": "summary_text", "text": text}]
            return {"id": f"rs_{stem}", "type": "reasoning", "summary": summary, "encrypted_content": f"gAAAA{stem}"}
        case "server":
            action = {"type": "search", "query": text}
            return {"id": f"ws_{stem}", "type": "web_search_call", "status": "completed", "action": action}
        case "custom":
            call = {"id": f"ctc_{stem}", "type": "custom_tool_call", "status": "completed", "call_id": f"call_{stem}"}
            return {**call, "name": "apply_patch", "input": text}
        case _:
            call = {"id": f"fc_{stem}", "type": "function_call", "status": "completed", "call_id": f"call_{stem}"}
            return {**call, "name": _named(kind), "arguments": text}


def responses_items(round_: Spoken, number: int) -> list[dict[str, Any]]:
    return [responses_item(part, number, index) for index, part in enumerate(round_.parts)]


def responses_head(number: int) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": CREATED + number,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": f"m-{number}",
        "output": [],
        "previous_response_id": None,
        "store": True,
        "tools": [],
        "usage": None,
        "vendor_field": number,
    }


def responses_whole(round_: Spoken, number: int) -> dict[str, Any]:
    ended: dict[str, Any] = {"status": "completed"}
    if round_.finish:
        ended = {"status": "incomplete", "incomplete_details": {"reason": round_.finish}}
    return {**responses_head(number), **ended, "output": responses_items(round_, number), "usage": responses_usage(round_)}


def responses_json(round_: Spoken, number: int) -> bytes:
    if round_.ending == "error":
        return dump({"error": {"message": "Overloaded", "code": "server_error", "type": "server_error"}})
    whole = dump(responses_whole(round_, number))
    return whole if round_.ending == "whole" else whole[:-3]


_ARGUMENTS = {"function_call": ("function_call_arguments", "arguments"), "custom_tool_call": ("custom_tool_call_input", "input")}


def _item_documents(item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": index}
    added = {"type": "response.output_item.added", "output_index": index}
    match item["type"]:
        case "message":
            yield {**added, "item": {**item, "status": "in_progress", "content": []}}
            for content_index, part in enumerate(item["content"]):
                where = {**at, "content_index": content_index}
                name, key = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
                more = {"logprobs": []} if name == "output_text" else {}
                yield {"type": "response.content_part.added", **where, "part": {**part, key: ""}}
                for piece in pieces(part[key]):
                    yield {"type": f"response.{name}.delta", **where, "delta": piece, **more}
                yield {"type": f"response.{name}.done", **where, key: part[key], **more}
                yield {"type": "response.content_part.done", **where, "part": part}
        case "reasoning":
            yield {**added, "item": {**item, "summary": []}}
            where = {**at, "summary_index": 0}
            part = item["summary"][0]
            yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
            for piece in pieces(part["text"]):
                yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
            yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
            yield {"type": "response.reasoning_summary_part.done", **where, "part": part}
        case "web_search_call":
            yield {**added, "item": {**item, "status": "in_progress"}}
            yield {"type": "response.web_search_call.searching", **at}
            yield {"type": "response.web_search_call.completed", **at}
        case kind:
            name, key = _ARGUMENTS[kind]
            yield {**added, "item": {**item, "status": "in_progress", key: ""}}
            for piece in pieces(item[key]):
                yield {"type": f"response.{name}.delta", **at, "delta": piece}
            yield {"type": f"response.{name}.done", **at, key: item[key]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def responses_documents(round_: Spoken, number: int) -> list[dict[str, Any]]:
    head = responses_head(number)
    documents: list[dict[str, Any]] = [{"type": f"response.{name}", "response": head} for name in ("created", "in_progress")]
    for index, item in enumerate(responses_items(round_, number)):
        documents += _item_documents(item, index)
        if round_.ending == "cut" and index == len(round_.parts) - 1:
            del documents[-3:]
    if round_.ending == "error":
        failed = {"status": "failed", "error": {"code": "server_error", "message": "Overloaded"}}
        documents.append({"type": "response.failed", "response": {**head, **failed}})
    if round_.ending == "whole":
        whole = responses_whole(round_, number)
        documents.append({"type": f"response.{whole['status']}", "response": whole})
    return documents


def named_sse(documents: list[dict[str, Any]], *, end: bytes = b"\n") -> bytes:
    """Events with names, and numbers where they have none yet."""
    numbered = [{"type": one["type"], "sequence_number": number, **one} for number, one in enumerate(documents)]
    return b"".join(b"event: " + one["type"].encode() + end + b"data: " + dump(one) + end * 2 for one in numbered)


def responses_stream(round_: Spoken, number: int) -> bytes:
    return named_sse(responses_documents(round_, number))


def responses_accumulated(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """The response as it was told at the end; on the way, that its deltas say the same and come where they belong."""
    texts: dict[tuple[int, int], str] = {}
    kinds: dict[tuple[int, int], str] = {}
    arguments: dict[int, str] = {}
    items: dict[int, dict[str, Any]] = {}
    for one in documents:
        kind, index = one["type"].removeprefix("response."), one.get("output_index")
        if kind == "output_item.added":
            assert index not in items
            items[index] = one["item"]
        elif index is not None and "item_id" in one:
            assert one["item_id"] == items[index]["id"]
        place = (index, one.get("content_index"))
        if kind == "content_part.added":
            assert place not in texts
            texts[place], kinds[place] = "", one["part"]["type"]
        elif kind in ("output_text.delta", "refusal.delta"):
            assert kinds[place] == kind.removesuffix(".delta")
            texts[place] += one["delta"]
        elif kind in ("output_text.done", "refusal.done"):
            assert texts[place] == one[{"output_text": "text"}.get(kinds[place], "refusal")]
        elif kind == "content_part.done":
            assert texts[place] == one["part"].get("text", one["part"].get("refusal"))
        elif kind in ("function_call_arguments.delta", "custom_tool_call_input.delta"):
            arguments[index] = arguments.get(index, "") + one["delta"]
        elif kind == "output_item.done":
            items[index] = one["item"]
    response: dict[str, Any] = documents[-1]["response"]
    assert list(items) == list(range(len(items)))
    assert response["output"] == list(items.values())
    for index, written in arguments.items():
        assert written == items[index].get("arguments", items[index].get("input"))
    for index, item in items.items():
        parts = item["content"] if item["type"] == "message" else []
        assert [text for (at, _), text in texts.items() if at == index] == [
            part.get("text", part.get("refusal")) for part in parts
        ]
    json.dumps(response)
    return response


def output_text(response: dict[str, Any]) -> str:
    """As SDKs join it."""
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts if part["type"] == "output_text")
