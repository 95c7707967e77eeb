"""Workers die under load, each second one: nobody else's calls fail, and nobody is refused."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bench.__main__ import start_upstream
from tests.bench.load import URL
from tests.rig.client import call
from tests.rig.door import Door, until
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.sheet import seen
from tests.system.test_run import BY_ADDRESS
from tests.workers import Chaos, chaos, started

pytestmark = [pytest.mark.system, pytest.mark.long]

SECONDS = 20


@pytest.mark.parametrize("chance", [1, 2, 3])
def test_a_worker_dies_each_second(chance: int, tmp_path: Path) -> None:
    with ExitStack() as stack:
        proxy = started(stack, stack.enter_context(start_upstream()), tmp_path, workers=2)
        found: Chaos = asyncio.run(chaos(proxy, SECONDS, random.Random(chance)))
    print(found)
    seen("workers", str(found))
    assert found.failed <= found.alive
    assert (found.refused, found.hung) == (0, 0)
    assert found.killed >= SECONDS // 2
    assert found.well > 10 * found.killed


FREEZES = """
import time

def requestheaders(flow):
    while "x-freeze" in flow.request.headers:
        time.sleep(1)
"""


def test_a_worker_whose_loop_stands_still_is_replaced(tmp_path: Path) -> None:
    """Its parent hears nothing of it; the other one serves meanwhile."""
    (tmp_path / "freezes.py").write_text(FREEZES)
    with (
        FakeProvider() as provider,
        Mitmdump(script=[SCRIPT, tmp_path / "freezes.py"], upstream=provider, folder=tmp_path / "proxy", workers=2) as proxy,
    ):
        until(lambda: "2 workers serve" in proxy.log, "the workers do not come")
        before = proxy.workers
        body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
        frozen = call(URL, "/v1/messages", body, proxy=proxy, headers={"x-freeze": "yes"})
        assert (frozen.status, frozen.ended) == (0, "closed")
        assert "says nothing any more" in proxy.log
        until(lambda: "is back as" in proxy.log, "nobody takes its place")
        assert len({*before, *proxy.workers}) == 3
        assert call(URL, "/v1/messages", body, proxy=proxy).status == 200


def test_a_person_starts_and_stops_them(tmp_path: Path) -> None:
    """`start --workers`, `status`, `run`; the parent dies and comes back with its workers; `stop` leaves nobody."""
    with Door(tmp_path) as door:
        flows = tmp_path / "flows"
        assert "2 processes" in door.run("start", "--workers", "2", "-w", str(flows)).stdout
        status = door.status()
        assert len(status["workers"]) == 2
        assert door.ask("<**echo**> hello")["pid"] == status["pid"]
        assert flows.stat().st_mode & 0o777 == 0o600
        for _ in range(2):
            by_address = door.run("run", "--base-url", sys.executable, "-c", BY_ADDRESS)
            assert by_address.stdout == "hello False\n", by_address.stderr + door.log
            os.kill(door.status()["workers"][0]["pid"], signal.SIGKILL)
        pids = [worker["pid"] for worker in door.status()["workers"]]
        refused = door.run("start", "--workers", "3")
        assert "was started with another --workers" in refused.stderr
        os.kill(status["pid"], signal.SIGKILL)
        until(lambda: not any(_is_there(pid) for pid in pids), "workers outlive their parent")
        until(lambda: door.status()["running"] and len(door.status()["workers"]) == 2, "the parent does not come back")
        again = door.status()
        assert (again["port"], again["deaths"]) == (status["port"], 1)
        assert door.ask("<**echo**> hello")["told"] == ["hello"]
        pids = [again["pid"], *(worker["pid"] for worker in again["workers"])]
        door.run("stop")
        until(lambda: not any(_is_there(pid) for pid in pids), "somebody stays behind")
        assert door.run("start", "--workers", "2", "--web").returncode == 2


def _is_there(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
