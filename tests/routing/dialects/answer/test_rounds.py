from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.said import GrowingText
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.dialects.finish import Endings
from tests.rig import wire
from tests.rig.reply import Asked, ToolUse
from tests.rig.reply import Reply as ProviderReply
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.answer.rounds import spoken


@pytest.mark.parametrize("text", ["", "abc", "世界😀", "\ud83d", "\ud83d\ude00 two halves", "\x00"])
def test_growing_text_gives_back_what_came(text: str) -> None:
    grown = GrowingText()
    for piece in text:
        grown.add(piece)
    assert str(grown) == text


def test_growing_text_takes_little_more_than_its_bytes() -> None:
    grown = GrowingText()
    for _ in range(100_000):
        grown.add("abcd")
    assert grown._text.__sizeof__() + grown._new.__sizeof__() < 500_000


@pytest.mark.parametrize("path", ["/v1/messages", "/v1beta/models/m:streamGenerateContent?alt=sse"])
def test_halves_of_a_character_in_two_events(path: str) -> None:
    """Some providers cut between the two escapes of one character; the output can be read, and the history be written."""
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    write: Any = rounds.messages_stream if path == "/v1/messages" else rounds.gemini_stream
    raws = []
    for number, word in ((1, "one"), (2, "ab")):
        raw = write(spoken(("text", word + "#" * 8)), number)
        place = raw.index(b'##"')
        raws.append(raw[:place] + b'\\ud83d"' + raw[place + 3 :])
    merger = answer_for(endpoint, stream=True)
    out, said = rounds.drive(merger, raws)
    assert said[0].text.count("\ud83d") == 1
    assert b"\\ud83d" in out
    assert rounds.sse_documents(out)


@pytest.mark.parametrize(
    "path, write",
    [("/v1/messages", rounds.messages_json), ("/v1beta/models/m:generateContent", rounds.gemini_json)],
)
def test_whole_answers_leave_at_the_end_alone(path: str, write: Any) -> None:
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    merger = answer_for(endpoint, stream=False, own_tools=rounds.OWN)
    for number in (1, 2, 3):
        out, said = rounds.feed_round(merger, write(spoken(("text", str(number))), number), rounds.bytewise)
        assert (out, said.complete) == (b"", True)
    waited = merger.keep_alive() * 3
    whole = json.loads(waited + b"".join(merger.finish()))
    assert json.dumps("1\n\n2\n\n3") in json.dumps(whole)


def test_without_a_round_that_counts_the_answer_is_an_error() -> None:
    endpoint = endpoint_of("POST", "/v1/messages")
    assert endpoint is not None
    merger = answer_for(endpoint, stream=False)
    out, said = rounds.drive(merger, [b"not JSON"])
    assert json.loads(out)["type"] == "error"
    assert not said[0].complete
    assert merger.id == ""


def test_a_whole_answer_without_end_is_none() -> None:
    endpoint = endpoint_of("POST", "/v1/messages")
    assert endpoint is not None
    merger = answer_for(endpoint, stream=False)
    merger.begin_round()
    for _ in range(100):
        merger.feed(b" " * (1 << 20))
    said = merger.end_round()
    assert said.error is not None
    assert not said.complete


PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/m:streamGenerateContent?alt=sse"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
def test_d17_every_round_and_the_end_are_told(path: str, stream: bool) -> None:
    """A line for how each round ended, and one for what the client reads, where that is written anew."""
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    asked = Asked(endpoint.dialect, "generate", stream=stream)
    replies = [ProviderReply("one"), ProviderReply("two", stop="length")]
    lines: list[str] = []
    merger = answer_for(endpoint, stream=stream, endings=Endings(log=lines.append))
    for reply in replies:
        merger.begin_round()
        merger.feed(b"".join(wire.events(reply, asked)) if stream else wire.whole(reply, asked))
        assert merger.end_round().complete
    b"".join(merger.finish())
    assert lines[0].startswith(f"{endpoint.dialect}: ")
    assert [line.split(" ", 2)[2] for line in lines[:2]] == ["taken as stop", "taken as length"]
    assert "written as" in lines[2]
    assert len(lines) == 3


@pytest.mark.parametrize("path", PATHS)
def test_an_error_instead_of_the_end_takes_nothing_back_that_was_said(path: str) -> None:
    """What the next call needs could not be written: the end never leaves, but the call that waited beside it does."""
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    reply = ProviderReply("Here it is.", calls=(ToolUse("Bash", {"command": "make"}),))
    merger = answer_for(endpoint, stream=True)
    merger.begin_round()
    out = merger.feed(b"".join(wire.events(reply, Asked(endpoint.dialect, "generate", stream=True))))
    merger.end_round()
    assert merger.finish()
    out += merger.fail(500, "could not be kept", "STORE_ERROR")
    assert out.count(b"make") == 1 or path == "/v1/responses"  # which tells it again where the call is over
    assert b"could not be kept" in out
    assert not any(word in out for word in (b"finishReason", b'"finish_reason":"', b"message_stop", b"response.completed"))


@given(
    st.lists(st.text(max_size=30) | st.sampled_from(["\ud83d", "\ude00", "😀", "中" * 9000, "a" * 40_000])), st.text(max_size=5)
)
def test_growing_text(pieces: list[str], first: str) -> None:
    """Asked for at any moment, and then it goes on growing."""
    growing = GrowingText(first)
    whole = first
    for number, piece in enumerate(pieces):
        growing.add(piece)
        whole += piece
        if number % 3 == 0:
            held = str(growing)
            assert held == whole
    assert str(growing) == whole


def test_growing_text_is_never_there_twice() -> None:
    tracemalloc.start()
    growing = GrowingText()
    for _ in range(500_000):
        growing.add("lorem ")
    tracemalloc.reset_peak()
    text = str(growing)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) == 3_000_000
    assert peak < 4_000_000
