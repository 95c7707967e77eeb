"""Gemini's generateContent, host by host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from routecodex.routing.values import Dialect
from tests.routing.dialects.hosts.sample import CUT, Document, Samples, compact, sse

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
SAMPLES = Samples(GEMINI)
CALL = (("read", {"path": "a.py"}),)
HELLO = "Hello, world."
COUNTED: dict[str, Any] = {"input": 30, "output": 12}
USAGE = {"promptTokenCount": 30, "candidatesTokenCount": 12, "totalTokenCount": 42}
EMPTY = {"error": {"message": "", "code": None}}
SIGNED = {"thoughtSignature": "CsMBAdHtim8word"}


def chunk(
    *parts: Document, reason: str | None = None, usage: Document | None = None, candidate: Document | None = None, **top: Any
) -> Document:
    one: Document = {
        "content": {"parts": list(parts), "role": "model"},
        **({"finishReason": reason} if reason else {}),
        "index": 0,
        **(candidate or {}),
    }
    return {"candidates": [one], **({"usageMetadata": usage} if usage else {}), "modelVersion": "m-1", "responseId": "r-1", **top}


def text(words: str, **more: Any) -> Document:
    return {"text": words, **more}


def call(name: str = "read", args: Document | None = None, id: str | None = None, **more: Any) -> Document:
    return {
        "functionCall": {**({"id": id} if id else {}), "name": name, "args": {"path": "a.py"} if args is None else args},
        **more,
    }


HEAD = chunk(text("Hello,"), usage={"promptTokenCount": 30, "totalTokenCount": 30})
LAST = chunk(text(" world."), reason="STOP", usage=USAGE)


def stream(host: str, trait: str, chunks: Iterable[Document], **expected: Any) -> None:
    SAMPLES.stream(host, trait, sse(chunks, end=b"\r\n"), **{**COUNTED, **expected})


def whole(host: str, trait: str, document: Document, **expected: Any) -> None:
    SAMPLES.whole(host, trait, document, **{**COUNTED, **expected})


NOTHING: dict[str, Any] = {"input": None, "output": None}

# --- Google -----------------------------------------------------------------------------------------------------------------

stream("Google", "text, the reason with the last piece", [HEAD, LAST], text=HELLO)
stream(
    "Google",
    "the reason in a chunk of its own, with an empty text",
    [HEAD, chunk(text(" world.")), chunk(text(""), reason="STOP", usage=USAGE)],
    text=HELLO,
)
stream(
    "Google",
    "the reason in a chunk without content",
    [
        HEAD,
        chunk(text(" world.")),
        {
            "candidates": [{"finishReason": "STOP", "index": 0}],
            "usageMetadata": USAGE,
            "modelVersion": "m-1",
            "responseId": "r-1",
        },
    ],
    text=HELLO,
)
stream(
    "Google",
    "the counts behind the reason",
    [HEAD, chunk(text(" world."), reason="STOP"), {"usageMetadata": USAGE, "modelVersion": "m-1", "responseId": "r-1"}],
    text=HELLO,
)
stream(
    "Google",
    "thoughts, then text",
    [
        chunk(text("I think.", thought=True)),
        HEAD,
        chunk(text(" world."), reason="STOP", usage={**USAGE, "candidatesTokenCount": 7, "thoughtsTokenCount": 5}),
    ],
    text=HELLO,
    thinking="I think.",
    reasoning=5,
)
stream(
    "Google",
    "a signed call",
    [chunk(call(**SIGNED)), chunk(text(""), reason="STOP", usage=USAGE)],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Google",
    "parallel calls, the first one signed, ids given",
    [chunk(call(id="a1", **SIGNED), call("list", {"deep": True}, "a2"), reason="STOP", usage=USAGE)],
    calls=(*CALL, ("list", {"deep": True})),
    finish="tool_calls",
)
stream(
    "Google",
    "parallel calls of one tool without ids",
    [chunk(call(args={"path": "a.py"}), call(args={"path": "b.py"}), reason="STOP", usage=USAGE)],
    calls=(*CALL, ("read", {"path": "b.py"})),
    finish="tool_calls",
)
stream(
    "Google",
    "a call without arguments",
    [chunk({"functionCall": {"name": "now"}}, reason="STOP", usage=USAGE)],
    calls=(("now", {}),),
    finish="tool_calls",
)
stream(
    "Google",
    "the text's signature on an empty last part",
    [HEAD, chunk(text(" world.")), chunk(text("", **SIGNED), reason="STOP", usage=USAGE)],
    text=HELLO,
)
stream(
    "Google",
    "arguments in parts",
    [
        chunk({"functionCall": {"name": "read", "willContinue": True}}),
        chunk(
            {
                "functionCall": {
                    "partialArgs": [{"jsonPath": "$.path", "stringValue": "a.", "willContinue": True}],
                    "willContinue": True,
                }
            }
        ),
        chunk({"functionCall": {"partialArgs": [{"jsonPath": "$.path", "stringValue": "py"}], "willContinue": True}}),
        chunk({"functionCall": {}}),
        chunk(text(""), reason="STOP", usage=USAGE),
    ],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Google",
    "the limit in the middle of arguments in parts",
    [
        chunk({"functionCall": {"name": "read", "willContinue": True}}),
        chunk(
            {
                "functionCall": {
                    "partialArgs": [{"jsonPath": "$.path", "stringValue": "a.", "willContinue": True}],
                    "willContinue": True,
                }
            },
            reason="MAX_TOKENS",
            usage=USAGE,
        ),
    ],
    finish="length",
    half=True,
)
stream("Google", "the limit", [HEAD, chunk(text(" world."), reason="MAX_TOKENS", usage=USAGE)], text=HELLO, finish="length")
stream(
    "Google",
    "the limit while it thinks",
    [
        chunk(text("I think.", thought=True)),
        {
            "candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}],
            "usageMetadata": USAGE,
            "modelVersion": "m-1",
            "responseId": "r-1",
        },
    ],
    thinking="I think.",
    finish="length",
)
stream(
    "Google",
    "safety in the middle",
    [
        HEAD,
        {
            "candidates": [
                {
                    "finishReason": "SAFETY",
                    "index": 0,
                    "safetyRatings": [{"category": "X", "probability": "HIGH", "blocked": True}],
                }
            ],
            "usageMetadata": USAGE,
            "modelVersion": "m-1",
            "responseId": "r-1",
        },
    ],
    text="Hello,",
    finish="content_filter",
)
stream(
    "Google",
    "recitation",
    [
        HEAD,
        chunk(
            reason="RECITATION",
            usage=USAGE,
            candidate={"citationMetadata": {"citations": [{"startIndex": 0, "endIndex": 5, "uri": "https://a.example"}]}},
        ),
    ],
    text="Hello,",
    finish="content_filter",
)
stream(
    "Google",
    "the prompt is blocked",
    [
        {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 30, "totalTokenCount": 30},
            "modelVersion": "m-1",
            "responseId": "r-1",
        }
    ],
    output=0,
    finish="content_filter",
)
stream(
    "Google",
    "a malformed call",
    [
        {
            "candidates": [
                {
                    "content": {},
                    "finishReason": "MALFORMED_FUNCTION_CALL",
                    "finishMessage": "Malformed function call: print(x)",
                    "index": 0,
                }
            ],
            "usageMetadata": USAGE,
            "modelVersion": "m-1",
            "responseId": "r-1",
        }
    ],
    finish="error",
    words={MESSAGES: "end_turn", CHAT: "stop"},
)
stream(
    "Google",
    "grounding with the last piece",
    [
        HEAD,
        chunk(
            text(" world."),
            reason="STOP",
            usage=USAGE,
            candidate={
                "groundingMetadata": {
                    "webSearchQueries": ["x"],
                    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
                    "groundingSupports": [{"segment": {"endIndex": 5}, "groundingChunkIndices": [0]}],
                }
            },
        ),
    ],
    text=HELLO,
    cited=("https://a.example",),
)
stream(
    "Google",
    "tokens of its own tools count as input",
    [HEAD, chunk(text(" world."), reason="STOP", usage={**USAGE, "promptTokenCount": 20, "toolUsePromptTokenCount": 10})],
    text=HELLO,
)
stream(
    "Google",
    "cached tokens",
    [HEAD, chunk(text(" world."), reason="STOP", usage={**USAGE, "cachedContentTokenCount": 20})],
    text=HELLO,
    cached=20,
)
stream(
    "Google",
    "code that it ran itself",
    [
        chunk({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
        chunk({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}),
        chunk(text(HELLO), reason="STOP", usage=USAGE),
    ],
    text=HELLO,
    abroad="\n```python\nprint(1)\n```\n\n```output\n1\n\n```\n" + HELLO,
)
stream(
    "Google",
    "an error in the middle",
    [HEAD, {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}],
    error="The model is overloaded.",
    **NOTHING,
)
stream("Google", "a stream that dies", [HEAD], error=CUT, **NOTHING)
SAMPLES.stream(
    "Google", "an array instead of events", b"[" + compact(HEAD) + b"\n,\r\n" + compact(LAST) + b"\n]", text=HELLO, **COUNTED
)
SAMPLES.stream(
    "Google",
    "an array that is an error",
    compact([{"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}}]),
    error="Quota exceeded",
)
whole(
    "Google",
    "thoughts, text and a call",
    chunk(text("I think.", thought=True), text(HELLO), call(**SIGNED), reason="STOP", usage=USAGE),
    text=HELLO,
    thinking="I think.",
    calls=CALL,
    finish="tool_calls",
)
whole(
    "Google",
    "text with average log probabilities",
    chunk(text(HELLO), reason="STOP", usage=USAGE, candidate={"avgLogprobs": -0.1, "logprobsResult": {"chosenCandidates": []}}),
    text=HELLO,
)
whole(
    "Google",
    "a second candidate",
    {
        **chunk(text(HELLO), reason="STOP", usage=USAGE),
        "candidates": [
            chunk(text(HELLO), reason="STOP")["candidates"][0],
            {**chunk(text("Other"), reason="STOP")["candidates"][0], "index": 1},
        ],
    },
    text=HELLO,
)
whole(
    "Google",
    "the prompt is blocked",
    {
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 30, "totalTokenCount": 30},
    },
    output=0,
    finish="content_filter",
)
SAMPLES.whole(
    "Google",
    "an error with the status 200",
    {"error": {"code": 400, "message": "Invalid argument", "status": "INVALID_ARGUMENT"}},
    error="Invalid argument",
)

# --- others that speak it ---------------------------------------------------------------------------------------------------

stream(
    "Code Assist",
    "the answer in an envelope",
    [{"response": HEAD, "traceId": "t1"}, {"response": LAST, "traceId": "t1"}],
    text=HELLO,
)
whole(
    "Code Assist",
    "a call in an envelope",
    {"response": chunk(call(), reason="STOP", usage=USAGE), "traceId": "t1"},
    calls=CALL,
    finish="tool_calls",
)
stream(
    "Vertex",
    "creation time, and details of the counts",
    [
        {**HEAD, "createTime": "2026-01-01T00:00:00Z"},
        {
            **chunk(
                text(" world."),
                reason="STOP",
                usage={**USAGE, "trafficType": "ON_DEMAND", "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 30}]},
            ),
            "createTime": "2026-01-01T00:00:00Z",
        },
    ],
    text=HELLO,
)
stream(
    "a gateway",
    "the reason with every chunk",
    [chunk(text("Hello,"), reason="STOP"), chunk(text(" world."), reason="STOP", usage=USAGE)],
    text=HELLO,
)
stream(
    "a gateway",
    "an empty error beside every chunk",
    [{**HEAD, **EMPTY}, {**LAST, **EMPTY}],
    text=HELLO,
    sent=sse([HEAD, LAST], end=b"\r\n"),
)
whole(
    "a gateway",
    "an empty error beside the answer",
    {**chunk(text(HELLO), reason="STOP", usage=USAGE), **EMPTY},
    text=HELLO,
    sent=compact(chunk(text(HELLO), reason="STOP", usage=USAGE)),
)
SAMPLES.stream(
    "a gateway", "[DONE] behind the end", sse([HEAD, LAST], end=b"\r\n") + b"data: [DONE]\r\n\r\n", text=HELLO, **COUNTED
)
stream(
    "a gateway",
    "the reason null until the end",
    [{**HEAD, "candidates": [{**HEAD["candidates"][0], "finishReason": None}]}, LAST],
    text=HELLO,
)
stream(
    "a gateway",
    "as much cached as counted",
    [HEAD, chunk(text(" world."), reason="STOP", usage={**USAGE, "cachedContentTokenCount": 30})],
    text=HELLO,
    cached=30,
)

# --- where a text has it from -------------------------------------------------------------------------------------------------

stream(
    "Google",
    "places in bytes, and the same grounding once more",
    [
        chunk(
            text("Grüße."),
            candidate={
                "groundingMetadata": {
                    "groundingChunks": [
                        {"web": {"uri": "https://a.example", "title": "A"}},
                        {"maps": {"uri": "https://b.example"}},
                    ],
                    "groundingSupports": [
                        {"segment": {"startIndex": 0, "endIndex": 7, "text": "Grüße"}, "groundingChunkIndices": [0, 1, 9]}
                    ],
                }
            },
            reason=reason,
            usage=USAGE,
        )
        for reason in ("STOP",)
    ],
    text="Grüße.",
    cited=("https://a.example", "https://b.example"),
)

# --- what the models of 2026 send ---------------------------------------------------------------------------------------------

LOOKED_UP: Document = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": {"queries": ["a"]}}, **SIGNED}
FOUND: Document = {
    "toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": {"search_suggestions": "x"}},
    **SIGNED,
}
stream(
    "Google",
    "a search of its own as parts, then text",
    [chunk(LOOKED_UP), chunk(FOUND), chunk(text(HELLO, **SIGNED), reason="STOP", usage=USAGE)],
    text=HELLO,
)
stream(
    "Google",
    "a search of its own as parts, then a call",
    [chunk(LOOKED_UP), chunk(FOUND), chunk(call(id="c1", **SIGNED), reason="STOP", usage=USAGE)],
    calls=CALL,
    finish="tool_calls",
)
whole(
    "Google",
    "a search of its own as parts, and text",
    chunk(LOOKED_UP, FOUND, text(HELLO), reason="STOP", usage=USAGE),
    text=HELLO,
)
stream(
    "Google",
    "a signature is missing",
    [
        HEAD,
        chunk(
            reason="MISSING_THOUGHT_SIGNATURE", usage=USAGE, candidate={"finishMessage": "Function call is missing a signature"}
        ),
    ],
    text="Hello,",
    finish="error",
)
stream(
    "Google",
    "too many calls",
    [HEAD, chunk(reason="TOO_MANY_TOOL_CALLS", usage=USAGE)],
    text="Hello,",
    finish="error",
    words={MESSAGES: "end_turn", CHAT: "stop"},
)
stream(
    "Vertex",
    "the tier that it ran at",
    [HEAD, chunk(text(" world."), reason="STOP", usage={**USAGE, "trafficType": "ON_DEMAND", "serviceTier": "STANDARD"})],
    text=HELLO,
)
stream(
    "Google",
    "the signature alone in the last chunk",
    [HEAD, chunk(text(" world.")), chunk(SIGNED, reason="STOP", usage=USAGE)],
    text=HELLO,
)

# --- how else hosts think, count, call and end ---------------------------------------------------------------------------------

UNSAID = "FINISH_REASON_UNSPECIFIED"
stream(
    "Code Assist",
    "a reason that says nothing until the end",
    [chunk(text("Hello,"), reason=UNSAID), LAST],
    text=HELLO,
)
stream(
    "Code Assist",
    "a stream that dies while the reason says nothing",
    [chunk(text("Hello,"), reason=UNSAID)],
    error=CUT,
    **NOTHING,
)
stream(
    "a gateway",
    "null beside every part",
    [
        chunk({"text": None, "functionCall": None, "thought": None, "inlineData": None, "thoughtSignature": None}),
        chunk({"text": "Hello,", "functionCall": None, "thought": False, "thoughtSignature": None}),
        chunk({"text": " world.", "functionCall": None}, reason="STOP", usage=USAGE),
    ],
    text=HELLO,
)
stream(
    "a gateway",
    "null where arguments would be",
    [chunk({"functionCall": {"name": "now", "args": None}}, reason="STOP", usage=USAGE)],
    calls=(("now", {}),),
    finish="tool_calls",
)
stream(
    "a gateway",
    "arguments written as a text",
    [chunk({"functionCall": {"name": "read", "args": '{"path":"a.py"}'}}, reason="STOP", usage=USAGE)],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "OpenAI's word for calls",
    [chunk(call(), reason="TOOL_CALLS", usage=USAGE)],
    calls=CALL,
    finish="tool_calls",
)
stream(
    "a gateway",
    "words in small letters",
    [HEAD, chunk(text(" world."), reason="max_tokens", usage=USAGE)],
    text=HELLO,
    finish="length",
)
stream(
    "Vertex",
    "a role and no parts in the first chunk",
    [{**chunk(), "candidates": [{"content": {"role": "model"}, "index": 0}]}, HEAD, LAST],
    text=HELLO,
)
stream(
    "Vertex",
    "a candidate without content or index",
    [
        HEAD,
        {**chunk(text(" world.")), "candidates": [{"content": {"parts": [text(" world.")]}}]},
        {**chunk(), "candidates": [{"finishReason": "STOP"}], "usageMetadata": USAGE},
    ],
    text=HELLO,
)
stream(
    "Google",
    "no candidates at all in a chunk of counts between",
    [HEAD, {"usageMetadata": {"promptTokenCount": 30, "totalTokenCount": 30}, "modelVersion": "m-1"}, LAST],
    text=HELLO,
)
stream(
    "Google",
    "a call in one chunk, text behind it in another",
    [chunk(call(id="a1", **SIGNED)), chunk(text(HELLO)), chunk(reason="STOP", usage=USAGE)],
    text=HELLO,
    calls=CALL,
    finish="tool_calls",
)
SAMPLES.stream(
    "Google",
    "an error in the middle as bare JSON",
    sse([HEAD], end=b"\r\n")
    + b'{\n  "error": {\n    "code": 503,\n    "message": "Overloaded",\n    "status": "UNAVAILABLE"\n  }\n}\n',
    error=CUT,
)
SAMPLES.stream(
    "Google",
    "an array that ends in an error",
    b"["
    + compact(HEAD)
    + b"\n,\r\n"
    + compact({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
    + b"\n]",
    error="Overloaded",
)
SAMPLES.stream("Google", "an array that dies", b"[" + compact(HEAD) + b"\n,\r\n", error=CUT)
whole(
    "Google",
    "log probabilities of a whole answer, and a page that it read",
    chunk(
        text(HELLO),
        reason="STOP",
        usage=USAGE,
        candidate={
            "logprobsResult": {"topCandidates": [], "chosenCandidates": [{"token": "Hello", "logProbability": -0.1}]},
            "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "https://a.example"}]},
        },
    ),
    text=HELLO,
)
whole(
    "Google",
    "a picture beside the text",
    chunk(text(HELLO), {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}, reason="STOP", usage=USAGE),
    text=HELLO,
    media="iVBORw0KGgo=",
)
whole(
    "Google",
    "nothing but a reason",
    {**chunk(reason="STOP", usage={**USAGE, "candidatesTokenCount": 0}), "candidates": [{"finishReason": "STOP", "index": 0}]},
    output=0,
)
