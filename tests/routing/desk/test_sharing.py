"""What two processes must agree on: what one of them learns, the other one knows when the next call comes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from routecodex.routing.desk.desk import Rest
from routecodex.routing.desk.sharing import SERVER, Sharing
from routecodex.routing.sessions.shared import SharedStates
from routecodex.routing.sessions.state import StopMessage
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.stop_message.decide import claim
from routecodex.routing.storage.contract import NEVER, Found, Key, Kind, Put
from routecodex.routing.storage.shared_file import SharedFile
from routecodex.routing.turn.hidden import Hidden
from routecodex.routing.turn.hidden import Key as HiddenKey
from routecodex.routing.turn.hidden_shared import SharedHidden
from routecodex.routing.turn.upstream import Received
from routecodex.routing.values import Dialect, Target
from tests.routing.house import Clock, Handled, House, Tool, config_text, done, inline, provider_text

KEYS = config_text("default: [p.m]", provider_text("p", "k1 k2", "m"))
BOTH = provider_text("p", "k1", "m") + provider_text("q", "k1", "m")
KEY = SessionKey("session", "one")


@dataclass(slots=True)
class Process(House):
    """One of several that share a folder."""

    name: str = "one"
    sharing: Sharing = field(init=False)
    store: SharedFile = field(init=False)

    def open(self) -> None:
        House.open(self)
        self.store = SharedFile(self.folder, inline, wall=lambda: self.clock.epoch)
        states, hidden = SharedStates(self.store), SharedHidden(self.store)
        self.sharing = Sharing(self.learned, self.desk.clocks, self.name, lambda: None, states, hidden)
        self.desk.store = self.desk.obeying.store = states
        self.desk.hidden = hidden
        self.desk.on_seals = self.sharing.seals
        self.desk.on_departs = self.sharing.departs

    def handle(self, received: Received) -> Handled:
        met = self.desk.meet(received)
        for wanted in (self.sharing.wanted, self.sharing.then):
            asked = wanted(met)
            self.sharing.heard(asked, done(self.store.read(asked)))
        handled = House.handle(self, received)
        self.tell()
        return handled

    def tell(self) -> None:
        if puts := self.sharing.taken():
            done(self.store.put(puts))


Build = Callable[..., tuple[Process, Process]]


@pytest.fixture
def two(tmp_path: Path) -> Build:
    def build(config: str = KEYS) -> tuple[Process, Process]:
        clock = Clock()
        one, other = (Process(tmp_path, config, clock, name=name) for name in ("one", "other"))
        other.clock = Clock(now=5.0, epoch=clock.epoch)  # each machine's own beginning
        other.open()
        return one, other

    return build


def at(process: Process, tool: Tool) -> Tool:
    """The tool's next call comes to that process."""
    tool.house = process
    return tool


def answered(handled: Handled, id: str = "answer-1", *, ended: bool = True) -> str:
    """All the others know of it by the end of the answer."""
    target = handled.answered(id, ended=ended)
    handled.house.tell()  # type: ignore[attr-defined]
    return target


def leaves(process: Process, handled: Handled) -> Handled:
    """As `decide` tells it."""
    assert handled.reading is not None
    process.sharing.departs(handled.reading.key, handled.reading.mark, handled.plan.target)
    process.tell()
    return handled


def test_a_key_without_money_is_not_tried_by_the_other(two: Build) -> None:
    one, other = two()
    failing = Tool(one, session="a").say("hi")
    bad = failing.target
    failing.failed(402)
    one.tell()
    for number in range(4):
        assert answered(Tool(other, session=f"s{number}").say("hi")) != bad
    other.clock.passes(4 * 86_400)
    assert bad in {answered(Tool(other, session=f"t{number}").say("hi")) for number in range(2)}, "a rest ends there, too"


def test_a_key_that_is_well_again_is_well_everywhere(two: Build) -> None:
    one, other = two()
    failing = Tool(one, session="a").say("hi")
    bad = failing.plan.target
    failing.failed(402)
    one.tell()
    Tool(other, session="b").say("hi")
    assert other.learned.health.told((bad.provider, bad.key, ""), other.clock.now, other.clock.epoch)
    one.learned.health.succeeded(bad, one.clock.now + 1)
    one.learned.health.succeeded(bad, one.clock.now + 90_000)
    one.tell()
    Tool(other, session="c").say("hi")
    assert not other.learned.health.told((bad.provider, bad.key, ""), other.clock.now, other.clock.epoch)


def test_they_take_turns_together(two: Build) -> None:
    one, other = two()
    targets = [answered(Tool(house, session=str(number)).say("hi")) for number, house in enumerate([one, other] * 4)]
    assert targets == ["p.k1.m", "p.k2.m"] * 4


def test_the_hops_of_one_message_keep_their_key(two: Build) -> None:
    one, other = two()
    tool = Tool(one)
    first = answered(tool.say("do it"), ended=False)
    hops = [answered(at(house, tool).hop(), ended=False) for house in (other, one, other)]
    assert set(hops) == {first}


def test_what_grew_is_known_by_the_other(two: Build) -> None:
    one, other = two(config_text("default: [p.m]", BOTH))
    tool = Tool(one)
    tool.say("<**q.m**> first")
    tool.history[-1]["content"].append({"type": "text", "text": "second"})
    assert at(other, tool).ask().target == "p.k1.m", "the force was the older text's"
    seen = other.learned.seen.get(KEY)
    assert seen is not None
    assert seen.old == 1, "all of it was new to the other"


def test_a_message_that_was_answered_acts_again_when_it_is_sent_once_more(two: Build) -> None:
    one, other = two(config_text("default: [p.m]", provider_text("p", "k1 k2", "m")))
    tool = Tool(one)
    answered(tool.say("<**#p[k1]**> go"))
    assert one.desk.store.load(KEY).disabled_keys
    assert not any("end:" in put.place for put in one.sharing.taken()), "its end has perhaps not left yet"
    one.sharing.tick()
    one.tell()
    done(other.desk.store.change(KEY, lambda state: state.with_(disabled_keys=()), inline))
    at(other, tool).ask()
    assert other.desk.store.load(KEY).disabled_keys == (("p", "k1"),)


def test_a_follow_up_goes_where_its_answer_lives(two: Build) -> None:
    one, other = two()
    first = Tool(one, Dialect.RESPONSES, session=None)
    target = answered(first.say("hi"), "resp_1")
    follow = Tool(other, Dialect.RESPONSES, session=None, more={"previous_response_id": "resp_1"})
    handled = follow.say("and then?")
    assert handled.target == target
    assert handled.reading is not None
    assert one.learned.chains.get("resp_1") == (handled.reading.key, handled.plan.target)


def test_what_a_chain_ordered_holds_at_the_other(two: Build) -> None:
    one, other = two(config_text("default: [p.m]", BOTH, top="sessions: {derive: off}"))
    first = Tool(one, Dialect.RESPONSES, session=None)
    assert answered(first.say("<**!q.m**> hi"), "resp_1") == "q.k1.m"
    follow = Tool(other, Dialect.RESPONSES, session=None, more={"previous_response_id": "resp_1"})
    handled = follow.say("and then?")
    assert handled.orders is not None
    assert str(handled.orders.state.sticky) == "q.m"


def test_an_answer_that_began_here_is_known_there(two: Build) -> None:
    one, other = two()
    handled = Tool(one, Dialect.RESPONSES, session=None, stream=True).say("hi")
    opening = handled.plan.opening()
    answered(handled, "resp_theirs")
    follow = Tool(other, Dialect.RESPONSES, session=None, more={"previous_response_id": opening.id}).say("and then?")
    assert follow.body["previous_response_id"] == "resp_theirs"


def test_why_a_target_is_no_longer_in_force(two: Build) -> None:
    one, other = two()
    one.learned.lapsed.put(KEY, one.desk.store.load(KEY).sticky)
    one.learned.noticed.put(KEY, frozenset({"cleared p.m"}))
    one.tell()
    Tool(other).say("hi")
    assert other.learned.noticed.get(KEY) == {"cleared p.m"}


def test_who_made_a_seal(two: Build) -> None:
    one, other = two()
    handled = Tool(one).say("hi")
    handled.plan.note_seals(b'{"signature": "sealed-by-the-first"}')
    one.tell()
    Tool(other).say("hi")
    assert other.learned.seals.maker_of("sealed-by-the-first") == "p"


def test_all_repetitions_count_together(two: Build) -> None:
    one, other = two()
    for _ in range(3):
        one.learned.budget.begin()
        one.learned.budget.retries(1)
    one.tell()
    Tool(other).say("hi")
    assert not other.learned.budget.may_retry()
    other.clock.passes(20)
    other.sharing.tick()
    assert other.learned.budget.may_retry(), "a process that says no more repeats no more"


def test_a_stop_message_is_counted_once(two: Build) -> None:
    """Whoever counts from what it saw long ago."""
    one, other = two()
    done(one.desk.store.change(KEY, lambda state: state.with_(stop=StopMessage("go", 3)), inline))
    sent: list[bool] = []
    for house in [one, other] * 4:

        def change(state, sent=sent):  # type: ignore[no-untyped-def]
            new, may_send = claim(state, 1)
            sent.append(may_send)
            return new

        done(house.desk.store.change(KEY, change, inline))
    assert sum(sent) == 3


def test_hidden_rounds_are_put_back_by_the_other(two: Build) -> None:
    one, other = two()
    entries = [
        Hidden(Dialect.MESSAGES, HiddenKey(f"a{number}", "t"), 0, ({"role": "assistant", "content": f"round {number}"},))
        for number in range(3)
    ]
    for house, entry in zip((one, other, one), entries, strict=True):
        assert house.desk.hidden is not None
        done(house.desk.hidden.keep(KEY, lambda entry=entry: entry, inline))
    Tool(other).say("hi")
    assert other.desk.hidden is not None
    assert other.desk.hidden.load(KEY) == tuple(entries)


def test_what_is_not_told_yet_is_newer_than_what_is_heard(two: Build) -> None:
    one, other = two()
    mark = (KEY, "m")
    one.learned.pins.put(mark, Target("p", "k1", "m"))
    one.tell()
    other.learned.pins.put(mark, Target("p", "k2", "m"))
    asked = [(Key(Kind.MEMO, "session:one"), NEVER)]
    other.sharing.heard(asked, done(other.store.read(asked)))
    assert other.learned.pins.get(mark) == Target("p", "k2", "m")


def test_what_nobody_heard_is_told_again(two: Build) -> None:
    one, other = two()
    one.learned.pins.put((KEY, "m"), Target("p", "k1", "m"))
    puts = one.sharing.taken()
    one.learned.pins.put((KEY, "m"), Target("p", "k2", "m"))
    one.sharing.again(puts)
    one.tell()
    Tool(other).say("hi")
    assert other.learned.pins.get((KEY, "m")) == Target("p", "k2", "m")
    assert one.sharing.silent


def test_a_call_without_a_session_asks_nothing(two: Build) -> None:
    one, _ = two(config_text("default: [p.m]", provider_text("p", "k1", "m"), top="sessions: {derive: off}"))
    met = one.desk.meet(Tool(one, Dialect.CHAT, session=None).handed("hi"))
    assert one.sharing.wanted(met) == []


def test_a_hop_tells_nothing_new(two: Build) -> None:
    one, _ = two()
    tool = Tool(one)
    answered(tool.say("do it"), ended=False)
    tool.hop().plan.answered("answer-2", one.clock.now)
    assert one.sharing.silent


def test_what_is_told_when_a_call_leaves_is_all_that_is_to_be_told(two: Build) -> None:
    """An answer's end waits for nothing more, unless another key has answered."""
    one, other = two()
    here = other.learned.pins
    handled = leaves(one, Tool(one, session="a").say("hi"))
    handled.answered(ended=False)
    assert one.sharing.silent
    Tool(other, session="a").say("hi")
    assert {here.get(at) for at in here.newest()} == {handled.plan.target}
    failing = leaves(one, Tool(one, session="b").say("hi"))
    expected = failing.plan.target
    failing.failed(402)
    failing.answered(ended=False)
    assert failing.plan.target != expected
    one.tell()
    Tool(other, session="b").say("hi")
    assert here.get(next(here.newest())) == failing.plan.target


def test_where_nobody_answered_nothing_is_kept_to(two: Build) -> None:
    one, other = two()
    handled = leaves(one, Tool(one, session="a").say("hi"))
    Tool(other, session="a").say("hi")
    assert list(other.learned.pins.newest())
    handled.plan.over()
    one.tell()
    Tool(other, session="a").say("hi")
    assert not list(other.learned.pins.newest())


def test_nonsense_in_the_store_is_passed_over(two: Build) -> None:
    one, _ = two()
    memo, seals, answer = Key(Kind.MEMO, "session:one"), Key(Kind.SEALS, "session:one"), Key(Kind.ANSWER, "resp_1")
    wrong = [b"null", b"[1]", b'"x"', b"{}", b"\xff", b'[["a"], 1, {}]', b'["a", "b"]', b"12345678901234567890123"]
    places = ["seen", "lapsed", "pin:x", "end:x", "told:x", "other", "health:x", 'health:["p"]', "turn:w", "stays:p", "busy:x"]
    for entry in wrong:
        puts = [Put(key, place, entry) for key in (memo, seals, SERVER) for place in places]
        done(one.store.put([*puts, Put(answer, "chain", entry), Put(answer, "begun", entry)]))
        Tool(one, Dialect.RESPONSES, more={"previous_response_id": "resp_1"}).say("hi")


def test_a_rest_is_waited_for_as_it_was_told(two: Build) -> None:
    one, other = two(config_text("default: [p.m]", provider_text("p", "k1", "m")))
    Tool(one, session="a").say("hi").failed(429, retry_after_s=5.0)
    one.tell()
    outcome = Tool(other, session="b").say("hi").outcome
    assert isinstance(outcome, Rest)


def test_what_nobody_hears_for_a_day_is_bounded(two: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is gone, while calls go on without it."""
    monkeypatch.setattr("routecodex.routing.desk.sharing._MOST_UNSAID", 10)
    one, other = two()
    for number in range(50):
        one.learned.pins.put((KEY, f"m{number}"), Target("p", "k1", "m"))
    assert len(one.sharing._waiting) == 10
    one.tell()
    asked = [(Key(Kind.MEMO, "session:one"), NEVER)]
    other.sharing.heard(asked, done(other.store.read(asked)))
    assert [other.learned.pins.get((KEY, f"m{number}")) is not None for number in (0, 39, 40, 49)] == [False, False, True, True]


@pytest.mark.parametrize(
    "kind, place, entry",
    [
        (Kind.SERVER, "turn:w", b'{"a": 1e308, "b": -1e308}'),
        (Kind.SERVER, "turn:w", b'{"a": %s}' % (b"9" * 400)),
        (Kind.SERVER, "turn:w", b'[["a", 1]]'),
        (Kind.SERVER, f"turn:{'w' * 3000}", b'{"a": 1}'),
        (Kind.SERVER, "stays:w", b'["p"]'),
        (Kind.SERVER, "health:{", b"{}"),
        (Kind.SERVER, "health:5", b'{"length": 5}'),
        (Kind.SERVER, "busy:x", b'["a", null, 1]'),
        (Kind.MEMO, "seen", b'[1, ["x"], {}]'),
        (Kind.MEMO, "pin:m", b'["p", "k"]'),
        (Kind.MEMO, f"pin:{'m' * 3000}", b'["p", "k", "m"]'),
        (Kind.MEMO, "pin:m", b'["p", "k", "%s"]' % (b"m" * 100_000)),
        (Kind.MEMO, "lapsed", b"\xff"),
        (Kind.SEALS, "zz", b'"p"'),
    ],
)
def test_nonsense_that_a_neighbour_put_there_is_not_known(two: Build, kind: Kind, place: str, entry: bytes) -> None:
    one, _ = two()
    key = Key(kind, "" if kind is Kind.SERVER else "session:one")
    before = repr((one.learned.rotation, one.learned.budget.others, one.learned.health._records, one.learned.pins._entries))
    one.sharing.heard([(key, NEVER)], [Found(("b", 1), ((place, entry),), True)])
    assert (
        repr((one.learned.rotation, one.learned.budget.others, one.learned.health._records, one.learned.pins._entries)) == before
    )


def test_what_a_neighbour_says_of_its_repetitions_has_bounds_and_an_end(two: Build) -> None:
    one, _ = two()
    entries = tuple((f"busy:{number}", b"[-5, 1000000000, 9000000000000000000]") for number in range(2_000))
    one.sharing.heard([(Key(Kind.SERVER, ""), NEVER)], [Found(("b", 1), entries, True)])
    assert len(one.learned.budget.others) == 1_000
    assert set(one.learned.budget.others.values()) == {(0, 100_000)}
    one.clock.epoch += 60
    one.sharing.tick()
    assert one.learned.budget.others == {}


def test_why_does_not_speak_for_those_who_serve_the_conversation_too(two: Build) -> None:
    one, other = two()
    tool = Tool(one)
    tool.say("<**echo**> hi")
    for process, begins in ((other, "This process has sent nothing"), (one, "0 s ago: echo")):
        told = at(process, tool).say("<**why**>").reply.body.decode()
        assert begins in told
        assert "Other processes may serve this conversation, too" in told
