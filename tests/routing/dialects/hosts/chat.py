"""OpenAI Chat Completions, host by host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routecodex.routing.values import Dialect
from tests.routing.dialects.hosts.sample import CUT, Document, Samples, compact, spaced, sse

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
SAMPLES = Samples(CHAT)
DONE = b"data: [DONE]\n\n"
CALL = (("read", {"path": "a.py"}),)
HELLO = "Hello, world."
EMPTY = {"error": {"message": "", "code": None}}
FINE = {"error": {"code": 0, "message": "success"}}
COUNTS = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
COUNTED: dict[str, Any] = {"input": 30, "output": 12}


def chunk(delta: Document | None, reason: str | None = None, choice: Document | None = None, **top: Any) -> Document:
    """One chunk; no choice where there is no delta."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason, **(choice or {})}]
    return {
        "id": "chatcmpl-7",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "m-1",
        "choices": choices,
        **top,
    }


def entry(written: object, id: str | None = None, name: str | None = None, index: int | None = 0, **more: Any) -> Document:
    function: Document = {"arguments": written}
    if name is not None:
        function = {"name": name, **function}
    numbered = {} if index is None else {"index": index}
    return {
        **numbered,
        **({"id": id} if id is not None else {}),
        **({"type": "function"} if id else {}),
        "function": function,
        **more,
    }


def calls(*entries: Document) -> Document:
    return {"tool_calls": list(entries)}


ROLE = chunk({"role": "assistant", "content": ""})
TEXT = [ROLE, chunk({"content": "Hello,"}), chunk({"content": " world."})]
STOP = chunk({}, "stop")
USED = chunk(None, usage=COUNTS)
USE = [ROLE, chunk(calls(entry("", "call_1", "read"))), chunk(calls(entry('{"path":'))), chunk(calls(entry('"a.py"}')))]
USE_END = chunk({}, "tool_calls")
AT_ONCE = chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "call_1", "read"))})


def stream(host: str, trait: str, chunks: Iterable[Document], done: bytes = DONE, **expected: Any) -> None:
    SAMPLES.stream(host, trait, sse(chunks) + done, **expected)


def message(
    content: str | None = HELLO,
    reason: str | None = "stop",
    choice: Document | None = None,
    top: Document | None = None,
    **more: Any,
) -> Document:
    whole = {"index": 0, "message": {"role": "assistant", "content": content, **more}, "finish_reason": reason, **(choice or {})}
    return {
        "id": "chatcmpl-7",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "m-1",
        "choices": [whole],
        "usage": COUNTS,
        **(top or {}),
    }


def whole(host: str, trait: str, document: Document, **expected: Any) -> None:
    SAMPLES.whole(host, trait, document, **{**COUNTED, **expected})


def used(id: str = "call_1", arguments: object = '{"path":"a.py"}', name: str = "read", **more: Any) -> Document:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


# --- OpenAI ---------------------------------------------------------------------------------------------------------------

stream("OpenAI", "text, then a usage chunk without choices", [*TEXT, STOP, USED], text=HELLO, **COUNTED)
stream("OpenAI", "obfuscation beside every delta", [{**one, "obfuscation": "xYz"} for one in [*TEXT, STOP]], text=HELLO)
stream(
    "OpenAI",
    "usage null in every chunk but the last",
    [{**one, "usage": None} for one in [*TEXT, STOP]] + [USED],
    text=HELLO,
    **COUNTED,
)
stream("OpenAI", "a call in pieces", [*USE, USE_END], calls=CALL, finish="tool_calls")
stream("OpenAI", "text before a call", [*TEXT, *USE[1:], USE_END], text=HELLO, calls=CALL, finish="tool_calls")
stream(
    "OpenAI",
    "two calls side by side",
    [
        ROLE,
        chunk(calls(entry("", "call_1", "read", 0))),
        chunk(calls(entry('{"path":"a.py"}', index=0))),
        chunk(calls(entry("", "call_2", "list", 1))),
        chunk(calls(entry('{"deep":true}', index=1))),
        USE_END,
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "OpenAI",
    "a refusal",
    [ROLE, chunk({"refusal": "I can"}), chunk({"refusal": "not."}), STOP],
    text="I cannot.",
    finish="content_filter",
)
stream(
    "OpenAI",
    "a call without parameters",
    [ROLE, chunk(calls(entry("", "call_1", "now"))), chunk(calls(entry("{}"))), USE_END],
    calls=(("now", {}),),
    finish="tool_calls",
)
stream("OpenAI", "the limit in the middle of a text", [*TEXT, chunk({}, "length")], text=HELLO, finish="length")
stream(
    "OpenAI",
    "log probabilities beside the text",
    [
        ROLE,
        chunk(
            {"content": HELLO},
            choice={"logprobs": {"content": [{"token": "Hello", "logprob": -0.1, "bytes": [72], "top_logprobs": []}]}},
        ),
        STOP,
    ],
    text=HELLO,
)
stream(
    "OpenAI",
    "a second choice",
    [*TEXT, chunk({"content": "Other"}, choice={"index": 1}), STOP, chunk({}, "stop", choice={"index": 1})],
    text=HELLO,
)
stream(
    "OpenAI",
    "the old function_call",
    [
        ROLE,
        chunk({"function_call": {"name": "read", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"path":"a.py"}'}}),
        chunk({}, "function_call"),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream("OpenAI", "a stream that dies in a text", TEXT, b"", error=CUT)
stream("OpenAI", "a stream that dies in a call", USE[:3], b"", error=CUT)
stream(
    "OpenAI",
    "an error event in the middle",
    [*TEXT, {"error": {"message": "The server had an error", "type": "server_error", "code": None, "param": None}}],
    text=HELLO,
    error="The server had an error",
)
whole("OpenAI", "text with annotations and a null refusal", message(refusal=None, annotations=[]), text=HELLO)
whole("OpenAI", "a call and null content", message(None, "tool_calls", tool_calls=[used()]), calls=CALL, finish="tool_calls")
whole(
    "OpenAI",
    "cached and reasoning tokens",
    message(
        top={
            "usage": {
                **COUNTS,
                "prompt_tokens_details": {"cached_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 5},
            }
        }
    ),
    text=HELLO,
    cached=10,
    reasoning=5,
)
whole(
    "OpenAI",
    "web search annotations",
    message(
        annotations=[
            {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5}}
        ]
    ),
    text=HELLO,
    cited=("https://a.example",),
)
whole("OpenAI", "a filtered answer with a refusal", message(None, "stop", refusal="No."), text="No.", finish="content_filter")

# --- Azure ----------------------------------------------------------------------------------------------------------------

FILTERS = {"hate": {"filtered": False, "severity": "safe"}}
PROMPT = chunk(
    None, id="", model="", created=0, object="", prompt_filter_results=[{"prompt_index": 0, "content_filter_results": FILTERS}]
)
stream("Azure", "filter results of the prompt come first, with an empty id", [PROMPT, *TEXT, STOP], text=HELLO)
stream(
    "Azure",
    "filter results beside each delta",
    [
        ROLE,
        chunk({"content": HELLO}, choice={"content_filter_results": FILTERS}),
        chunk({}, "stop", choice={"content_filter_results": {}}),
    ],
    text=HELLO,
)
stream(
    "Azure",
    "asynchronous filter results without a delta",
    [
        *TEXT,
        STOP,
        {
            **chunk(None),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": None,
                    "content_filter_results": FILTERS,
                    "content_filter_offsets": {"check_offset": 1},
                }
            ],
        },
    ],
    text=HELLO,
)
stream(
    "Azure",
    "the filter cuts a text",
    [*TEXT, chunk({}, "content_filter", choice={"content_filter_results": {"hate": {"filtered": True, "severity": "high"}}})],
    text=HELLO,
    finish="content_filter",
)
whole(
    "Azure",
    "a filtered answer without a message",
    {
        **message(),
        "choices": [{"index": 0, "finish_reason": "content_filter", "content_filter_results": {"hate": {"filtered": True}}}],
    },
    finish="content_filter",
)

# --- OpenRouter -----------------------------------------------------------------------------------------------------------

PROCESSING = b": OPENROUTER PROCESSING\n\n"
SAMPLES.stream(
    "OpenRouter", "comments before the first chunk", PROCESSING * 3 + sse([*TEXT, STOP, USED]) + DONE, text=HELLO, **COUNTED
)
stream(
    "OpenRouter",
    "reasoning and its details say the same",
    [
        chunk(
            {
                "role": "assistant",
                "content": "",
                "reasoning": "I th",
                "reasoning_details": [{"type": "reasoning.text", "text": "I th", "format": "unknown", "index": 0}],
            }
        ),
        chunk(
            {
                "content": "",
                "reasoning": "ink.",
                "reasoning_details": [{"type": "reasoning.text", "text": "ink.", "format": "unknown", "index": 0}],
            }
        ),
        *TEXT[1:],
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "OpenRouter",
    "encrypted reasoning behind the text",
    [
        *TEXT,
        chunk(
            {
                "content": "",
                "reasoning_details": [
                    {
                        "type": "reasoning.encrypted",
                        "data": "gAAAAABencrypted",
                        "id": "rs_1",
                        "format": "openai-responses-v1",
                        "index": 0,
                    }
                ],
            }
        ),
        STOP,
    ],
    text=HELLO,
)
stream(
    "OpenRouter",
    "a native reason beside its own",
    [*TEXT, chunk({"content": ""}, "stop", choice={"native_finish_reason": "end_turn"})],
    text=HELLO,
)
stream(
    "OpenRouter",
    "an error inside the choice",
    [*TEXT, chunk({"content": ""}, "error", choice={"error": {"code": 502, "message": "Provider disconnected"}})],
    text=HELLO,
    error="Provider disconnected",
)
stream(
    "OpenRouter",
    "an error beside the choices",
    [*TEXT, chunk({"content": ""}, "error", error={"code": 502, "message": "Upstream idle timeout"})],
    text=HELLO,
    error="Upstream idle timeout",
)
stream(
    "OpenRouter",
    "cost beside the counts",
    [
        *TEXT,
        STOP,
        chunk(
            None,
            usage={
                **COUNTS,
                "cost": 0.0012,
                "is_byok": False,
                "cost_details": {"upstream_inference_cost": None},
                "prompt_tokens_details": {"cached_tokens": 10},
            },
        ),
    ],
    text=HELLO,
    cached=10,
    **COUNTED,
)
stream(
    "OpenRouter",
    "as much written to the cache as read from it",
    [*TEXT, STOP, chunk(None, usage={**COUNTS, "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 20}})],
    text=HELLO,
    cached=20,
    written=0,
    **COUNTED,
)
whole(
    "OpenRouter",
    "a picture",
    message("", images=[{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]),
    media="iVBORw0KGgo=",
)
whole(
    "OpenRouter",
    "an error with the status 200",
    {"error": {"code": 429, "message": "Rate limited upstream", "metadata": {"provider_name": "x"}}},
    input=None,
    output=None,
    error="Rate limited upstream",
)

# --- Google's OpenAI-compatible address ------------------------------------------------------------------------------------

SIGNED = {"extra_content": {"google": {"thought_signature": "EocDCoQDword"}}}
stream(
    "Google",
    "a signed call, whole, without an index in order",
    [
        chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "function-call-1", "read", **SIGNED))}),
        chunk({"role": "assistant"}, "stop"),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Google",
    "parallel calls all with index 0, the first one signed",
    [
        chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "fc-1", "read", **SIGNED))}),
        chunk({"role": "assistant", **calls(entry('{"deep":true}', "fc-2", "list"))}),
        chunk({"role": "assistant"}, "stop"),
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "Google",
    "calls with empty ids",
    [chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "", "read"))}), chunk({"role": "assistant"}, "tool_calls")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Google",
    "thoughts marked beside the text",
    [
        chunk({"role": "assistant", "content": "<thought>I think", "extra_content": {"google": {"thought": True}}}),
        chunk({"content": "</thought>Hello, world."}),
        STOP,
    ],
    text=HELLO,
    thinking="I think",
)
stream("Google", "the text signed in the last delta", [*TEXT, chunk({"content": "", **SIGNED}, "stop")], text=HELLO)
stream(
    "Google",
    "the reason says of what kind it is",
    [*TEXT, chunk({}, "content_filter: RECITATION")],
    text=HELLO,
    finish="content_filter",
)
stream(
    "Google",
    "a malformed call named as a filter",
    [ROLE, chunk({}, "function_call_filter: MALFORMED_FUNCTION_CALL")],
    finish="error",
    words={MESSAGES: "end_turn"},
)
stream(
    "Google",
    "counts in every chunk",
    [
        chunk(
            {"role": "assistant", "content": "Hello,"}, usage={"prompt_tokens": 30, "completion_tokens": 3, "total_tokens": 33}
        ),
        chunk({"content": " world."}, "stop", usage=COUNTS),
    ],
    text=HELLO,
    **COUNTED,
)
whole(
    "Google",
    "a signed call",
    message(None, "tool_calls", tool_calls=[used(extra_content=SIGNED["extra_content"])]),
    calls=CALL,
    finish="tool_calls",
)

# --- DeepSeek -------------------------------------------------------------------------------------------------------------

stream(
    "DeepSeek",
    "reasoning, then text, with null fields",
    [
        chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
        chunk({"content": None, "reasoning_content": "I think."}),
        chunk({"content": "Hello,", "reasoning_content": None}),
        chunk({"content": " world.", "reasoning_content": None}),
        chunk(
            {"content": "", "reasoning_content": None},
            "stop",
            usage={
                **COUNTS,
                "prompt_cache_hit_tokens": 10,
                "prompt_cache_miss_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
        ),
    ],
    text=HELLO,
    thinking="I think.",
    cached=10,
    reasoning=5,
    **COUNTED,
)
SAMPLES.stream(
    "DeepSeek", "comments as keep-alives", b": keep-alive\n\n" + sse([*TEXT, STOP]) + b": keep-alive\n\n" + DONE, text=HELLO
)
stream("DeepSeek", "out of resources", [*TEXT, chunk({}, "insufficient_system_resource")], text=HELLO, finish="error")
stream(
    "DeepSeek",
    "a call behind reasoning",
    [chunk({"role": "assistant", "content": None, "reasoning_content": "I look."}), *USE[1:], USE_END],
    thinking="I look.",
    calls=CALL,
    finish="tool_calls",
)
whole("DeepSeek", "reasoning in a whole answer", message(reasoning_content="I think."), text=HELLO, thinking="I think.")
SAMPLES.whole(
    "DeepSeek", "blank lines before the document, as keep-alives", b"\n\n\n" + compact(message()), text=HELLO, **COUNTED
)

# --- Groq, Cerebras, Mistral, xAI ------------------------------------------------------------------------------------------

stream(
    "Groq",
    "counts in x_groq",
    [
        chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
        *TEXT[1:],
        chunk({}, "stop", x_groq={"id": "req_1", "usage": COUNTS}),
    ],
    text=HELLO,
    **COUNTED,
)
stream(
    "Groq",
    "an error in x_groq",
    [*TEXT, chunk({}, x_groq={"id": "req_1", "error": "over capacity"})],
    text=HELLO,
    error="over capacity",
)
stream(
    "Groq",
    "reasoning in a field of its own",
    [chunk({"role": "assistant", "content": None}), chunk({"reasoning": "I "}), chunk({"reasoning": "think."}), *TEXT[1:], STOP],
    text=HELLO,
    thinking="I think.",
)
stream("Groq", "a whole call in one chunk", [AT_ONCE, USE_END], calls=CALL, finish="tool_calls")
whole(
    "Groq",
    "tools that it ran itself",
    message(executed_tools=[{"index": 0, "type": "search", "arguments": "{}", "output": "x"}]),
    text=HELLO,
)
stream(
    "Cerebras",
    "the counts with the reason, and timings",
    [*TEXT, chunk({}, "stop", usage=COUNTS, time_info={"queue_time": 0.01, "total_time": 0.4})],
    text=HELLO,
    **COUNTED,
)
stream(
    "Cerebras",
    "reasoning whose first piece has the role",
    [chunk({"role": "assistant", "reasoning": "I think."}), *TEXT[1:], STOP],
    text=HELLO,
    thinking="I think.",
)
stream(
    "Mistral",
    "a whole call with the reason in one chunk",
    [ROLE, chunk(calls(entry('{"path": "a.py"}', "D681PevKs", "read")), "tool_calls", usage=COUNTS)],
    calls=CALL,
    finish="tool_calls",
    **COUNTED,
)
stream(
    "Mistral",
    "content as a list of parts with thinking",
    [
        chunk({"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "I think."}]}]}),
        chunk({"content": [{"type": "text", "text": HELLO}]}),
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream("Mistral", "its own word for the limit", [*TEXT, chunk({}, "model_length")], text=HELLO, finish="length")
stream(
    "Mistral",
    "an id that says null",
    [ROLE, chunk(calls(entry('{"path": "a.py"}', "null", "read")), "tool_calls")],
    calls=CALL,
    finish="tool_calls",
)
whole(
    "Mistral",
    "arguments as an object",
    message("", "tool_calls", tool_calls=[used(arguments={"path": "a.py"})]),
    calls=CALL,
    finish="tool_calls",
)
whole(
    "Mistral",
    "content as a list with references",
    message(
        content=[
            {"type": "text", "text": "Hello, "},
            {"type": "reference", "reference_ids": [1]},
            {"type": "text", "text": "world."},
        ]
    ),
    text=HELLO,
)
stream(
    "xAI",
    "reasoning tokens counted beside the rest",
    [
        *TEXT,
        STOP,
        chunk(
            None,
            usage={
                "prompt_tokens": 30,
                "completion_tokens": 7,
                "total_tokens": 42,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
        ),
    ],
    text=HELLO,
    input=30,
    output=12,
    reasoning=5,
)
stream(
    "xAI",
    "another creation time in every chunk",
    [{**one, "created": 1767225600 + place} for place, one in enumerate([*TEXT, STOP])],
    text=HELLO,
)
stream(
    "xAI",
    "citations with the last chunk",
    [*TEXT, chunk({}, "stop", citations=["https://a.example"])],
    text=HELLO,
    cited=("https://a.example",),
)
stream(
    "xAI",
    "reasoning, and the role in every chunk",
    [
        chunk({"role": "assistant", "reasoning_content": "I think."}),
        chunk({"role": "assistant", "content": "Hello,"}),
        chunk({"role": "assistant", "content": " world."}),
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream("xAI", "a whole call in one chunk", [AT_ONCE, chunk({"content": ""}, "tool_calls")], calls=CALL, finish="tool_calls")

# --- Perplexity, Snowflake, Bedrock ----------------------------------------------------------------------------------------

GROWN = ["Hello,", HELLO]
stream(
    "Perplexity",
    "the whole message beside every delta",
    [
        chunk(
            {"role": "assistant", "content": piece},
            choice={"message": {"role": "assistant", "content": told}},
            citations=["https://a.example"],
        )
        for piece, told in zip(["Hello,", " world."], GROWN, strict=True)
    ]
    + [
        chunk(
            {"role": "assistant", "content": ""},
            "stop",
            choice={"message": {"role": "assistant", "content": HELLO}},
            usage=COUNTS,
        )
    ],
    text=HELLO,
    **COUNTED,
)
stream(
    "Perplexity",
    "a stream without [DONE]",
    [*TEXT, chunk({}, "stop", usage=COUNTS, search_results=[{"title": "A", "url": "https://a.example"}])],
    b"",
    text=HELLO,
    **COUNTED,
)
whole(
    "Perplexity",
    "a message beside an empty delta",
    message(
        choice={"delta": {"role": "assistant", "content": ""}},
        top={"citations": ["https://a.example"], "object": "chat.completion"},
    ),
    text=HELLO,
    cited=("https://a.example",),
)
stream(
    "Snowflake",
    "content_list beside the content",
    [
        chunk({"role": "assistant", "content": "Hello,", "content_list": [{"type": "text", "text": "Hello,"}]}),
        chunk({"content": " world.", "content_list": [{"type": "text", "text": " world."}]}),
        chunk({}, "stop", usage=COUNTS),
    ],
    text=HELLO,
    **COUNTED,
)
stream(
    "Snowflake",
    "an empty call beside the text",
    [chunk({"role": "assistant", "content": "Hello,", **calls(entry("", "", ""))}), chunk({"content": " world."}), STOP],
    text=HELLO,
)
whole("Snowflake", "a phantom call with an empty name", message(tool_calls=[used("", "", "")]), text=HELLO)
stream("Bedrock", "the counts before the reason", [*TEXT, chunk({}, usage=COUNTS), STOP], text=HELLO, **COUNTED)
stream("Bedrock", "a guardrail stepped in", [*TEXT, chunk({}, "guardrail_intervened")], text=HELLO, finish="content_filter")
stream(
    "Bedrock",
    "reasoning in its tags stays text",
    [ROLE, chunk({"content": "<reasoning>I think</reasoning>"}), *TEXT[1:], STOP],
    text="<reasoning>I think</reasoning>" + HELLO,
)

# --- Z.ai, Moonshot, Alibaba, MiniMax, Baidu, Tencent ----------------------------------------------------------------------

stream(
    "Z.ai",
    "the reason and the counts with the last piece",
    [
        chunk({"role": "assistant", "content": "Hello,"}),
        chunk(
            {"role": "assistant", "content": " world."}, "stop", usage={**COUNTS, "prompt_tokens_details": {"cached_tokens": 10}}
        ),
    ],
    text=HELLO,
    cached=10,
    **COUNTED,
)
stream(
    "Z.ai",
    "a whole call behind reasoning",
    [
        chunk({"role": "assistant", "reasoning_content": "I look."}),
        chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "call_-81", "read"))}),
        chunk({"role": "assistant", "content": ""}, "tool_calls"),
    ],
    thinking="I look.",
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Z.ai",
    "the filter's own word",
    [*TEXT, chunk({"role": "assistant", "content": ""}, "sensitive")],
    text=HELLO,
    finish="content_filter",
)
stream(
    "Z.ai",
    "an error in the middle with its number",
    [*TEXT, {"error": {"code": "1302", "message": "Too many requests at once"}}],
    text=HELLO,
    error="Too many requests at once",
)
stream(
    "Z.ai",
    "an empty error beside every chunk",
    [{**one, **EMPTY} for one in [*TEXT, STOP]],
    text=HELLO,
    sent=sse([*TEXT, STOP]) + DONE,
)
whole("Z.ai", "an empty error beside the answer", message(top=EMPTY), text=HELLO, sent=compact(message()))
stream("Moonshot", "counts inside the choice", [*TEXT, chunk({}, "stop", choice={"usage": COUNTS})], text=HELLO, **COUNTED)
stream(
    "Moonshot",
    "ids with a name and a number",
    [ROLE, chunk(calls(entry("", "functions.read:0", "read"))), chunk(calls(entry('{"path":"a.py"}'))), USE_END],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Moonshot",
    "cached tokens at the top",
    [*TEXT, chunk({}, "stop", usage={**COUNTS, "cached_tokens": 10})],
    text=HELLO,
    cached=10,
    **COUNTED,
)
stream(
    "Alibaba",
    "an empty id and name again in every piece",
    [
        chunk({"role": "assistant", "content": None, **calls(entry("", "call_1", "read"))}),
        chunk(calls(entry('{"path":', "", ""))),
        chunk(calls(entry('"a.py"}', "", ""))),
        USE_END,
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Alibaba",
    "the reason as an empty text until the end",
    [chunk({"role": "assistant", "content": "Hello,"}, ""), chunk({"content": " world."}, ""), STOP, USED],
    text=HELLO,
    **COUNTED,
)
stream(
    "Alibaba",
    "the reason as the word null until the end",
    [chunk({"role": "assistant", "content": "Hello,"}, "null"), chunk({"content": " world."}, "null"), STOP],
    text=HELLO,
)
stream(
    "Alibaba",
    "a good code beside every chunk",
    [{**one, **FINE} for one in [*TEXT, STOP]],
    text=HELLO,
    sent=sse([*TEXT, STOP]) + DONE,
)
stream(
    "MiniMax",
    "base_resp beside every chunk",
    [{**one, "base_resp": {"status_code": 0, "status_msg": ""}} for one in [*TEXT, STOP]],
    text=HELLO,
)
stream(
    "MiniMax",
    "the whole message once more at the end",
    [*TEXT, {**message(), "object": "chat.completion", "base_resp": {"status_code": 0, "status_msg": ""}}],
    b"",
    text=HELLO,
    **COUNTED,
)
SAMPLES.whole(
    "MiniMax",
    "an error in base_resp",
    {"id": "x", "choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
    error="insufficient balance",
)
stream(
    "Baidu",
    "flags beside the reason",
    [*TEXT, chunk({"content": ""}, "stop", choice={"flag": 0, "need_clear_history": False})],
    text=HELLO,
)
whole(
    "Tencent",
    "a note beside the answer",
    message(top={"note": "made by a model", "error": {}}),
    text=HELLO,
    sent=compact(message(top={"note": "made by a model"})),
)

# --- Ollama, vLLM, llama.cpp, LM Studio, SGLang ----------------------------------------------------------------------------

stream(
    "Ollama",
    "a whole call in one chunk, then stop",
    [AT_ONCE, chunk({"role": "assistant", "content": ""}, "stop")],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Ollama",
    "the role in every chunk",
    [
        chunk({"role": "assistant", "content": "Hello,"}),
        chunk({"role": "assistant", "content": " world."}),
        chunk({"role": "assistant", "content": ""}, "stop"),
    ],
    text=HELLO,
)
stream(
    "Ollama",
    "two calls with one index, each with an id",
    [
        chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "call_1", "read", 0))}),
        chunk({"role": "assistant", **calls(entry('{"deep":true}', "call_2", "list", 0))}),
        USE_END,
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "Ollama",
    "two calls with one index and no ids",
    [
        chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', None, "read", 0))}),
        chunk({"role": "assistant", **calls(entry('{"deep":true}', None, "list", 0))}),
        USE_END,
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "vLLM", "a stop token as a number beside the reason", [*TEXT, chunk({}, "stop", choice={"stop_reason": 151645})], text=HELLO
)
stream(
    "vLLM",
    "a stop sequence beside the reason",
    [*TEXT, chunk({}, "stop", choice={"stop_reason": "###"})],
    text=HELLO,
    words={MESSAGES: "stop_sequence"},
)
stream("vLLM", "the plain reason behind a call", [*USE, STOP], calls=CALL, finish="tool_calls")
stream("vLLM", "the limit in the middle of a call", [*USE[:3], chunk({}, "length")], finish="length", half=True)
stream("vLLM", "[DONE] without a reason behind half a call", USE[:3], error=CUT)
stream("vLLM", "[DONE] without a reason behind a text", TEXT, text=HELLO)
stream(
    "vLLM",
    "an error object as an event",
    [*TEXT, {"object": "error", "message": "engine died", "type": "InternalServerError", "param": None, "code": 500}],
    text=HELLO,
    error="engine died",
)
SAMPLES.stream(
    "vLLM",
    "spaces behind colons, as Python writes",
    b"".join(b"data: " + spaced(one) + b"\n\n" for one in [*TEXT, STOP]) + DONE,
    text=HELLO,
)
stream(
    "llama.cpp",
    "timings with the last chunk",
    [*TEXT, chunk({}, "stop", timings={"predicted_n": 12, "predicted_ms": 88.1})],
    text=HELLO,
)
SAMPLES.stream("llama.cpp", "no space behind the colon", sse([*TEXT, STOP], space=b"") + b"data:[DONE]\n\n", text=HELLO)
SAMPLES.stream(
    "llama.cpp",
    "an error named as a field of its own",
    sse(TEXT) + b'error: {"code":500,"message":"out of memory","type":"server_error"}\n\n',
    error=CUT,
)
SAMPLES.stream(
    "LM Studio",
    "an error event by its name",
    sse(TEXT) + b'event: error\ndata: {"error":{"message":"The model has crashed"}}\n\n',
    text=HELLO,
    error="The model has crashed",
)
stream(
    "LM Studio",
    "a call without an id",
    [ROLE, chunk(calls(entry("", None, "read"))), chunk(calls(entry('{"path":"a.py"}'))), USE_END],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "SGLang",
    "the stop that matched",
    [*TEXT, chunk({}, "stop", choice={"matched_stop": "###"})],
    text=HELLO,
    words={MESSAGES: "stop_sequence"},
)
stream(
    "SGLang",
    "the name in a later piece",
    [
        ROLE,
        chunk(calls(entry("", "call_1", None))),
        chunk(calls(entry("", None, "read"))),
        chunk(calls(entry('{"path":"a.py"}'))),
        USE_END,
    ],
    calls=CALL,
    finish="tool_calls",
)
SAMPLES.stream(
    "a gateway",
    "CRLF, and an event name on every event",
    b"".join(b"event: message\r\ndata: " + compact(one) + b"\r\n\r\n" for one in [*TEXT, STOP]) + b"data: [DONE]\r\n\r\n",
    text=HELLO,
)
SAMPLES.stream(
    "a gateway",
    "a byte order mark, retry and id lines",
    b"\xef\xbb\xbfretry: 3000\n\n"
    + b"".join(b"id: %d\ndata: " % place + compact(one) + b"\n\n" for place, one in enumerate([*TEXT, STOP]))
    + DONE,
    text=HELLO,
)
SAMPLES.stream("a gateway", "the last event without its blank line", sse([*TEXT, STOP]) + b"data: [DONE]", text=HELLO)
SAMPLES.whole("a gateway", "a web page", b"<!DOCTYPE html><html><title>502 Bad Gateway</title></html>", error="502 Bad Gateway")
whole("a gateway", "a word where the error would be", message(top={"error": "success"}), text=HELLO, sent=compact(message()))
whole(
    "LiteLLM",
    "its own fields on the call",
    message(
        None,
        "tool_calls",
        tool_calls=[used(provider_specific_fields={"thought_signature": "EocDCoQDword"})],
        provider_specific_fields={"refusal": None},
    ),
    calls=CALL,
    finish="tool_calls",
)

# --- where a text has it from, and what stands beside it ---------------------------------------------------------------------

FOUND = {"citations": ["https://a.example"], "search_results": [{"title": "A", "url": "https://a.example", "date": None}]}
stream(
    "Perplexity",
    "sources with every chunk",
    [{**one, **FOUND} for one in [*TEXT, STOP]],
    text=HELLO,
    cited=("https://a.example",),
)
stream(
    "OpenRouter",
    "an annotation in the delta, with what its source says",
    [
        *TEXT,
        chunk(
            {
                "content": "",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "url": "https://a.example",
                            "title": "A",
                            "content": "x",
                            "start_index": 0,
                            "end_index": 0,
                        },
                    }
                ],
            }
        ),
        STOP,
    ],
    text=HELLO,
    cited=("https://a.example",),
)
whole(
    "Groq",
    "a search that it ran itself, and its results",
    message(executed_tools=[{"index": 0, "type": "search", "arguments": "{}", "output": "x", "search_results": {"results": []}}]),
    text=HELLO,
)
stream(
    "a gateway",
    "sources behind the reason, with the counts",
    [*TEXT, STOP, chunk(None, usage=COUNTS, citations=["https://a.example"])],
    text=HELLO,
    cited=("https://a.example",),
)

# --- what the models of 2026 send ---------------------------------------------------------------------------------------------

whole(
    "Copilot",
    "the text in one choice and the call in another",
    message(
        HELLO,
        "tool_calls",
        top={
            "choices": [
                {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": HELLO}},
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {"role": "assistant", "content": None, "tool_calls": [used()]},
                },
            ]
        },
    ),
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
stream(
    "OpenRouter",
    "a picture behind the text",
    [
        *TEXT,
        chunk({"content": "", "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]}),
        STOP,
    ],
    text=HELLO,
    media="iVBORw0KGgo=",
)
stream(
    "OpenAI",
    "sound and what it says",
    [
        ROLE,
        chunk({"audio": {"id": "audio_1", "transcript": "Hello,"}}),
        chunk({"audio": {"data": "AAAA"}}),
        chunk({"audio": {"transcript": " world."}}),
        chunk({"audio": {"expires_at": 1767225600}}),
        STOP,
    ],
    text="",
    abroad=HELLO,
)
stream(
    "DeepSeek",
    "reasoning empty and null by turns",
    [
        chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
        chunk({"content": None, "reasoning_content": "I think."}),
        chunk({"content": "Hello,", "reasoning_content": None}),
        chunk({"content": " world.", "reasoning_content": ""}),
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "Mistral",
    "the error as a word beside a code",
    [*TEXT, {"object": "error", "message": "Out of luck", "type": "server_error", "code": 3000}],
    error="Out of luck",
)
stream(
    "Cerebras",
    "an error with its status",
    [ROLE, {"error": {"message": "Too many", "type": "too_many", "code": "queue_exceeded"}, "status_code": 429}],
    error="Too many",
)
stream(
    "Z.ai",
    "a call's arguments all at once, and then again nothing",
    [ROLE, chunk(calls(entry('{"path":"a.py"}', "call_1", "read"))), chunk(calls(entry(""))), chunk({"content": ""}), USE_END],
    calls=CALL,
    finish="tool_calls",
)

# --- how else hosts think, count, call and end ---------------------------------------------------------------------------------

stream(
    "Copilot",
    "reasoning in a text and a seal of its own",
    [
        chunk({"role": "assistant", "content": None, "reasoning_text": "I th"}),
        chunk({"content": None, "reasoning_text": "ink."}),
        chunk({"content": None, "reasoning_opaque": "EqQBopaque"}),
        *TEXT[1:],
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "Copilot",
    "calls counted from one, behind a text",
    [
        *TEXT,
        chunk(calls(entry("", "call_1", "read", 1))),
        chunk(calls(entry('{"path":"a.py"}', index=1))),
        chunk(calls(entry("", "call_2", "list", 2))),
        chunk(calls(entry('{"deep":true}', index=2))),
        USE_END,
    ],
    text=HELLO,
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
whole("Copilot", "a whole answer with a text of reasoning", message(reasoning_text="I think."), text=HELLO, thinking="I think.")
stream(
    "LiteLLM",
    "thinking blocks beside the reasoning",
    [
        chunk(
            {
                "role": "assistant",
                "reasoning_content": "I think.",
                "thinking_blocks": [{"type": "thinking", "thinking": "I think.", "signature": ""}],
                "provider_specific_fields": {"thinking_blocks": [{"type": "thinking", "thinking": "I think.", "signature": ""}]},
            }
        ),
        chunk({"reasoning_content": "", "thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "EqQBsigned"}]}),
        *TEXT[1:],
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "LiteLLM",
    "everything that is not said is null",
    [
        chunk(
            {
                "role": "assistant",
                "content": "Hello,",
                "function_call": None,
                "tool_calls": None,
                "refusal": None,
                "audio": None,
                "images": None,
                "provider_specific_fields": None,
            },
            choice={"logprobs": None},
            citations=None,
            service_tier=None,
        ),
        chunk({"role": None, "content": " world.", "function_call": None, "tool_calls": None, "audio": None}),
        chunk({"role": None, "content": None, "function_call": None, "tool_calls": None, "audio": None}, "stop"),
    ],
    text=HELLO,
)
whole(
    "LiteLLM",
    "what Anthropic wrote to its cache, in its own names",
    message(
        top={
            "usage": {
                **COUNTS,
                "cache_creation_input_tokens": 5,
                "cache_read_input_tokens": 10,
                "prompt_tokens_details": {"audio_tokens": None, "cached_tokens": 10},
            }
        }
    ),
    text=HELLO,
    cached=10,
    written=5,
)
whole(
    "Alibaba",
    "what it wrote to its cache",
    message(
        top={
            "usage": {
                **COUNTS,
                "prompt_tokens_details": {"cached_tokens": 10, "cache_creation_input_tokens": 5, "cache_type": "ephemeral"},
            }
        }
    ),
    text=HELLO,
    cached=10,
    written=5,
)
stream("Alibaba", "a stream that dies while the reason is the word null", [chunk({"content": "Hello,"}, "null")], b"", error=CUT)
stream(
    "SGLang",
    "reasoning tokens beside the counts, null where the details would be",
    [
        chunk({"role": "assistant", "content": "", "reasoning_content": None, "tool_calls": None}),
        chunk({"role": None, "content": None, "reasoning_content": "I think.", "tool_calls": None}),
        chunk({"role": None, "content": HELLO, "reasoning_content": None, "tool_calls": None}),
        chunk({"role": None, "content": "", "reasoning_content": None, "tool_calls": None}, "stop", choice={"matched_stop": 7}),
        chunk(None, usage={**COUNTS, "prompt_tokens_details": None, "reasoning_tokens": 5}),
    ],
    text=HELLO,
    thinking="I think.",
    reasoning=5,
    **COUNTED,
)
stream(
    "Perplexity",
    "reasoning tokens beside the counts",
    [*TEXT, chunk({}, "stop", usage={**COUNTS, "reasoning_tokens": 5, "citation_tokens": 3, "num_search_queries": 1})],
    text=HELLO,
    reasoning=5,
    **COUNTED,
)
stream(
    "Groq",
    "the channel beside each delta",
    [
        chunk({"role": "assistant", "content": None, "channel": "analysis", "reasoning": "I think."}),
        chunk({"content": HELLO, "channel": "final"}),
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
stream(
    "OpenRouter",
    "details of a summary beside a sealed one, then a call",
    [
        chunk(
            {
                "role": "assistant",
                "content": "",
                "reasoning": "I look.",
                "reasoning_details": [
                    {"type": "reasoning.summary", "summary": "I look.", "format": "openai-responses-v1", "index": 0}
                ],
            }
        ),
        chunk(
            {
                "content": "",
                "reasoning": None,
                "reasoning_details": [
                    {
                        "type": "reasoning.encrypted",
                        "data": "gAAAsealed",
                        "id": "rs_1",
                        "format": "openai-responses-v1",
                        "index": 0,
                    }
                ],
            }
        ),
        *USE[1:],
        chunk({"content": ""}, "tool_calls", choice={"native_finish_reason": "completed"}),
    ],
    thinking="I look.",
    calls=CALL,
    finish="tool_calls",
)
stream(
    "OpenRouter",
    "a comment between the pieces of a call",
    [*USE[:2]],
    b": OPENROUTER PROCESSING\n\n" + sse([*USE[2:], USE_END]) + DONE,
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Cerebras",
    "calls without indexes, one piece each",
    [
        chunk({"role": "assistant", **calls(entry('{"path":"a.py"}', "c1", "read", None))}),
        chunk(calls(entry('{"deep":true}', "c2", "list", None))),
        USE_END,
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "a gateway",
    "calls side by side without indexes, each piece under its id",
    [
        ROLE,
        chunk(calls(entry("", "call_1", "read", None), entry("", "call_2", "list", None))),
        chunk(calls(entry('{"path":"a.py"}', "call_1", None, None))),
        chunk(calls(entry('{"deep":true}', "call_2", None, None))),
        USE_END,
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "a gateway",
    "one index for all calls, each piece under its id",
    [
        ROLE,
        chunk(calls(entry("", "call_1", "read", 0))),
        chunk(calls(entry('{"path":', "call_1", None, 0))),
        chunk(calls(entry('"a.py"}', "call_1", None, 0))),
        chunk(calls(entry("", "call_2", "list", 0))),
        chunk(calls(entry('{"deep":', "call_2", None, 0))),
        chunk(calls(entry("true}", "call_2", None, 0))),
        USE_END,
    ],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "a gateway",
    "indexes as words",
    [
        ROLE,
        chunk({"tool_calls": [{**entry("", "call_1", "read"), "index": "0"}]}),
        chunk({"tool_calls": [{**entry('{"path":"a.py"}'), "index": "0"}]}),
        USE_END,
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "vLLM",
    "another id in every piece of a call",
    [
        ROLE,
        chunk(calls(entry("", "chatcmpl-tool-1", "read"))),
        chunk(calls(entry('{"path":', "chatcmpl-tool-2"))),
        chunk(calls(entry('"a.py"}', "chatcmpl-tool-3"))),
        USE_END,
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "vLLM",
    "counts in every chunk, and once more at the end",
    [
        *(
            {**one, "usage": {"prompt_tokens": 30, "completion_tokens": place, "total_tokens": 30 + place}}
            for place, one in enumerate(TEXT)
        ),
        {**STOP, "usage": COUNTS},
        USED,
    ],
    text=HELLO,
    **COUNTED,
)
stream(
    "vLLM",
    "token ids and a digest beside each choice",
    [
        {**ROLE, "prompt_token_ids": [1, 2]},
        chunk({"content": HELLO}, choice={"token_ids": [3], "logprobs": None}),
        chunk({"content": ""}, "stop", choice={"stop_reason": None, "token_ids": None}),
    ],
    text=HELLO,
)
stream("vLLM", "a text that it said again and again", [*TEXT, chunk({}, "repetition")], text=HELLO, finish="length")
stream("Cohere", "its own words for an end", [*TEXT, chunk({}, "COMPLETE")], text=HELLO)
stream("Cohere", "its own word for the limit", [*TEXT, chunk({}, "MAX_TOKENS")], text=HELLO, finish="length")
stream(
    "a gateway",
    "Anthropic's words for an end",
    [*USE, chunk({}, "tool_use")],
    calls=CALL,
    finish="tool_calls",
)
stream("a gateway", "Anthropic's word for the limit", [*TEXT, chunk({}, "max_tokens")], text=HELLO, finish="length")
stream(
    "a gateway",
    "words with hyphens",
    [*TEXT, chunk({}, "content-filter")],
    text=HELLO,
    finish="content_filter",
)
stream(
    "Z.ai",
    "the window is full",
    [*TEXT, chunk({"content": ""}, "model_context_window_exceeded")],
    text=HELLO,
    finish="length",
    words={MESSAGES: "model_context_window_exceeded"},
)
stream("Z.ai", "a network that failed", [*TEXT, chunk({"content": ""}, "network_error")], text=HELLO, finish="error")
stream(
    "Z.ai",
    "what its own search found, beside the first chunk",
    [{**ROLE, "web_search": [{"title": "A", "link": "https://a.example", "refer": "1"}]}, *TEXT[1:], STOP],
    text=HELLO,
    cited=("https://a.example",),
)
stream(
    "Moonshot",
    "counts inside the choice and behind it",
    [*TEXT, chunk({}, "stop", choice={"usage": COUNTS}), chunk(None, usage={**COUNTS, "cached_tokens": 10})],
    text=HELLO,
    cached=10,
    **COUNTED,
)
stream(
    "Ollama",
    "arguments that are nothing",
    [chunk({"role": "assistant", "content": "", **calls(entry(None, "call_1", "now"))}), chunk({"content": ""}, "stop")],
    calls=(("now", {}),),
    finish="tool_calls",
)
stream(
    "Ollama",
    "arguments as an object",
    [
        chunk({"role": "assistant", "content": "", **calls(entry({"path": "a.py"}, "call_1", "read"))}),
        chunk({"content": ""}, "stop"),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Ollama",
    "an error that is a word, in the middle",
    [*TEXT, {"error": "model runner has unexpectedly stopped"}],
    text=HELLO,
    error="model runner has unexpectedly stopped",
)
SAMPLES.whole("Ollama", "an error that is a word, with the status 200", {"error": "model not found"}, error="model not found")
stream(
    "llama.cpp",
    "how far the prompt has come, before the answer",
    [chunk({}, prompt_progress={"total": 30, "cache": 0, "processed": 10, "time_ms": 9}), *TEXT, STOP],
    text=HELLO,
)
stream(
    "llama.cpp",
    "the role with null, then the text",
    [chunk({"role": "assistant", "content": None}), *TEXT[1:], STOP, chunk(None, usage=COUNTS, timings={"predicted_n": 12})],
    text=HELLO,
    **COUNTED,
)
stream(
    "llama.cpp",
    "an error as an event's data",
    [*TEXT, {"error": {"code": 500, "message": "context shift is off", "type": "server_error"}}],
    text=HELLO,
    error="context shift is off",
)
SAMPLES.stream(
    "LM Studio",
    "an error's word alone under its name",
    sse(TEXT) + b'event: error\ndata: {"error":"The model has crashed"}\n\n',
    text=HELLO,
    error="The model has crashed",
)
stream(
    "LM Studio",
    "a draft's counts beside the answer",
    [*TEXT, {**STOP, "stats": {"accepted_draft_tokens_count": 1}, "system_fingerprint": "m-1"}],
    text=HELLO,
)
SAMPLES.whole(
    "Alibaba",
    "an error in its own form, with the status 200",
    {"code": "InvalidParameter", "message": "Range of max_tokens should be [1, 8192]", "request_id": "r-1"},
    error="Range of max_tokens",
)
stream(
    "Alibaba",
    "an error in its own form, in the middle",
    [*TEXT, {"code": "DataInspectionFailed", "message": "Output data may be inappropriate", "request_id": "r-1"}],
    text=HELLO,
    error="Output data may be inappropriate",
)
SAMPLES.stream(
    "Moonshot",
    "an error where the first event would be",
    sse([{"error": {"message": "Too busy", "type": "engine_overloaded_error"}}]),
    error="Too busy",
)
SAMPLES.stream(
    "a gateway",
    "pings as data, and events of no data",
    b"event: ping\ndata: {}\n\n" + sse(TEXT) + b"data:\n\n" + b'event: ping\ndata: {"type":"ping"}\n\n' + sse([STOP]) + DONE,
    text=HELLO,
)
SAMPLES.stream(
    "a gateway",
    "two lines of data in one event",
    sse(TEXT) + b"data: " + compact(STOP)[:1] + b"\ndata: " + compact(STOP)[1:] + b"\n\n" + DONE,
    text=HELLO,
)
stream("a gateway", "no id, no model, no creation time", [{"choices": one["choices"]} for one in [*TEXT, STOP]], text=HELLO)
stream(
    "a gateway",
    "an id that is a number, null names",
    [{**one, "id": 7, "model": None, "object": None, "created": None} for one in [*TEXT, STOP]],
    text=HELLO,
)
stream(
    "a gateway",
    "the reason comes twice",
    [*TEXT, STOP, chunk({"content": ""}, "stop", usage=COUNTS)],
    text=HELLO,
    **COUNTED,
)
whole("a gateway", "no reason, and null where calls would be", message(reason=None, tool_calls=None), text=HELLO)
whole("a gateway", "a whole answer that came as a last chunk", {**message(), "object": "chat.completion.chunk"}, text=HELLO)
whole(
    "Mistral",
    "a whole answer with thinking in parts",
    message(
        content=[  # type: ignore[arg-type]
            {"type": "thinking", "thinking": [{"type": "text", "text": "I think."}], "closed": True},
            {"type": "text", "text": HELLO},
        ]
    ),
    text=HELLO,
    thinking="I think.",
)
stream(
    "DeepSeek",
    "a whole stream of nothing but thinking, at the limit",
    [chunk({"role": "assistant", "content": None, "reasoning_content": "I think."}), chunk({"content": ""}, "length")],
    thinking="I think.",
    finish="length",
)
stream("Azure", "nothing but a filter's reason", [PROMPT, chunk({}, "content_filter")], finish="content_filter")
stream(
    "Snowflake",
    "a phantom call, grown by empty pieces",
    [
        chunk({"role": "assistant", "content": "Hello,", **calls(entry("", "", ""))}),
        chunk({"content": " world.", **calls(entry("", "", ""))}),
        STOP,
        chunk({**calls(entry("", "", ""))}, usage=COUNTS),
    ],
    text=HELLO,
    **COUNTED,
)
whole(
    "Snowflake",
    "calls inside a list of contents",
    message(
        HELLO,
        "tool_calls",
        content_list=[
            {"type": "text", "text": HELLO},
            {"type": "tool_use", "tool_use": {"tool_use_id": "call_1", "name": "read", "input": {"path": "a.py"}}},
        ],
        tool_calls=[used()],
    ),
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
THINKS = {"extra_content": {"google": {"thought": True}}}
stream(
    "Google",
    "thoughts and the text behind them in one delta",
    [chunk({"role": "assistant", "content": "<thought>I think.</thought>Hello,", **THINKS}), chunk({"content": " world."}), STOP],
    text=HELLO,
    thinking="I think.",
)
whole(
    "Google",
    "thoughts marked in a whole answer",
    message("<thought>I think.</thought>" + HELLO, **THINKS),
    text=HELLO,
    thinking="I think.",
)
stream(
    "Together",
    "each piece once more as a completion's text",
    [
        chunk({"role": "assistant", "content": "Hello,", "token_id": 7}, choice={"text": "Hello,", "seed": None}),
        chunk({"content": " world."}, choice={"text": " world.", "seed": None}),
        chunk({"content": ""}, "eos", choice={"text": "", "seed": 1, "usage": None}, usage=COUNTS),
    ],
    text=HELLO,
    **COUNTED,
)
stream(
    "TGI",
    "a call that stands in no list",
    [
        chunk({"role": "assistant", "tool_calls": entry("", "call_1", "read")}),
        chunk({"role": "assistant", "tool_calls": entry('{"path":"a.py"}')}),
        chunk({"role": "assistant", "content": ""}, "eos_token"),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Databricks",
    "a part of reasoning with its summary and its seal",
    [
        chunk(
            {
                "role": "assistant",
                "content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "I th", "signature": ""}]}],
            }
        ),
        chunk({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "ink.", "signature": ""}]}]}),
        chunk({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "", "signature": "EqQBsigned"}]}]}),
        *TEXT[1:],
        STOP,
    ],
    text=HELLO,
    thinking="I think.",
)
whole(
    "Databricks",
    "a part of reasoning and a text",
    message(
        content=[  # type: ignore[arg-type]
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I think.", "signature": "EqQBsigned"}]},
            {"type": "text", "text": HELLO},
        ]
    ),
    text=HELLO,
    thinking="I think.",
)
stream(
    "MiniMax",
    "a name, no sound, and reasoning twice",
    [
        chunk(
            {
                "role": "assistant",
                "name": "MiniMax AI",
                "content": "",
                "audio_content": "",
                "reasoning_content": "I think.",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "id": "reasoning-text-1",
                        "format": "MiniMax-response-v1",
                        "index": 0,
                        "text": "I think.",
                    }
                ],
            }
        ),
        chunk({"role": "assistant", "name": "MiniMax AI", "content": HELLO, "audio_content": ""}),
        chunk({}, "stop", usage={**COUNTS, "total_characters": 0}, input_sensitive=False, output_sensitive=False),
    ],
    text=HELLO,
    thinking="I think.",
    **COUNTED,
)
stream(
    "LM Studio",
    "a list of no calls in every chunk",
    [
        {**one, "choices": [{**one["choices"][0], "delta": {**one["choices"][0]["delta"], "tool_calls": []}}]}
        for one in [*TEXT, STOP]
    ],
    text=HELLO,
)
whole("LM Studio", "a list of no calls", message(tool_calls=[], reasoning_details=[], reasoning=None), text=HELLO)
stream(
    "Cerebras",
    "null for name, id and kind in later pieces",
    [
        ROLE,
        chunk(calls(entry("", "call_1", "read"))),
        chunk(calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"path":'}})),
        chunk(calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '"a.py"}'}})),
        USE_END,
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "xAI",
    "counts in every chunk, with what it searched",
    [{**one, "usage": {**COUNTS, "num_sources_used": 0, "cost_in_usd_ticks": 7}} for one in [*TEXT, STOP]],
    text=HELLO,
    **COUNTED,
)
stream(
    "Moonshot",
    "the reason with a call's last piece",
    [ROLE, chunk(calls(entry("", "read:0", "read"))), chunk(calls(entry('{"path":"a.py"}')), "tool_calls", usage=COUNTS)],
    calls=CALL,
    finish="tool_calls",
    **COUNTED,
)
