"""Rounds as one, asked without any dialect: events in, events out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from routecodex.routing.dialects.answer.events import (
    Began,
    Block,
    Chunk,
    Closed,
    Counted,
    Done,
    Ended,
    Event,
    Extra,
    Failed,
    Opened,
    Piece,
)
from routecodex.routing.dialects.answer.join import HELD_BYTES, Join
from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.values import Dialect, ProviderError

OWN = frozenset({"clock"})


def chunk(*events: Event, raw: bytes = b"x") -> Chunk:
    return Chunk(raw, {}, events, Dialect.MESSAGES)


def shown(chunks: Sequence[Chunk]) -> list[str]:
    """Each event in a word, `*` where its bytes are gone."""
    return [("" if one.raw else "*") + _word(event) for one in chunks for event in one.events]


def _word(event: Event) -> str:
    match event:
        case Piece(block=block, text=text):
            return f"{block.kind}:{text}"
        case Opened(block=block) | Closed(block=block) | Extra(block=block):
            return f"{type(event).__name__}:{block.kind}"
        case Ended(finish_reason=word):
            return f"Ended:{word}"
        case Counted(tokens=tokens):
            return f"Counted:{tokens.output}"
        case _:
            return type(event).__name__


def text_round(text: str, *, word: str = "end_turn", output: int = 1) -> list[Chunk]:
    block = Block("text", {"type": "text"}, ends_itself=True)
    return [
        chunk(Began("id", "m")),
        chunk(Opened(block)),
        chunk(Piece(block, text)),
        chunk(Closed(block)),
        chunk(Counted(Tokens(output=output), {"output_tokens": output}), Ended(word)),
        chunk(Done()),
    ]


def run(join: Join, *rounds_: list[Chunk], exact: bool = False) -> list[str]:
    out: list[str] = []
    for chunks in rounds_:
        out += shown(join.begin(exact=exact))
        for one in chunks:
            out += shown(join.hear(one))
        join.end()
    return out + shown(join.finish())


def test_one_round_is_left_alone() -> None:
    told = run(Join(Dialect.MESSAGES, own=OWN), text_round("a"))
    assert told == ["Began", "Opened:text", "text:a", "Closed:text", "Counted:1", "Ended:end_turn", "Done"]


def test_two_rounds_share_text_start_and_end() -> None:
    told = run(Join(Dialect.MESSAGES, own=OWN), text_round("a"), text_round("b", output=2))
    assert told == ["Began", "Opened:text", "text:a", "*text:\n\nb", "*Closed:text", "*Counted:3", "*Ended:end_turn", "*Done"]


def test_what_opens_waits_for_content_and_what_ends_for_what_follows() -> None:
    join = Join(Dialect.MESSAGES, own=OWN)
    began, opened, piece, closed, ended, done = text_round("a")
    assert shown(join.hear(began)) == []
    assert shown(join.hear(opened)) == ["Began", "Opened:text"]
    assert shown(join.hear(piece)) == ["text:a"]
    assert [shown(join.hear(one)) for one in (closed, ended, done)] == [[], [], []]


def test_our_call_is_never_shown_and_the_text_behind_it_goes_on() -> None:
    call, text, more = Block("call", {}, name="clock"), Block("text", {}, ends_itself=True), Block("text", {}, ends_itself=True)
    chunks = [
        chunk(Began("id", "m"), Opened(text), Piece(text, "a")),
        chunk(Closed(text)),
        chunk(Opened(call), Piece(call, "{}"), Closed(call)),
        chunk(Opened(more), Piece(more, "b")),
        chunk(Closed(more)),
        chunk(Ended("tool_use")),
    ]
    told = run(Join(Dialect.MESSAGES, own=OWN), chunks)
    assert told == ["Began", "Opened:text", "text:a", "*text:b", "*Closed:text", "*Ended:end_turn", "*Done"]


def test_a_name_that_comes_late_decides_whose_the_call_is() -> None:
    for name, is_shown in (("clock", False), ("Bash", True)):
        join, call = Join(Dialect.MESSAGES, own=OWN), Block("call", {})
        assert shown(join.hear(chunk(Began("id", "m"), Opened(call), Piece(call, "{")))) == []
        call.name = name
        told = shown(join.hear(chunk(Piece(call, "}"))))
        assert ("call:}" in told) is is_shown
        assert ("call:{" in told) is is_shown


def test_a_round_that_broke_before_it_showed_anything_never_was() -> None:
    join = Join(Dialect.MESSAGES, own=OWN)
    broken = [chunk(Began("other", "m")), chunk(Failed(ProviderError(529, "busy")))]
    told = run(join, broken, text_round("a"))
    assert told == ["Began", "Opened:text", "text:a", "Closed:text", "Counted:1", "Ended:end_turn", "Done"]
    assert len(join.rounds) == 1


def test_a_thought_of_a_later_round_is_kept_for_the_history_alone() -> None:
    join, thought = Join(Dialect.MESSAGES, own=OWN), Block("thought", {}, ends_itself=True)
    began, *rest = text_round("b")
    told = run(join, text_round("a"), [began, chunk(Opened(thought), Piece(thought, "hm")), chunk(Closed(thought)), *rest])
    assert not any("thought" in word for word in told)
    assert str(join.rounds[1].content.blocks[thought]) == "hm"


@pytest.mark.parametrize(
    "word, told",
    [
        ("end_turn", "Ended:tool_use"),
        ("tool_use", "Ended:tool_use"),
        ("max_tokens", "Ended:max_tokens"),
        ("", "Ended:tool_use"),
        ("wibble", "Ended:tool_use"),
    ],
)
def test_d17_a_reason_follows_what_was_said(word: str, told: str) -> None:
    call = Block("call", {}, name="Bash")
    chunks = [chunk(Opened(call), Piece(call, "{}"), Closed(call)), chunk(Ended(word)), chunk(Done())]
    assert told in [one.lstrip("*") for one in run(Join(Dialect.MESSAGES), chunks)]


def test_d17_a_provider_that_is_exact_keeps_its_word() -> None:
    call = Block("call", {}, name="Bash")
    chunks = [chunk(Opened(call), Piece(call, "{}"), Closed(call)), chunk(Ended("end_turn")), chunk(Done())]
    assert "Ended:end_turn" in run(Join(Dialect.MESSAGES), chunks, exact=True)


def test_d17_what_was_not_read_corrects_nothing() -> None:
    trace = Block("trace", {}, name="web_search")
    chunks = [chunk(Opened(trace), Closed(trace)), chunk(Ended("tool_use")), chunk(Done())]
    assert "Ended:tool_use" in run(Join(Dialect.MESSAGES), chunks)


@pytest.mark.parametrize("opens", [True, False])
def test_what_waits_is_bounded(opens: bool) -> None:
    join = Join(Dialect.MESSAGES, own=OWN)
    chunks = text_round("a")
    for one in chunks[: 1 if opens else 4]:
        join.hear(one)
    noise = [Chunk(b": wait\n\n" * 1000, None, (), Dialect.MESSAGES) for _ in range(300)]
    out = b"".join(one.raw for comment in noise for one in join.hear(comment))
    assert len(out) > 300 * 8000 - HELD_BYTES - 8000
    assert join.visible
