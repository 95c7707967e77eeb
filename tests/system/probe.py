"""A second mitmproxy script for tests: tells what the running proxy holds, and makes its patience as short as a test wants.

1. `GET http://probe.rig/` answers with JSON: asyncio tasks, rounds, streams, calls in the retry budget, turns that plugins
   know of, reminders that are reserved, turns and flows of calls that are still in memory, pieces of Python's memory in use.
   `/collect` collects garbage first, `/spare` also gives what is unused back to the system, `/leave` never collects again;
   `/poke` lets every stream write what it has, `/kill` ends every flow as a person would in mitmweb.
   `/lag` tells instead how late the loop was since it was asked last: each time in ms by the clock, and what the process
   computed meanwhile.
2. RIG_PATIENCE is JSON: `early_head_s` and `keep_alive_s` of every turn, `whole_s` for the silence before whole JSON.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

from mitmproxy import ctx, http

from routecodex.addons import allocator
from routecodex.routing.desk import desk
from routecodex.routing.turn import turn

PATIENCE = json.loads(os.environ.get("RIG_PATIENCE", "{}"))

if "early_head_s" in PATIENCE:
    desk._EARLY_HEAD_S = PATIENCE["early_head_s"]
if "keep_alive_s" in PATIENCE:
    desk.Limits = partial(turn.Limits, keep_alive_s=PATIENCE["keep_alive_s"])  # type: ignore[misc,assignment]
if "whole_s" in PATIENCE:
    turn.WHOLE_PATIENCE_S = PATIENCE["whole_s"]


def _held() -> dict[str, Any]:
    addon = ctx.master.addons.get("routecodex")
    working = addon.settings.desk
    names = Counter(task.get_name().split(" (")[0] for task in asyncio.all_tasks())
    return {
        "tasks": sum(names.values()),
        "names": dict(names),
        "rounds": len(addon.relay.rounds),
        "pokes": len(addon.relay.tasks),
        "streams": len(addon.relay.streams),
        "calls": working.learned.budget.calls,
        "retrying": working.learned.budget.retrying,
        "alive": sum(type(one).__name__ == "CarriedTurn" for one in gc.get_objects()),
        "flows": sum(type(one) is http.HTTPFlow and one.request.method == "POST" for one in gc.get_objects()),
        "turns": sum(len(plugin._turns) for plugin in working.plugins if hasattr(plugin, "_turns")),
        "pieces": sys.getallocatedblocks(),
        "reserved": sum(len(plugin._watch.reservations._holders) for plugin in working.plugins if hasattr(plugin, "_watch")),
    }


def _nothing() -> None: ...


class Lag:
    """A task that sleeps for 10 ms and records by how much longer it was away."""

    EVERY_S = 0.01

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []
        self.task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        while True:
            began, computed = time.monotonic(), time.process_time()
            await asyncio.sleep(self.EVERY_S)
            late = time.monotonic() - began - self.EVERY_S
            self.seen.append((max(0.0, late) * 1000, (time.process_time() - computed) * 1000))

    def told(self) -> dict[str, list[float]]:
        seen, self.seen = self.seen, []
        return {"late": [late for late, _ in seen], "computed": [computed for _, computed in seen]}


class Probe:
    lag: Lag | None = None

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.host == "probe.rig" and flow.request.path == "/lag":
            self.lag = self.lag or Lag()
            flow.response = http.Response.make(200, json.dumps(self.lag.told()), {"content-type": "application/json"})
        elif flow.request.host == "probe.rig":
            if flow.request.path == "/collect":
                gc.collect()
            elif flow.request.path == "/spare":
                gc.collect()
                allocator.give_back()
            elif flow.request.path == "/leave":
                gc.disable()
                gc.enable = _nothing  # whoever had it rest meanwhile
            elif flow.request.path == "/poke":
                relay = ctx.master.addons.get("routecodex").relay
                for stream in list(relay.streams.values()):
                    relay.flush(stream)
            elif flow.request.path == "/kill":
                for stream in list(ctx.master.addons.get("routecodex").relay.streams.values()):
                    if stream.flow is not flow and stream.flow.killable:
                        stream.flow.kill()
            flow.response = http.Response.make(200, json.dumps(_held()), {"content-type": "application/json"})


addons = [Probe()]
