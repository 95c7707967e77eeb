"""A Messages client on a Chat provider, against plain mitmdump that only carries: what translation costs beside that."""

from __future__ import annotations

import statistics

from tests.bench.load import EVENTS, Side, small_ms, stream_ms

CONFIG = """
proxy: {interceptHosts: [api.anthropic.com]}
virtualrouter:
  providers:
    other:
      protocol: openai-chat
      baseURL: https://other.example/v1
      auth: {type: apikey, keys: [{alias: one, value: bench}]}
      models: {claude-sonnet-4-5: {}}
  routing: {default: [other.claude-sonnet-4-5]}
"""
SMALL, STREAM = "translated, small call, p50", f"translated stream of {EVENTS:,} events"
SLOWEST, FEWEST = 1.5, 25_000
"""The goals: times plain's latency; events a second."""


async def measure(plain: Side, ours: Side, rounds: int) -> None:
    try:
        for side in (plain, ours):
            await side.connect()
        for number in range(rounds):
            for side in (plain, ours) if number % 2 == 0 else (ours, plain):
                await side.measure(SMALL, small_ms)
                await side.measure(STREAM, stream_ms)
    finally:
        plain.close()
        ours.close()


def report(plain: Side, ours: Side) -> bool:
    """Whether both goals are met."""
    a, b = statistics.median(plain.figures[SMALL]), statistics.median(ours.figures[SMALL])
    ratio = statistics.median(y / x for x, y in zip(plain.figures[SMALL], ours.figures[SMALL], strict=True))
    per_s = [round(EVENTS / statistics.median(side.figures[STREAM]) * 1000) for side in (plain, ours)]
    quick, enough = round(ratio, 2) <= SLOWEST, per_s[1] >= FEWEST
    print("\nA Messages client on a Chat provider; plain carries Messages on both sides.")
    print(f"{SMALL + ' [ms]':42} {a:12.2f} {b:12.2f}   {ratio:.2f} ×   goal ≤ {SLOWEST:g}   {'ok' if quick else 'MISSED'}")
    goal = f"goal ≥ {FEWEST:,}   {'ok' if enough else 'MISSED'}"
    print(f"{'translated events [/s]':42} {per_s[0]:12,} {per_s[1]:12,}            {goal}")
    return quick and enough
