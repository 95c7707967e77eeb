"""Where a text has it from, told in dialects that have a place for it, and named in the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.answer.gemini.abroad import place_of
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.translation.opaque import MARK
from routecodex.routing.dialects.translation.wrapped import MARKED, unsealed
from routecodex.routing.values import Dialect, Endpoint
from tests.routing.dialects.answer.talks import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Way,
    answer_for,
    candidate,
    chunk,
    drive,
    entry,
    read,
    sse,
)

HOLD_THEM = [Way(dialect, stream) for dialect in (CHAT, MESSAGES, RESPONSES) for stream in (True, False)]
DONE = b"data: [DONE]\n\n"


def found(url: str, start: int, end: int) -> dict[str, Any]:
    return {"type": "url_citation", "url_citation": {"url": url, "title": "T", "start_index": start, "end_index": end}}


def chat(text: str, *annotations: dict[str, Any], reason: str = "stop", **more: Any) -> bytes:
    told = [chunk({"annotations": list(annotations)})] if annotations else []
    return sse(chunk({"role": "assistant", "content": text}), *told, chunk({}, reason, **more)) + DONE


def gemini(text: str, grounding: dict[str, Any]) -> bytes:
    document = candidate({"text": text}, reason="STOP")
    document["candidates"][0]["groundingMetadata"] = grounding
    return sse(document)


def messages(*citations: dict[str, Any]) -> bytes:
    def event(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": kind, **fields}

    return sse(
        event("message_start", message={"id": "msg_1", "model": "m", "role": "assistant", "usage": {"input_tokens": 1}}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "So it is. "}),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block={"type": "text", "text": "", "citations": []}),
        *(event("content_block_delta", index=1, delta={"type": "citations_delta", "citation": one}) for one in citations),
        event("content_block_delta", index=1, delta={"type": "text_delta", "text": "Grüße."}),
        event("content_block_stop", index=1),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
        event("message_stop"),
        name=True,
    )


def spans(client: Way, text: str) -> str:
    """Messages has no place for where in the text it is."""
    return "" if client.dialect is MESSAGES else text


@pytest.mark.parametrize("client", HOLD_THEM, ids=str)
def test_places_are_those_of_the_text_that_the_client_sees(client: Way) -> None:
    """Two rounds of other dialects: the second one's text goes on behind a blank line, and its own places move with it."""
    other = MESSAGES if client.dialect is CHAT else CHAT
    source = {"type": "web_search_result_location", "url": "https://b.example", "title": "B", "cited_text": "b"}
    if other is CHAT:
        rounds = [
            (CHAT, chat("Eins.", found("https://a.example", 0, 4))),
            (CHAT, chat("Zwei.", found("https://b.example", 0, 4))),
        ]
        cited = [("https://a.example", "Eins"), ("https://b.example", "Zwei")]
    else:
        metadata = {"groundingChunks": [{"web": {"uri": "https://a.example"}}], "groundingSupports": []}
        rounds = [(GEMINI, gemini("Eins.", metadata)), (MESSAGES, messages(source))]
        cited = [("https://a.example", "Eins."), ("https://b.example", "Grüße.")]
    answer = answer_for(client)
    out, _ = drive(answer, rounds)
    assert read(client, out).cited == [(url, spans(client, text)) for url, text in cited]
    assert "citations" not in answer.left_out


@pytest.mark.parametrize(
    "segment, place",
    [
        ({"startIndex": 0, "endIndex": 7, "text": "Grüße"}, (0, 5)),
        ({"endIndex": 7}, (0, 5)),
        ({"startIndex": 8, "endIndex": 11, "text": "und"}, (6, 9)),
        ({"startIndex": 90, "endIndex": 99, "text": "mehr"}, (10, 14)),
        ({"startIndex": 3, "endIndex": 6, "text": "mehr"}, (10, 14)),
        ({"startIndex": 90, "endIndex": 99, "text": "Grüße"}, (0, 5)),
        ({"startIndex": 90, "endIndex": 99}, (-1, -1)),
        ({"startIndex": "0", "endIndex": None, "text": "nirgends"}, (-1, -1)),
        ({}, (-1, -1)),
    ],
)
def test_google_counts_bytes(segment: dict[str, Any], place: tuple[int, int]) -> None:
    assert place_of(segment, "Grüße und mehr") == place


@pytest.mark.parametrize("client", HOLD_THEM, ids=str)
def test_lists_beside_the_choices_come_again_and_again_and_are_told_once(client: Way) -> None:
    beside = {
        "citations": ["https://a.example", "https://b.example"],
        "search_results": [{"url": "https://a.example", "title": "A"}],
    }
    raw = sse(
        {**chunk({"role": "assistant", "content": ""}), **beside},
        {**chunk({"content": "Eins"}), **beside},
        {**chunk({"content": " zwei."}), **beside},
        {**chunk({}, "stop"), **beside},
        {**chunk({}), "choices": [], **beside},
    )
    out, _ = drive(answer_for(client), [(CHAT, raw + DONE)])
    if client.dialect is CHAT:
        assert out.count(b"https://b.example") == (5 if client.stream else 1)
        return
    told = read(client, out)
    assert told.cited == [(f"https://{name}.example", spans(client, "Eins zwei.")) for name in "ab"]


@pytest.mark.parametrize("client", HOLD_THEM, ids=str)
def test_what_has_no_address_or_comes_too_late_is_named(client: Way) -> None:
    document = {"type": "char_location", "document_title": "notes.txt", "document_index": 0, "cited_text": "x"}
    answer = answer_for(client)
    out, _ = drive(answer, [(MESSAGES, messages(document))])
    if client.dialect is not MESSAGES:
        assert answer.left_out == "citations (notes.txt)"
        assert read(client, out).cited == []
    behind = chunk({"tool_calls": [entry(0, "{}", "read", "call_1")]})
    raw = sse(chunk({"content": "Eins"}), behind, chunk({}, "tool_calls", citations=["https://a.example"])) + DONE
    answer = answer_for(client)
    drive(answer, [(CHAT, raw)])
    late = client.dialect in (MESSAGES, RESPONSES) and client.stream
    assert answer.left_out == ("citations" if late else "")


@pytest.mark.parametrize("client", [Way(GEMINI), Way(GEMINI, stream=False)], ids=str)
def test_a_dialect_without_a_place_for_them(client: Way) -> None:
    answer = answer_for(client)
    drive(answer, [(CHAT, chat("Eins.", found("https://a.example", 0, 4)))])
    assert answer.left_out == "citations"


def other_choice(text: str) -> dict[str, Any]:
    return {**chunk({"content": text}), "choices": [{"index": 1, "delta": {"content": text}, "finish_reason": None}]}


@pytest.mark.parametrize("client", [Way(MESSAGES), Way(RESPONSES), Way(GEMINI)], ids=str)
@pytest.mark.parametrize("stream", [True, False])
def test_what_only_its_own_dialect_can_say_is_named(client: Way, stream: bool) -> None:
    logprobs = {"logprobs": {"content": [{"token": "a", "logprob": -0.1}]}}
    first = chunk({"role": "assistant", "content": "a"})
    first["choices"][0] |= logprobs
    raw = sse(
        first, other_choice("b"), chunk({"audio": {"id": "au", "data": "UklG", "transcript": " spoken"}}), chunk({}, "stop")
    )
    client = Way(client.dialect, stream)
    answer = answer_for(client)
    out, [said] = drive(answer, [(CHAT, raw + DONE)])
    assert read(client, out).text == "a spoken" == said.text
    assert answer.left_out == "log probabilities, several candidates, sound (its transcript is told)"
    home = answer_for(Way(CHAT, stream))
    out, _ = drive(home, [(CHAT, raw + DONE)])
    assert home.left_out == ""
    if not stream:
        choice, other = json.loads(out)["choices"]
        assert choice["logprobs"] == logprobs["logprobs"]
        assert other["message"]["content"] == "b"


@pytest.mark.parametrize("client", [Way(MESSAGES), Way(RESPONSES), Way(GEMINI)], ids=str)
def test_what_one_host_puts_into_two_choices_is_one_candidate(client: Way) -> None:
    use = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = ({"role": "assistant", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [use]})
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"} for message in messages]
    answer = answer_for(client)
    told = read(client, drive(answer, [(CHAT, json.dumps({"id": "c", "model": "m", "choices": choices}).encode())])[0])
    assert (told.text, told.calls, answer.left_out) == ("a", [("read", {})], "")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "client", [Way(dialect, stream) for dialect in (CHAT, MESSAGES, RESPONSES) for stream in (True, False)], ids=str
)
def test_what_only_gemini_can_say_is_named(client: Way, whole: bool) -> None:
    document = candidate({"text": "a"}, reason="STOP")
    document["candidates"][0] |= {"logprobsResult": {"chosenCandidates": [{"token": "a"}]}}
    document["candidates"].append({"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"})
    answer = answer_for(client)
    out, _ = drive(answer, [(GEMINI, json.dumps(document).encode() if whole else sse(document))])
    assert read(client, out).text == "a"
    assert sorted(answer.left_out.split(", ")) == ["log probabilities", "several candidates"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "client", [Way(dialect, stream) for dialect in (CHAT, MESSAGES, GEMINI) for stream in (True, False)], ids=str
)
def test_log_probabilities_of_responses_are_named(client: Way, whole: bool) -> None:
    part = {"type": "output_text", "text": "a", "annotations": [], "logprobs": [{"token": "a", "logprob": -0.1}]}
    item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    response = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    raw = json.dumps(response).encode() if whole else sse({"type": "response.completed", "response": response}, name=True)
    answer = answer_for(client)
    out, _ = drive(answer, [(RESPONSES, raw)])
    assert (read(client, out).text, answer.left_out) == ("a", "log probabilities")


def test_a_thought_among_the_content_keeps_its_form_and_its_seal() -> None:
    """Databricks wants it back as it was."""
    pieces = (("I th", ""), ("ink.", ""), ("", "EqQBsigned"))
    parts = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": one, "signature": seal}]} for one, seal in pieces]
    raw = sse(*(chunk({"content": [part]}) for part in parts), chunk({"content": "so"}), chunk({}, "stop"))
    for stream in (True, False):
        _, [said] = drive(answer_for(Way(CHAT, stream)), [(CHAT, raw + DONE)])
        whole = {"type": "summary_text", "text": "I think.", "signature": "EqQBsigned"}
        [message] = said.native
        assert message["content"] == [{"type": "reasoning", "summary": [whole]}, {"type": "text", "text": "so"}]


def test_a_document_tells_a_call_without_arguments_as_json() -> None:
    raw = sse(chunk({"role": "assistant", "tool_calls": [entry(0, "", "now", "call_1")]}), chunk({}, "tool_calls"))
    out, [said] = drive(answer_for(Way(CHAT, stream=False)), [(CHAT, raw + DONE)])
    assert read(Way(CHAT, stream=False), out).calls == [("now", {})]
    assert said.native[0]["tool_calls"][0]["function"]["arguments"] == "", "a history holds what the stream said"  # type: ignore[index,call-overload]


def test_a_document_holds_what_a_stream_said_beside_its_deltas() -> None:
    """In pieces: lists go on, sound too, and of all else the newest word counts."""

    def one(delta: dict[str, Any], reason: str | None = None, /, **beside: Any) -> dict[str, Any]:
        document = chunk(delta, reason)
        document["choices"][0] |= beside
        return document

    def logprobs(*tokens: str) -> dict[str, Any]:
        return {"logprobs": {"content": [{"token": token} for token in tokens], "refusal": None}}

    raw = sse(
        {**one({}), "id": "", "model": "", "choices": [], "prompt_filter_results": []},
        one({"role": "assistant", "content": "a"}, **logprobs("a")),
        one({"content": "b"}, **logprobs("b"), content_filter_results={"hate": {"filtered": False}}),
        one({"audio": {"id": "au", "data": "Uk"}}, logprobs=None),
        one({"audio": {"data": "lG", "transcript": "so"}}, content_filter_results={"violence": {"filtered": False}}),
        one({"audio": {"transcript": " be it"}}),
        one({}, "stop", stop_reason="###"),
    )
    document = json.loads(drive(answer_for(Way(CHAT, stream=False)), [(CHAT, raw + DONE)])[0])
    assert (document["id"], document["model"]) == ("chatcmpl-9", "m")
    [choice] = document["choices"]
    assert {name: choice[name] for name in choice if name != "message"} == {
        "index": 0,
        **logprobs("a", "b"),
        "content_filter_results": {"hate": {"filtered": False}, "violence": {"filtered": False}},
        "stop_reason": "###",
        "finish_reason": "stop",
    }
    assert choice["message"]["audio"] == {"id": "au", "data": "UklG", "transcript": "so be it"}


@pytest.mark.parametrize(
    "client", [Way(dialect, stream) for dialect in (CHAT, MESSAGES, RESPONSES) for stream in (True, False)], ids=str
)
def test_pictures_and_sound_that_are_told_in_a_word_are_named(client: Way) -> None:
    answer = answer_for(client)
    parts = ({"inlineData": {"mimeType": kind, "data": "UklG"}} for kind in ("audio/wav", "image/png"))
    drive(answer, [(GEMINI, sse(candidate(*parts, reason="STOP")))])
    pictures = ", pictures of the model's own (told as a word)" if client.dialect is MESSAGES else ""
    assert answer.left_out == f"sound (told as a word){pictures}"


def test_anthropic_never_sees_a_source_of_ours() -> None:
    """It would look for what it never found."""
    out, _ = drive(answer_for(Way(MESSAGES, stream=False)), [(CHAT, chat("Eins.", found("https://a.example", 0, 4)))])
    content = json.loads(out)["content"]
    assert content[0]["citations"][0]["encrypted_index"] == MARK
    theirs = {"type": "text", "text": "b", "citations": [{"type": "web_search_result_location", "encrypted_index": "own"}]}
    body = {"model": "m", "messages": [{"role": "assistant", "content": [*content, theirs]}]}
    raw = json.dumps(body).encode()
    assert MARKED in raw
    call = unsealed(read_call(raw, Endpoint(MESSAGES)))
    assert call.body["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "Eins."}, theirs]}]


# --- what tools of the provider's did -------------------------------------------------------------------------------------

SEARCHED = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
SEARCHED |= {"action": {"type": "search", "query": "x", "sources": [{"type": "url", "url": "https://a.example"}]}}
OPENED = {**SEARCHED, "id": "ws_2", "action": {"type": "open_page", "url": "https://a.example/p"}}
RAN = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "container_id": "c", "code": "print(1)"}
RAN |= {"outputs": [{"type": "logs", "logs": "1\n"}]}
ASKED = {"id": "mcp_1", "type": "mcp_call", "status": "failed", "server_label": "s", "name": "look", "arguments": '{"a": 1}'}
ASKED |= {
    "output": None,
    "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]},
    "approval_request_id": None,
}
LISTED = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []}
SAID = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
SAID |= {"content": [{"type": "output_text", "text": "Eins.", "annotations": []}]}
ITEMS = [LISTED, SEARCHED, OPENED, RAN, ASKED, SAID]


def responses(stream: bool) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    whole = {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": ITEMS, "usage": usage}
    if not stream:
        return json.dumps(whole).encode()
    items = [
        {"type": f"response.output_item.{kind}", "output_index": index, "item": item}
        for index, item in enumerate(ITEMS)
        for kind in ("added", "done")
    ]
    return sse(
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        *items,
        {"type": "response.completed", "response": whole},
        name=True,
    )


def use(index: int, kind: str, id: str, name: str, **given: Any) -> list[dict[str, Any]]:
    block = {"type": kind, "id": id, "name": name, "input": {}, **({"server_name": "s"} if kind == "mcp_tool_use" else {})}
    written = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": written},
        {"type": "content_block_stop", "index": index},
    ]


def result(index: int, kind: str, id: str, content: Any, **more: Any) -> list[dict[str, Any]]:
    block = {"type": kind, "tool_use_id": id, "content": content, **more}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_stop", "index": index},
    ]


LINK = {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "Eo8C", "page_age": None}
SERVED = sse(
    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "role": "assistant", "usage": {"input_tokens": 1}}},
    *use(0, "server_tool_use", "srvtoolu_1", "web_search", query="x"),
    *use(1, "mcp_tool_use", "mcptoolu_1", "look", a=1),
    *result(2, "web_search_tool_result", "srvtoolu_1", [LINK]),
    *result(3, "mcp_tool_result", "mcptoolu_1", [{"type": "text", "text": "no"}], is_error=True),
    *use(4, "server_tool_use", "srvtoolu_2", "code_execution", code="print(1)"),
    *result(
        5,
        "code_execution_tool_result",
        "srvtoolu_2",
        {"type": "code_execution_result", "stdout": "1\n", "stderr": "", "return_code": 0, "content": []},
    ),
    *use(6, "server_tool_use", "srvtoolu_3", "tool_search_tool_bm25", query="y"),
    {"type": "content_block_start", "index": 7, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "Eins."}},
    {"type": "content_block_stop", "index": 7},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
    name=True,
)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", [Way(MESSAGES), Way(MESSAGES, stream=False)], ids=str)
def test_openais_own_tools_for_a_client_of_anthropics(client: Way, stream: bool) -> None:
    answer = answer_for(client)
    told = read(client, drive(answer, [(RESPONSES, responses(stream))])[0])
    assert [(one["type"], one["name"], one["input"]) for one in told.ran] == [
        ("server_tool_use", "web_search", {"query": "x"}),
        ("server_tool_use", "web_fetch", {"url": "https://a.example/p"}),
        ("server_tool_use", "code_execution", {"code": "print(1)"}),
        ("mcp_tool_use", "look", {"a": 1}),
    ]
    search, page, code, asked = (one["content"] for one in told.ran)
    assert [one["url"] for one in search] == ["https://a.example"]
    assert (page["url"], code["stdout"], told.ran[3]["failed"]) == ("https://a.example/p", "1\n", True)
    assert asked == [{"type": "text", "text": "no"}]
    assert (told.text, told.calls, told.finish) == ("Eins.", [], "end_turn")
    assert answer.left_out == "results of tools that the provider ran (mcp_list_tools)"


@pytest.mark.parametrize("client", [Way(RESPONSES), Way(RESPONSES, stream=False)], ids=str)
def test_anthropics_own_tools_for_a_client_of_openais(client: Way) -> None:
    answer = answer_for(client)
    told = read(client, drive(answer, [(MESSAGES, SERVED)])[0])
    search, asked, code = told.ran
    assert search["action"] == {"type": "search", "query": "x", "sources": [{"type": "url", "url": "https://a.example"}]}
    assert (asked["status"], asked["name"], asked["server_label"], asked["arguments"]) == ("failed", "look", "s", '{"a":1}')
    assert (asked["error"]["content"], code["code"]) == ([{"type": "text", "text": "no"}], "print(1)")
    assert code["outputs"][0]["logs"] == "1\n"
    assert (told.text, told.finish) == ("Eins.", "completed")
    assert answer.left_out == "results of tools that the provider ran (tool_search_tool_bm25)"


@pytest.mark.parametrize("client", [Way(dialect, stream) for dialect in (CHAT, GEMINI) for stream in (True, False)], ids=str)
def test_dialects_without_such_tools_name_them(client: Way) -> None:
    answer = answer_for(client)
    assert read(client, drive(answer, [(MESSAGES, SERVED)])[0]).text == "Eins."
    assert answer.left_out == "results of tools that the provider ran (web_search, look, code_execution, tool_search_tool_bm25)"


@pytest.mark.parametrize("client", [Way(MESSAGES, stream=False), Way(RESPONSES, stream=False)], ids=str)
def test_nobody_is_sent_what_was_made_of_anothers_tools(client: Way) -> None:
    foreign = (RESPONSES, responses(False)) if client.dialect is MESSAGES else (MESSAGES, SERVED)
    answer = json.loads(drive(answer_for(client), [foreign])[0])
    items = answer["output"] if "output" in answer else [{"role": "assistant", "content": answer["content"]}]
    name = "input" if "output" in answer else "messages"
    call = unsealed(read_call(json.dumps({"model": "m", name: items}).encode(), Endpoint(client.dialect)))
    kept = [item for one in call.body[name] for item in ([one] if name == "input" else one["content"])]  # type: ignore[attr-defined]
    assert [item["type"] for item in kept] == (["message"] if name == "input" else ["text"])


@pytest.mark.parametrize("dialect", [CHAT, GEMINI])
def test_what_a_stream_cannot_say_of_a_document_is_named(dialect: Dialect) -> None:
    one = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop", "logprobs": {"content": [1]}}
    document: dict[str, Any] = {"id": "c", "model": "m", "choices": [one, {**one, "index": 1}]}
    if dialect is GEMINI:
        document = candidate({"text": "a"}, reason="STOP")
        document["candidates"][0]["logprobsResult"] = {"chosenCandidates": []}
        document["candidates"].append({"index": 1, "content": {"parts": [{"text": "b"}]}})
    answer = answer_for(Way(dialect))
    drive(answer, [(dialect, json.dumps(document).encode())])
    assert sorted(answer.left_out.split(", ")) == ["log probabilities", "several candidates"]
