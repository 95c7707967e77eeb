"""Who takes part in what: looked at once for plugins that never change, in each turn for all others."""

from __future__ import annotations

from routecodex.routing.turn.plugins import Plugin, TurnInfo
from routecodex.routing.turn.roster import roster_of
from routecodex.routing.turn.tools import ServerTool
from routecodex.routing.values import JsonObject


async def run(turn: TurnInfo, arguments: JsonObject) -> str:
    return ""


def tool(name: str) -> ServerTool:
    return ServerTool(name, "Does nothing.", {"type": "object"}, run)


class Quick(Plugin):
    at_once = True
    tools = (tool("a"), tool("b"))

    async def on_turn_end(self, turn: TurnInfo) -> None: ...


class Slow(Plugin):
    tools = (tool("b"), tool("c"))

    def on_answer_begun(self, turn: TurnInfo) -> None: ...

    async def on_turn_end(self, turn: TurnInfo) -> None: ...


def test_sorted_by_hook_in_their_order() -> None:
    quick, slow = Quick(), Slow()
    roster = roster_of([slow, quick])
    assert (roster.hooked["on_turn_end"], roster.hooked["on_answer_begun"]) == ((slow, quick), (slow,))
    assert roster.hooked["on_turn_start"] == ()
    assert (roster.order[id(slow)], roster.order[id(quick)]) == (0, 1)
    assert not roster.at_once


def test_a_tool_belongs_to_the_first_who_has_it() -> None:
    quick, slow = Quick(), Slow()
    assert {name: plugin for name, (plugin, _) in roster_of([quick, slow]).tools.items()} == {"a": quick, "b": quick, "c": slow}


def test_the_house_is_looked_at_once() -> None:
    quick, other = Quick(), Quick()
    assert roster_of([quick]) is roster_of((quick,))
    assert roster_of([other]) is not roster_of([quick])
    assert roster_of([quick, other]).hooked["on_turn_end"] == (quick, other)
    assert roster_of([other, quick]).hooked["on_turn_end"] == (other, quick)


def test_one_that_needs_a_task_may_say_that_its_hooks_stay() -> None:
    slow = Slow()
    slow.same_hooks = True
    assert roster_of([slow]) is roster_of([slow])
    assert not roster_of([slow]).at_once


def test_a_persons_plugin_may_change() -> None:
    slow = Slow()
    assert "d" not in roster_of([slow]).tools
    slow.tools = (tool("d"),)
    assert list(roster_of([slow]).tools) == ["d"]


def test_plugins_that_are_gone_are_not_taken_for_others() -> None:
    """An `id` is given again; that of a plugin whose roster is known is not."""
    for _ in range(200):
        quick = Quick()
        assert roster_of([quick]).plugins == (quick,)


def test_not_all_that_ever_took_part_are_kept() -> None:
    first = Quick()
    known = roster_of([first])
    for _ in range(100):
        roster_of([Quick()])
    assert roster_of([first]) is not known
