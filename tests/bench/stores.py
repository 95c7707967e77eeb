"""`python -m tests.bench.stores`: what a call costs where state lies in Redis, beside the same proxy with files.

1. The proxies take turns, one call at a time, over kept connections; figures are of the rounds' medians. A `plain` call is one of
   a session whose message was seen (it only asks), a `new` one is a message of its own (it asks, and tells), a `tagged` one
   changes the session's state.
2. CPU is the proxy process's own, user and system, over all calls of a round.
3. `frozen`: the server is stopped; what the call that meets it waits, and what the calls behind it wait (`onStoreLost: local`).
4. Loopback only; it ends by itself and ends only what it started.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from tests.bench.load import TAG, URL, exchange, make_request
from tests.rig.client import Route
from tests.rig.pipe import Pipe
from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.redis_server import redis_server

_KINDS = ("plain", "new", "tagged")
_NUMBERS = count()
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def requests(kind: str, times: int) -> Iterator[bytes]:
    plain = make_request(text="Say something short.")
    for _ in range(times):
        match kind:
            case "plain":
                yield plain
            case "new":
                yield make_request(text=f"Say something short, {next(_NUMBERS)}.")
            case _:
                yield make_request(text=f"{TAG} Say something short.", session=100 + next(_NUMBERS))


def cpu_s(proxy: Mitmdump) -> float:
    assert proxy.pid is not None
    fields = Path(f"/proc/{proxy.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


async def measured(proxy: Mitmdump, pipe: Pipe, kind: str, times: int) -> tuple[float, float]:
    """Milliseconds a call: the median by wall, the mean by CPU."""
    took, before = [], cpu_s(proxy)
    for request in requests(kind, times):
        began = time.perf_counter()
        await exchange(pipe, request)
        took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000, (cpu_s(proxy) - before) / times * 1000


async def main(rounds: int, times: int, folder: Path) -> None:
    with ExitStack() as stack:
        provider = stack.enter_context(FakeProvider(keep=False))
        server = stack.enter_context(redis_server(folder / "redis"))
        proxies = {}
        for name, store in (("files", "files"), ("redis", server.url)):
            config = f'sessions: {{store: "{store}", onStoreLost: local}}\nvirtualrouter: {{routing: {{default: [origin]}}}}\n'
            proxies[name] = stack.enter_context(Mitmdump(script=SCRIPT, config=config, upstream=provider, folder=folder / name))
        pipes = {name: await Route(URL, proxy).open("http/1.1") for name, proxy in proxies.items()}
        for name, pipe in pipes.items():
            for kind in _KINDS:
                await measured(proxies[name], pipe, kind, 100)
        figures: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for round in range(rounds):
            for kind in _KINDS:
                for name in list(proxies)[:: 1 if round % 2 else -1]:
                    figures.setdefault((kind, name), []).append(await measured(proxies[name], pipes[name], kind, times))
        print("ms a call            files            redis            more")
        for kind in _KINDS:
            for place, what in enumerate(("p50", "CPU")):
                files, redis = ([one[place] for one in figures[kind, name]] for name in ("files", "redis"))
                more = statistics.median(b - a for a, b in zip(files, redis, strict=True))
                print(f"{kind:8} {what}    {statistics.median(files):14.2f}   {statistics.median(redis):14.2f}   {more:+13.2f}")
        server.freeze()
        waited = []
        for request in requests("new", 21):
            began = time.perf_counter()
            await exchange(pipes["redis"], request)
            waited.append((time.perf_counter() - began) * 1000)
        server.thaw()
        print(
            f"frozen: the first call took {waited[0]:.0f} ms, those behind it {statistics.median(waited[1:]):.1f} (p50)", end=""
        )
        print(f", {max(waited[1:]):.1f} at most")
        for pipe in pipes.values():
            pipe.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stores")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--times", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(given.rounds, given.times, Path(name)))
