"""Who takes part in a turn: the call of each round, what is remembered before the end leaves, and the clean-ups."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from routecodex.routing.dialects.calls import for_target
from routecodex.routing.dialects.translation import going_up
from routecodex.routing.errors import StoreError
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.storage.contract import InThread
from routecodex.routing.turn.hidden import Hidden
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.participants import Participants
from routecodex.routing.turn.plugins import AfterRequest, Plugin, PluginFailed, Request, TurnInfo, UserText
from routecodex.routing.values import Dialect
from tests.routing.turn.acting import Actor, raising, run, tcall, tsaid, tturn


@dataclass
class Memory:
    """What was told to be remembered."""

    entries: list[tuple[SessionKey, Hidden]] = field(default_factory=list)
    fails: StoreError | None = None

    async def keep(self, key: SessionKey, hidden: Callable[[], Hidden | None], in_thread: InThread) -> None:
        entry = hidden()
        if self.fails is not None:
            raise self.fails
        if entry is not None:
            self.entries.append((key, entry))


async def at_once(work: Callable[[], None]) -> None:
    work()


def participants(*plugins: Plugin, memory: Memory | None = None, notes: list[str] | None = None) -> Participants:
    turn = tturn(tcall())
    life = Lifecycle(turn, list(plugins))
    told = notes.append if notes is not None else lambda line: None
    return Participants(life, turn.call, memory or Memory(), turn.session, at_once, told)


def asking(*texts: str) -> Callable[..., Any]:
    """An on_after_request that says the next of these behind each round."""
    left = list(texts)

    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        if left:
            after.append_message(UserText(left.pop(0)), request=True, suffix=":more")

    return after


def sent(call: Any) -> list[Any]:
    """The texts of the history as it goes up."""
    messages = json.loads(for_target(call, "", foreign=False))["messages"]
    return [
        content if isinstance(content := message["content"], str) else "".join(part.get("text", "") for part in content)
        for message in messages
    ]


def test_m09_each_round_is_asked_with_everything_that_came_before() -> None:
    together = participants(Actor("A", after=asking("go on", "and on")))

    async def turn() -> None:
        assert sent(await together.begin()) == ["hi"]
        second = await together.next(tsaid("one"), able=True)
        assert second is not None
        assert (second.suffix, second.plugin) == (":more", "A")
        assert sent(second.call) == ["hi", "one", "go on"]
        third = await together.next(tsaid("two"), able=True)
        assert third is not None
        assert sent(third.call) == ["hi", "one", "go on", "two", "and on"]
        assert await together.next(tsaid("three"), able=True) is None

    run(turn())


def test_what_a_plugin_edits_in_a_round_holds_for_that_round_alone() -> None:
    seen: list[str] = []

    async def before(turn: TurnInfo, request: Request) -> None:
        seen.append(request.id)
        if len(seen) == 1:
            request.append(UserText("only now"))

    together = participants(Actor("A", before=before, after=asking("go on")))

    async def turn() -> None:
        assert "only now" in "".join(sent(await together.begin()))
        following = await together.next(tsaid("one"), able=True)
        assert following is not None
        assert "only now" not in "".join(sent(following.call))

    run(turn())
    assert seen == ["call-1", "call-1:more"], "29a: each round has an id of its own"


def test_what_later_calls_need_is_remembered_before_the_turn_ends() -> None:
    memory = Memory()
    order: list[str] = []

    async def end(turn: TurnInfo) -> None:
        order.append(f"end with {len(memory.entries)} remembered")

    together = participants(Actor("A", after=asking("go on"), end=end), memory=memory)

    async def turn() -> None:
        await together.begin()
        await together.next(tsaid("one"), able=True)
        await together.next(tsaid("two"), able=True)
        await together.settle("msg-1")

    run(turn())
    assert order == ["end with 1 remembered"]
    ((key, entry),) = memory.entries
    assert key == SessionKey("session", "s")
    assert [item["role"] for item in entry.items] == ["assistant", "user", "assistant"]
    assert entry.ids == ("msg-1", "msg-1")


def test_an_answer_that_began_before_its_provider_is_remembered_by_the_clients_id_too() -> None:
    memory = Memory()
    together = participants(Actor("A", after=asking("go on")), memory=memory)

    async def turn() -> None:
        await together.begin()
        await together.next(tsaid("one"), able=True)
        await together.next(tsaid("two"), able=True)
        await together.settle("resp_ours")

    run(turn())
    ((_, entry),) = memory.entries
    assert entry.ids == ("resp_ours", "msg-1", "msg-1")


def test_a_turn_of_one_round_hides_nothing() -> None:
    memory = Memory()
    together = participants(Actor("A"), memory=memory)

    async def turn() -> None:
        await together.begin()
        assert await together.next(tsaid("one"), able=True) is None
        await together.settle("msg-1")

    run(turn())
    assert memory.entries == []


def test_a_disk_that_fails_costs_the_memory_and_not_the_answer() -> None:
    notes: list[str] = []
    together = participants(Actor("A", after=asking("go on")), memory=Memory(fails=StoreError("disk full")), notes=notes)

    async def turn() -> None:
        await together.begin()
        await together.next(tsaid("one"), able=True)
        await together.next(tsaid("two"), able=True)
        await together.settle("msg-1")

    run(turn())
    assert notes == ["call-1: later calls will not know this answer's rounds (disk full)"]


@pytest.mark.parametrize(
    "aborted, error, ended",
    [(True, "", ["end A"]), (False, "status 529", []), (False, "", ["end A"])],
    ids=["gone", "failed", "well"],
)
def test_l02_whatever_happens_the_clean_ups_run_once(aborted: bool, error: str, ended: list[str]) -> None:
    cleaned: list[str] = []

    async def start(turn: TurnInfo) -> Callable[[], None]:
        return lambda: cleaned.append(turn.status)

    actor = Actor("A", start=start)
    together = participants(actor)

    async def turn() -> None:
        await together.begin()
        if not aborted and not error:
            await together.next(tsaid("one"), able=True)
            await together.settle("msg-1")
        for _ in range(2):
            await together.leave(aborted=aborted, error=error)

    run(turn())
    assert cleaned == ["aborted" if aborted else "error" if error else "completed"]
    assert [line for line in actor.log if line.startswith("end")] == ended


def test_l03_a_plugin_that_fails_at_the_start_fails_the_turn() -> None:
    together = participants(Actor("A", start=raising(ValueError("no"))))

    async def turn() -> None:
        with pytest.raises(PluginFailed):
            await together.begin()
        await together.leave(aborted=False, error="it failed")

    run(turn())


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("stream", [True, False])
def test_the_answer_is_of_the_calls_dialect_and_form(dialect: Dialect, stream: bool) -> None:
    together = participants(Actor("A"))
    together.life.turn.call = tcall(dialect, stream=stream)
    answer = together.answer(going_up.asked(together.life.turn.call, "0123"))
    answer.begin_round()
    failed = answer.fail(500, "no", "C")
    assert (failed.startswith((b"event:", b"data:"))) is stream
