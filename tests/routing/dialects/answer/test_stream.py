"""Bytes as chunks: the same ones, however they were cut."""

from __future__ import annotations

import pytest

from routecodex.routing.dialects.answer.chat.read import Reader as ChatReader
from routecodex.routing.dialects.answer.events import Chunk, Done, Failed, Piece
from routecodex.routing.dialects.answer.gemini.read import Reader as GeminiReader
from routecodex.routing.dialects.answer.messages.read import Reader as MessagesReader
from routecodex.routing.dialects.answer.responses.read import Reader as ResponsesReader
from routecodex.routing.dialects.answer.stream import WHOLE_BYTES, Source
from routecodex.routing.errors import BadAnswer
from tests.routing.dialects.answer import rounds
from tests.routing.dialects.answer.rounds import spoken
from tests.routing.dialects.answer.talks import CHAT, GEMINI, MESSAGES, RESPONSES, WAYS, WRITTEN, Way, chunk, sse

READERS = {CHAT: ChatReader, MESSAGES: MessagesReader, RESPONSES: ResponsesReader, GEMINI: GeminiReader}
ROUND = spoken(("thinking", "hm"), ("text", "Grüße 😀" * 20), ("tool", '{"a": 1}'))


def chunks_of(way: Way, raw: bytes, cut: str = "whole", *, quiet: bool = False) -> list[Chunk]:
    source = Source(READERS[way.dialect](), quiet=READERS[way.dialect] if quiet else None)
    return [chunk for piece in rounds.WAYS[cut](raw) for chunk in source.feed(piece)] + source.close()


@pytest.mark.parametrize("cut", rounds.WAYS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_chunks_are_the_rounds_bytes_however_they_were_cut(way: Way, cut: str) -> None:
    raw = way.written(ROUND, 1)
    for extra in (b"", b"\xef\xbb\xbf"):
        chunks = chunks_of(way, extra + raw, cut)
        assert b"".join(chunk.raw for chunk in chunks) == extra + raw
        whole = chunks_of(way, extra + raw)
        said = [[type(event).__name__ for event in chunk.events] for chunk in chunks if chunk.events]
        assert said == [[type(event).__name__ for event in chunk.events] for chunk in whole if chunk.events]


@pytest.mark.parametrize("way", [Way(CHAT), Way(MESSAGES)], ids=str)
def test_the_quiet_one_passes_text_unread_and_reads_the_rest(way: Way) -> None:
    raw = WRITTEN[way.dialect, True](ROUND, 1)
    events = [block + b"\n\n" for block in raw.split(b"\n\n")[:-1]]
    source = Source(READERS[way.dialect](), quiet=READERS[way.dialect])
    chunks: list[Chunk] = []
    passed: list[bytes] = []
    for event in events:
        if source.passes(event):
            passed.append(event)
        else:
            chunks += source.feed(event)
    assert len(passed) > 20
    assert not any(b"tool_use" in event or b'finish_reason": "' in event for event in passed)
    read = [type(event).__name__ for chunk in chunks for event in chunk.events]
    assert read[-1] == "Done"
    assert {"Opened", "Ended"} <= set(read)


@pytest.mark.parametrize("way", [Way(CHAT), Way(MESSAGES)], ids=str)
def test_what_the_end_cut_in_two_is_left_out(way: Way) -> None:
    raw = WRITTEN[way.dialect, True](ROUND, 1)
    for end in range(1, 200, 7):
        out = b"".join(chunk.raw for chunk in chunks_of(way, raw[:-end]))
        assert raw.startswith(out)
        assert out.endswith(b"\n\n") or out == raw[:-end]


def test_a_last_event_without_its_blank_line_counts() -> None:
    chunks = chunks_of(Way(CHAT), WRITTEN[CHAT, True](ROUND, 1)[:-2])
    assert chunks[-1].form == "ragged"
    assert type(chunks[-1].events[-1]) is Done


@pytest.mark.parametrize("raw", [b"<html><title>busy</title></html>", b"{", b"null", b"{}", b'{"error": {"message": "no"}}'])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_what_is_no_answer_is_an_error(way: Way, raw: bytes) -> None:
    events = [event for chunk in chunks_of(way, raw) for event in chunk.events]
    assert raw == b"null" or [type(event) for event in events] == [Failed]


def test_a_document_is_bounded() -> None:
    source = Source(ChatReader())
    source.feed(b"{" + b" " * (WHOLE_BYTES - 1))
    with pytest.raises(BadAnswer, match="64 MiB"):
        source.feed(b" ")


def test_what_is_no_utf8_is_made_it_in_events_documents_and_what_leaves_unread() -> None:
    text, broken, mended = chunk({"content": "a"}), b"\xe4\xbd", "\ufffd".encode()
    raw = [sse({**text, "x": "?"}).replace(b'"a"', b'"' + part + b'"') for part in (b"a", broken, mended)]
    source = Source(ChatReader(), quiet=True)
    assert b"".join(one.raw for one in source.feed(raw[0])) == raw[0]
    list(source.feed(raw[0]))
    assert (source.passes(raw[0]), source.passes(raw[1]), source.passes(raw[2])) == (True, False, True)
    [told] = source.feed(raw[1])
    assert (told.raw, [event.text for event in told.events if isinstance(event, Piece)]) == (raw[2], ["\ufffd"])
    assert [one.raw for one in source.feed(b": \xff\n\n")] == [b": \xef\xbf\xbd\n\n"]
    whole = Source(ChatReader())
    list(whole.feed(b'{"choices":[{"message":{"content":"\xff"},"finish_reason":"stop"}]}'))
    [document] = whole.close()
    assert document.raw.decode().count("\ufffd") == 1
    assert not any(isinstance(event, Failed) for event in document.events)


def test_nothing_that_says_something_passes_behind_the_end() -> None:
    end = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    more = b'event: ping\ndata: {"type":"ping"}\n\n' + end
    source = Source(MessagesReader())
    assert (
        b"".join(one.raw for one in source.feed(end + more + b": fine\n\ndata: [DONE]\n\n"))
        == end + b": fine\n\ndata: [DONE]\n\n"
    )
