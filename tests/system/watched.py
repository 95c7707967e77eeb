"""A proxy that can be asked what it holds (see `probe.py`), waiting until it holds no more than before, its memory."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.rig.client import call
from tests.rig.provider import PATIENCE_S
from tests.rig.proxy import SCRIPT, Mitmdump, Upstream

PROBE = Path(__file__).with_name("probe.py")


def watched(upstream: Upstream, config: str, patience: Mapping[str, float] | None = None, **more: Any) -> Mitmdump:
    """`patience`: see `probe.py`."""
    env = {"RIG_PATIENCE": json.dumps(dict(patience or {})), **more.pop("env", {})}
    return Mitmdump(script=[SCRIPT, PROBE], config=config, upstream=upstream, env=env, **more)


class Highest(threading.Thread):
    """The highest resident memory of the proxy while it runs."""

    def __init__(self, proxy: Mitmdump) -> None:
        super().__init__(daemon=True)
        self.proxy, self.bytes, self.over = proxy, proxy.rss_bytes, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            self.bytes = max(self.bytes, self.proxy.rss_bytes)

    def __enter__(self) -> Highest:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join(5)


def held(proxy: Mitmdump, path: str = "/collect") -> dict[str, Any]:
    answer = call("http://probe.rig", path, b"", proxy=proxy, method="GET")
    assert answer.status == 200, answer.text
    return dict(answer.json)


def until(condition: Callable[[], bool], within: float, what: Callable[[], object]) -> None:
    """A shorter `within` than the rig's patience judges nothing."""
    deadline = time.monotonic() + max(within, PATIENCE_S)
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def settles(proxy: Mitmdump, before: Mapping[str, Any], *, within: float = 3, spare: int = 0) -> dict[str, Any]:
    """Nothing of what came since is left; what is held now."""
    names = ("tasks", "rounds", "pokes", "streams", "calls", "retrying", "turns", "reserved")
    seen: dict[str, Any] = {}

    def settled() -> bool:
        seen.update(held(proxy))
        return all(seen[name] <= before[name] + spare for name in names)

    until(settled, within, lambda: f"left over: {seen}, before: {dict(before)}")
    return seen
