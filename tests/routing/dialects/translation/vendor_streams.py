"""Streams as providers are documented to write them, each in a way of its own: more than forty; the rig's beside them.

`ends`: how the answer ends for whoever hears it: "well", in an "error" that the provider told, or "cut" (its end never came).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from routecodex.routing.values import Dialect
from tests.rig.reply import Asked, Reply, ToolUse
from tests.rig.spoken import EVENTS
from tests.routing.dialects.answer.streams import WORDS, array_streams, provider_streams

Document = dict[str, Any]
Ends = Literal["well", "error", "cut"]


@dataclass(frozen=True)
class Stream:
    id: str
    spoken: Dialect
    raw: bytes
    ends: Ends = "well"


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


# --- Chat -------------------------------------------------------------------------------------------------------------


def _chunk(delta: Document, finish: str | None = None, **rest: Any) -> Document:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **rest}


def _call(index: int | None, arguments: str, id: str = "", name: str = "", **rest: Any) -> Document:
    head: Document = {"index": index} if index is not None else {}
    head |= {"id": id, "type": "function"} if id else {}
    return {"tool_calls": [{**head, "function": {**({"name": name} if name else {}), "arguments": arguments}, **rest}]}


_USAGE = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42, "prompt_tokens_details": {"cached_tokens": 10}}
_COUNTS: Document = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": _USAGE}


def _chat(chunks: Iterable[Document], *, done: bool = True, before: bytes = b"") -> bytes:
    return before + b"".join(b"data: " + _dump(one) + b"\n\n" for one in chunks) + (b"data: [DONE]\n\n" if done else b"")


def _chat_streams() -> Iterator[tuple[str, bytes, Ends]]:
    say, end = _chunk({"role": "assistant", "content": WORDS}), _chunk({}, "stop")
    interleaved = [
        _chunk(_call(0, "", "call_a", "one")),
        _chunk(_call(1, "", "call_b", "two")),
        *(_chunk(_call(number % 2, piece)) for number, piece in enumerate(('{"p":', '{"q"', f'"{WORDS}"', ":[1,", "}", "2]}"))),
    ]
    called = _chunk({}, "tool_calls")
    yield "interleaved-calls", _chat([say, *interleaved, called, _COUNTS]), "well"
    both = {"tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": "x", "arguments": "{}"}} for n in (0, 1)]}
    yield "both-calls-in-one-chunk", _chat([_chunk(both, "tool_calls")]), "well"
    yield "usage-in-every-chunk", _chat([{**say, "usage": _USAGE}, {**end, "usage": _USAGE}]), "well"
    yield "usage-in-the-last-choice", _chat([say, {**end, "usage": _USAGE}]), "well"
    yield "usage-of-groq", _chat([say, {**end, "x_groq": {"id": "r", "usage": _USAGE}}]), "well"
    yield "usage-behind-the-reason", _chat([say, end, {**_COUNTS, "usage": {**_USAGE, "prompt_cache_hit_tokens": 20}}]), "well"
    yield (
        "azure-filter-first",
        _chat([{**_COUNTS, "usage": None, "prompt_filter_results": [{"prompt_index": 0}]}, say, end]),
        "well",
    )
    plain = [_chunk({"reasoning_content": piece}) for piece in (WORDS, " so ", "be it")]
    yield "deepseek-thinking", _chat([*plain, say, end, _COUNTS]), "well"
    detail = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    details = [
        _chunk({"reasoning": "first ", "reasoning_details": [{**detail, "text": "first "}]}),
        _chunk({"reasoning": WORDS, "reasoning_details": [{**detail, "text": WORDS}]}),
        _chunk({"reasoning_details": [{**detail, "signature": "EuYB=="}]}),
    ]
    yield "openrouter-thinking", _chat([*details, say, end, _COUNTS], before=b": OPENROUTER PROCESSING\n\n" * 3), "well"
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": WORDS}]}]
    yield (
        "mistral-thinking",
        _chat([_chunk({"content": parts}), _chunk({"content": [{"type": "text", "text": "a"}]}), end]),
        "well",
    )
    yield "mistral-whole-call", _chat([_chunk(_call(0, '{"a": 1}', "D681PevKs", "get"), "tool_calls")]), "well"
    signed = {"extra_content": {"google": {"thought_signature": "Eg=="}}}
    google = [_chunk(_call(0, '{"n":1}', "a1", "f", **signed)), _chunk(_call(0, '{"n":2}', "a2", "f")), _chunk({}, "stop")]
    yield "google-calls-share-an-index", _chat(google), "well"
    yield (
        "calls-without-ids",
        _chat([_chunk(_call(None, '{"a":1}', name="f")), _chunk(_call(None, '{"b":2}', name="g")), called]),
        "well",
    )
    yield "call-without-arguments", _chat([_chunk(_call(0, "", "c1", "pwd")), called]), "well"
    old = [_chunk({"function_call": {"name": "old", "arguments": ""}}), _chunk({"function_call": {"arguments": '{"x":"é"}'}})]
    yield "older-function-call", _chat([*old, _chunk({}, "function_call")]), "well"
    free = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": "echo "}}
    more = {"index": 0, "custom": {"input": f'"{WORDS}"\n'}}
    yield "custom-call", _chat([_chunk({"tool_calls": [free]}), _chunk({"tool_calls": [more]}), called]), "well"
    yield "refusal", _chat([_chunk({"refusal": "I cannot "}), _chunk({"refusal": "😀"}), end]), "well"
    yield "length", _chat([say, _chunk({}, "length"), _COUNTS]), "well"
    yield "filtered", _chat([say, _chunk({}, "content_filter")]), "well"
    yield "nothing-said", _chat([_chunk({"role": "assistant", "content": ""}), end]), "well"
    yield "no-done", _chat([say, end, _COUNTS], done=False), "well"
    yield "no-reason", _chat([say, *interleaved]), "well"
    yield "word-of-its-own", _chat([say, _chunk({}, "eos_token")]), "well"
    pictures = {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}
    yield "picture", _chat([say, _chunk(pictures), end]), "well"
    told = {"error": {"message": f"Overloaded {WORDS}", "type": "server_error", "code": 529}}
    yield "error-in-the-middle", _chat([say, told], done=False), "error"
    yield "error-beside-a-choice", _chat([say, {**_chunk({}, "error"), **told}]), "error"
    yield "error-first", _chat([told], done=False), "error"
    yield "cut-in-a-call", _chat([say, *interleaved[:4]], done=False), "cut"


# --- Messages ---------------------------------------------------------------------------------------------------------


def _messages(documents: Iterable[Document]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), _dump(one)) for one in documents)


def _start(**usage: int) -> Document:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return {"type": "message_start", "message": {**head, "usage": {"input_tokens": 20, "output_tokens": 1, **usage}}}


def _block(index: int, block: Document, *deltas: Document, stop: bool = True) -> list[Document]:
    out: list[Document] = [{"type": "content_block_start", "index": index, "content_block": block}]
    out += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return out + ([{"type": "content_block_stop", "index": index}] if stop else [])


def _text(index: int, *pieces: str, **rest: Any) -> list[Document]:
    return _block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces), **rest)


def _use(index: int, id: str, *pieces: str) -> list[Document]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return _block(index, {"type": "tool_use", "id": id, "name": "Bash", "input": {}}, *deltas)


def _thinking(index: int, text: str) -> list[Document]:
    deltas = ({"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": "EuYB+/=="})
    return _block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def _end(word: str, **rest: Any) -> list[Document]:
    usage = {"output_tokens": 33}
    return [
        {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": rest.get("stop")}, "usage": usage},
        {"type": "message_stop"},
    ]


def _messages_streams() -> Iterator[tuple[str, bytes, Ends]]:
    begin, ping = _start(cache_read_input_tokens=100, cache_creation_input_tokens=5), {"type": "ping"}
    uses = [*_use(2, "t1", "", '{"a"', f':"{WORDS}"', "}"), *_use(3, "t2")]
    yield (
        "thinking-between-calls",
        _messages([begin, ping, *_thinking(0, WORDS), *_text(1, "a", "b"), *uses, *_end("tool_use")]),
        "well",
    )
    redacted = _block(0, {"type": "redacted_thinking", "data": "EmwKAhgB"})
    yield "redacted-thinking", _messages([begin, *redacted, *_text(1, WORDS), *_end("end_turn")]), "well"
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    cite = {"type": "citations_delta", "citation": {"type": "web_search_result_location", "url": "https://e"}}
    served = [
        *_block(0, search, {"type": "input_json_delta", "partial_json": '{"q":1}'}),
        *_block(1, found),
        *_block(2, {"type": "text", "text": "", "citations": []}, cite, {"type": "text_delta", "text": WORDS}),
    ]
    yield "server-tools-and-citations", _messages([begin, *served, *_end("end_turn")]), "well"
    given = _block(0, {"type": "tool_use", "id": "t", "name": "Bash", "input": {"whole": [1, WORDS]}})
    yield "arguments-at-the-start", _messages([begin, *given, *_end("tool_use")]), "well"
    yield "text-at-the-start", _messages([begin, *_block(0, {"type": "text", "text": WORDS}), *_end("end_turn")]), "well"
    first, second = _use(0, "t1", '{"a":', "1}"), _use(1, "t2", '{"b":', "2}")
    mixed = [one for pair in zip(first, second, strict=True) for one in pair]
    yield "interleaved-blocks", _messages([begin, *mixed, *_end("tool_use")]), "well"
    yield "stop-sequence", _messages([begin, *_text(0, "a"), *_end("stop_sequence", stop="三")]), "well"
    for word in ("max_tokens", "refusal", "pause_turn", "model_context_window_exceeded", "wibble"):
        yield word, _messages([begin, *_text(0, WORDS), *_end(word)]), "well"
    yield "no-message-stop", _messages([begin, *_text(0, WORDS), *_end("end_turn")[:1]]), "well"
    yield "no-content", _messages([begin, *_end("end_turn")]), "well"
    late = {**_end("end_turn")[0], "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 5}}
    yield (
        "usage-at-the-end",
        _messages([_start(input_tokens=0, output_tokens=0), *_text(0, "x"), late, {"type": "message_stop"}]),
        "well",
    )
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": f"Overloaded {WORDS}"}}
    yield "error-in-a-text", _messages([begin, *_text(0, "so far", stop=False), failed]), "error"
    yield "error-first", _messages([failed]), "error"
    yield "cut-in-a-call", _messages([begin, *_use(0, "t1", '{"a"')[:-1]]), "cut"


# --- Responses --------------------------------------------------------------------------------------------------------


def _responses(documents: Iterable[Document]) -> bytes:
    numbered = ({**one, "sequence_number": number} for number, one in enumerate(documents))
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), _dump(one)) for one in numbered)


_RESPONSE: Document = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": [], "error": None}
_SPENT = {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 9}, "output_tokens": 12, "total_tokens": 42}


def _made(event: str, response: Document) -> Document:
    return {"type": f"response.{event}", "response": {**_RESPONSE, **response}}


def _item(event: str, index: int, item: Document) -> Document:
    return {"type": f"response.output_item.{event}", "output_index": index, "item": item}


def _function(index: int, arguments: str = "", **rest: Any) -> Document:
    return {"id": f"fc_{index}", "type": "function_call", "call_id": f"c{index}", "name": "f", "arguments": arguments, **rest}


def _grown(index: int, delta: str, kind: str = "function_call_arguments", **rest: Any) -> Document:
    return {"type": f"response.{kind}.delta", "output_index": index, "item_id": f"i_{index}", "delta": delta, **rest}


def _message(text: str, kind: str = "output_text") -> Document:
    part = {"type": kind, "text" if kind == "output_text" else "refusal": text}
    return {"id": "i_0", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _responses_streams() -> Iterator[tuple[str, bytes, Ends]]:
    created = _made("created", {})
    done = _made("completed", {"status": "completed", "usage": _SPENT})
    opened = _item("added", 0, {"id": "i_0", "type": "message", "role": "assistant", "content": []})
    said = [opened, *(_grown(0, piece, "output_text", content_index=0) for piece in (WORDS, " and on"))]
    whole = _item("done", 0, _message(f"{WORDS} and on"))
    yield "two-calls-side-by-side", _responses([
        created, _item("added", 0, _function(0)), _item("added", 1, _function(1)),
        _grown(0, '{"a":'), _grown(1, '{"b":'), _grown(0, "1}"), _grown(1, f'"{WORDS}"}}'),
        _item("done", 1, _function(1, f'{{"b":"{WORDS}"}}')), _item("done", 0, _function(0, '{"a":1}')), done,
    ]), "well"  # fmt: skip
    yield "text-without-done", _responses([created, *said, done]), "well"
    yield "nothing-announced", _responses([*said[1:], whole, done]), "well"
    yield "all-at-the-end", _responses([created, {**done, "response": {**done["response"], "output": [_message(WORDS)]}}]), "well"
    yield (
        "annotations",
        _responses([created, *said, {"type": "response.output_text.annotation.added", "output_index": 0}, whole, done]),
        "well",
    )
    sealed = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": WORDS}],
        "encrypted_content": "gAAA",
    }
    thought = [
        _item("added", 0, {**sealed, "summary": [], "encrypted_content": None}),
        _grown(0, WORDS, "reasoning_summary_text", summary_index=0),
        _item("done", 0, sealed),
    ]
    after = [_item("added", 1, _function(1)), _item("done", 1, _function(1, "{}"))]
    yield "sealed-reasoning-and-a-call", _responses([created, *thought, *after, done]), "well"
    raw = [
        _item("added", 0, {"id": "rs_1", "type": "reasoning", "summary": []}),
        _grown(0, WORDS, "reasoning_text", content_index=0),
    ]
    yield "open-reasoning", _responses([created, *raw, *after, done]), "well"
    free = {"id": "ctc", "type": "custom_tool_call", "call_id": "c9", "name": "exec", "input": ""}
    typed = [_grown(0, piece, "custom_tool_call_input") for piece in ("echo ", f'"{WORDS}"')]
    yield (
        "custom-call",
        _responses([created, _item("added", 0, free), *typed, _item("done", 0, {**free, "input": f'echo "{WORDS}"'}), done]),
        "well",
    )
    no = [opened, _grown(0, "I cannot 😀", "refusal", content_index=0), _item("done", 0, _message("I cannot 😀", "refusal"))]
    yield "refusal", _responses([created, *no, done]), "well"
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    yield "server-tool", _responses([created, _item("added", 1, search), _item("done", 1, search), *said, whole, done]), "well"
    drawn = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "completed",
        "result": "iVBORw0KGgo=",
        "output_format": "png",
    }
    yield "picture", _responses([created, _item("added", 0, {**drawn, "result": None}), _item("done", 0, drawn), done]), "well"
    for why in ("max_output_tokens", "content_filter"):
        ended = {"status": "incomplete", "incomplete_details": {"reason": why}, "usage": _SPENT}
        yield why, _responses([created, *said, whole, _made("incomplete", ended)]), "well"
    fault = {"code": "server_error", "message": f"Something failed {WORDS}"}
    yield "failed", _responses([created, *said, _made("failed", {"status": "failed", "error": fault})]), "error"
    yield "error-event", _responses([created, *said, {"type": "error", **fault, "param": None}]), "error"
    yield "cut-in-a-text", _responses([created, *said]), "cut"


# --- Gemini -----------------------------------------------------------------------------------------------------------


def _gemini_chunk(parts: list[Document], finish: str | None = None, **rest: Any) -> Document:
    candidate: Document = {
        "content": {"parts": parts, "role": "model"},
        "index": 0,
        **({"finishReason": finish} if finish else {}),
    }
    return {"candidates": [candidate], "responseId": "r1", "modelVersion": "m", **rest}


def _gemini(chunks: Iterable[Document]) -> bytes:
    return b"".join(b"data: " + _dump(one) + b"\r\n\r\n" for one in chunks)


def _gemini_streams() -> Iterator[tuple[str, bytes, Ends]]:
    say = _gemini_chunk([{"text": WORDS}])
    counts = {"promptTokenCount": 30, "candidatesTokenCount": 9, "thoughtsTokenCount": 3, "totalTokenCount": 42}
    end = _gemini_chunk([{"text": ""}], "STOP", usageMetadata=counts)
    alone: Document = {"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": counts}
    yield "reason-alone", _gemini([say, alone]), "well"
    yield "usage-in-every-chunk", _gemini([{**say, "usageMetadata": {"promptTokenCount": 30}}, end]), "well"
    yield "usage-behind-the-reason", _gemini([say, {**end, "usageMetadata": {}}, {"usageMetadata": counts}]), "well"
    yield (
        "thoughts",
        _gemini([_gemini_chunk([{"text": piece, "thought": True}]) for piece in (WORDS, " so")] + [say, end]),
        "well",
    )
    yield (
        "signed-text",
        _gemini([say, _gemini_chunk([{"text": "", "thoughtSignature": "Eg=="}], "STOP", usageMetadata=counts)]),
        "well",
    )
    calls = [{"functionCall": {"name": "f", "args": {"n": number, "ü": WORDS}}} for number in (1, 2)]
    calls[0]["thoughtSignature"] = "Eg=="
    yield "parallel-calls", _gemini([_gemini_chunk(calls), end]), "well"
    named = [{"functionCall": {"id": f"i{number}", "name": "f"}} for number in (1, 2)]
    yield "calls-with-ids-without-arguments", _gemini([_gemini_chunk(named, "STOP", usageMetadata=counts)]), "well"
    partial = [
        {"functionCall": {"id": "i", "name": "f", "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}], "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": WORDS}], "willContinue": True}},
        {"functionCall": {}},
    ]
    yield "call-in-parts", _gemini([*(_gemini_chunk([part]) for part in partial), end]), "well"
    code = [
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ]
    yield "code-execution", _gemini([_gemini_chunk(code), say, end]), "well"
    yield (
        "picture",
        _gemini([say, _gemini_chunk([{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]), end]),
        "well",
    )
    yield "blocked-prompt", _gemini([{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": counts}]), "well"
    for word in ("MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL", "SOMETHING_NEW"):
        yield word, _gemini([say, _gemini_chunk([], word, usageMetadata=counts)]), "well"
    other = {"content": {"parts": [{"text": "not this"}], "role": "model"}, "index": 1}
    yield "two-candidates", _gemini([{**say, "candidates": [*say["candidates"], other]}, end]), "well"
    yield "code-assist", _gemini([{"response": say, "traceId": "1"}, {"response": end}]), "well"
    failed = {"error": {"code": 503, "message": f"The model is overloaded {WORDS}", "status": "UNAVAILABLE"}}
    yield "error-in-the-middle", _gemini([say, failed]), "error"
    yield "error-first", _gemini([failed]), "error"
    yield "cut-behind-a-text", _gemini([say]), "cut"


# --- the rig's --------------------------------------------------------------------------------------------------------

REPLIES = {
    "words": Reply(text=("Let me ", "look — ünï ", "🎉", " 中", "文"), cached_tokens=5),
    "thinks": Reply(text="so", thinking=f"{WORDS} and so on", output_tokens=40),
    "calls": Reply(
        text="on it",
        calls=(ToolUse("Bash", {"command": 'ls "a b"', "deep": [{"ü": None}, 1.5]}, id="id_1"), ToolUse("pwd", {}, id="id_2")),
    ),
    "only-a-call": Reply(text="", calls=(ToolUse("Bash", {"text": WORDS}, id="id_3"),)),
    "length": Reply(text=WORDS, stop="length"),
    "filtered": Reply(text=WORDS, stop="content_filter"),
}


def rig_streams() -> Iterator[Stream]:
    for spoken in Dialect:
        asked = Asked(spoken, "generate", stream=True, usage_chunk=True)
        forms = {"": asked}
        if spoken is Dialect.GEMINI:
            forms |= {
                "-array": dataclasses.replace(asked, json_array=True),
                "-envelope": dataclasses.replace(asked, envelope=True),
            }
        for form, how in forms.items():
            for name, reply in REPLIES.items():
                yield Stream(f"rig-{spoken}{form}-{name}", spoken, b"".join(EVENTS[spoken](reply, how)))


def hand_made() -> Iterator[Stream]:
    for spoken, streams in (
        (Dialect.CHAT, _chat_streams()),
        (Dialect.MESSAGES, _messages_streams()),
        (Dialect.RESPONSES, _responses_streams()),
        (Dialect.GEMINI, _gemini_streams()),
    ):
        for name, raw, ends in streams:
            yield Stream(f"{spoken}-{name}", spoken, raw, ends)


def every_stream() -> list[Stream]:
    written = [Stream(id, spoken, raw) for id, spoken, raw, _ in provider_streams()]
    arrays = [Stream(f"array-{id}", Dialect.GEMINI, raw, "error" if "error" in id else "well") for id, raw, _ in array_streams()]
    return [*hand_made(), *rig_streams(), *written, *arrays]
