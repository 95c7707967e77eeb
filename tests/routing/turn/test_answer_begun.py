"""When an answer begins to reach the client: once for each round that shows something, never for a keep-alive, and in time."""

from __future__ import annotations

import pytest

from routecodex.routing.turn.actions import Action, Began, Forward
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.participants import Participants
from routecodex.routing.turn.plugins import TurnInfo
from routecodex.routing.values import Dialect
from tests.routing.turn.acting import Actor, run, tcall, tsaid, tturn
from tests.routing.turn.test_echoing import Store
from tests.routing.turn.test_participants import at_once
from tests.routing.turn.test_turn_rounds import FORMS, Bench

SHOWN = tuple(Dialect)


def begins(actions: list[Action]) -> int:
    return sum(isinstance(action, Began) for action in actions)


@FORMS
def test_once_for_each_round_that_is_shown_as_it_comes(dialect: Dialect, stream: bool) -> None:
    bench = Bench(dialect, stream)
    expected = 1 if stream and dialect in SHOWN else 0
    assert begins(bench.round("first")) == expected
    bench.proceed()
    assert begins(bench.round("second")) == expected
    bench.turn.conclude()
    assert begins(bench.take()) == 0


@pytest.mark.parametrize("dialect", SHOWN, ids=str)
def test_directly_behind_the_first_bytes(dialect: Dialect) -> None:
    bench = Bench(dialect)
    actions = bench.round("first")
    place = next(place for place, action in enumerate(actions) if isinstance(action, Began))
    assert [isinstance(action, Forward) for action in actions[:place]].count(True) == 1


@pytest.mark.parametrize("dialect", SHOWN, ids=str)
def test_a_keep_alive_is_no_beginning(dialect: Dialect) -> None:
    bench = Bench(dialect)
    actions = bench.tick(31.0)
    assert any(isinstance(action, Forward) for action in actions)
    assert begins(actions) == 0
    assert begins(bench.round("first")) == 1


def test_a_round_that_fails_before_its_content_has_not_begun() -> None:
    bench = Bench(Dialect.MESSAGES, again=[0.0])
    bench.turn.head(500, {}, 0.0)
    bench.turn.end(0.0)
    assert begins(bench.take()) == 0


# ---- the plugins ----


def together(actor: Actor, *, stream: bool) -> Participants:
    call = tcall(stream=stream)
    turn = tturn(call)
    return Participants(Lifecycle(turn, [actor], warn=actor.log.append), call, Store(), turn.session, at_once)


def test_a_stream_tells_of_each_round() -> None:
    seen: list[tuple[int, int]] = []
    participants = together(Actor("A", begun=lambda turn: seen.append((turn.rounds, turn.begun))), stream=True)

    async def play() -> None:
        await participants.begin()
        participants.begun()
        participants.begun()
        await participants.next(tsaid("one"), able=True)
        participants.begun()
        await participants.next(tsaid("two"), able=True)
        await participants.settle("msg-1")

    run(play())
    assert seen == [(0, 1), (1, 2)]


def test_a_whole_answer_begins_when_it_is_about_to_leave() -> None:
    """A round that was asked for and never answered does not count."""
    seen: list[tuple[str, int]] = []
    participants = together(Actor("A", begun=lambda turn: seen.append((turn.status, turn.begun))), stream=False)

    async def play() -> None:
        await participants.begin()
        await participants.next(tsaid("one"), able=True)
        await participants.next(tsaid("two"), able=True)
        assert seen == []
        await participants.settle("msg-1")
        await participants.leave(aborted=False)

    run(play())
    assert seen == [("processing", 2)]


def test_not_once_the_client_has_left() -> None:
    seen: list[TurnInfo] = []
    participants = together(Actor("A", begun=seen.append), stream=True)

    async def play() -> None:
        await participants.begin()
        participants.life.abort()
        participants.begun()
        await participants.leave(aborted=True)

    run(play())
    assert seen == []


def test_an_error_is_logged_and_the_answer_goes_on() -> None:
    def fails(turn: TurnInfo) -> None:
        raise ValueError("secret")

    actor = Actor("A", begun=fails)
    participants = together(actor, stream=True)

    async def play() -> None:
        await participants.begin()
        participants.begun()
        await participants.next(tsaid("one"), able=True)
        await participants.settle("msg-1")
        await participants.leave(aborted=False)

    run(play())
    assert participants.life.turn.status == "completed"
    (line,) = [line for line in actor.log if "on_answer_begun" in line]
    assert line.startswith("Plugin A failed: on_answer_begun raised ValueError")
    assert "secret" not in line
