"""`python -m tests.bench`: this addon against plain mitmdump, with the same fake provider behind both, TLS on all sides.

1. The two proxies take turns (A B, B A, A B, …), so that a slow minute of the machine falls on both.
2. Loopback only; it ends by itself and ends only what it started.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mitmproxy.version import VERSION

from tests.bench import agents, translated
from tests.bench.load import COSTS, MEASURES, OF_ONE, OF_TWO, Side
from tests.rig.proxy import ROOT, SCRIPT, Mitmdump

PLAIN = Path(__file__).with_name("plain.py")
SHIPPED = ROOT / "mitm-config.yaml"
HOW = """How: three processes on this machine (load, proxy, provider), loopback, HTTP/1.1, TLS on both sides of the proxy,
connections kept. Each round measures both proxies, in changing order; a figure is the median of the rounds, a ratio the median
of the rounds' ratios. Per round: 150 small calls one after another; 16 connections with 30 calls each; 25 large calls;
150 small ones with a tag; 25 large ones typed at once, and 25 of these with a tag; 3 streams, an event per HTTP chunk.
Every proxy answered correctly before it was measured.
Memory is the resident set of the proxy's process after the last call."""
HOW_TURNS = """What a turn costs. One round: without is this addon with its clock off, so that nobody takes part and bytes pass as
they come; with it is the shipped configuration, where a merger reads every answer. A second round (stopMessage): a small call of
one round and of two, and an event of a stream's first round and of its second."""
_CLOCK = re.compile(r"(\n {2}clock:\n {4}enabled: )true")


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure an addon against plain mitmdump.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--script", type=Path, default=SCRIPT, help="the addon to measure")
    parser.add_argument("--config", type=Path, help="its configuration; otherwise the one it finds itself")
    parser.add_argument("--against", type=Path, default=PLAIN, help="the yardstick")
    parser.add_argument("--header", action="append", default=[], metavar="NAME:VALUE", help="more headers on every measured call")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a goal is missed")
    arguments = parser.parse_args()
    if not 1 <= arguments.rounds <= 100:
        parser.error("--rounds: 1 to 100")
    for path in (arguments.script, arguments.against, arguments.config):
        if path is not None and not path.is_file():
            parser.error(f"no such file: {path}")
    return arguments


def without_clock(config: str) -> str | None:
    """The same configuration with its clock switched off; None where it is not switched on."""
    return _CLOCK.sub(r"\1false", config) if _CLOCK.search(config) else None


@contextmanager
def start_upstream(*module: str) -> Iterator[dict[str, object]]:
    """What it says of itself when it listens; it goes when its input does."""
    command = [sys.executable, "-m", *(module or ("tests.bench.upstream",))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        process.stdout.close()


def start_proxy(script: Path, upstream: dict[str, object], folder: Path, config: Path | None) -> Mitmdump:
    return Mitmdump(
        script=script.resolve(),
        upstream={"*": (int(str(upstream["plain"])), int(str(upstream["tls"])))},
        options=[f"ssl_verify_upstream_trusted_ca={upstream['ca']}", "flow_detail=0"],
        config=config.read_text() if config else None,
        folder=folder,
        plainly=True,
    )


async def take_turns(sides: list[Side], rounds: int) -> None:
    try:
        for side in sides:
            await side.connect()
        for number in range(rounds):
            for measure in MEASURES:
                for side in sides if number % 2 == 0 else sides[::-1]:
                    await side.measure(measure.name, measure.take)
            print(f"  round {number + 1} of {rounds}", end="\r", file=sys.stderr, flush=True)
    finally:
        for side in sides:
            side.close()


async def measure_turns(alone: Side, ours: Side, rounds: int) -> None:
    """Behind everything else: sessions and hidden rounds stay in memory, which is not what the other rows compare."""
    try:
        for side in (alone, ours):
            await side.connect()
        for take in OF_TWO.values():
            await take(ours)
        for number in range(rounds):
            for name, take in OF_ONE.items():
                for side in (alone, ours) if number % 2 == 0 else (ours, alone):
                    await side.measure(name, take)
            for name, take in OF_TWO.items():
                await ours.measure(name, take)
            print(f"  turns: round {number + 1} of {rounds}", end="\r", file=sys.stderr, flush=True)
    finally:
        alone.close()
        ours.close()


async def measure_agents(
    stack: ExitStack, plain: Mitmdump, upstream: dict[str, object], folder: Path, rounds: int
) -> list[agents.Compared]:
    def start(name: str, config: Path) -> Mitmdump:
        return stack.enter_context(start_proxy(SCRIPT, upstream, folder / name, config))

    return await asyncio.wait_for(agents.measure(plain, start, folder, max(1, rounds // 3)), 300 + 120 * rounds)


def report(plain: Side, ours: Side) -> bool:
    """Whether every goal is met."""
    print(f"{'':36} {plain.name:>12} {ours.name:>12}   {'compared':>9}  {'goal':>8}   spread")
    good = True
    for measure in MEASURES:
        a, b = plain.figures[measure.name], ours.figures[measure.name]
        compared = measure.compare(a, b)
        # Memory only grows: what counts is the end.
        value = compared[-1] if measure.difference else statistics.median(compared)
        left, right = (figures[-1] if measure.difference else statistics.median(figures) for figures in (a, b))
        met = measure.met(round(value, 2))
        good &= met
        goal = f"{'≤' if measure.smaller_is_better else '≥'} {'+' if measure.difference else ''}{measure.limit:g}"
        shown = f"{value:+.1f} MB" if measure.difference else f"{value:.2f} ×"
        spread = f"{min(compared):.2f} … {max(compared):.2f}"
        name = f"{measure.name} [{measure.unit}]"
        print(f"{name:36} {left:12.2f} {right:12.2f}   {shown:>9}  {goal:>8}   {spread}  {'ok' if met else 'MISSED'}")
    return good


def report_turns(alone: Side, ours: Side) -> None:
    figures = {"alone": alone.figures, "ours": ours.figures}
    print(f"\n{HOW_TURNS}\n{'':36} {'without':>12} {'with':>12}   {'more':>9}   spread")
    for cost in COSTS:
        without, with_it = cost.without(figures), cost.with_it(figures)
        more = [b - a for a, b in zip(without, with_it, strict=True)]
        left, right, middle = statistics.median(without), statistics.median(with_it), statistics.median(more)
        name = f"{cost.name} [{cost.unit}]"
        print(f"{name:36} {left:12.2f} {right:12.2f}   {middle:+9.2f}   {min(more):+.2f} … {max(more):+.2f}")


def main() -> int:
    arguments = read_arguments()
    headers = [tuple(part.strip() for part in line.partition(":")[::2]) for line in arguments.header]
    print(f"mitmproxy {VERSION}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    print(f"{arguments.script} against {arguments.against.name}, {arguments.rounds} rounds\n{HOW}\n")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="routecodex-bench-")))
        upstream = stack.enter_context(start_upstream())
        filled = tuple((name, value.format(**upstream)) for name, value in headers)
        plain = Side("plain", stack.enter_context(start_proxy(arguments.against, upstream, folder / "plain", None)))
        ours = Side(
            "ours", stack.enter_context(start_proxy(arguments.script, upstream, folder / "ours", arguments.config)), filled
        )
        print(f"started in {plain.proxy.started_in_s:.2f} s (plain) and {ours.proxy.started_in_s:.2f} s (ours)\n")
        asyncio.run(asyncio.wait_for(take_turns([plain, ours], arguments.rounds), 60 + 30 * arguments.rounds))
        good = report(plain, ours)
        config = without_clock((arguments.config or SHIPPED).read_text(encoding="utf-8"))
        if arguments.script.resolve() == SCRIPT and config is not None:
            (folder / "alone.yaml").write_text(config, encoding="utf-8")
            proxy = stack.enter_context(start_proxy(SCRIPT, upstream, folder / "alone", folder / "alone.yaml"))
            alone = Side("alone", proxy, filled)
            asyncio.run(asyncio.wait_for(measure_turns(alone, ours, arguments.rounds), 60 + 20 * arguments.rounds))
            report_turns(alone, ours)
            (folder / "other.yaml").write_text(translated.CONFIG, encoding="utf-8")
            proxy = stack.enter_context(start_proxy(SCRIPT, upstream, folder / "other", folder / "other.yaml"))
            other = Side("translated", proxy, filled)
            asyncio.run(asyncio.wait_for(translated.measure(plain, other, arguments.rounds), 60 + 20 * arguments.rounds))
            good &= translated.report(plain, other)
        if arguments.script.resolve() == SCRIPT:
            good &= agents.report(asyncio.run(measure_agents(stack, plain.proxy, upstream, folder, arguments.rounds)))
    return 1 if arguments.strict and not good else 0


if __name__ == "__main__":
    sys.exit(main())
