"""A stream cut anywhere by the network says the same: R1 (cut events), R2 (cut characters), R3 (long lines)."""

from __future__ import annotations

import os
import random

import pytest

from routecodex.routing.dialects.answer.machine import is_content
from routecodex.routing.dialects.sse import ArrayItems, Events
from routecodex.routing.errors import BadAnswer
from routecodex.routing.values import Answer, Dialect, ToolCall
from tests.routing.dialects.answer.own import write_stream
from tests.routing.dialects.answer.streams import EVENTS, array_streams, provider_streams, read, sizes_of
from tests.sheet import seen

CUTS = 10_000 if os.environ.get("ROUTECODEX_TESTS") == "long" else 500
MIB = 1024 * 1024


def _own_streams() -> list[tuple[str, type[Events] | type[ArrayItems], bytes]]:
    answer = Answer("答案 😀 " * 40, (ToolCall("call_1", "读取", '{"路径": "/tmp/é"}'),))
    about = {"id": "resp_1", "model": "m", "created": 1}
    streams: list[tuple[str, type[Events] | type[ArrayItems], bytes]] = [
        (f"own-{dialect}", Events, b"".join(write_stream(dialect, answer, **about, include_usage=True)))  # type: ignore[arg-type]
        for dialect in Dialect
    ]
    array = b"".join(write_stream(Dialect.GEMINI, answer, **about, json_array=True))  # type: ignore[arg-type]
    return [*streams, ("own-array", ArrayItems, array)]


STREAMS: list[tuple[str, type[Events] | type[ArrayItems], bytes]] = [
    *((id, Events, raw) for id, _, raw, _ in provider_streams()),
    *((id, ArrayItems, raw) for id, raw, _ in array_streams()),
    *_own_streams(),
]


def test_r01_random_chunks_of_many_streams() -> None:
    assert len(STREAMS) >= 40
    whole = [read(make(), raw, iter((len(raw),))) for _, make, raw in STREAMS]
    assert all(whole)
    for number in range(CUTS):
        at = number % len(STREAMS)
        id, make, raw = STREAMS[at]
        assert read(make(), raw, sizes_of(random.Random(number))) == whole[at], (id, number)
    seen("R1", f"{CUTS:,} chunkings of {len(STREAMS)} streams: the same events")


def _long_stream(dialect: Dialect) -> bytes:
    text = ("汉字😀é" * 400)[:1300]
    return b"".join(write_stream(dialect, Answer(text), id="resp_1", model="m", created=1))[:4096]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_r02_no_character_is_broken_at_any_cut(dialect: Dialect) -> None:
    raw = _long_stream(dialect)
    assert len(raw) == 4096
    raw = raw[: raw.rindex(b"\n\n") + 2]
    whole = [event.data for event in Events().feed(raw)]
    for cut in range(len(raw) + 1):
        reader = Events()
        data = [event.data for event in reader.feed(raw[:cut]) + reader.feed(raw[cut:])]
        assert data == whole
    assert "\ufffd" not in b"".join(whole).decode()
    seen("R2", f"{len(raw) + 1:,} cuts of {dialect}: 0 broken characters")


@pytest.mark.parametrize("dialect", list(Dialect))
def test_r02_bytes_that_are_no_text_are_no_content(dialect: Dialect) -> None:
    for _, data in EVENTS[dialect]:
        broken = data.replace("中".encode(), b"\xe4\xb8")
        if broken != data:
            assert is_content(dialect, data)
            assert not is_content(dialect, broken)


@pytest.mark.parametrize("size", [64 * 1024, 64 * MIB])
@pytest.mark.parametrize("make, head, tail", [(Events, b"data: ", b"\n\n"), (ArrayItems, b'[{"a":"', b'"}')])
@pytest.mark.parametrize("length, passes", [(1.0, True), (8.0, True), (15.9, True), (16.1, False)])
def test_r03_a_long_event_passes_or_fails_but_is_never_cut(
    make: type[Events] | type[ArrayItems], head: bytes, tail: bytes, length: float, passes: bool, size: int
) -> None:
    raw = head + b"x" * (int(length * MIB) - len(head) - len(tail)) + tail
    if passes:
        [event] = read(make(), raw, iter([size] * 300))
        assert event.raw == raw
    else:
        with pytest.raises(BadAnswer):
            read(make(), raw, iter([size] * 300))
