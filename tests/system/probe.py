"""A second mitmproxy script for tests: tells what the running proxy holds, and makes its patience as short as a test wants.

1. `GET http://probe.rig/` answers with JSON: asyncio tasks, rounds, streams, calls in the retry budget, turns that plugins
   know of, reminders that are reserved, turns that are still in memory. `/collect` collects garbage first, `/leave` never again;
   `/poke` lets every stream write what it has, `/kill` ends every flow as a person would in mitmweb.
2. RIG_PATIENCE is JSON: `early_head_s` and `keep_alive_s` of every turn, `whole_s` for the silence before whole JSON.
"""

import asyncio
import gc
import json
import os
from collections import Counter
from functools import partial
from typing import Any

from mitmproxy import ctx, http

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
        "turns": sum(len(plugin._turns) for plugin in working.plugins if hasattr(plugin, "_turns")),
        "reserved": sum(len(plugin._watch.reservations._holders) for plugin in working.plugins if hasattr(plugin, "_watch")),
    }


class Probe:
    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.host == "probe.rig":
            if flow.request.path == "/collect":
                gc.collect()
            elif flow.request.path == "/leave":
                gc.disable()
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
