"""A4: an answer of very many pieces of one kind, of whatever kind: four times as many are four times the work."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, TypeAlias

import pytest

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.rig.work import assert_as_many_lines

Events: TypeAlias = list[bytes]
Document: TypeAlias = dict[str, Any]
Make: TypeAlias = Callable[[int], Events]


TITLE = "t" * 300
"""What tells of a hundred of them is a long document: in such ones what is told again is kept once."""


def sse(document: Document) -> bytes:
    kind = f"event: {document['type']}\n" if "type" in document else ""
    return f"{kind}data: {json.dumps(document)}\n\n".encode()


# --- Messages ---


def messages(body: Iterable[Document], reason: str = "end_turn") -> Events:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    end = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}}
    return [sse(one) for one in ({"type": "message_start", "message": message}, *body, end, {"type": "message_stop"})]


def block(index: int, native: Document, *deltas: Document) -> list[Document]:
    return [
        {"type": "content_block_start", "index": index, "content_block": native},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def blocks(native: Document, *deltas: Document, reason: str = "end_turn") -> Make:
    return lambda count: messages((one for index in range(count) for one in block(index, native, *deltas)), reason)


def pieces(native: Document, *deltas: Document, reason: str = "end_turn") -> Make:
    return lambda count: messages(block(0, native, *deltas * count), reason)


def open_blocks(count: int) -> Events:
    started = [block(index, TOOL_USE)[0] for index in range(count)]
    ended = [one for index in range(count) for one in block(index, TOOL_USE, ARGUMENTS)[1:]]
    return messages([*started, *ended], "tool_use")


TEXT, CITED_TEXT = {"type": "text", "text": ""}, {"type": "text", "text": "", "citations": []}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
WORD = {"type": "text_delta", "text": "a "}
THOUGHT = {"type": "thinking_delta", "thinking": "t"}
SIGNED = {"type": "signature_delta", "signature": "s"}
ARGUMENTS = {"type": "input_json_delta", "partial_json": "{}"}
FOUND = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "t",
    "encrypted_index": "e",
    "cited_text": "x",
}
CITED = {"type": "citations_delta", "citation": FOUND}

MESSAGES: dict[str, Make] = {
    "texts": blocks(TEXT, WORD),
    "calls": blocks(TOOL_USE, ARGUMENTS, reason="tool_use"),
    "thoughts": blocks(THINKING, THOUGHT, SIGNED),
    "searches": blocks(SEARCH, ARGUMENTS),
    "cited texts": blocks(CITED_TEXT, WORD, CITED),
    "unknown blocks": blocks({"type": "strange"}, {"type": "strange_delta"}),
    "pieces of a text": pieces(TEXT, WORD),
    "pieces of a thought": pieces(THINKING, THOUGHT),
    "pieces of a call": pieces(TOOL_USE, {"type": "input_json_delta", "partial_json": " "}, reason="tool_use"),
    "sources of a text": pieces(CITED_TEXT, CITED, WORD),
    "calls side by side": open_blocks,
    "pings": lambda count: messages([*block(0, TEXT, WORD), *[{"type": "ping"}] * count]),
    "counts": lambda count: messages(
        [*block(0, TEXT, WORD), *({"type": "message_delta", "delta": {}, "usage": {"output_tokens": n}} for n in range(count))]
    ),
}

# --- Chat ---


def chunk(delta: Document, reason: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": reason}
    return sse({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more})


def chat(body: Iterable[bytes], reason: str = "stop") -> Events:
    return [chunk({"role": "assistant", "content": ""}), *body, chunk({}, reason), b"data: [DONE]\n\n"]


def each(*deltas: Document, reason: str = "stop", **more: Any) -> Make:
    return lambda count: chat([chunk(delta, **more) for delta in deltas] * count, reason)


def call(index: int | None, name: str = "Bash", arguments: str = "{}") -> Document:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    about = {"id": f"call_{index}", "type": "function"} if name else {}
    return {"tool_calls": [{**({"index": index} if index is not None else {}), **about, "function": function}]}


def calls_side_by_side(count: int) -> Events:
    begun = [chunk(call(index, arguments="")) for index in range(count)]
    return chat([*begun, *[chunk(call(index, "", " ")) for index in range(count)] * 2], "tool_calls")


SOURCE = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": TITLE, "start_index": 0, "end_index": 1}}

CHAT: dict[str, Make] = {
    "pieces of a text": each({"content": "a"}),
    "pieces of a thought": each({"reasoning_content": "a"}),
    "thoughts between texts": each({"reasoning_content": "a"}, {"content": "b"}),
    "signed thoughts": each({"reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s", "index": 0}]}),
    "sealed thoughts": each({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x", "index": 0}]}),
    "refusals": each({"refusal": "x"}),
    "sources": each({"content": "a", "annotations": [SOURCE]}),
    "lists of sources": each({"content": "a"}, citations=["https://a.example"]),
    "pictures": each({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}),
    "counts": each({"content": "a"}, usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
    "choices": lambda count: chat(chunk({"content": "a"}, index=index) for index in range(count)),
    "calls": lambda count: chat((chunk(call(index)) for index in range(count)), "tool_calls"),
    "calls without a place": lambda count: chat((chunk(call(None)) for _ in range(count)), "tool_calls"),
    "calls side by side": calls_side_by_side,
    "calls in one event": lambda count: chat(
        [chunk({"tool_calls": [one for index in range(count) for one in call(index)["tool_calls"]]})], "tool_calls"
    ),
    "pieces of a call": lambda count: chat([chunk(call(0, arguments="")), *[chunk(call(0, "", " "))] * count], "tool_calls"),
}

# --- Responses ---


def responses(body: Iterable[Document], output: list[Document]) -> Events:
    response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": "m", "output": []}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events = [
        {"type": "response.created", "response": response},
        *body,
        {"type": "response.completed", "response": {**response, "status": "completed", "output": output, "usage": usage}},
    ]
    return [sse({**event, "sequence_number": number}) for number, event in enumerate(events)]


def item(index: int, announced: Document, done: Document, *events: Document) -> list[Document]:
    kind, about = done["type"], {"output_index": index}
    return [
        {"type": "response.output_item.added", **about, "item": announced},
        *({**event, **about, "item_id": f"{kind}_{index}"} for event in events),
        {"type": "response.output_item.done", **about, "item": done},
    ]


def written(count: int, *texts: str, sources: int = 0) -> list[Document]:
    annotations = [
        {"type": "url_citation", "url": "https://a.example", "title": TITLE, "start_index": 0, "end_index": 1}
    ] * sources
    events: list[Document] = []
    done: list[Document] = []
    for place in range(count):
        about, empty = {"content_index": place}, {"type": "output_text", "text": "", "annotations": []}
        done.append({**empty, "text": "".join(texts), "annotations": annotations})
        events.append({"type": "response.content_part.added", **about, "part": empty})
        events += [{"type": "response.output_text.delta", **about, "delta": text} for text in texts]
        events += [{"type": "response.output_text.annotation.added", **about, "annotation": one} for one in annotations]
        events.append({"type": "response.output_text.done", **about, "text": "".join(texts)})
        events.append({"type": "response.content_part.done", **about, "part": done[-1]})
    message = {"type": "message", "id": "message_0", "role": "assistant", "status": "completed"}
    return item(0, {**message, "content": []}, {**message, "content": done}, *events)


def reasoned(count: int) -> list[Document]:
    events: list[Document] = []
    for place in range(count):
        about, part = {"summary_index": place}, {"type": "summary_text", "text": "x"}
        events.append({"type": "response.reasoning_summary_part.added", **about, "part": {**part, "text": ""}})
        events.append({"type": "response.reasoning_summary_text.delta", **about, "delta": "x"})
        events.append({"type": "response.reasoning_summary_text.done", **about, "text": "x"})
        events.append({"type": "response.reasoning_summary_part.done", **about, "part": part})
    thought = {"type": "reasoning", "id": "reasoning_0", "encrypted_content": "e"}
    return item(0, {**thought, "summary": []}, {**thought, "summary": [{"type": "summary_text", "text": "x"}] * count}, *events)


def called(*pieces: str) -> list[Document]:
    kind = "response.function_call_arguments"
    function = {"type": "function_call", "id": "function_call_0", "call_id": "call_0", "name": "Bash", "status": "completed"}
    deltas = [{"type": f"{kind}.delta", "delta": piece} for piece in pieces]
    done = {**function, "arguments": "".join(pieces)}
    return item(0, {**function, "arguments": ""}, done, *deltas, {"type": f"{kind}.done", "arguments": "".join(pieces)})


def only(kind: str, **fields: Any) -> list[Document]:
    native = {"type": kind, "id": f"{kind}_0", "status": "completed", **fields}
    return item(0, native, native)


def at(index: int, events: list[Document]) -> list[Document]:
    """The events of item 0 as those of another."""
    raw = json.dumps(events).replace('"output_index": 0', f'"output_index": {index}')
    for name in ("message", "reasoning", "function_call", "call"):
        raw = raw.replace(f'"{name}_0"', f'"{name}_{index}"')
    found: list[Document] = json.loads(raw)
    return found


def items(one: list[Document]) -> Make:
    def make(count: int) -> Events:
        all = [at(index, one) for index in range(count)]
        return responses([event for events in all for event in events], [events[-1]["item"] for events in all])

    return make


def one_item(make: Callable[[int], list[Document]]) -> Make:
    return lambda count: responses(events := make(count), [events[-1]["item"]])


def items_side_by_side(count: int) -> Events:
    all = [at(index, called("{", "}")) for index in range(count)]
    return responses([event for row in zip(*all, strict=True) for event in row], [events[-1]["item"] for events in all])


RESPONSES: dict[str, Make] = {
    "messages": items(written(1, "a", "b")),
    "thoughts": items(reasoned(1)),
    "calls": items(called("{", "}")),
    "calls side by side": items_side_by_side,
    "searches": items(only("web_search_call", action={"type": "search", "query": "q"})),
    "calls of servers": items(only("mcp_call", name="n", arguments="{}", server_label="s", output="o")),
    "free calls": items(only("custom_tool_call", call_id="c", name="apply_patch", input="x")),
    "pictures": items(only("image_generation_call", result="AAAA")),
    "parts of a message": one_item(lambda count: written(count, "x")),
    "pieces of a text": one_item(lambda count: written(1, *["x"] * count)),
    "sources of a text": one_item(lambda count: written(1, "abc", sources=count)),
    "parts of a thought": one_item(reasoned),
    "pieces of a call": one_item(lambda count: called("{", *[" "] * count, "}")),
    "output told at the end alone": lambda count: responses(
        [], [at(index, written(1, "a"))[-1]["item"] for index in range(count)]
    ),
    "in progress": lambda count: responses(
        [{"type": "response.in_progress", "response": {"id": "resp_1", "object": "response", "output": []}}] * count,
        [written(1, "a")[-1]["item"]],
    ),
}

# --- Gemini ---


def candidate(*parts: Document, reason: str = "", **more: Any) -> bytes:
    given = {
        "content": {"role": "model", "parts": list(parts)},
        "index": 0,
        **({"finishReason": reason} if reason else {}),
        **more,
    }
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return sse({"candidates": [given], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"})


def gemini(*parts: Document, **more: Any) -> Make:
    return lambda count: [*[candidate(part, **more) for part in parts] * count, candidate({"text": ""}, reason="STOP")]


def in_one(part: Document) -> Make:
    return lambda count: [candidate(*[part] * count, reason="STOP")]


def grounded(count: int) -> Events:
    sources = [{"web": {"uri": f"https://a.example/{place}", "title": TITLE}} for place in range(count)]
    supports = [
        {"segment": {"startIndex": 4 * place, "endIndex": 4 * place + 3, "text": "abc"}, "groundingChunkIndices": [place]}
        for place in range(count)
    ]
    found = {"groundingChunks": sources, "groundingSupports": supports}
    return [candidate({"text": "abc " * count}, groundingMetadata=found, reason="STOP")]


CALL = {"functionCall": {"name": "Bash", "args": {}}}
SUPPORT = {"segment": {"startIndex": 0, "endIndex": 3, "text": "abc"}, "groundingChunkIndices": [0]}
GROUND = {"groundingChunks": [{"web": {"uri": "https://a.example", "title": TITLE}}], "groundingSupports": [SUPPORT]}

GEMINI: dict[str, Make] = {
    "pieces of a text": gemini({"text": "a"}),
    "thoughts between texts": gemini({"text": "a", "thought": True}, {"text": "b"}),
    "signed texts": gemini({"text": "a", "thoughtSignature": "AAAA"}),
    "calls": gemini(CALL),
    "calls in one event": in_one({**CALL, "thoughtSignature": "AAAA"}),
    "texts in one event": in_one({"text": "a"}),
    "pictures": gemini({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
    "code": gemini(
        {"executableCode": {"language": "PYTHON", "code": "x"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "y"}}
    ),
    "sources": gemini({"text": "abc "}, groundingMetadata=GROUND),
    "sources of a long text": grounded,
    "recitations": gemini({"text": "abc "}, citationMetadata={"citationSources": [{"startIndex": 0, "endIndex": 3, "uri": "u"}]}),
}

UNITS: dict[Dialect, dict[str, Make]] = {
    Dialect.MESSAGES: MESSAGES,
    Dialect.CHAT: CHAT,
    Dialect.RESPONSES: RESPONSES,
    Dialect.GEMINI: GEMINI,
}
FORMS = list(product(Dialect, (True, False), (True, False), (True, False)))
"""For whom, as a stream, with nobody taking part, in one read."""


def cases() -> list[Any]:
    """Each kind for some clients in some forms; for all of them where there is time for it."""
    found = []
    units = [(spoken, name) for spoken, of_dialect in UNITS.items() for name in of_dialect]
    for number, (spoken, name) in enumerate(units):
        for place, form in enumerate(FORMS):
            marks = () if place % 16 == number % 16 else (pytest.mark.long,)
            client, stream, quiet, at_once = form
            told = f"{'stream' if stream else 'whole'}{', passed on' if quiet else ''}{', at once' if at_once else ''}"
            found.append(pytest.param(spoken, name, *form, marks=marks, id=f"{name} of {spoken} for {client}, {told}"))
    return found


@pytest.mark.parametrize("spoken, name, client, stream, quiet, at_once", cases())
def test_very_many_pieces_are_linear_work(
    spoken: Dialect, name: str, client: Dialect, stream: bool, quiet: bool, at_once: bool
) -> None:
    endpoint = Endpoint(client, stream=stream if client is Dialect.GEMINI else None)

    def make(count: int) -> Events:
        events = UNITS[spoken][name](count)
        return [b"".join(events)] if at_once else events

    def told(reads: Events) -> int:
        asked = Asked(endpoint, stream, "0123", "m", 1, maker="acme")
        answer = Answer(asked, own=frozenset() if quiet else frozenset({"clock"}), quiet=quiet)
        answer.begin_round(Round(spoken, "acme"))
        size = sum(len(answer.feed(read)) for read in reads)
        assert answer.end_round().complete
        return size + sum(map(len, answer.finish()))

    assert_as_many_lines(told, make, 60)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("rounds", [1, 3])
def test_each_source_of_many_texts_stays_at_its_own(rounds: int, stream: bool) -> None:
    answer = Answer(Asked(Endpoint(Dialect.RESPONSES), stream, "0123", "m", 1, maker="acme"), own=frozenset({"clock"}))
    out = b""
    for number in range(rounds):
        answer.begin_round(Round(Dialect.MESSAGES, "acme"))
        texts = [one for place in range(4) for one in block(place, CITED_TEXT, {**WORD, "text": f"{number}.{place} "}, CITED)]
        out += b"".join(map(answer.feed, messages(texts)))
        answer.end_round()
        out += answer.feed(b"")
    out += b"".join(answer.finish())
    whole = json.loads(out.rpartition(b"data: ")[2]) if stream else json.loads(out)
    parts = [part for item in whole.get("response", whole)["output"] for part in item["content"]]
    cited = [part["text"][one["start_index"] : one["end_index"]].strip() for part in parts for one in part["annotations"]]
    assert cited == [f"{number}.{place}" for number in range(rounds) for place in range(4)]
