"""`python -m tests.bench.before TREE`: another checkout's addon and this one, in turns, and this one once more as the control.

    git worktree add ../before c221ee6
    python -m tests.bench.before ../before --rounds 7

What two proxies of the same tree differ by is noise: a row is slower where its median is so by more than that (the middle half of
the control's rounds) and 3 %. Plain mitmdump stands beside them. Loopback only; it ends by itself and ends only what it started.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from mitmproxy.version import VERSION

from tests.bench.__main__ import PLAIN, start_proxy, start_upstream
from tests.bench.load import MEASURES, Measure, Side
from tests.rig.proxy import SCRIPT

TOLERATED = 0.03
BEFORE, NOW, AGAIN, WITHOUT = "before", "now", "now again", "plain"


def slower(measure: Measure, before: list[float], now: list[float], again: list[float]) -> tuple[float, float, bool]:
    """How much slower a row is than before (1: as fast), how far the control spreads, and whether the one exceeds the other."""
    ratio = statistics.median(_slowness(measure, before, now))
    low, _, high = statistics.quantiles(_slowness(measure, now, again), n=4, method="inclusive")
    spread = max(1 - low, high - 1)
    return ratio, spread, ratio > 1 + spread + TOLERATED


def _slowness(measure: Measure, first: list[float], second: list[float]) -> list[float]:
    pairs = zip(first, second, strict=True)
    return [b / a if measure.smaller_is_better else a / b for a, b in pairs]


async def take_turns(sides: list[Side], rounds: int) -> None:
    """Each round begins with another one, so that none is always the first or stands always behind the same."""
    try:
        for side in sides:
            await side.connect()
        for number in range(rounds):
            for place, measure in enumerate(MEASURES):
                first = (number + place) % len(sides)
                order = [*sides[first:], *sides[:first]]
                for side in order if number % 2 == 0 else reversed(order):
                    await side.measure(measure.name, measure.take)
            print(f"  round {number + 1} of {rounds}", end="\r", file=sys.stderr, flush=True)
    finally:
        for side in sides:
            side.close()


def report(sides: dict[str, Side]) -> bool:
    """Whether no row is slower than before."""
    print(f"{'':36} " + " ".join(f"{name:>10}" for name in sides) + f"   {'now/before':>10}  {'control':>8}")
    good = True
    for measure in MEASURES:
        figures = {name: side.figures[measure.name] for name, side in sides.items()}
        ratio, spread, is_slower = slower(measure, figures[BEFORE], figures[NOW], figures[AGAIN])
        good &= not is_slower
        shown = " ".join(f"{statistics.median(one):10.2f}" for one in figures.values())
        told = "SLOWER" if is_slower else "ok"
        print(f"{f'{measure.name} [{measure.unit}]':36} {shown}   {ratio:9.2f}×  ±{spread:7.1%}  {told}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.before", description="Measure this tree against another one.")
    parser.add_argument("tree", type=Path, help="a checkout of another commit")
    parser.add_argument("--rounds", type=int, default=7, choices=range(2, 101), metavar="2…100")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a row is slower")
    given = parser.parse_args()
    script = given.tree / "addons" / "routecodex.py"
    if not script.is_file():
        parser.error(f"no addon: {script}")
    print(f"mitmproxy {VERSION}, Python {platform.python_version()}, {given.rounds} rounds, all sides in turns\n")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="routecodex-before-")))
        upstream = stack.enter_context(start_upstream())
        scripts = {BEFORE: script, NOW: SCRIPT, AGAIN: SCRIPT, WITHOUT: PLAIN}
        sides = {
            name: Side(name, stack.enter_context(start_proxy(one, upstream, folder / name.replace(" ", "-"), None)))
            for name, one in scripts.items()
        }
        asyncio.run(asyncio.wait_for(take_turns(list(sides.values()), given.rounds), 120 + 60 * given.rounds))
        good = report(sides)
    return 1 if given.strict and not good else 0


if __name__ == "__main__":
    sys.exit(main())
