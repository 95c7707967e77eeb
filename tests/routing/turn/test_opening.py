"""Responses: the answer begins before its provider's, so that keep-alives may stand in it; whoever answers goes on with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer.responses.write import write_error_event
from routecodex.routing.dialects.sse import Events
from routecodex.routing.turn.actions import Again, Decide, Finish, Forward, OpenHead
from routecodex.routing.turn.state import State
from routecodex.routing.values import Answer, Dialect, Endpoint, Usage
from tests.conftest import LONG
from tests.routing.dialects.answer.own import write_answer
from tests.routing.dialects.answer.streams import check_responses
from tests.routing.turn.test_turn import BREAKS, STREAM, STREAMS, Bench, Run, check_begun_answer, passing, wait
from tests.routing.turn.test_turn_rounds import Bench as Rounds

NAME = "openai-responses"
RESPONSES = Endpoint(Dialect.RESPONSES)


def documents(body: bytes) -> list[dict[str, Any]]:
    """What a client reads; numbers without a gap, one response from the first event on."""
    events = Events().feed(body)
    assert b"".join(event.raw for event in events) == body
    found: list[dict[str, Any]] = [json.loads(event.data) for event in events if event.data]
    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    assert found[0]["type"] == "response.created"
    assert {one["response"]["id"] for one in found if "response" in one} == {"resp_ours"}
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [one["type"].removeprefix("response.") for one in found]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_other_dialects_bear_keep_alives_at_any_moment(dialect: Dialect) -> None:
    for stream in (True, False):
        assert passing(Endpoint(dialect), stream).opens is (stream and dialect is Dialect.RESPONSES)


@pytest.mark.parametrize("cut", [1, 37, 1 << 20])
def test_decision_22_whoever_answers_goes_on_with_it(cut: int) -> None:
    """Codex's timer is reset by events alone, and no event may stand before `response.created`."""
    for raw in STREAMS[NAME]:
        bench = Bench(NAME, again=[0.0, 1.0])
        wait(bench)
        assert kinds(documents(bench.body)) == ["created"] + ["in_progress"] * 3
        bench.data(*(raw[at : at + cut] for at in range(0, len(raw), cut)))
        bench.end()
        reader = Events()
        theirs = [json.loads(event.data) for event in reader.feed(raw) + reader.close() if event.data]
        assert kinds(theirs)[:2] == ["created", "in_progress"]
        told = documents(bench.body)
        assert kinds(told) == ["created"] + ["in_progress"] * 3 + kinds(theirs)[2:]
        items = told[-1]["response"]["output"]
        assert items == [one["item"] for one in told if one["type"] == "response.output_item.done"]
        ending = {**theirs[-1]["response"], "id": "resp_ours", "created_at": 7, "output": items}
        assert told[-1]["response"] == ending, "the model and the rest are the provider's to tell"
        assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1
        assert bench.kinds[-1] == "Finish"
        usage = bench.turn.usage()
        assert usage is not None
        assert usage.output == 88


def test_it_is_kept_alive_in_the_middle_too() -> None:
    bench, raw = Bench(NAME), STREAM[NAME]
    bench.tick(30.0)
    bench.head()
    bench.data(raw[: len(raw) // 2])
    assert bench.turn.deadline == 45.0
    (alive,) = bench.tick(45.0)
    assert isinstance(alive, Forward)
    assert kinds([json.loads(event.data) for event in Events().feed(alive.data)]) == ["in_progress"]
    bench.data(raw[len(raw) // 2 :])
    bench.end()
    assert kinds(documents(bench.body))[-1] == "completed"


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("share", [0.5, 0.7])
def test_it_ends_in_one_error_where_its_provider_breaks_off(how: str, share: float) -> None:
    bench, raw = Bench(NAME, again=[0.0]), STREAM[NAME]
    bench.tick(30.0)
    bench.head()
    bench.data(raw[: int(len(raw) * share)])
    assert bench.turn.state is State.FLOWING
    BREAKS[how](bench)
    assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1
    assert bench.kinds.count("Again") == 0
    told = kinds(documents(bench.body))
    assert told.count("failed") == 1
    assert told[-1] == "failed"


def test_an_error_of_the_providers_in_the_middle_is_told_once() -> None:
    bench, raw = Bench(NAME), STREAM[NAME]
    bench.tick(30.0)
    bench.head()
    events = [event.raw for event in Events().feed(raw)]
    bench.data(*events[: len(events) // 2])
    theirs = write_error_event(529, "overloaded in the middle", "C", id="r", sequence=99)
    bench.data(theirs)
    bench.end()
    told = documents(bench.body)
    assert kinds(told).count("failed") == 1
    assert told[-1]["error"]["message"] == "overloaded in the middle"


def test_a_provider_that_answers_json_goes_on_with_it_too() -> None:
    bench = Bench(NAME)
    bench.tick(30.0)
    bench.head(200, {"content-type": "application/json"})
    bench.data(write_answer(Dialect.RESPONSES, Answer("hello", usage=Usage(3, 4)), id="i", model="m", created=1))
    bench.end()
    told = documents(bench.body)
    assert (kinds(told)[-1], told[-1]["response"]["output"][0]["content"][0]["text"]) == ("completed", "hello")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(1, 3000)),
        st.tuples(st.just("data"), st.integers(1, 3000)),
        st.tuples(st.just("tick"), st.sampled_from([0.5, 16.0, 40.0])),
    ),
    max_size=12,
)


@settings(max_examples=5_000 if LONG else 150)
@given(st.integers(0, 99), STEPS, STEPS, st.sampled_from(["end", "broke", "rest", "gone"]))
def test_whatever_happens(
    which: int, before: list[tuple[str, int | float]], after: list[tuple[str, int | float]], end: str
) -> None:
    """The provider is heard at any moment, in any pieces, and leaves at any place."""
    run = Run(Bench(NAME), STREAMS[NAME][which % len(STREAMS[NAME])])
    for step, value in [
        *(one for one in before if one[0] == "tick"),
        ("tick", 30.0),
        ("head", 200),
        *after,
        (end, 0),
        ("end", 0),
    ]:
        run.step(step, value)
    if run.bench.script.first:
        assert b"resp_ours" in run.bench.body
        check_begun_answer(run)


# --- with somebody to ask whether another round follows ----------------------------------------------------------------


def test_later_rounds_go_on_in_it() -> None:
    bench = Rounds(Dialect.RESPONSES, again=[0.0])
    opened, begun, ping = bench.tick(30.0)
    assert isinstance(opened, OpenHead)
    assert isinstance(begun, Forward)
    assert isinstance(ping, Forward)
    bench.turn.broke("reset", 31.0)
    assert isinstance(bench.take()[-1], Again)
    for text in ("first", "second"):
        decided = bench.round(text)
        assert isinstance(decided[-1], Decide)
        bench.tick(bench.now + 16.0)
        if text == "first":
            bench.proceed()
            bench.tick(bench.now + 16.0)
    assert bench.turn.close() == "resp_ours"
    assert bench.conclude()[-1] == Finish()
    told = documents(bench.body)
    check_responses(Events().feed(bench.body))
    assert kinds(told).count("created") == kinds(told).count("completed") == 1
    assert kinds(told).count("in_progress") == 4
    assert bench.text == "first\n\nsecond"
    assert told[-1]["response"]["usage"]["output_tokens"] == 10


def test_when_all_fail_the_error_stands_in_it() -> None:
    bench = Rounds(Dialect.RESPONSES)
    bench.tick(30.0)
    bench.turn.broke("reset", 31.0)
    assert bench.take()[-1] == Finish()
    told = documents(bench.body)
    assert kinds(told) == ["created", "in_progress", "failed"]
    assert told[-1]["error"]["message"] == "the first provider's words"
