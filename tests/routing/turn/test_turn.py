"""One client call being answered, told what happens without a network: by tables, and by anything at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from routecodex.routing.dialects.answer import machine
from routecodex.routing.dialects.answer.join import HELD_BYTES
from routecodex.routing.dialects.failures import read_failure
from routecodex.routing.dialects.fields import read_object
from routecodex.routing.dialects.sse import ArrayItems, Events
from routecodex.routing.dialects.translation.neutral import Tokens
from routecodex.routing.jsonbytes import as_utf8
from routecodex.routing.turn.actions import (
    Abandon,
    Action,
    Again,
    Failed,
    Finish,
    Forward,
    Head,
    Limits,
    OpenHead,
    Refusal,
    Refuse,
)
from routecodex.routing.turn.opening import Opening
from routecodex.routing.turn.state import OutOfPlace, State
from routecodex.routing.turn.turn import ERROR_BYTES, ERROR_S, Turn
from routecodex.routing.values import Answer, Dialect, Endpoint, Headers, JsonObject, ProviderError, Usage
from tests.conftest import LONG
from tests.routing.dialects.answer.own import answer_for, write_answer
from tests.routing.dialects.answer.streams import array_streams, provider_streams
from tests.routing.turn.spelled_out import spelled_out

ENDPOINTS = {str(dialect): Endpoint(dialect) for dialect in Dialect} | {"array": Endpoint(Dialect.GEMINI, json_array=True)}
EVERY = pytest.mark.parametrize("name", ENDPOINTS)
STREAMS: dict[str, list[bytes]] = {name: [] for name in ENDPOINTS}
for _, _dialect, _raw, _ in provider_streams():
    STREAMS[str(_dialect)].append(_raw)
for _name, _raw, _ in array_streams():
    if _name.endswith("False"):
        STREAMS["array"].append(_raw)
STREAM = {name: found[0] for name, found in STREAMS.items()}
WHOLE = {
    name: write_answer(endpoint.dialect, Answer("hello", usage=Usage(3, 4)), id="i", model="m", created=1)
    for name, endpoint in ENDPOINTS.items()
}
ERROR = {
    Dialect.MESSAGES: b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"theirs"}}\n\n',
    Dialect.CHAT: b'data: {"error":{"message":"theirs","code":"server_error"}}\n\n',
    Dialect.RESPONSES: b'event: error\ndata: {"type":"error","code":"server_error","message":"theirs"}\n\n',
    Dialect.GEMINI: b'data: {"error":{"code":503,"message":"theirs","status":"UNAVAILABLE"}}\n\n',
}
"""An error event of the provider itself."""
OPENING = {
    Dialect.MESSAGES: (
        b'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}\n\nevent: ping\ndata: {"type":"ping"}\n\n'
    ),
    Dialect.CHAT: b': ok\n\ndata: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n',
    Dialect.RESPONSES: b'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n',
    Dialect.GEMINI: b'data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"}}]}\n\n',
}
"""How a stream opens before it has content."""
SSE: Headers = {"content-type": "text/event-stream"}


def passing(endpoint: Endpoint, stream: bool) -> machine.Answer:
    """An answer in which nobody takes part."""
    return answer_for(endpoint, stream=stream, quiet=True)


def error_event(endpoint: Endpoint) -> bytes:
    if not endpoint.json_array:
        return ERROR[endpoint.dialect]
    return b"[" + ERROR[Dialect.GEMINI].removeprefix(b"data: ").strip() + b"]"


@dataclass(slots=True)
class Script:
    """A planner that says what a test wants it to say."""

    dialect: Dialect
    again: list[float | None] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    first: list[str] = field(default_factory=list)

    round: machine.Round | None = None
    exact: bool = False
    secrets: tuple[str, ...] = ()
    hides_count: bool = False
    costs: list[tuple[Tokens | None, bool]] = field(default_factory=list)

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
        self.failures.append(failed)
        return self.again.pop(0) if self.again else None

    def refusal(self) -> Refusal:
        body = machine.write_error(self.dialect, 529, "the first provider's words", "C")
        return Refusal(Head(529, (("content-type", "application/json"),)), body)

    def cost(self, tokens: Tokens | None, *, answered: bool = True) -> None:
        self.costs.append((tokens, answered))

    def unsay(self, left_out: str) -> None:
        pass

    def note_seals_of(self, items: Sequence[JsonObject]) -> None:
        pass

    def answered(self, id: str, now: float) -> None:
        self.first.append(id)


@dataclass(slots=True)
class Bench:
    """A turn, what it said so far, and what the client has of it."""

    name: str
    stream: bool = True
    again: list[float | None] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)
    now: float = 0.0
    script: Script = field(init=False)
    turn: Turn = field(init=False)
    said: list[Action] = field(default_factory=list)
    content: bytes = b""
    """What left from the first content on."""

    def __post_init__(self) -> None:
        self.script = Script(ENDPOINTS[self.name].dialect, self.again)
        endpoint = ENDPOINTS[self.name]
        answer = passing(endpoint, self.stream)
        self.turn = Turn(endpoint, self.stream, self.script, self.limits, self.now, answer, alone=True)

    def take(self) -> list[Action]:
        """What the turn says now."""
        new = list(spelled_out(self.turn.actions))
        self.turn.actions.clear()
        self.said += new
        if self.script.first:
            self.content += b"".join(action.data for action in new if isinstance(action, Forward))
        return new

    def head(self, status: int = 200, headers: Headers = SSE) -> list[Action]:
        self.turn.head(status, headers, self.now)
        return self.take()

    def data(self, *chunks: bytes) -> list[Action]:
        for chunk in chunks:
            self.turn.data(chunk, self.now)
        return self.take()

    def end(self) -> list[Action]:
        self.turn.end(self.now)
        return self.take()

    def broke(self, message: str = "reset") -> list[Action]:
        self.turn.broke(message, self.now)
        return self.take()

    def gone(self) -> list[Action]:
        self.turn.gone()
        return self.take()

    def begin(self) -> list[Action]:
        self.turn.begin(self.now)
        return self.take()

    def tick(self, at: float) -> list[Action]:
        self.now = at
        self.turn.tick(at)
        return self.take()

    @property
    def body(self) -> bytes:
        return b"".join(action.data for action in self.said if isinstance(action, Forward))

    @property
    def kinds(self) -> list[str]:
        return [type(action).__name__ for action in self.said]


def documents(endpoint: Endpoint, body: bytes) -> list[dict[str, object]]:
    """What a client reads; it fails where the client would."""
    if endpoint.json_array:
        found = json.loads(body)
        assert isinstance(found, list)
        return found
    reader = Events()
    events = reader.feed(body)
    assert not b"".join(event.raw for event in reader.close()).strip(), "something is left without its blank line"
    return [json.loads(event.data) for event in events if event.data and event.data != b"[DONE]"]


def errors(endpoint: Endpoint, body: bytes) -> list[str]:
    """The messages of the error events in a stream."""
    found = []
    for document in documents(endpoint, body):
        error = document.get("error") or (document if document.get("type") == "error" else None)
        if isinstance(error, dict):
            found.append(str(error["message"]))
    return found


# --- an answer --------------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("status, answers", [(199, False), (200, True), (299, True), (300, False), (304, False)])
def test_which_statuses_are_answers(name: str, status: int, answers: bool) -> None:
    bench = Bench(name)
    bench.head(status)
    assert bench.turn.state is (State.PEEKING if answers else State.FAILING)


@EVERY
def test_a_stream_goes_through_byte_for_byte(name: str) -> None:
    for raw in STREAMS[name]:
        for size in (1, 7, 1000, len(raw)):
            bench = Bench(name)
            assert bench.head() == [], "the head waits for content"
            bench.data(*(raw[at : at + size] for at in range(0, len(raw), size)))
            bench.end()
            assert bench.body == raw
            assert [kind for kind in bench.kinds if kind != "Forward"] == ["OpenHead", "Finish"]
            assert bench.said[0] == OpenHead(Head(200, tuple(SSE.items())))
            assert bench.turn.state is State.OVER
            assert len(bench.script.first) == 1


@EVERY
def test_content_leaves_as_soon_as_it_has_come(name: str) -> None:
    bench, raw = Bench(name), STREAM[name]
    bench.head()
    place = next(at for at in range(len(raw)) if bench.data(raw[at : at + 1]))
    assert place < len(raw) / 2
    assert raw.startswith(bench.body)
    assert len(bench.body) > 1


@EVERY
def test_what_stands_before_content_is_held_back(name: str) -> None:
    endpoint = ENDPOINTS[name]
    opening = OPENING[endpoint.dialect]
    if endpoint.json_array:
        opening = b"[" + opening.removeprefix(b"data: ").strip()
    bench = Bench(name)
    bench.head()
    assert bench.data(opening) == []
    assert bench.turn.state is State.PEEKING


@EVERY
@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_a_whole_answer_goes_through(name: str, size: int) -> None:
    bench, raw = Bench(name, stream=False), WHOLE[name]
    bench.head(200, {"content-type": "application/json"})
    assert bench.data(*(raw[at : at + size] for at in range(0, len(raw), size))) == []
    assert bench.end() == [OpenHead(Head(200, (("content-type", "application/json"),))), Forward(raw), Finish()]
    assert bench.turn.usage() == Usage(3, 4)


def test_d17_a_whole_answer_is_of_use_when_it_is_complete() -> None:
    """However large it is."""
    raw = write_answer(Dialect.CHAT, Answer("x" * (1 << 20), usage=Usage(3, 4)), id="i", model="m", created=1)
    bench = Bench("openai-chat", stream=False)
    bench.head()
    assert bench.data(*(raw[at : at + 70_000] for at in range(0, len(raw), 70_000))) == []
    assert bench.end() == [OpenHead(Head(200, tuple(SSE.items()))), Forward(raw), Finish()]


def test_a_stream_that_says_much_without_content_is_not_held_for_ever() -> None:
    bench = Bench("openai-chat")
    bench.head()
    comment = b": wait\n\n" * 1000
    for _ in range(HELD_BYTES // len(comment) + 1):
        bench.data(comment)
    assert bench.turn.state is State.FLOWING


@EVERY
def test_a_provider_that_answers_json_where_a_stream_was_asked_still_gives_a_stream(name: str) -> None:
    if ENDPOINTS[name].json_array:
        return
    bench = Bench(name)
    bench.head(200, {"content-type": "application/json"})
    bench.data(WHOLE[name])
    bench.end()
    assert bench.kinds == ["OpenHead", "Forward", "Finish"]
    assert b"hello" in bench.body
    opened = next(action for action in bench.said if isinstance(action, OpenHead))
    assert dict(opened.head.headers)["content-type"].startswith("text/event-stream")


@EVERY
def test_a_provider_that_streams_where_json_was_asked_still_gives_json(name: str) -> None:
    if ENDPOINTS[name].json_array:
        return
    bench = Bench(name, stream=False)
    bench.head(200, SSE)
    bench.data(STREAM[name])
    bench.end()
    assert bench.kinds == ["OpenHead", "Forward", "Finish"]
    assert "Việt" in json.dumps(json.loads(bench.body), ensure_ascii=False)
    opened = next(action for action in bench.said if isinstance(action, OpenHead))
    assert dict(opened.head.headers)["content-type"] == "application/json"


@EVERY
def test_usage_is_read_from_a_stream_at_its_end(name: str) -> None:
    bench = Bench(name)
    assert bench.turn.usage() is None
    bench.head()
    bench.data(STREAM[name])
    bench.end()
    usage = bench.turn.usage()
    assert usage is not None
    assert usage.input >= 100
    assert usage.output == 88


# --- before the first content -----------------------------------------------------------------------------------------


FAILURES = {
    "bad head": lambda bench: (bench.head(503, {}), bench.data(b'{"error":{"message":"theirs"}}'), bench.end()),
    "bad head, body cut": lambda bench: (bench.head(503, {}), bench.data(b'{"error":'), bench.broke()),
    "bad head, silent body": lambda bench: (bench.head(503, {}), bench.tick(bench.now + 120)),
    "no connection": lambda bench: bench.broke("refused"),
    "no answer": lambda bench: bench.end(),
    "silence": lambda bench: bench.tick(bench.now + 120),
    "silence behind the head": lambda bench: (bench.head(), bench.tick(bench.now + 120)),
    "reset behind the head": lambda bench: (bench.head(), bench.broke()),
    "nothing behind the head": lambda bench: (bench.head(), bench.end()),
    "cut before content": lambda bench: (bench.head(), bench.data(b": ok\n\nda"), bench.end()),
    "an error as first event": lambda bench: (bench.head(), bench.data(error_event(bench.turn.endpoint))),
    "an error without its blank line": lambda bench: (
        bench.head(),
        bench.data(error_event(bench.turn.endpoint).rstrip()),
        bench.end(),
    ),
    "an error as the whole body": lambda bench: (
        bench.head(),
        bench.data(b'{"type":"error","error":{"code":503,"message":"theirs"}}'),
        bench.end(),
    ),
    "a web page": lambda bench: (bench.head(), bench.data(b"<!doctype html><title>Sign in</title>"), bench.end()),
}
ALL_FAILURES = pytest.mark.parametrize("how", FAILURES)
LATE = Limits(early_head_s=None)
BREAKS = {
    "reset": lambda bench: bench.broke(),
    "clean end": lambda bench: bench.end(),
    "silence": lambda bench: bench.tick(bench.now + 300.0),
}
"""An answer that has begun breaks off."""


@EVERY
@ALL_FAILURES
def test_another_round_may_take_its_place(name: str, how: str) -> None:
    bench = Bench(name, again=[0.5], limits=LATE)
    FAILURES[how](bench)
    assert bench.said[-2:] == [Abandon(), Again(0.5)]
    assert bench.turn.state is State.WAITING
    assert bench.body == b""
    bench.begin()
    bench.head()
    bench.data(STREAM[name])
    bench.end()
    assert bench.body == STREAM[name]
    assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1


@EVERY
@ALL_FAILURES
def test_h06_when_all_fail_the_refusal_is_the_whole_answer(name: str, how: str) -> None:
    bench = Bench(name, limits=LATE)
    FAILURES[how](bench)
    assert bench.said[-2:] == [Refuse(bench.script.refusal()), Finish()]
    assert bench.body == b""
    assert bench.kinds.count("OpenHead") == 0
    assert bench.turn.state is State.OVER


@EVERY
@ALL_FAILURES
def test_an_early_head_then_failure_ends_in_the_same_words_as_an_error_event(name: str, how: str) -> None:
    bench = Bench(name)
    bench.tick(30.0)
    FAILURES[how](bench)
    assert bench.turn.state is State.OVER
    assert [kind for kind in bench.kinds if kind not in ("Forward", "Abandon")] == ["OpenHead", "Finish"]
    assert errors(ENDPOINTS[name], bench.body) == ["the first provider's words"]


@EVERY
def test_keep_alives_do_not_commit(name: str) -> None:
    """An early head and its keep-alives; another round answers under them all the same."""
    bench = Bench(name, again=[0.0, 1.0])
    waited = wait(bench)
    bench.data(STREAM[name])
    bench.end()
    assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1
    assert errors(ENDPOINTS[name], bench.body) == []
    if name != "openai-responses":
        assert waited == answer_for(ENDPOINTS[name], stream=True).keep_alive() * 3
        assert bench.body == waited + STREAM[name]


def wait(bench: Bench) -> bytes:
    """An early head; two rounds fail under it; a third has a good head. What the client was sent meanwhile."""
    opened, *first = bench.tick(30.0)
    assert isinstance(opened, OpenHead)
    assert opened.head.status == 200
    bench.head(500, {})
    bench.end()
    assert bench.turn.state is State.WAITING
    assert bench.tick(44.9) == []
    between = bench.tick(45.0)
    bench.begin()
    bench.broke()
    bench.begin()
    bench.head()
    last = bench.tick(60.0)
    assert len(between) == len(last) == 1
    pings = [*first, *between, *last]
    assert all(isinstance(ping, Forward) for ping in pings)
    assert bench.script.first == []
    return bench.body


@EVERY
@pytest.mark.parametrize("before", [b"", b": ok\n\n"])
@pytest.mark.parametrize("opened", [False, True])
def test_f08_a_provider_that_dies_before_its_first_event_is_an_error_and_no_end(name: str, before: bytes, opened: bool) -> None:
    for dies in (Bench.end, Bench.broke):
        bench = Bench(name)
        if opened:
            bench.tick(30.0)
        bench.head()
        bench.data(before if not ENDPOINTS[name].json_array else b"")
        dies(bench)
        if opened:
            assert errors(ENDPOINTS[name], bench.body) == ["the first provider's words"]
            assert b"message_stop" not in bench.body
            assert b"[DONE]" not in bench.body
        else:
            assert bench.said[-2:] == [Refuse(bench.script.refusal()), Finish()]


def test_the_first_error_of_a_bad_head_is_read_with_its_headers_and_a_bounded_body() -> None:
    bench = Bench("openai-chat")
    bench.head(429, {"retry-after": "7"})
    for _ in range(10):
        bench.data(b" " * (ERROR_BYTES // 4))
    bench.end()
    (failed,) = bench.script.failures
    assert failed.error.retry_after_s == 7.0
    assert failed.head == Head(429, (("retry-after", "7"),))
    assert len(failed.body) <= ERROR_BYTES * 1.25


@pytest.mark.parametrize("how, network", [("no connection", True), ("silence", True), ("bad head", False), ("a web page", False)])
def test_h11_whose_fault_it_was(how: str, network: bool) -> None:
    bench = Bench("anthropic-messages")
    FAILURES[how](bench)
    assert bench.script.failures[0].error.network is network


# --- after the first content ------------------------------------------------------------------------------------------


def begun(name: str, share: float = 0.6, again: list[float | None] | None = None) -> tuple[Bench, bytes]:
    """A turn whose round has said some of its answer."""
    bench = Bench(name, again=again or [0.0] * 9)
    bench.head()
    part = STREAM[name][: int(len(STREAM[name]) * share)]
    bench.data(part)
    assert bench.turn.state is State.FLOWING
    return bench, part


@EVERY
@pytest.mark.parametrize("how", BREAKS)
def test_h14_a_stream_without_its_last_event_ends_in_exactly_one_error_event(name: str, how: str) -> None:
    endpoint = ENDPOINTS[name]
    for share in (0.5, 0.55, 0.6, 0.63, 0.66, 0.7):
        bench, part = begun(name, share)
        BREAKS[how](bench)
        assert bench.kinds.count("Again") == 0
        assert bench.kinds.count("OpenHead") == bench.kinds.count("Finish") == 1
        assert len(errors(endpoint, bench.body)) == 1
        assert len(documents(endpoint, bench.body)) > 1
        told = documents(endpoint, bench.body)[:-1]
        reader = ArrayItems() if endpoint.json_array else Events()
        whole = [json.loads(event.data) for event in reader.feed(part) if event.data]
        assert told[: len(whole)] == whole, "every whole event was passed on"
        assert len(told) <= len(whole) + 1, "and one more that lacked only its blank line"


@EVERY
def test_an_upstream_error_event_is_not_followed_by_a_second_one(name: str) -> None:
    endpoint = ENDPOINTS[name]
    theirs = b"," + error_event(endpoint)[1:] if endpoint.json_array else error_event(endpoint)
    reader = ArrayItems() if endpoint.json_array else Events()
    opened = b"".join(event.raw for event in reader.feed(STREAM[name][: len(STREAM[name]) // 2]))
    for end in BREAKS.values():
        for cut in range(len(theirs)):
            bench = Bench(name)
            bench.head()
            bench.data(opened, theirs[:cut], theirs[cut:])
            end(bench)
            assert bench.body == opened + theirs or (endpoint.json_array and bench.body.startswith(opened))
            assert errors(endpoint, bench.body) == ["theirs"]
            assert bench.kinds[-1] == "Finish"


@EVERY
@pytest.mark.parametrize("how", BREAKS)
def test_a_complete_stream_ends_well_whatever_becomes_of_its_connection(name: str, how: str) -> None:
    """Its terminal event cut over two chunks, at every place."""
    raw = STREAM[name]
    for cut in range(len(raw) - 40, len(raw)):
        bench = Bench(name)
        bench.head()
        bench.data(raw[:cut], raw[cut:])
        BREAKS[how](bench)
        assert bench.body == raw
        assert bench.kinds[-1] == "Finish"
        assert errors(ENDPOINTS[name], raw) == []


@pytest.mark.parametrize("how", ["reset", "silence"])
def test_half_a_whole_answer_is_none(how: str) -> None:
    """Nothing of it has left: it is asked for again."""
    bench = Bench("openai-chat", stream=False, again=[0.0])
    bench.head()
    bench.data(b"{" + b" " * (1 << 20))
    BREAKS[how](bench)
    assert bench.kinds == ["Abandon", "Again"]


def test_an_array_that_turns_into_something_else_ends_in_an_error() -> None:
    bench, _ = begun("array")
    bench.data(b"]]]] not JSON")
    bench.end()
    assert bench.turn.state is State.OVER
    assert len(errors(ENDPOINTS["array"], bench.body)) == 1


# --- the client leaves ------------------------------------------------------------------------------------------------

MOMENTS = {
    "asking": lambda bench: None,
    "failing": lambda bench: bench.head(500, {}),
    "peeking": lambda bench: bench.head(),
    "waiting": lambda bench: bench.broke(),
    "flowing": lambda bench: (bench.head(), bench.data(STREAM[bench.name])),
}


@EVERY
@pytest.mark.parametrize("moment", MOMENTS)
def test_m14_after_the_client_has_gone_nothing_is_done_but_to_stop(name: str, moment: str) -> None:
    bench = Bench(name, again=[1.0, 1.0])
    MOMENTS[moment](bench)
    assert bench.turn.state.value == moment
    assert bench.gone() == [Abandon()]
    with pytest.raises(OutOfPlace):
        bench.begin()
    for late in (bench.head, lambda: bench.data(b"x"), bench.end, bench.broke, bench.gone, lambda: bench.tick(1e6)):
        assert late() == []
    assert bench.turn.state is State.OVER
    assert bench.turn.deadline == float("inf")


def test_leaving_takes_back_what_was_not_carried_out() -> None:
    bench = Bench("openai-chat")
    bench.head()
    bench.turn.data(STREAM["openai-chat"], 0.0)
    assert bench.gone() == [Abandon()]


# --- time -------------------------------------------------------------------------------------------------------------

QUICK = Limits(first_byte_s=10.0, idle_s=20.0, early_head_s=4.0, keep_alive_s=3.0)


@pytest.mark.parametrize(
    "stream, limits, steps",
    [
        pytest.param(
            True, QUICK, [(0.0, 4.0), (4.0, 7.0), (7.0, 10.0)], id="first the early head, then keep-alives, then the end"
        ),
        pytest.param(False, QUICK, [(0.0, 10.0)], id="no keep-alive in a whole answer"),
        pytest.param(True, Limits(10.0, 20.0, None, 3.0), [(0.0, 10.0)], id="no early head where none is wanted"),
    ],
)
def test_when_the_next_tick_is_due(stream: bool, limits: Limits, steps: list[tuple[float, float]]) -> None:
    bench = Bench("anthropic-messages", stream=stream, limits=limits)
    for at, due in steps:
        bench.tick(at)
        assert bench.turn.deadline == due
    bench.tick(10.0)
    assert bench.turn.state is State.OVER
    assert bench.turn.deadline == float("inf")


def test_ticks_before_their_time_do_nothing() -> None:
    bench = Bench("anthropic-messages", limits=QUICK)
    for at in (0.0, 1.0, 3.999):
        assert bench.tick(at) == []


def test_bytes_put_the_deadline_off() -> None:
    bench = Bench("anthropic-messages", limits=Limits(10.0, 20.0, None))
    bench.now = 5.0
    bench.head()
    assert bench.turn.deadline == 15.0
    bench.now = 9.0
    bench.data(b": still there\n\n")
    assert bench.turn.deadline == 19.0
    bench.data(STREAM["anthropic-messages"][:2000])
    assert bench.turn.state is State.FLOWING
    assert bench.turn.deadline == 29.0, "idle time counts once content has come"
    assert bench.tick(28.9) == []
    bench.now = 28.9
    bench.data(b": ping\n\n")
    assert bench.turn.deadline == pytest.approx(48.9)
    bench.tick(48.9)
    assert bench.turn.state is State.OVER


SIGNS = {
    "anthropic-messages": b'event: ping\ndata: {"type": "ping"}\n\n',
    "openai-chat": b': keep-alive\n\ndata: {"choices":[{"delta":{"content":""},"finish_reason":null}]}\n\n',
    "openai-responses": b'data: {"type":"response.in_progress","response":{}}\n\n',
    "gemini-chat": b": here\n\n",
    "array": b"\n",
}
"""What a provider may send for ever without answering."""


@EVERY
def test_signs_of_life_are_no_answer(name: str) -> None:
    """They put off the end of a silence, but not for ever; whole or in halves."""
    bench = Bench(name, again=[0.0], limits=Limits(10.0, 20.0, None, content_s=100.0))
    bench.head()
    half = len(SIGNS[name]) // 2
    while not bench.script.failures and bench.now < 1000:
        bench.now += 4.0
        bench.data(SIGNS[name][:half])
        bench.now += 4.0
        bench.data(SIGNS[name][half:])
        bench.tick(bench.now)
    assert 100.0 <= bench.now <= 113.0
    assert bench.script.failures[0].error.status == 504
    assert "said nothing but that it is there" in bench.script.failures[0].error.message
    assert bench.turn.state is State.WAITING


@EVERY
def test_signs_of_life_within_an_answer_end_it(name: str) -> None:
    bench = Bench(name, limits=Limits(10.0, 20.0, None, content_s=100.0))
    bench.head()
    bench.data(STREAM[name][: len(STREAM[name]) // 2])
    assert bench.turn.state is State.FLOWING
    while bench.turn.state is State.FLOWING and bench.now < 1000:
        bench.now += 8.0
        bench.data(SIGNS[name])
        bench.tick(bench.now)
    assert 100.0 <= bench.now <= 121.0
    told = b"".join(action.data for action in bench.said if isinstance(action, Forward))
    assert b"it said nothing but that it is there for 100 seconds" in told
    assert Finish() in bench.said


@EVERY
def test_a_long_answer_is_never_cut(name: str) -> None:
    """However slowly it comes: each event has its time."""
    bench = Bench(name, limits=Limits(10.0, 20.0, None, content_s=85.0))
    bench.head()
    stream = STREAM[name]
    size = max(1, len(stream) // 100)
    for at in range(0, len(stream), size):
        bench.data(stream[at : at + size])
        bench.now += 1.0
        bench.tick(bench.now)
    bench.end()
    assert bench.content == stream
    assert bench.script.failures == []


def test_content_is_looked_for_between_signs_of_life() -> None:
    """One word now and then, as from a model that thinks for long."""
    bench = Bench("anthropic-messages", limits=Limits(10.0, 20.0, None, content_s=100.0))
    word = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"w"}}\n\n'
    )
    bench.head()
    bench.data(STREAM["anthropic-messages"][:600])
    for _ in range(20):
        for _ in range(11):
            bench.now += 8.0
            bench.data(SIGNS["anthropic-messages"])
            bench.tick(bench.now)
        bench.data(word)
    assert bench.turn.state is State.FLOWING


@pytest.mark.parametrize("stream", [True, False])
def test_the_body_of_an_error_is_not_waited_for(stream: bool) -> None:
    """Two bytes a second: that it failed is known."""
    bench = Bench("openai-chat", stream=stream, again=[0.0], limits=Limits(600.0, 300.0, None))
    bench.head(503)
    while not bench.script.failures and bench.now < 1000:
        bench.now += 1.0
        bench.data(b"xx")
        bench.tick(bench.now)
    assert bench.now == ERROR_S
    assert bench.script.failures[0].error.status == 503
    assert bench.script.failures[0].body == b"xx" * int(ERROR_S)


def test_half_a_whole_answer_is_waited_for_like_half_a_stream() -> None:
    """Before it has begun a whole answer may take long; it is then written in one go."""
    bench = Bench("openai-chat", stream=False, again=[0.0], limits=Limits(600.0, 300.0, None))
    assert bench.turn.deadline == 600.0
    bench.now = 500.0
    bench.head(200, {"content-type": "application/json"})
    assert bench.turn.deadline == 1100.0
    bench.now = 501.0
    bench.data(b'{"choices": [')
    assert bench.turn.deadline == 801.0
    bench.tick(801.0)
    assert bench.script.failures[0].error.status == 504


def test_white_space_is_no_answer_either() -> None:
    bench = Bench("openai-chat", stream=False, again=[0.0], limits=Limits(600.0, 300.0, None, content_s=600.0))
    bench.head(200, {"content-type": "application/json"})
    while not bench.script.failures and bench.now < 2000:
        bench.now += 20.0
        bench.data(b"\n")
        bench.tick(bench.now)
    assert 600.0 <= bench.now <= 660.0


def test_a_round_that_waits_to_be_sent_has_no_deadline_of_its_own() -> None:
    bench = Bench("anthropic-messages", again=[5.0], limits=QUICK)
    bench.tick(1.0)
    bench.broke()
    assert bench.turn.state is State.WAITING
    assert bench.turn.deadline == 4.0, "the early head"
    bench.tick(4.0)
    assert bench.turn.deadline == 7.0
    bench.tick(100.0)
    assert bench.turn.state is State.WAITING
    bench.now = 101.0
    bench.begin()
    assert bench.turn.deadline == min(111.0, 103.0), "each round has its own time"


def test_decision_22_keep_alives_come_every_keep_alive_s_and_stop_with_content() -> None:
    bench = Bench("anthropic-messages", limits=Limits(1000.0, 1000.0))
    at = 0.0
    times = []
    while at < 200:
        at = bench.turn.deadline
        if bench.tick(at):
            times.append(at)
    assert times[:4] == [30.0, 45.0, 60.0, 75.0]
    bench.head()
    bench.data(STREAM["anthropic-messages"][:2000])
    assert bench.tick(at + 500) == []


# --- anything at all --------------------------------------------------------------------------------------------------

ODD_BYTES = [
    b"",
    b"\n",
    b"data: {\n\n",
    b"]",
    b'{"error":{"message":"whole","code":429}}',
    b"<html>no</html>",
    b"\xff\xfe\x00",
    b"data: [DONE]\n\n",
    *ERROR.values(),
]
OPERATIONS = st.one_of(
    st.tuples(st.just("head"), st.sampled_from([200, 200, 200, 201, 301, 400, 429, 500, 529])),
    st.tuples(st.just("data"), st.integers(1, 4000)),
    st.tuples(st.just("data"), st.integers(1, 4000)),
    st.tuples(st.just("odd"), st.sampled_from(ODD_BYTES)),
    st.tuples(st.just("rest"), st.just(0)),
    st.tuples(st.just("end"), st.just(0)),
    st.tuples(st.just("broke"), st.just(0)),
    st.tuples(st.just("begin"), st.just(0)),
    st.tuples(st.just("tick"), st.sampled_from([0.1, 16.0, 31.0, 121.0, 301.0])),
    st.tuples(st.just("gone"), st.just(0)),
)
USUAL = st.sampled_from(
    [
        [("head", 200), ("rest", 0), ("end", 0)],
        [("head", 200), ("data", 1500), ("broke", 0)],
        [("head", 500), ("end", 0), ("begin", 0)],
        [("tick", 31.0), ("head", 200), ("data", 2500), ("tick", 16.0), ("rest", 0), ("end", 0)],
        [("head", 200), ("tick", 31.0), ("data", 1500), ("data", 300), ("broke", 0)],
    ]
)
SEQUENCES = st.lists(st.one_of(OPERATIONS.map(lambda one: [one]), USUAL), max_size=14).map(
    lambda found: [operation for some in found for operation in some]
)


@settings(max_examples=20_000 if LONG else 400)
@given(
    st.sampled_from(sorted(ENDPOINTS)),
    st.booleans(),
    st.integers(0, 99),
    st.lists(st.sampled_from([None, 0.0, 0.5]), max_size=4),
    SEQUENCES,
)
@example("anthropic-messages", True, 0, [], [("head", 200), ("rest", 0), ("odd", b"data: {\n\n"), ("end", 0)])
def test_whatever_happens(
    name: str, stream: bool, which: int, again: list[float | None], operations: list[tuple[str, object]]
) -> None:
    raw = STREAMS[name][which % len(STREAMS[name])] if stream else WHOLE[name]
    run = Run(Bench(name, stream=stream, again=again), raw)
    for operation, value in operations:
        over = run.bench.turn.state is State.OVER
        answered = bool(run.bench.script.first)
        new = run.step(operation, value)
        assert not (over and new), "nothing after the end"
        assert not (answered and any(isinstance(action, Again | Refuse) for action in new)), "no retry after content"
        assert not (new and isinstance(new[-1], Again)) or run.bench.turn.state is State.WAITING
        _check(run.bench)
    if run.bench.script.first:
        _check_answer(run)


@dataclass(slots=True)
class Run:
    bench: Bench
    raw: bytes
    told: bytes = b""
    """What the round that is running has said."""

    def step(self, operation: str, value: object) -> list[Action]:
        bench = self.bench
        match operation:
            case "head":
                return bench.head(int(str(value)))
            case "data":
                return self._say(self.raw[len(self.told) : len(self.told) + int(str(value))])
            case "rest":
                return self._say(self.raw[len(self.told) :])
            case "odd":
                assert isinstance(value, bytes)
                return self._say(value)
            case "end":
                return bench.end()
            case "broke":
                return bench.broke()
            case "begin":
                if bench.turn.state is not State.WAITING:
                    return []
                self.told = b""
                return bench.begin()
            case "tick":
                return bench.tick(bench.now + float(str(value)))
            case _:
                return bench.gone()

    def _say(self, chunk: bytes) -> list[Action]:
        if self.bench.turn.state in (State.PEEKING, State.FLOWING):
            self.told += chunk
        return self.bench.data(chunk)


def _check(bench: Bench) -> None:
    """What holds at every moment."""
    kinds = bench.kinds
    heads = kinds.count("OpenHead") + kinds.count("Refuse")
    assert heads <= 1, "one head"
    ends = kinds.count("Finish") + kinds.count("Abort")
    assert ends <= 1, "one end"
    if "Forward" in kinds:
        assert heads == 1
        assert kinds.index("OpenHead") < kinds.index("Forward"), "no bytes before the head"
    if ends:
        assert kinds[-1] in ("Finish", "Abort"), "no bytes after the end"
        assert bench.turn.state is State.OVER
        assert heads == 1
    elif bench.turn.state is State.OVER:
        assert kinds[-1] == "Abandon", "only who left is left without an end"
    assert len(bench.script.first) <= 1
    assert (bench.turn.state is State.FLOWING) <= bool(bench.script.first)


def _check_answer(run: Run) -> None:
    """Nothing that the answering round said is lost; a broken answer ends in exactly one error."""
    bench, endpoint = run.bench, ENDPOINTS[run.bench.name]
    content, told = bench.content, as_utf8(run.told)  # what is no UTF-8 is made it
    if b"resp_ours" in bench.body:
        check_begun_answer(run)
        return
    if bench.kinds[-1] != "Finish":
        assert told.startswith(content)
        return
    for end in ENDS:
        if content.endswith(end) and not told.endswith(end) and told.startswith(content.removesuffix(end)):
            return  # its reason had come, and the last event is written by us
    if told == run.raw:
        assert content == run.raw
    if bench.stream and told.startswith(content) and content.rstrip().endswith(run.raw.rstrip()[-20:]):
        return  # what comes behind its end is nobody's
    if bench.stream and run.raw.startswith(told):
        assert content == told or len(errors(endpoint, bench.body)) == 1
    if content != told:
        (*_, ours) = [action.data for action in bench.said if isinstance(action, Forward)]
        passed = content.removesuffix(ours)
        assert told.startswith((passed, passed.removesuffix(b"\n\n")))
        assert b"The provider" in ours or len(errors(endpoint, bench.body)) == 1


ENDS = (b"data: [DONE]\n\n", b'event: message_stop\ndata: {"type":"message_stop"}\n\n', b"]")


def check_begun_answer(run: Run) -> None:
    """Where we began the answer, its events are written anew: every piece of text is there, in one well-numbered response."""
    bench = run.bench
    if not run.raw.startswith(run.told):  # what is nobody's event passes as it came
        return
    found = documents(ENDPOINTS[bench.name], bench.body)
    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    text, told = _text_in(bench.body), _text_in(run.told)
    if bench.kinds[-1] != "Finish":
        assert told.startswith(text)
        return
    assert text == told
    assert (found[-1]["type"] == "response.completed") is not bool(errors(ENDPOINTS[bench.name], bench.body))
    assert found[-1]["type"] == "response.completed" or run.told != run.raw


def _text_in(raw: bytes) -> str:
    reader = Events()
    found = [read_object(event.data) or {} for event in reader.feed(raw) + reader.close()]
    return "".join(str(one["delta"]) for one in found if one.get("type") == "response.output_text.delta")


def test_f11_a_text_that_begins_like_the_providers_key_waits_for_its_rest() -> None:
    def told(text: str) -> bytes:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        return b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"

    bench = Bench(str(Dialect.CHAT))
    bench.script.secrets = ("sk-ant-api03-Zm9vYmFyYmF6cXV4",)
    bench.head()
    bench.data(told("Hello"))
    assert bench.turn.waits_until == float("inf")
    bench.now = 1.0
    assert bench.data(told("sk-ant-"), told("api03")) == [Forward(told("sk-ant-"))]
    assert bench.turn.deadline == bench.turn.waits_until == 1.2
    assert bench.tick(1.1) == []
    assert bench.tick(1.2) == [Forward(told("api03"))]
    assert bench.turn.waits_until == float("inf")
    bench.gone()
    assert bench.turn.waits_until == float("inf")
