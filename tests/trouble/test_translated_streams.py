"""An answer that is translated is the same wherever the network cuts it; one that breaks off is never an invented success."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from itertools import permutations

import pytest

from routecodex.routing.dialects.said import Said
from routecodex.routing.values import Dialect, Endpoint
from tests.conftest import LONG
from tests.rig.asked import Asked
from tests.rig.reply import Asked as RigAsked
from tests.rig.reply import Reply, ToolUse
from tests.rig.spoken import EVENTS
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.streams import sizes_of
from tests.routing.dialects.translation.vendor_streams import Stream, every_stream
from tests.sheet import seen

CHUNKINGS = 10_000 if LONG else 1_000
CUTS = 50
STREAMS = every_stream()
CLIENTS: dict[str, Endpoint] = {
    **{str(dialect): Endpoint(dialect, stream=True if dialect is Dialect.GEMINI else None) for dialect in Dialect},
    "gemini-array": Endpoint(Dialect.GEMINI, stream=True, json_array=True),
    "gemini-envelope": Endpoint(Dialect.GEMINI, stream=True, envelope=True),
}
FOUR = [CLIENTS[str(dialect)] for dialect in Dialect]
PAIRS = [pytest.param(CLIENTS[str(client)], spoken, id=f"{client}-on-{spoken}") for client, spoken in permutations(Dialect, 2)]


def asked_by(client: Endpoint, *, stream: bool = True) -> Asked:
    return Asked(client, stream, "round-1", "asked-model", 1, maker="acme", estimate=lambda: 11, include_usage=True)


def told(client: Endpoint, spoken: Dialect, chunks: Iterable[bytes], *, stream: bool = True) -> bytes:
    translation = Translation(spoken, asked_by(client, stream=stream))
    return b"".join([*map(translation.feed, chunks), translation.close()])


def randomly(raw: bytes, seed: int) -> Iterator[bytes]:
    sizes, place = sizes_of(random.Random(seed)), 0
    while place < len(raw):
        size = next(sizes)
        yield raw[place : place + size]
        place += size


def said_in(client: Endpoint, out: bytes) -> Said:
    """What our own merger reads in it, as the client would."""
    merger = answer_for(client, stream=True)
    merger.begin_round()
    merger.feed(out)
    return merger.end_round()


def test_random_chunkings_of_many_streams_are_told_in_the_same_bytes() -> None:
    assert len(STREAMS) >= 40
    whole = {(at, client): told(client, stream.spoken, [stream.raw]) for at, stream in enumerate(STREAMS) for client in FOUR}
    for number in range(CHUNKINGS):
        at = number % len(STREAMS)
        stream = STREAMS[at]
        for client in FOUR:
            assert told(client, stream.spoken, randomly(stream.raw, number)) == whole[at, client], (stream.id, number, client)
    seen("R1", f"{CHUNKINGS * 4:,} chunkings of {len(STREAMS)} streams in translation: the same bytes")


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_byte_by_byte_is_told_in_the_same_bytes(client: Endpoint) -> None:
    for stream in STREAMS:
        one_by_one = (stream.raw[at : at + 1] for at in range(len(stream.raw)))
        assert told(client, stream.spoken, one_by_one) == told(client, stream.spoken, [stream.raw]), stream.id


@pytest.mark.parametrize("stream", STREAMS, ids=[stream.id for stream in STREAMS])
def test_every_client_hears_the_same_answer_and_the_same_end(stream: Stream) -> None:
    """Texts may differ where a client's dialect has no place for a picture; words, calls and ends do not."""
    abroad = [client for client in FOUR if client.dialect is not stream.spoken]
    heard = {client.dialect: said_in(client, told(client, stream.spoken, [stream.raw])) for client in abroad}
    well = [said for said in heard.values() if said.complete]
    if stream.ends != "well":
        assert not well
        assert {said.error is not None for said in heard.values()} == {stream.ends == "error"}
        assert len({said.error.message for said in heard.values() if said.error is not None}) <= 1
        return
    if stream.id.endswith("MALFORMED_FUNCTION_CALL"):  # R15: a word for it that all clients know is there in none but its own
        assert heard.pop(Dialect.RESPONSES).error is not None
        assert [heard[dialect].finish for dialect in (Dialect.CHAT, Dialect.MESSAGES)] == ["stop", "stop"]
        return
    if any(said.finish == "error" for said in heard.values()) and Dialect.RESPONSES in heard:
        assert heard.pop(Dialect.RESPONSES).error is not None  # it has no other word for it
    assert all(said.complete and said.error is None for said in heard.values())
    if "picture" not in stream.id:
        assert len({said.text for said in well}) == 1
    assert len({tuple((call.name, canonical(call.arguments)) for call in said.calls) for said in well}) == 1
    assert len({(said.usage.input, said.usage.output) for said in well}) == 1
    of_messages = heard.pop(Dialect.MESSAGES).finish if Dialect.MESSAGES in heard else None
    (finish,) = {said.finish for said in heard.values()}
    # F02: a filter and an error are a stop sequence there, but for a refusal that was one already
    filtered = "stop" if stream.spoken is not Dialect.MESSAGES else finish
    assert of_messages is None or of_messages == {"content_filter": filtered, "error": "stop"}.get(finish, finish)


def canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)


# --- streams that break off -----------------------------------------------------------------------------------------------

RICH = Reply(
    text=("Ich sehe ", "mal — ünï ", "🎉", " 中", "文"),
    thinking='一步一步 think of "finishReason":"STOP" and [DONE] 😀',
    calls=(ToolUse("Bash", {"command": 'echo "message_stop" 中文 🎉'}, id="id_1"), ToolUse("pwd", {}, id="id_2")),
    cached_tokens=3,
)
_ENDS = {
    Dialect.MESSAGES: rb'"stop_reason":"tool_use"[^\r\n]*',
    Dialect.CHAT: rb'"finish_reason":"tool_calls"[^\r\n]*',
    Dialect.RESPONSES: rb'data: \{"type":"response.completed"[^\r\n]*',
    Dialect.GEMINI: rb'"finishReason":"STOP"[^\r\n]*',
}
"""The line that says that the answer is complete, and why."""


def stream_of(spoken: Dialect) -> tuple[bytes, int]:
    """A stream of everything, and how much of it must have come before anybody may call it complete."""
    raw = b"".join(EVENTS[spoken](RICH, RigAsked(spoken, "generate", stream=True, usage_chunk=True)))
    (found,) = re.finditer(_ENDS[spoken], raw)
    return raw, found.end()


def through_the_turn(client: Endpoint, spoken: Dialect, chunks: Iterable[bytes]) -> tuple[bytes, bool]:
    """What leaves for a client whose answer nothing of ours acts on, and whether it came to its own end."""
    passing, translation = answer_for(client, stream=True, quiet=True), Translation(spoken, asked_by(client))
    passing.begin_round()
    out = b"".join([passing.feed(told) for told in [*map(translation.feed, chunks), translation.close()] if told])
    if passing.end_round().complete:
        return out + b"".join(passing.finish()), translation.error is None
    return out + passing.fail(502, "It broke off.", "UPSTREAM_ERROR"), False


def check_ends_in_error(client: Endpoint, out: bytes) -> None:
    said = said_in(client, out)
    assert not said.complete
    assert said.error is not None
    assert "It broke off." in out.decode()


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_stream_that_is_cut_is_no_success(client: Endpoint, spoken: Dialect) -> None:
    raw, enough = stream_of(spoken)
    step = 1 if LONG else max(1, enough // CUTS)
    cuts = list(range(0, enough, step))
    assert len(cuts) >= CUTS
    for cut in cuts:
        out, complete = through_the_turn(client, spoken, [raw[:cut]])
        assert not complete, cut
        check_ends_in_error(client, out)
    out, complete = through_the_turn(client, spoken, [raw])
    assert complete
    assert said_in(client, out).finish == "tool_calls"
    seen("R4", f"{len(cuts)} cuts of {spoken} for {client.dialect}: 0 false ends")


@pytest.mark.parametrize("client, spoken", PAIRS)
def test_a_stream_that_is_cut_is_no_success_for_a_client_of_json(client: Endpoint, spoken: Dialect) -> None:
    raw, enough = stream_of(spoken)
    for cut in range(1, enough, max(1, enough // CUTS)):
        body = told(client, spoken, [raw[:cut]], stream=False)
        assert not body or json.loads(body)["error"]["message"], cut
    assert not json.loads(told(client, spoken, [raw], stream=False)).get("error")


def test_no_stream_of_any_vendor_is_complete_before_all_of_it_was_said() -> None:
    """Wherever it is cut: what is told as complete holds every word and call that the whole stream has."""
    ended = 0
    for at, stream in enumerate(STREAMS):
        chosen = random.Random(at)
        cuts = [chosen.randrange(len(stream.raw)) for _ in range(200 if LONG else 12)]
        client = FOUR[at % 4]
        whole = said_in(client, told(client, stream.spoken, [stream.raw]))
        for cut in cuts:
            out, complete = through_the_turn(client, stream.spoken, [stream.raw[:cut]])
            if not complete:
                continue
            said = said_in(client, out)
            assert (said.text, said.calls, said.finish) == (whole.text, whole.calls, whole.finish), (stream.id, cut)
            ended += 1
    assert ended


def splitting(raw: bytes) -> list[int]:
    """Cuts within what is more than a byte of one character, and on either side of it."""
    return [at for found in re.finditer(rb"[\x80-\xff]+|\\(?:u.{4}|.)", raw) for at in range(found.start(), found.end() + 1)]


@pytest.mark.parametrize("spoken", list(Dialect))
@pytest.mark.parametrize("client", list(CLIENTS.values()) if LONG else FOUR, ids=list(CLIENTS) if LONG else list(Dialect))
def test_no_character_is_damaged_at_any_cut(client: Endpoint, spoken: Dialect) -> None:
    words = ("汉字😀é", "👩‍👩‍👧 tiếng") if LONG else ("汉字😀é",)
    reply = Reply(text=words, thinking="思🤔", calls=(ToolUse("读", {"路径": "é😀"}, id="c1"),))
    raw = b"".join(EVENTS[spoken](reply, RigAsked(spoken, "generate", stream=True)))
    assert "😀".encode() in raw
    whole = told(client, spoken, [raw])
    assert "汉字😀é" in whole.decode()
    assert "路径" in whole.decode()
    for cut in range(len(raw) + 1) if LONG else splitting(raw):
        translation = Translation(spoken, asked_by(client))
        before = translation.feed(raw[:cut])
        assert "\ufffd" not in before.decode(), cut
        assert before + translation.feed(raw[cut:]) + translation.close() == whole, cut
        if LONG:
            assert "\ufffd" not in told(client, spoken, [raw[:cut]]).decode(), cut
