"""Several rounds in one open answer: one head, one end, every round's text, and nothing invented when one of them fails."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer import machine
from routecodex.routing.dialects.failures import read_failure
from routecodex.routing.dialects.sse import Events
from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.turn.actions import (
    Abandon,
    Abort,
    Action,
    Again,
    Decide,
    Failed,
    Finish,
    Forward,
    GaveUp,
    Head,
    Limits,
    OpenHead,
    Refusal,
    Refuse,
)
from routecodex.routing.turn.opening import Opening
from routecodex.routing.turn.state import DOES, OutOfPlace, State
from routecodex.routing.turn.turn import Turn
from routecodex.routing.values import Answer, Dialect, Endpoint, Headers, JsonObject, ProviderError, ToolCall, Usage
from tests.conftest import LONG
from tests.routing.dialects.answer.own import answer_for, write_answer, write_stream
from tests.routing.turn.spelled_out import spelled_out
from tests.system.tool import text_of

DIALECTS = pytest.mark.parametrize("dialect", list(Dialect))
FORMS = pytest.mark.parametrize("dialect, stream", [(dialect, stream) for dialect in Dialect for stream in (True, False)])


def spoken(dialect: Dialect, text: str, stream: bool) -> bytes:
    """A provider's answer."""
    answer = Answer(text, usage=Usage(10, 5))
    if stream:
        return b"".join(write_stream(dialect, answer, id="id-1", model="m", created=1, include_usage=True))
    return write_answer(dialect, answer, id="id-1", model="m", created=1)


def shared(endpoint: Endpoint, stream: bool) -> machine.Answer:
    """An answer in which somebody takes part."""
    return answer_for(endpoint, stream=stream, include_usage=True)


@dataclass(slots=True)
class Script:
    """A planner that says what a test wants it to say."""

    dialect: Dialect
    again: list[float | None] = field(default_factory=list)
    answers: int = 0
    heard: list[object] = field(default_factory=list)

    round: machine.Round | None = None
    exact: bool = False
    secrets: tuple[str, ...] = ()
    hides_count: bool = False

    notice: str = ""

    def noticed(self) -> None:
        self.notice = ""

    def opening(self) -> Opening:
        return Opening("resp_ours", "m", 7)

    def head(self, status: int, headers: Headers) -> Head:
        return Head(status, tuple(headers.items()))

    def failure(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        return read_failure(status, headers, body, now=0.0)

    def failed(self, failed: Failed, now: float) -> float | None:
        return self.again.pop(0) if self.again else None

    def refusal(self) -> Refusal:
        return Refusal(Head(529, ()), machine.write_error(self.dialect, 529, "the first provider's words", "C"))

    def cost(self, tokens: Tokens | None, *, answered: bool = True) -> None:
        pass

    def unsay(self, left_out: str) -> None:
        pass

    def note_seals_of(self, items: Sequence[JsonObject]) -> None:
        self.heard.append(items)

    def answered(self, id: str, now: float) -> None:
        self.answers += 1


@dataclass(slots=True)
class Bench:
    dialect: Dialect
    stream: bool = True
    again: list[float | None] = field(default_factory=list)
    now: float = 0.0
    limits: Limits = field(default_factory=Limits)
    script: Script = field(init=False)
    turn: Turn = field(init=False)
    said: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        endpoint = Endpoint(self.dialect)
        self.script = Script(self.dialect, self.again)
        self.turn = Turn(endpoint, self.stream, self.script, self.limits, self.now, shared(endpoint, self.stream))

    def take(self) -> list[Action]:
        new = list(spelled_out(self.turn.actions))
        self.turn.actions.clear()
        self.said += new
        return new

    def round(self, text: str, *, share: float = 1.0, end: bool = True, cut: int = 50) -> list[Action]:
        """A provider's round, as far as it comes."""
        raw = spoken(self.dialect, text, self.stream)
        raw = raw[: int(len(raw) * share)]
        if self.turn.state is State.WAITING:
            self.turn.begin(self.now)
        kind = "text/event-stream" if self.stream else "application/json"
        self.turn.head(200, {"content-type": kind}, self.now)
        for at in range(0, len(raw), cut):
            self.turn.data(raw[at : at + cut], self.now)
        if end:
            self.turn.end(self.now)
        return self.take()

    def tick(self, at: float) -> list[Action]:
        self.now = at
        self.turn.tick(at)
        return self.take()

    def proceed(self) -> list[Action]:
        self.turn.proceed()
        return self.take()

    def conclude(self) -> list[Action]:
        self.turn.conclude()
        return self.take()

    @property
    def body(self) -> bytes:
        return b"".join(action.data for action in self.said if isinstance(action, Forward))

    @property
    def kinds(self) -> list[str]:
        return [type(action).__name__ for action in self.said]

    @property
    def text(self) -> str:
        """What the client reads. Behind the end a provider may have left half an event, which no client hears."""
        whole = self.body[: self.body.rfind(b"\n\n") + 2] if self.stream else self.body.strip()
        return text_of(self.dialect, whole, self.stream)


def errors(bench: Bench) -> int:
    found = 0
    for event in Events().feed(bench.body):
        document = json.loads(event.data) if event.data and event.data != b"[DONE]" else {}
        found += bool(document.get("error")) or document.get("type") == "error"
    return found


ENDS = {
    Dialect.MESSAGES: b"event: message_stop",
    Dialect.CHAT: b'"finish_reason":"',
    Dialect.RESPONSES: b"event: response.completed",
    Dialect.GEMINI: b'"finishReason"',
}


def ends(bench: Bench) -> int:
    """How often the client is told that the answer is complete."""
    return bench.body.count(ENDS[bench.dialect])


# --- one round ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "dialect, right, wrong", [(Dialect.CHAT, b"tool_calls", b"stop"), (Dialect.MESSAGES, b"tool_use", b"end_turn")]
)
def test_d17_a_wrong_reason_is_corrected_where_the_client_did_not_go_by_itself(
    dialect: Dialect, right: bytes, wrong: bytes, stream: bool, exact: bool
) -> None:
    bench = Bench(dialect, stream)
    bench.script.exact = exact
    answer = Answer("", (ToolCall("call_1", "read", "{}"),), "tool_calls", Usage(10, 5))
    options = {"id": "id-1", "model": "m", "created": 1}
    raw = (
        b"".join(write_stream(dialect, answer, **options, include_usage=True))
        if stream
        else write_answer(dialect, answer, **options)
    )
    said = re.sub(rb'(reason":\s*")' + right, rb"\g<1>" + wrong, raw)
    assert said != raw
    bench.turn.head(200, {"content-type": "text/event-stream" if stream else "application/json"}, 0.0)
    bench.turn.data(said, 0.0)
    bench.turn.end(0.0)
    bench.take()
    bench.conclude()
    told = re.search(rb'reason":\s*"([a-z_]+)"', bench.body)
    assert told is not None
    assert told[1] == (wrong if exact else right)
    assert (bench.body == said) is exact


@FORMS
@pytest.mark.parametrize("cut", [1, 50, 100_000])
def test_a_single_round_is_the_providers_own_bytes(dialect: Dialect, stream: bool, cut: int) -> None:
    bench = Bench(dialect, stream)
    decided = bench.round("hello there", cut=cut)
    assert isinstance(decided[-1], Decide)
    assert decided[-1].said.text == "hello there"
    bench.conclude()
    assert bench.body == spoken(dialect, "hello there", stream)
    assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1
    assert bench.kinds[-1] == "Finish"


@FORMS
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_where_there_is_nobody_to_ask_a_round_is_the_whole_answer(dialect: Dialect, stream: bool, share: float) -> None:
    bench = Bench(dialect, stream)
    answer = shared(Endpoint(dialect), stream)
    bench.turn = Turn(Endpoint(dialect), stream, bench.script, bench.limits, bench.now, answer, alone=True)
    bench.round("hello there", share=share)
    assert bench.kinds[-1] == "Finish"
    assert bench.turn.state is State.OVER
    if share == 1.0:
        assert bench.body == spoken(dialect, "hello there", stream)
        assert "hello there" in json.dumps(bench.script.heard), "its seals have to be known"
    else:
        assert ends(bench) == 0
        assert errors(bench) + bench.kinds.count("Refuse") == 1


@DIALECTS
def test_text_leaves_at_once_and_the_end_waits_for_the_decision(dialect: Dialect) -> None:
    """But for the text that stands in one event with the end (Gemini)."""
    said = "hello there " * 30
    bench = Bench(dialect)
    bench.round(said)
    assert bench.turn.state is State.DECIDING
    assert said.startswith(bench.text)
    assert len(bench.text) > len(said) / 2
    assert ends(bench) == 0
    assert ENDS[dialect] not in bench.body
    bench.conclude()
    assert bench.text == said
    assert ends(bench) == 1


# --- more rounds ----------------------------------------------------------------------------------------------------------


@FORMS
def test_m34_later_rounds_continue_the_same_answer(dialect: Dialect, stream: bool) -> None:
    bench = Bench(dialect, stream)
    bench.round("first")
    for text in ("second", "third"):
        assert bench.proceed()[-1] == Again()
        assert bench.turn.state is State.WAITING
        bench.round(text)
    bench.conclude()
    assert bench.text == "first\n\nsecond\n\nthird"
    assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1
    assert bench.turn.rounds == 3
    if stream:
        assert (ends(bench), errors(bench)) == (1, 0)


@FORMS
def test_a_later_round_that_fails_first_is_retried(dialect: Dialect, stream: bool) -> None:
    bench = Bench(dialect, stream, again=[0.0])
    bench.round("first")
    bench.proceed()
    bench.turn.begin(0.0)
    bench.turn.broke("reset", 0.0)
    assert bench.take() == [Abandon(), Again(0.0)]
    bench.round("second")
    bench.conclude()
    assert bench.text == "first\n\nsecond"


@FORMS
@pytest.mark.parametrize("how", ["reset", "bad head", "silence"])
def test_m18_a_later_round_that_fails_for_good_ends_the_turn_as_the_round_before(
    dialect: Dialect, stream: bool, how: str
) -> None:
    bench = Bench(dialect, stream)
    bench.round("first")
    bench.proceed()
    bench.turn.begin(0.0)
    match how:
        case "reset":
            bench.turn.broke("reset", 0.0)
        case "bad head":
            bench.turn.head(503, {}, 0.0)
            bench.turn.end(0.0)
        case _:
            bench.turn.tick(121.0)
    (gave_up,) = [action for action in bench.take() if isinstance(action, GaveUp)]
    assert gave_up.error.status in (502, 503, 504)
    assert bench.turn.state is State.DECIDING
    bench.conclude()
    assert bench.text.strip() == "first"
    assert bench.kinds[-1] == "Finish"
    if stream:
        assert (ends(bench), errors(bench)) == (1, 0)


def test_a_later_round_that_breaks_after_thinking_alone_is_asked_for_again() -> None:
    """The thinking of a later round is not shown: to the client nothing has happened yet."""
    bench = Bench(Dialect.MESSAGES, again=[0.0])
    bench.round("first")
    bench.proceed()
    bench.turn.begin(0.0)
    bench.turn.head(200, {"content-type": "text/event-stream"}, 0.0)
    start = spoken(Dialect.MESSAGES, "x", True).partition(b"event: content_block_start")[0]
    thinking = (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":'
        b'{"type":"thinking","thinking":"","signature":""}}\n\n'
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        b'{"type":"thinking_delta","thinking":"hm"}}\n\n'
    )
    bench.turn.data(start + thinking, 0.0)
    bench.turn.broke("reset", 0.0)
    assert bench.take() == [Abandon(), Again(0.0)]
    bench.round("second")
    bench.conclude()
    assert (bench.text, ends(bench), errors(bench)) == ("first\n\nsecond", 1, 0)


@DIALECTS
def test_a_later_round_that_breaks_after_its_first_text_ends_in_one_error(dialect: Dialect) -> None:
    for share in (0.6, 0.7, 0.8):
        bench = Bench(dialect, again=[0.0])
        bench.round("first")
        bench.proceed()
        bench.round("second " * 50, share=share, end=False)
        if bench.turn.state is not State.FLOWING:
            continue
        bench.turn.broke("reset", 0.0)
        bench.take()
        assert bench.kinds[-1] == "Finish"
        assert bench.kinds.count("Again") == 1, "that of the decision"
        assert (ends(bench), errors(bench)) == (0, 1)
        assert bench.body.startswith(spoken(dialect, "first", True)[:20])


def test_a_later_whole_round_that_breaks_off_shows_what_was_complete_or_an_error() -> None:
    for dialect in Dialect:
        bench = Bench(dialect, stream=False)
        bench.round("first")
        bench.proceed()
        bench.round("second", share=0.7)
        bench.conclude()
        assert bench.kinds[-1] in ("Finish", "Abort")
        if bench.body:
            assert bench.text == "first"
        else:
            assert isinstance(bench.said[-2], Refuse)


# --- between two rounds ------------------------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("moment", ["deciding", "waiting"])
def test_m14_the_client_leaves_between_two_rounds(dialect: Dialect, stream: bool, moment: str) -> None:
    bench = Bench(dialect, stream, again=[0.0])
    bench.round("first")
    if moment == "waiting":
        bench.proceed()
    bench.turn.gone()
    assert bench.take() == [Abandon()]
    assert bench.round("second") == bench.tick(1e6) == []
    for told in (bench.proceed, bench.conclude, bench.turn.close):
        with pytest.raises(OutOfPlace):
            told()
    assert bench.turn.state is State.OVER


@DIALECTS
def test_decision_22_a_held_answer_is_kept_alive(dialect: Dialect) -> None:
    bench = Bench(dialect)
    bench.round("first")
    begun = bench.now
    for _ in range(4):
        due = bench.turn.deadline
        assert due - bench.now <= 20
        (alive,) = bench.tick(due)
        assert isinstance(alive, Forward)
    assert bench.now - begun >= 45
    bench.proceed()
    bench.round("second")
    bench.conclude()
    assert bench.text == "first\n\nsecond"
    assert (ends(bench), errors(bench)) == (1, 0)


@DIALECTS
def test_a_whole_answer_that_is_held_begins_with_white_space_before_its_client_gives_up(dialect: Dialect) -> None:
    bench = Bench(dialect, stream=False)
    bench.round("first")
    assert bench.turn.deadline == 45.0
    opened, space = bench.tick(45.0)
    assert isinstance(opened, OpenHead)
    assert space == Forward(b"\n")
    bench.tick(60.0)
    bench.conclude()
    assert json.loads(bench.body)
    assert bench.text == "first"
    assert bench.kinds.count("OpenHead") == 1


@DIALECTS
def test_whoever_decides_may_fail(dialect: Dialect) -> None:
    bench = Bench(dialect)
    bench.round("first")
    bench.turn.refuse("A plugin failed.", "PLUGIN_ERROR")
    bench.take()
    assert bench.kinds[-1] == "Finish"
    assert (ends(bench), errors(bench)) == (0, 1)
    assert b"A plugin failed." in bench.body
    whole = Bench(dialect, stream=False)
    whole.round("first")
    whole.turn.refuse("A plugin failed.", "PLUGIN_ERROR")
    refused, finished = whole.take()
    assert isinstance(refused, Refuse)
    assert refused.refusal.head.status == 500
    assert finished == Finish()
    opened = Bench(dialect, stream=False)
    opened.round("first")
    opened.tick(45.0)
    opened.turn.refuse("A plugin failed.", "PLUGIN_ERROR")
    assert opened.take() == [Abort()], "JSON that has begun can only be cut"


@DIALECTS
def test_what_is_remembered_is_known_before_the_end_leaves(dialect: Dialect) -> None:
    bench = Bench(dialect)
    bench.round("first")
    bench.proceed()
    bench.round("second")
    assert bench.turn.close() is not None
    assert ends(bench) == 0
    assert bench.take() == []
    assert bench.turn.deadline == float("inf"), "nothing may come between the memory and the end"
    bench.conclude()
    assert ends(bench) == 1


# --- anything at all ----------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("round"), st.sampled_from([1.0, 1.0, 1.0, 0.8, 0.5, 0.1])),
        st.tuples(st.just("flow"), st.sampled_from([1.0, 0.7])),
        *(
            st.tuples(st.just(word), st.just(0.0))
            for word in ("proceed", "proceed", "conclude", "close", "refuse", "end", "broke")
        ),
        *(st.tuples(st.just(word), st.just(0.0)) for word in ("gone", "begin", "bad")),
        st.tuples(st.just("tick"), st.sampled_from([1.0, 16.0, 46.0, 121.0, 301.0])),
    ),
    max_size=14,
)


@settings(max_examples=10_000 if LONG else 300)
@given(st.sampled_from(list(Dialect)), st.booleans(), st.lists(st.sampled_from([None, 0.0]), max_size=4), STEPS)
def test_whatever_happens(dialect: Dialect, stream: bool, again: list[float | None], steps: list[tuple[str, float]]) -> None:
    bench = Bench(dialect, stream, again)
    left = False
    for step, value in steps:
        over = bench.turn.state is State.OVER
        new = _do(bench, step, value)
        assert not (over and new), "nothing after the end"
        assert bench.kinds.count("OpenHead") + bench.kinds.count("Refuse") <= 1
        assert bench.kinds.count("Finish") + bench.kinds.count("Abort") <= 1
        left = left or (step == "gone" and not over)
        assert (bench.turn.state is State.OVER) == (left or bench.kinds[-1:] in (["Finish"], ["Abort"]))
        if new and isinstance(new[-1], Decide | GaveUp):
            assert bench.turn.state is State.DECIDING
    if not stream or "OpenHead" not in bench.kinds:
        return
    assert ends(bench) + errors(bench) <= 1
    if bench.kinds[-1] == "Finish":
        assert ends(bench) + errors(bench) == 1
    if ends(bench):
        assert bench.text == "\n\n".join(["some text"] * bench.kinds.count("Decide")), "every round's text, none twice"


def _do(bench: Bench, step: str, value: float) -> list[Action]:
    if step in DOES and bench.turn.state not in DOES[step]:
        with pytest.raises(OutOfPlace):
            _tell(bench, step, value)
        return bench.take()
    return _tell(bench, step, value)


def _tell(bench: Bench, step: str, value: float) -> list[Action]:
    match step:
        case "round" | "flow" if bench.turn.state not in (State.ASKING, State.WAITING):
            return []  # a provider gives one answer to one call
        case "round":
            return bench.round("some text", share=value)
        case "flow":
            return bench.round("some text", share=value, end=False)
        case "proceed":
            return bench.proceed()
        case "conclude":
            return bench.conclude()
        case "close":
            bench.turn.close()
        case "refuse":
            bench.turn.refuse("It failed.", "PLUGIN_ERROR")
        case "end":
            bench.turn.end(bench.now)
        case "broke":
            bench.turn.broke("reset", bench.now)
        case "gone":
            bench.turn.gone()
        case "begin":
            bench.turn.begin(bench.now)
        case "bad":
            bench.turn.head(503, {}, bench.now)
            bench.turn.end(bench.now)
        case _:
            return bench.tick(bench.now + value)
    return bench.take()
