"""Rounds whose provider speaks another dialect than the client, in the client's one answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import pytest

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.dialects.finish import write_finish
from routecodex.routing.dialects.translation import going_up
from routecodex.routing.turn.actions import Action, Again, Finish, Forward
from routecodex.routing.turn.plugins import AfterRequest, Plugin, TurnInfo
from routecodex.routing.turn.state import State
from routecodex.routing.turn.turn import Limits, Turn
from routecodex.routing.values import Dialect, Endpoint, Usage
from tests.routing.turn.acting import Actor, Scene, run, tcall, tsaid, tturn
from tests.routing.turn.spelled_out import spelled_out
from tests.routing.turn.test_turn_rounds import Bench, Script, spoken
from tests.system.grammar import error_at_end, read
from tests.system.tool import text_of

PAIRS = pytest.mark.parametrize("client, there", list(permutations(Dialect, 2)), ids=str)
FORMS = pytest.mark.parametrize("stream", [True, False])


def answer_to(client: Dialect, stream: bool = True) -> Answer:
    return Answer(going_up.asked(tcall(client, stream=stream), "0123abcd"))


class Abroad(Bench):
    """A bench whose rounds speak another dialect."""

    def __init__(self, client: Dialect, there: Dialect, *, stream: bool = True, again: list[float | None] | None = None) -> None:
        super().__init__(client, stream, again or [])
        self.there = there
        self.script.round = Round(there, "acme")
        self.turn.answer = answer_to(client, stream)

    def speak(self, text: str, *, share: float = 1.0) -> None:
        raw = spoken(self.there, text, self.stream)
        self.turn.head(200, {}, self.now)
        self.turn.data(raw[: int(len(raw) * share)], self.now)

    @property
    def told(self) -> bytes:
        self.take()
        ends = (
            b"".join(one.end) if isinstance(one, Finish) else one.data for one in self.said if isinstance(one, Finish | Forward)
        )
        return b"".join(ends)


@PAIRS
@FORMS
def test_what_it_cost_is_known_also_where_the_client_does_not_ask(client: Dialect, there: Dialect, stream: bool) -> None:
    bench = Abroad(client, there, stream=stream)
    bench.speak("one")
    bench.turn.end(0.0)
    bench.turn.proceed()
    bench.turn.begin(0.0)
    bench.speak("two")
    bench.turn.end(0.0)
    assert bench.turn.usage() == Usage(10, 5)
    bench.turn.conclude()
    told = bench.told
    assert text_of(client, told, stream) == "one\n\ntwo"
    assert (b'"usage"' in told) is (client is not Dialect.CHAT or not stream) or client is Dialect.GEMINI


@PAIRS
def test_who_it_is_is_what_the_client_was_told(client: Dialect, there: Dialect) -> None:
    bench = Abroad(client, there)
    bench.speak("one")
    id = bench.turn.answer.round_id
    bench.turn.end(0.0)
    assert bench.turn.answer.id == id
    bench.turn.conclude()
    assert id
    assert f'"{id}"'.encode() in bench.told


@PAIRS
def test_an_error_instead_of_it_makes_place_for_another_attempt(client: Dialect, there: Dialect) -> None:
    bench = Abroad(client, there, again=[0.0])
    bench.turn.head(200, {}, 0.0)
    bench.turn.data(b'event: error\ndata: {"type":"error","error":{"message":"busy","code":529,"type":"overloaded"}}\n\n', 0.0)
    assert Again(0.0) in bench.take()
    bench.turn.begin(0.0)
    bench.script.round = None
    bench.round("whole")
    bench.conclude()
    assert text_of(client, bench.told, True) == "whole"


@PAIRS
def test_content_is_a_sign_of_life_and_a_ping_is_none(client: Dialect, there: Dialect) -> None:
    bench = Abroad(client, there)
    content_s, raw = bench.limits.content_s, spoken(there, "word " * 400, True)
    bench.turn.head(200, {}, 0.0)
    bench.turn.data(raw[: len(raw) * 3 // 4], 0.0)
    for at in range(1, 40):
        event = raw[: len(raw) // 2] if there is not Dialect.GEMINI else spoken(there, "x", True)
        bench.turn._pulse.feed(event if at < 20 else b": ping\n\n", at * content_s / 10)
    assert content_s * 2 <= bench.turn._pulse.ends < content_s * 3.2


@pytest.mark.parametrize("listens", [True, False])
@PAIRS
def test_plugins_hear_it_as_the_client_would(client: Dialect, there: Dialect, listens: bool) -> None:
    found: list[object] = []
    heard: list[str] = []

    class Last(Plugin):
        async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
            found.append(after.last_choice_chunk)

    def stream(turn: TurnInfo, data: object) -> None:
        heard.append(data.current_message.text)  # type: ignore[attr-defined]

    scene = Scene([Last(), *([Actor("A", stream=stream)] if listens else [])], turn=tturn(tcall(client)))
    answer, raw = answer_to(client), spoken(there, "Grüße 😀 one", True)

    async def turn() -> None:
        await scene.begin()
        answer.begin_round(Round(there, "acme"))
        scene.life.listen(answer.alone())
        for at in range(0, len(raw), 7):
            scene.life.stream_data(raw[at : at + 7])
        await scene.life.after_request(tsaid())

    run(turn())
    assert (heard[-1] if heard else "") == ("Grüße 😀 one" if listens else "")
    [last] = found
    assert isinstance(last, dict)
    ends = {Dialect.MESSAGES: "type", Dialect.CHAT: "choices", Dialect.RESPONSES: "response", Dialect.GEMINI: "candidates"}
    assert ends[client] in last


def test_one_that_breaks_off_ends_in_an_error() -> None:
    bench = Abroad(Dialect.CHAT, Dialect.MESSAGES)
    bench.speak("one", share=0.6)
    assert bench.turn.state is State.FLOWING
    bench.turn.broke("gone", 0.0)
    assert bench.turn.state is State.OVER
    assert b'"error"' in bench.told


# --- a cut behind the reason -------------------------------------------------------------------------------------------------

BREAKS: dict[str, Callable[[Turn], None]] = {
    "reset": lambda turn: turn.broke("reset", 0.0),
    "clean end": lambda turn: turn.end(0.0),
    "silence": lambda turn: turn.tick(300.0),
}
LAST = {Dialect.MESSAGES: b"event: message_stop", Dialect.CHAT: b"data: [DONE]"}
"""What stands behind the reason where that is not the end itself."""
REASONS = {
    Dialect.MESSAGES: b"event: message_delta",
    Dialect.CHAT: b'"finish_reason":"',
    Dialect.RESPONSES: b"event: response.completed",
    Dialect.GEMINI: b'"finishReason"',
}
EVERYWHERE = pytest.mark.parametrize("client, there", list(product(Dialect, Dialect)), ids=str)


def broken_off(client: Dialect, there: Dialect, stream: bool, alone: bool, raw: bytes, how: str) -> list[Action]:
    script = Script(client, [None])
    script.round = Round(there, "acme") if client is not there else None
    answer = Answer(going_up.asked(tcall(client, stream=stream), "0123abcd"), quiet=alone)
    turn = Turn(Endpoint(client), stream, script, Limits(), 0.0, answer, alone=alone)
    turn.head(200, {"content-type": "text/event-stream"}, 0.0)
    turn.data(raw, 0.0)
    BREAKS[how](turn)
    if turn.state is State.DECIDING:
        turn.conclude()
    return list(spelled_out(turn.actions))


@EVERYWHERE
@FORMS
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("how", BREAKS)
def test_r17_an_answer_has_ended_when_its_reason_has_come(
    client: Dialect, there: Dialect, stream: bool, alone: bool, how: str
) -> None:
    raw = spoken(there, "one two", True)
    raw = raw[: raw.index(LAST[there])] if there in LAST else raw
    said = broken_off(client, there, stream, alone, raw, how)
    told = b"".join(action.data for action in said if isinstance(action, Forward))
    answer = read(client, told, stream)
    assert answer.text == "one two"
    assert answer.finish == write_finish("stop", client)
    assert not any(isinstance(action, Again) for action in said)


@EVERYWHERE
@FORMS
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("how", BREAKS)
def test_r17_one_that_breaks_off_before_it_never_has(
    client: Dialect, there: Dialect, stream: bool, alone: bool, how: str
) -> None:
    raw = spoken(there, "one two", True)
    begun = (
        raw[: raw.rindex(b"\n\n", 0, raw.index(REASONS[there])) + 2]
        if there is not Dialect.GEMINI
        else raw[: raw.index(b"\n\n") + 2]
    )
    said = broken_off(client, there, stream, alone, begun, how)
    told = b"".join(action.data for action in said if isinstance(action, Forward))
    if stream:
        _, message = error_at_end(client, told, stream)
        assert message
    else:
        assert not told or b'"error"' in told
