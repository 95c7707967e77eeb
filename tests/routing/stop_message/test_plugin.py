"""stopMessage on the lifecycle (M): what is sent, what is counted, and how it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from routecodex.routing.config.values import StopSettings
from routecodex.routing.sessions.state import SessionState, StopMessage
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.stop_message.plugin import StopMessagePlugin
from routecodex.routing.stop_message.work_state import Work
from routecodex.routing.storage.contract import Lost
from routecodex.routing.storage.disk import Disk
from routecodex.routing.turn.plugins import AfterRequest, Plugin, Request, TurnInfo, UserText
from routecodex.routing.values import Call, Dialect, Kind, ToolCall
from tests.routing.stop_message.driving import FAILS, SESSION, Stage, arm, said
from tests.routing.turn.hidden_talk import TALKS, Talk

CHAT = next(talk for talk in TALKS if talk.dialect is Dialect.CHAT)
by_dialect = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.dialect.value)


class House:
    """A stage with the plugin on it, and what it told."""

    def __init__(
        self, folder: Path, talk: Talk = CHAT, *others: Plugin, disk: Disk | None = None, refuses: bool = False, **settings: Any
    ) -> None:
        self.store = FileStore(folder, disk)
        self.notes: list[str] = []
        self.asked: list[Call] = []
        self.work = Work.UNKNOWN
        self.plugin = StopMessagePlugin(
            self.store, StopSettings(**settings), self._probe, lambda turn, line: self.notes.append(line), refuses=refuses
        )
        self.stage = Stage(self.store, talk, [*others, self.plugin])
        self.talk = talk

    async def _probe(self, call: Call) -> Work:
        self.asked.append(call)
        return self.work

    @property
    def state(self) -> SessionState:
        return self.store.load(SESSION)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@by_dialect
def test_m01_m09_one_follow_up(tmp_path: Path, talk: Talk) -> None:
    house = House(tmp_path, talk)
    arm(house.store, most=1)
    fields = {"temperature": 0.5, "tools": [], "stream": True} if talk.dialect is not Dialect.GEMINI else {"tools": []}
    call = talk.call(talk.user("do it"), **fields)
    turned = house.stage.play([said(talk, "first"), said(talk, "second")], call)
    assert (turned.answered, turned.suffixes, turned.status) == (2, [":stop_followup"], "completed")
    first, second = turned.bodies
    assert {**first, talk.key: ...} == {**second, talk.key: ...}
    *before, answer, last = second[talk.key]
    assert before == first[talk.key]
    assert [answer] == talk.answer("first")
    assert "go on" in str(last)
    assert house.state.stop is None
    assert (house.state.stop_cleared_at_ms, house.state.stop_last_used_at_ms) == (1_000_000, 1_000_000)
    assert house.notes == ["stopMessage 1/1"]
    assert house.plugin._turns == {}


@by_dialect
def test_m11_exactly_three_never_a_fourth(tmp_path: Path, talk: Talk) -> None:
    house = House(tmp_path, talk)
    arm(house.store, most=3)
    turned = house.stage.play([said(talk, f"answer {n}") for n in range(9)])
    assert (turned.answered, turned.suffixes) == (4, [":stop_followup"] * 3)
    assert house.notes == ["stopMessage 1/3", "stopMessage 2/3", "stopMessage 3/3"]
    assert house.stage.play([said(talk, "later")]).answered == 1


def test_m02_and_a_call_of_the_clients_ends_the_loop(house: House) -> None:
    arm(house.store)
    call = ToolCall("c", "Bash", "{}")
    with_call = replace(said(CHAT, "x"), calls=(call,), finish="tool_calls", native=tuple(CHAT.answer("x", ("c", "Bash", {}))))
    turned = house.stage.play([said(CHAT, "a"), with_call])
    assert turned.answered == 2
    assert house.state.stop == StopMessage("go on", 3, 1, 5, 1_000_000)
    assert house.notes == ["stopMessage 1/3", "stopMessage does not go on: a tool call"]
    # the hop after it: the count goes on where it was
    assert house.stage.play([said(CHAT, "b")]).answered == 3


@pytest.mark.parametrize("finish", ["length", "content_filter", "error"])
def test_m03_nothing_but_a_plain_stop(house: House, finish: Any) -> None:
    arm(house.store)
    turned = house.stage.play([replace(said(CHAT, "x"), finish=finish)])
    assert turned.answered == 1
    assert house.state.stop == StopMessage("go on", 3, 0, 5)
    assert house.asked == []


def test_m05_m08_everything_else_of_the_call_stays(tmp_path: Path) -> None:
    talk = next(talk for talk in TALKS if talk.dialect is Dialect.RESPONSES)
    house = House(tmp_path, talk)
    arm(house.store, most=1)
    call = talk.call(
        talk.user("do it"), max_output_tokens=77, temperature=0.1, stream=True, tools=[{"type": "function", "name": "f"}]
    )
    first, second = house.stage.play([said(talk, "a"), said(talk, "b")], call).bodies
    assert {**second, "input": ...} == {**first, "input": ...}
    assert (second["max_output_tokens"], second["temperature"], second["stream"]) == (77, 0.1, True)


def test_x07_the_follow_up_holds_no_tag(house: House) -> None:
    arm(house.store, 'go <**!glm**>on <**stopMessage:"x",9**>', most=1)
    turned = house.stage.play([said(CHAT, "a"), said(CHAT, "b")])
    assert "<**" not in str(turned.bodies[1])
    assert turned.bodies[1]["messages"][-1]["content"] == "go on"


# Clients that leave


def test_m13_gone_before_the_answer_ended(house: House) -> None:
    arm(house.store)
    house.stage.leaves = lambda turned: turned.answered == 1
    turned = house.stage.play([said(CHAT, "a")])
    assert (turned.answered, turned.status) == (1, "aborted")
    assert house.state.stop == StopMessage("go on", 3, 0, 5)
    assert house.plugin._turns == {}


def test_m14_gone_during_the_follow_up(house: House) -> None:
    """What was counted stays counted; the rest of the stopMessage stays."""
    arm(house.store)
    house.stage.leaves = lambda turned: len(turned.bodies) == 2
    turned = house.stage.play([said(CHAT, "a")])
    assert (turned.answered, turned.status) == (1, "aborted")
    assert house.state.stop == StopMessage("go on", 3, 1, 5, 1_000_000)
    assert house.notes == ["stopMessage 1/3"]
    assert house.plugin._turns == {}


def test_m14_gone_while_bd_is_asked(house: House) -> None:
    arm(house.store)

    async def leave() -> None:
        async def slow(call: Call) -> Work:
            await asyncio.sleep(60)
            return Work.ACTIVE

        house.plugin._probe = slow
        task = asyncio.ensure_future(house.stage.played([said(CHAT, "a")]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert house.state.stop == StopMessage("go on", 3, 0, 5)
    assert house.plugin._turns == {}


# Follow-ups that fail or say nothing


def test_m17_empty_twice_ends_it(house: House) -> None:
    arm(house.store, most=5)
    turned = house.stage.play([said(CHAT, "a"), said(CHAT, ""), said(CHAT, ""), said(CHAT, "never")])
    assert (turned.answered, turned.status) == (3, "completed")
    assert house.state.stop is None
    assert house.state.stop_last_used_at_ms == 1_000_000
    assert house.notes == [
        "stopMessage 1/5",
        "the follow-up came back empty and is asked for once more",
        "stopMessage is cleared: the follow-up came back empty twice",
    ]


def test_m17_empty_once_goes_on(house: House) -> None:
    """The second asking is not counted: it is the same follow-up. A later one has a second asking of its own."""
    arm(house.store, most=2)
    replies = [said(CHAT, text) for text in ("a", "", "b", "", "c", "never")]
    turned = house.stage.play(replies)
    assert turned.answered == 5
    assert [note for note in house.notes if "/" in note] == ["stopMessage 1/2", "stopMessage 2/2"]
    assert turned.suffixes == [":stop_followup"] * 4


def test_an_empty_first_answer_is_continued_like_any_other(house: House) -> None:
    arm(house.store, most=1)
    assert house.stage.play([said(CHAT, ""), said(CHAT, "b")]).answered == 2


@pytest.mark.parametrize("most", [1, 5])
def test_m18_a_follow_up_that_fails(house: House, most: int) -> None:
    arm(house.store, most=most)
    turned = house.stage.play([said(CHAT, "a"), FAILS])
    assert (turned.answered, turned.status) == (1, "completed")
    assert house.state.stop is None
    assert house.notes == [f"stopMessage 1/{most}", "stopMessage is cleared: the follow-up failed"]


def test_m18_a_failed_first_round_clears_nothing(house: House) -> None:
    arm(house.store)
    turned = house.stage.play([FAILS])
    assert (turned.answered, turned.status) == (0, "error")
    assert house.state.stop == StopMessage("go on", 3, 0, 5)
    assert house.notes == []


def test_what_was_set_meanwhile_stays(house: House) -> None:
    arm(house.store)
    house.stage.leaves = lambda turned: len(turned.bodies) == 2 and arm(house.store, "other", 7, at=6) is not None
    house.stage.play([said(CHAT, "a"), FAILS])
    assert house.state.stop == StopMessage("other", 7, 0, 6)


# Whose it is


def test_m24_another_session(house: House) -> None:
    arm(house.store)
    house.stage.session = SessionKey("session", "other")
    turned = house.stage.play([said(CHAT, "a")])
    assert (turned.took_part, turned.answered) == (False, 1)
    assert house.state.stop == StopMessage("go on", 3, 0, 5)


def test_m22_a_chain_counts_in_memory(house: House) -> None:
    house.stage.session = SessionKey("chain", "request-1")
    arm(house.store, most=2, session=house.stage.session)
    assert house.stage.play([said(CHAT, "a")]).answered == 3
    assert house.store.load(house.stage.session).stop is None


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.MAIN])
def test_m19_side_calls_never(house: House, kind: Kind) -> None:
    arm(house.store)
    house.stage.kind = kind
    assert not house.stage.play([said(CHAT, "a")]).took_part


@pytest.mark.parametrize("what", ["compaction", "structured", "off", "used", "cleared"], ids=lambda what: f"M19-{what}")
def test_who_does_not_take_part(tmp_path: Path, what: str) -> None:
    house = House(tmp_path, enabled=what != "off")
    if what != "cleared":
        arm(house.store)
    if what == "used":
        house.store.update(SESSION, lambda state: state.with_(stop=StopMessage("go", 2, 2)))
    first = "Context checkpoint compaction" if what == "compaction" else "do it"
    fields = {"response_format": {"type": "json_object"}} if what == "structured" else {}
    turned = house.stage.play([said(CHAT, "a")], CHAT.call(CHAT.user(first), **fields))
    assert (turned.took_part, turned.answered, house.asked) == (False, 1, [])


# Guards and work


def test_m21_ten_identical_rounds(house: House) -> None:
    arm(house.store, most=50)
    turned = house.stage.play([said(CHAT, "the same")])
    assert turned.answered == 10
    assert house.notes[4] == "warning: the model has said the same 5 times in a row"
    assert house.notes[-1] == "stopMessage does not go on: 10 identical rounds"
    assert house.state.stop is not None
    assert house.state.stop.used == 9


def test_m21_nine_hundred_seconds(tmp_path: Path) -> None:
    class Slow(Plugin):
        async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
            house.stage.now += 200

    house = House(tmp_path, CHAT, Slow())
    arm(house.store, most=50)
    turned = house.stage.play([said(CHAT, f"answer {n}") for n in range(60)])
    assert turned.answered == 6
    assert house.notes[-1] == "stopMessage does not go on: 900 s are over"


def test_m26_bd_idle(house: House) -> None:
    arm(house.store)
    house.work = Work.IDLE
    assert house.stage.play([said(CHAT, "a")]).answered == 1
    assert house.notes == ["stopMessage does not go on: bd_idle"]
    assert house.state.stop == StopMessage("go on", 3, 0, 5)


@pytest.mark.parametrize("work", [Work.ACTIVE, Work.UNKNOWN])
def test_m25_m28_active_or_unknown(house: House, work: Work) -> None:
    arm(house.store, most=2)
    house.work = work
    assert house.stage.play([said(CHAT, "a")]).answered == 3
    assert len(house.asked) == 2


# Others


class Asks(Plugin):
    """Wants a round of its own behind the first answer."""

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        if turn.rounds == 1:
            await asyncio.sleep(0.01)
            after.append_and_request(UserText("mine"))


def test_another_plugin_that_asks_goes_first(tmp_path: Path) -> None:
    house = House(tmp_path, CHAT, Asks())
    arm(house.store, most=1)
    turned = house.stage.play([said(CHAT, "a"), said(CHAT, "b"), said(CHAT, "c")])
    assert turned.suffixes == [":asks_followup", ":stop_followup"]
    assert house.notes == ["stopMessage does not go on: another plugin asks first", "stopMessage 1/1"]


def test_cleared_meanwhile(house: House) -> None:
    arm(house.store)
    house.stage.leaves = lambda turned: turned.answered == 1 and house.store.update(SESSION, lambda s: s.with_(stop=None)) is None
    assert house.stage.play([said(CHAT, "a")]).answered == 1
    assert house.notes == ["stopMessage does not go on: it was used up or cleared meanwhile"]


def test_what_cannot_be_counted_is_not_sent(tmp_path: Path) -> None:
    arm(FileStore(tmp_path))

    class Full(Disk):
        def replace(self, source: Path, target: Path) -> None:
            raise OSError(28, "No space left on device")

    house = House(tmp_path, disk=Full())
    turned = house.stage.play([said(CHAT, "a")])
    assert (turned.answered, turned.status) == (1, "completed")
    assert len(house.notes) == 1
    assert house.notes[0].startswith("stopMessage does not go on: it cannot be counted (")


@pytest.mark.parametrize("refuses, begun", [(True, 0), (True, 1), (False, 0)])
def test_where_the_store_is_gone_a_turn_of_which_nothing_has_left_is_refused(tmp_path: Path, refuses: bool, begun: int) -> None:
    """Its client asks again, and the stopMessage goes on; what has begun to leave stands as it is."""
    arm(FileStore(tmp_path))
    house = House(tmp_path, refuses=refuses)

    async def lost(*_: object) -> SessionState:
        raise Lost("The store is gone")

    house.store.change = lost  # type: ignore[method-assign]

    class Begins(Plugin):
        async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
            turn.begun = begun

    house.stage.plugins = [Begins(), house.plugin]
    if refuses and not begun:
        with pytest.raises(Lost):
            house.stage.play([said(CHAT, "a")])
    else:
        assert house.stage.play([said(CHAT, "a")]).status == "completed"
        assert house.notes == ["stopMessage does not go on: it cannot be counted (The store is gone)"]


def test_s5_turns_of_one_session_at_the_same_time_share_the_count(house: House) -> None:
    arm(house.store, most=7)

    async def all_of_them() -> list[int]:
        turns = [house.stage.played([said(CHAT, f"{place} {n}") for n in range(20)], id=f"t{place}") for place in range(5)]
        return [turned.answered - 1 for turned in await asyncio.gather(*turns)]

    assert sum(asyncio.run(all_of_them())) == 7
    assert house.state.stop is None
    assert house.plugin._turns == {}
