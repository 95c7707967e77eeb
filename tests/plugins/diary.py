"""Writes down what it is called for, a line each, into the file that DIARY names. Waits where the message says so."""

import asyncio
import os
import re
from pathlib import Path

from routecodex.routing.plugins import AfterRequest, Appending, CleanUp, Plugin, Request, StreamData, TurnInfo, UserText

FILE = Path(os.environ.get("DIARY", os.devnull))


def _note(turn: TurnInfo, what: str) -> None:
    with FILE.open("a") as file:
        file.write(f"{turn.id[:8]} {what}\n")


class Diary(Plugin):
    def wants(self, turn: TurnInfo) -> bool:
        return any("diary" in message.text for message in turn.call.messages)

    async def _wait(self, turn: TurnInfo, hook: str) -> None:
        _note(turn, hook)
        if found := re.search(rf"diary waits ([\d.]+) in {hook}\b", " ".join(message.text for message in turn.call.messages)):
            await asyncio.sleep(float(found[1]))
            _note(turn, f"{hook} waited")

    async def on_turn_start(self, turn: TurnInfo) -> CleanUp:
        await self._wait(turn, "start")
        return lambda: self._wait(turn, f"cleanup {turn.status}")

    async def on_before_request(self, turn: TurnInfo, request: Request) -> None:
        await self._wait(turn, "before")

    def on_stream_data(self, turn: TurnInfo, data: StreamData) -> None:
        if not data.current_message.text:
            _note(turn, "stream")

    async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
        await self._wait(turn, "after")
        if turn.rounds == 1:
            after.append_and_request(UserText("Go on, dear diary."))

    def on_message_append(self, turn: TurnInfo, appending: Appending) -> None:
        _note(turn, "append")

    async def on_turn_end(self, turn: TurnInfo) -> None:
        await self._wait(turn, f"end {turn.status}")


plugins = [Diary()]
