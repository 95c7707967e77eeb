"""The provider of the benchmark, in a process of its own: prints where it listens, and ends when its standard input does."""

from __future__ import annotations

import json
import sys

from routecodex.routing.values import Dialect
from tests.rig import wire
from tests.rig.behaviour import Behaviour
from tests.rig.provider import FakeProvider, Received

EVENTS = 5_000
SHORT, FEW_EVENTS = "claude-haiku-4-5", 20
"""Streams of this model have so many, and rest after the first three: what was computed until then can be read off."""


PATHS = {Dialect.MESSAGES: "/v1/messages", Dialect.CHAT: "/v1/chat/completions"}


def prepare(path: str, count: int = EVENTS) -> tuple[Behaviour, Behaviour]:
    """A small whole answer and a stream, both made once: the upstream must cost as little as possible."""
    small = wire.read_request("POST", path, {"model": "claude-sonnet-4-5"})
    streamed = wire.read_request("POST", path, {"model": "claude-sonnet-4-5", "stream": True})
    assert small is not None
    assert streamed is not None
    events = wire.events(wire.Reply(tuple(f"word {number} " for number in range(count))), streamed)
    return Behaviour(body=wire.whole(wire.Reply("A short answer."), small)), Behaviour(
        events=tuple(events), stall_after=3 if count == FEW_EVENTS else None, stall_s=0.2
    )


def main() -> None:
    answers = {
        (dialect, is_short): prepare(path, FEW_EVENTS if is_short else EVENTS)
        for dialect, path in PATHS.items()
        for is_short in (False, True)
    }

    def rule(received: Received) -> Behaviour | None:
        asked = received.asked
        return answers[asked.dialect, SHORT.encode() in received.body][asked.stream] if asked is not None else None

    with FakeProvider(keep=False) as provider:
        provider.script(rule)
        print(json.dumps({"plain": provider.plain_port, "tls": provider.tls_port, "ca": str(provider.ca)}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
