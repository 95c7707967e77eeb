"""What a start loads: counted, for that is what it costs. Whoever adds to it, adds to each start."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.rig.proxy import ROOT, SCRIPT

_LOOK = """
import importlib.util, json, os, pathlib, sys
import mitmproxy.tools.main, mitmproxy.tools.dump
before, seen = set(sys.modules), []
spec = importlib.util.spec_from_file_location("script", sys.argv[1])
script, code = importlib.util.module_from_spec(spec), spec.loader.get_code("script")
import gc
gc.collect()  # what was due before is not ours
gc.callbacks.append(lambda phase, info: seen.append(info["generation"]) if phase == "start" else None)
exec(code, script.__dict__)
looked = len(seen)
from routecodex.routing import config
config.load(pathlib.Path(sys.argv[2]), os.environ)
print(json.dumps({"modules": sorted(set(sys.modules) - before), "looked": looked}))
"""
_WHEN_NEEDED = {
    *("pydantic", "pydantic_core", "filelock", "httpx", "redis", "sqlite3", "prometheus_client", "opentelemetry"),
    *("ntplib", "statistics", "fractions", "routecodex.addons.time_server"),
    *("routecodex.addons.telemetry", "routecodex.addons.usage_writer", "routecodex.routing.usage.ledger"),
    *("routecodex.addons.shared", "routecodex.addons.stores", "routecodex.addons.redis_store"),
    *("routecodex.addons.codex_socket", "routecodex.routing.codex"),
}
OURS, OTHERS = 310, 30
"""Modules: so many it was when this was written, and a little more."""


def test_a_start_loads_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, str(SCRIPT), str(ROOT / "mitm-config.yaml")], capture_output=True, check=True, timeout=120
    )
    found = json.loads(done.stdout)
    ours = {name for name in found["modules"] if name.split(".")[0] == "routecodex"}
    others = set(found["modules"]) - ours
    assert not _WHEN_NEEDED & {*found["modules"]}
    assert len(ours) <= OURS, len(ours)
    assert len(others) <= OTHERS, sorted(others)
    assert found["looked"] == 0, "nobody looks for garbage in what is there to stay"
