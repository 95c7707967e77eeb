"""R11: Gemini's signatures through Chat, however they are spelled: kept, and given back to their maker alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects import calls
from routecodex.routing.dialects.seals import Seals
from routecodex.routing.dialects.signed import call_words, signed_fields, without_foreign, words_in
from routecodex.routing.dialects.translation import going_up
from routecodex.routing.values import Dialect, Endpoint, JsonObject
from tests.rig.asked import Asked
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.answer.own import answer_for

MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
ENDPOINT = Endpoint(CHAT)
WORD = "CsMBAdHtim8wordOfGemini=="
GOOGLE = {"google": {"thought_signature": WORD}}

SPELLINGS: dict[str, JsonObject] = {
    "google": {"extra_content": GOOGLE},
    "camel": {"extra_content": {"google": {"thoughtSignature": WORD}}},
    "bare": {"thought_signature": WORD},
    "bare camel": {"thoughtSignature": WORD},
    "gateway": {"provider_specific_fields": {"thought_signature": WORD}},
    "copilot": {"reasoning_opaque": WORD},
}


def _call(**more: object) -> JsonObject:
    return {"id": "t1", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}, **more}


def _history(call: JsonObject, **message: object) -> JsonObject:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call], **message},
        {"role": "tool", "tool_call_id": "t1", "content": "ok"},
    ]
    return {"model": "m", "messages": messages}


def _known(answer: str, maker: str = "google") -> Seals:
    seals = Seals()
    seals.note(maker, answer.encode())
    return seals


def _sent(body: JsonObject, seals: Seals, maker: str) -> JsonObject:
    """What a provider of the client's own dialect receives of this history."""
    call = calls.read_call(json.dumps(body).encode(), ENDPOINT)
    sent = json.loads(calls.for_target(call, "m", foreign=True, own=seals.made_by(maker)))
    assert isinstance(sent, dict)
    return sent


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("place", ["call", "function", "message"])
def test_the_same_dialect_keeps_it_for_its_maker_and_takes_it_off_for_others(name: str, place: str) -> None:
    signed = SPELLINGS[name]
    call = _call(**signed) if place == "call" else _call()
    if place == "function":
        call["function"] |= signed
    body = _history(call, **(signed if place == "message" else {}))
    seals = _known(json.dumps({"choices": [{"delta": signed}]}))
    assert _sent(body, seals, "google") == body
    bare = _sent(body, seals, "elsewhere")
    assert WORD not in json.dumps(bare)
    assert bare["messages"][1]["tool_calls"] == [_call()]


def test_what_is_nobodys_signature_leaves_with_the_host_that_knows_it() -> None:
    body = _history(_call(extra_content={"google": {"thought": True}}), provider_specific_fields={"citations": None})
    sent = _sent(body, Seals(), "elsewhere")["messages"][1]
    assert sent["tool_calls"] == [_call()]
    assert sent["provider_specific_fields"] == {"citations": None}


def _asked(client: Dialect, maker: str, *, stream: bool) -> Asked:
    return Asked(Endpoint(client, stream=stream if client is GEMINI else None), stream, "round-1", "m", 1, maker=maker)


def _stream(*deltas: JsonObject, reason: str = "tool_calls") -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks = [{"id": "chatcmpl-1", "model": "m", "choices": [choice]} for choice in choices]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _answer(client: Dialect, raw: bytes, spoken: Dialect, maker: str, *, stream: bool = False) -> JsonObject:
    """What this client holds of an answer that it asked for in this form."""
    translation = Translation(spoken, _asked(client, maker, stream=stream))
    told = translation.feed(raw) + translation.close()
    if stream:
        whole = answer_for(_asked(client, maker, stream=False).endpoint, stream=False)
        whole.begin_round()
        whole.feed(told)
        assert whole.end_round().complete
        told = b"".join(whole.finish())
    document = json.loads(told)
    assert isinstance(document, dict)
    return document


def _again(client: Dialect, answer: JsonObject, spoken: Dialect, maker: str) -> JsonObject:
    """The client's next call, with this answer in its history and the tool's result behind it, as this provider receives it."""
    match client:
        case Dialect.MESSAGES:
            use = next(block for block in answer["content"] if block["type"] == "tool_use")
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}
            said = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [result]}]
            body: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, *said]}
        case Dialect.CHAT:
            message = answer["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "ok"}
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, message, result]}
        case Dialect.RESPONSES:
            item = next(item for item in answer["output"] if item["type"] == "function_call")
            result = {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
            body = {"model": "m", "input": [{"role": "user", "content": "hi"}, *answer["output"], result]}
        case Dialect.GEMINI:
            content = answer["candidates"][0]["content"]
            call = next(part["functionCall"] for part in content["parts"] if "functionCall" in part)
            result = {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "ok"}}}
            user = {"role": "user", "parts": [{"text": "hi"}]}
            body = {"contents": [user, content, {"role": "user", "parts": [result]}]}
    endpoint = _asked(client, maker, stream=False).endpoint
    call = calls.read_call(json.dumps(body).encode(), endpoint)
    scrubbed = json.loads(calls.for_target(call, "m", foreign=True, own=Seals().made_by(maker)))
    written = going_up.translate(scrubbed, endpoint, spoken, model="m", stream=False, session="", maker=maker)
    return written.body


CLIENTS = [MESSAGES, RESPONSES, GEMINI]
STREAM = pytest.mark.parametrize("stream", [True, False])


@STREAM
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("place", ["call", "function"])
def test_a_chat_providers_signature_comes_back_to_it_from_every_client(
    client: Dialect, name: str, place: str, stream: bool
) -> None:
    entry: dict[str, Any] = {"index": 0, "id": "t1", "function": {"name": "read", "arguments": '{"a":1}'}}
    (entry if place == "call" else entry["function"]).update(SPELLINGS[name])
    answer = _answer(client, _stream({"role": "assistant"}, {"tool_calls": [entry]}), CHAT, "google", stream=stream)
    (call,) = _again(client, answer, CHAT, "google")["messages"][1]["tool_calls"]
    assert signed_fields(call if place == "call" else call["function"]) == SPELLINGS[name]
    assert WORD not in json.dumps(_again(client, answer, CHAT, "elsewhere"))


@STREAM
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["google", "copilot"])
@pytest.mark.parametrize("first", [True, False])
def test_a_signature_of_the_whole_message(client: Dialect, name: str, first: bool, stream: bool) -> None:
    """In the first delta or in the last one, before or behind the call."""
    entry = {"index": 0, "id": "t1", "function": {"name": "read", "arguments": '{"a":1}'}}
    signed, called = SPELLINGS[name], {"tool_calls": [entry]}
    deltas = [{**signed, "content": "so"}, called, signed] if first else [{"content": "so"}, signed, called]
    answer = _answer(client, _stream(*deltas), CHAT, "google", stream=stream)
    message = _again(client, answer, CHAT, "google")["messages"][1]
    assert signed_fields(message) == signed
    assert message["content"] == "so"
    assert WORD not in json.dumps(_again(client, answer, CHAT, "elsewhere"))


@STREAM
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_thinking_comes_back_to_its_host_in_the_field_that_it_knows(client: Dialect, field: str, stream: bool) -> None:
    entry = {"index": 0, "id": "t1", "function": {"name": "read", "arguments": '{"a":1}'}}
    answer = _answer(client, _stream({field: "I look."}, {"tool_calls": [entry]}), CHAT, "acme", stream=stream)
    assert _again(client, answer, CHAT, "acme")["messages"][1][field] == "I look."


@STREAM
def test_geminis_own_come_back_through_a_chat_client(stream: bool) -> None:
    part = {"functionCall": {"id": "t1", "name": "read", "args": {"a": 1}}, "thoughtSignature": WORD}
    candidate = {"content": {"role": "model", "parts": [{"text": "so"}, part]}, "finishReason": "STOP", "index": 0}
    raw = json.dumps({"candidates": [candidate], "responseId": "r1"}).encode()
    answer = _answer(CHAT, raw, GEMINI, "google", stream=stream)
    (called,) = answer["choices"][0]["message"]["tool_calls"]
    assert call_words(called)
    parts = _again(CHAT, answer, GEMINI, "google")["contents"][1]["parts"]
    assert next(part for part in parts if "functionCall" in part)["thoughtSignature"] == WORD
    assert WORD not in json.dumps(_again(CHAT, answer, GEMINI, "elsewhere"))


@pytest.mark.parametrize("holder", [{}, {"extra_content": 7}, {"thought_signature": [{}]}, {"extra_content": {"google": [1]}}])
def test_odd_shapes_hold_nothing(holder: JsonObject) -> None:
    assert words_in(holder) == []
    assert signed_fields(holder) == {}
    assert without_foreign({"a": 1, **holder}, ()) == {"a": 1}


def test_a_list_of_signatures_stays_only_where_all_are_the_targets() -> None:
    holder = {"provider_specific_fields": {"thought_signatures": ["one-of-google", "two-of-google"]}}
    assert words_in(holder) == ["one-of-google", "two-of-google"]
    assert without_foreign(holder, ("one-of-google", "two-of-google")) is holder
    assert without_foreign(holder, ("one-of-google",)) == {}
