"""OpenAI Responses, host by host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routecodex.routing.values import Dialect
from tests.routing.dialects.hosts.sample import CUT, Document, Samples, compact, sse

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
SAMPLES = Samples(RESPONSES)
CALL = (("read", {"path": "a.py"}),)
HELLO = "Hello, world."
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 42,
}
COUNTED: dict[str, Any] = {"input": 30, "output": 12}
WRITTEN = '{"path":"a.py"}'


def response(status: str = "in_progress", output: Iterable[Document] = (), **more: Any) -> Document:
    head = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1767225600,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "m-1",
    }
    return {**head, "output": list(output), "usage": USAGE if status in ("completed", "incomplete") else None, **more}


def part(text: str = HELLO, annotations: Iterable[Document] = ()) -> Document:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def said(*parts: Document, id: str = "msg_1", status: str = "completed") -> Document:
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": list(parts)}


def called(
    arguments: str = WRITTEN, id: str = "fc_1", call: str = "call_1", name: str = "read", status: str = "completed", **more: Any
) -> Document:
    return {"id": id, "type": "function_call", "status": status, "arguments": arguments, "call_id": call, "name": name, **more}


def thought(text: str = "I think.", id: str = "rs_1", **more: Any) -> Document:
    return {"id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": text}] if text else [], **more}


def about(kind: str, index: int, item: str, **more: Any) -> Document:
    return {"type": f"response.{kind}", "output_index": index, "item_id": item, **more}


def item_event(kind: str, index: int, item: Document) -> Document:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": item}


def text_events(
    index: int = 0, pieces: Iterable[str] = ("Hello,", " world."), id: str = "msg_1", place: int = 0
) -> list[Document]:
    told = list(pieces)
    whole = "".join(told)
    at = {"content_index": place}
    return [
        item_event("added", index, said(id=id, status="in_progress")),
        about("content_part.added", index, id, **at, part=part("")),
        *(about("output_text.delta", index, id, **at, delta=piece, logprobs=[]) for piece in told),
        about("output_text.done", index, id, **at, text=whole, logprobs=[]),
        about("content_part.done", index, id, **at, part=part(whole)),
        item_event("done", index, said(part(whole), id=id)),
    ]


def call_events(index: int = 0, pieces: Iterable[str] = ('{"path":', '"a.py"}'), **of: Any) -> list[Document]:
    told = list(pieces)
    whole = called("".join(told), **of)
    id = whole["id"]
    return [
        item_event("added", index, {**whole, "arguments": "", "status": "in_progress"}),
        *(about("function_call_arguments.delta", index, id, delta=piece) for piece in told),
        about("function_call_arguments.done", index, id, arguments=whole["arguments"]),
        item_event("done", index, whole),
    ]


def thought_events(index: int = 0, text: str = "I think.", **more: Any) -> list[Document]:
    at = {"summary_index": 0}
    return [
        item_event("added", index, thought("", **more)),
        about("reasoning_summary_part.added", index, "rs_1", **at, part={"type": "summary_text", "text": ""}),
        about("reasoning_summary_text.delta", index, "rs_1", **at, delta=text),
        about("reasoning_summary_text.done", index, "rs_1", **at, text=text),
        about("reasoning_summary_part.done", index, "rs_1", **at, part={"type": "summary_text", "text": text}),
        item_event("done", index, thought(text, **more)),
    ]


BEGIN = [{"type": "response.created", "response": response()}, {"type": "response.in_progress", "response": response()}]


def ended(status: str = "completed", output: Iterable[Document] = (), **more: Any) -> Document:
    return {"type": f"response.{status}", "response": response(status, output, **more)}


def numbered(documents: Iterable[Document]) -> list[Document]:
    return [{"type": one["type"], "sequence_number": place, **one} for place, one in enumerate(documents)]


def stream(host: str, trait: str, documents: Iterable[Document], **expected: Any) -> None:
    SAMPLES.stream(host, trait, sse(numbered(documents), named=True), **{**COUNTED, **expected})


def whole(
    host: str, trait: str, output: Iterable[Document], status: str = "completed", top: Document | None = None, **expected: Any
) -> None:
    SAMPLES.whole(host, trait, response(status, output, **(top or {})), **{**COUNTED, **expected})


NOTHING: dict[str, Any] = {"input": None, "output": None}
TOLD = said(part())
CITED = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5}

# --- OpenAI ---------------------------------------------------------------------------------------------------------------

stream("OpenAI", "text", [*BEGIN, *text_events(), ended(output=[TOLD])], text=HELLO)
stream(
    "OpenAI",
    "obfuscated deltas",
    [
        *BEGIN,
        *({**one, "obfuscation": "xYz"} if one["type"].endswith(".delta") else one for one in text_events()),
        ended(output=[TOLD]),
    ],
    text=HELLO,
)
stream("OpenAI", "a call", [*BEGIN, *call_events(), ended(output=[called()])], calls=CALL, finish="tool_calls")
stream(
    "OpenAI",
    "a summary of reasoning, then text",
    [*BEGIN, *thought_events(), *text_events(1), ended(output=[thought(), TOLD])],
    text=HELLO,
    thinking="I think.",
)
stream(
    "OpenAI",
    "encrypted reasoning without a summary",
    [
        *BEGIN,
        item_event("added", 0, thought("", encrypted_content="gAAAencrypted")),
        item_event("done", 0, thought("", encrypted_content="gAAAencrypted2")),
        *text_events(1),
        ended(output=[TOLD]),
    ],
    text=HELLO,
)
stream(
    "OpenAI",
    "text before two calls",
    [*BEGIN, *text_events(), *call_events(1), *call_events(2, ['{"deep":true}'], id="fc_2", call="call_2", name="list"), ended()],
    text=HELLO,
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "OpenAI",
    "the limit in the middle of a text",
    [
        *BEGIN,
        *text_events()[:4],
        ended(
            "incomplete", [said(part("Hello, world."), status="incomplete")], incomplete_details={"reason": "max_output_tokens"}
        ),
    ],
    text=HELLO,
    finish="length",
)
stream(
    "OpenAI",
    "the limit in the middle of a call",
    [
        *BEGIN,
        *call_events()[:2],
        item_event("done", 0, called('{"path":', status="incomplete")),
        ended("incomplete", [called('{"path":', status="incomplete")], incomplete_details={"reason": "max_output_tokens"}),
    ],
    finish="length",
    half=True,
)
stream(
    "OpenAI",
    "a refusal",
    [
        *BEGIN,
        item_event("added", 0, said(status="in_progress")),
        about("content_part.added", 0, "msg_1", content_index=0, part={"type": "refusal", "refusal": ""}),
        about("refusal.delta", 0, "msg_1", content_index=0, delta="No."),
        about("refusal.done", 0, "msg_1", content_index=0, refusal="No."),
        item_event("done", 0, said({"type": "refusal", "refusal": "No."})),
        ended(output=[said({"type": "refusal", "refusal": "No."})]),
    ],
    text="No.",
    finish="content_filter",
)
stream(
    "OpenAI",
    "annotations between the deltas",
    [
        *BEGIN,
        *text_events()[:4],
        about("output_text.annotation.added", 0, "msg_1", content_index=0, annotation_index=0, annotation=CITED),
        text_events()[4],
        about("content_part.done", 0, "msg_1", content_index=0, part=part(annotations=[CITED])),
        item_event("done", 0, said(part(annotations=[CITED]))),
        ended(output=[said(part(annotations=[CITED]))]),
    ],
    text=HELLO,
    cited=("https://a.example",),
)
SEARCHED = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}
stream(
    "OpenAI",
    "a search that it ran itself",
    [
        *BEGIN,
        item_event("added", 0, {**SEARCHED, "status": "in_progress"}),
        about("web_search_call.searching", 0, "ws_1"),
        about("web_search_call.completed", 0, "ws_1"),
        item_event("done", 0, SEARCHED),
        *text_events(1),
        ended(output=[SEARCHED, TOLD]),
    ],
    text=HELLO,
)
stream(
    "OpenAI",
    "failed",
    [
        *BEGIN,
        {
            "type": "response.failed",
            "response": response("failed", error={"code": "server_error", "message": "The model failed"}),
        },
    ],
    error="The model failed",
    **NOTHING,
)
stream(
    "OpenAI",
    "an error event",
    [*BEGIN, *text_events()[:4], {"type": "error", "code": "rate_limit_exceeded", "message": "Too fast", "param": None}],
    error="Too fast",
    **NOTHING,
)
stream("OpenAI", "a stream that dies", [*BEGIN, *text_events()[:4]], error=CUT, **NOTHING)
stream(
    "OpenAI",
    "filtered",
    [*BEGIN, *text_events()[:4], ended("incomplete", incomplete_details={"reason": "content_filter"})],
    text=HELLO,
    finish="content_filter",
)
stream(
    "OpenAI",
    "a message in two parts",
    [
        *BEGIN,
        item_event("added", 0, said(status="in_progress")),
        *text_events()[1:6],
        *(one | {"content_index": 1} for one in text_events(0, [" Bye."])[1:5]),
        item_event("done", 0, said(part(), part(" Bye."))),
        ended(),
    ],
    text=HELLO + " Bye.",
)
whole("OpenAI", "text", [TOLD], text=HELLO)
whole(
    "OpenAI",
    "reasoning, text and a call",
    [thought(), TOLD, called()],
    text=HELLO,
    thinking="I think.",
    calls=CALL,
    finish="tool_calls",
)
whole(
    "OpenAI",
    "annotations",
    [
        said(
            part(
                annotations=[{"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5}]
            )
        )
    ],
    text=HELLO,
    cited=("https://a.example",),
)
whole(
    "OpenAI",
    "cached and reasoning tokens",
    [TOLD],
    top={"usage": {**USAGE, "input_tokens_details": {"cached_tokens": 10}, "output_tokens_details": {"reasoning_tokens": 5}}},
    text=HELLO,
    cached=10,
    reasoning=5,
)
whole(
    "OpenAI",
    "incomplete",
    [said(part(), status="incomplete")],
    "incomplete",
    {"incomplete_details": {"reason": "max_output_tokens"}},
    text=HELLO,
    finish="length",
)
SAMPLES.whole(
    "OpenAI",
    "failed",
    response("failed", error={"code": "server_error", "message": "The model failed"}),
    error="The model failed",
)

# --- others that speak it ---------------------------------------------------------------------------------------------------

stream(
    "Azure",
    "filter results on the response",
    [*BEGIN, *text_events(), ended(output=[TOLD], content_filters=[{"blocked": False, "source_type": "completion"}])],
    text=HELLO,
)
stream("OpenRouter", "no numbers, and a [DONE]", [*BEGIN, *text_events(), ended(output=[TOLD])], text=HELLO)
SAMPLES.stream(
    "OpenRouter",
    "[DONE] behind the end",
    sse(numbered([*BEGIN, *text_events(), ended(output=[TOLD])]), named=True) + b"data: [DONE]\n\n",
    text=HELLO,
    **COUNTED,
)
SAMPLES.stream(
    "OpenRouter",
    "comments first, events without names",
    b": OPENROUTER PROCESSING\n\n" + sse(numbered([*BEGIN, *text_events(), ended(output=[TOLD])])),
    text=HELLO,
    **COUNTED,
)
stream(
    "xAI",
    "reasoning text beside the summary",
    [
        *BEGIN,
        item_event("added", 0, thought("")),
        about("reasoning_text.delta", 0, "rs_1", content_index=0, delta="I think."),
        about("reasoning_text.done", 0, "rs_1", content_index=0, text="I think."),
        item_event("done", 0, {**thought(""), "content": [{"type": "reasoning_text", "text": "I think."}]}),
        *text_events(1),
        ended(),
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "Groq",
    "a call whose arguments come in one piece",
    [*BEGIN, *call_events(0, [WRITTEN]), ended(output=[called()])],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "vLLM",
    "another content index for every delta of reasoning",
    [
        *BEGIN,
        item_event("added", 0, thought("")),
        about("reasoning_text.delta", 0, "rs_1", content_index=1, delta="I th"),
        about("reasoning_text.delta", 0, "rs_1", content_index=2, delta="ink."),
        item_event("done", 0, {**thought(""), "content": [{"type": "reasoning_text", "text": "I think."}]}),
        *text_events(1),
        ended(),
    ],
    text=HELLO,
    thinking="I think.",
)
stream("vLLM", "items that are never done", [*BEGIN, *text_events()[:4], ended(output=[TOLD])], text=HELLO)
stream(
    "LM Studio",
    "no content parts, only deltas",
    [*BEGIN, text_events()[0], *text_events()[2:4], ended(output=[TOLD])],
    text=HELLO,
)
stream("LM Studio", "nothing but the end", [ended(output=[TOLD, called()])], text=HELLO, calls=CALL, finish="tool_calls")
stream(
    "Ollama",
    "arguments that come only with done",
    [*BEGIN, call_events()[0], *call_events()[3:], ended(output=[called()])],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Bedrock Mantle",
    "content index 1 for the deltas, 0 in the item",
    [*BEGIN, *({**one, "content_index": 1} if "content_index" in one else one for one in text_events()), ended(output=[TOLD])],
    text=HELLO,
)
stream(
    "Bedrock Mantle",
    "a call without a status",
    [*BEGIN, *call_events(), ended(output=[{name: value for name, value in called().items() if name != "status"}])],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "an empty error beside every response",
    [
        {**one, "response": {**one["response"], "error": {"code": "", "message": ""}}} if "response" in one else one
        for one in [*BEGIN, *text_events(), ended(output=[TOLD])]
    ],
    text=HELLO,
    sent=sse(numbered([*BEGIN, *text_events(), ended(output=[TOLD])]), named=True),
)
whole(
    "a gateway",
    "an empty error beside the answer",
    [TOLD],
    top={"error": {"code": "", "message": ""}},
    text=HELLO,
    sent=compact(response("completed", [TOLD])),
)
whole("a gateway", "a call without a name", [TOLD, called(name="")], text=HELLO)
whole("a gateway", "a good code at the top", [TOLD], top={"code": 0, "message": "success"}, text=HELLO)

# --- what stands beside a text ------------------------------------------------------------------------------------------------

RAN = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "container_id": "c", "code": "1"}
LOOKED = {"id": "mcp_1", "type": "mcp_call", "status": "completed", "server_label": "s", "name": "look", "arguments": "{}"}
whole(
    "OpenAI",
    "code and an MCP tool that it ran itself, a source and a file",
    [
        {**RAN, "outputs": [{"type": "logs", "logs": "1"}]},
        {**LOOKED, "output": "x", "error": None, "approval_request_id": None},
        said(
            part(
                annotations=[
                    {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 0},
                    {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5},
                ]
            )
        ),
    ],
    text=HELLO,
    cited=("https://a.example",),
)

# --- what the models of 2026 send ---------------------------------------------------------------------------------------------

PHASED = [said(part("Hello,"), id="msg_1"), said(part(" world."), id="msg_2")]
stream(
    "OpenAI",
    "a comment before the answer, each with its phase",
    [
        *BEGIN,
        item_event("added", 0, {**said(id="msg_1", status="in_progress"), "phase": "commentary"}),
        *text_events(0, ("Hello,",))[1:-1],
        item_event("done", 0, {**PHASED[0], "phase": "commentary"}),
        item_event("added", 1, {**said(id="msg_2", status="in_progress"), "phase": "final_answer"}),
        *text_events(1, (" world.",), id="msg_2")[1:-1],
        item_event("done", 1, {**PHASED[1], "phase": "final_answer"}),
        ended(output=[{**PHASED[0], "phase": "commentary"}, {**PHASED[1], "phase": "final_answer"}]),
    ],
    text=HELLO,
)
stream(
    "OpenAI",
    "queued first",
    [{"type": "response.queued", "response": response("queued")}, *BEGIN, *text_events(), ended(output=[TOLD])],
    text=HELLO,
)
stream(
    "a gateway",
    "an event that nobody knows, about nothing that is said",
    [
        *BEGIN,
        *text_events()[:3],
        {"type": "response.doom_loop_check", "doom_loop_check": {}},
        *text_events()[3:],
        ended(output=[TOLD]),
    ],
    text=HELLO,
)
SHELL = {"id": "sh_1", "type": "shell_call", "call_id": "call_1", "status": "completed", "action": {"commands": ["ls"]}}
stream(
    "OpenAI",
    "a shell's command in pieces",
    [
        *BEGIN,
        item_event("added", 0, {**SHELL, "status": "in_progress", "action": {"commands": []}}),
        {"type": "response.shell_call_command.added", "output_index": 0, "command_index": 0, "command": ""},
        {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "ls"},
        {"type": "response.shell_call_command.done", "output_index": 0, "command_index": 0, "command": "ls"},
        item_event("done", 0, SHELL),
        ended(output=[SHELL]),
    ],
    calls=(("shell", {"commands": ["ls"]}),),
    finish="tool_calls",
)
PATCH = {
    "id": "ap_1",
    "type": "apply_patch_call",
    "call_id": "call_1",
    "status": "completed",
    "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b"},
}
stream(
    "OpenAI",
    "a patch in pieces",
    [
        *BEGIN,
        item_event("added", 0, {**PATCH, "status": "in_progress", "operation": {**PATCH["operation"], "diff": ""}}),  # type: ignore[dict-item]
        about("apply_patch_call_operation_diff.delta", 0, "ap_1", delta="@@\n-a\n+b", obfuscation="x"),
        about("apply_patch_call_operation_diff.done", 0, "ap_1", diff="@@\n-a\n+b"),
        item_event("done", 0, PATCH),
        ended(output=[PATCH]),
    ],
    calls=(("apply_patch", {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b"}),),
    finish="tool_calls",
)
stream(
    "OpenAI",
    "what it wrote to its cache, among the counts",
    [
        *BEGIN,
        *text_events(),
        ended(output=[TOLD], usage={**USAGE, "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5}}),
    ],
    text=HELLO,
    cached=10,
    written=5,
)

# --- how else hosts think, count, call and end ---------------------------------------------------------------------------------


def renamed(documents: Iterable[Document]) -> list[Document]:
    """Each event under an id of its own, as Copilot seals them anew."""
    found = []
    for place, one in enumerate(documents):
        new = {**one, "item_id": f"sealed_{place}"} if "item_id" in one else one
        found.append({**new, "item": {**new["item"], "id": f"sealed_{place}"}} if "item" in new else new)
    return found


stream(
    "Copilot",
    "another id in every event of an item",
    [*BEGIN, *renamed([*text_events(), *call_events(1)]), ended(output=[TOLD, called()])],
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
stream(
    "ChatGPT",
    "an end that names no items",
    [*BEGIN, *text_events(), *call_events(1), ended()],
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
stream(
    "OpenRouter",
    "reasoning in parts that are announced",
    [
        *BEGIN,
        item_event("added", 0, thought("")),
        about("content_part.added", 0, "rs_1", content_index=0, part={"type": "reasoning_text", "text": ""}),
        about("reasoning_text.delta", 0, "rs_1", content_index=0, delta="I think."),
        about("reasoning_text.done", 0, "rs_1", content_index=0, text="I think."),
        about("content_part.done", 0, "rs_1", content_index=0, part={"type": "reasoning_text", "text": "I think."}),
        item_event("done", 0, {**thought(""), "content": [{"type": "reasoning_text", "text": "I think."}], "signature": None}),
        *text_events(1),
        ended(usage={**USAGE, "cost": 0.001, "is_byok": False}),
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "OpenRouter",
    "an error as a response that failed at once",
    [{"type": "response.failed", "response": response("failed", error={"code": "rate_limit_exceeded", "message": "Slow down"})}],
    error="Slow down",
    **NOTHING,
)
stream(
    "vLLM",
    "parts of reasoning in events of its own",
    [
        *BEGIN,
        item_event("added", 0, thought("")),
        about("reasoning_part.added", 0, "rs_1", content_index=0, part={"type": "reasoning_text", "text": ""}),
        about("reasoning_text.delta", 0, "rs_1", content_index=0, delta="I think."),
        about("reasoning_text.done", 0, "rs_1", content_index=0, text="I think."),
        about("reasoning_part.done", 0, "rs_1", content_index=0, part={"type": "reasoning_text", "text": "I think."}),
        item_event("done", 0, {**thought(""), "content": [{"type": "reasoning_text", "text": "I think."}], "status": None}),
        *text_events(1),
        ended(output=[TOLD]),
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "vLLM",
    "every item is number nought",
    [*BEGIN, *thought_events(0), *text_events(0), *call_events(0), ended(output=[thought(), TOLD, called()])],
    text=HELLO,
    thinking="I think.",
    calls=CALL,
    finish="tool_calls",
)
stream(
    "xAI",
    "one id for the message and the answer, events without begin",
    [BEGIN[0], *text_events(0, id="resp_1"), ended(output=[said(part(), id="resp_1")])],
    text=HELLO,
)
stream(
    "LM Studio",
    "a call whose name comes with its end alone",
    [
        *BEGIN,
        item_event(
            "added", 0, {"id": "fc_1", "type": "function_call", "call_id": "call_1", "arguments": "", "status": "in_progress"}
        ),
        *call_events(0)[1:],
        ended(output=[called()]),
    ],
    calls=CALL,
    finish="tool_calls",
)
SAMPLES.stream(
    "llama.cpp",
    "items by their ids alone",
    sse(
        [
            {name: value for name, value in one.items() if name not in ("output_index", "content_index", "sequence_number")}
            for one in [*BEGIN, *text_events(), *call_events(1), ended(output=[TOLD, called()])]
        ],
        named=True,
    ),
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
    **COUNTED,
)
stream("Azure", "no counts at all", [*BEGIN, *text_events(), ended(output=[TOLD], usage=None)], text=HELLO, **NOTHING)
stream(
    "a gateway",
    "incomplete without a reason",
    [*BEGIN, *text_events()[:4], ended("incomplete", [said(part(), status="incomplete")], incomplete_details=None)],
    text=HELLO,
    finish="length",
)
stream(
    "a gateway",
    "a status that is missing at the end",
    [
        *BEGIN,
        *text_events(),
        {"type": "response.completed", "response": {k: v for k, v in response("completed", [TOLD]).items() if k != "status"}},
    ],
    text=HELLO,
)
stream(
    "a gateway",
    "deltas of nothing, and null beside them",
    [
        *BEGIN,
        *text_events()[:2],
        about("output_text.delta", 0, "msg_1", content_index=0, delta="", logprobs=None),
        about("output_text.delta", 0, "msg_1", content_index=0, delta=None, logprobs=None),
        *text_events()[2:],
        ended(output=[TOLD]),
    ],
    text=HELLO,
)
stream(
    "a gateway",
    "arguments as an object, at the end alone",
    [*BEGIN, item_event("added", 0, called("")), item_event("done", 0, {**called(), "arguments": {"path": "a.py"}}), ended()],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "an error beside a code, under its name",
    [*BEGIN, {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "It broke"}}],
    error="It broke",
    **NOTHING,
)
whole(
    "Ollama",
    "a thought whose summary is its text, a text without annotations",
    [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "I think."}],
            "encrypted_content": "I think.",
        },
        said({"type": "output_text", "text": HELLO}),
    ],
    text=HELLO,
    thinking="I think.",
)
whole(
    "a gateway",
    "no reason where it is incomplete",
    [said(part(), status="incomplete")],
    "incomplete",
    text=HELLO,
    finish="length",
)
SAMPLES.whole("OpenAI", "cancelled", response("cancelled"), error="cancelled")
stream(
    "a gateway",
    "a call without a name behind a text",
    [*BEGIN, *text_events(), *call_events(1, name=""), ended(output=[TOLD, called(name="")])],
    text=HELLO,
)
