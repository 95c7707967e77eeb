"""`python -m tests.workers [--seconds 20] [--times 3] [chaos | speed]`: several workers behind one port, under load.

1. Chaos: each second one worker is killed, or stopped, by turns. What fails is compared with what was open in those that died.
2. Speed: two workers against two unrelated proxies on two ports, and against one; in turns, so that a slow minute falls on all.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.__main__ import start_upstream
from tests.bench.load import LARGE_BYTES, URL, exchange, make_request
from tests.rig.client import Route
from tests.rig.door import until
from tests.rig.pipe import Gone, Pipe
from tests.rig.proxy import SCRIPT, Mitmdump

TOGETHER = 16
_DIED = re.compile(r"ended with -9(?: with (\d+) connections?)?;")
_BACK = re.compile(r"is back as \d+, after ([\d.]+) s")


@dataclass
class Chaos:
    """What happened to calls while workers died."""

    well: int = 0
    failed: int = 0
    refused: int = 0
    hung: int = 0
    killed: int = 0
    alive: int = 0
    """Connections in those that were killed."""
    back: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        back = f"back in {statistics.median(self.back):.2f} s p50, {max(self.back):.2f} s at most" if self.back else "none back"
        return (
            f"{self.well:,} calls well, {self.failed} failed, {self.refused} refused, {self.hung} hung; "
            f"{self.killed} workers died with {self.alive} connections; {back}"
        )


async def chaos(proxy: Mitmdump, seconds: float, chance: random.Random, *, together: int = TOGETHER) -> Chaos:
    """Every failed call was on a connection of a worker that died."""
    said, from_here, over = Chaos(), len(proxy.log), asyncio.Event()
    request, route = make_request(headers=()), Route(URL, proxy)

    async def caller() -> None:
        pipe: Pipe | None = None
        while not over.is_set():
            try:
                async with asyncio.timeout(30):
                    pipe = pipe or await route.open("http/1.1")
                    await exchange(pipe, request)
                    said.well += 1
                    continue
            except ConnectionRefusedError:
                said.refused += 1
            except TimeoutError:
                said.hung += 1
            except (OSError, Gone):
                said.failed += 1
            if pipe is not None:
                pipe.close()
                pipe = None
        if pipe is not None:
            pipe.close()

    async def killer() -> None:
        for number in range(int(seconds)):
            await asyncio.sleep(1)
            workers = proxy.workers
            if workers:
                os.kill(chance.choice(workers), (signal.SIGKILL, signal.SIGSTOP)[number % 2])
        await asyncio.sleep(1)
        over.set()

    await asyncio.gather(killer(), *(caller() for _ in range(together)))
    log = proxy.log[from_here:]
    died = _DIED.findall(log)
    said.killed, said.alive = len(died), sum(int(count or 0) for count in died)
    said.back = [float(took) for took in _BACK.findall(log)]
    return said


def started(stack: ExitStack, upstream: dict[str, object], folder: Path, workers: int = 0) -> Mitmdump:
    proxy = Mitmdump(
        script=SCRIPT,
        upstream={"*": (int(str(upstream["plain"])), int(str(upstream["tls"])))},
        options=[f"ssl_verify_upstream_trusted_ca={upstream['ca']}", "flow_detail=0"],
        folder=folder,
        workers=workers,
        plainly=True,
    )
    stack.enter_context(proxy)
    if workers:
        until(lambda: f"{workers} workers serve" in proxy.log, "the workers do not come")
    return proxy


# ---- speed ----


@dataclass
class Side:
    name: str
    proxies: Sequence[Mitmdump]
    pipes: list[Pipe] = field(default_factory=list)
    figures: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Calls a second by the wall, and by a second of the workers' computing."""

    async def connect(self) -> None:
        for number in range(TOGETHER):
            pipe = await Route(URL, self.proxies[number % len(self.proxies)]).open("http/1.1")
            await exchange(pipe, make_request())
            self.pipes.append(pipe)

    def cpu_s(self) -> float:
        pids = [pid for proxy in self.proxies for pid in (proxy.workers or [proxy.pid])]
        return sum(_cpu_s(pid) for pid in pids)

    async def measure(self, name: str, request: bytes, times: int) -> None:
        async def many(pipe: Pipe) -> None:
            for _ in range(times):
                await exchange(pipe, request)

        cpu, began = self.cpu_s(), time.perf_counter()
        await asyncio.gather(*(many(pipe) for pipe in self.pipes))
        took, calls = time.perf_counter() - began, times * len(self.pipes)
        self.figures.setdefault(name, []).append((calls / took, calls / max(self.cpu_s() - cpu, 1e-6)))


def _cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def speed(sides: Sequence[Side], rounds: int) -> None:
    kinds = {"small": (make_request(), 30), f"{LARGE_BYTES // 1000} kB": (make_request(size=LARGE_BYTES), 8)}
    for side in sides:
        await side.connect()
    for number in range(rounds):
        for name, (request, times) in kinds.items():
            for side in sides if number % 2 == 0 else sides[::-1]:
                await side.measure(name, request, times)


def told(sides: Sequence[Side]) -> str:
    """Each side's medians, and the workers' ratios round by round."""
    lines = [f"{'':10} " + " ".join(f"{side.name:>26}" for side in sides)]
    for kind in sides[0].figures:
        row = [[statistics.median(one[which] for one in side.figures[kind]) for which in (0, 1)] for side in sides]
        lines.append(f"{kind:10} " + " ".join(f"{wall:9.0f}/s {cpu:9.0f}/CPU-s" for wall, cpu in row))
        one, apart, workers = (side.figures[kind] for side in sides)
        walls = [mine[0] / others[0] for mine, others in zip(workers, apart, strict=True)]
        cpus = [mine[1] / alone[1] for mine, alone in zip(workers, one, strict=True)]
        others = [mine[1] / alone[1] for mine, alone in zip(apart, one, strict=True)]
        lines.append(
            f"{'':10} workers by wall {statistics.median(walls):.2f} x two proxies on two ports; by CPU "
            f"{statistics.median(cpus):.2f} x one (two proxies: {statistics.median(others):.2f})"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.workers", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("chaos", "speed"))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    good = True
    with start_upstream() as upstream, tempfile.TemporaryDirectory(prefix="workers-") as temporary:
        folder = Path(temporary)
        if given.what != "speed":
            for number in range(given.times):
                with ExitStack() as stack:
                    proxy = started(stack, upstream, folder / f"chaos{number}", given.workers)
                    found = asyncio.run(chaos(proxy, given.seconds, random.Random(number)))
                print(f"chaos {number + 1}: {found}", flush=True)
                good &= found.failed <= found.alive and not found.refused and not found.hung
        if given.what != "chaos":
            with ExitStack() as stack:
                one = Side("one process", [started(stack, upstream, folder / "one")])
                apart = Side("two proxies", [started(stack, upstream, folder / f"apart{number}") for number in range(2)])
                workers = Side(f"{given.workers} workers", [started(stack, upstream, folder / "workers", given.workers)])
                asyncio.run(speed([one, apart, workers], 3 * given.times))
                print(told([one, apart, workers]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
