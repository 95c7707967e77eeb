"""The fake provider writes what real ones write, and misbehaves exactly as told."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from routecodex.routing.values import Dialect
from tests.rig import wire
from tests.rig.behaviour import Behaviour, encode
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.provider import FakeProvider, Received

ANTHROPIC = "https://api.anthropic.com"
PATHS = {
    Dialect.MESSAGES: "/v1/messages",
    Dialect.CHAT: "/v1/chat/completions",
    Dialect.RESPONSES: "/v1/responses",
    Dialect.GEMINI: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
}
STREAM = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello there"}]}
WHOLE = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
THREE = wire.Reply(("one ", "two ", "three"))


def messages(provider: FakeProvider, body: dict[str, Any] = STREAM, **what: Any) -> Answer:
    return call(provider.url, "/v1/messages", body, **what)


# ---- what it writes ----


def joined(dialect: Dialect, answer: Answer) -> tuple[str, list[tuple[str, Any]], str]:
    """Text, tool calls and the reason of the end, as a plain reader would collect them from a stream."""
    values = [json.loads(data) for _, data in answer.events if data != "[DONE]"]
    text, names, arguments, end = "", [], [], ""
    for value in values:
        match dialect:
            case Dialect.MESSAGES:
                text += value.get("delta", {}).get("text", "")
                if value.get("content_block", {}).get("type") == "tool_use":
                    names.append(value["content_block"]["name"])
                    arguments.append("")
                elif "partial_json" in value.get("delta", {}):
                    arguments[-1] += value["delta"]["partial_json"]
                end = value.get("delta", {}).get("stop_reason", end)
            case Dialect.CHAT:
                for choice in value["choices"]:
                    text += choice["delta"].get("content", "")
                    for one in choice["delta"].get("tool_calls", ()):
                        if "name" in one["function"]:
                            names.append(one["function"]["name"])
                            arguments.append("")
                        arguments[one["index"]] += one["function"]["arguments"]
                    end = choice["finish_reason"] or end
            case Dialect.RESPONSES:
                text += value.get("delta", "") if value["type"] == "response.output_text.delta" else ""
                if value["type"] == "response.output_item.done" and value["item"]["type"] == "function_call":
                    names.append(value["item"]["name"])
                    arguments.append(value["item"]["arguments"])
                end = value["type"]
            case Dialect.GEMINI:
                for part in value["candidates"][0]["content"]["parts"]:
                    text += "" if part.get("thought") else part.get("text", "")
                    if "functionCall" in part:
                        names.append(part["functionCall"]["name"])
                        arguments.append(json.dumps(part["functionCall"]["args"]))
                end = value["candidates"][0].get("finishReason", end)
    return text, [(name, json.loads(written)) for name, written in zip(names, arguments, strict=True)], end


@pytest.mark.parametrize(
    "dialect, plain_end, call_end",
    [
        pytest.param(Dialect.MESSAGES, "end_turn", "tool_use", id="messages"),
        pytest.param(Dialect.CHAT, "stop", "tool_calls", id="chat"),
        pytest.param(Dialect.RESPONSES, "response.completed", "response.completed", id="responses"),
        pytest.param(Dialect.GEMINI, "STOP", "STOP", id="gemini"),
    ],
)
def test_a_stream_carries_the_reply(provider: FakeProvider, dialect: Dialect, plain_end: str, call_end: str) -> None:
    calls = (wire.ToolUse("read", {"path": "a/b.txt", "n": [1, 2]}), wire.ToolUse("run", {"cmd": "echo „ö“"}))
    provider.enqueue(
        Behaviour(reply=wire.Reply("Hello 世界, how are you?\n")),
        Behaviour(reply=wire.Reply("First. ", thinking="Let me think about that.", calls=calls)),
    )
    first, second = (call(provider.url, PATHS[dialect], STREAM) for _ in range(2))
    assert joined(dialect, first) == ("Hello 世界, how are you?\n", [], plain_end)
    assert joined(dialect, second) == ("First. ", [("read", calls[0].arguments), ("run", calls[1].arguments)], call_end)
    assert "Let me think" in second.text
    assert second.header("content-type") == "text/event-stream; charset=utf-8"


def test_the_terminal_events(provider: FakeProvider) -> None:
    answers = {dialect: call(provider.url, path, STREAM) for dialect, path in PATHS.items()}
    assert answers[Dialect.MESSAGES].events[-1][0] == "message_stop"
    assert answers[Dialect.CHAT].events[-1][1] == "[DONE]"
    numbers = [json.loads(data)["sequence_number"] for _, data in answers[Dialect.RESPONSES].events]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("path", ["/v1beta/models/g:streamGenerateContent", "/v1internal:streamGenerateContent"])
def test_gemini_without_sse_is_one_array(provider: FakeProvider, path: str) -> None:
    provider.enqueue(Behaviour(reply=THREE))
    chunks = call(provider.url, path, {"model": "g"}).json
    chunks = [chunk["response"] for chunk in chunks] if "v1internal" in path else chunks
    assert "".join(chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks) == "one two three"


@pytest.mark.parametrize(
    "path, expected",
    [
        ("/v1/messages/count_tokens", {"input_tokens": 25}),
        ("/v1/responses/input_tokens", {"object": "response.input_tokens", "input_tokens": 25}),
        ("/v1beta/models/g:countTokens", {"totalTokens": 25, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 25}]}),
        ("/api/event_logging/batch", {"ok": True}),
    ],
)
def test_other_paths(provider: FakeProvider, path: str, expected: object) -> None:
    assert call(provider.url, path, WHOLE).json == expected


def test_the_default_answer_names_what_was_asked(provider: FakeProvider) -> None:
    assert messages(provider, WHOLE).json["content"][0]["text"] == "m was asked: hello there"


def test_whole_answers_have_calls_and_usage(provider: FakeProvider) -> None:
    reply = wire.Reply(
        "Hi.", calls=(wire.ToolUse("run", {"a": 1}, id="id-7"),), input_tokens=100, cached_tokens=40, output_tokens=9
    )
    provider.standing = Behaviour(reply=reply)
    by_path = {dialect: call(provider.url, path.replace("streamG", "g"), WHOLE).json for dialect, path in PATHS.items()}
    one = by_path[Dialect.MESSAGES]
    assert one["content"][1] == {"type": "tool_use", "id": "id-7", "name": "run", "input": {"a": 1}}
    assert (one["usage"]["input_tokens"], one["usage"]["cache_read_input_tokens"], one["usage"]["output_tokens"]) == (60, 40, 9)
    chat = by_path[Dialect.CHAT]["choices"][0]["message"]["tool_calls"]
    assert chat == [{"id": "id-7", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}]
    assert [item["type"] for item in by_path[Dialect.RESPONSES]["output"]] == ["message", "function_call"]
    assert by_path[Dialect.GEMINI]["usageMetadata"]["totalTokenCount"] == 109


# ---- how it misbehaves ----


@pytest.mark.parametrize(
    "behaviour, ended, says",
    [
        pytest.param(Behaviour(before="close"), "closed", lambda a: a.status == 0, id="closes before the head"),
        pytest.param(Behaviour(before="reset"), "reset", lambda a: a.status == 0, id="resets before the head"),
        pytest.param(Behaviour(reply=THREE, cut_after=4), "closed", lambda a: len(a.events) == 4, id="cut after n events"),
        pytest.param(Behaviour(reply=THREE, cut_at=100), "closed", lambda a: len(a.body) == 100, id="cut at byte n"),
        pytest.param(
            Behaviour(reply=THREE, cut_after=4, ending="reset"), "reset", lambda a: len(a.events) == 4, id="reset after n events"
        ),
        pytest.param(
            Behaviour(reply=THREE, cut_after=4, ending="clean"),
            "complete",
            lambda a: len(a.events) == 4,
            id="well-formed HTTP, cut protocol",
        ),
        pytest.param(
            Behaviour(framing="eof"), "complete", lambda a: a.events[-1][0] == "message_stop", id="ends with the connection"
        ),
        pytest.param(Behaviour(form="json"), "complete", lambda a: a.json["type"] == "message", id="JSON to a stream call"),
        pytest.param(
            Behaviour(error="no", status=429, headers=(("retry-after", "7"),)),
            "complete",
            lambda a: (a.status, a.header("retry-after"), a.json["error"]["type"]) == (429, "7", "rate_limit_error"),
            id="429",
        ),
        pytest.param(
            Behaviour(status=529),
            "complete",
            lambda a: (a.status, a.json["error"]["type"]) == (529, "overloaded_error"),
            id="529",
        ),
        pytest.param(
            Behaviour(status=402), "complete", lambda a: (a.status, a.json["error"]["type"]) == (402, "billing_error"), id="402"
        ),
        pytest.param(
            Behaviour(error="oops"),
            "complete",
            lambda a: a.status == 200 and a.json["error"]["message"] == "oops",
            id="error in a 200",
        ),
        pytest.param(
            Behaviour(error="oops", error_after=0), "complete", lambda a: [n for n, _ in a.events] == ["error"], id="error first"
        ),
        pytest.param(
            Behaviour(error="oops", error_after=4),
            "complete",
            lambda a: [n for n, _ in a.events][3:] == ["content_block_delta", "error"],
            id="error after content",
        ),
        pytest.param(
            Behaviour(trailers=(("x-end", "yes"),)), "complete", lambda a: a.trailers == [("x-end", "yes")], id="trailers"
        ),
        pytest.param(
            Behaviour(encoding="gzip", claims="br"),
            "complete",
            lambda a: a.header("content-encoding") == "br" and a.body.startswith(b"\x1f\x8b"),
            id="wrong encoding",
        ),
        pytest.param(Behaviour(body=b"<html>"), "complete", lambda a: a.body == b"<html>", id="no JSON at all"),
        pytest.param(
            Behaviour(reply=THREE, events_per_packet=2),
            "complete",
            lambda a: len(a.chunks) == (len(a.events) + 1) // 2,
            id="two events per packet",
        ),
        pytest.param(
            Behaviour(reply=THREE, bytes_per_packet=1),
            "complete",
            lambda a: len(a.chunks) == len(a.body),
            id="one byte per packet",
        ),
        pytest.param(
            Behaviour(edit=lambda events: events[:-1]), "complete", lambda a: a.events[-1][0] == "message_delta", id="edited"
        ),
        pytest.param(Behaviour(reply=wire.Reply(("x ",) * 5000)), "complete", lambda a: len(a.events) > 5000, id="5,000 events"),
        pytest.param(Behaviour(reply=wire.Reply(("x" * 4_000_000,))), "complete", lambda a: len(a.body) > 4_000_000, id="4 MB"),
    ],
)
def test_misbehaviour(provider: FakeProvider, behaviour: Behaviour, ended: str, says: Callable[[Answer], bool]) -> None:
    provider.enqueue(behaviour)
    answer = messages(provider)
    assert answer.ended == ended
    assert says(answer), answer
    provider.wait_until(lambda: provider.calls[0].finished_at)
    assert messages(provider).events[-1][0] == "message_stop", "the next call is served as usual"


@pytest.mark.parametrize(
    "behaviour, status, chunks",
    [
        pytest.param(Behaviour(wait_s=0.3), 0, 0, id="silence before the head"),
        pytest.param(Behaviour(body_wait_s=0.3), 200, 0, id="silence after the head"),
        pytest.param(Behaviour(reply=THREE, stall_after=4, stall_s=0.3), 200, 4, id="stall after n events"),
        pytest.param(Behaviour(reply=THREE, stall_at=7, stall_s=0.3), 200, 1, id="stall at byte n"),
    ],
)
def test_silence(provider: FakeProvider, behaviour: Behaviour, status: int, chunks: int) -> None:
    """What comes before it is there while it lasts, and no more."""
    answer, looks = Answer(), list[tuple[int, int]]()

    def heard() -> bool:
        looks.append((answer.status, len(answer.chunks)))
        return len(looks) > 20 and looks[-1] == (status, chunks)

    provider.enqueue(dataclasses.replace(behaviour, until=heard))
    messages(provider, into=answer)
    assert max(looks) == (status, chunks)
    assert answer.ended == "complete"
    assert len(answer.chunks) > chunks


def test_silence_in_seconds(provider: FakeProvider) -> None:
    provider.enqueue(Behaviour(wait_s=0.3))
    assert messages(provider).head_s >= 0.29


def test_events_come_one_by_one(provider: FakeProvider) -> None:
    provider.enqueue(Behaviour(reply=THREE, delay_s=0.02))
    answer = messages(provider)
    assert len(answer.chunks) == len(answer.events)
    assert answer.took_s >= 0.02 * (len(answer.chunks) - 2)


@pytest.mark.parametrize(
    "behaviour", [Behaviour(before="hang"), Behaviour(reply=THREE, ending="hang")], ids=["at once", "at the end"]
)
def test_hanging(provider: FakeProvider, behaviour: Behaviour) -> None:
    provider.enqueue(behaviour)
    answer = messages(provider, within=0.3)
    assert answer.ended == "timeout"
    provider.wait_until(lambda: provider.calls[0].left_early)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("body", [STREAM, WHOLE], ids=["stream", "whole"])
def test_encodings_are_real_and_readable_at_once(encoding: str, body: dict[str, Any]) -> None:
    """mitmproxy's own decoder is the judge of the whole; the pieces must not wait for the end."""
    from mitmproxy.net import encoding as judge

    asked = wire.read_request("POST", "/v1/messages", body)
    assert asked is not None
    items = wire.events(THREE, asked) if body is STREAM else [wire.whole(THREE, asked)]
    encoded = encode(items, encoding)
    assert judge.decode(b"".join(encoded), encoding) == b"".join(items)
    assert all(encoded[: len(items)])


def test_refused_connections(provider: FakeProvider) -> None:
    with provider.refusing(), pytest.raises(ConnectionRefusedError):
        messages(provider)
    assert messages(provider).status == 200


def test_by_key_path_and_rule(provider: FakeProvider) -> None:
    def rule(received: Received) -> Behaviour | None:
        return Behaviour(status=503) if received.json["model"] == "down" else None

    provider.always(Behaviour(status=429), key="spent")
    provider.script(rule)
    provider.enqueue(Behaviour(status=401), key="old")
    provider.enqueue(Behaviour(status=500), path="/settings$")

    def status(path: str = "/v1/messages", key: str = "good", model: str = "m") -> int:
        return call(provider.url, path, WHOLE | {"model": model}, headers={"authorization": f"Bearer {key}"}).status

    assert [status(key="spent"), status(key="spent"), status(), status(model="down")] == [429, 429, 200, 503]
    assert [status(key="old"), status(key="old"), status("/api/settings"), status("/api/settings")] == [401, 200, 500, 200]


def test_a_rule_that_fails_is_told() -> None:
    def broken(_: Received) -> Behaviour:
        raise LookupError("a mistake in a test")

    provider = FakeProvider()
    provider.script(broken)
    provider.__enter__()
    assert messages(provider).ended == "closed"
    with pytest.raises(LookupError, match="a mistake in a test"):
        provider.__exit__()


def test_what_is_kept(provider: FakeProvider) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        for piece in (b'{"model":', b'"m"', b"}"):
            yield piece
            await asyncio.sleep(0.05)

    answer = call(provider.url, "/v1/messages?beta=true", slowly(), headers=[("X-Api-Key", "k"), ("x-two", "1"), ("x-two", "2")])
    (received,) = provider.requests
    assert answer.status == 200
    assert (received.json, received.key, received.path, received.query) == (
        {"model": "m"},
        "k",
        "/v1/messages",
        {"beta": ["true"]},
    )
    assert received.wire_body == b'9\r\n{"model":\r\n3\r\n"m"\r\n1\r\n}\r\n0\r\n\r\n'
    assert [value for name, value in received.headers if name == "x-two"] == ["1", "2"]
    assert received.raw in provider.all_bytes()
    assert (received.tls, received.connection) == (False, 1)


def test_half_a_request_is_kept(provider: FakeProvider) -> None:
    async def leave_in_the_middle() -> None:
        async with Http1(Route(provider.url)) as client:
            await client.write_raw(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 9\r\n\r\nhalf")

    asyncio.run(leave_in_the_middle())
    provider.wait_until(lambda: provider.all_bytes().rstrip().endswith(b"half"))
    assert provider.requests == []


def test_no_two_requests_have_one_number(provider: FakeProvider) -> None:
    """A client that holds two connections would else be told two messages of one id."""

    async def over_both() -> None:
        async with Http1(Route(provider.url)) as one, Http1(Route(provider.url)) as other:
            for _ in range(2):
                await asyncio.gather(*(client.send("GET", "/x") for client in (one, other)))

    asyncio.run(over_both())
    assert sorted(received.number for received in provider.requests) == [0, 1, 2, 3]
