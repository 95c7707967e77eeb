"""The proxy's end of the line to its supervisor: says when it is ready, hears of new variables, and never outlives it.

mitmproxy 12 opens its port before it has loaded a script: only `running` knows that calls are read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from typing import Any

from mitmproxy import ctx

from .. import worker
from ..settings import Settings

logger = logging.getLogger("routecodex")

VARIABLE = "ROUTECODEX_LEASH"
"""Which of its inherited files is the line."""
CREDENTIALS = "ROUTECODEX_UPSTREAM_AUTH"
"""For the proxy behind this one: on a command line everybody could read them."""
_LISTENS_S = 0.02
_LISTENS_TRIES = 250


class Leash:
    def __init__(self, settings: Settings, link: socket.socket) -> None:
        self.settings = settings
        self._link = link
        self.task: asyncio.Task[None] | None = None
        """Kept: a task that nobody holds may vanish, and the proxy would stay behind for good."""

    async def hold(self) -> None:
        reader, writer = await asyncio.open_connection(sock=self._link, limit=1 << 22)
        try:
            self._say(writer, ready(self.settings))
            while line := await reader.readline():
                said: dict[str, Any] = json.loads(line)
                if (told := said.get("variables")) is not None:
                    await self.settings.learn_variables(told)
                if (modes := said.get("modes")) is not None:
                    await self._listen(modes)
                self._say(writer, {"heard": True})
        except (OSError, ValueError):
            pass
        if worker.leads():
            logger.info("The supervisor is gone: the proxy ends.")
        ctx.master.shutdown()

    @staticmethod
    async def _listen(modes: list[str]) -> None:
        """Beside what is listened to already; until it is."""
        ctx.options.update(mode=[*ctx.options.mode, *(mode for mode in modes if mode not in ctx.options.mode)])
        for _ in range(_LISTENS_TRIES):
            if len(ctx.master.addons.get("proxyserver").listen_addrs()) >= len(ctx.options.mode):
                return
            await asyncio.sleep(_LISTENS_S)

    @staticmethod
    def _say(writer: asyncio.StreamWriter, said: dict[str, Any]) -> None:
        writer.write(json.dumps(said).encode() + b"\n")


def hold(settings: Settings) -> Leash | None:
    """Once, and only in a proxy that a supervisor started."""
    given = os.environ.pop(VARIABLE, "")
    if not given:
        return None
    if credentials := os.environ.pop(CREDENTIALS, ""):
        ctx.options.update(upstream_auth=credentials)
    link = socket.socket(fileno=int(given))
    link.setblocking(False)
    os.set_inheritable(link.fileno(), False)
    leash = Leash(settings, link)
    leash.task = asyncio.get_running_loop().create_task(leash.hold())
    return leash


def ready(settings: Settings) -> dict[str, Any]:
    addresses = ctx.master.addons.get("proxyserver").listen_addrs()
    web = str(getattr(ctx.master, "web_url", "") or "")
    if not web and "web_port" in ctx.options:
        web = f"http://{ctx.options.web_host}:{ctx.options.web_port}/"
    return {"listening": [list(address[:2]) for address in addresses], "web": web, "config": str(settings.path)}
