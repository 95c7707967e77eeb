"""JSON written piece by piece: the very bytes of `dumps`, in no piece a whole long text."""

from __future__ import annotations

import pytest

from routecodex.routing.jsonbytes import WRITERS, dump_pieces, dumps

LONG = 'a "quoted"\n\\ line, é, 語, 🙂\x00 ' * 20_000


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "x"], "b": {}},
        {"items": [{"role": "assistant", "content": [{"type": "text", "text": LONG}, {}, []]}], "é": (LONG, "x", 3)},
        {1: LONG},
        {"text": LONG, "half": "\ud83d", "long": 1 << 70},
        {"text": LONG + "\ud83d"},
        LONG,
    ],
    ids=["short", "long", "key", "beside what orjson cannot hold", "surrogate", "text"],
)
def test_the_pieces_are_what_dumps_gives(value: object) -> None:
    written: list[bytes] = []
    for write in WRITERS:
        try:
            written = list(dump_pieces(value, write))
        except TypeError:
            continue
        break
    assert b"".join(written) == dumps(value)


def test_no_piece_is_long() -> None:
    pieces = list(dump_pieces({"items": [{"text": LONG}, {"text": LONG}]}, WRITERS[0]))
    assert len(LONG) > 500_000
    assert max(map(len, pieces)) < 200_000
