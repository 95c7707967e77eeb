"""What the desk waits for while it decides, in order, and what leaves it: an answer of our own, or a departure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from routecodex.routing.desk.desk import Departure
from routecodex.routing.errors import ClientLeft, RouteCodexError
from routecodex.routing.sessions.state import EMPTY
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.turn.plugins import Plugin
from routecodex.routing.turn.replies import Reply
from routecodex.routing.values import Dialect, ProviderError, Target
from tests.routing.house import House, Tool, config_text
from tests.routing.turn.acting import Actor

T = TypeVar("T")


class Carrier:
    """Notes what it is asked for; while it sleeps, the clock goes on."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.log: list[str] = []
        self.slept = 0.0
        self.left = False

    async def in_thread(self, work: Callable[[], T]) -> T:
        self.log.append("disk")
        return work()

    async def compute(self, work: Callable[[], T]) -> T:
        return work()

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.house.clock.passes(seconds)

    def when_gone(self, hear: Callable[[], None]) -> None:
        self.log.append("hears of leaving")

    def has_left(self) -> bool:
        return self.left


def decided(house: House, tool: Tool, text: str, *plugins: Plugin) -> tuple[Reply | Departure, Carrier]:
    if plugins:
        house.desk.plugins, house.desk.hidden = plugins, HiddenStore(house.folder / "sessions")
    carrier, received = Carrier(house), tool.handed(text)

    async def whole() -> Reply | Departure:
        reading = house.desk.read(received)
        return await house.desk.decide(reading, await house.desk.obey(reading, carrier), carrier)

    return asyncio.run(whole()), carrier


@pytest.mark.parametrize("question", ["<**status**>", "<**models**> <**help**>", "<**why**>"])
def test_a_question_has_nothing_to_write(tmp_path: Path, question: str) -> None:
    """Also where something is in force: it is answered while the store is gone, and again where it is asked again."""
    house = house_of(tmp_path)
    tool = Tool(house)
    tool.say("<**!openai.gpt-4**> hi")
    before = house.desk.store.load(SessionKey("session", "one"))
    for _ in range(2):
        found, carrier = decided(house, tool, question)
        assert isinstance(found, Reply)
        assert found.status == 200
        assert carrier.log == []
    assert house.desk.store.load(SessionKey("session", "one")) == before


def test_who_has_left_changes_nothing(tmp_path: Path) -> None:
    """What has nothing to write goes on: it ends by itself."""
    house = house_of(tmp_path)
    tool, carrier = Tool(house), Carrier(house)
    carrier.left = True
    with pytest.raises(ClientLeft):
        asyncio.run(house.desk.obey(house.desk.read(tool.handed("<**!openai.gpt-4**> hi")), carrier))
    assert house.desk.store.load(SessionKey("session", "one")) == EMPTY
    assert carrier.log == []
    asyncio.run(house.desk.obey(house.desk.read(tool.handed("hi")), carrier))


def house_of(folder: Path, routing: str = "default: [glm.glm-4.7]") -> House:
    return House(folder, config_text(routing))


@pytest.mark.parametrize(
    "text, plugins, outcome, asked",
    [
        pytest.param("hi", 0, Departure, [], id="nothing to wait for"),
        pytest.param("hi", 1, Departure, ["hears of leaving"], id="a plugin"),
        pytest.param("<**!openai.gpt-4**> hi", 0, Departure, ["disk"], id="a tag that is kept"),
        pytest.param("<**!openai.gpt-4**>", 1, Reply, ["disk"], id="nothing but a tag: no plugin hears of it"),
        pytest.param("<**echo**> hi", 0, Reply, ["disk"], id="echo"),
        pytest.param("<**echo**> hi", 1, Reply, ["disk", "hears of leaving"], id="echo, with a plugin"),
    ],
)
def test_what_a_call_waits_for(tmp_path: Path, text: str, plugins: int, outcome: type, asked: list[str]) -> None:
    house = house_of(tmp_path)
    found, carrier = decided(house, Tool(house), text, *[Actor("A") for _ in range(plugins)])
    assert isinstance(found, outcome)
    assert carrier.log == asked
    if isinstance(found, Departure):
        assert found.request.host == f"{found.plan.target.provider}.example"
        assert (found.participants is not None) is bool(plugins)


def test_a_short_rest_of_all_keys_is_slept_through(tmp_path: Path) -> None:
    house = house_of(tmp_path)
    error = ProviderError(429, retry_after_s=7)
    house.learned.health.failed(Target("glm", "key1", "glm-4.7"), error, house.clock.now, wall=house.clock.epoch)
    found, carrier = decided(house, Tool(house), "hi")
    assert isinstance(found, Departure)
    assert 7 <= carrier.slept <= 8


def test_a_sticky_that_is_used_up_is_forgotten_before_its_call_leaves(tmp_path: Path) -> None:
    house = house_of(tmp_path)
    tool = Tool(house)
    tool.say("<**!openai.gpt-4**> hi")
    for key in ("primary", "backup", "third"):
        house.learned.health.failed(Target("openai", key, "gpt-4"), ProviderError(401), house.clock.now, wall=0.0)
    found, carrier = decided(house, tool, "next")
    assert isinstance(found, Departure)
    assert str(found.plan.target) == "glm.key1.glm-4.7"
    assert carrier.log == ["disk"]
    assert house.desk.store.load(SessionKey("session", "one")).sticky is None


@pytest.mark.parametrize("plugins", [0, 1])
def test_why_the_echo_answered_is_told_whoever_takes_part(tmp_path: Path, plugins: int) -> None:
    house = house_of(tmp_path)
    decided(house, Tool(house), '<**echo**> <**stopMessage:"go on",1**> hi', *[Actor("A") for _ in range(plugins)])
    went = house.learned.went.get(SessionKey("session", "one"))
    assert went is not None
    assert went.comment == "echo · force: a tag asks for echo"


@pytest.mark.parametrize("text", ["hi", "<**echo**> hi"])
def test_plugins_hear_that_the_turn_is_over_where_it_never_begins(tmp_path: Path, text: str) -> None:
    house = house_of(tmp_path)

    async def cleaned() -> None:
        actor.log.append("cleaned")

    async def start(turn: object) -> object:
        return cleaned

    async def refuse(turn: object, request: object) -> None:
        raise RouteCodexError("not now")

    actor = Actor("A", start=start, before=refuse)
    with pytest.raises(RouteCodexError):
        decided(house, Tool(house), text, actor)
    assert actor.log[-1] == "cleaned"


@pytest.mark.parametrize("dialect", list(Dialect), ids=str)
def test_who_writes_the_answer(tmp_path: Path, dialect: Dialect) -> None:
    """With plugins all of it is read, so that another round can follow; and where nobody but us could say later what a name
    means: not by those who answer what the client sends home. Else what comes passes."""
    house = house_of(tmp_path)
    for plugins in ((), (Actor("A"),)):
        for text, more in (("hi", {"store": False}), ("hi", {}), ("<**origin**> hi", {})):
            found, _ = decided(house, Tool(house, dialect, stream=True, more=more), text, *plugins)
            assert isinstance(found, Departure)
            named = dialect is Dialect.RESPONSES and not more and found.plan.target.provider != "origin"
            assert found.turn.answer.quiet is not (bool(plugins) or house.desk.endings.matter or named)
