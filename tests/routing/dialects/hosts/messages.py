"""Anthropic Messages, host by host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routecodex.routing.values import Dialect
from tests.routing.dialects.hosts.sample import CUT, Document, Samples, compact, sse

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
SAMPLES = Samples(MESSAGES)
CALL = (("read", {"path": "a.py"}),)
HELLO = "Hello, world."
COUNTED: dict[str, Any] = {"input": 30, "output": 12}
EMPTY = {"error": {"message": "", "code": None}}


def start(usage: Document | None = None, **more: Any) -> Document:
    counts = {"input_tokens": 30, "output_tokens": 1} if usage is None else usage
    head = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }
    return {"type": "message_start", "message": {**head, "usage": counts, **more}}


def opened(index: int, **block: Any) -> Document:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **grown: Any) -> Document:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **grown}}


def closed(index: int) -> Document:
    return {"type": "content_block_stop", "index": index}


def text(index: int = 0, *pieces: str) -> list[Document]:
    return [
        opened(index, type="text", text=""),
        *(delta(index, "text_delta", text=piece) for piece in pieces or ("Hello,", " world.")),
        closed(index),
    ]


def use(
    index: int = 0, pieces: Iterable[str] = ("", '{"path":', ' "a.py"}'), id: str = "toolu_1", name: str = "read", **more: Any
) -> list[Document]:
    return [
        opened(index, type="tool_use", id=id, name=name, input={}, **more),
        *(delta(index, "input_json_delta", partial_json=piece) for piece in pieces),
        closed(index),
    ]


def thought(index: int = 0, words: str = "I think.", signature: str = "EqQBsigned") -> list[Document]:
    return [
        opened(index, type="thinking", thinking="", signature=""),
        delta(index, "thinking_delta", thinking=words),
        delta(index, "signature_delta", signature=signature),
        closed(index),
    ]


def end(word: str | None = "end_turn", usage: Document | None = None, **more: Any) -> list[Document]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": word, "stop_sequence": None, **more},
            "usage": {"output_tokens": 12} if usage is None else usage,
        },
        {"type": "message_stop"},
    ]


PING = {"type": "ping"}


def stream(host: str, trait: str, documents: Iterable[object], **expected: Any) -> None:
    SAMPLES.stream(host, trait, sse(documents, named=True), **{**COUNTED, **expected})


def whole(
    host: str,
    trait: str,
    content: list[Document],
    word: str | None = "end_turn",
    usage: Document | None = None,
    top: Document | None = None,
    **expected: Any,
) -> None:
    document = {
        **start()["message"],
        "content": content,
        "stop_reason": word,
        "usage": usage or {"input_tokens": 30, "output_tokens": 12},
        **(top or {}),
    }
    SAMPLES.whole(host, trait, document, **{**COUNTED, **expected})


# --- Anthropic --------------------------------------------------------------------------------------------------------------

stream("Anthropic", "a ping behind the first block's start", [start(), text()[0], PING, *text()[1:], *end()], text=HELLO)
SAMPLES.stream(
    "Anthropic",
    "padding behind the JSON",
    b"".join(
        b"event: " + one["type"].encode() + b"\ndata: " + compact(one) + b" " * (place % 7) + b"\n\n"
        for place, one in enumerate([start(), *text(), *end()])
    ),
    text=HELLO,
    **COUNTED,
)
stream("Anthropic", "a call whose first piece is empty", [start(), *use(), *end("tool_use")], calls=CALL, finish="tool_calls")
stream(
    "Anthropic",
    "a call without parameters has one empty piece",
    [start(), *use(0, [""], name="now"), *end("tool_use")],
    calls=(("now", {}),),
    finish="tool_calls",
)
stream(
    "Anthropic",
    "text and two calls",
    [start(), *text(), *use(1), *use(2, ['{"deep":true}'], "toolu_2", "list"), *end("tool_use")],
    text=HELLO,
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream("Anthropic", "signed thinking, then text", [start(), *thought(), *text(1), *end()], text=HELLO, thinking="I think.")
stream(
    "Anthropic",
    "redacted thinking",
    [start(), opened(0, type="redacted_thinking", data="EvAFredacted"), closed(0), *text(1), *end()],
    text=HELLO,
)
stream(
    "Anthropic",
    "thinking that is left out has only its signature",
    [
        start(),
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="EqQBsigned"),
        closed(0),
        *text(1),
        *end(),
    ],
    text=HELLO,
)
stream(
    "Anthropic",
    "cache counts at the start, all counts at the end",
    [
        start({"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 5, "output_tokens": 1}),
        *text(),
        *end(usage={"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 5, "output_tokens": 12}),
    ],
    text=HELLO,
    cached=20,
    written=5,
)
stream(
    "Anthropic",
    "citations inside a text",
    [
        start(),
        opened(0, type="text", text="", citations=[]),
        delta(0, "text_delta", text=HELLO),
        delta(
            0,
            "citations_delta",
            citation={
                "type": "char_location",
                "cited_text": "Hello",
                "document_index": 0,
                "start_char_index": 0,
                "end_char_index": 5,
            },
        ),
        closed(0),
        *end(),
    ],
    text=HELLO,
)
SEARCH = [
    opened(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    delta(0, "input_json_delta", partial_json='{"query": "x"}'),
    closed(0),
    opened(
        1,
        type="web_search_tool_result",
        tool_use_id="srvtoolu_1",
        content=[{"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "Eo8C"}],
    ),
    closed(1),
]
stream(
    "Anthropic",
    "a search that it ran itself is no call of the client's",
    [start(), *SEARCH, *text(2), *end(usage={"output_tokens": 12, "server_tool_use": {"web_search_requests": 1}})],
    text=HELLO,
)
stream("Anthropic", "a paused turn behind a tool of its own", [start(), *SEARCH[:3], *end("pause_turn")])
stream(
    "Anthropic",
    "a fetch that its own code asked for",
    [
        start(),
        opened(0, type="server_tool_use", id="srvtoolu_1", name="code_execution", input={}),
        delta(0, "input_json_delta", partial_json='{"code":"x"}'),
        closed(0),
        opened(
            1,
            type="server_tool_use",
            id="srvtoolu_2",
            name="web_fetch",
            input={"url": "https://a.example"},
            caller={"type": "code_execution_20260120", "tool_id": "srvtoolu_1"},
        ),
        closed(1),
        opened(
            2,
            type="code_execution_tool_result",
            tool_use_id="srvtoolu_1",
            content={"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 0, "content": []},
        ),
        closed(2),
        *text(3),
        *end(),
    ],
    text=HELLO,
)
stream(
    "Anthropic",
    "a call by a direct caller",
    [start(), *use(caller={"type": "direct"}), *end("tool_use")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Anthropic",
    "a compaction block",
    [
        start(),
        opened(0, type="compaction", content=""),
        delta(0, "compaction_delta", content="Summary."),
        closed(0),
        *text(1),
        *end("compaction"),
    ],
    text=HELLO,
)
stream("Anthropic", "a refusal", [start(), *text(0, "No."), *end("refusal")], text="No.", finish="content_filter")
stream("Anthropic", "the window is full", [start(), *text(), *end("model_context_window_exceeded")], text=HELLO, finish="length")
stream("Anthropic", "a stop sequence", [start(), *text(), *end("stop_sequence", stop_sequence="###")], text=HELLO)
stream(
    "Anthropic",
    "the limit in the middle of a call",
    [start(), *use(0, ["", '{"path": "a.']), *end("max_tokens")],
    finish="length",
    half=True,
)
stream("Anthropic", "the limit behind a whole call", [start(), *use(), *end("max_tokens")], calls=CALL, finish="length")
stream(
    "Anthropic",
    "overloaded in the middle",
    [start(), *text()[:2], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
    text="Hello,",
    error="Overloaded",
    input=None,
    output=None,
)
stream("Anthropic", "a stream that dies", [start(), *text()[:2]], error=CUT, input=None, output=None)
stream(
    "Anthropic",
    "an end without a reason before it",
    [start(), *text(), {"type": "message_stop"}],
    text=HELLO,
    input=None,
    output=None,
)
whole("Anthropic", "text", [{"type": "text", "text": HELLO}], text=HELLO)
whole(
    "Anthropic",
    "thinking, text and a call",
    [
        {"type": "thinking", "thinking": "I think.", "signature": "EqQBsigned"},
        {"type": "text", "text": HELLO},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},
    ],
    "tool_use",
    text=HELLO,
    thinking="I think.",
    calls=CALL,
    finish="tool_calls",
)
whole(
    "Anthropic",
    "a tool that an MCP server ran",
    [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "x", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [{"type": "text", "text": "ok"}]},
        {"type": "text", "text": HELLO},
    ],
    text=HELLO,
)
whole("Anthropic", "an empty answer", [], output=0, usage={"input_tokens": 30, "output_tokens": 0})
SAMPLES.whole(
    "Anthropic",
    "an error with the status 200",
    {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}, "request_id": "req_1"},
    error="Internal server error",
)

# --- others that speak it ---------------------------------------------------------------------------------------------------

stream(
    "Bedrock",
    "invocation metrics on the last event",
    [
        start(),
        *text(),
        end()[0],
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 30, "outputTokenCount": 12}},
    ],
    text=HELLO,
)
stream("Vertex", "a ping before the first block", [start(), PING, *text(), *end()], text=HELLO)
stream(
    "Z.ai",
    "no counts at the start, all of them at the end",
    [
        start({"input_tokens": 0, "output_tokens": 0}),
        *text(),
        *end(usage={"input_tokens": 20, "cache_read_input_tokens": 10, "output_tokens": 12}),
    ],
    text=HELLO,
    cached=10,
)
stream(
    "Z.ai",
    "a call with the plain reason",
    [start(), *use(0, ['{"path":"a.py"}']), *end("end_turn")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Z.ai",
    "an empty error beside the events",
    [{**one, **EMPTY} for one in [start(), *text(), *end()]],
    text=HELLO,
    sent=sse([start(), *text(), *end()], named=True),
)
whole(
    "Z.ai",
    "an empty error beside the answer",
    [{"type": "text", "text": HELLO}],
    top=EMPTY,
    text=HELLO,
    sent=compact(
        {
            **start()["message"],
            "content": [{"type": "text", "text": HELLO}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 30, "output_tokens": 12},
        }
    ),
)
stream(
    "Moonshot",
    "a call whose input stands in its start",
    [start(), opened(0, type="tool_use", id="toolu_1", name="read", input={"path": "a.py"}), closed(0), *end("tool_use")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "DeepSeek",
    "thinking without a signature",
    [
        start(),
        opened(0, type="thinking", thinking=""),
        delta(0, "thinking_delta", thinking="I think."),
        closed(0),
        *text(1),
        *end(),
    ],
    text=HELLO,
    thinking="I think.",
)
stream("MiniMax", "a text whose block never stops", [start(), *text()[:-1], *end()], text=HELLO)
stream(
    "MiniMax",
    "text that stands in the block's start",
    [start(), opened(0, type="text", text="Hello,"), delta(0, "text_delta", text=" world."), closed(0), *end()],
    text=HELLO,
)
SAMPLES.stream("LM Studio", "events without names", sse([start(), *text(), *end()]), text=HELLO, **COUNTED)
stream("a gateway", "a stream that stops behind its reason", [start(), *text(), end()[0]], text=HELLO)
stream("a gateway", "two message_delta", [start(), *text(), end(usage={"output_tokens": 0})[0], *end()], text=HELLO)
stream("a gateway", "[DONE] behind the end", [start(), *text(), *end(), b"data: [DONE]\n\n"], text=HELLO)
stream(
    "a gateway",
    "interleaved calls",
    [
        start(),
        opened(0, type="tool_use", id="toolu_1", name="read", input={}),
        opened(1, type="tool_use", id="toolu_2", name="list", input={}),
        delta(0, "input_json_delta", partial_json='{"path":"a.py"}'),
        delta(1, "input_json_delta", partial_json='{"deep":true}'),
        closed(0),
        closed(1),
        *end("tool_use"),
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "a gateway",
    "an unknown event between two blocks",
    [start(), *text(), {"type": "x_gateway_note", "note": "hi"}, *end()],
    text=HELLO,
)

# --- where a text has it from, and what its own tools did ---------------------------------------------------------------------

LOCATION = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "A",
    "cited_text": "x",
    "encrypted_index": "Eo8B",
}
stream(
    "Anthropic",
    "a source before the text that rests on it",
    [
        start(),
        *SEARCH,
        opened(2, type="text", text="", citations=[]),
        delta(2, "citations_delta", citation=LOCATION),
        delta(2, "text_delta", text=HELLO),
        closed(2),
        *end(),
    ],
    text=HELLO,
    cited=("https://a.example",),
)
whole(
    "Anthropic",
    "a cited text between two others",
    [
        {"type": "text", "text": "Hello"},
        {"type": "text", "text": ", ", "citations": [LOCATION]},
        {"type": "text", "text": "world."},
    ],
    text=HELLO,
    cited=("https://a.example",),
)
whole(
    "Anthropic",
    "an MCP tool and its result",
    [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "s", "input": {"a": 1}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [{"type": "text", "text": "x"}]},
        {"type": "text", "text": HELLO},
    ],
    text=HELLO,
)

# --- what the models of 2026 send ---------------------------------------------------------------------------------------------

stream(
    "Anthropic",
    "a compaction that failed",
    [
        start(),
        opened(0, type="compaction", content=None),
        delta(0, "compaction_delta", content=None),
        closed(0),
        *text(1),
        *end(),
    ],
    text=HELLO,
)
stream(
    "Anthropic",
    "a compaction with a seal",
    [
        start(),
        opened(0, type="compaction", content=None, encrypted_content=None),
        delta(0, "compaction_delta", content="Summary.", encrypted_content="EqQB"),
        closed(0),
        *text(1),
        *end(),
    ],
    text=HELLO,
)
stream(
    "Anthropic",
    "edits of the context, and counts of each iteration, beside the reason",
    [
        start(),
        *text(),
        {
            **end(usage={"output_tokens": 12, "iterations": [{"type": "message", "input_tokens": 30, "output_tokens": 12}]})[0],
            "context_management": {"applied_edits": [{"type": "clear_thinking_20251015", "cleared_thinking_turns": 2}]},
        },
        end()[1],
    ],
    text=HELLO,
)
stream(
    "Anthropic",
    "an adviser's word",
    [
        start(),
        opened(0, type="server_tool_use", id="srvtoolu_1", name="advisor", input={}),
        delta(0, "input_json_delta", partial_json="{}"),
        closed(0),
        opened(1, type="advisor_tool_result", tool_use_id="srvtoolu_1", content={"type": "advisor_result", "text": "Go on."}),
        closed(1),
        *text(2),
        *end(),
    ],
    text=HELLO,
)
SAMPLES.stream(
    "a gateway",
    "types only in the names of the events",
    b"".join(
        b"event: "
        + one["type"].encode()
        + b"\ndata: "
        + compact({name: value for name, value in one.items() if name != "type"})
        + b"\n\n"
        for one in [start(), *text(), *end()]
    ),
    text=HELLO,
    **COUNTED,
)
stream("a gateway", "a reason in a second message_delta", [start(), *text(), {**end(None)[0]}, *end()], text=HELLO)

# --- how else hosts think, count, call and end ---------------------------------------------------------------------------------

stream(
    "Z.ai",
    "an error whose kind only the event's name tells",
    [start(), *text()[:2], b'event: error\ndata: {"error":{"code":"1302","message":"Too many at once"},"request_id":"r"}\n\n'],
    text="Hello,",
    error="Too many at once",
    input=None,
    output=None,
)
SAMPLES.whole(
    "Z.ai",
    "an error in its own form, with the status 200",
    {"code": 500, "msg": "404 NOT_FOUND", "success": False},
    error="404 NOT_FOUND",
)
stream(
    "OpenRouter",
    "comments, and a [DONE] with a name",
    [
        b": OPENROUTER PROCESSING\n\n",
        start(provider="Anthropic"),
        *text(),
        b": OPENROUTER PROCESSING\n\n",
        *end(usage={"output_tokens": 12, "cost": 0.001, "is_byok": False}),
        b"event: data\ndata: [DONE]\n\n",
    ],
    text=HELLO,
)
stream(
    "Vertex",
    "an event of its own before the answer",
    [b'event: vertex_event\ndata: {"type":"vertex_event","usage":{"traffic_type":"ON_DEMAND"}}\n\n', start(), *text(), *end()],
    text=HELLO,
)
stream(
    "Bedrock",
    "a guardrail beside the reason",
    [
        start(),
        *text(),
        {**end()[0], "amazon-bedrock-guardrailAction": "NONE"},
        {**end()[1], "amazon-bedrock-guardrailAction": "NONE"},
    ],
    text=HELLO,
)
stream(
    "Copilot",
    "annotations and counts of its own",
    [
        start(),
        *text(),
        {
            **end(
                usage={"input_tokens": 10, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0, "output_tokens": 12}
            )[0],
            "copilot_annotations": {"IPCodeCitations": None},
            "copilot_usage": {"total_nano_aiu": 1},
        },
        {**end()[1], "amazon-bedrock-invocationMetrics": {"inputTokenCount": 30}},
    ],
    text=HELLO,
    cached=20,
)
stream(
    "llama.cpp",
    "a thought with an empty signature",
    [
        start({"input_tokens": 0, "output_tokens": 0}),
        *thought(signature=""),
        *text(1),
        *end(usage={"input_tokens": 30, "output_tokens": 12}),
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "Ollama",
    "a whole call in one piece behind a thought without a signature",
    [
        start(),
        opened(0, type="thinking", thinking=""),
        delta(0, "thinking_delta", thinking="I look."),
        closed(0),
        *use(1, ['{"path":"a.py"}']),
        *end("tool_use", usage={"input_tokens": 30, "output_tokens": 12}),
    ],
    thinking="I look.",
    calls=CALL,
    finish="tool_calls",
)
stream(
    "vLLM",
    "a [DONE] behind the end, and null where nothing is said",
    [
        start(stop_reason=None, usage={"input_tokens": 30, "output_tokens": 0, "cache_creation_input_tokens": None}),
        *({**one, "message": None, "usage": None} for one in text()),
        *end(usage={"input_tokens": 30, "output_tokens": 12, "cache_read_input_tokens": None}),
        b"data: [DONE]\n\n",
    ],
    text=HELLO,
)
stream(
    "LM Studio",
    "a text that begins without a word for its text",
    [start(), opened(0, type="text"), delta(0, "text_delta", text=HELLO), closed(0), *end()],
    text=HELLO,
)
stream(
    "a gateway",
    "OpenAI's word for a plain end",
    [start(), *text(), *end("stop")],
    text=HELLO,
)
stream(
    "a gateway",
    "OpenAI's word for calls",
    [start(), *use(), *end("tool_calls")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "OpenAI's word for the limit",
    [start(), *text(), *end("length")],
    text=HELLO,
    finish="length",
)
stream(
    "a gateway",
    "a call without an id",
    [
        start(),
        opened(0, type="tool_use", name="read", input={}),
        delta(0, "input_json_delta", partial_json='{"path":"a.py"}'),
        closed(0),
        *end("tool_use"),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "a call whose input is null where it begins",
    [start(), opened(0, type="tool_use", id="toolu_1", name="now", input=None), closed(0), *end("tool_use")],
    calls=(("now", {}),),
    finish="tool_calls",
)
stream(
    "a gateway",
    "input in the start, and the same in pieces behind it",
    [
        start(),
        opened(0, type="tool_use", id="toolu_1", name="read", input={"path": "a.py"}),
        delta(0, "input_json_delta", partial_json='{"path":"a.py"}'),
        closed(0),
        *end("tool_use"),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "a call that never stops",
    [start(), *use()[:-1], *end("tool_use")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "indexes that begin at one and leave a gap",
    [start(), *text(1), *use(5), *end("tool_use")],
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "one index for all blocks",
    [start(), *text(0), *use(0), *end("tool_use")],
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "a reason that is the word null, and then none",
    [start(), *text(), end("null")[0]],
    error=CUT,
    input=None,
    output=None,
)
stream(
    "a gateway",
    "an error in the place of the start",
    [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
    error="Overloaded",
    input=None,
    output=None,
)
whole(
    "a gateway",
    "input written as a text",
    [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": '{"path":"a.py"}'}],
    "tool_use",
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "input that is an empty text where it begins",
    [
        start(),
        opened(0, type="tool_use", id="toolu_1", name="read", input=""),
        delta(0, "input_json_delta", partial_json='{"path":"a.py"}'),
        closed(0),
        *end("tool_use"),
    ],
    calls=CALL,
    finish="tool_calls",
)
whole(
    "a gateway",
    "OpenAI's word for the limit",
    [{"type": "text", "text": HELLO}],
    "length",
    text=HELLO,
    finish="length",
)
whole(
    "DeepSeek",
    "thinking without a signature, a call whose caller is null",
    [
        {"type": "thinking", "thinking": "I look."},
        {"type": "tool_use", "id": "call_00", "name": "read", "input": {"path": "a.py"}, "caller": None},
    ],
    "tool_use",
    thinking="I look.",
    calls=CALL,
    finish="tool_calls",
)
whole(
    "MiniMax",
    "base_resp beside the answer",
    [{"type": "text", "text": HELLO}],
    top={"base_resp": {"status_code": 0, "status_msg": ""}},
    text=HELLO,
)
whole(
    "Anthropic",
    "a refusal with its details",
    [],
    "refusal",
    {"input_tokens": 30, "output_tokens": 12},
    {"stop_details": {"type": "refusal", "category": "cyber"}},
    finish="content_filter",
    words={CHAT: "content_filter"},
)
