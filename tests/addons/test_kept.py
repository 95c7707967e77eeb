from __future__ import annotations

import random

from routecodex.addons.kept import HEAD_BYTES, TAIL_BYTES, Kept
from routecodex.routing.window.answer import GAP


def test_what_is_short_is_kept_whole_however_it_was_cut() -> None:
    body = random.Random(1).randbytes(HEAD_BYTES + TAIL_BYTES)
    for step in (1000, 7777, len(body)):
        kept = Kept()
        for at in range(0, len(body), step):
            kept.add(body[at : at + step])
        assert kept.take() == body
        assert kept.take() == b""


def test_of_what_is_long_the_beginning_and_the_end_are_kept_and_the_gap_is_told() -> None:
    body = random.Random(2).randbytes(1_000_000)
    for step in (999, 1 << 16, len(body)):
        kept = Kept()
        for at in range(0, len(body), step):
            kept.add(body[at : at + step])
        head, missing, tail = GAP.split(kept.take())
        assert head == body[:HEAD_BYTES] + b"\n"
        assert tail == b"\n" + body[-TAIL_BYTES:]
        assert int(missing) == len(body) - HEAD_BYTES - TAIL_BYTES
