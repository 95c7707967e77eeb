"""The house in numbers, of one tree or of several: `python -m tests.bench.house [TREE…]` (without any: this one).

*Lines* of the answer side at equal function: what read and wrote answers before they were one machine, and what does so now.
*One traced call*: a Messages client, a Chat provider whose first key fails, stopMessage and clock on, two rounds of two pieces of
text each: how many calls of our functions, how many JSON parses, how often execution passes from one of our files to another.
A tree is a checkout of any commit: `git worktree add ../before c221ee6`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.load import GO_ON
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, Mitmdump
from tests.rig.reply import Reply

ANSWER_SIDE = (
    "routing/dialects/answer",
    "routing/dialects/answers",
    "routing/dialects/merging",
    "routing/dialects/translation/hearing",
    "routing/dialects/translation/telling",
    *(f"routing/turn/{name}.py" for name in ("edges", "forms", "left_out", "peek", "request", "so_far", "terminal")),
)
"""The packages that go, what takes their place, and the tables per dialect that stand outside `dialects`."""

CONFIG = """
virtualrouter:
  providers:
    glm:
      protocol: openai-chat
      baseURL: https://glm.example/v1
      auth: {type: apikey, keys: [{alias: a, value: key-of-glm-a}, {alias: b, value: key-of-glm-b}]}
      models: {m: {}}
  routing: {default: [glm.m]}
  clock: {enabled: true, ntp: {enabled: false}}
"""
TRACE = Path(__file__).with_name("trace.py")


def lines(tree: Path) -> dict[str, int]:
    """Of what is left in this tree."""
    counted = {place: sum(_lines_of(tree / place)) for place in ANSWER_SIDE}
    return {place: count for place, count in counted.items() if count}


def _lines_of(place: Path) -> Iterator[int]:
    for path in place.rglob("*.py") if place.is_dir() else place.parent.glob(place.name):
        yield path.read_bytes().count(b"\n")


def traced(tree: Path) -> dict[str, Any]:
    """What `trace.py` counted of the third such call: by then nothing is met for the first time."""
    scripts = (tree / "addons" / "routecodex.py", TRACE)
    with (
        FakeProvider() as provider,
        Mitmdump(script=scripts, config=CONFIG, upstream=provider, env={"ROUTECODEX_TRACED": str(tree)}) as proxy,
    ):
        return asyncio.run(_traced(proxy, provider))


async def _traced(proxy: Mitmdump, provider: FakeProvider) -> dict[str, Any]:
    said = [Behaviour(reply=Reply((f"round {number}", " ends"))) for number in (1, 2)]
    for session in ("one", "two"):
        provider.enqueue(*said)
        await _call(proxy, session)
    await _switch(proxy, "/on")
    provider.enqueue(Behaviour(status=503), *said)
    answer = await _call(proxy, "three")
    counted: dict[str, Any] = json.loads(await _switch(proxy, "/off"))
    assert b"round 1" in answer, answer
    assert b"round 2" in answer, answer
    assert len(provider.calls) == 2 + 2 + 3, [call.raw[:200] for call in provider.calls]
    return counted


async def _call(proxy: Mitmdump, session: str) -> bytes:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1024,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": GO_ON}]}],
    }
    headers = (("x-api-key", "sk-ant-bench"), ("x-claude-code-session-id", session), ("content-type", "application/json"))
    async with Http1(Route("https://api.anthropic.com", proxy)) as client:
        answer = await client.send("POST", "/v1/messages", headers=headers, body=body)
    return answer.body


async def _switch(proxy: Mitmdump, path: str) -> bytes:
    async with Http1(Route("http://trace.invalid", proxy)) as client:
        return (await client.send("GET", path)).body


def told(tree: Path) -> str:
    counted, trace = lines(tree), traced(tree)
    rows = [f"== {tree}", f"{sum(counted.values()):7,} lines of the answer side"]
    rows += [f"{count:11,} {place}" for place, count in counted.items()]
    rooms = trace.pop("calls by room")
    rows += [f"{count:7,} {name} of one traced call" for name, count in trace.items()]
    rows += [f"{count:11,} calls in {room}" for room, count in rooms.items()]
    return "\n".join(rows)


def main(trees: Sequence[str]) -> None:
    for tree in trees or (str(ROOT),):
        print(told(Path(tree).resolve()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
