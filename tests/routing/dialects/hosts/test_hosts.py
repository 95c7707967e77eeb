"""Answers as hosts send them, through every way an answer takes: passed, merged, told in another dialect, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.answer.machine import Answer
from routecodex.routing.dialects.finish import read_finish, write_finish
from routecodex.routing.dialects.sse import ArrayItems, Events, headers_for
from routecodex.routing.values import Dialect, Endpoint
from tests.conftest import LONG
from tests.rig.asked import Asked
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.hosts import chat, gemini, messages, responses
from tests.routing.dialects.hosts.sample import CUT, Expected, Sample
from tests.system.grammar import error_at_end, read

SAMPLES: tuple[Sample, ...] = (*chat.SAMPLES, *messages.SAMPLES, *responses.SAMPLES, *gemini.SAMPLES)
CLIENTS = {dialect: Endpoint(dialect, stream=True if dialect is Dialect.GEMINI else None) for dialect in Dialect}
PATHS = ("pass", "merge", "other form", *(f"to {client}" for client in Dialect))

ROWS = [
    pytest.param(sample, path, id=f"{sample.name}: {path}")
    for sample in SAMPLES
    for path in PATHS
    if path != f"to {sample.dialect}"
]


@pytest.mark.parametrize("sample, path", ROWS)
def test_what_the_client_sees(sample: Sample, path: str) -> None:
    _check(sample, path)


def test_the_table_holds_what_there_is() -> None:
    names = [sample.name for sample in SAMPLES]
    assert len(set(names)) == len(names) >= 150


def _check(sample: Sample, path: str) -> None:
    if path == "pass":
        _pass(sample)
    elif path == "merge":
        _merge(sample)
    elif path == "other form":
        _other_form(sample)
    else:
        for streamed in (True, False):
            _translate(sample, Dialect(path.removeprefix("to ")), streamed)


# --- the same dialect, nobody takes part ------------------------------------------------------------------------------------


def _pass(sample: Sample) -> None:
    expected, streamed = sample.expected, sample.form == "stream"
    for pieces in ([sample.raw], [sample.raw[at : at + 1] for at in range(len(sample.raw))]):
        answer = answer_for(sample.endpoint, stream=streamed, quiet=True)
        answer.begin_round(exact=True)
        out = b"".join([answer.feed(piece) for piece in pieces])
        said = answer.end_round()
        if expected.error is not None:
            assert not said.complete
            assert expected.error == CUT or (said.error is not None and expected.error in said.error.message)
            assert sample.raw.startswith(out)
            continue
        assert said.complete
        out += b"".join(answer.finish())
        assert _as_sent(sample, out)


ENDS = {
    Dialect.CHAT: b"data: [DONE]\n\n",
    Dialect.MESSAGES: b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
}
"""What is written where it is missing behind the reason."""


def _as_sent(sample: Sample, out: bytes) -> bool:
    sent = sample.raw if sample.expected.sent is None else sample.expected.sent
    lacks_end = sample.form == "stream" and b"[DONE]" not in sent and b"message_stop" not in sent
    return out == (sent + ENDS.get(sample.dialect, b"") if lacks_end else sent)


# --- the same dialect, somebody takes part ------------------------------------------------------------------------------------


def _merge(sample: Sample) -> None:
    expected, streamed = sample.expected, sample.form == "stream"
    merger = answer_for(sample.endpoint, stream=streamed, include_usage=True)
    merger.begin_round(exact=True)
    out = merger.feed(sample.raw)
    said = merger.end_round()
    if expected.error is not None:
        assert not said.complete
        assert expected.error == CUT or (said.error is not None and expected.error in said.error.message)
        return
    assert said.complete
    assert said.error is None
    assert said.text == expected.text
    assert [(call.name, json.loads(call.arguments or "{}")) for call in _whole_calls(sample, said.calls)] == list(expected.calls)
    assert said.finish == expected.finish
    if expected.input is not None:
        assert (said.usage.input, said.usage.output) == (expected.input, expected.output)
    assert _as_sent(sample, out + b"".join(merger.finish()))


def _whole_calls(sample: Sample, calls: Any) -> list[Any]:
    """A half call at the limit stands in the history as it came; nobody runs it."""
    found = list(calls)
    return found if sample.expected.finish != "length" else found[: len(sample.expected.calls)]


# --- the same dialect in the form that was not asked for ----------------------------------------------------------------------


def _other_form(sample: Sample) -> None:
    """What its client gets says as much to a third one as the host's own bytes do."""
    expected, streamed = sample.expected, sample.form != "stream"
    told = [_in_other_form(sample, size) for size in (len(sample.raw), 1)]
    assert told[0] == told[1], "it depends on where the bytes were cut"
    out, said = told[0]
    if expected.error == CUT:
        assert not said
        return
    if expected.error is not None:
        _, message = error_at_end(sample.dialect, out, streamed)
        assert expected.error in message
        return
    assert said
    if expected.half or expected.media:
        assert expected.media.encode() in out
        return
    third = Dialect.CHAT if sample.dialect is Dialect.MESSAGES else Dialect.MESSAGES
    asked = Asked(CLIENTS[third], False, "round-1", "asked-model", 1, maker="acme")
    first, second = [read(third, _told_of(sample.dialect, asked, raw, len(raw)), False) for raw in (sample.raw, out)]
    for one in (first, second):
        one.thinking, one.signatures, one.texts, one.id = _words("".join(one.thinking)), [], 0, ""
        one.finish = str(read_finish(one.finish))
    assert second == first


def _in_other_form(sample: Sample, size: int) -> tuple[bytes, bool]:
    streamed = sample.form != "stream"
    envelope, stream = sample.endpoint.envelope, streamed if sample.dialect is Dialect.GEMINI else None
    endpoint = Endpoint(sample.dialect, stream=stream, envelope=envelope)
    asked = Asked(endpoint, streamed, "", "m-1", 1, maker="acme", include_usage=True)
    answer = Answer(asked)
    answer.begin_round()
    out = [answer.feed(sample.raw[at : at + size]) for at in range(0, len(sample.raw), size)]
    said = answer.end_round()
    return b"".join(out + list(answer.finish())) if said.complete or said.error else b"".join(out), said.complete


# --- another dialect --------------------------------------------------------------------------------------------------------


def _translate(sample: Sample, client: Dialect, streamed: bool) -> None:
    expected = sample.expected
    endpoint = CLIENTS[client] if streamed else replace(CLIENTS[client], stream=False if client is Dialect.GEMINI else None)
    asked = Asked(endpoint, streamed, "round-1", "asked-model", 1, maker="acme", include_usage=True)
    out = _told(sample, asked, len(sample.raw))
    assert _told(sample, asked, _cut(sample, client)) == out, "it depends on where the bytes were cut"
    if expected.error == CUT:
        assert not _is_complete(endpoint, out, streamed)
        return
    if expected.error is not None:
        _, message = error_at_end(client, out, streamed)
        assert expected.error in message
        return
    assert client is Dialect.GEMINI or all(address.encode() in out for address in expected.cited)
    if expected.media:
        assert expected.media.encode() in out or b"[image" in out
        return
    if expected.half and streamed:
        assert _reason_at_end(client, out) == write_finish(expected.finish, client)
        return
    told = read(client, out, streamed)
    assert told.text == (expected.text if expected.abroad is None else expected.abroad)
    assert _words("".join(told.thinking)) == _words(expected.thinking)
    assert told.calls == list(expected.calls)
    assert told.finish == expected.words.get(client, write_finish(expected.finish, client))
    assert len(set(told.ids)) == len(told.ids) == len(expected.calls)
    assert all(told.ids)
    if expected.input is not None and expected.output is not None:
        beside = expected.cached + expected.written if client is Dialect.MESSAGES else 0
        hidden = expected.reasoning if client is Dialect.GEMINI else 0
        assert (told.input, told.output) == (expected.input - beside, expected.output - hidden)


def _cut(sample: Sample, client: Dialect) -> int:
    """Each answer comes byte by byte for one client, in turn, and in pieces of seven bytes for the others; where there is time,
    byte by byte for all."""
    others = [dialect for dialect in Dialect if dialect is not sample.dialect]
    return 1 if LONG or client is others[SAMPLES.index(sample) % len(others)] else 7


def _told(sample: Sample, asked: Asked, size: int) -> bytes:
    return _told_of(sample.dialect, asked, sample.raw, size)


def _told_of(spoken: Dialect, asked: Asked, raw: bytes, size: int) -> bytes:
    translation = Translation(spoken, asked)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    return b"".join([translation.feed(piece) for piece in pieces]) + translation.close()


def _is_complete(endpoint: Endpoint, out: bytes, streamed: bool) -> bool:
    merger = answer_for(endpoint, stream=streamed)
    merger.begin_round()
    merger.feed(out)
    return merger.end_round().complete


def _reason_at_end(client: Dialect, out: bytes) -> str:
    document: Any = [json.loads(event.data) for event in Events().feed(out) if event.data not in (b"", b"[DONE]")]
    match client:
        case Dialect.MESSAGES:
            return str(document[-2]["delta"]["stop_reason"])
        case Dialect.CHAT:
            return str(document[-2]["choices"][0]["finish_reason"])
        case Dialect.RESPONSES:
            return str(document[-1]["response"]["incomplete_details"]["reason"])
        case Dialect.GEMINI:
            return str(document[-1]["candidates"][0]["finishReason"])


def _words(text: str) -> list[str]:
    return text.split()


# --- the samples themselves -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_is_what_it_says(sample: Sample) -> None:
    reader = ArrayItems() if sample.endpoint.json_array else Events()
    if sample.form == "stream":
        events = [*reader.feed(sample.raw), *reader.close()]
        assert b"".join(event.raw for event in events) == sample.raw
    assert read_finish(write_finish(sample.expected.finish, sample.dialect)) is not None
    assert isinstance(sample.expected, Expected)
    assert headers_for(sample.form == "stream")
