"""Provider streams as they look on the wire, the three ways to feed them, and what a stream of each dialect must be."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from routecodex.routing.dialects.sse import ArrayItems, Event, Events
from routecodex.routing.values import Dialect

Reader = Events | ArrayItems
Pairs = list[tuple[str, bytes]]

WORDS = "中文内容，一个表情 😀👩‍👩‍👧 và tiếng Việt — ok"


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _messages() -> Pairs:
    usage = {"input_tokens": 12, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    bodies: list[dict[str, Any]] = [
        {"type": "message_start", "message": head},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": WORDS}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EuYB+/=="}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": f'"usage":{{}}\n\n{WORDS}'}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "n", "input": {}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a": "b\\n'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": WORDS + '"}'}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 88}},
        {"type": "message_stop"},
    ]
    return [(body["type"], _dump(body)) for body in bodies]


def _chat() -> Pairs:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "n", "arguments": ""}}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"reasoning_content": WORDS},
        {"content": WORDS},
        {"content": "\n\ndata: not an event\n\n"},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": "' + WORDS + '"}'}}]},
    ]
    bodies: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None} for delta in deltas
    ]
    bodies.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    usage = {"prompt_tokens": 119, "completion_tokens": 88, "prompt_tokens_details": {"cached_tokens": 100}}
    bodies.append({**head, "choices": [], "usage": usage})
    return [*(("", _dump(body)) for body in bodies), ("", b"[DONE]")]


def _responses() -> Pairs:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": WORDS, "annotations": []}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    usage = {"input_tokens": 119, "input_tokens_details": {"cached_tokens": 100}, "output_tokens": 88}
    tools = [{"type": "function", "name": "n", "parameters": {"properties": {"usage": {"type": "object"}}}}]
    opened = {"id": "resp_1", "object": "response", "status": "in_progress", "error": None, "tools": tools}
    bodies: list[dict[str, Any]] = [
        {"type": "response.created", "response": opened},
        {"type": "response.in_progress", "response": opened},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": WORDS},
        {"type": "response.output_text.done", **at, "text": WORDS},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "content": [part]}},
        {"type": "response.completed", "response": {**opened, "status": "completed", "usage": usage, "user": None}},
    ]
    return [(body["type"], _dump({**body, "sequence_number": number})) for number, body in enumerate(bodies)]


def gemini_chunks(*, envelope: bool = False) -> list[dict[str, Any]]:
    parts: list[list[dict[str, Any]]] = [
        [{"text": WORDS, "thought": True}],
        [{"text": f'[{{"}} \\" {WORDS}'}],
        [{"functionCall": {"name": "n", "args": {"a": [1, {"b": WORDS}]}}, "thoughtSignature": "Eg=="}],
    ]
    chunks: list[dict[str, Any]] = [
        {"candidates": [{"content": {"parts": given, "role": "model"}}], "usageMetadata": {"promptTokenCount": 100}}
        for given in parts
    ]
    counts = {"promptTokenCount": 100, "toolUsePromptTokenCount": 19, "candidatesTokenCount": 80, "thoughtsTokenCount": 8}
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    chunks[-1]["usageMetadata"] = {**counts, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}]}
    return [{"response": chunk} for chunk in chunks] if envelope else chunks


EVENTS: dict[Dialect, Pairs] = {
    Dialect.MESSAGES: _messages(),
    Dialect.CHAT: _chat(),
    Dialect.RESPONSES: _responses(),
    Dialect.GEMINI: [("", _dump(chunk)) for chunk in gemini_chunks()],
}


def _lines(name: str, data: bytes, *, space: bytes = b" ", named: bool = True) -> list[bytes]:
    head = [b"event:" + space + name.encode()] if name and named else []
    return [*head, *(b"data:" + space + line for line in data.split(b"\n"))]


def _render(pairs: Pairs, end: bytes = b"\n", **how: Any) -> bytes:
    return b"".join(b"".join(line + end for line in [*_lines(*pair, **how), b""]) for pair in pairs)


def _pretty(pairs: Pairs) -> Pairs:
    """Every JSON over several data lines, as some proxies print it."""
    return [(name, data if data == b"[DONE]" else _dump_pretty(data)) for name, data in pairs]


def _dump_pretty(data: bytes) -> bytes:
    return json.dumps(json.loads(data), ensure_ascii=False, indent=2).encode()


def _with_extras(pairs: Pairs, end: bytes) -> bytes:
    """Comments, ids and retries, fields in another order, more blank lines than needed."""
    blocks = [b": connected" + end + end, end]
    for number, (name, data) in enumerate(pairs):
        head, body = _lines(name, data)[:-1], _lines("", data)
        lines = [b"id: %d" % number, *body, b": OPENROUTER PROCESSING", *head, b"retry: 10", b"unknown", b""]
        blocks += [line + end for line in lines]
        blocks += [b": keep-alive" + end + end] if number % 3 == 0 else []
    return b"".join(blocks)


def provider_streams() -> Iterator[tuple[str, Dialect, bytes, Pairs]]:
    """More than forty event streams: id, dialect, bytes, and the events that are in them."""
    for dialect, pairs in EVENTS.items():
        for word, end in (("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")):
            yield f"{dialect}-{word}", dialect, _render(pairs, end), pairs
            yield f"{dialect}-{word}-extras", dialect, _with_extras(pairs, end), pairs
            yield f"{dialect}-{word}-pretty", dialect, _render(_pretty(pairs), end), _pretty(pairs)
        nameless = [("", data) for _, data in pairs]
        yield f"{dialect}-bom", dialect, b"\xef\xbb\xbf" + _render(pairs), pairs
        yield f"{dialect}-no-space", dialect, _render(pairs, space=b""), pairs
        yield f"{dialect}-no-names", dialect, _render(pairs, named=False), nameless
        yield f"{dialect}-no-last-blank", dialect, _render(pairs)[:-1], pairs


def array_streams() -> Iterator[tuple[str, bytes, list[bytes]]]:
    """Gemini without `alt=sse`: id, bytes, items."""
    for envelope in (False, True):
        for word, indent, between in (("compact", None, b","), ("pretty", 2, b"\n,\r\n"), ("spread", 1, b" \n\n , ")):
            items = [json.dumps(chunk, ensure_ascii=False, indent=indent).encode() for chunk in gemini_chunks(envelope=envelope)]
            yield f"{word}-{envelope}", b"[" + between.join(items) + b"\n]\n", items
    error = b'{\n  "error": {"code": 400, "message": "[no] \\"{"}\n}'
    yield "error-in-array", b"[" + error + b"]", [error]
    yield "error-alone", b"\n" + error + b"\n", [error]


def read(reader: Reader, raw: bytes, sizes: Iterator[int]) -> list[Event]:
    """Feed `raw` in pieces of those sizes, then close."""
    events: list[Event] = []
    place = 0
    while place < len(raw):
        size = next(sizes)
        events += reader.feed(raw[place : place + size])
        place += size
    return events + reader.close()


def sizes_of(random_: random.Random) -> Iterator[int]:
    """Mostly small pieces, now and then a large or an empty one."""
    while True:
        yield random_.choice((0, 1, 2, 3, 7, 40, 300, 3000))


def in_three_ways(make: Callable[[], Reader], raw: bytes, *, cuts: int = 5, seed: int = 1) -> list[Event]:
    """Whole, byte by byte and randomly cut give the same events, and every byte comes back."""
    whole = read(make(), raw, iter((max(1, len(raw)),)))
    assert b"".join(event.raw for event in whole) == raw
    assert read(make(), raw, iter([1] * len(raw))) == whole
    for number in range(cuts):
        assert read(make(), raw, sizes_of(random.Random(seed * 1000 + number))) == whole
    return whole


def documents_of(events: list[Event]) -> list[dict[str, Any]]:
    return [json.loads(event.data) for event in events if event.data and event.data != b"[DONE]"]


# --- what a complete stream of each dialect is --------------------------------------------------------------------------


def check_messages(events: list[Event]) -> None:
    documents = documents_of(events)
    assert [event.name for event in events] == [document["type"] for document in documents]
    kinds = [document["type"] for document in documents if document["type"] != "ping"]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("message_start") == kinds.count("message_delta") == kinds.count("message_stop") == 1
    index, opened = -1, False
    for document in documents:
        match document["type"]:
            case "content_block_start":
                assert not opened
                index, opened = index + 1, True
                assert document["index"] == index
            case "content_block_delta" | "content_block_stop":
                assert opened
                assert document["index"] == index
                opened = document["type"] == "content_block_delta"
            case "message_delta":
                assert not opened, "F09: no block may be open here"


def check_chat(events: list[Event], *, usage: bool) -> None:
    assert events[-1].data == b"[DONE]"
    documents = documents_of(events)
    assert len({document["id"] for document in documents}) == 1
    if usage:
        assert documents[-1]["choices"] == []
        counted = documents.pop()["usage"]
        assert counted["total_tokens"] == counted["prompt_tokens"] + counted["completion_tokens"]
    assert documents[0]["choices"][0]["delta"]["role"] == "assistant"
    reasons = [document["choices"][0]["finish_reason"] for document in documents]
    assert reasons[-1]
    assert not any(reasons[:-1])


def check_responses(events: list[Event]) -> None:
    documents = documents_of(events)
    assert [event.name for event in events] == [document["type"] for document in documents]
    assert [document["sequence_number"] for document in documents] == list(range(len(documents)))
    kinds = [document["type"] for document in documents]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] in ("response.completed", "response.incomplete", "response.failed")
    assert len({document["response"]["id"] for document in documents if "response" in document}) == 1
    opened: list[str] = []
    done: list[Any] = []
    for document in documents:
        kind, index = document["type"], document.get("output_index")
        if kind == "response.output_item.added":
            assert not opened
            assert index == len(done)
            opened.append(document["item"]["id"])
        elif kind == "response.output_item.done":
            assert opened.pop() == document["item"]["id"]
            done.append(document["item"])
        elif index is not None:
            assert document["item_id"] == opened[-1]
    assert not opened
    assert documents[-1]["response"]["output"] == done


def check_gemini(documents: list[dict[str, Any]]) -> None:
    candidates = [document["candidates"][0] for document in documents]
    assert all(candidate["content"]["parts"] for candidate in candidates)
    assert [bool(candidate.get("finishReason")) for candidate in candidates] == [False] * (len(candidates) - 1) + [True]
    assert len({document["responseId"] for document in documents}) == 1
