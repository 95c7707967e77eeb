"""An answer in which nobody takes part: most of it passes unread, and nothing is known less well for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.answer.said import Said
from routecodex.routing.dialects.sse import Events
from routecodex.routing.values import Dialect, Endpoint
from tests.bench.answers import EVENTS
from tests.rig.asked import Asked
from tests.routing.dialects.answer import openai_rounds as openai
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.rounds import spoken
from tests.routing.dialects.answer.streams import provider_streams

CHAT, MESSAGES, RESPONSES, GEMINI = Dialect.CHAT, Dialect.MESSAGES, Dialect.RESPONSES, Dialect.GEMINI
STREAMS = {name: (dialect, raw) for name, dialect, raw, _ in provider_streams()}
HARD = 'a "quoted" \\ word\\" and {"finish_reason":"stop","error":{}}, "tool_calls", [DONE]'
"""A text that holds what would be looked for."""


def answer_of(dialect: Dialect) -> Answer:
    endpoint = Endpoint(dialect, stream=True if dialect is GEMINI else None)
    return Answer(Asked(endpoint, True, "", "m", 0, include_usage=True), quiet=True)


def through(dialect: Dialect, reads: list[bytes], *, exact: bool = False) -> tuple[bytes, Said]:
    answer = answer_of(dialect)
    answer.begin_round(exact=exact)
    out = b"".join(answer.feed(read) for read in reads)
    said = answer.end_round()
    return out + b"".join(answer.finish()), said


def cuts(raw: bytes) -> Iterator[list[bytes]]:
    reader = Events()
    events = [unit.raw for unit in (*reader.feed(raw), *reader.close())]
    yield [raw]
    yield [raw[at : at + 1] for at in range(len(raw))]
    yield events
    for each in (2, 3):
        yield [b"".join(events[at : at + each]) for at in range(0, len(events), each)]
    yield [b"".join(events)[at : at + 700] for at in range(0, len(raw), 700)]


@pytest.mark.parametrize("name", STREAMS)
def test_what_fits_passes_byte_for_byte_and_is_known(name: str) -> None:
    dialect, raw = STREAMS[name]
    known = set()
    for reads in cuts(raw):
        out, said = through(dialect, reads)
        assert out == raw
        known.add((said.complete, said.finish, said.usage, said.id, len(said.calls), said.error))
    assert len(known) == 1, "how it was cut shows"
    assert next(iter(known))[0]


@pytest.mark.parametrize("dialect", EVENTS)
@pytest.mark.parametrize("each", [1, 3])
def test_what_passes_is_not_read(dialect: Dialect, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events, read = EVENTS[dialect](400), []
    feed = Events.feed

    def counted(reader: Events, data: bytes) -> list[object]:
        found = feed(reader, data)
        read.extend(found)
        return list(found)

    monkeypatch.setattr(Events, "feed", counted)
    out, said = through(dialect, [b"".join(events[at : at + each]) for at in range(0, len(events), each)])
    assert out == b"".join(events)
    assert said.complete
    assert len(read) <= 40


def chat(*deltas: object) -> list[bytes]:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    return [b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n" for choice in choices]


def chat_end(reason: str | None) -> list[bytes]:
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    return [b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n", b"data: [DONE]\n\n"]


CORRECTED = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'


def test_a_hard_text_ends_nothing() -> None:
    events = chat(*({"content": text} for text in ("a", "b", "c", HARD, HARD + "\\", '"', "\\", '\\"', HARD))) + chat_end("stop")
    assert through(CHAT, events)[0] == b"".join(events)


@pytest.mark.parametrize("arguments", ['{"text": "a \\"word\\" of \\\\ it"}', "{}", ""])
@pytest.mark.parametrize("split", [1, 7])
def test_a_wrong_reason_behind_calls_is_the_only_thing_that_changes(arguments: str, split: int) -> None:
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "Bash", "arguments": ""}}
    pieces = [{"index": 0, "function": {"arguments": arguments[at : at + split]}} for at in range(0, len(arguments), split)]
    said = chat({"content": "so"}, *({"tool_calls": [entry]} for entry in (call, *pieces)))
    for each in (1, 2, 5):
        sent = said + chat_end("stop")
        reads = [b"".join(sent[at : at + each]) for at in range(0, len(sent), each)]
        assert through(CHAT, reads)[0] == b"".join(said) + CORRECTED
        assert through(CHAT, reads, exact=True)[0] == b"".join(sent), "the client's own server has its own word"


def test_half_a_call_corrects_no_reason() -> None:
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "Bash", "arguments": '{"a": "b'}}
    events = chat({"tool_calls": [call]}) + chat_end("stop")
    assert through(CHAT, events)[0] == b"".join(events)


@pytest.mark.parametrize("word", ["tool_use", "end_turn"])
def test_the_reason_of_messages_follows_the_calls_however_it_is_cut(word: str) -> None:
    call = ("tool", '{"command": "ls -l \\"a\\""}')
    raw = rounds.messages_stream(spoken(("text", "so"), call, finish=word), 1)
    assert {_reason(through(MESSAGES, reads)[0]) for reads in cuts(raw)} == {"tool_use"}


def _reason(raw: bytes) -> str:
    documents = [json.loads(unit.data) for unit in Events().feed(raw)]
    return next(str(one["delta"]["stop_reason"]) for one in documents if one["type"] == "message_delta")


@pytest.mark.parametrize(
    "dialect, raw, behind",
    [
        pytest.param(CHAT, b"".join([*chat({"content": "a"}), chat_end("stop")[0]]), b"data: [DONE]\n\n", id="chat"),
        pytest.param(
            MESSAGES,
            rounds.messages_stream(spoken(("text", "a")), 1).partition(b"event: message_stop")[0],
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
            id="messages",
        ),
    ],
)
def test_a_stream_that_stops_behind_its_reason_has_ended(dialect: Dialect, raw: bytes, behind: bytes) -> None:
    assert through(dialect, [raw]) == (raw + behind, through(dialect, [raw + behind])[1])


def test_a_stream_that_stops_before_its_reason_is_an_error() -> None:
    raw = b"".join(chat({"content": "a"}, {"content": "b"}))
    out, said = through(CHAT, [raw])
    assert not said.complete
    assert out.startswith(raw)
    assert b'"error"' in out[len(raw) :]


def test_each_event_leaves_as_it_comes_its_end_among_them() -> None:
    for dialect, stream in (
        (CHAT, openai.chat_stream),
        (MESSAGES, rounds.messages_stream),
        (GEMINI, rounds.gemini_stream),
        (RESPONSES, openai.responses_stream),
    ):
        answer, raw = answer_of(dialect), stream(spoken(("text", "hello there, all of you")), 1)
        answer.begin_round()
        events = [unit.raw for unit in Events().feed(raw)]
        out = [answer.feed(event) for event in events]
        begun = next(place for place, piece in enumerate(out) if piece)
        assert out[begun] == b"".join(events[: begun + 1])
        assert out[begun + 1 :] == events[begun + 1 :]


def test_a_document_is_held_and_its_reason_corrected() -> None:
    call = {"id": "t", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    choice = {"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "stop"}
    document = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "x": 1}
    answer = Answer(Asked(Endpoint(CHAT), False, "", "m", 0), quiet=True)
    answer.begin_round()
    assert answer.feed(json.dumps(document).encode()) == b""
    assert answer.end_round().complete
    told = json.loads(b"".join(answer.finish()))
    assert told["choices"][0].pop("finish_reason") == "tool_calls"
    choice.pop("finish_reason")
    assert told == document
