"""Tools that run in the proxy. The client never sees them."""

import asyncio

from routecodex.routing.plugins import JsonObject, Plugin, ServerTool, ToolFailed, TurnInfo

_SCHEMA: JsonObject = {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}


async def roll(turn: TurnInfo, given: JsonObject) -> str:
    return f"a die with {given['sides']} sides shows 4"


_rolling: list[object] = []


async def slow(turn: TurnInfo, given: JsonObject) -> str:
    _rolling.append(given)
    before = len(_rolling)
    await asyncio.sleep(0.5)
    most = max(before, len(_rolling))
    _rolling.pop()
    return f"slow {given['sides']}: {most} at once"


async def broken(turn: TurnInfo, given: JsonObject) -> str:
    raise ValueError("sk-nobody-may-read-this")


async def refused(turn: TurnInfo, given: JsonObject) -> str:
    raise ToolFailed("there is no such die")


async def exits(turn: TurnInfo, given: JsonObject) -> str:
    raise SystemExit(3)


async def hangs(turn: TurnInfo, given: JsonObject) -> str:
    return await asyncio.sleep(60, "late")


class Dice(Plugin):
    tools = (
        ServerTool("roll", "Roll a die.", _SCHEMA, roll),
        ServerTool("roll_slow", "Roll a heavy die.", _SCHEMA, slow),
        ServerTool("roll_broken", "Roll a broken die.", _SCHEMA, broken),
        ServerTool("roll_refused", "Roll a die that is not there.", _SCHEMA, refused),
        ServerTool("roll_exits", "Roll off the table.", _SCHEMA, exits),
        ServerTool("roll_told", "Roll, and only tell.", _SCHEMA, roll, next_turn="results"),
        ServerTool("roll_hangs", "Roll for ever.", _SCHEMA, hangs, limit_s=0.3),
    )

    def wants(self, turn: TurnInfo) -> bool:
        return turn.kind == "main" and any("dice" in message.text for message in turn.call.messages)


plugins = [Dice()]
