"""`python -m tests.bench.growth`: how the cost of a call grows with what there is more of; writes docs/benchmarks.md anew.

1. Costs are CPU time, the least of a few tries: what else runs on the machine moves them little. No disk is waited for.
2. The slope is that of the curve's upper end, both axes logarithmic: 0 stays, 1 grows as the size does, 2 with its square.
3. What needs no proxy is measured in this process; streams, workers and proxies are real, and what they computed is counted.
"""

from __future__ import annotations

import asyncio
import math
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitmproxy.version import VERSION

from routecodex.routing.clock.store import ClockStore
from routecodex.routing.clock.tasks import Task
from routecodex.routing.config import read
from routecodex.routing.control import kept
from routecodex.routing.sessions.state import EMPTY, Sticky
from routecodex.routing.sessions.store import FileStore, SessionKey
from routecodex.routing.turn.hidden import Hidden, Key
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.values import Dialect
from tests.bench.__main__ import start_upstream
from tests.bench.load import URL, exchange, make_request
from tests.bench.upstream import EVENTS
from tests.rig.client import Route
from tests.rig.proxy import ROOT, SCRIPT, Mitmdump
from tests.routing.house import House, Tool, config_text, provider_text

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- growth -->", "<!-- /growth -->"
TRIES = 5
KEY = SessionKey("session", "one")


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    of: str
    """What there is more of."""
    unit: str
    points: tuple[tuple[int, float], ...]
    """Size → cost."""

    @property
    def slope(self) -> float:
        """At the upper end: the beginning is mostly what is always there."""
        (x0, y0), (x1, y1) = self.points[-2:]
        return math.log(max(y1, 1e-9) / max(y0, 1e-9)) / math.log(x1 / x0)

    @property
    def row(self) -> str:
        told = ", ".join(f"{size:,}: {_figure(cost)}" for size, cost in self.points)
        return f"| {self.name} | {self.of} | {told} | {self.unit} | {self.slope:.1f} |"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def cost_ms(work: Callable[[], object], *, times: int = 1, before: Callable[[], object] = lambda: None) -> float:
    """Of one of so many."""
    found = []
    for _ in range(TRIES):
        before()
        began = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - began) * 1000 / times)
    return min(found)


def curve(name: str, of: str, sizes: Sequence[int], measure: Callable[[int], float], unit: str = "ms") -> Curve:
    points = []
    for size in sizes:
        points.append((size, measure(size)))
        print(f"  {name}: {size:,} {of}: {_figure(points[-1][1])} {unit}", file=sys.stderr, flush=True)
    return Curve(name, of, unit, tuple(points))


# In this process


def decided(house: House, tool: Tool) -> None:
    """From the client's bytes to the provider's."""
    handled = house.handle(tool.received())
    handled.plan.request()
    handled.plan.over()


def of_body(folder: Path, size: int) -> float:
    tool = Tool(House(folder, config_text("default: [openai.gpt-4]")))
    for number in range(10):
        tool.history.append({"role": ("user", "assistant")[number % 2], "content": "x" * (size // 10)})
    tool.history.append({"role": "user", "content": "hello"})
    return cost_ms(lambda: decided(tool.house, tool), times=max(1, 300_000 // size))


def of_history(folder: Path, size: int) -> float:
    tool = Tool(House(folder, config_text("default: [openai.gpt-4]")))
    for number in range(size - 1):
        tool.history.append({"role": ("user", "assistant")[number % 2], "content": f"message {number}"})
    tool.history.append({"role": "user", "content": "hello"})
    return cost_ms(lambda: decided(tool.house, tool), times=max(1, 300 // size))


def of_sessions(folder: Path, size: int) -> float:
    """A call of one of them, in turn."""
    house = House(folder / "calls", config_text("default: [openai.gpt-4]"))
    for number in range(size):
        house.desk.store.update(SessionKey("session", f"s{number}"), lambda _: EMPTY.with_(sticky=Sticky("glm")))
    asked = iter(range(10**9))

    def ask() -> None:
        tool = Tool(house, session=f"s{next(asked) % size}")
        tool.history.append({"role": "user", "content": "hello"})
        decided(house, tool)

    return cost_ms(ask, times=min(size, 200))


def of_listed(folder: Path, size: int) -> float:
    store = FileStore(folder)
    for number in range(size):
        store.update(SessionKey("session", f"s{number}"), lambda _: EMPTY.with_(sticky=Sticky("glm")))
    return cost_ms(lambda: kept.sessions(folder))


def of_swept(folder: Path, size: int) -> float:
    store = FileStore(folder)
    for number in range(size):
        store.update(SessionKey("session", f"s{number}"), lambda _: EMPTY.with_(sticky=Sticky("glm")))
    return cost_ms(lambda: store.sweep(time.time(), 30))


def hidden(number: int) -> Hidden:
    items = tuple(
        {"role": "assistant", "content": [{"type": "text", "text": f"round {number}, part {part} " * 20}]} for part in range(3)
    )
    return Hidden(Dialect.MESSAGES, Key(f"answer {number}", "typed"), number, items)


def of_hidden_kept(folder: Path, size: int) -> float:
    store = HiddenStore(folder)
    for number in range(size - 1):
        store.add(KEY, hidden(number))
    fresh = iter(range(10**6, 10**9))
    return cost_ms(lambda: store.add(KEY, hidden(next(fresh))))


def of_hidden_used(folder: Path, size: int) -> float:
    """A call of a conversation with so many of them."""
    house = House(folder, config_text("default: [openai.gpt-4]"))
    store = house.desk.hidden = HiddenStore(folder / "sessions")
    tool = Tool(house)
    for number in range(size):
        store.add(KEY, hidden(number))
        tool.history.append({"role": "user", "content": f"message {number}"})
        tool.history.append({"role": "assistant", "content": f"answer {number}"})
    tool.history.append({"role": "user", "content": "hello"})
    return cost_ms(lambda: decided(house, tool))


def task(number: int) -> Task:
    return Task(f"task-{number}", "one", 2_000_000_000_000 + number, 1, 1, f"look at the build {number}")


def of_reminders_kept(folder: Path, size: int) -> float:
    store = ClockStore(folder)
    store.update("one", lambda tasks: [*tasks, *map(task, range(size - 1))])
    fresh = iter(range(10**6, 10**9))
    return cost_ms(lambda: store.update("one", lambda tasks: [*tasks, task(next(fresh))]))


def of_reminders_used(folder: Path, size: int) -> float:
    """What a call looks at that is reminded of none of them."""
    store = ClockStore(folder)
    store.update("one", lambda tasks: [*tasks, *map(task, range(size))])
    time.sleep(0.1)  # a file that was written just now is read again
    store.waiting("one")
    return 1000 * cost_ms(lambda: store.waiting("one"), times=200)


def catalogue(providers: int, models: int, keys: int = 1) -> str:
    names = " ".join(f"m{number}" for number in range(models))
    listed = "".join(
        provider_text(f"p{number}", " ".join(f"k{key}" for key in range(keys)), names) for number in range(providers)
    )
    return config_text("default: [p0.m0]", listed)


def of_models_read(size: int) -> float:
    providers, models = max(1, size // 50), min(size, 50)
    text = catalogue(providers, models)
    return cost_ms(lambda: read(text, name="bench.yaml", env={}))


def of_models_used(folder: Path, size: int) -> float:
    return _configured(folder, catalogue(max(1, size // 50), min(size, 50)))


def of_keys(folder: Path, size: int) -> float:
    return _configured(folder, catalogue(1, 1, size))


def _configured(folder: Path, text: str) -> float:
    tool = Tool(House(folder, text))
    tool.history.append({"role": "user", "content": "hello"})
    return cost_ms(lambda: decided(tool.house, tool), times=20)


# With real proxies


def computed(proxies: Sequence[Mitmdump]) -> float:
    """Seconds, workers and all."""
    return sum(_cpu_of(pid) for proxy in proxies for pid in (proxy.workers or [proxy.pid]))


def _cpu_of(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def asked(proxies: Sequence[Mitmdump], together: int, each: int, request: bytes) -> float:
    """CPU milliseconds for one of so many, and nobody waits for anybody."""
    pipes = await asyncio.gather(*(Route(URL, proxies[number % len(proxies)]).open("http/1.1") for number in range(together)))
    try:
        await asyncio.gather(*(exchange(pipe, make_request()) for pipe in pipes))
        before = computed(proxies)

        async def many(pipe: Any) -> None:
            for _ in range(each):
                await exchange(pipe, request)

        await asyncio.gather(*map(many, pipes))
        return (computed(proxies) - before) * 1000 / (together * each)
    finally:
        for pipe in pipes:
            pipe.close()


@dataclass(slots=True)
class Stage:
    upstream: dict[str, object]
    folder: Path

    def proxy(self, name: str, *, shared: Path | None = None, workers: int = 0) -> Mitmdump:
        return Mitmdump(
            script=SCRIPT,
            upstream={"*": (int(str(self.upstream["plain"])), int(str(self.upstream["tls"])))},
            options=[f"ssl_verify_upstream_trusted_ca={self.upstream['ca']}", "flow_detail=0"],
            folder=self.folder / name,
            env={"ROUTECODEX_SESSION_DIR": str(shared)} if shared else {},
            plainly=not workers,
            workers=workers,
        )

    def of_streams(self, size: int) -> float:
        """µs for an event of one of so many streams that are open at once."""
        with self.proxy(f"streams-{size}") as proxy:
            return asyncio.run(asked([proxy], size, max(1, 4 // size), make_request(stream=True))) * 1000 / EVENTS

    def of_workers(self, size: int) -> float:
        with self.proxy(f"workers-{size}", workers=size) as proxy:
            until = time.monotonic() + 60
            while not re.search(rf"{size} workers? serve", proxy.log):
                assert time.monotonic() < until, proxy.log
                time.sleep(0.05)
            return asyncio.run(asked([proxy], 16, 40, make_request()))

    def of_proxies(self, size: int) -> float:
        """They share their sessions' folder, and every call has a session."""
        with ExitStack() as stack:
            shared = self.folder / f"shared-{size}"
            proxies = [stack.enter_context(self.proxy(f"proxies-{size}-{number}", shared=shared)) for number in range(size)]
            return asyncio.run(asked(proxies, 12, 60, make_request()))


def curves(folder: Path) -> Iterator[Curve]:
    places = (folder / str(number) for number in range(10**6))

    def at(measure: Callable[[Path, int], float]) -> Callable[[int], float]:
        return lambda size: measure(next(places), size)

    yield curve("a call, by its body", "bytes", (10_000, 100_000, 1_000_000, 10_000_000), at(of_body))
    yield curve("a call, by its history", "messages", (10, 100, 1_000, 10_000), at(of_history))
    yield curve("a call of one session of many", "sessions", (10, 100, 1_000, 10_000), at(of_sessions))
    yield curve("`routecodex sessions`", "sessions", (10, 100, 1_000, 10_000), at(of_listed))
    yield curve("the hourly sweep", "sessions", (10, 100, 1_000, 10_000), at(of_swept))
    yield curve("a hidden round is kept", "hidden rounds", (1, 10, 100, 200), at(of_hidden_kept))
    yield curve("a call with hidden rounds", "hidden rounds", (1, 10, 100, 200), at(of_hidden_used))
    yield curve("a reminder is scheduled", "reminders", (1, 10, 100, 1_000), at(of_reminders_kept))
    yield curve("a call beside reminders", "reminders", (1, 10, 100, 1_000), at(of_reminders_used), "µs")
    yield curve("the configuration is read", "models (50 a provider)", (1, 50, 1_000, 10_000), of_models_read)
    yield curve("a call, by the configuration", "models (50 a provider)", (1, 50, 1_000, 10_000), at(of_models_used))
    yield curve("a call, by a provider's keys", "keys", (1, 10, 100, 1_000), at(of_keys))
    with start_upstream() as upstream:
        stage = Stage(upstream, folder)
        yield curve("an event of a stream", "streams at once", (1, 10, 50, 200), stage.of_streams, "µs")
        yield curve("a small call, 16 at once", "workers", (1, 2, 4), stage.of_workers)
        yield curve("a small call, 12 at once", "proxies, one folder", (1, 2, 3), stage.of_proxies)


def page(found: Sequence[Curve]) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return "\n".join(
        [
            f"Python {platform.python_version()}, mitmproxy {VERSION}; {os.cpu_count()} cores, {memory:.0f} GiB of memory.",
            "",
            "| What | by | size: cost | | slope |",
            "|---|---|---|---|---|",
            *(one.row for one in found),
        ]
    )


def write(found: Sequence[Curve]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{page(found)}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> None:
    os.fsync = lambda handle: None  # type: ignore[assignment]  # tens of thousands of files are made: no disk is waited for
    with tempfile.TemporaryDirectory(prefix="routecodex-growth-") as folder:
        write(list(curves(Path(folder))))
    print(f"{PAGE.relative_to(ROOT)} is written anew.")


if __name__ == "__main__":
    main()
