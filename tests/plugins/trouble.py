"""Fails as the person's messages say: `trouble <hook> raises|hangs|exits|refuses`."""

import asyncio
import re
import sys
from typing import NoReturn

from routecodex.routing.plugins import AfterRequest, Appending, CleanUp, Plugin, Refused, Request, StreamData, TurnInfo

_ORDER = re.compile(r"trouble (\w+) (\w+)")


def _orders(turn: TurnInfo) -> dict[str, str]:
    """How to fail, by hook."""
    return {hook: how for message in turn.call.messages for hook, how in _ORDER.findall(message.text)}


def _at_once(how: str) -> None:
    if how == "raises":
        _raise()
    if how == "exits":
        sys.exit(3)
    if how == "refuses":
        raise Refused("Not on a Sunday.")


def _raise() -> NoReturn:
    raise ValueError("sk-nobody-may-read-this")


async def _fail(turn: TurnInfo, hook: str) -> None:
    how = _orders(turn).get(hook, "")
    _at_once(how)
    if how == "hangs":
        await asyncio.sleep(3600)


class Trouble(Plugin):
    hook_limit_s = 0.4

    def wants(self, turn: TurnInfo) -> bool:
        _at_once(_orders(turn).get("wants", ""))
        return bool(_orders(turn))

    async def on_turn_start(self, turn: TurnInfo) -> CleanUp:
        await _fail(turn, "start")
        return lambda: _fail(turn, "cleanup")

    async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
        await _fail(turn, "before")

    def on_stream_data(self, turn: TurnInfo, data: StreamData) -> None:
        _at_once(_orders(turn).get("stream", ""))

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        await _fail(turn, "after")

    def on_message_append(self, turn: TurnInfo, appending: Appending) -> None:
        _at_once(_orders(turn).get("append", ""))

    async def on_turn_end(self, turn: TurnInfo) -> None:
        await _fail(turn, "end")


plugins = [Trouble()]
