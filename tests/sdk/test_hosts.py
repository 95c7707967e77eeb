"""Every answer that a host is known to send, told in every other dialect, as that dialect's official SDK hears it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from routecodex.routing.values import Dialect
from tests.rig.asked import Asked
from tests.routing.dialects.hosts import test_hosts as hosts
from tests.routing.dialects.hosts.sample import CUT, Sample
from tests.sdk.environment import REQUIREMENTS, sdk_python
from tests.sdk.lines import Lines

SDKS = {
    Dialect.MESSAGES: "anthropic",
    Dialect.CHAT: "openai-chat",
    Dialect.RESPONSES: "openai-responses",
    Dialect.GEMINI: "google-genai",
}
PAIRS = [
    (sample, client, streamed)
    for number, sample in enumerate(hosts.SAMPLES)
    for place, (client, streamed) in enumerate(product((one for one in Dialect if one is not sample.dialect), (True, False)))
    if os.environ.get("ROUTECODEX_TESTS") == "long" or place == number % 6
]
"""All of them in the long profile; else each answer once, by turns."""


@pytest.fixture(scope="module")
def heard() -> Iterator[Lines]:
    started = Lines([sdk_python(), REQUIREMENTS.with_name("heard.py")])
    yield started
    started.close()


def test_the_sdks_hear_what_the_host_said(heard: Lines) -> None:
    wrong = {}
    for sample, client, streamed in PAIRS:
        if problem := _problem(heard, sample, client, streamed):
            wrong[f"{sample.name} to {client}, {'streamed' if streamed else 'whole'}"] = problem
    assert not wrong, f"{len(wrong)} of {len(PAIRS)}"


def _problem(heard: Lines, sample: Sample, client: Dialect, streamed: bool) -> str:
    expected, endpoint = sample.expected, hosts.CLIENTS[client]
    if not streamed and client is Dialect.GEMINI:
        endpoint = replace(endpoint, stream=False)
    asked = Asked(endpoint, streamed, "round-1", "asked-model", 1, maker="acme", include_usage=True)
    told = hosts._told(sample, asked, len(sample.raw))
    way = "json" if not streamed else "stream" if client is Dialect.GEMINI else "helper"
    kind = "text/event-stream" if streamed else "application/json"
    said = heard.ask({"sdk": SDKS[client], "way": way, "type": kind, "body": told.decode()})
    if expected.error is not None or (streamed and expected.finish == "error"):
        failed = "error" in said or said.get("stop") not in ("end_turn", "stop", "completed", "STOP", "tool_use", "tool_calls")
        words = expected.error not in (None, CUT) and "error" in said and expected.error not in said["error"]
        return "" if (failed and not words) or expected.finish == "error" else f"it passes for a good answer: {said}"
    if "error" in said:
        return str(said["error"])
    if expected.half or expected.media:
        return ""
    text = expected.text if expected.abroad is None else expected.abroad
    calls = [(call["name"], call["arguments"]) for call in said["calls"]]
    differs = said["text"] != text or calls != list(expected.calls)
    return f"{said['text']!r} {calls}, not {text!r} {list(expected.calls)}" if differs else ""
