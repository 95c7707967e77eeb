from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.sse import ArrayItems, Event, Events, write_event
from routecodex.routing.errors import BadAnswer
from tests.rig.work import assert_linear, calls_of
from tests.routing.dialects.answer.streams import Reader, array_streams, in_three_ways, provider_streams, read


@pytest.mark.parametrize("raw, pairs", [pytest.param(raw, pairs, id=id) for id, _, raw, pairs in provider_streams()])
def test_every_providers_stream_however_it_is_cut(raw: bytes, pairs: list[tuple[str, bytes]]) -> None:
    events = in_three_ways(Events, raw)
    assert [(event.name, event.data) for event in events if event.data] == pairs


@pytest.mark.parametrize("raw, items", [pytest.param(raw, items, id=id) for id, raw, items in array_streams()])
def test_every_array_however_it_is_cut(raw: bytes, items: list[bytes]) -> None:
    events = in_three_ways(ArrayItems, raw)
    assert [event.data for event in events if event.data] == items


@pytest.mark.parametrize(
    "raw, expected",
    [
        pytest.param(b"data: a\n\n", [("", b"a")], id="one"),
        pytest.param(b"data:  a\n\n", [("", b" a")], id="one space is taken off"),
        pytest.param(b"data\n\n", [("", b"")], id="a field without a colon"),
        pytest.param(b"data: a\ndata:\ndata: b\n\n", [("", b"a\n\nb")], id="several data lines"),
        pytest.param(b"event: x\nevent: y\ndata: a\n\n", [("y", b"a")], id="the last name holds"),
        pytest.param(b"data: a\nevent: x\n\n", [("x", b"a")], id="the name behind the data"),
        pytest.param(b": c\n\ndata: a\n\n", [("", b""), ("", b"a")], id="a comment alone"),
        pytest.param(b"\n\ndata: a\n\n", [("", b""), ("", b""), ("", b"a")], id="blank lines before"),
        pytest.param(b"data: a\r\n\ndata: b\n\r\ndata: c\r\r", [("", b"a"), ("", b"b"), ("", b"c")], id="mixed line ends"),
        pytest.param(b"data: a\n\rdata: b\n\n", [("", b"a"), ("", b"b")], id="a line feed, then a bare return"),
        pytest.param(b"data: \xef\xbb\xbfa\n\n", [("", b"\xef\xbb\xbfa")], id="a mark inside the data stays"),
        pytest.param(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [("", b"a"), ("", b"")], id="a second mark makes an unknown field"),
        pytest.param(b"event: \xff\ndata: \xff\n\n", [("\ufffd", b"\xff")], id="bytes that are no text"),
        pytest.param(b"data: a", [("", b"a")], id="no line end at all"),
        pytest.param(b"event: x\ndata: a\r", [("x", b"a")], id="the last return waits for the end"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_lines(raw: bytes, expected: list[tuple[str, bytes]]) -> None:
    assert [(event.name, event.data) for event in in_three_ways(Events, raw)] == expected


def test_an_event_leaves_with_its_last_byte() -> None:
    """Nothing waits for the next event: an answer must not lag behind its provider."""
    for raw in (b"event: x\ndata: a\n\n", b"data: a\r\n\r\n", b"data: a\r\r", b"\n"):
        reader = Events()
        assert [reader.feed(raw[place : place + 1]) for place in range(len(raw) - 1)] == [[]] * (len(raw) - 1)
        assert len(reader.feed(raw[-1:])) == 1
    items = ArrayItems()
    assert items.feed(b'[{"a":1') == []
    assert items.feed(b"}") == [Event("", b'{"a":1}', b'[{"a":1}')]


@given(
    st.lists(
        st.sampled_from([b"data", b"event", b":", b" ", b"x", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", "é".encode()]), max_size=40
    )
)
@settings(max_examples=300, deadline=None)
def test_any_mixture_of_marks(pieces: list[bytes]) -> None:
    in_three_ways(Events, b"".join(pieces), cuts=2)


@given(st.lists(st.sampled_from([b"{", b"}", b"[", b"]", b'"', b"\\", b",", b" ", b"1", b'"a":']), max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_mixture_of_brackets(pieces: list[bytes]) -> None:
    """Events before the fault, then the fault: the same wherever it is cut."""
    raw = b"".join(pieces)
    assert _outcome(raw, len(raw) or 1) == _outcome(raw, 1) == _outcome(raw, 3)


def _outcome(raw: bytes, size: int) -> tuple[list[Event], bool]:
    reader, events = ArrayItems(), []
    try:
        for place in range(0, len(raw), size):
            events += reader.feed(raw[place : place + size])
        return events + reader.close(), False
    except BadAnswer:
        return events, True


@pytest.mark.parametrize(
    "raw", [b"<html>[{", b"[1,2]", b"[[1]]", b'["a"]', b"]", b'[{"a":1} x {"b":2}]', b'"a" [{}]', b'[{"a":' + b"[" * 2000]
)
def test_what_is_no_array_of_objects(raw: bytes) -> None:
    assert _outcome(raw, 1)[1]
    assert _outcome(raw, len(raw))[1]


def test_what_follows_the_array_is_kept_but_is_no_item() -> None:
    events = in_three_ways(ArrayItems, b'[{"a":1}]\n\n[{"b":2}]')
    assert [event.data for event in events if event.data] == [b'{"a":1}']


def test_a_cut_item_is_given_as_it_is() -> None:
    events = in_three_ways(ArrayItems, b'[{"a":1},\n{"b":"half')
    assert [event.data for event in events] == [b'{"a":1}', b'{"b":"half']


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    "make, good, long", [(Events, b"data: a\n\n", b"data: " + b"x" * 95), (ArrayItems, b'[{"a":1}', b',{"b":"' + b"x" * 95)]
)
def test_the_limit_comes_after_the_events_before_it(
    make: type[Events] | type[ArrayItems], good: bytes, long: bytes, size: int
) -> None:
    reader, raw = make(limit_bytes=100), good + long
    events, caught = _until_broken(reader, raw, size)
    assert [event.data for event in events] == [good.removeprefix(b"data: ").removeprefix(b"[").rstrip(b"\n")]
    assert caught.status == 502
    for again in (reader.close, lambda: reader.feed(b"\n\n")):
        with pytest.raises(BadAnswer):
            again()


def _until_broken(reader: Reader, raw: bytes, size: int) -> tuple[list[Event], BadAnswer]:
    events: list[Event] = []
    try:
        for place in range(0, len(raw) + size, size):
            events += reader.feed(raw[place : place + size])
    except BadAnswer as error:
        return events, error
    raise AssertionError("the limit was never reached")


def test_the_limit_is_the_same_for_an_event_that_comes_whole() -> None:
    exact = b"data: " + b"x" * 92 + b"\n\n"
    assert len(Events(limit_bytes=100).feed(exact)) == 1
    with pytest.raises(BadAnswer):
        Events(limit_bytes=99).feed(exact)
    item = b'[{"a":"' + b"x" * 91 + b'"}'
    assert len(ArrayItems(limit_bytes=100).feed(item)) == 1
    with pytest.raises(BadAnswer):
        ArrayItems(limit_bytes=99).feed(item)


def test_what_is_nested_deeper_than_anybody_reads_is_refused() -> None:
    def nested(depth: int) -> bytes:
        return b'[{"a":' + b"[" * (depth - 2) + b"]" * (depth - 2) + b"}"

    assert len(ArrayItems().feed(nested(1024))) == 1
    with pytest.raises(BadAnswer, match="nested too deeply"):
        ArrayItems().feed(nested(1025))


@pytest.mark.parametrize("make, head", [(Events, b"data: "), (ArrayItems, b'[{"a":"')])
def test_a_large_event_in_small_pieces_is_linear_work(make: type[Events] | type[ArrayItems], head: bytes) -> None:
    def work(pieces: int) -> None:
        reader = make()
        reader.feed(head)
        for _ in range(pieces):
            reader.feed(b'x\\"' * 341)

    assert_linear(work, int, 1_000)


@pytest.mark.parametrize(
    "make, raw",
    [
        (
            Events,
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"text":" hi"}}\n\n' * 3_000,
        ),
        (ArrayItems, b"[" + b",\r\n".join([b'{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}'] * 3_000)),
    ],
)
def test_small_events_are_little_work(make: type[Events] | type[ArrayItems], raw: bytes) -> None:
    calls = calls_of(lambda: read(make(), raw, iter([65536] * 100)))
    assert len(read(make(), raw, iter([65536] * 100))) == 3_000
    assert calls < 3_000 * 80, "calls of functions, those of C included"


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])), st.sampled_from(["", "message_stop"]))
def test_what_is_written_is_read_again(text: str, name: str) -> None:
    data = text.encode()
    [event] = Events().feed(write_event(data, name)) or [Event("", b"", b"")]
    assert event.name == name
    assert event.data == data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
