"""Rounds as providers send them, the ways to feed them to a merger, and what a client makes of the output."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.calls.without_tools import without_tools
from routecodex.routing.dialects.said import Said
from routecodex.routing.dialects.sse import ArrayItems, Events
from routecodex.routing.turn.hidden import hidden_in, put_back
from routecodex.routing.values import Dialect
from tests.routing.turn.hidden_talk import TALKS

OWN = frozenset({"clock", "lookup"})
Part = tuple[str, str]
"""(kind, text): text, thinking, own, tool (arguments), server, citation."""


@dataclass(frozen=True)
class Spoken:
    """One round. `finish` is the dialect's word; None: what follows from the parts. `ending`: whole, cut, or error."""

    parts: tuple[Part, ...] = ()
    finish: str | None = None
    ending: str = "whole"
    input: int = 100
    output: int = 10

    @property
    def text(self) -> str:
        return "".join(text for kind, text in self.parts if kind == "text")

    @property
    def has_calls(self) -> bool:
        return any(kind in ("own", "tool") for kind, _ in self.parts)


def spoken(*parts: Part, **rest: Any) -> Spoken:
    return Spoken(parts, **rest)


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def pieces(text: str, size: int = 4) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


# --- Messages ---------------------------------------------------------------------------------------------------------


def _block(part: Part, number: int, index: int) -> dict[str, Any]:
    kind, text = part
    match kind:
        case "text":
            return {"type": "text", "text": text}
        case "thinking":
            return {"type": "thinking", "thinking": text, "signature": f"sig-{number}-{index}"}
        case "server":
            return {"type": "server_tool_use", "id": f"srvtoolu_{number}_{index}", "name": "web_search", "input": {"query": text}}
        case "found":
            found = [{"type": "web_search_result", "title": text, "url": "https://x", "encrypted_content": "EqQB"}]
            return {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}_{index - 1}", "content": found}
        case _:
            name = "clock" if kind == "own" else "Bash"
            return {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": name, "input": json.loads(text)}


def messages_blocks(round_: Spoken, number: int) -> list[dict[str, Any]]:
    return [_block(part, number, index) for index, part in enumerate(round_.parts)]


def _messages_word(round_: Spoken) -> str:
    return round_.finish or ("tool_use" if round_.has_calls else "end_turn")


def _messages_usage(round_: Spoken, output: int) -> dict[str, Any]:
    return {"input_tokens": round_.input, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": output}


def _messages_head(number: int) -> dict[str, Any]:
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": f"m-{number}"}


def messages_json(round_: Spoken, number: int) -> bytes:
    if round_.ending == "error":
        return dump({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    end = {"stop_reason": _messages_word(round_), "stop_sequence": None, "usage": _messages_usage(round_, round_.output)}
    whole = dump({**_messages_head(number), "content": messages_blocks(round_, number), **end, "vendor_field": number})
    return whole if round_.ending == "whole" else whole[:-3]


def _messages_deltas(block: dict[str, Any], part: Part) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            return {**block, "thinking": "", "signature": ""}, [
                *deltas,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "web_search_tool_result":
            return block, []
        case _:
            written = part[1] if block["type"] == "tool_use" else json.dumps(block["input"])
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(written)]
            ]


def messages_documents(round_: Spoken, number: int) -> Iterator[dict[str, Any]]:
    head = {**_messages_head(number), "content": [], "stop_reason": None, "usage": _messages_usage(round_, 1)}
    yield {"type": "message_start", "message": head}
    yield {"type": "ping"}
    for index, (block, part) in enumerate(zip(messages_blocks(round_, number), round_.parts, strict=True)):
        start, deltas = _messages_deltas(block, part)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if round_.ending == "cut" and index == len(round_.parts) - 1:
            return
        yield {"type": "content_block_stop", "index": index}
        if index == 0:
            yield {"type": "ping"}
    if round_.ending == "error":
        yield {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
        return
    if round_.ending == "cut":
        return
    delta = {"stop_reason": _messages_word(round_), "stop_sequence": None, "stop_details": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": round_.output}, "vendor_field": number}
    yield {"type": "message_stop", "vendor_metrics": {"n": number}}


def messages_stream(round_: Spoken, number: int) -> bytes:
    documents = messages_documents(round_, number)
    return b"".join(b"event: " + one["type"].encode() + b"\ndata: " + dump(one) + b"\n\n" for one in documents)


# --- Gemini -----------------------------------------------------------------------------------------------------------


def gemini_parts(round_: Spoken, number: int) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for index, (kind, text) in enumerate(round_.parts):
        match kind:
            case "text":
                parts.append({"text": text})
            case "thinking":
                parts.append({"text": text, "thought": True})
            case "server":
                parts.append({"executableCode": {"language": "PYTHON", "code": text}})
            case _:
                name = "clock" if kind == "own" else "Bash"
                call = {"functionCall": {"name": name, "args": json.loads(text)}}
                parts.append({**call, "thoughtSignature": f"sig-{number}-{index}"} if index < 2 else call)
    return parts


def _gemini_usage(round_: Spoken, output: int) -> dict[str, Any]:
    thoughts = {"thoughtsTokenCount": 4} if any(kind == "thinking" for kind, _ in round_.parts) else {}
    counts = {"promptTokenCount": round_.input, "candidatesTokenCount": output, **thoughts}
    total = round_.input + output + thoughts.get("thoughtsTokenCount", 0)
    return {**counts, "totalTokenCount": total, "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": output}]}


def _gemini_chunk(round_: Spoken, number: int, parts: list[dict[str, Any]], output: int) -> dict[str, Any]:
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    identity = {"modelVersion": f"m-{number}", "responseId": f"resp-{number}"}
    return {"candidates": [candidate], "usageMetadata": _gemini_usage(round_, output), **identity}


def gemini_json(round_: Spoken, number: int, *, envelope: bool = False) -> bytes:
    if round_.ending == "error":
        return dump({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
    chunk = _gemini_chunk(round_, number, gemini_parts(round_, number), round_.output)
    chunk["candidates"][0]["finishReason"] = round_.finish or "STOP"
    chunk["vendorField"] = number
    whole = dump({"response": chunk, "traceId": f"t-{number}"} if envelope else chunk)
    return whole if round_.ending == "whole" else whole[:-3]


def gemini_documents(round_: Spoken, number: int) -> list[dict[str, Any]]:
    """Text in pieces; all that stands behind the last text is in the last chunk, with the reason."""
    contents: list[list[dict[str, Any]]] = []
    for part in gemini_parts(round_, number):
        if "text" in part:
            contents += [[{**part, "text": piece}] for piece in pieces(part["text"], 6) or [""]]
        elif contents and "functionCall" in contents[-1][-1]:
            contents[-1].append(part)
        else:
            contents.append([part])
    contents = contents or [[{"text": ""}]]
    chunks = [_gemini_chunk(round_, number, parts, 1 + index) for index, parts in enumerate(contents)]
    if round_.ending == "whole":
        last = chunks[-1]
        last["candidates"][0] |= {"finishReason": round_.finish or "STOP", "finishMessage": "done", "avgLogprobs": -0.1}
        last["usageMetadata"] = _gemini_usage(round_, round_.output)
    if round_.ending == "error":
        chunks.append({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
    return chunks


def gemini_stream(round_: Spoken, number: int, *, array: bool = False, envelope: bool = False, end: bytes = b"\r\n") -> bytes:
    documents = gemini_documents(round_, number)
    if envelope:
        documents = [one if "error" in one else {"response": one, "traceId": f"t-{number}"} for one in documents]
    if not array:
        return b"".join(b"data: " + dump(one) + end * 2 for one in documents)
    indented = [json.dumps(one, ensure_ascii=False, indent=2).encode() for one in documents]
    return b"[" + b"\n,\r\n".join(indented) + (b"\n]\n" if round_.ending != "cut" else b"\n")


# --- Driving a merger -------------------------------------------------------------------------------------------------


def whole(raw: bytes) -> Iterator[bytes]:
    yield raw


def bytewise(raw: bytes) -> Iterator[bytes]:
    yield from (raw[place : place + 1] for place in range(len(raw)))


def randomly(seed: int) -> Any:
    source = random.Random(seed)

    def cut(raw: bytes) -> Iterator[bytes]:
        place = 0
        while place < len(raw):
            size = source.choice((0, 1, 2, 3, 7, 40, 300, 3000))
            yield raw[place : place + size]
            place += size

    return cut


WAYS = {"whole": whole, "bytewise": bytewise, "random-1": randomly(1), "random-2": randomly(2)}


def feed_round(merger: Answer, raw: bytes, cut: Any = whole) -> tuple[bytes, Said]:
    merger.begin_round()
    out = b"".join((merger.feed(b""), *(merger.feed(chunk) for chunk in cut(raw))))
    return out, merger.end_round()


def drive(merger: Answer, raws: list[bytes], cut: Any = whole) -> tuple[bytes, list[Said]]:
    """All rounds and the end."""
    out, said = [], []
    for raw in raws:
        bytes_, one = feed_round(merger, raw, cut)
        out.append(bytes_)
        said.append(one)
    out.append(b"".join(merger.finish()))
    return b"".join(out), said


# --- What a client makes of it ----------------------------------------------------------------------------------------


def sse_documents(raw: bytes) -> list[dict[str, Any]]:
    reader = Events()
    return [json.loads(event.data) for event in reader.feed(raw) + reader.close() if event.data]


def array_documents(raw: bytes) -> list[dict[str, Any]]:
    """The array as a client that waits for all of it reads it, and as one that reads item by item."""
    reader = ArrayItems()
    items = [json.loads(event.data) for event in reader.feed(raw) + reader.close() if event.data]
    assert json.loads(raw) == items
    return items


def accumulated(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """A Messages stream as its SDKs put it together."""
    message: dict[str, Any] = {}
    arguments: dict[int, str] = {}
    for one in documents:
        match one["type"]:
            case "message_start":
                message = {**one["message"], "content": []}
            case "content_block_start":
                assert one["index"] == len(message["content"])
                message["content"].append(dict(one["content_block"]))
            case "content_block_delta":
                _grow(message["content"][one["index"]], one["delta"], arguments, one["index"])
            case "message_delta":
                message |= one["delta"]
                message["usage"] = {
                    **message["usage"],
                    **{name: count for name, count in one["usage"].items() if count is not None},
                }
    for index, written in arguments.items():
        message["content"][index]["input"] = json.loads(written or "{}")
    return message


def _grow(block: dict[str, Any], delta: dict[str, Any], arguments: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "input_json_delta":
            arguments[index] = arguments.get(index, "") + delta["partial_json"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        case kind:
            name = kind.removesuffix("_delta")
            block[name] += delta[name]


def gemini_accumulated(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of all chunks; pieces of one text as one, empty ones left out."""
    parts: list[dict[str, Any]] = []
    for document in documents:
        for part in document.get("response", document)["candidates"][0].get("content", {}).get("parts", []):
            joins = parts and part.keys() == parts[-1].keys() and part.keys() <= {"text", "thought"}
            if joins:
                parts[-1] = {**part, "text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    return [part for part in parts if part.get("text") != "" or len(part) > 1]


# --- Random rounds ----------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=30)
_ARGUMENTS = st.sampled_from(["{}", '{"a": 1}', '{"action": "schedule", "items": [{"task": "é\\n"}]}'])
_PARTS = st.one_of(
    st.tuples(st.just("text"), _TEXTS),
    st.tuples(st.just("thinking"), _TEXTS),
    st.tuples(st.just("own"), _ARGUMENTS),
)
_LAST_PARTS = st.one_of(_PARTS, st.tuples(st.just("tool"), _ARGUMENTS))


def random_rounds(*, most: int = 4) -> st.SearchStrategy[list[Spoken]]:
    """One to four rounds; the client's own tools are called in the last one, as in a turn."""

    def round_(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Spoken]:
        return st.builds(
            Spoken,
            st.lists(parts, max_size=5).map(tuple),
            input=st.integers(0, 10**6),
            output=st.integers(0, 10**6),
        )

    return st.tuples(st.lists(round_(_PARTS), max_size=most - 1), round_(_LAST_PARTS)).map(lambda pair: [*pair[0], pair[1]])


def is_known_again(dialect: Dialect, said: list[Said], held: list[dict[str, Any]]) -> bool:
    """Whether an answer, as its client sends it back, is known by what its rounds said. One that says nothing need not be."""
    talk = next(talk for talk in TALKS if talk.dialect is dialect)
    asked = talk.user("q")
    shown = [without_tools(dialect, one.native, OWN) for one in said if one.complete]
    items = [item for one in said for item in (*one.native, talk.follow("go on"))][:-1] if said else []
    entry = hidden_in(talk.call(asked), shown, items, before=["kept"])
    says = any(one.text.strip() or len(one.calls) > len(one.own) for one in said)
    if entry is None or not says:
        return entry is None and not says
    return put_back(talk.call(asked, *held, talk.user("next")), [entry]) == 1
