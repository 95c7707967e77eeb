"""`python -m tests.bench.abroad`: what an event of a translated answer costs, at an earlier commit and now, in one process; and
one of two rounds in the client's own dialect.

The earlier commit's answer side is `Translation`, whose bytes then go through what lets an answer pass, or a merger; today it is
`Answer`.
The two take turns, and today's runs against itself as well: what differs there is noise (the control).
"""

from __future__ import annotations

import argparse
import importlib
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

from routecodex.routing.dialects.answer.machine import Answer, Round
from routecodex.routing.values import Dialect
from tests.bench.answers import EVENTS, endpoint, reads_of, take
from tests.rig.asked import Asked
from tests.rig.proxy import ROOT

BEFORE = "c221ee6"
Run = Callable[[list[bytes]], None]


def earlier(commit: str, folder: Path) -> None:
    """Its `routing`, which imports itself by that name."""
    packed = subprocess.run(["git", "archive", commit, "routing"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")
    sys.path.insert(0, str(folder))


def then(client: Dialect, spoken: Dialect) -> Run:
    of = importlib.import_module
    values, neutral = of("routing.values"), of("routing.dialects.translation.neutral")
    translation, passage = of("routing.dialects.translation.coming_down").Translation, of("routing.turn.terminal").Passage
    told = values.Endpoint(values.Dialect(client.value), stream=True if client is Dialect.GEMINI else None)
    asked = neutral.Asked(told, True, "0123", "m", 1, maker="acme")

    def run(reads: list[bytes]) -> None:
        made, passes = translation(values.Dialect(spoken.value), asked), passage(told)
        for read in reads:
            if out := made.feed(read):
                passes.feed(out)
        passes.feed(made.close())

    return run


def merged_then(client: Dialect, rounds: int) -> Run:
    of = importlib.import_module
    values, merging = of("routing.values"), of("routing.dialects.merging")
    told = values.Endpoint(values.Dialect(client.value), stream=True if client is Dialect.GEMINI else None)

    def run(reads: list[bytes]) -> None:
        merger = merging.merger_for(told, stream=True, own_tools=frozenset({"clock"}))
        for _ in range(rounds):
            merger.begin_round()
            for read in reads:
                merger.feed(read)
            merger.end_round()
        take(merger.finish())

    return run


def now(client: Dialect, spoken: Dialect, rounds: int = 1) -> Run:
    asked = Asked(endpoint(client), True, "0123", "m", 1, maker="acme")

    def run(reads: list[bytes]) -> None:
        answer = Answer(asked, own=frozenset({"clock"}))
        for _ in range(rounds):
            answer.begin_round(Round(spoken, "acme"))
            for read in reads:
                answer.feed(read)
            answer.end_round()
        take(answer.finish())

    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.abroad", description="What an event of a translated answer costs."
    )
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--pair", default="", help="only pairs that hold this, as `openai-chat for gemini-chat`")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        earlier(arguments.before, Path(folder))
        print(f"{'µs per event':46} {'per read':>8} {'before':>8} {'now':>8} {'quicker':>8} {'control':>8}")
        for client, spoken, rounds in [*((*pair, 1) for pair in permutations(Dialect, 2)), *((one, one, 2) for one in Dialect)]:
            pair = f"{spoken} for {client}" if client is not spoken else f"{client}, {rounds} rounds"
            if arguments.pair not in pair:
                continue
            before = then(client, spoken) if client is not spoken else merged_then(client, rounds)
            ways = (before, now(client, spoken, rounds), now(client, spoken, rounds))
            for per_read in (1, 8):
                costs = measured(
                    ways, reads_of(EVENTS[spoken](arguments.events), per_read), arguments.rounds, arguments.events * rounds
                )
                old, new, control = (statistics.median(one) for one in costs)
                quicker = statistics.median(a / b for a, b in zip(costs[0], costs[1], strict=True))
                print(f"{pair:46} {per_read:8} {old:8.2f} {new:8.2f} {quicker:7.2f}× {new / control:7.2f}×")


def measured(ways: tuple[Run, ...], reads: list[bytes], times: int, events: int) -> list[list[float]]:
    costs: list[list[float]] = [[] for _ in ways]
    for number in range(times):
        order = range(len(ways)) if number % 2 == 0 else reversed(range(len(ways)))
        for way in order:
            begun = time.process_time()
            ways[way](reads)
            costs[way].append((time.process_time() - begun) / events * 1e6)
    return costs


if __name__ == "__main__":
    main()
